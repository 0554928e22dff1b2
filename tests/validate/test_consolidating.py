"""Every fault that is planted in logs is found, by its name; logs without one pass."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.errors import PlayheadError
from playhead.validate.answer import Answer
from playhead.validate.consolidating import REPORT_NAME, Verdict, consolidate
from support.validation_logs import NEMO_KEYS, as_nemo_writes, validation


def judged(made, folder, **options):
    made.write(folder)
    verdict = consolidate(folder, **options)
    return verdict, {answer.question: answer for answer in verdict.answers}


def exit_code(folder):
    try:
        return consolidate(folder).exit_code
    except PlayheadError as error:
        return error.exit_code


def tags(answers):
    return {name: answer.tag for name, answer in answers.items() if answer.status == "FAIL"}


def statuses(answers):
    return {name: answer.status for name, answer in answers.items()}


@pytest.mark.parametrize("full", [False, True])
def test_runs_without_a_fault_pass_whatever_they_were_resumed_on(tmp_path, full):
    made = validation(resumed=((2, 1), (4, 0), (1, 3)), full=full)
    verdict, answers = judged(made, tmp_path)
    assert set(statuses(answers).values()) == {"PASS"}
    assert verdict.exit_code == 0
    assert list(answers["Q4"].more["runs"]) == ["resumed/run0", "resumed/run1", "resumed/run2"]
    assert "resumed/run1 (4 ranks after 2, 0 workers each)" in answers["Q4"].detail
    assert ("tensors" in answers["Q4"].detail) is full


def test_a_sample_on_two_ranks_is_a_leak_and_named(tmp_path):
    made = validation()
    rows = made.run("baseline").rows
    leaked = rows[0][3]["cut_ids"][1]
    rows[1][5]["cut_ids"][0] = leaked
    verdict, answers = judged(made, tmp_path)
    assert tags(answers) == {
        "Q1": "partition-rank-leak",
        "Q2": "skip",
        "Q3": "partition-rank-leak",
        "Q4": "resume-rng-divergence",
        "Q5": "non-determinism",
    }
    assert verdict.exit_code == 1
    came = [{"rank": 0, "step": 3, "worker": 1}, {"rank": 1, "step": 5, "worker": 1}]
    assert answers["Q1"].examples == [{"sample": leaked, "came": came}]
    assert answers["Q3"].examples == answers["Q1"].examples
    assert answers["Q3"].detail.startswith("PARTIAL OVERLAP: 1 of 71 samples")


def test_ranks_that_all_get_everything_are_a_broadcast(tmp_path):
    made = validation(resumed=())
    for run in (made.run("baseline"), made.run("baseline", 1)):
        for mine, other in zip(run.rows[1], run.rows[0], strict=True):
            mine["cut_ids"] = other["cut_ids"]
    _, answers = judged(made, tmp_path)
    assert tags(answers) == {
        "Q1": "partition-rank-leak",
        "Q2": "skip",
        "Q3": "partition-rank-leak",
    }
    assert answers["Q3"].detail.startswith("FULL BROADCAST")
    assert answers["Q3"].more == {"sum_of_ranks": 72, "union": 36}


def test_a_sample_from_two_workers_of_a_rank_is_a_leak(tmp_path):
    made = validation()
    rows = made.run("baseline").rows[1]
    rows[4]["cut_ids"][2] = rows[1]["cut_ids"][0]
    _, answers = judged(made, tmp_path)
    assert answers["Q1"].tag == "partition-worker-leak"
    assert [place["worker"] for place in answers["Q1"].examples[0]["came"]] == [1, 0]
    assert answers["Q3"].status == "PASS"


def test_a_sample_twice_from_one_worker_is_found_in_one_batch_and_in_two(tmp_path):
    made = validation()
    rows = made.run("baseline").rows[1]
    rows[5]["cut_ids"][2] = rows[1]["cut_ids"][0]
    rows[2]["cut_ids"][2] = rows[2]["cut_ids"][0]
    _, answers = judged(made, tmp_path)
    assert answers["Q1"].tag == "duplicate-within-worker"
    assert answers["Q1"].detail.startswith("2 samples came more than once: 2 several times")
    assert answers["Q3"].status == "PASS"


def test_the_worst_of_several_leaks_is_the_tag_and_all_are_counted(tmp_path):
    made = validation()
    first, second = made.run("baseline").rows
    first[0]["cut_ids"][0] = first[0]["cut_ids"][1]
    first[2]["cut_ids"][0] = first[3]["cut_ids"][1]
    second[0]["cut_ids"][0] = first[5]["cut_ids"][1]
    _, answers = judged(made, tmp_path)
    assert answers["Q1"].tag == "partition-rank-leak"
    numbers = answers["Q1"].to_json()
    assert [numbers[tag] for tag in ("partition-worker-leak", "duplicate-within-worker")] == [1, 1]


def test_the_next_pass_of_an_endless_blend_is_no_repetition(tmp_path):
    made = validation(finite=False)
    again = made.run("baseline").rows[0][0]["cut_ids"]
    for run in (made.run("baseline"), made.run("baseline", 1)):
        run.rows[1][1]["cut_ids"] = [name.replace("leaf:0", "leaf:1") for name in again]
    _, answers = judged(made, tmp_path)
    assert statuses(answers)["Q1"] == "PASS"


def test_what_a_pass_repeats_to_fill_its_last_step_is_no_repetition(tmp_path):
    made = validation()
    for run in made.runs[:3]:
        run.rows[1][-1].update(cut_ids=[], repeated=3)
    lost = [f"leaf:0:5:3:{n}" for n in range(3)]
    truth = made.run("groundtruth").rows[0]
    for row in truth:
        row["cut_ids"] = [name for name in row["cut_ids"] if name not in lost]
    _, answers = judged(made, tmp_path)
    assert set(statuses(answers).values()) == {"PASS"}


@pytest.mark.parametrize(("lost", "tag"), [("baseline", "skip"), ("groundtruth", "id-collision")])
def test_samples_that_are_missing_or_too_many_are_named(tmp_path, lost, tag):
    made = validation(resumed=(), twins=0)
    row = made.run(lost).rows[0][2]
    gone = row["cut_ids"].pop()
    row["batch_size"] -= 1
    _, answers = judged(made, tmp_path)
    assert tags(answers) == {"Q2": tag}
    assert answers["Q2"].examples == [gone]


def test_a_baseline_that_stops_before_the_end_of_its_pass_is_not_held_against_the_truth(tmp_path):
    made = validation(resumed=(), twins=0)
    baseline = made.run("baseline")
    baseline.rows = [rows[:8] for rows in baseline.rows]
    baseline.tell(batches=8, steps=8, is_exhausted=False, checkpoint_at=None)
    _, answers = judged(made, tmp_path)
    assert answers["Q2"].status == "SKIP"
    assert "stopped after 8 batches of each rank" in answers["Q2"].detail
    baseline.rows[0][1]["cut_ids"][0] = "from nowhere"
    _, answers = judged(made, tmp_path)
    assert tags(answers) == {"Q2": "id-collision"}


def test_samples_that_the_plan_leaves_out_are_not_missed_and_one_more_is(tmp_path):
    made = validation(resumed=(), twins=0)
    baseline = made.run("baseline")
    baseline.tell(dropped={"drop_last": 3, "max_duration": 5})
    baseline.rows[1][-1].update(cut_ids=[], batch_size=0)
    _, answers = judged(made, tmp_path)
    assert answers["Q2"].status == "PASS"
    assert "drop_last leaves out 3" in answers["Q2"].detail
    baseline.rows[1][-2].update(cut_ids=[], batch_size=0)
    _, answers = judged(made, tmp_path)
    assert tags(answers) == {"Q2": "skip"}


def test_samples_that_cannot_be_read_count_as_having_come_and_are_told_of(tmp_path):
    made = validation(full=True)
    for run in made.runs[:3]:
        row = run.rows[1][-1]
        row.update(left_out=[row["cut_ids"].pop()], batch_size=2)
    verdict, answers = judged(made, tmp_path)
    assert statuses(answers) == {
        "Q1": "PASS",
        "Q2": "WARN",
        "Q3": "PASS",
        "Q4": "PASS",
        "Q5": "PASS",
    }
    assert "1 of them cannot be read" in answers["Q2"].detail
    assert verdict.exit_code == 0


@pytest.mark.parametrize("ranks", [2, 4, 1])
def test_another_order_after_resuming_is_a_divergence_on_any_ranks(tmp_path, ranks):
    made = validation(resumed=((ranks, 1),))
    made.run("resumed").rows[-1][1]["cut_ids"].reverse()
    _, answers = judged(made, tmp_path)
    assert tags(answers) == {"Q4": "resume-rng-divergence"}
    example = answers["Q4"].examples[0]
    assert example["same_samples_in_another_order"]
    assert example["found"] == {"run": "resumed/run0", "rank": ranks - 1, "step": 1}
    assert example["only_expected"] == []
    assert f"the first is step 1 of rank {ranks - 1}" in answers["Q4"].detail


@pytest.mark.parametrize("ranks", [2, 4, 1])
def test_batches_that_change_places_after_resuming_are_a_divergence(tmp_path, ranks):
    made = validation(resumed=((ranks, 1),))
    first, second = made.run("resumed").rows[0][:2]
    first["cut_ids"], second["cut_ids"] = second["cut_ids"], first["cut_ids"]
    _, answers = judged(made, tmp_path)
    assert tags(answers) == {"Q4": "resume-rng-divergence"}
    assert answers["Q4"].detail.startswith("resumed/run0")
    assert "2 batches of 16" in answers["Q4"].detail


@pytest.mark.parametrize("phase", ["baseline", "resumed"])
@pytest.mark.parametrize("changed", [{"slot": 3}, {"of_step": 9}])
def test_a_batch_that_comes_out_of_its_turn_is_a_divergence_in_any_run(tmp_path, phase, changed):
    made = validation()
    made.run(phase).rows[1][4] |= changed
    _, answers = judged(made, tmp_path)
    assert tags(answers) == {"Q4": "resume-rng-divergence"}
    assert answers["Q4"].examples == [{"run": f"{phase}/run0", "rank": 1, "step": 4}]
    told = f"{phase}/run0: 1 of {24 if phase == 'baseline' else 16} batches came out of their turn"
    assert answers["Q4"].detail.startswith(f"{told}; the first is step 4 of rank 1")


def test_batches_out_of_turn_need_no_resumed_run_to_be_found(tmp_path):
    made = validation().without("resumed")
    made.run("baseline").rows[0][0]["slot"] = 1
    _, answers = judged(made, tmp_path)
    assert tags(answers) == {"Q4": "resume-rng-divergence"}


def test_a_run_resumed_from_another_step_is_a_divergence(tmp_path):
    made = validation(resumed=((2, 1),))
    late = validation(after=3, resumed=((2, 1),)).run("resumed")
    for rows, others in zip(made.run("resumed").rows, late.rows, strict=True):
        for row, other in zip(rows, others, strict=False):
            row["cut_ids"] = other["cut_ids"]
    _, answers = judged(made, tmp_path)
    assert tags(answers) == {"Q4": "resume-rng-divergence"}


def test_a_run_that_says_that_it_began_later_misses_the_steps_before(tmp_path):
    made = validation().without("resumed")
    made.runs.append(validation(after=3).run("resumed"))
    _, answers = judged(made, tmp_path)
    assert tags(answers) == {"Q4": "resume-length-mismatch"}
    assert "4 batches never came" in answers["Q4"].detail


@pytest.mark.parametrize("ranks", [2, 4, 1])
def test_other_tensors_of_the_same_samples_are_found_where_they_are_compared(tmp_path, ranks):
    made = validation(resumed=((ranks, 1),), full=True)
    made.run("resumed").rows[0][2]["digest"] = "another"
    _, answers = judged(made, tmp_path)
    assert tags(answers) == {"Q4": "resume-content-divergence"}
    made = validation(full=True)
    made.run("baseline", 1).rows[0][2]["digest"] = "another"
    _, answers = judged(made, tmp_path)
    assert tags(answers) == {"Q5": "non-determinism"}
    assert "other tensors" in answers["Q5"].detail


@pytest.mark.parametrize(("ranks", "batches"), [(2, 7), (4, 3), (1, 13), (2, 1)])
def test_a_resumed_run_that_is_too_short_is_told_how_long_it_should_be(tmp_path, ranks, batches):
    made = validation(resumed=((ranks, 1),))
    run = made.run("resumed")
    run.rows = [rows[:batches] for rows in run.rows]
    run.tell(batches=batches, is_exhausted=False)
    _, answers = judged(made, tmp_path)
    assert tags(answers) == {"Q4": "resume-length-mismatch"}
    assert f"{16 - ranks * batches} batch" in answers["Q4"].detail
    assert f"each rank is to be given {16 // ranks}" in answers["Q4"].detail


@pytest.mark.parametrize("ranks", [2, 4, 1])
def test_a_resumed_run_that_goes_on_beyond_the_end_is_found(tmp_path, ranks):
    made = validation(resumed=()).without("groundtruth")
    made.runs.append(validation(steps=7, resumed=((ranks, 1),)).run("resumed"))
    _, answers = judged(made, tmp_path)
    assert tags(answers) == {"Q4": "resume-length-mismatch"}
    assert "4 batches are beyond the end of the baseline" in answers["Q4"].detail


@pytest.mark.parametrize(("kept", "passes"), [(4, True), (3, True), (2, False)])
def test_runs_on_other_ranks_need_not_end_inside_the_same_step(tmp_path, kept, passes):
    # The baseline ends one batch of each of its two ranks before the end of its last step.
    made = validation(resumed=((4, 1),), twins=0).without("groundtruth")
    baseline, resumed = made.runs
    baseline.rows = [rows[:-1] for rows in baseline.rows]
    baseline.tell(batches=11, steps=11, is_exhausted=False)
    resumed.rows = [rows[:kept] for rows in resumed.rows]
    resumed.tell(batches=kept, steps=kept, is_exhausted=False)
    _, answers = judged(made, tmp_path)
    assert tags(answers) == ({} if passes else {"Q4": "resume-length-mismatch"})


def with_other_steps(*, finite=True):
    """A validation whose resumed run deals out what is left in steps of another size."""
    made = validation(resumed=(), finite=finite)
    run = validation(slots=8, steps=4, resumed=((8, 1),), finite=finite).run("resumed")
    rows = [row for rows in made.run("baseline").rows for row in rows if row["of_step"] >= 2]
    names = [name for row in rows for name in row["cut_ids"]]
    random.Random(3).shuffle(names)
    for row in (row for rows in run.rows for row in rows):
        row["cut_ids"] = [names.pop() for _ in row["cut_ids"]]
    made.runs.append(run)
    return made, run


def test_steps_of_another_size_have_to_hold_what_is_left_once_in_any_order(tmp_path):
    made, run = with_other_steps()
    _, answers = judged(made, tmp_path)
    assert statuses(answers)["Q4"] == "PASS"
    assert "the order differs" in answers["Q4"].detail
    run.rows[0][0]["cut_ids"][0] = made.run("baseline").rows[0][0]["cut_ids"][0]
    _, answers = judged(made, tmp_path)
    assert tags(answers) == {"Q4": "resume-rng-divergence"}
    assert answers["Q4"].examples == ["leaf:0:0:0:0"]


def test_steps_of_another_size_that_lack_a_sample_or_have_a_strange_one_are_found(tmp_path):
    made, run = with_other_steps()
    row = run.rows[2][1]
    gone = row["cut_ids"].pop()
    row["batch_size"] -= 1
    _, answers = judged(made, tmp_path)
    assert tags(answers) == {"Q4": "resume-length-mismatch"}
    assert answers["Q4"].examples == [gone]
    row["cut_ids"].append("from nowhere")
    row["batch_size"] += 1
    _, answers = judged(made, tmp_path)
    assert tags(answers) == {"Q4": "resume-rng-divergence"}
    assert answers["Q4"].examples == ["from nowhere"]


def test_of_steps_of_another_size_drop_last_may_leave_out_others(tmp_path):
    made, run = with_other_steps()
    row = run.rows[7][1]
    row.update(cut_ids=["left out before"], batch_size=1)
    run.tell(dropped={"drop_last": 3})
    _, answers = judged(made, tmp_path)
    assert tags(answers) == {"Q4": "resume-rng-divergence"}
    for baseline in (made.run("baseline"), made.run("baseline", 1)):
        baseline.tell(dropped={"drop_last": 1})
    _, answers = judged(made.without("groundtruth"), tmp_path)
    assert statuses(answers)["Q4"] == "PASS"
    row.update(cut_ids=[], batch_size=0)
    run.tell(dropped={"drop_last": 2})
    _, answers = judged(made.without("groundtruth"), tmp_path)
    assert tags(answers) == {"Q4": "resume-length-mismatch"}


def test_steps_of_another_size_in_endless_data_are_judged_as_far_as_they_can_be(tmp_path):
    made, run = with_other_steps(finite=False)
    verdict, answers = judged(made, tmp_path)
    assert statuses(answers)["Q4"] == "WARN"
    assert verdict.exit_code == 0
    run.rows[0][0]["cut_ids"][0] = run.rows[1][1]["cut_ids"][2]
    _, answers = judged(made, tmp_path)
    assert tags(answers) == {"Q4": "resume-rng-divergence"}


def test_of_several_resumed_runs_the_worst_is_the_answer(tmp_path):
    made = validation(resumed=((2, 1), (4, 0), (1, 2)))
    made.run("resumed", 1).rows[3][0]["cut_ids"].reverse()
    _, answers = judged(made, tmp_path)
    assert tags(answers) == {"Q4": "resume-rng-divergence"}
    assert answers["Q4"].detail.startswith("resumed/run1 (4 ranks after 2, 0 workers each)")
    assert "holds other samples than the baseline, or another order; the first is" in (
        answers["Q4"].detail
    )
    told = {name: run["status"] for name, run in answers["Q4"].more["runs"].items()}
    assert told == {"resumed/run0": "PASS", "resumed/run1": "FAIL", "resumed/run2": "PASS"}


def test_the_same_run_twice_has_to_be_the_same_run(tmp_path):
    made = validation(twins=2)
    made.run("baseline", 2).rows[1][4]["cut_ids"].reverse()
    _, answers = judged(made, tmp_path)
    assert tags(answers) == {"Q5": "non-determinism"}
    assert answers["Q5"].examples[0]["found"] == {"run": "baseline/run2", "rank": 1, "step": 4}
    assert answers["Q5"].detail.endswith(
        "1 batch with other samples or in another order; the first is step 4 of rank 1"
    )


def test_a_second_run_that_ends_earlier_is_another_run(tmp_path):
    made = validation()
    twin = made.run("baseline", 1)
    twin.rows = [rows[:10] for rows in twin.rows]
    twin.tell(batches=10)
    _, answers = judged(made, tmp_path)
    assert tags(answers) == {"Q5": "non-determinism"}
    assert "4 batches only one of them has" in answers["Q5"].detail


def test_what_nobody_ran_is_skipped_and_said(tmp_path):
    made = validation(resumed=(), twins=0).without("groundtruth")
    verdict, answers = judged(made, tmp_path)
    assert statuses(answers) == {
        "Q1": "PASS",
        "Q2": "SKIP",
        "Q3": "PASS",
        "Q4": "SKIP",
        "Q5": "SKIP",
    }
    assert verdict.exit_code == 0
    assert "run the phase groundtruth" in answers["Q2"].detail
    assert "run the phase resumed" in answers["Q4"].detail
    _, answers = judged(validation(), tmp_path, checkpoint_at=-1)
    assert answers["Q4"].status == "SKIP"


def test_a_verdict_on_nothing_is_no_success():
    nothing = Answer(question="Q1", status="SKIP", detail="nothing there")
    failed = Answer(question="Q2", status="FAIL", tag="skip", detail="all are missing")
    assert Verdict(answers=(nothing,), throughput={}).exit_code == 2
    assert Verdict(answers=(nothing, failed), throughput={}).exit_code == 1


def test_logs_of_nemo_are_judged_by_rank_and_step(tmp_path):
    verdict = consolidate(as_nemo_writes(validation(), tmp_path), checkpoint_at=3)
    assert [answer.status for answer in verdict.answers] == ["PASS"] * 5
    made = validation()
    made.run("resumed").rows[1][0]["cut_ids"].reverse()
    assert set(made.run("resumed").rows[1][0]) > set(NEMO_KEYS)
    verdict = consolidate(as_nemo_writes(made, tmp_path), checkpoint_at=3)
    assert [answer.tag for answer in verdict.answers] == [None] * 3 + [
        "resume-rng-divergence",
        None,
    ]
    # Where nobody says it, NeMo's own default stands: the state after the first batch.
    verdict = consolidate(as_nemo_writes(validation(), tmp_path))
    assert verdict.answers[3].tag == "resume-rng-divergence"


def test_the_report_is_written_and_said(tmp_path):
    made = validation()
    made.waits = [
        {"p50_ms": 1.0, "p95_ms": 9.0, "mean_ms": 2.0, "t_first_batch_ms": 50.0, "num_workers": 2},
        {"p50_ms": 3.0, "p95_ms": 8.0, "mean_ms": 4.0, "t_first_batch_ms": 70.0, "num_workers": 2},
    ]
    made.run("resumed").rows[0][0]["cut_ids"].reverse()
    verdict, answers = judged(made, tmp_path)
    written = json.loads((tmp_path / REPORT_NAME).read_text())
    assert list(written["questions"]) == ["Q1", "Q2", "Q3", "Q4", "Q5"]
    assert written["questions"]["Q4"]["status"] == "FAIL"
    assert written["questions"]["Q4"]["examples"] == list(answers["Q4"].examples)
    assert written["throughput"] == {
        "available": True,
        "num_workers": 2,
        "num_ranks": 2,
        "p50_ms_median": 2.0,
        "p95_ms_max": 9.0,
        "batches_per_s_per_rank": 250.0,
        "t_first_batch_ms_max": 70.0,
        "t_gpu_min_for_overlap_ms": 4.0,
    }
    first, *lines, last = verdict.lines
    assert first == "=== validation report (5 questions) ==="
    assert [line.split(":")[0] for line in lines] == [
        "  PASS  Q1",
        "  PASS  Q2",
        "  PASS  Q3",
        "  FAIL  Q4 [resume-rng-divergence]",
        "  PASS  Q5",
    ]
    assert last.startswith("throughput: p50 2.0 ms, p95 9.0 ms, => 250.0 batches/s/rank")


SHAPES = st.tuples(
    st.sampled_from([(1, 1), (2, 1), (2, 2), (4, 2), (6, 3), (6, 2), (8, 8)]),  # slots and ranks
    st.integers(2, 5),
    st.data(),
)


@given(SHAPES)
def test_any_clean_validation_passes_and_no_single_change_does(tmp_path_factory, shape):
    (slots, ranks), steps, data = shape
    divisors = [number for number in range(1, slots + 1) if slots % number == 0]
    full = data.draw(st.booleans())
    made = validation(
        slots=slots,
        ranks=ranks,
        steps=steps,
        after=data.draw(st.integers(1, steps - 1)),
        size=data.draw(st.integers(1, 3)),
        resumed=tuple(
            data.draw(
                st.lists(
                    st.tuples(st.sampled_from(divisors), st.integers(0, 3)), min_size=1, max_size=3
                )
            )
        ),
        workers=data.draw(st.integers(0, 3)),
        full=full,
    )
    folder = tmp_path_factory.mktemp("logs")
    with pytest.MonkeyPatch.context() as patch:
        # Waiting for the disk is most of the time of the many examples.
        patch.setattr("os.fsync", lambda _: None)
        verdict, _ = judged(made, folder)
        assert verdict.exit_code == 0
        run = data.draw(st.sampled_from(made.runs))
        change(run, data.draw, full=full and run.meta.phase != "groundtruth")
        run.write(folder)
        # A change that no run without a fault could have written is none that is judged.
        assert exit_code(folder) in {1, 2}


def change(run, draw, *, full):
    """Change one thing in a run: what is in its batches, or which batches there are."""
    rows = draw(st.sampled_from(run.rows))
    row = draw(st.sampled_from(rows))
    truth = run.meta.phase == "groundtruth"
    kinds = ["drop", "other", "row"]
    if not truth:
        # The order of samples and their number say nothing in the ground truth.
        kinds += ["twice", "reverse"] if len(row["cut_ids"]) > 1 else ["twice"]
        kinds += ["digest"] if full else []
        kinds += ["move"] if len(run.rows) > 1 else []
    kind = draw(st.sampled_from(kinds))
    names = row["cut_ids"]
    if kind == "drop":
        names.pop()
    elif kind == "other":
        names[-1] = "from nowhere"
    elif kind == "twice":
        names.append(names[0])
    elif kind == "reverse":
        names.reverse()
    elif kind == "digest":
        row["digest"] = "another"
    elif kind == "row":
        rows.remove(row)
    else:
        other = next(others for others in run.rows if others is not rows)[0]
        other["cut_ids"].append(names.pop())
        other["batch_size"] += 1
    row["batch_size"] = len(names)
