"""Digests of whole batches, tensors, texts and all, and what was in them."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import msgspec

from playhead.check.facts import facts_of
from playhead.storage.atomic import atomic_write

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.check.facts import Facts

__all__ = ["FullSummary", "digest_of"]

_MOST_NAMED = 100


def digest_of(facts: Facts) -> str:
    """Return the SHA-256 of all that can be compared of a batch.

    Parameters
    ----------
    facts
        What it holds, as `playhead.check.facts.facts_of` takes it down.

    Examples
    --------
    >>> from playhead.check.facts import facts_of
    >>> digest_of(facts_of({"n": 1})) == digest_of(facts_of({"n": 1.0}))
    False
    """
    digest = hashlib.sha256()
    for path, fact in facts.items():
        # Lengths come first, so that no two batches give the same bytes.
        name = f"{path} {fact.kind}".encode("utf-8", "surrogatepass")
        digest.update(b"%d %d " % (len(name), len(fact.data)) + name)
        digest.update(fact.data)
    return digest.hexdigest()


class FullSummary:
    """What the batches of a rank held."""

    def __init__(self) -> None:
        self._all = hashlib.sha256()
        self._batches = self._samples = self._bytes = 0
        self._fields: dict[str, str] = {}
        self._not_compared: dict[str, str] = {}

    def add(self, batch: Any, samples: int) -> str:
        """Take down a batch of so many samples; return its digest."""
        facts = facts_of(batch)
        digest = digest_of(facts)
        self._all.update(digest.encode())
        self._batches += 1
        self._samples += samples
        for path, fact in facts.items():
            self._bytes += len(fact.data)
            if not fact.is_comparable and len(self._not_compared) < _MOST_NAMED:
                self._not_compared[path] = f"{fact.kind}: {fact.shown}"
            # What the dataset gives at the top: what lies deeper follows from the samples.
            if path.count("[") == 1 and path.endswith("]") and len(self._fields) < _MOST_NAMED:
                self._fields.setdefault(path, fact.kind)
        return digest

    def write(self, path: Path) -> None:
        """Write it as JSON; the file is whole or not there."""
        summary = {
            "batches": self._batches,
            "samples": self._samples,
            "bytes": self._bytes,
            "digest": self._all.hexdigest(),
            "fields": self._fields,
            "not_compared": self._not_compared,
        }
        with atomic_write(path) as file:
            file.write(msgspec.json.format(msgspec.json.encode(summary), indent=2) + b"\n")
