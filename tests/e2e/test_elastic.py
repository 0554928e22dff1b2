"""Other step sizes, limits and workers in the middle of a window: every sample exactly once."""

from __future__ import annotations

import json
import random
import warnings
from collections import Counter
from contextlib import nullcontext
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest

import playhead
from playhead.datasets import Ids
from support.jobs import history_of, last_state
from support.real_speech import RATE, rows_of
from support.run_loader import line_of

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from support.jobs import Server

pytestmark = pytest.mark.e2e

# (micro-batches a step, seconds a micro-batch, ranks, workers)
CHANGES = [(6, 6, 3, 0), (4, 6, 2, 1), (4, 4, 4, 0), (8, 4, 1, 2), (3, 5, 3, 0), (5, 8, 5, 0)]
Change = tuple[int, float, int, int]


def loaders_of(
    config: dict[str, Any], change: tuple[int, float, int, int]
) -> list[playhead.Loader]:
    step, seconds, ranks, workers = change
    return [
        playhead.dataloader(
            config,
            dataset=Ids(),
            rank=rank,
            world_size=ranks,
            micro_batches_per_step=step,
            batch_duration=seconds,
            num_workers=workers,
        )
        for rank in range(ranks)
    ]


def expected_note(
    loader: playhead.Loader, before: Change, now: Change
) -> AbstractContextManager[object]:
    """Rank 0 says once that the rest of the window is dealt out again, where it is."""
    if loader.rank == 0 and before[:2] != now[:2]:
        return pytest.warns(UserWarning, match="dealt out anew")
    return nullcontext()


@pytest.mark.parametrize("seed", range(3))
def test_a_chain_of_changes_in_one_pass(digits: Path, seed: int) -> None:
    config = {
        "manifest_filepath": str(digits / "manifest.json"),
        "sample_rate": RATE,
        "force_finite": True,
        "shuffle": True,
        "seed": seed,
    }
    rng = random.Random(seed)
    changes = [CHANGES[0], *rng.sample(CHANGES, len(CHANGES)), CHANGES[0]]
    taken: Counter[str] = Counter()
    state: dict | None = None
    before = changes[0]
    for number, change in enumerate(changes):
        loaders = loaders_of(config, change)
        lines = []
        steps = rng.randint(0, 3)
        for loader in loaders:
            if state is not None:
                with expected_note(loader, before, change):
                    loader.load_state_dict(state)
            wanted = steps * loader.batches_per_step if number + 1 < len(changes) else None
            lines += [line_of(batch) for batch in islice(iter(loader), wanted)]
        before = change
        states = [json.dumps(loader.state_dict()) for loader in loaders]
        assert len(set(states)) == 1
        state = json.loads(states[0])
        assert len({(line["step"], line["slot"]) for line in lines}) == len(lines)
        for line in lines:
            taken.update(
                name
                for name, repeated in zip(line["ids"], line["repeated"], strict=True)
                if not repeated
            )
        for loader in loaders:
            loader.close()
    assert len(taken) == 3000
    assert set(taken.values()) == {1}


def test_a_world_size_that_does_not_divide_deals_the_rest_out_again(digits: Path) -> None:
    config = {
        "manifest_filepath": str(digits / "manifest.json"),
        "sample_rate": RATE,
        "force_finite": True,
        "shuffle": True,
        "seed": 1,
        "batch_duration": 20,
    }
    six = [playhead.dataloader(config, dataset=Ids(), rank=r, world_size=6) for r in range(6)]
    taken = [line_of(batch) for loader in six for batch in islice(loader, 2)]
    state = six[0].state_dict()
    three = playhead.dataloader(config, dataset=Ids(), rank=0, world_size=3)
    three.load_state_dict(state)
    assert three.micro_batches_per_step == 6
    four = [playhead.dataloader(config, dataset=Ids(), rank=r, world_size=4) for r in range(4)]
    with (
        pytest.warns(UserWarning, match="dealt out anew"),
        pytest.warns(UserWarning, match="a step is now 4"),
    ):
        four[0].load_state_dict(state)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for loader in four[1:]:
            loader.load_state_dict(state)
    taken += [line_of(batch) for loader in four for batch in loader]
    names = Counter(
        name
        for line in taken
        for name, repeated in zip(line["ids"], line["repeated"], strict=True)
        if not repeated
    )
    assert len(names) == 3000
    assert set(names.values()) == {1}


def test_processes_with_other_steps_limits_and_workers(
    prompts: Path, server: Server, tmp_path: Path
) -> None:
    config = tmp_path / "config.yaml"
    tarred = prompts / "tarred"
    config.write_text(
        json.dumps(
            {
                "manifest_filepath": str(tarred / "manifest__OP_0..7_CL_.json"),
                "tarred_audio_filepaths": str(tarred / "audio__OP_0..7_CL_.tar"),
                "sample_rate": RATE,
                "force_finite": True,
                "shuffle": True,
                "seed": 2,
            }
        )
    )
    taken: Counter[str] = Counter()
    state = None
    steps = 0
    for number, (step, seconds, ranks, workers) in enumerate(CHANGES[:4]):
        last = number == 3
        steps += 2
        spec = {
            "config": str(config),
            "overrides": {
                "micro_batches_per_step": step,
                "batch_duration": seconds,
                "num_workers": workers,
            },
            "notes": "ignore",
            "world_size": ranks,
            "steps": None if last else steps,
            "state_in": state and str(state),
        }
        jobs = [
            server.start(tmp_path, {**spec, "ranks": list(range(ranks))[half::2]})
            for half in range(min(2, ranks))
        ]
        for job in jobs:
            job.finish(60)
        state = last_state(jobs)
        for line in history_of(jobs).values():
            taken.update(
                name
                for name, repeated in zip(line["ids"], line["repeated"], strict=True)
                if not repeated
            )
    names = [
        row["audio_filepath"] for i in range(8) for row in rows_of(tarred / f"manifest_{i}.json")
    ]
    assert len(taken) == len(names) == 553
    assert set(taken.values()) == {1}
