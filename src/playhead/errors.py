"""The exceptions of Playhead.

::

    PlayheadError
    ├── ConfigError (ValueError)          a config that cannot be used as it is
    │   ├── UnknownOptionError            an option that looks like a misspelt one
    │   └── NotSupportedError             an option or type that is known and not built yet
    ├── SourceNotFoundError (FileNotFoundError)   a file that a config names and nobody has
    ├── StorageError (OSError)            an object store that failed, and went on failing
    ├── DataError (ValueError)            data that breaks its format
    │   ├── ManifestError                 a row of a manifest
    │   ├── ArchiveError                  a tar archive
    │   └── AudioError                    audio that cannot be read or decoded
    ├── IndexFileError (ValueError)       an `.idx` or a pack that cannot be used
    │   ├── StaleIndexError               it does not belong to the data as they are now
    │   └── IndexMissingError (FileNotFoundError)   `indexed: true` and there is none
    ├── FitError (RuntimeError)           a model for which no batch sizes can be found
    ├── BuildError (RuntimeError)         indexing that failed or would take too long
    ├── PlanError (ValueError)            data and options from which no batches can be made
    ├── PositionError (ValueError)        a state that cannot be resumed from
    │   └── TopologyError                 a world size that does not divide the step
    ├── RankMismatchError (RuntimeError)  ranks that would train on different plans
    ├── WorkerError (RuntimeError)        a worker process that died
    └── MissingExtraError (ImportError)   an optional dependency that is not installed

Every message says what happened, where, and what to do, in that order.
"""

from __future__ import annotations

__all__ = [
    "ArchiveError",
    "AudioError",
    "BuildError",
    "ConfigError",
    "DataError",
    "FitError",
    "IndexFileError",
    "IndexMissingError",
    "ManifestError",
    "MissingExtraError",
    "NotSupportedError",
    "PlanError",
    "PlayheadError",
    "PositionError",
    "RankMismatchError",
    "SourceNotFoundError",
    "StaleIndexError",
    "StorageError",
    "TopologyError",
    "UnknownOptionError",
    "WorkerError",
]


class PlayheadError(Exception):
    """The base of every error that Playhead raises on purpose.

    Parameters
    ----------
    what
        What happened, a whole sentence without its full stop.
    where
        File, row or shard, byte offset: what one needs to find the place.
    fix
        What to do, a whole sentence without its full stop.

    Attributes
    ----------
    exit_code
        What a command ends with: 2 for bad input, 1 for work that failed.
    where
        The place, as it was given.
    advice
        What to do: `fix`, as it was given.

    Examples
    --------
    >>> print(PlayheadError("the row has no duration", where="train.json:3", fix="Add it"))
    The row has no duration (train.json:3). Add it.
    """

    exit_code: int = 1
    where: str | None = None
    advice: str | None = None

    def __init__(self, what: str, *, where: str | None = None, fix: str | None = None) -> None:
        self.where, self.advice = where, fix
        # Worker processes hand errors over by their text alone: a finished text passes unchanged.
        is_name = "_" in what.partition(" ")[0]
        message = what if is_name else what[:1].upper() + what[1:]
        if where is not None:
            message += f" ({where})"
        if where is not None or fix is not None:
            message += "."
        if fix is not None:
            message += f" {fix}."
        super().__init__(message)


class ConfigError(PlayheadError, ValueError):
    """A config that cannot be used as it is."""

    exit_code = 2


class UnknownOptionError(ConfigError):
    """An option that Playhead does not know and that looks like one it knows."""


class NotSupportedError(ConfigError):
    """An option or an input type that is known and not built yet."""


class SourceNotFoundError(PlayheadError, FileNotFoundError):
    """A file that is named by a config or a command and does not exist."""

    exit_code = 2


class StorageError(PlayheadError, OSError):
    """An object store or a server that failed, and went on failing until the deadline."""


class DataError(PlayheadError, ValueError):
    """Data that break their format."""


class ManifestError(DataError):
    """A row of a manifest that cannot be used."""


class ArchiveError(DataError):
    """A tar archive that cannot be used."""


class AudioError(DataError):
    """Audio that cannot be read or decoded."""


class IndexFileError(PlayheadError, ValueError):
    """An `.idx` file or a pack that cannot be used."""


class StaleIndexError(IndexFileError):
    """An index that does not belong to the data as they are now."""


class IndexMissingError(IndexFileError, FileNotFoundError):
    """An index that a config demands and that does not exist."""

    exit_code = 2


class FitError(PlayheadError, RuntimeError):
    """A model for which no batch sizes can be found."""


class BuildError(PlayheadError, RuntimeError):
    """Indexing that failed, or that would take longer than one would wait for."""


class PlanError(PlayheadError, ValueError):
    """Data and options from which no batches can be made."""


class PositionError(PlayheadError, ValueError):
    """A state that cannot be resumed from."""


class TopologyError(PositionError):
    """A world size that does not divide the number of micro-batches of a step."""


class RankMismatchError(PlayheadError, RuntimeError):
    """Ranks that would train on different plans."""


class WorkerError(PlayheadError, RuntimeError):
    """A worker process that died."""


class MissingExtraError(PlayheadError, ImportError):
    """An optional dependency that is not installed."""

    exit_code = 2
