"""Plans that were written down: they may change only together with the plan version.

``PLAYHEAD_WRITE_GOLDEN=1 pytest tests/plan/test_golden.py`` writes them anew.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from playhead.plan import PLAN_VERSION, Batching, Position, Shape, plan_window, resume, start
from support.plans import columns

_FOLDER = Path(__file__).parent / "golden"
_LIMIT = Batching(batch_duration_us=120_000_000, micro_batches_per_step=4)


def _durations(count, factor):
    """Lengths by plain arithmetic: no generator of another library decides what is golden."""
    return 500_000 + (np.arange(count) * factor) % 14_000_003


def _leaves():
    return [
        columns("tiny", _durations(7, 1_234_567), 1 << 30),
        columns("small", _durations(700, 7_654_321), 3 << 30),
        columns(
            "large",
            _durations(5_000, 987_654_321),
            5 << 30,
            shard=(np.arange(5_000) // 250).astype(np.int32),
            shard_bytes=np.full(20, 5_000_000),
        ),
    ]


_CASES = {
    "endless": (Shape(window_draws=600), _LIMIT),
    "endless_quadratic": (
        Shape(window_draws=600, max_duration_us=12_000_000),
        replace(_LIMIT, quadratic_duration_us=9_000_000),
    ),
    "endless_declared": (Shape(window_draws=300, shuffle=False), replace(_LIMIT, bucketing=False)),
    "endless_shards": (Shape(window_draws=600, locality="shards"), _LIMIT),
    "finite": (Shape(finite=True, window_draws=1_500), _LIMIT),
    "finite_declared": (Shape(finite=True, window_draws=1_500, shuffle=False), _LIMIT),
    "bins": (Shape(window_draws=600), replace(_LIMIT, bins_us=(3_000_000, 8_000_000))),
    "fixed": (
        Shape(window_draws=600),
        Batching(
            bins_us=(3_000_000, 8_000_000, 15_000_000),
            bucket_batch_size=(20, 9, 4),
            micro_batches_per_step=4,
        ),
    ),
    "size_one": (Shape(window_draws=41), Batching(batch_size=1, micro_batches_per_step=4)),
}


def _described(plan):
    steps = []
    digest = hashlib.blake2b(digest_size=16)
    for step in range(plan.num_steps):
        batches = [plan.micro_batch(step, slot) for slot in range(4)]
        for batch in batches:
            for array in (batch.leaf, batch.pass_, batch.row, batch.repeated, batch.sample_keys):
                digest.update(array.astype("<u8").tobytes())
            digest.update(batch.key.to_bytes(8, "little"))
        steps.append([len(batch.row) for batch in batches])
    first = plan.micro_batch(0, 0)
    return {
        "sizes": steps,
        "first_rows": list(zip(first.leaf.tolist(), first.row.tolist(), strict=True)),
        "first_key": first.key,
        "everything": digest.hexdigest(),
    }


def _golden(shape, batching):
    """Two windows, the second after a change of batching in the middle of the first."""
    leaves = _leaves()
    plan = plan_window(start(leaves, shape, batching, seed=42), leaves, shape, batching)
    position = plan.position_at(plan.num_steps // 2)
    other = replace(batching, micro_batches_per_step=5)
    resumed, _ = resume(position, leaves, shape, other)
    rest = plan_window(resumed, leaves, shape, other)
    return {
        "plan_version": PLAN_VERSION,
        "first_window": _described(plan),
        "position": position.to_json(),
        "rest": {
            "sizes": [
                [len(rest.micro_batch(step, slot).row) for slot in range(5)]
                for step in range(rest.num_steps)
            ],
            "next": rest.position_at(rest.num_steps).to_json(),
        },
    }


@pytest.mark.parametrize("name", _CASES)
def test_plans_are_those_that_were_written_down(name):
    path = _FOLDER / f"{name}.json"
    golden = json.loads(json.dumps(_golden(*_CASES[name])))
    if os.environ.get("PLAYHEAD_WRITE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(golden, separators=(",", ":")) + "\n")
    written = json.loads(path.read_text())
    assert written["plan_version"] == PLAN_VERSION, "a new plan version needs golden plans anew"
    assert golden == written, "the plan changed: raise PLAN_VERSION, or put it back"


@pytest.mark.parametrize("name", _CASES)
def test_positions_that_were_written_down_still_load(name):
    state = json.loads((_FOLDER / f"{name}.json").read_text())["position"]
    position = Position.from_json(state)
    shape, batching = _CASES[name]
    assert position.to_json() == state
    resumed, notes = resume(position, _leaves(), shape, batching)
    assert (resumed, notes) == (position, ())
