"""As much of msgpack as the listing of an emulated bucket needs."""

from __future__ import annotations

import struct
from typing import Any


def packed(value: Any) -> bytes:
    """Encode None, integers from 0 on, texts, lists and dicts."""
    if value is None:
        return b"\xc0"
    if isinstance(value, int):
        return b"\xcf" + struct.pack(">Q", value)
    if isinstance(value, str):
        data = value.encode()
        return b"\xdb" + struct.pack(">I", len(data)) + data
    if isinstance(value, list):
        return b"\xdd" + struct.pack(">I", len(value)) + b"".join(map(packed, value))
    pairs = b"".join(packed(key) + packed(one) for key, one in value.items())
    return b"\xdf" + struct.pack(">I", len(value)) + pairs
