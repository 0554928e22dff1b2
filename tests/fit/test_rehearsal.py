"""A rehearsal tries the worst of what comes, lowers what does not fit, and moves nothing."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import random
import warnings
from collections import Counter
from itertools import islice

import numpy as np
import pytest
import torch
import torch.multiprocessing as mp

import playhead.fit
from playhead.errors import FitError, PositionError
from playhead.fetch.bad import Holes
from playhead.fit import rehearse
from playhead.loader.fusion import fused
from playhead.loader.loader import Loader
from playhead.loader.ranks import Topology
from playhead.loader.run import Planning
from playhead.loader.stream import Workers
from playhead.plan import Batching, LeafColumns, Shape

SECOND = 1_000_000
BINS = (3 * SECOND, 6 * SECOND, 12 * SECOND)


def leaf(key, rows, weight=1, seed=0, most=12):
    durations = np.random.default_rng(seed).integers(300_000, most * SECOND, rows)

    def fingerprint(n):
        return hashlib.blake2b(durations[:n].tobytes(), digest_size=8).hexdigest()

    return LeafColumns(
        key=key, name=key, weight=weight, duration_us=durations, fingerprint=fingerprint
    )


LEAVES = (leaf("a", 400), leaf("b", 157, weight=2, seed=1))
EVERYTHING = Counter((n, row) for n, one in enumerate(LEAVES) for row in range(one.num_rows))
SIZED = Batching(micro_batches_per_step=2, bins_us=BINS, bucket_batch_size=(20, 10, 5))


def fetch(micro_batch):
    pairs = list(zip(micro_batch.leaf.tolist(), micro_batch.row.tolist(), strict=True))
    return {"rows": pairs, "repeated": micro_batch.repeated.tolist(), "step": micro_batch.step}


def planning(batching=SIZED, leaves=LEAVES, *, finite=False, window_draws=300):
    shape = Shape(finite=finite, shuffle=True, window_draws=window_draws)
    return Planning(leaves=leaves, shape=shape, batching=batching)


def loader(batching=SIZED, *, finite=False, seed=3, fetch=fetch, plan=None, rank=0, world_size=1):
    return Loader(
        planning=plan or planning(batching, finite=finite),
        fetch=fetch,
        topology=Topology(rank=rank, world_size=world_size),
        workers=Workers(num_workers=0),
        seed=seed,
        fixed_step=True,
    )


def longest(batch, leaves=LEAVES):
    return max(int(leaves[n].duration_us[row]) for n, row in batch["rows"])


class Memory:
    """A step that runs out of memory where samples times longest length are above its budget."""

    def __init__(self, seconds, leaves=LEAVES):
        self.budget, self.leaves = seconds * SECOND, leaves
        self.seen = []

    def __call__(self, batch):
        cost = len(batch["rows"]) * longest(batch, self.leaves)
        self.seen.append((len(batch["rows"]), longest(batch, self.leaves)))
        if cost > self.budget:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")


def tokens_of(rows):
    return 1 + np.random.default_rng(4).integers(1, 60, rows)


def take(loader, count):
    return list(islice(iter(loader), count))


def rows(batches):
    return Counter(
        row
        for batch in batches
        for row, again in zip(batch["rows"], batch["repeated"], strict=True)
        if not again
    )


def quietly(loader, step):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return rehearse(loader, step)


def test_it_is_what_the_package_exports():
    assert playhead.fit.rehearse is rehearse
    assert callable(rehearse)


def test_where_everything_fits_nothing_changes():
    straight = take(loader(), 40)
    rehearsed = loader()
    memory = Memory(10_000)
    result = rehearse(rehearsed, memory)
    assert (result.batches, result.lowered, result.untried) == (3, {}, [])
    assert take(rehearsed, 40) == straight
    # Full batches, from the longest bucket on, and none that training will have is worse.
    assert [size for size, _ in memory.seen] == [5, 10, 20]
    worst = {}
    for batch in straight:
        number = next(n for n, most in enumerate(BINS) if longest(batch) <= most)
        worst[number] = max(worst.get(number, 0), len(batch["rows"]) * longest(batch))
    tried = {2 - n: size * length for n, (size, length) in enumerate(memory.seen)}
    assert all(tried[number] >= cost for number, cost in worst.items())


def test_a_size_that_does_not_fit_is_lowered_until_it_does_and_training_has_it():
    rehearsed = loader()
    with pytest.warns(UserWarning, match=r"bucket_batch_size: \[16, 8, 4\].*into the config"):
        result = rehearse(rehearsed, Memory(50))
    assert result.lowered == {"bucket_batch_size": [16, 8, 4]}
    # 16 samples of 3 s are 48 s: windows after the one that was looked at fit, too.
    memory = Memory(50)
    for batch in take(rehearsed, 200):
        memory(batch)
    sizes = tuple(result.lowered["bucket_batch_size"])
    configured = loader(dataclasses.replace(SIZED, bucket_batch_size=sizes))
    fresh = loader()
    quietly(fresh, Memory(50))
    assert take(fresh, 100) == take(configured, 100)
    # What was lowered fits, so that a second rehearsal has nothing to lower.
    again = loader(dataclasses.replace(SIZED, bucket_batch_size=sizes))
    assert rehearse(again, Memory(50)).lowered == {}


@pytest.mark.parametrize("steps", [0, 7, 31])
def test_lowering_after_a_resume_loses_and_repeats_nothing(steps):
    begun = loader(finite=True)
    first = take(begun, 2 * steps)
    state = json.loads(json.dumps(begun.state_dict()))
    resumed = loader(finite=True)
    resumed.load_state_dict(state)
    result = quietly(resumed, Memory(40))
    assert result.lowered
    rest = list(resumed)
    assert rows(first) + rows(rest) == EVERYTHING
    memory = Memory(40)
    for batch in rest:
        memory(batch)
    # The plan's own rule: the same as a resume with the lower options in the config.
    sizes = tuple(result.lowered["bucket_batch_size"])
    other = loader(dataclasses.replace(SIZED, bucket_batch_size=sizes), finite=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        other.load_state_dict(state)
    assert list(other) == rest


def test_between_steps_of_a_live_iterator():
    live = loader(finite=True)
    batches = iter(live)
    first = [next(batches) for _ in range(6)]
    quietly(live, Memory(40))
    assert rows(first) + rows(batches) == EVERYTHING


def test_inside_a_step_it_cannot_be():
    inside = loader()
    take(inside, 3)
    memory = Memory(40)
    with pytest.raises(PositionError, match="inside a step"):
        rehearse(inside, memory)
    # Nothing is tried in vain.
    assert not memory.seen
    with pytest.raises(PositionError, match="inside a step"):
        inside.rebatch(inside.planning)


def test_a_sample_that_does_not_fit_alone_is_named_by_its_bucket():
    with pytest.raises(FitError, match=r"Not even one sample of bucket 12 fits: CUDA out of mem"):
        quietly(loader(), Memory(8))


def test_other_errors_are_raised_as_they_are_and_change_nothing():
    straight = take(loader(), 10)
    broken = loader()

    def step(batch):
        raise KeyError("audio")

    with pytest.raises(KeyError, match="audio"):
        rehearse(broken, step)
    assert take(broken, 10) == straight


def test_random_generators_are_where_they_were():
    def step(batch):
        return random.random(), np.random.random(), torch.rand(3)

    def draws():
        return random.random(), np.random.random(), torch.rand(1).item()

    for seed in (random.seed, np.random.seed, torch.manual_seed):
        seed(5)
    expected = draws()
    for seed in (random.seed, np.random.seed, torch.manual_seed):
        seed(5)
    rehearse(loader(), step)
    assert draws() == expected


def test_batches_of_which_nothing_can_be_read_are_passed_over():
    bad = set()

    def holes(micro_batch):
        # The first batch that is asked for of each size is empty.
        size = len(micro_batch.row)
        if size not in bad:
            bad.add(size)
            return Holes(None, (), (), empty=True)
        return Holes(fetch(micro_batch), (), ())

    memory = Memory(1000)
    rehearse(loader(fetch=holes), memory)
    assert [size for size, _ in memory.seen] == [5, 10, 20]


def test_buckets_without_samples_are_named():
    short = (leaf("short", 100, most=5),)
    bins = (3 * SECOND, 6 * SECOND, 12_345_670)
    one = loader(plan=planning(dataclasses.replace(SIZED, bins_us=bins), leaves=short))
    result = rehearse(one, Memory(1000, short))
    assert result.untried == ["12.34567"]
    assert result.batches == 2


@pytest.mark.parametrize(
    ("batching", "option"),
    [
        (Batching(micro_batches_per_step=2, batch_duration_us=90 * SECOND), "batch_duration"),
        (Batching(micro_batches_per_step=2, batch_size=12), "batch_size"),
        (
            Batching(micro_batches_per_step=2, batch_duration_us=90 * SECOND, batch_size=12),
            "batch_duration",
        ),
    ],
)
@pytest.mark.parametrize("finite", [True, False])
def test_without_fixed_sizes_the_limit_is_lowered(batching, option, finite):
    one = loader(batching, finite=finite)
    result = quietly(one, Memory(50))
    assert list(result.lowered) == [option]
    memory = Memory(50)
    batches = take(one, None if finite else 100)
    for batch in batches:
        memory(batch)
    if finite:
        assert rows(batches) == EVERYTHING


def test_of_two_lengths_the_batch_of_most_tokens_is_the_worst():
    base = leaf("a", 300)
    tokens = tokens_of(300)
    told = dataclasses.replace(base, side={"t": {"tokens": tokens}}.get)
    batching = Batching(
        micro_batches_per_step=2,
        bins_us=(6 * SECOND, 6 * SECOND, 12 * SECOND, 12 * SECOND),
        bins_tokens=(30, 70, 30, 70),
        bucket_batch_size=(12, 8, 6, 4),
    )
    shape = Shape(shuffle=True, window_draws=300, tokens="t")
    seen = []

    def step(batch):
        cost = len(batch["rows"]) * max(int(tokens[row]) for _, row in batch["rows"])
        seen.append((len(batch["rows"]), cost))
        if cost > 200:
            raise MemoryError

    one = loader(plan=Planning(leaves=(told,), shape=shape, batching=batching))
    result = quietly(one, step)
    assert [size for size, _ in seen[:4]] == [4, 6, 8, 12]
    assert result.lowered == {"bucket_batch_size": [6, 3, 6, 3]}


def test_buckets_without_samples_are_named_with_their_part():
    short = (leaf("short", 100, most=5),)
    parts = {"long": planning(leaves=LEAVES), "short": planning(leaves=short)}
    one = loader(plan=fused(parts, "round_robin", [1, 1]))
    assert rehearse(one, lambda _: None).untried == ["12 of part short"]


@pytest.mark.parametrize("fusion", ["round_robin", "zip"])
def test_parts_are_lowered_one_by_one(fusion):
    parts = {
        "long": planning(leaves=LEAVES[:1], finite=False),
        "short": planning(
            Batching(micro_batches_per_step=2, batch_duration_us=30 * SECOND),
            leaves=LEAVES[1:],
            finite=False,
        ),
    }

    class Sum(Memory):
        """What the parts of a batch take, one beside the other."""

        def __call__(self, batch):
            cost = 0
            for number in {n for n, _ in batch["rows"]}:
                own = {"rows": [row for row in batch["rows"] if row[0] == number]}
                cost += len(own["rows"]) * longest(own)
            if cost > self.budget:
                raise MemoryError

    one = loader(plan=fused(parts, fusion, [1, 1]))
    result = quietly(one, Sum(75 if fusion == "zip" else 45))
    assert set(result.lowered) == {"long.bucket_batch_size"}
    assert result.lowered["long.bucket_batch_size"][2] < 5
    # What comes later may be longer by a little than what was looked at.
    memory = Sum(78 if fusion == "zip" else 47)
    for batch in take(one, 60):
        memory(batch)


def _rank(rank, folder, results):
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=2
    )
    try:
        one = loader(rank=rank, world_size=2)
        # The second card has less room: what it cannot take, nobody takes.
        memory = Memory(1000 if rank == 0 else 45)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", UserWarning)
            result = rehearse(one, memory)
        batches = take(one, 20)

        def step(batch):
            if rank == 1:
                raise RuntimeError("a wire is loose")

        try:
            rehearse(loader(rank=rank, world_size=2), step)
        except Exception as error:  # noqa: BLE001
            failed = f"{type(error).__name__}: {error}"
        results.put((rank, dict(result.lowered), memory.seen, batches, len(said), failed))
    finally:
        torch.distributed.destroy_process_group()


def test_ranks_agree(tmp_path):
    context = mp.get_context("fork")
    results = context.Queue()
    ranks = [context.Process(target=_rank, args=(n, tmp_path, results)) for n in range(2)]
    for process in ranks:
        process.start()
    got = sorted(results.get(timeout=60) for _ in ranks)
    for process in ranks:
        process.join(timeout=60)
        assert process.exitcode == 0
    (_, lowered, seen, first, said, failed), (_, other, other_seen, second, quiet, raised) = got
    assert lowered == other
    assert lowered["bucket_batch_size"][2] < 5
    assert seen == other_seen
    assert (said, quiet) == (1, 0)
    assert "failed in rehearsal on another rank" in failed
    assert raised == "RuntimeError: a wire is loose"
    memory = Memory(45)
    for batch in first + second:
        memory(batch)
    assert all(one["step"] == two["step"] for one, two in zip(first, second, strict=True))
