"""GetBatch of an emulated AIStore: many objects, members and ranges in one tar."""

from __future__ import annotations

import json
import random
import tarfile
from typing import TYPE_CHECKING, Any, NamedTuple

from support.ais_objects import Bucket, bucket_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.ais_objects import Holdings

MISSING = "__404__/"


class Settings(NamedTuple):
    """What the emulated server can do."""

    batch_ranges: bool = True
    """Servers from 5.0 on; those before refuse a range inside a batch."""
    max_soft_errs: int = 6


class RefusedError(Exception):
    """What ends a batch: nothing more is sent."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Entry(NamedTuple):
    """One thing asked for and what there is."""

    name: str
    data: bytes
    asked: dict[str, Any]
    bucket: Bucket
    error: str = ""

    @property
    def blocks(self) -> bytes:
        info = tarfile.TarInfo(self.name)
        info.size = len(self.data)
        header = info.tobuf(tarfile.PAX_FORMAT)
        return header + self.data + bytes(-len(self.data) % 512)

    @property
    def told(self) -> dict[str, Any]:
        out = {"objname": self.asked["objname"], "size": len(self.data)}
        out |= {key: self.asked[key] for key in ("archpath", "opaque") if key in self.asked}
        out |= {"bucket": self.bucket.name, "provider": self.bucket.provider}
        return out | ({"err_msg": self.error} if self.error else {})


def entries(
    request: dict[str, Any], default: Bucket | None, holdings: Holdings, settings: Settings
) -> Iterator[Entry]:
    """What is answered, in the order asked for.

    Raises
    ------
    RefusedError
        Where the server gives up.
    """
    soft = 0
    for asked in request["in"]:
        bucket = (
            bucket_of(asked.get("provider", ""), asked["bucket"]) if "bucket" in asked else default
        )
        if bucket is None:
            raise RefusedError(400, "no bucket")
        path, archpath = asked["objname"], asked.get("archpath", "")
        name = path if request.get("onob") else f"{bucket.name}/{path}"
        found = holdings.find(bucket, path)
        data = None
        error = ""
        if found is None or not found.present:
            error = f"{bucket}/{path} does not exist"
        else:
            name += f"/{archpath}" if archpath else ""
            data = found.member(archpath) if archpath else found.data
            if data is None:
                error = f"{bucket}/{path}: {archpath} not found in archive"
        if data is None:
            soft += 1
            if not request.get("coer") or soft > settings.max_soft_errs:
                raise RefusedError(404, error)
            yield Entry(MISSING + name, b"", asked, bucket, error)
            continue
        yield Entry(name, _part(data, asked, settings), asked, bucket)


def _part(data: bytes, asked: dict[str, Any], settings: Settings) -> bytes:
    start, length = asked.get("start", 0), asked.get("length", 0)
    if length == 0 and start == 0:
        return data
    if not settings.batch_ranges:
        if length == 0:
            return data
        raise RefusedError(501, "range read not implemented")
    end = len(data) if length == -1 else start + length
    if length == 0 or start >= len(data) or end > len(data):
        raise RefusedError(416, "range out of bounds")
    return data[start:end]


def disordered(answer: list[Entry]) -> list[Entry]:
    """The same entries in another order."""
    order = list(range(len(answer)))
    random.Random(7).shuffle(order)
    if order == sorted(order):
        order.reverse()
    return [answer[place] for place in order]


def multipart(answer: list[Entry], boundary: str) -> bytes:
    """The answer with what the server knows of it before the archive."""
    told = json.dumps({"uuid": "emulated", "out": [one.told for one in answer]}).encode()
    archive = b"".join(one.blocks for one in answer) + bytes(1024)
    parts = [("metadata", "application/json", told), ("archive", "application/x-tar", archive)]
    body = b""
    for name, kind, content in parts:
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n'
        body += f"{head}Content-Type: {kind}\r\n\r\n".encode() + content + b"\r\n"
    return body + f"--{boundary}--\r\n".encode()
