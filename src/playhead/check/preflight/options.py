"""Rules on the options of a section."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from playhead.check.preflight.changes import diff, spot_of
from playhead.check.preflight.reading import faults_of, notes_of
from playhead.check.preflight.rule import Seen, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.check.preflight.subject import Subject
    from playhead.config import Options

__all__ = ["is_limited"]

# Longer than this no sample is: who writes more means milliseconds.
_LONGEST_SAMPLE = 7200.0
_LONGEST_BATCH = 100_000.0

# What can limit a batch.
_LIMITS = (
    *("batch_size", "batch_duration", "batch_tokens"),
    *("bucket_batch_size", "bucket_duration_bins"),
)


@rule("seed-drawn", "warning", "Two runs of a config with a drawn seed train in other orders", 33)
def seed_drawn(subject: Subject) -> Iterator[Seen]:
    """Seeds that are drawn at the start."""
    for _, options, _, spot in subject.parts:
        if isinstance(options.seed, str):
            yield Seen(
                f"`seed` is {options.seed}: it is drawn at a start without a checkpoint, and kept"
                " by checkpoints",
                str(spot.at("seed")),
                diff(spot, add={"seed": 0}),
                "Give a whole number",
            )


@rule(
    "finite-training", "warning", "A finite pass takes every sample once, whatever its weight", 35
)
def finite_training(subject: Subject) -> Iterator[Seen]:
    """Training sections that end."""
    if subject.is_evaluation:
        return
    for _, options, blend, spot in subject.parts:
        if options.force_finite:
            yield Seen(
                "`force_finite` is true in a training section",
                str(spot.at("force_finite")),
                diff(spot, remove=("force_finite",)),
                "Leave it out to train without end; keep it where the training loop counts epochs",
            )
        elif blend.finite and not options.metadata_only and blend.leaves:
            yield Seen(
                "the only source is no archive and stands outside any mixture: a pass over it ends",
                str(spot),
                advice="Let the training loop iterate again after each pass",
                severity="note",
            )


@rule("metadata-only", "fail", "A model cannot be trained on rows without their audio", 41)
def metadata_only(subject: Subject) -> Iterator[Seen]:
    """Training sections that read no audio."""
    for _, options, _, spot in subject.parts:
        if options.metadata_only and not subject.is_evaluation:
            yield Seen(
                "`metadata_only` is true in a training section",
                str(spot.at("metadata_only")),
                diff(spot, remove=("metadata_only",)),
            )


@rule("batch-limit", "fail", "Without a limit no batch can be made", 38)
def batch_limit(subject: Subject) -> Iterator[Seen]:
    """Sections in which nothing limits a batch."""
    refused = {spot_of(fault.where) for fault in subject.faults}
    for _, options, _, spot in () if subject.is_bare else subject.parts:
        # A limit that cannot be one is said by itself.
        if is_limited(options) or not refused.isdisjoint(map(spot.at, _LIMITS)):
            continue
        wanted = (
            {"batch_tokens": 8192} if options.use_multimodal_sampling else {"batch_duration": 600.0}
        )
        yield Seen(
            "nothing limits a batch"
            + (
                ": batch_duration means nothing to use_multimodal_sampling"
                if options.batch_duration is not None
                else ""
            ),
            str(spot),
            diff(spot, add=wanted),
            f"Set {next(iter(wanted))}, batch_size, or bucket_duration_bins with bucket_batch_size",
        )


def is_limited(options: Options) -> bool:
    """Whether anything limits a batch."""
    in_tokens = options.use_multimodal_sampling
    return (
        options.batch_size is not None
        or (options.batch_duration is not None and not in_tokens)
        or (options.bucket_batch_size is not None and options.bucket_duration_bins is not None)
        or (options.batch_tokens is not None and in_tokens)
    )


@rule("options-elsewhere", "note", "A list of entries has no room for options of a loader")
def options_elsewhere(subject: Subject) -> Iterator[Seen]:
    """Configs that are lists of entries."""
    if subject.is_bare:
        yield Seen(
            "the config is a list of entries: limits of batches, workers and all other options are"
            " those that the training script gives, and are not looked at",
            str(subject.section),
            advice="Write them beside `input_cfg:` in a section to have them looked at",
        )


@rule("bins", "fail", "Each length class needs its border and its size", 38)
def bins(subject: Subject) -> Iterator[Seen]:
    """Bins and sizes that do not fit together."""
    yield from faults_of(subject, "bins")


@rule("longer-than-bins", "warning", "Samples above the last bin are dropped", 39)
def longer_than_bins(subject: Subject) -> Iterator[Seen]:
    """Longest samples above the last of bins with sizes."""
    for seen in notes_of(subject, "longer-than-bins"):
        yield seen._replace(where=str(subject.section.at("max_duration")), change=_cap(subject))


def _cap(subject: Subject) -> tuple[str, ...]:
    for _, options, _, spot in subject.parts:
        edges = options.bucket_duration_bins or ()
        if edges and not options.use_multimodal_sampling:
            last = edges[-1]
            last = last[0] if isinstance(last, tuple) else last
            return diff(spot, add={"max_duration": last})
    return ()


@rule("longer-than-batch", "warning", "A sample above the limit of a batch comes alone", 39)
def longer_than_batch(subject: Subject) -> Iterator[Seen]:
    """Longest samples above the limit of a batch."""
    for _, options, _, spot in subject.parts:
        limit, most = options.batch_duration, options.max_duration
        if options.use_multimodal_sampling or limit is None or most is None or not isfinite(most):
            continue
        if most > limit and options.oversize == "alone":
            yield Seen(
                f"`max_duration` {most:g} s is above `batch_duration` {limit:g} s",
                str(spot.at("max_duration")),
                diff(spot, add={"max_duration": limit}),
                "Lower it, raise batch_duration, or set oversize: drop",
            )


@rule("packed-limit", "warning", "A packed sequence holds no sample longer than itself", 39)
def packed_limit(subject: Subject) -> Iterator[Seen]:
    """Packing without a bound on samples."""
    for _, options, _, spot in subject.parts:
        limit, most = options.batch_tokens, options.max_tokens
        if not options.use_packed_sequence_sampling or limit is None or options.oversize == "drop":
            continue
        if most is None or most > limit:
            yield Seen(
                f"`max_tokens` is {'not set' if most is None else f'{most:g}'} and a packed"
                f" sequence has {limit} tokens: a longer sample ends the run at its start",
                str(spot.at("max_tokens")),
                diff(spot, add={"max_tokens": limit}),
                "Set it to batch_tokens or below (of cuts, max_duration), or set oversize: drop",
            )


@rule("units", "warning", "Durations are seconds; in other units every limit is off by far")
def units(subject: Subject) -> Iterator[Seen]:
    """Durations that look like milliseconds or samples."""
    for _, options, _, spot in subject.parts:
        for name, most in (
            ("batch_duration", _LONGEST_BATCH),
            ("max_duration", _LONGEST_SAMPLE),
            ("min_duration", _LONGEST_SAMPLE / 10),
            ("truncate_duration", _LONGEST_SAMPLE),
            ("pad_min_duration", _LONGEST_SAMPLE),
            ("token_equivalent_duration", 10.0),
        ):
            value = getattr(options, name)
            if value is not None and isfinite(value) and value > most:
                yield Seen(
                    f"`{name}` is {value:g} seconds",
                    str(spot.at(name)),
                    diff(spot, add={name: value / 1000}),
                    "Write seconds",
                )


@rule("no-workers", "warning", "The training process makes batches itself while the GPU waits")
def no_workers(subject: Subject) -> Iterator[Seen]:
    """Training without worker processes."""
    for _, options, _, spot in () if subject.is_bare else subject.parts:
        if not options.num_workers and not subject.is_evaluation:
            yield Seen(
                "`num_workers` is 0",
                str(spot.at("num_workers")),
                diff(spot, add={"num_workers": 4}),
                "Use `--fetch N --hours-per-hour X` to learn how many keep a GPU busy",
            )
