"""The input types: what their files are, what a row says, and what sample a row is."""

from __future__ import annotations

from playhead.formats.base import (
    BadRowError,
    FieldShard,
    Format,
    RowAudio,
    RowColumns,
    Sample,
    SourcePair,
    TableBlock,
    TableFormat,
    TableRow,
    Unmeasured,
)
from playhead.formats.example import Audio, Example, Part, Place, Turn, audio_turns, turns_of
from playhead.formats.lhotse_cuts import LhotseCuts
from playhead.formats.lhotse_shar import LhotseShar
from playhead.formats.nemo import Nemo
from playhead.formats.parquet import Parquet
from playhead.formats.registry import (
    format_names,
    format_of,
    get_format,
    register,
    register_type,
)

__all__ = [
    "Audio",
    "BadRowError",
    "Example",
    "FieldShard",
    "Format",
    "LhotseCuts",
    "LhotseShar",
    "Nemo",
    "Parquet",
    "Part",
    "Place",
    "RowAudio",
    "RowColumns",
    "Sample",
    "SourcePair",
    "TableBlock",
    "TableFormat",
    "TableRow",
    "Turn",
    "Unmeasured",
    "audio_turns",
    "format_names",
    "format_of",
    "get_format",
    "register",
    "register_type",
    "turns_of",
]
