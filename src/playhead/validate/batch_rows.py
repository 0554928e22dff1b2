"""From a batch to its line in a log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from playhead.plan.verdicts import side_column
from playhead.validate.places import leaf_names, leaf_words, places_of
from playhead.validate.rows import BatchRow

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from playhead.loader.fusion import FusedPlanning
    from playhead.loader.ranks import Topology
    from playhead.loader.run import Planning
    from playhead.plan import LeafColumns, MicroBatch
    from playhead.plan.settings import Shape

__all__ = ["BatchRows"]

_US = 1e6


class BatchRows:
    """Makes lines of the batches of one rank.

    Parameters
    ----------
    planning
        What is planned.
    topology
        Whose batches they are.
    """

    def __init__(self, planning: Planning | FusedPlanning, topology: Topology) -> None:
        self._topology = topology
        self._words = leaf_words(planning)
        self._names = leaf_names(planning)
        self._leaves: list[tuple[LeafColumns, Shape]] = [
            (leaf, part.shape) for part in planning.parts.values() for leaf in part.leaves
        ]

    def of(
        self, batch: Any, *, step: int, wait_ms: float, stood_for: MicroBatch | None = None
    ) -> BatchRow:
        """Return the line of a batch.

        Parameters
        ----------
        batch
            What a `playhead.validate.watched.Watched` made.
        step
            Batches that this rank was given before.
        wait_ms
            How long it was waited for (ms).
        stood_for
            The samples whose place it takes, as none of them can be read; None where it is itself.
        """
        info, origin = batch["playhead"], batch["origin"]
        once = ~np.array(info.repeated, dtype=np.bool_)
        samples = origin.samples
        places = self._places(samples)
        ids = _ids(batch["batch"], len(once))
        return BatchRow(
            step=step,
            rank=self._topology.rank,
            world_size=self._topology.world_size,
            worker_id=origin.worker,
            cut_ids=_kept(places, once),
            batch_size=len(once),
            t_total_ms=wait_ms,
            t_first_batch_ms=None if step else wait_ms,
            semantic_cut_ids=_kept(ids, once) if ids else (),
            source_ids=_kept([self._names[leaf] for leaf in samples.leaf.tolist()], once),
            declared_duration_seconds=self._seconds(samples),
            sampled_num_tokens=self._tokens(samples),
            of_step=info.step,
            slot=info.slot,
            repeated=int(np.count_nonzero(~once)),
            left_out=self._left_out(origin.left_out if stood_for is None else stood_for),
        )

    def _places(self, samples: MicroBatch) -> tuple[str, ...]:
        return places_of(self._words, samples.leaf, samples.pass_, samples.row, samples.part)

    def _left_out(self, lost: MicroBatch | None) -> tuple[str, ...]:
        # Of a sample that a pass repeats it is no matter whether it can be read again.
        return () if lost is None else _kept(self._places(lost), ~lost.repeated)

    def _seconds(self, samples: MicroBatch) -> float:
        lengths = self._column(samples, lambda leaf, _: leaf.duration_us)
        if samples.span_us is not None:
            lengths = np.where(samples.span_us < 0, lengths, samples.span_us)
        return round(float(lengths.clip(0).sum()) / _US, 6)

    def _tokens(self, samples: MicroBatch) -> int | None:
        shapes = [self._leaves[leaf][1] for leaf in set(samples.leaf.tolist())]
        if any(shape.tokens is None for shape in shapes) or samples.text_window is not None:
            return None
        tokens = self._column(
            samples, lambda leaf, shape: side_column(leaf, shape.tokens or "", "tokens")
        )
        return int(tokens.sum())

    def _column(self, samples: MicroBatch, column: Any) -> NDArray[np.int64]:
        """A column of the leaves, at the rows of the samples."""
        found = np.empty(len(samples.row), dtype=np.int64)
        for number in set(samples.leaf.tolist()):
            here = samples.leaf == number
            found[here] = column(*self._leaves[number])[samples.row[here]]
        return found


def _kept(values: Any, once: NDArray[np.bool_]) -> tuple[str, ...]:
    return tuple(value for value, keep in zip(values, once.tolist(), strict=True) if keep)


def _ids(batch: Any, count: int) -> list[str]:
    """What the dataset calls the samples, where it says so for each."""
    ids = batch.get("ids") if isinstance(batch, dict) else None
    if not isinstance(ids, (list, tuple)) or len(ids) != count:
        return []
    return [str(one) for one in ids]
