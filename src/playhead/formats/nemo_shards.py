"""Which NeMo manifest belongs to which tars."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from playhead.errors import ConfigError
from playhead.formats.base import SourcePair

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["have_shard_numbers", "pair_shards"]

_MANIFEST = re.compile(r"manifest[^/]*_(\d+)[^/]*\.json")
_TAR = re.compile(r"audio[^/]*_(\d+)[^/]*\.tar")
_RENAME = (
    "Name sharded manifests like manifest_0.json and their tars like audio_0.tar, "
    "with the same numbers"
)
_MANY_SHOWN = 5


def pair_shards(manifests: tuple[str, ...], tars: tuple[str, ...], leaf: str) -> list[SourcePair]:
    """Pair sharded manifests with sharded tars.

    One manifest and one tar are a pair whatever they are called. One manifest and several tars
    are one source whose rows name their tar by `shard_id`; so are several manifests without shard
    numbers, each with the next run of tars in which no number comes twice (NeMo's buckets).
    Otherwise the n-th manifest of a number belongs to the n-th tar of that number, so that shards
    of several folders may bear the same numbers. The numbers are the last `_digits` after
    `manifest` and after `audio` in the file's name, as in NeMo.

    Raises
    ------
    ConfigError
        If a name has no number where one is needed, or a manifest or tar has no partner.

    Examples
    --------
    >>> for pair in pair_shards(("b/manifest_1.json", "b/manifest_0.json"),
    ...                         ("b/audio_0.tar", "b/audio_1.tar"), "b"):
    ...     print(pair.manifest, *pair.tars)
    b/manifest_1.json b/audio_1.tar
    b/manifest_0.json b/audio_0.tar
    """
    if len(manifests) == 1 and len(tars) == 1:
        return [SourcePair(manifest=manifests[0], tars=tars)]
    tar_numbers = [_number(_TAR, path, leaf) for path in tars]
    if len(manifests) == 1 or not any(_MANIFEST.search(path) for path in manifests):
        return _by_shard_id(manifests, tars, tar_numbers, leaf)
    manifest_keys = _occurrences([_number(_MANIFEST, path, leaf) for path in manifests])
    tar_keys = _occurrences(tar_numbers)
    partners = dict(zip(tar_keys, tars, strict=True))
    lonely = [
        path for key, path in zip(manifest_keys, manifests, strict=True) if key not in partners
    ]
    lonely += [partners[key] for key in partners.keys() - set(manifest_keys)]
    if lonely:
        shown = ", ".join(sorted(lonely)[:_MANY_SHOWN])
        more = len(lonely) - _MANY_SHOWN
        raise ConfigError(
            f"{len(lonely)} of {len(manifests)} manifests and {len(tars)} tars have no partner: "
            + shown
            + (f" and {more} more" if more > 0 else ""),
            where=f"leaf {leaf}",
            fix=_RENAME,
        )
    return [
        SourcePair(manifest=path, tars=(partners[key],))
        for key, path in zip(manifest_keys, manifests, strict=True)
    ]


def have_shard_numbers(manifests: Sequence[str], tars: Sequence[str]) -> bool:
    """Whether all names have shard numbers as NeMo writes them.

    Examples
    --------
    >>> have_shard_numbers(["manifest_0.json"], ["audio_0.tar"])
    True
    >>> have_shard_numbers(["talk-0.jsonl"], ["audio_0.tar"])
    False
    """
    return all(map(_MANIFEST.search, manifests)) and all(map(_TAR.search, tars))


def _by_shard_id(
    manifests: tuple[str, ...], tars: tuple[str, ...], numbers: list[int], leaf: str
) -> list[SourcePair]:
    """Give each manifest the next run of tars in which no number comes twice."""
    runs: list[dict[int, str]] = [{}]
    for number, path in zip(numbers, tars, strict=True):
        if number in runs[-1]:
            runs.append({})
        runs[-1][number] = path
    if len(runs) != len(manifests):
        raise ConfigError(
            f"{len(manifests)} manifests without shard numbers do not match {len(runs)} sets of "
            f"numbered tars ({len(tars)} tars)",
            where=f"leaf {leaf}, {manifests[0]}",
            fix=_RENAME,
        )
    return [
        SourcePair(manifest=manifest, tars=tuple(run.values()), numbers=tuple(run))
        for manifest, run in zip(manifests, runs, strict=True)
    ]


def _number(pattern: re.Pattern[str], path: str, leaf: str) -> int:
    match = pattern.search(path)
    if match is None:
        raise ConfigError(
            "the file's name has no shard number", where=f"leaf {leaf}, {path}", fix=_RENAME
        )
    return int(match.group(1))


def _occurrences(numbers: list[int]) -> list[tuple[int, int]]:
    """Give each number with how often it came before."""
    seen: Counter[int] = Counter()
    keys: list[tuple[int, int]] = []
    for number in numbers:
        keys.append((number, seen[number]))
        seen[number] += 1
    return keys
