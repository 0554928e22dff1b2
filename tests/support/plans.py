"""Small blends for the plan, and a trainer that walks through one and keeps what it was given."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from playhead.plan import LeafColumns, Position, plan_window, resume
from playhead.plan.effort import effective_one

__all__ = ["Trainer", "columns", "lengths", "samples_of", "speech"]


def speech(count, seed=0):
    """Lengths (µs) like those of speech corpora, 0.5 to 30 s."""
    draws = np.random.default_rng(seed).lognormal(1.9, 0.6, count)
    return (np.clip(draws, 0.5, 30.0) * 1e6).astype(np.int64)


def columns(key, duration_us, weight=1, **more):
    """A leaf whose fingerprint is of its lengths."""
    data = np.asarray(duration_us, dtype=np.int64)

    def fingerprint(rows):
        return hashlib.blake2b(data[:rows].tobytes(), digest_size=8).hexdigest()

    return LeafColumns(
        key=key,
        name=more.pop("name", f"data/{key}.json"),
        weight=weight,
        duration_us=data,
        fingerprint=fingerprint,
        **more,
    )


def lengths(leaves, batch):
    """Lengths (µs) of the samples of a micro-batch."""
    return [
        int(leaves[leaf].duration_us[row])
        for leaf, row in zip(batch.leaf.tolist(), batch.row.tolist(), strict=True)
    ]


def samples_of(leaves, batch):
    """(leaf key, pass, row) of every sample of a micro-batch that is not repeated."""
    return [
        (leaves[leaf].key, pass_, row)
        for leaf, pass_, row, repeated in zip(
            batch.leaf.tolist(),
            batch.pass_.tolist(),
            batch.row.tolist(),
            batch.repeated.tolist(),
            strict=True,
        )
        if not repeated
    ]


def through_json(position):
    return Position.from_json(json.loads(json.dumps(position.to_json())))


@dataclass
class Trainer:
    """Takes steps from a position on, checks every batch, and keeps what it was given."""

    position: Position
    leaves: list
    shape: object
    batching: object
    seen: Counter = field(default_factory=Counter)
    repeated: int = 0
    steps: list = field(default_factory=list)
    notes: list = field(default_factory=list)

    def change(self, *, leaves=None, shape=None, batching=None, **options):
        """Stop, and start again with other leaves or settings."""
        self.leaves = self.leaves if leaves is None else leaves
        self.shape = shape or self.shape
        self.batching = batching or self.batching
        saved = through_json(self.position)
        assert saved == self.position
        self.position, notes = resume(saved, self.leaves, self.shape, self.batching, **options)
        assert through_json(self.position) == self.position
        self.notes += notes
        return notes

    def take(self, steps):
        """Take up to so many steps; return how many there were."""
        taken = 0
        while taken < steps:
            plan = plan_window(self.position, self.leaves, self.shape, self.batching)
            last = min(plan.num_steps, plan.first_step + steps - taken)
            for step in range(plan.first_step, last):
                self._train(plan, step)
            taken += last - plan.first_step
            self.position = plan.position_at(last)
            if plan.is_end and last == plan.num_steps:
                break
        return taken

    def finish_window(self):
        """Take all steps that the running window still has."""
        plan = plan_window(self.position, self.leaves, self.shape, self.batching)
        self.take(plan.num_steps - plan.first_step)

    def _train(self, plan, step):
        batching = self.batching
        batches = [plan.micro_batch(step, slot) for slot in range(batching.micro_batches_per_step)]
        for batch in batches:
            assert len(batch.row) > 0
            self._check_size(lengths(self.leaves, batch))
            self.seen.update(samples_of(self.leaves, batch))
            self.repeated += int(batch.repeated.sum())
        self.steps.append(
            [
                (batch.step, batch.key, samples_of(self.leaves, batch), batch.sample_keys.tolist())
                for batch in batches
            ]
        )

    def _check_size(self, us):
        batching = self.batching
        count, longest = len(us), max(us)
        if batching.batch_size is not None:
            assert count <= batching.batch_size
        if batching.batch_duration_us is not None and count > 1:
            effort = effective_one(longest, batching.quadratic_duration_us)
            assert count * effort <= batching.batch_duration_us
        if batching.bucket_batch_size is not None:
            fits = [
                s for b, s in zip(batching.bins_us, batching.sizes, strict=True) if longest <= b
            ]
            assert fits, "longer than the last bin"
            assert count <= fits[0]
