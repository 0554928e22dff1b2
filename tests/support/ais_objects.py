"""What an emulated AIStore holds, and what it is told to do wrong."""

from __future__ import annotations

import io
import tarfile
import threading
import zlib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

ALIASES = {"s3": "aws", "gs": "gcp", "az": "azure", "": "ais"}


@dataclass
class StoredObject:
    """An object, and whether the cluster has it or only the bucket behind it."""

    data: bytes
    present: bool = True
    version: int = 1
    members: dict[str, tuple[int, int]] | None = None
    checksum: str = ""

    def __post_init__(self) -> None:
        self.checksum = f"{zlib.crc32(self.data):08x}"

    def member(self, name: str) -> bytes | None:
        if self.members is None:
            with tarfile.open(fileobj=io.BytesIO(self.data)) as tar:
                files = [one for one in tar if one.isfile()]
                self.members = {one.name: (one.offset_data, one.size) for one in files}
        found = self.members.get(name)
        return None if found is None else self.data[found[0] : found[0] + found[1]]


class Bucket(NamedTuple):
    provider: str
    name: str

    def __str__(self) -> str:
        return f"{self.provider}://{self.name}"


def bucket_of(provider: str, name: str) -> Bucket:
    return Bucket(ALIASES.get(provider, provider), name)


@dataclass
class Fault:
    """One thing to do wrong.

    `on`: batch, get, head, list, put or any. `what`: status, delay, disorder, ignore_range, short,
    cut or stall. `at`: where a body is cut or stalls: start, inside (a member, else the middle), or
    member (after `after` members). `ending`: clean (an end of the chunks, or of the connection)
    or reset. `times`: how often; -1 is for ever. `name`: only for objects whose name holds it.
    `where`: proxy or target.
    """

    on: str = "any"
    what: str = "status"
    status: int = 503
    seconds: float = 0.0
    at: str = "start"
    after: int = 1
    ending: str = "clean"
    times: int = -1
    name: str = ""
    where: str = "target"


@dataclass
class Holdings:
    """All buckets, all faults, and what was asked so far."""

    buckets: dict[Bucket, dict[str, StoredObject]] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def put(self, bucket: Bucket, name: str, data: bytes, *, present: bool = True) -> None:
        with self.lock:
            objects = self.buckets.setdefault(bucket, {})
            before = objects.get(name)
            version = before.version + 1 if before else 1
            objects[name] = StoredObject(data, present, version)

    def load(self, bucket: Bucket, folder: str, *, prefix: str = "", present: bool = True) -> None:
        self.buckets.setdefault(bucket, {})
        for path in sorted(Path(folder).rglob("*")):
            if path.is_file():
                name = prefix + path.relative_to(folder).as_posix()
                self.put(bucket, name, path.read_bytes(), present=present)

    def find(self, bucket: Bucket, name: str) -> StoredObject | None:
        return self.buckets.get(bucket, {}).get(name)

    def count(self, what: str, amount: int = 1) -> None:
        with self.lock:
            self.counts[what] += amount

    def fault(self, on: str, where: str, name: str) -> Fault | None:
        """The next thing to do wrong, if any; it is used up."""
        with self.lock:
            for fault in self.faults:
                if fault.on not in (on, "any") or fault.where != where:
                    continue
                if fault.times != 0 and fault.name in name:
                    fault.times -= 1
                    return fault
        return None
