"""People read of a search what they know from searches by hand, and can paste what comes out."""

from __future__ import annotations

import ast

from playhead.fit.bounds import GivenBuckets
from playhead.fit.bucket import LengthRule, buckets_of
from playhead.fit.problem import Mix, Probe
from playhead.fit.profile import Profile
from playhead.fit.record import MixRecord, ProbeRecord
from playhead.fit.search import FoundBucket
from playhead.fit.text import (
    begin_line,
    final_lines,
    found_lines,
    merge_lines,
    mix_line,
    probe_line,
    settings_lines,
)
from playhead.fit.training import Training

GIB = 1 << 30


def profile(bounds, sizes):
    buckets = buckets_of(bounds, LengthRule(input_rate=16_000))
    found = tuple(
        FoundBucket(
            bucket=bucket,
            batch_size=size,
            allocated=None,
            reserved=None,
            is_measured=False,
            probes=0,
            seconds=0,
        )
        for bucket, size in zip(buckets, sizes, strict=True)
    )
    return Profile.of(found, GivenBuckets(bounds=tuple(bounds)), {})


def test_a_probe_has_its_lengths_its_memory_and_its_verdict():
    [bucket] = buckets_of([10], LengthRule(input_rate=16_000))
    begin = begin_line(Probe(bucket=0, batch_size=4), [bucket])
    assert begin == "bucket=10 (input=160000 output=120) batch_size=4:"
    fits = ProbeRecord(
        bucket=0, batch_size=4, budget=4 * GIB, status="ok", allocated=GIB, reserved=2 * GIB
    )
    assert probe_line(fits) == "  tensors 1.00 GiB, allocator 2.00 GiB of 4.00 GiB, 0.0 s  OK!"
    reason = "CUDA out of memory. " + "Tried to allocate a lot. " * 30
    oom = ProbeRecord(
        bucket=0, batch_size=8, budget=GIB, status="oom", predicted=GIB, reason=reason
    )
    assert "  predicted 1.00 GiB, 0.0 s  OOM!  CUDA out of memory." in probe_line(oom)
    assert len(probe_line(oom)) < 250
    lost = ProbeRecord(bucket=0, batch_size=8, budget=GIB, status="lost", reason="it hung")
    assert probe_line(lost) == "  0.0 s  NO ANSWER!  it hung"


def test_a_mix_says_how_far_it_came_and_where_it_failed():
    buckets = buckets_of([(5, 40), (10, 60)], LengthRule(input_rate=16_000))
    begin = begin_line(Mix(sizes=(8, 0), steps=200, seed=0), buckets)
    assert begin == "200 steps over a mix of 1 buckets, at batch sizes from 8 to 8:"
    record = MixRecord(sizes=(8, 4), steps=200, budget=GIB, status="oom", done=17, failed=1)
    assert mix_line(record, buckets) == (
        "  17 of 200 steps, then bucket=[10,60] (input=160000 output=60), 0.0 s  OOM!"
    )


def test_what_was_found_bucket_by_bucket():
    lines = found_lines(profile([5, 10, 20], [8, 4, 0]).found)
    assert lines == [
        "=> Not even one sample fits for bucket=20 (input=320000 output=240)",
        "=> Optimal setting for bucket=10 (input=160000 output=120) is max_batch_size=4",
        "=> Optimal setting for bucket=5 (input=80000 output=60) is max_batch_size=8",
        "The 1st stage profile is:",
        "bucket=5 (input=80000 output=60) => batch_size=8",
        "bucket=10 (input=160000 output=120) => batch_size=4",
        "bucket=20 (input=320000 output=240) => batch_size=0",
    ]


def test_merges_are_named_and_the_lists_can_be_pasted():
    found = profile([5, 10.5, 20, 30], [8, 4, 4, 4])
    assert merge_lines(found) == [
        "Bucket merging stage...",
        "Merging bucket 10.5 into 20: both take batch_size=4",
        "Merging bucket 20 into 30: both take batch_size=4",
    ]
    title, bins, sizes = final_lines(found)
    assert title == "The final profile is:"
    assert bins == "\tbucket_duration_bins=[5,30]"
    assert sizes == "\tbucket_batch_size=[8,4]"


def test_pairs_are_not_merged_and_no_merging_is_said():
    found = profile([(5, 40), (10, 60)], [4, 4])
    assert merge_lines(found) == []
    _, bins, _ = final_lines(found)
    assert ast.literal_eval(bins.partition("=")[2]) == [[5, 40], [10, 60]]


def test_settings_say_what_is_counted():
    lines = settings_lines(Training(), memory=80 * GIB, fraction=0.9, budget=72 * GIB)
    assert lines == [
        "Memory: 72.00 GiB, for a share of 0.9 of 80.00 GiB",
        "DDP: one copy of the gradients is counted",
        "dtype: bfloat16",
    ]
    training = Training(ddp=False, ema=True, accumulate=4)
    _, ddp, _ = settings_lines(training, memory=GIB, fraction=1, budget=GIB)
    assert ddp == "DDP: not counted, and an average of the weights, 4 micro-batches a step"
