"""What the machine does enters nothing: workers, prefetching, generators, how late it is."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

import playhead
from playhead.datasets import Ids
from support.handed_out import first, resumed, take, through_json
from support.run_loader import AugmentedSpeech

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize(
    ("num_workers", "method"),
    [
        (1, "fork"),
        (4, "fork"),
        (1, "spawn"),
        pytest.param(1, "forkserver", marks=pytest.mark.slow),
    ],
)
def test_workers_do_not_enter(
    endless: Callable[..., playhead.Loader], num_workers: int, method: str
) -> None:
    alone = take(endless(dataset=AugmentedSpeech(), info=True), 30)
    options = {"num_workers": num_workers, "multiprocessing_context": method, "info": True}
    loader = endless(dataset=AugmentedSpeech(), **options)
    assert take(loader, 10) == alone[:10]
    state = loader.state_dict()
    loader.close()
    assert take(resumed(endless(dataset=AugmentedSpeech(), **options), state), 20) == alone[10:]


def test_states_never_count_what_workers_fetched_ahead(
    endless: Callable[..., playhead.Loader],
) -> None:
    loader, ahead = endless(), endless(num_workers=2, prefetch_factor=8)
    iterator, other = iter(loader), iter(ahead)
    for _ in range(8):
        assert first(iterator, 2) == first(other, 2)
        assert loader.state_dict() == ahead.state_dict()


def test_global_generators_of_the_training_process_stand_still(
    endless: Callable[..., playhead.Loader],
) -> None:
    def states() -> list[Any]:
        return [
            random.getstate(),
            json.dumps(np.random.get_state(legacy=False), default=np.ndarray.tolist),
            torch.get_rng_state().tolist(),
        ]

    before = states()
    loader = endless(dataset=AugmentedSpeech(), info=True)
    history = take(loader, 10)
    assert states() == before
    take(endless(num_workers=1), 4)
    assert states() == before
    random.seed(99)
    np.random.seed(99)
    torch.manual_seed(99)
    assert take(endless(dataset=AugmentedSpeech(), info=True), 10) == history


def test_a_state_is_small_and_flat(endless: Callable[..., playhead.Loader]) -> None:
    loader = endless()
    sizes = []
    for _ in range(20):
        take(loader, 8)
        sizes.append(len(json.dumps(loader.state_dict())))
    assert max(sizes) <= 1024 + 70 * 2


def bytes_read() -> int:
    return int(Path("/proc/self/io").read_text().split()[1])


def test_resuming_reads_as_little_late_as_early(digits: Path) -> None:
    def make() -> playhead.Loader:
        entry = {"type": "nemo", "manifest_filepath": str(digits / "manifest.json"), "weight": 1}
        config = {"input_cfg": [entry, entry], "batch_size": 1, "shuffle": True, "seed": 1}
        return playhead.dataloader(config, dataset=Ids(), rank=0, world_size=1, window_draws=1000)

    loader = make()
    take(loader, 20)
    early = through_json(loader.state_dict())
    late = through_json(early)
    late["window"] += 1_000_000
    late["step"] += 250_000_000
    for leaf in late["leaves"].values():
        leaf[0] += 100_000
    for state in (early, late):
        costs = []
        for _ in range(4):
            loader = make()
            before = bytes_read()
            loader.load_state_dict(state)
            assert take(loader, 2)[0]["step"] == state["step"]
            costs.append(bytes_read() - before)
        # Two rows of some 150 bytes, out of a manifest of half a million bytes.
        # The least counts: threads that earlier tests left behind may read something, too.
        assert min(costs) < 4096
