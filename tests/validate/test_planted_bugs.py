"""Faults planted in the loader or the dataset: each is found, by the question it is for."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from torch.utils.data import get_worker_info

from playhead.fetch import pad_waveforms
from playhead.fetch.bad import without
from playhead.loader.loader import Loader
from playhead.loader.run import Run
from playhead.loader.stream import Stream
from support.ten_cuts import Corpus, make
from support.validations import failed, validated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playhead.plan import MicroBatch

    Spoil = Callable[[MicroBatch, int, bool], MicroBatch]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return make(tmp_path_factory.mktemp("ten"), [0.2 * (n + 1) for n in range(10)])


@pytest.fixture
def config(corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setenv("PLAYHEAD_CACHE", str(tmp_path / "cache"))
    entries = [corpus.entry("nemo"), corpus.entry("shar")]
    return {"input_cfg": entries, "batch_size": 2, "shuffle": True, "seed": 3}


@pytest.fixture
def plant(monkeypatch: pytest.MonkeyPatch) -> Callable[[Spoil], None]:
    """Have what a rank hands out spoilt: (micro-batch, rank, whether it was resumed)."""

    def planted(spoil: Spoil) -> None:
        # Kept alive, so that no later one has the address of one of these.
        resumed: list[Any] = []
        plain_batches, plain_load = Run.batches, Loader.load_state_dict

        def load(self: Loader, state: Any, **options: Any) -> None:
            plain_load(self, state, **options)
            resumed.append(self.planning)

        def batches(self: Run, first: int = 0) -> Iterator[MicroBatch]:
            rank = self._topology.rank
            for micro_batch in plain_batches(self, first):
                yield spoil(micro_batch, rank, any(one is self.planning for one in resumed))

        monkeypatch.setattr(Loader, "load_state_dict", load)
        monkeypatch.setattr(Run, "batches", batches)

    return planted


def test_a_sample_that_a_resumed_run_skips(
    config: dict[str, Any], plant: Callable[[Spoil], None], tmp_path: Path
) -> None:
    def skip(micro_batch: MicroBatch, rank: int, is_resumed: bool) -> MicroBatch:
        return without(micro_batch, [0]) if is_resumed and micro_batch.step == 2 else micro_batch

    plant(skip)
    assert failed(validated(tmp_path, config)) == ["Q4"]


def test_an_order_that_a_resumed_run_changes(
    config: dict[str, Any], plant: Callable[[Spoil], None], tmp_path: Path
) -> None:
    def reverse(micro_batch: MicroBatch, rank: int, is_resumed: bool) -> MicroBatch:
        if not is_resumed:
            return micro_batch
        return replace(micro_batch, row=micro_batch.row[::-1], leaf=micro_batch.leaf[::-1])

    plant(reverse)
    assert failed(validated(tmp_path, config)) == ["Q4"]


def test_a_rank_that_is_given_the_batch_of_another(
    config: dict[str, Any], plant: Callable[[Spoil], None], tmp_path: Path
) -> None:
    first: dict[int, MicroBatch] = {}

    def share(micro_batch: MicroBatch, rank: int, is_resumed: bool) -> MicroBatch:
        if rank == 0:
            first[int(micro_batch.step)] = micro_batch
            return micro_batch
        if micro_batch.step != 3:
            return micro_batch
        return replace(first[3], slot=micro_batch.slot)

    plant(share)
    assert {"Q1", "Q2", "Q3"} <= set(failed(validated(tmp_path, config, resume=((2, 0),))))


def test_ranks_that_take_the_slots_of_one_another(
    config: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shift(self: Run, first: int = 0) -> Iterator[MicroBatch]:
        size, per_step = self._topology.world_size, self._per_step
        for batch in range(first, self.count()):
            step, turn = divmod(batch, per_step)
            yield self.micro_batch(step, (self._topology.rank + 1) % size + turn * size)

    monkeypatch.setattr(Run, "batches", shift)
    # Nothing is lost and nothing comes twice, in each run in the same way.
    assert failed(validated(tmp_path, config, resume=((2, 0),))) == ["Q4"]


def test_batches_that_are_handed_on_in_another_order(
    config: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, held = Stream.next, list[Any]()

    def swapped(self: Stream) -> Any:
        if held:
            return held.pop()
        first = plain(self)
        try:
            second = plain(self)
        except StopIteration:
            return first
        held.append(first)
        return second

    monkeypatch.setattr(Stream, "next", swapped)
    assert failed(validated(tmp_path, config, resume=((2, 0),), checkpoint_at=1)) == ["Q4"]


def test_a_plan_that_loses_a_sample_whoever_runs_it(
    config: dict[str, Any], plant: Callable[[Spoil], None], tmp_path: Path
) -> None:
    def lose(micro_batch: MicroBatch, rank: int, is_resumed: bool) -> MicroBatch:
        of_first = np.flatnonzero((micro_batch.leaf == 0) & (micro_batch.row == 4))
        return without(micro_batch, of_first.tolist())

    plant(lose)
    # Both baselines and all resumed runs agree, and agree on what is wrong.
    assert failed(validated(tmp_path, config)) == ["Q2"]


def test_a_run_that_comes_out_differently_each_time(
    config: dict[str, Any], plant: Callable[[Spoil], None], tmp_path: Path
) -> None:
    draws = np.random.default_rng(0)

    def shuffle(micro_batch: MicroBatch, rank: int, is_resumed: bool) -> MicroBatch:
        order = draws.permutation(len(micro_batch.row))
        return replace(micro_batch, row=micro_batch.row[order])

    plant(shuffle)
    assert "Q5" in failed(validated(tmp_path, config))


def test_augmentation_that_changes_once_a_run_is_resumed(
    config: dict[str, Any], plant: Callable[[Spoil], None], tmp_path: Path
) -> None:
    def rekey(micro_batch: MicroBatch, rank: int, is_resumed: bool) -> MicroBatch:
        keys = micro_batch.sample_keys + np.uint64(is_resumed)
        return replace(micro_batch, sample_keys=keys)

    plant(rekey)
    augmented = {**config, "rir_enabled": True, "clipping_enabled": True}
    fast, full = tmp_path / "fast", tmp_path / "full"
    for folder in (fast, full):
        folder.mkdir()
    # Which samples there are is right; only who listens hears it.
    assert failed(validated(fast, augmented)) == []
    assert failed(validated(full, augmented, mode="full")) == ["Q4"]


class Sound:
    """Audio, and something that `drawn` adds to each batch."""

    reads_audio = True

    def collate(self, examples: Any, *, sample_rate: Any, sample_keys: Any) -> dict[str, Any]:
        audio, _ = pad_waveforms(examples, sample_rate)
        return {"audio": audio, "drawn": self.drawn()}

    def drawn(self) -> Any:
        return 0


class Unseeded(Sound):
    def drawn(self) -> Any:
        return os.urandom(4)


class OfWorker(Sound):
    def drawn(self) -> Any:
        return getattr(get_worker_info(), "num_workers", 0)


class Counting(Sound):
    calls = 0

    def drawn(self) -> Any:
        self.calls += 1
        return self.calls


def test_a_dataset_that_keeps_to_the_rules_passes(config: dict[str, Any], tmp_path: Path) -> None:
    assert failed(validated(tmp_path, config, mode="full", dataset=Sound())) == []


def test_a_dataset_that_draws_from_the_operating_system(
    config: dict[str, Any], tmp_path: Path
) -> None:
    verdict = validated(tmp_path, config, mode="full", dataset=Unseeded())
    assert {"Q4", "Q5"} <= set(failed(verdict))


def test_a_dataset_that_looks_at_its_worker(config: dict[str, Any], tmp_path: Path) -> None:
    same = validated(
        tmp_path, config, mode="full", dataset=OfWorker(), resume=((2, 0),), num_workers=None
    )
    assert failed(same) == []
    other = validated(tmp_path, config, mode="full", dataset=OfWorker(), resume=((2, 2),))
    assert failed(other) == ["Q4"]


def test_a_dataset_that_remembers_the_batches_before(
    config: dict[str, Any], tmp_path: Path
) -> None:
    path = {"mode": "full", "resume": ((2, 0),)}
    verdict = validated(tmp_path, config, dataset=Counting(), **path)
    assert "Q4" in failed(verdict)
