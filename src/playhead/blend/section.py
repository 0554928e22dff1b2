"""Which part of a config describes the data: itself, or a section of a training config."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from playhead.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from playhead.config import Spot

__all__ = ["DEEPEST", "GROUP_OF_SETS", "INPUTS", "Section", "find_section"]

INPUTS = ("input_cfg", "manifest_filepath", "cuts_path", "shar_path", "tarred_audio_filepaths")
"""The options that name data, the first that is given wins."""
_TRAIN = ("train_ds", "training_ds", "train")
_EVALUATION = frozenset(
    {"dev", "eval", "evaluation", "predict", "test", "val", "valid", "validation"}
)
GROUP_OF_SETS = "datasets"
"""The key under which a section has sets of data by name."""
DEEPEST = 6
"""Sections lie a few levels deep; what lies deeper is not a loader's."""


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
        return any(part.partition("_")[0] in _EVALUATION for part in parts)

    @property
    def shared_keys(self) -> tuple[str, ...] | None:
        """The way to the section whose options this one shares; None where there is none."""
        return self.keys[:-2] if GROUP_OF_SETS in self.keys[-2:-1] else None


def find_section(content: Any, wanted: str | None, where: Spot) -> Section:
    """Find the section of a config that describes the data.

    Parameters
    ----------
    content
        The config as plain containers.
    wanted
        A dotted path or the end of one, such as `validation_ds`; None for the training section.
        Of a blend that stands alone it is the name.
    where
        The config, for messages.

    Raises
    ------
    ConfigError
        When there is none, or several; the message lists those there are.
    """
    if isinstance(content, list) or any(key in content for key in INPUTS):
        return Section((), wanted)
    found = [Section(keys, ".".join(keys)) for keys in _candidates(content, ())]
    fitting = _training(found) if wanted is None else _named(found, wanted)
    if len(fitting) == 1:
        return fitting[0]
    asked = "section" if wanted is None else f"section {wanted!r}"
    if not found:
        raise ConfigError(
            f"there is no {asked} with data: nothing has {', '.join(INPUTS[:2])} or {INPUTS[2]}",
            where=str(where),
            fix="Give a list of entries, a mapping with input_cfg, or a training config",
        )
    names = ", ".join(section.name or "" for section in fitting or found)
    what = "training section" if wanted is None else asked
    raise ConfigError(
        f"there is {'more than one' if fitting else 'no'} {what} with data",
        where=str(where),
        fix=f"Choose one of these as `section`: {names}",
    )


def _training(found: list[Section]) -> list[Section]:
    named = [section for section in found if section.keys[-1] in _TRAIN]
    return named or [section for section in found if len(found) == 1 and not section.is_evaluation]


def _named(found: list[Section], wanted: str) -> list[Section]:
    """The section of that path, else those whose path ends so, else the sets below such a one."""
    paths = {f".{section.name}": section for section in found}
    exact = [section for path, section in paths.items() if path == f".{wanted}"]
    ending = [section for path, section in paths.items() if path.endswith(f".{wanted}")]
    below = f".{wanted}.{GROUP_OF_SETS}."
    return exact or ending or [section for path, section in paths.items() if below in path]


def _candidates(content: Mapping[str, Any], keys: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if keys and any(content.get(key) is not None for key in INPUTS):
        yield keys
        return
    if len(keys) >= DEEPEST:
        return
    for key, value in content.items():
        if isinstance(value, dict):
            yield from _candidates(value, (*keys, str(key)))
