"""Two runs side by side: which batches only one of them has, and which hold something else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from playhead.validate.answer import MOST_EXAMPLES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from playhead.validate.reading import Run

__all__ = ["Difference", "Stretch", "compare", "places"]

# More batches than a rank can have: places of ranks do not meet.
_MOST_BATCHES = 1 << 40
_MOST_NAMES = 3


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Stretch:
    """Some batches of a run, and where each belongs."""

    run: Run
    """The run."""
    batches: NDArray[np.int64]
    """Which batches; shape (n,)."""
    places: NDArray[np.int64]
    """Where each belongs, which no two share: batches of two runs with one place are compared;
    shape (n,)."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Difference:
    """How the batches of a run differ from those that were expected; all in order of places."""

    expected: Stretch
    """What was expected."""
    found: Stretch
    """What came."""
    both: int
    """Batches that both have."""
    missing: NDArray[np.int64]
    """Numbers in `expected` of batches that did not come."""
    extra: NDArray[np.int64]
    """Numbers in `found` of batches that nobody expected."""
    other_samples: NDArray[np.int64]
    """Numbers in both of batches with other samples, or in another order; shape (n, 2)."""
    other_content: NDArray[np.int64]
    """Numbers in both of batches with the same samples and other tensors; shape (n, 2)."""

    def examples(self, pairs: NDArray[np.int64]) -> list[dict[str, Any]]:
        """Some batches that differ, as people can look them up.

        Parameters
        ----------
        pairs
            Numbers in both; shape (n, 2).
        """
        return [self._example(*map(int, pair)) for pair in pairs[:MOST_EXAMPLES]]

    def first(self, pairs: NDArray[np.int64]) -> str:
        """Say where the first batch is that differs, in the run that was found.

        Parameters
        ----------
        pairs
            Numbers in both; shape (n, 2), n > 0.
        """
        place = self._example(*map(int, pairs[0]))["found"]
        return f"the first is step {place['step']} of rank {place['rank']}"

    def _example(self, expected: int, found: int) -> dict[str, Any]:
        ours, theirs = self.expected.run, self.found.run
        first, second = int(self.expected.batches[expected]), int(self.found.batches[found])
        before, after = ours.names_in(first), theirs.names_in(second)
        # They need not be sets: one sample may be there twice.
        gone, new = _without(before, after), _without(after, before)
        return {
            "expected": {"run": ours.name, **ours.place_of(first)},
            "found": {"run": theirs.name, **theirs.place_of(second)},
            "only_expected": gone[:_MOST_NAMES],
            "only_found": new[:_MOST_NAMES],
            "same_samples_in_another_order": not (gone or new) and before != after,
        }


def _without(names: Sequence[str], others: Sequence[str]) -> list[str]:
    known = set(others)
    return [name for name in names if name not in known]


def places(run: Run) -> NDArray[np.int64]:
    """Return where each batch belongs; shape (batches,).

    Of our logs it is the slot of its optimizer step, counted over all steps, so that it is the same
    on any ranks; of NeMo's it is its rank and step.
    """
    if run.meta is None:
        return run.rank * _MOST_BATCHES + run.step
    slots, ranks = run.meta.micro_batches_per_step, run.world_size
    step, turn = np.divmod(run.step, slots // ranks)
    return (run.meta.first_step + step) * slots + turn * ranks + run.rank


def compare(expected: Stretch, found: Stretch) -> Difference:
    """Compare batches that belong to the same places, and count those that have no other."""
    _, ours, theirs = np.intersect1d(
        expected.places, found.places, assume_unique=True, return_indices=True
    )
    first, second = expected.batches[ours], found.batches[theirs]
    pairs = np.stack([ours, theirs], axis=1)
    same = expected.run.batches[first] == found.run.batches[second]
    other_content = pairs[:0]
    if expected.run.digests is not None and found.run.digests is not None:
        other = expected.run.digests[first] != found.run.digests[second]
        other_content = pairs[same & other]
    return Difference(
        expected=expected,
        found=found,
        both=len(pairs),
        missing=_rest(expected, ours),
        extra=_rest(found, theirs),
        other_samples=pairs[~same],
        other_content=other_content,
    )


def _rest(stretch: Stretch, seen: NDArray[np.int64]) -> NDArray[np.int64]:
    left = np.ones(len(stretch.places), bool)
    left[seen] = False
    rest = np.flatnonzero(left)
    return rest[np.argsort(stretch.places[rest])]
