"""What `--step` says of a step is what a loader hands out there."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from playhead.errors import ConfigError, PlanError, PositionError, TopologyError
from playhead.report import explain_step
from support.small_blends import G, Letters, configs, loader_of, quiet, several


def handed_out(config, step, rank, world_size, **options):
    """The micro-batches of a step that a real loader hands out to a rank, pass after pass."""
    loader = loader_of(config, rank=rank, world_size=world_size, **options)
    try:
        found, passes = [], 0
        while len(found) < G // world_size:
            batches = list(
                islice(iter(loader), (step + 1) * G // world_size - len(found))
                if not loader.finite
                else iter(loader)
            )
            found += [batch for batch in batches if batch["playhead"].step == step]
            passes += 1
            assert passes < 40
        return found
    finally:
        loader.close()


def check(config, step, **options):
    whole = quiet(lambda: explain_step(config, step, world_size=2, read_ids=True, **options))
    json.dumps(whole.to_json(), allow_nan=False)
    assert f"step {step:,}" in str(whole)
    for world_size in (1, 2, 4):
        for rank in range(world_size):
            own = quiet(
                lambda rank=rank, world_size=world_size: explain_step(
                    config, step, world_size=world_size, rank=rank, **options
                )
            )
            slots = sorted({batch.slot for batch in own.batches})
            assert slots == list(range(rank, G, world_size))
            mine = [batch for batch in whole.batches if batch.slot in slots]
            assert [one.key for one in own.batches] == [one.key for one in mine]
            assert {one.rank for one in own.batches} == {rank}
    for rank in range(2):
        batches = handed_out(config, step, rank, 2, **options)
        for batch, slot in zip(batches, range(rank, G, 2), strict=True):
            samples = [
                sample for one in whole.batches if one.slot == slot for sample in one.samples
            ]
            assert batch["playhead"].slot == slot
            assert batch["ids"] == [sample.id for sample in samples]
            assert batch["playhead"].repeated == [sample.repeated for sample in samples]
    return whole


@settings(max_examples=15)
@given(st.data(), st.integers(0, 45))
def test_a_step_of_any_blend_is_what_a_loader_hands_out(corpus, data, step):
    config = data.draw(configs(corpus))
    try:
        check(config, step)
    except PlanError:
        # Nothing is accepted, or drop_last leaves no step: no loader can be made either.
        reject()


@settings(max_examples=12)
@given(st.data(), st.integers(0, 45))
def test_a_step_of_several_blends_is_what_a_loader_hands_out(corpus, data, step):
    config = data.draw(several(corpus))
    try:
        check(config, step)
    except PlanError:
        reject()


def step_of(config, step, **options):
    return quiet(lambda: explain_step(config, step, **options))


@pytest.mark.parametrize("packed", [False, True])
def test_a_step_of_tokens_says_what_each_sample_counts(corpus, packed):
    options = {
        "use_multimodal_sampling": True, "batch_tokens": 300, "shuffle": True,
        "use_packed_sequence_sampling": packed, "token_equivalent_duration": 0.5,
        "quadratic_factor": 200,
    }  # fmt: skip
    config = corpus.blend(["plain", "lines"], [1.0, 1.0], options)
    found = check(config, 7, tokenizer=Letters())
    for batch in found.batches:
        assert batch.unit == "tokens"
        counts = [sample.tokens for sample in batch.samples]
        costs = [one + one * one / 200 for one in counts]
        if packed:
            whole = [-(-one * one // 200) + one for one in counts]
            assert [sample.cost for sample in batch.samples] == whole
            assert batch.cost == pytest.approx(sum(whole) / 300)
        else:
            assert [sample.cost for sample in batch.samples] == pytest.approx(costs)
            assert batch.cost == pytest.approx(len(costs) * max(costs) / 300)
        assert {sample.seconds is None for sample in batch.samples if sample.leaf == "lines"} <= {
            True
        }


def test_the_place_of_a_draw_counts_through_its_pass(corpus):
    """Places of all draws of a pass are each number once, whatever window they come in."""
    options = {"batch_size": 1, "shuffle": True, "window_draws": 30}
    config = corpus.blend(["plain"], [1.0], options)
    seen = {}
    for step in range(40):
        for batch in step_of(config, step).batches:
            (sample,) = batch.samples
            seen.setdefault(sample.pass_number, {})[sample.place] = sample.row
            assert sample.rows_of_pass == 37
    for pass_number in (0, 1, 2):
        assert sorted(seen[pass_number]) == list(range(37))
        assert sorted(seen[pass_number].values()) == list(range(37))
    assert seen[0] != seen[1]


def test_rows_are_said_by_file_and_byte(corpus):
    config = corpus.blend(["tarred", "plain"], [1.0, 1.0], {"batch_size": 5, "shuffle": True})
    found = step_of(config, 2, read_ids=True)
    for batch in found.batches:
        for sample in batch.samples:
            with Path(sample.manifest).open("rb") as manifest:
                manifest.seek(sample.manifest_byte)
                row = json.loads(manifest.readline())
            assert row["audio_filepath"] == sample.id
            assert (sample.archive is None) == (sample.leaf == "plain")
            if sample.archive is not None:
                with Path(sample.archive).open("rb") as archive:
                    archive.seek(sample.archive_byte - 512)
                    assert archive.read(512).startswith(sample.id.encode())


def test_what_a_step_is_made_of_is_said_for_people(corpus):
    options = {
        "bucket_duration_bins": [4.0, 9.0, 21.0], "bucket_batch_size": [6, 4, 2],
        "use_bucketing": True, "shuffle": True, "perturb_speed": True, "window_draws": 60,
    }  # fmt: skip
    config = corpus.blend(["plain", "other"], [1.0, 3.0], options)
    found = step_of(config, 5, world_size=2, rank=1)
    text = str(found)
    assert text.startswith("step 5 of seed 3, pass 0: 4 micro-batches a step; those of rank 1 of 2")
    assert "window 0 of seed 3, its step 6 of" in text or "window 1 of seed 3" in text
    assert "other   75.00%  45 of 60" in text
    assert "  length " in text
    for batch in found.batches:
        assert f"bucket up to {batch.bucket[0]:g} s, {batch.size} samples" in text
        assert (batch.bucket[0], batch.size) in {(4.0, 6), (9.0, 4), (21.0, 2)}
    assert "speed 0.9" in text or "speed 1.1" in text
    assert [batch.slot for batch in found.batches] == [1, 3]
    cut = {batch.cut_number for batch in step_of(config, 5).batches}
    assert len(cut) == G
    for leaf in found.leaves:
        assert leaf.draws_of_window == 60
        assert leaf.samples == sum(
            sample.leaf == leaf.name for batch in found.batches for sample in batch.samples
        )


@pytest.mark.parametrize("world_size", [1, 2, 4])
def test_from_a_state_the_same_step_is_found_at_once(corpus, tmp_path, world_size):
    options = {"batch_duration": 40, "shuffle": True, "window_draws": 40}
    config = corpus.blend(["plain", "other"], [1.0, 1.0], options)
    loader = loader_of(config, world_size=world_size)
    for _ in islice(loader, 20 * G // world_size):
        pass
    state = json.loads(json.dumps(loader.state_dict()))
    loader.close()
    windows = []
    near = step_of(config, 23, world_size=world_size, state=state, say=windows.append)
    far = step_of(config, 23, world_size=world_size)
    assert [batch.samples for batch in near.batches] == [batch.samples for batch in far.batches]
    assert len(windows) <= 2
    saved = tmp_path / "state.json"
    saved.write_text(json.dumps({"loader": state}))
    assert step_of(config, 23, world_size=world_size, checkpoint=saved) == near
    saved.write_text("{}")
    with pytest.raises(ConfigError, match="no position of Playhead"):
        step_of(config, 23, checkpoint=saved)
    with pytest.raises(ConfigError, match="lies before the position"):
        step_of(config, 19, state=state)


def test_a_step_too_far_ahead_says_how_far_windows_lead(corpus):
    config = corpus.blend(["plain"], [1.0], {"batch_size": 2, "window_draws": 16})
    with pytest.raises(ConfigError, match="lies behind step 9, which 3 windows lead to"):
        step_of(config, 1_000_000, most_windows=3)
    with pytest.raises(ConfigError, match="Rank 2 does not exist in a world of 2"):
        step_of(config, 1, world_size=2, rank=2)
    with pytest.raises(TopologyError, match="out of 1, 2, 4"):
        step_of(config, 1, world_size=3)
    with pytest.raises(PositionError):
        step_of(config, 1, state={"epoch": 3})


def test_a_later_pass_of_a_finite_blend_has_its_own_order(corpus):
    config = corpus.blend(["plain"], [1.0], {"batch_size": 5, "force_finite": True})
    first, second = (check(config | {"shuffle": True}, step) for step in (0, 2))
    assert (first.pass_number, second.pass_number) == (0, 1)
    assert [window.number for one in (first, second) for window in one.windows] == [0, 0]
    assert first.batches[0].samples != second.batches[0].samples
    with pytest.raises(PlanError, match="has no step"):
        step_of(config | {"batch_size": 1, "drop_last": True, "max_duration": 0.99}, 1)


def test_what_a_sample_counts_is_said_where_it_is_not_its_length(corpus):
    plain = corpus.blend(["plain"], [1.0], {"batch_duration": 60, "shuffle": True})
    assert "counts" not in str(step_of(plain, 0))
    assert "counts" in str(step_of(plain | {"quadratic_duration": 20.0}, 0))


def test_a_source_of_several_blends_is_named_once(corpus):
    blend = corpus.blend(["plain", "other"], [1.0, 1.0], {"batch_duration": 60})
    for name in ("seed", "micro_batches_per_step"):
        del blend[name]
    config = {
        "multi_config": True, "seed": 5, "shuffle": True, "micro_batches_per_step": G,
        "short": blend,
    }  # fmt: skip
    text = str(step_of(config, 0))
    assert "short/plain" in text
    assert "short: short/" not in text
