"""Keys that nobody knows: misspelt ones are errors, the others are reported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.errors import UnknownOptionError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["nearest", "refuse_misspelt"]

# Slips that guides and configs are full of, and that are further away than two letters.
_SLIPS = {
    "tarred_audio_filepath": "tarred_audio_filepaths",
    "tarred_audio_path": "tarred_audio_filepaths",
    "manifest_path": "manifest_filepath",
    "use_multimodal_dataloading": "use_multimodal_sampling",
    "source_path": "source_paths",
    "target_path": "target_paths",
    "bucket_batch_sizes": "bucket_batch_size",
    "duration_bins": "bucket_duration_bins",
    "cuts_paths": "cuts_path",
    "temperature": "reweight_temperature",
}
_SHORT = 5


def nearest(key: str, known: Iterable[str]) -> str | None:
    """The known key that `key` was meant to be; None where it is not near to any.

    Near is at most two letters away, one for keys of up to five letters.

    Examples
    --------
    >>> nearest("batch_durration", ["batch_duration", "batch_size"])
    'batch_duration'
    >>> nearest("corpus", ["batch_duration", "batch_size"]) is None
    True
    """
    slip = _SLIPS.get(key)
    names = list(known)
    if slip is not None and slip in names:
        return slip
    allowed = 1 if len(key) <= _SHORT else 2
    best = min(((_distance(key, name, allowed), name) for name in names), default=(allowed + 1, ""))
    return best[1] if best[0] <= allowed else None


def refuse_misspelt(keys: Iterable[str], known: Iterable[str], where: str, *, strict: bool) -> None:
    """Raise for keys that look like known ones; for all of them if strict.

    Raises
    ------
    UnknownOptionError
        Naming the key, where it stands and what was meant.
    """
    names = list(known)
    for key in keys:
        meant = nearest(key, names)
        if meant is not None:
            raise UnknownOptionError(
                f"the key {key!r} is not known; {meant!r} is",
                where=where,
                fix=f"Write {meant!r}, or rename a label of your own",
            )
        if strict:
            raise UnknownOptionError(
                f"the key {key!r} is not known",
                where=where,
                fix="Remove it, or leave strict=True out",
            )


def _distance(one: str, two: str, most: int) -> int:
    """Edit distance with neighbouring letters exchanged as one edit; above `most`, any number."""
    if abs(len(one) - len(two)) > most:
        return most + 1
    before: list[int] = []
    last = list(range(len(two) + 1))
    for row, a in enumerate(one, 1):
        line = [row]
        for column, b in enumerate(two, 1):
            cost = min(last[column] + 1, line[-1] + 1, last[column - 1] + (a != b))
            if row > 1 and column > 1 and a == two[column - 2] and one[row - 2] == b:
                cost = min(cost, before[column - 2] + 1)
            line.append(cost)
        if min(line) > most:
            return most + 1
        before, last = last, line
    return last[-1]
