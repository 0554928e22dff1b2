"""Which part of a config describes the data: itself, or a section of a training config."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from playhead.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["Section", "find_section"]

_INPUTS = ("input_cfg", "manifest_filepath", "cuts_path", "shar_path", "tarred_audio_filepaths")
_TRAIN = "train_ds"
# Sections lie a few levels deep; what lies deeper is not a loader's.
_DEEPEST = 6


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a config."""

    keys: tuple[str, ...]
    """The way to it from the top; empty for the config itself."""
    name: str | None
    """What it is called, such as `model.train_ds`; None for a blend that stands alone."""

    @property
    def is_evaluation(self) -> bool:
        """Whether it is for validation or test: such data are finite."""
        parts = (self.name or "").split(".")
        return any(part.startswith(("validation", "test", "predict")) for part in parts)


def find_section(content: Any, wanted: str | None, where: str) -> Section:
    """Find the section of a config that describes the data.

    Parameters
    ----------
    content
        The config as plain containers.
    wanted
        A dotted path or the end of one, such as `validation_ds`; None for the training section.
    where
        The config's file, for messages.

    Raises
    ------
    ConfigError
        When there is none, or several; the message lists those there are.
    """
    if isinstance(content, list) or any(key in content for key in _INPUTS):
        return Section((), wanted)
    found = [Section(keys, ".".join(keys)) for keys in _candidates(content, ())]
    names = [section.name or "" for section in found]
    if wanted is None:
        fitting = [section for section in found if section.keys[-1] == _TRAIN]
        fitting = fitting or (found if len(found) == 1 else [])
    else:
        fitting = [s for s in found if s.name == wanted] or [
            s for s in found if (s.name or "").endswith(f".{wanted}")
        ]
    if len(fitting) == 1:
        return fitting[0]
    asked = "section" if wanted is None else f"section {wanted!r}"
    if not names:
        raise ConfigError(
            f"there is no {asked} with data: nothing has {' or '.join(_INPUTS[:3])}",
            where=where,
            fix="Give a list of entries, a mapping with input_cfg, or a training config",
        )
    raise ConfigError(
        f"{'several sections fit' if fitting else 'no section fits'} where one {asked} is wanted",
        where=where,
        fix=f"Choose one by section=: {', '.join(names)}",
    )


def _candidates(content: Mapping[str, Any], keys: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if keys and any(content.get(key) is not None for key in _INPUTS):
        yield keys
        return
    if len(keys) >= _DEEPEST:
        return
    for key, value in content.items():
        if isinstance(value, dict):
            yield from _candidates(value, (*keys, str(key)))
