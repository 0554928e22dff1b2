"""A StatefulDataLoader over micro-batches: exact in the middle of prefetching, on other workers."""

from __future__ import annotations

import importlib
import json
import sys
from itertools import islice

import pytest
import torch
from torchdata.stateful_dataloader import StatefulDataLoader

import playhead
from playhead.datasets import Ids
from playhead.errors import AudioError, ConfigError, MissingExtraError, PositionError
from playhead.integrations.torchdata import (
    MicroBatches,
    MicroBatchSampler,
    position_of,
    stateful_dataloader,
)
from support.corpus import nemo_corpus
from support.handed_out import first, lines, through_json
from support.run_loader import line_of

# torchdata calls what newer versions of torch warn of.
pytestmark = pytest.mark.filterwarnings("ignore:'set_vital' is deprecated:UserWarning")

STEP = 4


@pytest.fixture(scope="module")
def manifest(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLAYHEAD_CACHE", str(folder / "cache"))
        yield nemo_corpus(folder, [0.2 + 0.01 * n for n in range(90)], 8000)


@pytest.fixture
def loader(manifest):
    def make(*, rank=0, world_size=1, dataset=None, **options):
        path = str(options.pop("manifest", manifest))
        # A blend of two is endless unless it is told otherwise.
        entries = [{"type": "nemo", "manifest_filepath": path, "name": name} for name in "ab"]
        config = {
            "input_cfg": entries,
            "sample_rate": 8000,
            "shuffle": True,
            "seed": 1,
            "batch_duration": 2,
            "window_draws": 60,
            "micro_batches_per_step": STEP,
        }
        place = {"rank": rank, "world_size": world_size}
        return playhead.dataloader({**config, **options}, dataset=dataset or Ids(), **place)

    return make


def vanilla(loader, **options):
    """As somebody would write it who does not know `stateful_dataloader`."""
    batches, sampler = MicroBatches(loader.fetch), MicroBatchSampler(loader)
    return StatefulDataLoader(batches, sampler=sampler, batch_size=None, **options)


def take(batches, count):
    return [line_of(batch) for batch in islice(iter(batches), count)]


@pytest.mark.parametrize("workers", [0, 3])
@pytest.mark.parametrize("finite", [False, True])
def test_it_gives_what_the_loader_gives(loader, workers, finite):
    expected = take(loader(force_finite=finite), 120)
    torchdata = stateful_dataloader(loader(force_finite=finite), num_workers=workers)
    assert isinstance(torchdata, StatefulDataLoader)
    if finite:
        assert len(torchdata) == len(expected) < 120
    else:
        with pytest.raises(TypeError, match="endless"):
            len(torchdata)
    assert take(torchdata, 120) == expected


@pytest.mark.parametrize("steps", [0, 1, 12, 13])
@pytest.mark.parametrize(("workers", "then"), [(0, 2), (3, 0), (2, 2)])
def test_a_state_goes_as_far_as_batches_were_handed_out_whatever_workers_fetch(
    loader, steps, workers, then
):
    uninterrupted = take(loader(), 20 * STEP)
    before, after = (
        stateful_dataloader(
            loader(), num_workers=number, **{"prefetch_factor": 3} if number else {}
        )
        for number in (workers, then)
    )
    iterator = iter(before)
    assert first(iterator, steps * STEP) == uninterrupted[: steps * STEP]
    state = through_json(before.state_dict())
    assert first(iterator, 3) == uninterrupted[steps * STEP :][:3]
    if steps:
        # Before the first batch torchdata notes down where the sampler stood before that.
        assert position_of(state) == _loader_state(loader(), steps * STEP)
    after.load_state_dict(state)
    assert take(after, 20 * STEP - steps * STEP) == uninterrupted[steps * STEP :]


def _loader_state(one, batches):
    list(islice(iter(one), batches))
    return through_json(one.state_dict())


def test_the_state_of_any_rank_goes_on_on_other_ranks_and_workers(loader):
    uninterrupted = take(loader(), 40)
    states = []
    for rank in range(2):
        batches = stateful_dataloader(loader(rank=rank, world_size=2), num_workers=2)
        assert take(batches, 10) == uninterrupted[rank:20:2]
        states.append(batches.state_dict())
    assert position_of(states[0]) == position_of(states[1])
    for rank in range(4):
        batches = stateful_dataloader(loader(rank=rank, world_size=4), num_workers=1)
        batches.load_state_dict(states[rank % 2])
        assert take(batches, 5) == uninterrupted[20 + rank :: 4]


def test_it_can_be_gone_over_to_the_loader_and_back(loader):
    uninterrupted = take(loader(), 24)
    batches = stateful_dataloader(loader(), num_workers=2)
    take(batches, 8)
    plain = loader()
    plain.load_state_dict(position_of(batches.state_dict()))
    assert take(plain, 8) == uninterrupted[8:16]
    again = loader()
    again.load_state_dict(plain.state_dict())
    assert take(stateful_dataloader(again, num_workers=2), 8) == uninterrupted[16:]


@pytest.mark.parametrize("workers", [0, 2])
def test_inside_a_step_it_goes_on_at_its_start_and_says_so(loader, workers):
    uninterrupted = take(loader(), 20)
    batches, after = (stateful_dataloader(loader(), num_workers=workers) for _ in range(2))
    take(batches, 10)
    with pytest.warns(UserWarning, match="inside a step"):
        after.load_state_dict(batches.state_dict())
    assert take(after, 12) == uninterrupted[8:]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("taken", [0, 1, 5, 10, 16])
@pytest.mark.parametrize("every", [1, 3])
def test_without_more_than_torchdata_it_goes_on_after_the_last_batch(loader, workers, taken, every):
    uninterrupted = take(loader(), 30)
    before, after = (
        vanilla(loader(), num_workers=workers, snapshot_every_n_steps=every) for _ in range(2)
    )
    take(before, taken)
    after.load_state_dict(through_json(before.state_dict()))
    assert take(after, 30 - taken) == uninterrupted[taken:]


def test_without_more_than_torchdata_workers_must_stay_as_they_are(loader):
    before = vanilla(loader(), num_workers=2)
    take(before, 8)
    after = vanilla(loader(), num_workers=3)
    after.load_state_dict(before.state_dict())
    with pytest.raises(AssertionError):
        iter(after)


def test_half_a_step_of_other_ranks_is_refused_by_the_sampler(loader):
    before = vanilla(loader())
    take(before, 10)
    after = vanilla(loader(rank=0, world_size=2))
    after.load_state_dict(before.state_dict())
    with pytest.raises(PositionError, match="2 batches into a step that 1 ranks shared"):
        iter(after)


def test_ranks_that_cannot_share_a_step_are_refused(loader):
    batches = stateful_dataloader(loader())
    take(batches, 8)
    other = stateful_dataloader(loader(world_size=3, micro_batches_per_step=6))
    with pytest.warns(UserWarning, match="dealt out anew"):
        other.load_state_dict(batches.state_dict())
    assert position_of(other.state_dict())["step"] == 2


@pytest.mark.parametrize("workers", [0, 2])
def test_to_leave_an_endless_one_and_to_come_back_loses_nothing(loader, workers):
    uninterrupted = take(loader(), 30)
    batches = stateful_dataloader(loader(), num_workers=workers)
    taken = [line for count in (3, 0, 8, 1, 18) for line in take(batches, count)]
    assert taken == uninterrupted


@pytest.mark.parametrize(
    "options", [{}, {"num_workers": 2}, {"num_workers": 2, "persistent_workers": True}]
)
def test_passes_of_a_finite_one_are_those_of_the_loader(loader, options):
    plain, batches = loader(force_finite=True), loader(force_finite=True)
    batches = stateful_dataloader(batches, **options)
    # The second is left in the middle: the next one is another pass. The third is not left.
    for count in (None, 5, 0, None):
        assert take(batches, count) == take(plain, count)
    state = batches.state_dict()
    after = stateful_dataloader(loader(force_finite=True))
    after.load_state_dict(state)
    expected = lines(plain)
    assert take(after, None) == expected
    batches.sampler.set_epoch(1)
    other = loader(force_finite=True)
    other.set_epoch(1)
    assert [line["ids"] for line in take(batches, None)] == [line["ids"] for line in lines(other)]


def test_nobody_elses_random_numbers_are_drawn(loader):
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    take(stateful_dataloader(loader(), num_workers=2), 3)
    assert torch.equal(torch.rand(2), expected)


def test_bad_audio_is_said_as_the_loader_says_it(loader, manifest, tmp_path):
    rows = [json.loads(row) for row in manifest.read_text().splitlines()]
    (tmp_path / "bad.wav").write_bytes(b"no audio")
    rows = [{**row, "audio_filepath": str(tmp_path / "bad.wav")} for row in rows]
    bad = tmp_path / "bad.json"
    bad.write_text("".join(json.dumps(row) + "\n" for row in rows))
    one = loader(manifest=bad, dataset=playhead.datasets.SpeechToText())
    with pytest.raises(AudioError, match=r"bad\.wav"):
        next(iter(stateful_dataloader(one, num_workers=1)))


STATES = [{}, [1], None, {"_snapshot": {}}, {"_index_sampler_state": None}, {"loader": {}}]


@pytest.mark.parametrize("state", STATES, ids=str)
def test_states_of_something_else_are_refused(loader, state):
    batches = stateful_dataloader(loader())
    with pytest.raises(PositionError, match="not the state of a StatefulDataLoader"):
        batches.load_state_dict(state)
    with pytest.raises(PositionError, match="not the state of a StatefulDataLoader"):
        batches.load_state_dict(loader().state_dict())


def test_a_state_from_between_snapshots_is_refused(loader):
    before = vanilla(loader(), num_workers=1, snapshot_every_n_steps=8)
    take(before, 4)
    with pytest.raises(PositionError, match="4 batches after the last that was noted down"):
        position_of(before.state_dict())


def test_a_state_before_the_seed_is_drawn_begins_anew(loader):
    state = MicroBatchSampler(loader(seed="trng", world_size=2)).state_dict()
    with pytest.raises(PositionError, match="Begin anew"):
        position_of({"_index_sampler_state": state})
    one = loader()
    MicroBatchSampler(one).load_state_dict(state)
    assert one.state_dict() == loader().state_dict()
    take(one, STEP)
    with pytest.raises(PositionError, match="the loader has begun"):
        MicroBatchSampler(one).load_state_dict(state)


@pytest.mark.parametrize("name", ["batch_size", "shuffle", "in_order", "snapshot_every_n_steps"])
def test_options_that_would_change_batches_or_states_are_refused(loader, name):
    with pytest.raises(ConfigError, match=f"(?i){name} cannot be given"):
        stateful_dataloader(loader(), **{name: 1})


def test_samples_that_are_left_out_are_counted_by_the_loader_alone(loader):
    with pytest.raises(ConfigError, match="Iterate the loader itself"):
        stateful_dataloader(loader(fault_tolerant_audio_loading=True))


def test_without_torchdata_the_extra_is_named(monkeypatch):
    name = "playhead.integrations.torchdata"
    monkeypatch.setitem(sys.modules, "torchdata.stateful_dataloader", None)
    monkeypatch.delitem(sys.modules, name)
    with pytest.raises(MissingExtraError, match=r"pip install 'playhead\[torchdata\]'"):
        importlib.import_module(name)
