"""Batches that say which samples went into them, wherever they are made."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from torch.utils.data import get_worker_info

from playhead.fetch.bad import Holes, chosen, without
from playhead.fetch.info import BatchInfo

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.plan import MicroBatch

__all__ = ["Origin", "Watched"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
    """What went into a batch, and who made it."""

    samples: MicroBatch
    """The samples that it was made of."""
    left_out: MicroBatch | None
    """Those that belong to it and whose audio cannot be read; None where all can be."""
    worker: int
    """The worker process that made it; 0 where the rank does so itself."""


class Watched:
    """Makes batches as `fetch` does and says which samples it was given for each.

    What it returns is a dict of ``batch``, what `fetch` made; ``origin``, an `Origin`; and
    ``playhead``, a `BatchInfo`, which the loader corrects where a batch stands in for another.

    Parameters
    ----------
    fetch
        What makes a batch of a micro-batch.
    """

    def __init__(self, fetch: Callable[[MicroBatch], Any]) -> None:
        self._fetch = fetch

    def __call__(self, micro_batch: MicroBatch) -> Any:
        """Make the batch; see `playhead.fetch.Fetcher`."""
        made = self._fetch(micro_batch)
        if not isinstance(made, Holes):
            return _watched(made, micro_batch, None)
        if made.empty:
            return made
        left = without(micro_batch, made.places)
        lost = chosen(micro_batch, made.places)
        return replace(made, batch=_watched(made.batch, left, lost))


def _watched(batch: Any, samples: MicroBatch, left_out: MicroBatch | None) -> dict[str, Any]:
    worker = get_worker_info()
    origin = Origin(
        samples=samples, left_out=left_out, worker=0 if worker is None else int(worker.id)
    )
    dropped = 0 if left_out is None else len(left_out.row)
    info = BatchInfo.of(samples, dropped=dropped)
    return {"batch": batch, "origin": origin, "playhead": info}
