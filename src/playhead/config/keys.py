"""Keys that nobody knows: which of them are misspelt."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from playhead.errors import UnknownOptionError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from playhead.config.spot import Spot

__all__ = ["nearest", "refuse_misspelt"]

# Slips that guides and configs are full of, and that are further away than two letters.
_SLIPS = {
    "tarred_audio_filepath": "tarred_audio_filepaths",
    "tarred_audio_path": "tarred_audio_filepaths",
    "tarred_audio_paths": "tarred_audio_filepaths",
    "manifest_path": "manifest_filepath",
    "manifest_paths": "manifest_filepath",
    "use_multimodal_dataloading": "use_multimodal_sampling",
    "duration_bins": "bucket_duration_bins",
    "temperature": "reweight_temperature",
}
# Labels that people use, and keys of other loaders, that happen to be near to a key.
_NO_SLIPS = frozenset({"height", "index", "max_utts", "shuffle_n", "speed"})
_SHORT = 4


def nearest(key: str, known: frozenset[str]) -> str | None:
    """The known key that `key` was meant to be; None where it is not near to any.

    Near is at most two letters away, one for keys of up to four letters.

    Examples
    --------
    >>> nearest("batch_durration", frozenset({"batch_duration", "batch_size"}))
    'batch_duration'
    >>> nearest("corpus", frozenset({"batch_duration", "batch_size"})) is None
    True
    """
    return None if key in _NO_SLIPS else _nearest(key, known)


def refuse_misspelt(
    keys: Iterable[str], known: frozenset[str], where: Spot, *, strict: bool
) -> None:
    """Raise for keys that look like known ones; for all of them if strict.

    Raises
    ------
    UnknownOptionError
        Naming the key, where it stands and what was meant.
    """
    unknown = list(keys)
    for key in unknown:
        meant = nearest(key, known)
        if meant is not None:
            raise UnknownOptionError(
                f"the key `{key}` is not known, but `{meant}` is",
                where=str(where.at(key)),
                fix=f"Write `{meant}`, or give a label of your own another name",
            )
    if strict and unknown:
        one = len(unknown) == 1
        raise UnknownOptionError(
            f"the key{'' if one else 's'} {', '.join(f'`{key}`' for key in unknown)}"
            f" {'is' if one else 'are'} not known",
            where=str(where),
            fix=f"Remove {'it' if one else 'them'}, or leave `strict=True` out",
        )


# The entries of a blend bear the same labels, tens of thousands of times.
@lru_cache(maxsize=4096)
def _nearest(key: str, known: frozenset[str]) -> str | None:
    slip = _SLIPS.get(key)
    if slip in known:
        return slip
    least, best = min((_distance(key, name), name) for name in known)
    return best if least <= (1 if min(len(key), len(best)) <= _SHORT else 2) else None


def _distance(one: str, two: str) -> int:
    """Edit distance in which exchanging two neighbours is one edit; 3 stands for more than 2."""
    if abs(len(one) - len(two)) > 2:
        return 3
    before: list[int] = []
    last = list(range(len(two) + 1))
    for row, a in enumerate(one, 1):
        line = [row]
        for column, b in enumerate(two, 1):
            cost = min(last[column] + 1, line[-1] + 1, last[column - 1] + (a != b))
            if row > 1 and column > 1 and a == two[column - 2] and one[row - 2] == b:
                cost = min(cost, before[column - 2] + 1)
            line.append(cost)
        before, last = last, line
    return min(last[-1], 3)
