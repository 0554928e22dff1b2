"""One sample as its format read it, before any audio is decoded."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from playhead.blend.leaf import Kind
    from playhead.errors import SourceNotFoundError

__all__ = ["Audio", "Example", "Part", "Place", "Turn", "audio_turns", "time_turns", "turns_of"]


class Part(NamedTuple):
    """What belongs to a row and lies elsewhere than the row."""

    field: str
    """What they are: `audio`, or a field such as `recording`."""
    data: bytes
    """The bytes: a payload for `audio`; a whole record (members with headers, or a line) else."""
    path: str
    """The file that holds them."""
    offset: int
    """Where they begin in it."""
    duration_us: int = -1
    """Microseconds of an audio turn, as declared or as the index measured; -1 is unknown."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where a sample comes from, for messages."""

    leaf: str
    """Name of the leaf."""
    shard: str
    """Path of the manifest that holds the row."""
    row: int
    """Row number in the leaf, from 0."""
    byte: int
    """Byte offset of the row in `shard`."""
    member: str | None = None
    """`archive.tar/member` or the audio file."""
    member_byte: int | None = None
    """Byte offset of the payload in its archive."""
    is_table: bool = False
    """Whether `byte` is a number of a row in `shard`."""

    def __str__(self) -> str:
        unit = "row" if self.is_table else "byte"
        text = f"leaf {self.leaf}, {self.shard}, {unit} {self.byte}, row {self.row} counted from 0"
        if self.member is not None:
            text += f", audio {self.member}"
        if self.member_byte is not None and not self.is_table:
            text += f" at byte {self.member_byte}"
        return text


@dataclass(frozen=True, kw_only=True, slots=True)
class Audio:
    """A stretch of one audio file that is not decoded yet."""

    source: str | bytes
    """A path, or the file's own bytes."""
    start: float = 0.0
    """Where the stretch begins, in seconds."""
    duration: float | None = None
    """Length in seconds; None is to the end of the file."""
    channel: int | None = None
    """The channel to keep; None keeps all."""
    sampling_rate: int | None = None
    """The declared rate of the file in Hz; None reads its header."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Turn:
    """What one side of a conversation says."""

    role: str
    """Who: `user`, `assistant`, `system` or `tool`."""
    text: str | None = None
    """What is written; of an audio turn its transcript, None where nobody knows it."""
    audio: Example | None = None
    """What is spoken, a sample of its own; None where the turn is text."""
    locator: str | None = None
    """The tag that stands for the audio in a prompt."""
    duration: float | None = None
    """Length of the audio in seconds."""


@dataclass(kw_only=True, slots=True)
class Example:
    """One sample as its format read it, before any audio is decoded."""

    id: str
    """What the sample is called."""
    text: str | None
    """Its transcript."""
    language: str | None
    """Its language."""
    audio: Audio | None
    """Its audio; None where only `cut_data` says it."""
    place: Place
    """Where it comes from."""
    kind: Kind = "cut"
    """What it is: one stretch of audio, a text, or turns."""
    turns: tuple[Turn, ...] = ()
    """What is said in turn, where that is what it is."""
    token_window: tuple[int, int] | None = None
    """Which of its own text's tokens it is, start and stop; None is all of them."""
    custom: Mapping[str, Any] = field(default_factory=dict)
    """All other fields of the row, and the leaf's tags."""
    cut_data: Mapping[str, Any] | None = None
    """A serialised Lhotse cut with absolute paths, where the row is one."""
    in_memory: Mapping[str, bytes] = field(default_factory=dict)
    """Bytes that the cut's data lie in, by the marker that `cut_data` has in their place."""
    channel_selector: int | str | None = None
    """The channel to keep of a cut, or the custom field that holds it; None keeps all."""
    members: tuple[Example, ...] = ()
    """The rows that were joined into it, where it is several."""
    gap: float = 0.0
    """Silence between them, seconds."""
    cut: Any = None
    """The Lhotse cut after all that changes single samples; None until it is made."""
    cut_steps: tuple[Callable[[Any], Any], ...] = ()
    """What becomes of its Lhotse cut once it is made, one after another."""
    tokens: Mapping[str, Any] = field(default_factory=dict)
    """What the tokenizer makes of it, such as `input_ids`; empty without a tokenizer."""
    missing: SourceNotFoundError | None = None
    """Says that its audio exists nowhere, where a store said so; then it has no bytes."""


def turns_of(example: Example) -> tuple[Turn, ...]:
    """Return any sample as turns.

    A stretch of audio is what its transcript answers to its `context`; a text is an answer alone;
    of a pair the source is asked, behind its question if it has one, and the target answers.

    Examples
    --------
    >>> place = Place(leaf="x", shard="x.txt", row=0, byte=0)
    >>> text = Example(id="a", text="hm", language=None, audio=None, place=place, kind="text")
    >>> [(turn.role, turn.text) for turn in turns_of(text)]
    [('assistant', 'hm')]
    """
    match example.kind:
        case "cut" | "text":
            asked: Any = example.custom.get("context") if example.kind == "cut" else None
        case "pair":
            said = (example.custom.get("question"), example.custom["source"])
            asked = " ".join(str(part) for part in said if part)
        case _:
            return example.turns
    before = () if asked is None else (Turn(role="user", text=str(asked)),)
    after = () if example.text is None else (Turn(role="assistant", text=example.text),)
    return (*before, *after)


def audio_turns(example: Example) -> list[Turn]:
    """Return the turns of a sample that are spoken."""
    return [turn for turn in example.turns if turn.audio is not None]


def time_turns(example: Example, duration_us: int) -> None:
    """Give the only audio turn of a sample, if it says no length, that of its row.

    Parameters
    ----------
    example
        The sample.
    duration_us
        Length of the row as the index knows it, microseconds.
    """
    turns = audio_turns(example)
    if len(turns) == 1 and turns[0].duration is None:
        timed = replace(turns[0], duration=duration_us / 1_000_000)
        example.turns = tuple(timed if turn is turns[0] else turn for turn in example.turns)
