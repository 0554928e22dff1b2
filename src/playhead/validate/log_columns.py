"""The lines of logs, read strictly, as columns."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Annotated

import msgspec
import numpy as np

from playhead.errors import ConfigError
from playhead.validate.answer import said

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from playhead.validate.meta import RunMeta

__all__ = ["RUN_AGAIN", "LogColumns", "LogRow", "as_array", "decoded", "opened"]

RUN_AGAIN = "Run this phase again, into an empty folder"
"""What to do about logs that cannot be used."""

# What a run could never reach, and arrays of 64 bits hold with ease.
_Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 40)]


class LogRow(msgspec.Struct, frozen=True, gc=False):
    """What the questions ask about of a `playhead.validate.rows.BatchRow`.

    Logs that NeMo wrote have no more of it than down to `batch_size`.
    """

    step: _Count
    rank: _Count
    world_size: Annotated[int, msgspec.Meta(ge=1, le=1 << 20)]
    worker_id: Annotated[int, msgspec.Meta(ge=-1, le=1 << 20)]
    cut_ids: tuple[str, ...]
    batch_size: _Count
    of_step: _Count | None = None
    slot: _Count | None = None
    repeated: _Count = 0
    left_out: tuple[str, ...] = ()
    digest: str | None = None


def opened(log: Path) -> IO[bytes]:
    """Open a log.

    Raises
    ------
    ConfigError
        If it cannot be read.
    """
    try:
        return log.open("rb")
    except OSError as error:
        raise ConfigError(
            f"the log cannot be read: {error.strerror}", where=str(log), fix=RUN_AGAIN
        ) from error


def decoded(line: bytes, log: Path, number: int, decoder: msgspec.json.Decoder[LogRow]) -> LogRow:
    """Read a line of a log.

    Parameters
    ----------
    line
        The line, its end included.
    log, number
        Where it is; lines count from 1.
    decoder
        What reads it.

    Raises
    ------
    ConfigError
        If it is damaged.
    """
    try:
        return decoder.decode(line)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        if not line:
            what = "the log is empty"
        elif not line.endswith(b"\n"):
            what = "the last line of the log is cut off"
        else:
            what = f"the line is damaged: {error}"
        raise ConfigError(what, where=f"{log}:{number}", fix=RUN_AGAIN) from None


@dataclass(kw_only=True, slots=True)
class LogColumns:
    """The columns of a run while its logs are read one after the other; see `reading.Run`."""

    bounds: list[int] = field(default_factory=lambda: [0])
    """Where the batches of each rank begin, and the end."""
    worker: array[int] = field(default_factory=lambda: array("q"))
    """The worker of each batch."""
    sizes: array[int] = field(default_factory=lambda: array("q"))
    """How many samples belong to each, but for repeated ones."""
    given: array[int] = field(default_factory=lambda: array("q"))
    """How many it was made of, repeated ones among them."""
    batch_sizes: array[int] = field(default_factory=lambda: array("q"))
    """How many it says that it was made of."""
    of_step: array[int] = field(default_factory=lambda: array("q"))
    """The optimizer step of each; empty where logs do not say it."""
    slot: array[int] = field(default_factory=lambda: array("q"))
    """Its place in that step; the same."""
    batches: array[int] = field(default_factory=lambda: array("q"))
    """A hash of what is in each."""
    digests: array[int] = field(default_factory=lambda: array("q"))
    """A hash of all its tensors and texts; empty where they were not made."""
    samples: array[int] = field(default_factory=lambda: array("q"))
    """A hash of each sample, batch by batch."""
    left_out: int = 0
    """How many of them could not be read."""

    @property
    def are_ours(self) -> bool:
        """Whether batches say which step they belong to."""
        return bool(self.of_step)

    @property
    def have_digests(self) -> bool:
        """Whether batches were compared as a whole."""
        return bool(self.digests)

    def read(self, log: Path, rank: int, world_size: int) -> None:
        """Add what a rank wrote."""
        decoder = msgspec.json.Decoder(LogRow)
        number = 0
        with opened(log) as lines:
            for number, line in enumerate(lines, 1):
                row = decoded(line, log, number, decoder)
                if row.step != number - 1 or row.rank != rank or row.world_size != world_size:
                    what = _oddity(row, number - 1, rank, world_size)
                    raise ConfigError(what, where=f"{log}:{number}", fix=RUN_AGAIN)
                self._add(row)
        if not number:
            decoded(b"", log, 1, decoder)
        rows = len(self.sizes)
        for column in (self.of_step, self.slot, self.digests):
            # Some batches with it and some without: nobody writes that.
            if column and len(column) != rows:
                raise ConfigError("the log is of two kinds", where=str(log), fix=RUN_AGAIN)
        self.bounds.append(rows)

    def _add(self, row: LogRow) -> None:
        ids = row.cut_ids + row.left_out
        self.worker.append(row.worker_id)
        self.sizes.append(len(ids))
        self.given.append(len(row.cut_ids) + row.repeated)
        self.batch_sizes.append(row.batch_size)
        self.left_out += len(row.left_out)
        # A tuple of texts hashes to 64 bits that depend on all of them and on their order.
        self.batches.append(hash((row.cut_ids, row.left_out, row.repeated)))
        self.samples.extend(map(hash, ids))
        if row.of_step is not None:
            self.of_step.append(row.of_step)
        if row.slot is not None:
            self.slot.append(row.slot)
        if row.digest is not None:
            self.digests.append(hash(row.digest))

    def check(self, meta: RunMeta, logs: Sequence[Path]) -> None:
        """Compare them with what the run says of itself.

        Raises
        ------
        ConfigError
            If they are not what such a run would write.
        """
        ranks, where = len(logs), str(logs[0].parent)
        if meta.world_size != ranks or meta.micro_batches_per_step % ranks:
            what = f"the run had {said(meta.world_size, 'rank')}, and its logs are of {ranks}"
            raise ConfigError(what, where=where, fix=RUN_AGAIN)
        lengths = np.diff(self.bounds)
        if (short := np.flatnonzero(lengths != meta.batches)).size:
            rank = int(short[0])
            raise ConfigError(
                f"every rank had {said(meta.batches, 'batch', several='batches')} by what the run"
                f" says, and the log of rank {rank} has {lengths[rank]:,}",
                where=where,
                fix=RUN_AGAIN,
            )
        if meta.phase == "groundtruth":
            # These are the samples of a pass, line by line, and no batches.
            return
        if (meta.mode == "full") != self.have_digests:
            what = f"the mode of the run was {meta.mode}, and its logs are of the other"
            raise ConfigError(what, where=where, fix=RUN_AGAIN)
        wrong = np.flatnonzero(as_array(self.given) != as_array(self.batch_sizes))
        if wrong.size:
            self._refuse(int(wrong[0]), logs, "does not hold as many samples as it says")
        if not self.are_ours or len(self.slot) != len(self.of_step):
            raise ConfigError("batches do not say where they belong", where=where, fix=RUN_AGAIN)

    def out_of_turn(self, meta: RunMeta) -> NDArray[np.int64]:
        """Return the batches that are of another place than their turn, ascending."""
        if meta.phase == "groundtruth":
            return np.empty(0, np.int64)
        ranks = meta.world_size
        step, turn = np.divmod(
            np.tile(np.arange(meta.batches), ranks), meta.micro_batches_per_step // ranks
        )
        slot = turn * ranks + np.repeat(np.arange(ranks), meta.batches)
        odd = (as_array(self.of_step) != meta.first_step + step) | (as_array(self.slot) != slot)
        return np.flatnonzero(odd)

    def _refuse(self, batch: int, logs: Sequence[Path], what: str) -> None:
        rank = int(np.searchsorted(self.bounds, batch, side="right")) - 1
        step = batch - self.bounds[rank]
        where = f"{logs[rank]}:{step + 1}"
        raise ConfigError(f"batch {step} of rank {rank} {what}", where=where, fix=RUN_AGAIN)


def _oddity(row: LogRow, step: int, rank: int, world_size: int) -> str:
    if row.rank != rank:
        return f"this is a batch of rank {row.rank} in the log of rank {rank}"
    if row.world_size != world_size:
        return f"ranks do not agree: there were {world_size} or {row.world_size} of them"
    return f"step {step} should come here, and step {row.step} does"


def as_array(column: array[int]) -> NDArray[np.int64]:
    """A column as NumPy has it."""
    return np.array(column, np.int64)
