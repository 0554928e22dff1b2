"""What a training run logs of its data: a flat dict of numbers, for any logger."""

from __future__ import annotations

import re
from collections import Counter
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from playhead.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from playhead.loader.loader import Loader
    from playhead.loader.measures import LeafMeasures, Measures

__all__ = ["DataLog", "safe_names"]

_UNSAFE = re.compile(r"[^A-Za-z0-9_.\-]+")
_LONGEST_NAME = 80


class DataLog:
    """Figures of a loader for a logger, of the interval since they were last asked for.

    All are numbers, and none is NaN: what there is nothing to say of is left out. Which are of all
    ranks, and which of this rank alone (`data/rank/…`), is in the table of `docs/logging.md`.

    Parameters
    ----------
    loader
        Whose figures they are.
    prefix
        What all names begin with.
    most_leaves
        How many sources are named at most: those with the largest drift.

    Raises
    ------
    ConfigError
        When `most_leaves` is below 0.
    """

    def __init__(self, loader: Loader, *, prefix: str = "data/", most_leaves: int = 20) -> None:
        if most_leaves < 0:
            raise ConfigError(
                f"most_leaves is {most_leaves}, and there cannot be fewer than 0 sources",
                fix="Give 0 or more",
            )
        self._loader = loader
        self._prefix = prefix
        self._most_leaves = most_leaves
        self._before = loader.measures()
        leaves = loader.planning.leaves
        self._names = safe_names([leaf.name for leaf in leaves], [leaf.key for leaf in leaves])

    def figures(self) -> dict[str, float]:
        """Return what is logged now; the next interval begins here."""
        now = self._loader.measures()
        interval, self._before = now.since(self._before), now
        found = dict(_standing(now))
        found.update(_of_interval(interval))
        found.update(self._of_leaves(now.leaves))
        return {f"{self._prefix}{name}": value for name, value in found.items()}

    def _of_leaves(self, leaves: LeafMeasures) -> Iterator[tuple[str, float]]:
        drift, passes = leaves.drift, leaves.passes
        if passes is None:
            return
        shown = np.argsort(-np.abs(drift), kind="stable")[: self._most_leaves]
        for place in np.sort(shown).tolist():
            yield f"drift/{self._names[place]}", float(drift[place])
            yield f"passes/{self._names[place]}", float(passes[place])
        yield "drift_largest", float(np.abs(drift).max())
        yield "drift_total", leaves.misplaced
        drawn = passes[leaves.target > 0]
        if len(drawn):
            yield "passes_fewest", float(drawn.min())
            yield "passes_most", float(drawn.max())
        yield "sources", len(drift)
        yield "sources_unnamed", len(drift) - len(shown)


def _standing(now: Measures) -> Iterator[tuple[str, float]]:
    """Where training stands, and what was counted since the loader was made."""
    yield "step", now.step
    for blend, window in now.windows.items():
        yield f"window/{blend}" if blend else "window", window
    for reason, count in now.dropped.items():
        yield f"dropped/{_safe(reason)}", count
    yield "repeated_samples", now.repeated_samples
    yield "rank/bad_samples", now.rank.bad_samples
    yield "rank/repeated_batches", now.rank.repeated_batches


def _of_interval(interval: Measures) -> Iterator[tuple[str, float]]:
    """What was given in an interval, and how fast."""
    for name, padding in (
        ("padding_seconds", interval.padding_us),
        ("padding_tokens", interval.padding_tokens),
    ):
        if padding.share is not None:
            yield name, padding.share
    if interval.seconds <= 0:
        return
    yield "rank/wait_share", interval.rank.waited / interval.seconds
    if not interval.steps:
        return
    yield "rank/wait_seconds_per_step", interval.rank.waited / interval.steps
    yield "samples_per_second", interval.samples / interval.seconds
    if interval.audio_us:
        yield "hours_per_second", interval.hours / interval.seconds
        yield "hours_per_hour", 3600 * interval.hours / interval.seconds
    if interval.tokens:
        yield "tokens_per_second", interval.tokens / interval.seconds


def safe_names(names: Sequence[str], keys: Sequence[str]) -> list[str]:
    """Return names that every logger takes: letters, digits, `_`, `.` and `-`, none of them twice.

    Where two would be the same or one would be longer than 80 characters, the key is added; and
    where that is not enough, as for a source that several blends have, a digest of both.

    Parameters
    ----------
    names
        What sources are called.
    keys
        Their keys, which say the same source in every run.

    Examples
    --------
    >>> safe_names(["clean/train", "dialogue, far", "dialogue: far"], ["a1", "b2", "c3"])
    ['clean.train', 'dialogue_far-b2', 'dialogue_far-c3']
    """
    safe = [_safe(name.replace("/", ".")) for name in names]
    times = Counter(safe)
    unique: list[str] = []
    for name, key in zip(safe, keys, strict=True):
        if times[name] > 1 or len(name) > _LONGEST_NAME or not name:
            unique.append(f"{name[:_LONGEST_NAME]}-{_safe(key)}")
        else:
            unique.append(name)
    times = Counter(unique)
    return [
        one if times[one] == 1 else f"{one}-{_digest(name, key)}"
        for one, name, key in zip(unique, names, keys, strict=True)
    ]


def _digest(name: str, key: str) -> str:
    return blake2b(f"{key} {name}".encode(errors="surrogatepass"), digest_size=4).hexdigest()


def _safe(name: str) -> str:
    return _UNSAFE.sub("_", name)
