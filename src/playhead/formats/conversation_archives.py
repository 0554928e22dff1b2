"""Which archives hold the audio of which conversations."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from playhead.errors import ConfigError
from playhead.formats.base import SourcePair
from playhead.formats.nemo_shards import have_shard_numbers, pair_shards
from playhead.storage.compression import is_archive

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["check_archives", "locate", "pair_archives"]

_ARCHIVE_IN_NAME = re.compile(r"(.*?\.(?:tar(?:\.[a-z0-9]+)?|tgz))/(.+)", re.DOTALL)


def pair_archives(manifests: Sequence[str], tars: Sequence[str], leaf: str) -> list[SourcePair]:
    """Give each manifest its archive; without archives, manifests are alone.

    Where all names have shard numbers as NeMo writes them, numbers decide, as in `pair_shards`;
    else the k-th manifest belongs to the k-th archive.

    Raises
    ------
    ConfigError
        If there is not one archive for each manifest.

    Examples
    --------
    >>> for pair in pair_archives(["a.jsonl", "b.jsonl"], ["x.tar", "y.tar"], "talk"):
    ...     print(*pair.files)
    a.jsonl x.tar
    b.jsonl y.tar
    """
    if not tars:
        return [SourcePair(manifest=path) for path in manifests]
    check_archives(tars, leaf)
    if len(manifests) != len(tars):
        raise ConfigError(
            f"there are {len(manifests)} manifests ({manifests[0]}, ...) and {len(tars)} tars "
            f"({tars[0]}, ...)",
            where=f"leaf {leaf}",
            fix="Give every manifest one tar: manifest_filepath and tarred_audio_filepaths",
        )
    if have_shard_numbers(manifests, tars):
        return pair_shards(tuple(manifests), tuple(tars), leaf)
    return [
        SourcePair(manifest=manifest, tars=(tar,))
        for manifest, tar in zip(manifests, tars, strict=True)
    ]


def check_archives(tars: Sequence[str], leaf: str) -> None:
    """Refuse archives that are called otherwise than ``*.tar``, ``*.tar.gz`` and the like.

    Raises
    ------
    ConfigError
        If one is.
    """
    bad = next((path for path in tars if not is_archive(path)), None)
    if bad is not None:
        raise ConfigError(
            "an archive's name ends neither with .tar nor with .tar and a compression",
            where=f"leaf {leaf}, {bad}",
            fix="Rename it, such as audio_0.tar or audio_0.tar.gz",
        )


def locate(pair: SourcePair, name: str, default: int) -> tuple[str, int]:
    """Find the member and the archive that a row means.

    A name that begins with one of the pair's archives, as `audio_3.tar/a.wav` does, means that one;
    any other is a member's name as it stands.

    Parameters
    ----------
    pair
        The manifest with its archives.
    name
        What the row says.
    default
        Where members lie whose archive nobody names.

    Returns
    -------
    tuple[str, int]
        The member's name, and its archive's index in the pair.

    Examples
    --------
    >>> pair = SourcePair(manifest="m.jsonl", tars=("/data/audio_3.tar", "/data/audio_4.tar"))
    >>> locate(pair, "audio_4.tar/a.wav", 0), locate(pair, "a.wav", 0)
    (('a.wav', 1), ('a.wav', 0))
    """
    match = _ARCHIVE_IN_NAME.fullmatch(name)
    if match is None:
        return name, default
    archive = f"/{match[1].removeprefix('./')}"
    for index, tar in enumerate(pair.tars):
        if f"/{tar}".endswith(archive):
            return match[2], index
    return name, default
