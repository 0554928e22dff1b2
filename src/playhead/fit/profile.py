"""The profile: batch sizes that fit, as a config takes them, and how they were found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml

from playhead.fit.amounts import shown_amount
from playhead.fit.sizes import merged
from playhead.storage.atomic import atomic_write

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from playhead.fit.bounds import GivenBuckets
    from playhead.fit.bucket import Bound
    from playhead.fit.search import FoundBucket
    from playhead.fit.sizes import Merge

__all__ = ["Profile"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Profile:
    """Batch sizes that fit, and everything that a config says beside them."""

    found: tuple[FoundBucket, ...]
    """Every bucket that was asked for, in the order of the config."""
    bounds: tuple[Bound, ...]
    """`bucket_duration_bins`: those of the buckets that take anything, without merged ones."""
    sizes: tuple[int, ...]
    """`bucket_batch_size`."""
    merges: tuple[Merge, ...] = ()
    """Which buckets became part of which."""
    beside: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Options that the buckets were made with, as a config has them."""
    facts: Mapping[str, str] = field(default_factory=dict[str, str])
    """What the sizes were found for and with, by name: comments of the file."""

    @classmethod
    def of(
        cls,
        found: Sequence[FoundBucket],
        given: GivenBuckets,
        facts: Mapping[str, str],
        most: int | None = None,
    ) -> Profile:
        """Return the profile of what a search found.

        Parameters
        ----------
        found
            Every bucket, in the order of the config.
        given
            What was asked for. Where an option gives each bucket a limit of its own, as `max_tps`
            may, neighbours of equal size are not merged.
        facts
            What the sizes were found for and with, by name.
        most
            The largest size that was allowed; None where none was in the way.
        """
        fitting = [number for number, one in enumerate(found) if one.batch_size]
        bounds = tuple(found[number].bucket.bound for number in fitting)
        sizes = tuple(found[number].batch_size for number in fitting)
        merges: tuple[Merge, ...] = ()
        if not given.have_own_limits:
            bounds, sizes, merges = merged(bounds, sizes, most)
        beside = {
            name: [value[number] for number in fitting] if isinstance(value, list) else value
            for name, value in given.beside.items()
        }
        longest = max((_first(bound) for bound in bounds), default=0)
        if longest < max(_first(one.bucket.bound) for one in found) and "max_duration" in beside:
            # What the longest bucket cannot take is refused by name.
            beside["max_duration"] = min(beside["max_duration"], longest)
        return cls(
            found=tuple(found),
            bounds=bounds,
            sizes=sizes,
            merges=merges,
            beside=beside,
            facts=facts,
        )

    @property
    def options(self) -> dict[str, Any]:
        """Everything that a config needs, by the names of its options."""
        return {
            "use_bucketing": True,
            "num_buckets": len(self.bounds),
            "bucket_duration_bins": _plain(self.bounds),
            "bucket_batch_size": list(self.sizes),
            "batch_size": None,
            **{name: _plain(value) for name, value in self.beside.items()},
        }

    @property
    def lines(self) -> tuple[str, str]:
        """The two lists as one pastes them into a config or a command, without spaces."""
        return (
            f"bucket_duration_bins={_flow(_plain(self.bounds)).replace(' ', '')}",
            f"bucket_batch_size={_flow(list(self.sizes)).replace(' ', '')}",
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
                "measured": one.is_measured,
            }
            for one in self.found
        ]
        return {"options": self.options, "facts": dict(self.facts), "buckets": buckets}


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


def _peak(one: FoundBucket) -> str:
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
    how = "measured" if one.is_measured else "estimated"
    said = f", {', '.join(peaks)} ({how})" if peaks else ", not measured"
    return f"{about}: {one.batch_size}{said}"
