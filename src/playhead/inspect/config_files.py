"""Configs beside checkpoints, and how they are read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

__all__ = ["CONFIG_NAMES", "Asked", "configs_beside"]

CONFIG_NAMES: Final = ("exp_config.yaml", "config.yaml", "hparams.yaml", "config.json")
"""What configs beside checkpoints are called, the likeliest first."""

_FOLDERS_ABOVE = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """How a config is read."""

    section: str | None = None
    """Which section; the one that the position is of if None."""
    data_blend_dir: str | None = None
    """What `${data_blend_dir}` stands for."""
    tokenizer: Any = None
    """What makes tokens of texts; None where nothing does."""
    indexes_root: str | None = None
    """Where indexes and packs are, in place of what the config says."""
    index_pack_root: str | None = None
    """The folder of declared packs, in place of what the config says."""
    default_index_pack_root: str | None = None
    """The same where the config says none."""


def configs_beside(path: str | Path) -> list[Path]:
    """Return the configs in the folder of a checkpoint, and in the two above it.

    Parameters
    ----------
    path
        The checkpoint.
    """
    start = Path(path).absolute()
    folder = start if start.is_dir() else start.parent
    folders = [folder, *folder.parents][: _FOLDERS_ABOVE + 1]
    found = [
        folder / name for folder in folders for name in CONFIG_NAMES if (folder / name).is_file()
    ]
    return [path for path in found if not _is_of_a_model(path)]


def _is_of_a_model(path: Path) -> bool:
    """Whether Hugging Face wrote it beside a model, to say what the model is made of."""
    if path.suffix != ".json":
        return False
    try:
        said = msgspec.json.decode(path.read_bytes())
    except (OSError, msgspec.DecodeError):
        return False
    return isinstance(said, dict) and "transformers_version" in said
