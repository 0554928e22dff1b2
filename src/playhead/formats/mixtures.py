"""Which cuts a mixture is made of and when each begins: a function of the mixture's number."""

from __future__ import annotations

import math
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from playhead.errors import ConfigError
from playhead.formats.columns import MAX_SECONDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.blend.leaf import Leaf

__all__ = [
    "LSMIX",
    "MIXTURE_LOADER",
    "Mixture",
    "MixtureOptions",
    "Session",
    "Stretch",
    "Utterance",
    "Voice",
    "below",
    "choose_stretch",
    "choose_voices",
    "keyed_words",
]

LSMIX: Final = "lsmix"
"""Mixtures are made of cuts of single speakers."""

MIXTURE_LOADER: Final = "mixture_loader"
"""Rows are recorded conversations, of which stretches are taken."""

# Part of every key, so that no other keyed choice is like these.
_NAME = "multi_speaker_simulator 1"
_WORD_BYTES = 8
_WORDS = 3
# A mixture whose length is out of bounds is chosen anew so many times before it is left out.
_ATTEMPTS = 64
_DEFAULT_MIXTURES = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class MixtureOptions:
    """How the mixtures of a leaf are made."""

    simulator_type: str
    """`LSMIX` or `MIXTURE_LOADER`."""
    num_speakers: int
    """Speakers of a mixture of cuts."""
    min_delay_us: int
    """Shortest time from the begin of one speaker to that of the next, microseconds."""
    min_duration: float
    """Shortest mixture, seconds, inclusive."""
    max_duration: float
    """Longest mixture, seconds, inclusive."""
    num_mixtures: int | None
    """Mixtures of a pass; None is as many as the manifest has rows, but at least 1,000."""

    @classmethod
    def of(cls, leaf: Leaf) -> MixtureOptions:
        """Read and check the options of a leaf.

        Raises
        ------
        ConfigError
            If one cannot be used.
        """
        own = leaf.own
        simulator_type = own["simulator_type"]
        if simulator_type not in (LSMIX, MIXTURE_LOADER):
            raise _wrong(leaf, "simulator_type", f"Use {LSMIX} or {MIXTURE_LOADER}")
        min_duration = _seconds(leaf, "min_duration")
        max_duration = _seconds(leaf, "max_duration")
        if max_duration < min_duration:
            raise _wrong(leaf, "max_duration", f"Use at least min_duration, {min_duration:g}")
        num_mixtures = own["num_mixtures"]
        return cls(
            simulator_type=simulator_type,
            num_speakers=_count(leaf, "num_speakers"),
            # Rounded up, so that no delay is shorter.
            min_delay_us=math.ceil(round(_seconds(leaf, "min_delay") * 1e6, 3)),
            min_duration=min_duration,
            max_duration=max_duration,
            num_mixtures=None if num_mixtures is None else _count(leaf, "num_mixtures"),
        )

    def count(self, num_rows: int) -> int:
        """Return how many mixtures a pass has."""
        if self.num_mixtures is not None:
            return self.num_mixtures
        return max(num_rows, _DEFAULT_MIXTURES)

    def complaint(self, seconds: float) -> str | None:
        """Say which bound a length breaks; None where it breaks none.

        Examples
        --------
        >>> options = MixtureOptions(
        ...     simulator_type=LSMIX,
        ...     num_speakers=2,
        ...     min_delay_us=0,
        ...     min_duration=1,
        ...     max_duration=2,
        ...     num_mixtures=None,
        ... )
        >>> options.complaint(0.5), options.complaint(2.0), options.complaint(2.1)
        ('mixture below min_duration', None, 'mixture above max_duration')
        """
        if seconds < self.min_duration:
            return "mixture below min_duration"
        return "mixture above max_duration" if seconds > self.max_duration else None


class Voice(NamedTuple):
    """A row with the voice of one speaker."""

    line: bytes
    """The row."""
    number: int
    """Number of its line in the manifest, from 1."""
    duration: float
    """Its length in seconds."""
    speaker: str
    """Whose voice it is."""
    unmeasured: str | None = None
    """Its audio file, where only that tells the sampling rate."""

    @property
    def duration_us(self) -> int:
        """Its length in microseconds."""
        return round(self.duration * 1e6)


class Mixture(NamedTuple):
    """Cuts of several speakers, one over another."""

    voices: list[Voice]
    """The cuts, in the order in which they begin."""
    offsets_us: list[int]
    """When each begins in the mixture, microseconds."""

    @property
    def seconds(self) -> float:
        """Length to the end of the last sound, rounded as Lhotse rounds it."""
        ends = zip(self.voices, self.offsets_us, strict=True)
        return round(max(offset / 1e6 + voice.duration for voice, offset in ends), 8)


class Utterance(NamedTuple):
    """What one speaker says in one stretch of a recorded conversation; times in seconds."""

    start: float
    end: float
    speaker: str
    text: str


class Session(NamedTuple):
    """A recorded conversation of several speakers."""

    line: bytes
    """The row."""
    number: int
    """Number of its line in the manifest, from 1."""
    utterances: list[Utterance]
    """What is said, in order of time."""
    islands: list[int]
    """Which utterances begin when nobody speaks."""
    unmeasured: str | None = None
    """Its audio file, where only that tells the sampling rate."""


class Stretch(NamedTuple):
    """A stretch of a conversation that begins and ends when nobody speaks."""

    session: Session
    """The conversation."""
    first: int
    """Which of its utterances is the first."""
    stop: int
    """Which comes after the last."""

    @property
    def utterances(self) -> list[Utterance]:
        """What is said in it, timed from the begin of the recording."""
        return self.session.utterances[self.first : self.stop]

    @property
    def start(self) -> float:
        """Where it begins in the recording, seconds."""
        return self.session.utterances[self.first].start

    @property
    def seconds(self) -> float:
        """Its length."""
        return round(max(one.end for one in self.utterances) - self.start, 8)


def keyed_words(*words: int) -> tuple[int, int, int]:
    """Return three 64-bit numbers that depend on `words`, their order included, and nothing else.

    Examples
    --------
    >>> keyed_words(1, 2) == keyed_words(2, 1)
    False
    """
    text = " ".join((_NAME, *map(str, words)))
    digest = blake2b(text.encode(), digest_size=_WORDS * _WORD_BYTES).digest()
    first, second, third = (
        int.from_bytes(digest[at : at + _WORD_BYTES], "little")
        for at in range(0, len(digest), _WORD_BYTES)
    )
    return first, second, third


def below(bound: int, word: int) -> int:
    """Map a 64-bit number to one from 0 to before `bound`, each about equally often.

    Examples
    --------
    >>> below(10, 0), below(10, 2**63), below(10, 2**64 - 1)
    (0, 5, 9)
    """
    return word * bound >> 64


def choose_voices(
    speakers: Sequence[Sequence[Voice]], options: MixtureOptions, number: int
) -> Mixture | str:
    """Choose the cuts of a mixture and their delays.

    Every set of speakers is equally likely, and so is every cut of a speaker. Each speaker begins
    after the one before by at least the shortest delay, and while that one still speaks where its
    cut is longer than the delay.

    Parameters
    ----------
    speakers
        The cuts of each speaker; at least as many speakers as a mixture has.
    options
        How mixtures are made.
    number
        The mixture's number.

    Returns
    -------
    Mixture | str
        The bound that its length breaks, where no choice was within bounds.
    """
    complaint = ""
    for attempt in range(_ATTEMPTS):
        mixture = _mixture(speakers, options, number, attempt)
        found = options.complaint(mixture.seconds)
        if found is None:
            return mixture
        complaint = found
    return complaint


def choose_stretch(
    sessions: Sequence[Session], options: MixtureOptions, number: int
) -> Stretch | str:
    """Choose a stretch of a conversation.

    Every conversation is equally likely, and so is every place in it where somebody begins to speak
    and nobody else does. The stretch goes on past the next such place, and further until it is
    longer than `min_duration`; it ends when everybody has finished.

    Parameters
    ----------
    sessions
        The conversations.
    options
        How stretches are bounded.
    number
        The mixture's number.

    Returns
    -------
    Stretch | str
        The bound that its length breaks, where no choice was within bounds.
    """
    complaint = ""
    for attempt in range(_ATTEMPTS):
        which, where, _ = keyed_words(0, number, attempt)
        session = sessions[below(len(sessions), which)]
        stretch = _stretch(session, below(len(session.islands), where), options)
        found = options.complaint(stretch.seconds)
        if found is None:
            return stretch
        complaint = found
    return complaint


def _mixture(
    speakers: Sequence[Sequence[Voice]], options: MixtureOptions, number: int, attempt: int
) -> Mixture:
    voices: list[Voice] = []
    offsets: list[int] = []
    # A shuffle of all speakers of which only the first few places are looked at.
    moved: dict[int, int] = {}
    offset = 0
    for place in range(options.num_speakers):
        who, which, when = keyed_words(options.num_speakers, number, attempt, place)
        other = place + below(len(speakers) - place, who)
        speaker, moved[other] = moved.get(other, other), moved.get(place, place)
        voice = speakers[speaker][below(len(speakers[speaker]), which)]
        voices.append(voice)
        offsets.append(offset)
        spread = max(0, voice.duration_us - options.min_delay_us)
        offset += options.min_delay_us + below(spread + 1, when)
    return Mixture(voices, offsets)


def _stretch(session: Session, island: int, options: MixtureOptions) -> Stretch:
    borders = [*session.islands, len(session.utterances)]
    first = borders[island]
    stop = borders[island + 1]
    for border in borders[island + 2 :]:
        stop = border
        if Stretch(session, first, stop).seconds > options.min_duration:
            break
    return Stretch(session, first, stop)


def _seconds(leaf: Leaf, name: str) -> float:
    value = leaf.own[name]
    # Written so that NaN fails too.
    if not _is_number(value) or not 0 <= value <= MAX_SECONDS:
        raise _wrong(leaf, name, f"Use a number of seconds from 0 to {MAX_SECONDS:.0f}")
    return float(value)


def _count(leaf: Leaf, name: str) -> int:
    value = leaf.own[name]
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise _wrong(leaf, name, "Use a whole number from 1 on")
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _wrong(leaf: Leaf, name: str, fix: str) -> ConfigError:
    return ConfigError(
        f"the option {name} is {leaf.own[name]!r}", where=f"leaf {leaf.name}", fix=fix
    )
