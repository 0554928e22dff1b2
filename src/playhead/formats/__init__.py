"""The input types: what their files are, what a row says, and what sample a row is."""

from __future__ import annotations

from playhead.formats.base import (
    BadRowError,
    FieldShard,
    Format,
    RowAudio,
    RowColumns,
    Sample,
    ScannedFormat,
    SourcePair,
    TableBlock,
    TableFormat,
    TableRow,
    Unmeasured,
)
from playhead.formats.conversation import MultimodalConversation
from playhead.formats.example import (
    Audio,
    Example,
    Part,
    Place,
    Turn,
    audio_turns,
    time_turns,
    turns_of,
)
from playhead.formats.lhotse_cuts import LhotseCuts
from playhead.formats.lhotse_shar import LhotseShar
from playhead.formats.messages import Messages
from playhead.formats.nemo import Nemo
from playhead.formats.parquet import Parquet
from playhead.formats.registry import (
    format_names,
    format_of,
    get_format,
    register,
    register_type,
)
from playhead.formats.sft_jsonl import NemoSft
from playhead.formats.share_gpt import ShareGpt
from playhead.formats.share_gpt_webdataset import ShareGptWebdataset
from playhead.formats.simulator import MultiSpeakerSimulator
from playhead.formats.text_conversation import NemotronText
from playhead.formats.txt import Txt
from playhead.formats.txt_jsonl import TxtJsonl
from playhead.formats.txt_pair import TxtPair

__all__ = [
    "Audio",
    "BadRowError",
    "Example",
    "FieldShard",
    "Format",
    "LhotseCuts",
    "LhotseShar",
    "Messages",
    "MultiSpeakerSimulator",
    "MultimodalConversation",
    "Nemo",
    "NemoSft",
    "NemotronText",
    "Parquet",
    "Part",
    "Place",
    "RowAudio",
    "RowColumns",
    "Sample",
    "ScannedFormat",
    "ShareGpt",
    "ShareGptWebdataset",
    "SourcePair",
    "TableBlock",
    "TableFormat",
    "TableRow",
    "Turn",
    "Txt",
    "TxtJsonl",
    "TxtPair",
    "Unmeasured",
    "audio_turns",
    "format_names",
    "format_of",
    "get_format",
    "register",
    "register_type",
    "time_turns",
    "turns_of",
]
