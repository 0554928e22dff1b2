"""The profile: batch sizes that fit, as a config takes them, and how they were found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml

from playhead.fit.amounts import shown_amount
from playhead.storage.atomic import atomic_write

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from playhead.fit.bucket import Bound, Bucket

__all__ = ["FittedBucket", "Profile", "merged"]


@dataclass(frozen=True, kw_only=True, slots=True)
class FittedBucket:
    """A bucket, the largest batch that it can take, and the memory that this takes."""

    bucket: Bucket
    """The bucket."""
    batch_size: int
    """Samples of its batches; 0 where not even one fits."""
    allocated: int | None = None
    """Most that tensors hold at once (bytes); None where nothing says it."""
    reserved: int | None = None
    """Most that the allocator holds at once (bytes); None likewise."""
    measured: bool = False
    """Whether steps of that size were done; else the peaks follow from those of other sizes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Profile:
    """Batch sizes that fit, and everything that a config says beside them."""

    found: tuple[FittedBucket, ...]
    """Every bucket that was asked for, in the order of the config."""
    kept: tuple[int, ...]
    """Numbers of those in the lists of the config: none that was merged or that fits nothing."""
    beside: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Options that the buckets were made with, as a config has them."""
    facts: Mapping[str, str] = field(default_factory=dict[str, str])
    """What the sizes were found for and with, by name: comments of the file."""

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """`bucket_duration_bins`."""
        return tuple(self.found[number].bucket.bound for number in self.kept)

    @property
    def sizes(self) -> tuple[int, ...]:
        """`bucket_batch_size`."""
        return tuple(self.found[number].batch_size for number in self.kept)

    @property
    def options(self) -> dict[str, Any]:
        """Everything that a config needs, by the names of its options."""
        return {
            "use_bucketing": True,
            "num_buckets": len(self.kept),
            "bucket_duration_bins": _plain(self.bounds),
            "bucket_batch_size": list(self.sizes),
            "batch_size": None,
            **{name: self._beside(name) for name in self.beside},
        }

    @property
    def lines(self) -> tuple[str, str]:
        """The two lists as one pastes them into a config."""
        return (
            f"bucket_duration_bins={_flow(_plain(self.bounds))}",
            f"bucket_batch_size={_flow(list(self.sizes))}",
        )

    def to_yaml(self) -> str:
        """Return the profile as YAML: options that a section takes, and comments."""
        facts = [f"# {name}: {_one_line(value)}" for name, value in self.facts.items()]
        options = [f"{name}: {_flow(value)}" for name, value in self.options.items()]
        peaks = [f"#   {_peak(one)}" for one in self.found]
        lines = ["# Batch sizes that fit.", *facts, *options, "# Peaks of memory:", *peaks]
        return "\n".join(lines) + "\n"

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the profile, whole or not at all.

        Parameters
        ----------
        path
            A `.yaml` file.
        """
        with atomic_write(path) as file:
            file.write(self.to_yaml().encode())

    def to_json(self) -> dict[str, Any]:
        """Return the profile as JSON types: options, facts, and each bucket with its peaks."""
        buckets = [
            {
                "bucket": _plain(one.bucket.bound),
                "input_length": one.bucket.input_length,
                "output_length": one.bucket.output_length,
                "batch_size": one.batch_size,
                "allocated": one.allocated,
                "reserved": one.reserved,
                "measured": one.measured,
            }
            for one in self.found
        ]
        return {"options": self.options, "facts": dict(self.facts), "buckets": buckets}

    def _beside(self, name: str) -> Any:
        value = _plain(self.beside[name])
        if isinstance(value, list):
            return [value[number] for number in self.kept]
        longest = max((_first(bound) for bound in self.bounds), default=value)
        # Where the longest bucket fits nothing, its samples are refused by name, not dropped.
        is_length = name == "max_duration" and longest < max(
            _first(one.bucket.bound) for one in self.found
        )
        return min(value, longest) if is_length else value


def merged(sizes: Sequence[int], *, apart: bool = False) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Merge neighbours of equal size: the longer bucket takes what the shorter ones take.

    Parameters
    ----------
    sizes
        Batch size of each bucket, in the order of the config.
    apart
        Keep them all apart, as buckets of two lengths or with limits of their own must be.

    Returns
    -------
    kept
        Numbers of the buckets that are left, without those of size 0.
    gone
        Numbers of the buckets that were merged into the next one.

    Examples
    --------
    >>> merged([8, 4, 4, 4, 1, 0])
    ((0, 3, 4), (1, 2))
    """
    fitting = [number for number, size in enumerate(sizes) if size]
    gone = (
        []
        if apart
        else [
            number
            for number in fitting
            if number + 1 < len(sizes) and sizes[number] == sizes[number + 1]
        ]
    )
    return tuple(number for number in fitting if number not in gone), tuple(gone)


def _first(bound: Bound) -> float:
    return bound[0] if isinstance(bound, tuple) else bound


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


def _flow(value: Any) -> str:
    """Return a value on one line of YAML."""
    text: str = yaml.safe_dump(value, default_flow_style=True, width=float("inf"))
    return text.removesuffix("\n...\n").rstrip("\n")


def _one_line(value: str) -> str:
    return " ".join(value.split())


def _peak(one: FittedBucket) -> str:
    bucket = one.bucket
    about = (
        f"{_flow(_plain(bucket.bound))} (input={bucket.input_length} output={bucket.output_length})"
    )
    if not one.batch_size:
        return f"{about}: NOT EVEN ONE FITS, and the lists above have no such bucket"
    peaks = [
        f"{name} {shown_amount(amount)}"
        for name, amount in (("tensors", one.allocated), ("allocator", one.reserved))
        if amount is not None
    ]
    how = "measured" if one.measured else "estimated"
    said = f", {', '.join(peaks)} ({how})" if peaks else ", not measured"
    return f"{about}: {one.batch_size}{said}"
