"""Packs as NeMo and Lhotse write them, made from the documented layout."""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["Collection", "write_idxpack"]


class Collection(NamedTuple):
    """Files that a config declares together, with their `.idx` files."""

    role: str
    kind: str
    paths: Sequence[str]
    offsets: Sequence[Sequence[int]]
    """Of each file, the sentinel included; of path-only files nothing."""
    path_only: bool = False


def write_idxpack(path: Path, collections: Sequence[Collection], version: int = 2) -> Path:
    """Write a pack of version 2, or one that says it has another."""
    texts, payload = bytearray(), bytearray()
    rows, sequences, segments = [], [], []
    texts_at: dict[str, int] = {}

    def text(value: str) -> int:
        if value not in texts_at:
            texts_at[value] = len(texts)
            texts.extend(value.encode())
        return texts_at[value]

    for one in collections:
        spec = {"kind": one.kind, "role": one.role, "source_spec": list(one.paths)}
        text_of_key = json.dumps(spec, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
        key = hashlib.sha256(text_of_key.encode()).digest()
        total, first = 0, len(sequences)
        for file, offsets in zip(one.paths, one.offsets, strict=True):
            content = b"" if one.path_only else struct.pack(f"<{len(offsets)}Q", *offsets)
            size = 0 if one.path_only else offsets[-1]
            at, count = len(payload), 0 if one.path_only else len(offsets)
            payload.extend(content)
            total += max(count - 1, 0)
            sequences.append((len(segments), total))
            place = (text(file), at, len(file.encode()), int(one.path_only))
            segments.append((*place, count, size, len(content), zlib.crc32(content), 0))
        flags = int(one.path_only)
        kind = (text(one.kind), len(one.kind))
        rows.append((key, first, len(one.paths), total, *kind, flags))
    texts.extend(bytes(-len(texts) % 8))
    at = 256
    places = []
    sizes = (len(rows) * 72, len(sequences) * 16, len(segments) * 56, len(texts), len(payload))
    counts = (len(rows), len(sequences), len(segments), len(texts), len(payload))
    for size, count in zip(sizes, counts, strict=True):
        places += [at, count]
        at += size
    text_at, payload_at = places[6], places[8]
    head = struct.pack("<8sII10Q32s", b"IDXPACK2", version, 256, *places, bytes(32))
    body = b"".join(
        [
            *(struct.pack("<32sQQQQII", *row[:4], row[4] + text_at, *row[5:]) for row in rows),
            *(struct.pack("<QQ", *row) for row in sequences),
            *(
                struct.pack("<QQIIQQQII", row[0] + text_at, row[1] + payload_at, *row[2:])
                for row in segments
            ),
            texts,
            payload,
        ]
    )
    path.write_bytes(head.ljust(256, b"\0") + body)
    return path
