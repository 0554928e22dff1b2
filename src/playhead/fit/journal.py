"""The journal of a search: a line for each record, on the disk before the search goes on.

The first line says what was searched; every other line is a probe, a mix, or a prediction, in the
order in which they came. A search is a pure function of these lines, so that one that was killed
goes on as if it had not been. A last line that was not written to its end is forgotten: what it
was about to say is asked again.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from playhead.errors import ConfigError
from playhead.fit.record import MixRecord, ProbeRecord
from playhead.storage.atomic import sync_folder
from playhead.storage.held import hold

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["Journal"]

_FORMAT = 1
_KINDS: dict[str, type[ProbeRecord | MixRecord]] = {"probe": ProbeRecord, "mix": MixRecord}


class Journal:
    """The records of a search in a file that one process writes.

    Parameters
    ----------
    path
        The file; it is made if it does not exist, as is its folder.
    identity
        What is searched: model, device, dtype, training options, buckets, versions; what JSON can
        hold. The budget is not part of it: records hold for another budget as well.
    resume
        Whether to go on with what the file holds.

    Attributes
    ----------
    path
        The file.
    records
        All records so far, in the order in which they came.
    predictions
        What was predicted (bytes), by bucket and batch size.

    Raises
    ------
    ConfigError
        If the file is the journal of another search, or of one that is not to be resumed; if
        another process writes it; if it is no journal.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        identity: Mapping[str, Any] | None = None,
        *,
        resume: bool = False,
    ) -> None:
        self.path = Path(path)
        self.records: list[ProbeRecord | MixRecord] = []
        self.predictions: dict[tuple[int, int], int | None] = {}
        # What JSON makes of it is what will be read back: tuples are lists there.
        wanted = json.loads(json.dumps(dict(identity or {})))
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            held = hold(self.path, create=True)
        except ConfigError as error:
            raise ConfigError(
                "the journal cannot be locked there",
                where=str(self.path),
                fix="Put it on a disk of this machine",
            ) from error
        if held is None:
            raise ConfigError(
                "another search writes this journal",
                where=str(self.path),
                fix="Wait for it, or give another path",
            )
        self._held = held
        self._buckets = len(wanted["buckets"]) if "buckets" in wanted else None
        try:
            self._open(wanted, resume=resume)
        except BaseException:
            held.close()
            raise

    def __enter__(self) -> Journal:  # noqa: PYI034  (Self is of Python 3.11)
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file, so that another process may write it; one without a try is removed."""
        if not (self.records or self.predictions):
            self.path.unlink(missing_ok=True)
        self._held.close()

    def append(self, record: ProbeRecord | MixRecord) -> None:
        """Keep a record; it is on the disk when this returns."""
        kind = "probe" if isinstance(record, ProbeRecord) else "mix"
        self._write({"kind": kind, **asdict(record)})
        self.records.append(record)

    def keep_prediction(self, bucket: int, batch_size: int, predicted: int | None) -> None:
        """Keep a prediction; it is on the disk when this returns."""
        self._write(
            {
                "kind": "prediction",
                "bucket": bucket,
                "batch_size": batch_size,
                "predicted": predicted,
            }
        )
        self.predictions[bucket, batch_size] = predicted

    def _open(self, identity: dict[str, Any], *, resume: bool) -> None:
        data = self.path.read_bytes()
        whole = 0
        for number, (start, line) in enumerate(_lines(data), 1):
            is_last = start + len(line) >= len(data)
            try:
                value = json.loads(line) if line.endswith(b"\n") else None
                self._take(value, number, identity, resume=resume)
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                if isinstance(error, ConfigError):
                    raise
                if is_last and (number > 1 or _is_torn_header(line)):
                    break
                raise ConfigError(
                    "the file is not the journal of a search",
                    where=f"{self.path}:{number}",
                    fix="Give another path, or remove it",
                ) from None
            whole = start + len(line)
        if whole and not resume:
            if self.records or self.predictions:
                raise ConfigError(
                    "there is a journal already",
                    where=str(self.path),
                    fix="Go on from it with --resume, give another path, or remove it",
                )
            # Its search had not begun.
            whole = 0
        os.ftruncate(self._held.descriptor, whole)
        os.lseek(self._held.descriptor, whole, os.SEEK_SET)
        if not whole:
            self._write({"kind": "search", "format": _FORMAT, "identity": identity})
            sync_folder(self.path.parent)

    def _take(
        self, value: dict[str, Any] | None, number: int, identity: dict[str, Any], *, resume: bool
    ) -> None:
        if value is None:
            raise ValueError(number)
        kind = value.pop("kind")
        if (number == 1) != (kind == "search"):
            raise ValueError(kind)
        if kind == "search":
            self._check(value, identity, resume=resume)
        elif kind == "prediction":
            self._check_bucket(int(value["bucket"]))
            self.predictions[int(value["bucket"]), int(value["batch_size"])] = value["predicted"]
        else:
            record = msgspec.convert(value, _KINDS[kind])
            self._check_record(record)
            self.records.append(record)

    def _check_record(self, record: ProbeRecord | MixRecord) -> None:
        """Refuse what is about buckets that there are not."""
        if isinstance(record, ProbeRecord):
            self._check_bucket(record.bucket)
            return
        self._check_bucket(record.failed or 0)
        for each in (record.sizes, record.allocated):
            if each is not None and self._buckets not in (None, len(each)):
                raise ValueError(each)

    def _check_bucket(self, number: int) -> None:
        if number < 0 or (self._buckets is not None and number >= self._buckets):
            raise ValueError(number)

    def _check(self, header: dict[str, Any], identity: dict[str, Any], *, resume: bool) -> None:
        if header["format"] != _FORMAT:
            raise ConfigError(
                f"the journal has format {header['format']}; this version reads {_FORMAT}",
                where=str(self.path),
                fix="Give another path, or remove it",
            )
        if not resume:
            return
        found: dict[str, Any] = header["identity"]
        missing = object()
        for name in sorted({*found, *identity}):
            before, now = found.get(name, missing), identity.get(name, missing)
            if before != now:
                was, is_now = ("unknown" if v is missing else json.dumps(v) for v in (before, now))
                raise ConfigError(
                    f"the journal is of another search: {name} was {was} and is {is_now}",
                    where=str(self.path),
                    fix="Search as before, give another path, or remove it",
                )

    def _write(self, value: dict[str, Any]) -> None:
        line = json.dumps(value).encode() + b"\n"
        while line:
            line = line[os.write(self._held.descriptor, line) :]
        os.fsync(self._held.descriptor)


def _lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    start = 0
    for line in data.splitlines(keepends=True):
        yield start, line
        start += len(line)


def _is_torn_header(line: bytes) -> bool:
    """Whether a first line is the beginning of a header; anything else is somebody's file."""
    begin = b'{"kind": "search"'
    return not line.endswith(b"\n") and (line.startswith(begin) or begin.startswith(line))
