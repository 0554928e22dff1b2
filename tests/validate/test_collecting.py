"""Logs that cannot be judged are refused: what is wrong, where, and what to do."""

from __future__ import annotations

import json
import re

import pytest

from playhead.errors import ConfigError, PlayheadError, SourceNotFoundError
from playhead.validate.consolidating import REPORT_NAME, consolidate
from support.validation_logs import as_nemo_writes, validation

LOG = "baseline/run0/rank_001.jsonl"


def refusal(folder, **options):
    with pytest.raises(PlayheadError) as error:
        consolidate(folder, **options)
    assert error.value.exit_code == 2
    assert error.value.where
    assert error.value.advice
    assert not (folder / REPORT_NAME).exists()
    return str(error.value)


@pytest.fixture
def folder(tmp_path):
    return validation().write(tmp_path / "logs")


def rewritten(path, change):
    lines = path.read_bytes().splitlines(keepends=True)
    change(lines)
    path.write_bytes(b"".join(lines))


def with_row(lines, number, **changed):
    lines[number] = json.dumps({**json.loads(lines[number]), **changed}).encode() + b"\n"


def test_a_folder_that_is_not_there_or_empty_is_no_success(tmp_path):
    with pytest.raises(SourceNotFoundError, match="no such folder"):
        consolidate(tmp_path / "nowhere")
    assert "There is no baseline" in refusal(tmp_path)
    (tmp_path / "baseline").mkdir()
    assert "There is no baseline" in refusal(tmp_path)
    (tmp_path / "baseline" / "run0").mkdir()
    assert "run has no logs" in refusal(tmp_path)


def test_a_file_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "logs").write_text("")
    with pytest.raises(SourceNotFoundError, match="no such folder"):
        consolidate(tmp_path / "logs")


def test_a_verdict_of_earlier_logs_does_not_outlive_them(folder):
    consolidate(folder)
    assert (folder / REPORT_NAME).exists()
    (folder / LOG).write_bytes(b"")
    refusal(folder)


DAMAGE = {
    "torn": (lambda lines: lines.append(lines.pop()[:-20]), 12, "last line of the log is cut off"),
    "damaged": (lambda lines: lines.__setitem__(4, b"{]\n"), 5, "line is damaged"),
    "blank": (lambda lines: lines.insert(4, b"\n"), 5, "line is damaged"),
    "not text": (lambda lines: lines.__setitem__(4, b'{"step": "\xff"}\n'), 5, "damaged"),
    "nested": (lambda lines: lines.__setitem__(4, b'{"x": ' + b"[" * 99999 + b"\n"), 5, "damaged"),
    "not a row": (lambda lines: lines.__setitem__(4, b"[1, 2]\n"), 5, "damaged"),
    "huge number": (lambda lines: with_row(lines, 4, step=1 << 70), 5, "damaged"),
    "other type": (lambda lines: with_row(lines, 4, cut_ids=["a", 7]), 5, "damaged"),
    "one text": (lambda lines: with_row(lines, 4, cut_ids="abc"), 5, "damaged"),
    "empty": (lambda lines: lines.clear(), 1, "log is empty"),
    "gap": (lambda lines: lines.pop(4), 5, "step 4 should come here, and step 5 does"),
    "twice": (lambda lines: lines.insert(4, lines[3]), 5, "step 4 should come here, and step 3"),
    "order": (lambda lines: lines.append(lines.pop(0)), 1, "step 0 should come here, and step 1"),
    "rank": (lambda lines: with_row(lines, 4, rank=0), 5, "batch of rank 0 in the log of rank 1"),
    "no ranks": (lambda lines: with_row(lines, 4, world_size=0), 5, "damaged"),
    "ranks": (lambda lines: with_row(lines, 4, world_size=3), 5, "ranks do not agree"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_log_is_named_with_its_line(folder, kind):
    change, line, words = DAMAGE[kind]
    rewritten(folder / LOG, change)
    message = refusal(folder)
    assert re.search(words, message, re.IGNORECASE)
    assert f"{folder / LOG}:{line})" in message


def test_a_last_line_without_its_end_is_whole_if_it_says_all(folder):
    rewritten(folder / LOG, lambda lines: lines.append(lines.pop().rstrip()))
    assert consolidate(folder).exit_code == 0


ODD = {
    "short": (lambda lines: lines.pop(), "every rank had 12 batches .* the log of rank 1 has 11"),
    "sizes": (lambda lines: with_row(lines, 4, batch_size=9), "batch 4 of rank 1 does not hold"),
    "placeless": (lambda lines: with_row(lines, 4, slot=None), "of two kinds"),
    "digest": (lambda lines: with_row(lines, 4, digest="x"), "of two kinds"),
}


@pytest.mark.parametrize("kind", ODD)
def test_batches_that_such_a_run_does_not_write_are_refused(folder, kind):
    change, words = ODD[kind]
    rewritten(folder / LOG, change)
    message = refusal(folder)
    assert re.search(words, message, re.IGNORECASE)
    assert (f"{folder / LOG}:5)" in message) is (words[:7] == "batch 4")


@pytest.mark.parametrize("phase", ["baseline", "resumed"])
def test_logs_of_ranks_that_are_missing_or_too_many_are_named(tmp_path, phase):
    made = validation(ranks=4, resumed=((4, 1),))
    folder = made.write(tmp_path / "logs")
    gone = folder / phase / "run0" / "rank_002.jsonl"
    gone.rename(gone.with_name("rank_004.jsonl"))
    message = refusal(folder)
    assert "there were 4 ranks, and the logs of these are missing: 2 (" in message.lower()
    assert str(gone.parent) in message
    made.write(folder)
    gone.with_name("rank_004.jsonl").write_bytes(gone.read_bytes())
    assert "here is a log of rank 4" in refusal(folder)


def test_a_baseline_without_a_sample_proves_nothing(tmp_path):
    folder = as_nemo_writes(validation(size=0), tmp_path / "logs")
    assert "No sample came" in refusal(folder)


def test_a_log_that_is_a_folder_is_refused(folder):
    (folder / LOG).unlink()
    (folder / LOG).mkdir()
    assert "cannot be read" in refusal(folder)


def test_a_run_that_was_killed_or_does_not_say_what_it_was_is_refused(tmp_path):
    made = validation()
    made.run("resumed").tell(is_over=False)
    folder = made.write(tmp_path / "logs")
    assert "did not come to its end" in refusal(folder)
    meta = folder / "resumed" / "run0" / "meta.json"
    meta.write_text('{"phase": "resu')
    assert str(meta) in refusal(folder)
    meta.unlink()
    assert "does not say what it was" in refusal(folder)


@pytest.mark.parametrize(
    ("phase", "changed", "words"),
    [
        ("resumed", {"config_digest": "decaf"}, r"differ in their config \(c0ffee and decaf\)"),
        ("resumed", {"seed": 8}, r"differ in their seed \(7 and 8\)"),
        ("groundtruth", {"seed": 8}, r"baseline/run0 and groundtruth differ in their seed"),
        ("resumed", {"mode": "full"}, "the mode of the run was full"),
        ("resumed", {"world_size": 4}, "had 4 ranks, and its logs are of 2"),
        ("resumed", {"micro_batches_per_step": 3}, "had 2 ranks"),
    ],
)
def test_runs_of_different_configs_are_not_compared(tmp_path, phase, changed, words):
    made = validation()
    made.run(phase).tell(**changed)
    assert re.search(words, refusal(made.write(tmp_path / "logs")), re.IGNORECASE)


def test_a_run_with_digests_is_not_compared_with_one_without(tmp_path):
    made = validation().without("resumed")
    made.runs.append(validation(full=True).run("resumed"))
    message = refusal(made.write(tmp_path / "logs"))
    assert "differ in their mode (fast and full)" in message


def test_a_second_baseline_has_to_be_there_and_of_the_same_size(tmp_path):
    folder = validation().write(tmp_path / "logs")
    assert consolidate(folder, determinism_runs=2).exit_code == 0
    assert "Of 3 runs of the baseline there are 2" in refusal(folder, determinism_runs=3)
    made = validation().without("baseline", 1)
    made.runs.append(validation(ranks=4).run("baseline", 1))
    assert "world size of baseline/run0 is 2, and that of baseline/run1 4" in refusal(
        made.write(folder)
    )
    made = validation()
    made.run("baseline", 1).tell(steps=99)
    assert "length in batches of baseline/run0 is 12, and that of baseline/run1 99" in refusal(
        made.write(folder)
    )


def test_the_checkpoint_has_to_be_that_of_the_baseline(tmp_path):
    folder = validation().write(tmp_path / "logs")
    assert consolidate(folder, checkpoint_at=3).exit_code == 0
    # A state is a whole number of steps: batches 2 and 3 are of the same.
    assert consolidate(folder, checkpoint_at=2).exit_code == 0
    assert "saved its state after batch 3" in refusal(folder, checkpoint_at=4)
    made = validation()
    made.run("baseline").tell(checkpoint_at=None)
    assert "the baseline saved no state" in refusal(made.write(folder), checkpoint_at=3)
    assert consolidate(folder).answers[3].status == "SKIP"


def test_a_checkpoint_beyond_the_run_is_refused(tmp_path):
    folder = as_nemo_writes(validation(), tmp_path / "logs")
    for beyond in (11, 12, 99):
        message = refusal(folder, checkpoint_at=beyond)
        assert f"--checkpoint-at is {beyond}, and the last batch of the baseline is 11" in message


def test_a_state_that_is_missing_or_empty_is_named(folder):
    state = folder / "baseline" / "run0" / "state_rank_001.pt"
    state.write_bytes(b"")
    assert str(state) in refusal(folder)
    state.unlink()
    assert "Of 2 states of the baseline 1 is missing" in refusal(folder)


def test_logs_of_nemo_need_no_state_as_long_as_nothing_was_resumed(tmp_path):
    made = validation().without("resumed")
    made.saved_by = 0
    folder = as_nemo_writes(made, tmp_path / "logs")
    assert consolidate(folder).exit_code == 0
    assert "2 states of the baseline 2 are missing" in refusal(folder, checkpoint_at=3)


def test_logs_of_nemo_on_other_ranks_cannot_be_compared(tmp_path):
    folder = as_nemo_writes(validation(resumed=((4, 1),)), tmp_path / "logs")
    assert "do not say to which optimizer steps" in refusal(folder, checkpoint_at=3)


def test_logs_of_two_tools_are_not_compared(tmp_path):
    made = validation()
    folder = as_nemo_writes(made, tmp_path / "logs")
    made.run("resumed").write(folder)
    assert "wrote only one of baseline/run0 and resumed/run0" in refusal(folder)


def test_waits_that_are_damaged_are_named(folder):
    waits = folder / "baseline" / "run0" / "throughput_rank_000.json"
    waits.write_text('{"p50_ms": 3')
    assert str(waits) in refusal(folder)


def test_what_was_read_is_told(folder):
    told = []
    consolidate(folder, say=told.append)
    assert told[0] == "baseline/run0: 2 ranks, 24 batches, 72 samples"
    assert len(told) == 4


def test_what_else_lies_in_the_folder_does_not_matter(folder):
    for name in ("full_summary_rank_000.json", "rank_000.jsonl.bak", "notes.txt"):
        (folder / "baseline" / "run0" / name).write_text("…")
    (folder / "baseline" / "run_old").mkdir()
    (folder / "elsewhere").mkdir()
    assert consolidate(folder).exit_code == 0


def test_errors_of_logs_are_of_bad_input(folder):
    (folder / LOG).unlink()
    with pytest.raises(ConfigError):
        consolidate(folder)
