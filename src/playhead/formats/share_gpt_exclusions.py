"""Lines of ShareGPT manifests that somebody has approved to leave out."""

from __future__ import annotations

import hashlib
import json
import re
from bisect import bisect_left
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from playhead.errors import ConfigError, SourceNotFoundError
from playhead.storage.compression import open_whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.blend.leaf import Leaf

__all__ = ["excluded_lines", "lines_of_manifests"]

_LINES, _DIGEST, _AUDIT = (
    "excluded_manifest_lines",
    "excluded_manifest_lines_sha256",
    "approved_exclusion_audit_sha256",
)
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_PIECE_BYTES = 4 << 20


def excluded_lines(leaf: Leaf) -> list[int]:
    """Read and check a leaf's `excluded_manifest_lines`: numbers from 1, ascending.

    The digest is that of the ascending numbers as compact JSON and a newline.

    Raises
    ------
    ConfigError
        If they are no line numbers, one comes twice, the digest is another, or nobody says by
        `approved_exclusion_audit_sha256` which audit approved them.

    Examples
    --------
    >>> from playhead.blend.leaf import Leaf
    >>> own = {"excluded_manifest_lines": [7, 2], "excluded_manifest_lines_sha256": None,
    ...        "approved_exclusion_audit_sha256": 64 * "a"}
    >>> excluded_lines(Leaf(key="k", name="n", type="share_gpt", weight=1, paths={}, own=own))
    [2, 7]
    """
    where = f"leaf {leaf.name}"
    given: Any = leaf.own[_LINES]
    listed: Any = () if given is None else given
    if not isinstance(listed, list | tuple) or not all(
        isinstance(line, int) and not isinstance(line, bool) and line >= 1 for line in listed
    ):
        raise ConfigError(
            f"the option {_LINES} is {given!r}",
            where=where,
            fix="Write a list of line numbers, from 1",
        )
    lines: list[int] = sorted(listed)
    twice = next((line for line, after in pairwise(lines) if line == after), None)
    if twice is not None:
        raise ConfigError(
            f"the option {_LINES} has {twice} twice", where=where, fix="Write each line once"
        )
    declared = _digest(leaf, _DIGEST)
    found = hashlib.sha256(f"{json.dumps(lines, separators=(',', ':'))}\n".encode()).hexdigest()
    if declared is not None and declared != found:
        raise ConfigError(
            f"the option {_DIGEST} is {declared} and the lines that are listed have {found}",
            where=where,
            fix="Restore the list that was approved, or write its digest",
        )
    if _digest(leaf, _AUDIT) is None and lines:
        raise ConfigError(
            f"the option {_LINES} is given without {_AUDIT}",
            where=where,
            fix="Write the SHA-256 of the audit that approved the list",
        )
    return lines


def lines_of_manifests(
    lines: Sequence[int], manifests: Sequence[str], leaf: str
) -> list[tuple[int, ...]]:
    """Which lines of each manifest are meant, from 0; numbers run on from manifest to manifest.

    Raises
    ------
    ConfigError
        If a number is behind the last line.
    SourceNotFoundError
        If a manifest does not exist.
    DataError
        If a manifest is compressed and cannot be read to its end.
    """
    if not lines:
        return [() for _ in manifests]
    found: list[tuple[int, ...]] = []
    before, start = 0, 0
    for manifest in manifests:
        end = before + _count_lines(manifest)
        stop = bisect_left(lines, end + 1)
        found.append(tuple(line - 1 - before for line in lines[start:stop]))
        before, start = end, stop
    if start < len(lines):
        raise ConfigError(
            f"the option {_LINES} has line {lines[-1]}, and the manifests have {before} lines",
            where=f"leaf {leaf}",
            fix="Correct the list, or restore the manifests that it was made for",
        )
    return found


def _digest(leaf: Leaf, name: str) -> str | None:
    given: Any = leaf.own[name]
    if given is None:
        return None
    text = given.lower() if isinstance(given, str) else ""
    if _SHA256.fullmatch(text) is None:
        raise ConfigError(
            f"the option {name} is {given!r}",
            where=f"leaf {leaf.name}",
            fix="Write the 64 hexadecimal digits of a SHA-256",
        )
    return text


def _count_lines(path: str) -> int:
    count, last = 0, b"\n"
    try:
        with open_whole(path) as file:
            while piece := file.read(_PIECE_BYTES):
                count += piece.count(b"\n")
                last = piece[-1:]
    except SourceNotFoundError:
        raise
    except FileNotFoundError:
        raise SourceNotFoundError("the manifest does not exist", where=path) from None
    return count + (last != b"\n")
