"""Playhead: a training data loader for speech that resumes exactly, on any number of GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playhead.errors import (
    ArchiveError,
    AudioError,
    BuildError,
    ConfigError,
    DataError,
    FitError,
    IndexFileError,
    IndexMissingError,
    ManifestError,
    MissingExtraError,
    NotSupportedError,
    PlanError,
    PlayheadError,
    PositionError,
    RankMismatchError,
    SourceNotFoundError,
    StaleIndexError,
    StorageError,
    TopologyError,
    UnknownOptionError,
    WorkerError,
)

if TYPE_CHECKING:
    from playhead.formats import register_type
    from playhead.loader import Loader, dataloader, validation_dataloaders
    from playhead.plan import Position

__all__ = [
    "ArchiveError",
    "AudioError",
    "BuildError",
    "ConfigError",
    "DataError",
    "FitError",
    "IndexFileError",
    "IndexMissingError",
    "Loader",
    "ManifestError",
    "MissingExtraError",
    "NotSupportedError",
    "PlanError",
    "PlayheadError",
    "Position",
    "PositionError",
    "RankMismatchError",
    "SourceNotFoundError",
    "StaleIndexError",
    "StorageError",
    "TopologyError",
    "UnknownOptionError",
    "WorkerError",
    "dataloader",
    "register_type",
    "validation_dataloaders",
]


def __getattr__(name: str) -> Any:
    # torch takes seconds to import: it waits until somebody asks for a loader.
    if name in {"Loader", "dataloader", "validation_dataloaders"}:
        from playhead import loader  # noqa: PLC0415

        return getattr(loader, name)
    if name == "Position":
        from playhead.plan import Position  # noqa: PLC0415

        return Position
    if name == "register_type":
        from playhead.formats import register_type  # noqa: PLC0415

        return register_type
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
