"""How many tokens a stretch of audio takes: by its length, or as an audio encoder has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from playhead.errors import ConfigError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["AudioTokens"]

_US = 1_000_000
# 115 days: above it all lengths mean the same, so that products stay within 64 bits.
_LONGEST_US = 10**13
_LARGEST = 10**9
_MOST_STAGES = 8
_MOST_REPEATS = 64
# An encoder looks for its shortest chunk among so many multiples of the hop.
_MULTIPLES_TRIED = 17

_NAME = "audio_token_estimator"
_KEYS = ("preprocessor", "subsampling", "chunk_size_seconds")
_PREPROCESSOR = ("n_fft", "hop_length", "stft_pad_amount")
_CONV = ("kernel_size", "stride", "padding")
_CONV_EXTRA = ("repeat", "ceil_mode")
_FIX = f"Write {_NAME} with preprocessor, subsampling and, if wanted, chunk_size_seconds"


@dataclass(frozen=True, slots=True)
class _Conv:
    """A convolution over frames, applied `repeat` times."""

    kernel: int
    stride: int
    padding: int
    repeat: int
    ceil: bool

    def __call__(self, frames: NDArray[np.int64]) -> NDArray[np.int64]:
        up = self.stride - 1 if self.ceil else 0
        for _ in range(self.repeat):
            frames = (frames + (2 * self.padding - self.kernel + up)) // self.stride + 1
        return frames

    @property
    def text(self) -> str:
        """As `AudioTokens.parse` reads it."""
        name = "ceil" if self.ceil else "conv"
        return f"{name}={self.kernel},{self.stride},{self.padding},{self.repeat}"


@dataclass(frozen=True, slots=True)
class _Stack:
    """So many frames become one."""

    factor: int

    def __call__(self, frames: NDArray[np.int64]) -> NDArray[np.int64]:
        return (frames + (self.factor - 1)) // self.factor

    @property
    def text(self) -> str:
        """As `AudioTokens.parse` reads it."""
        return f"stack={self.factor}"


@dataclass(frozen=True, slots=True)
class _Encoder:
    """The lengths of an audio encoder, from samples to tokens."""

    sample_rate: int
    fft: int
    hop: int
    pad: int
    stages: tuple[_Conv | _Stack, ...]
    chunk: int | None

    @property
    def shortest_chunk(self) -> int:
        """Samples of the first multiple of the hop that gives two frames."""
        for hops in range(1, _MULTIPLES_TRIED):
            if (hops * self.hop + 2 * self.pad - self.fft) // self.hop >= 2:
                return hops * self.hop
        return _MULTIPLES_TRIED * self.hop

    def __call__(self, duration_us: NDArray[np.int64]) -> NDArray[np.int64]:
        samples = (duration_us * (2 * self.sample_rate) + _US) // (2 * _US)
        if self.chunk is None:
            return self._of_chunk(samples)
        shortest = self.shortest_chunk
        size = max(self.chunk, shortest)
        whole, rest = np.divmod(samples, size)
        # A rest that is too short for a chunk of its own belongs to the chunk before it.
        merged = (whole > 0) & (rest < shortest)
        whole -= merged
        last = np.where(merged, rest + size, rest)
        return whole * int(self._of_chunk(np.array(size))) + self._of_chunk(last)

    def _of_chunk(self, samples: NDArray[np.int64]) -> NDArray[np.int64]:
        frames = (samples + (2 * self.pad - self.fft)) // self.hop
        for stage in self.stages:
            frames = stage(frames)
        return np.maximum(frames, 1)

    @property
    def text(self) -> str:
        """As `AudioTokens.parse` reads it."""
        parts = [f"rate={self.sample_rate}", f"fft={self.fft}", f"hop={self.hop}"]
        parts.append(f"pad={self.pad}")
        parts += [stage.text for stage in self.stages]
        if self.chunk is not None:
            parts.append(f"chunk={self.chunk}")
        return " ".join(parts)


@dataclass(frozen=True, slots=True)
class _Even:
    """A token for every so many microseconds, the last of them begun."""

    token_us: int

    def __call__(self, duration_us: NDArray[np.int64]) -> NDArray[np.int64]:
        return (duration_us + (self.token_us - 1)) // self.token_us

    @property
    def text(self) -> str:
        """As `AudioTokens.parse` reads it."""
        return f"us={self.token_us}"


@dataclass(frozen=True, slots=True)
class AudioTokens:
    """How many tokens a stretch of audio takes.

    Examples
    --------
    >>> tokens = AudioTokens.of_duration(80_000)
    >>> tokens.count(np.array([0, 80_000, 80_001, 1_000_000])).tolist()
    [1, 1, 2, 13]
    >>> AudioTokens.parse(tokens.text) == tokens
    True
    """

    _rule: _Even | _Encoder

    @classmethod
    def of_duration(cls, token_us: int) -> AudioTokens:
        """One token for every so many microseconds, the last of them begun.

        Raises
        ------
        ConfigError
            When that is no length.
        """
        if not _whole(token_us, 1):
            raise ConfigError(
                f"token_equivalent_duration is {token_us!r} µs",
                fix="Give the seconds that a token of audio stands for, a microsecond at least",
            )
        return cls(_Even(token_us))

    @classmethod
    def of_estimator(cls, estimator: Mapping[str, Any], sample_rate: int) -> AudioTokens:
        """As many tokens as an audio encoder makes, to the sample.

        The lengths are those of a spectrogram, ``(samples + 2 pad - n_fft) // hop`` frames, and of
        the stages after it: a convolution gives ``(frames + 2 padding - kernel) / stride + 1``,
        rounded down (up with `ceil_mode`), as often as it is repeated; stacking divides by its
        factor and rounds up. Audio that is longer than a chunk is encoded chunk by chunk; a last
        one that is too short for two frames is part of the one before.

        Parameters
        ----------
        estimator
            `preprocessor` with `n_fft`, `hop_length` and `stft_pad_amount` (samples); `subsampling`
            with one stage or a list of them; `chunk_size_seconds` where the encoder works in
            chunks.
        sample_rate
            Rate (Hz) at which the encoder hears the audio.

        Raises
        ------
        ConfigError
            When a key is missing or unknown, or a value is not one that it can have.
        """
        _whole_at_least("sample_rate", sample_rate, 1)
        options = _mapping(_NAME, estimator, _KEYS, required=_KEYS[:2])
        spectrogram = _mapping(
            f"{_NAME}.preprocessor", options["preprocessor"], _PREPROCESSOR, required=_PREPROCESSOR
        )
        for name in _PREPROCESSOR:
            least = 0 if name == "stft_pad_amount" else 1
            _whole_at_least(f"{_NAME}.preprocessor.{name}", spectrogram[name], least)
        stages = options["subsampling"]
        if isinstance(stages, Mapping):
            stages = [stages]
        if not isinstance(stages, Sequence) or isinstance(stages, (str, bytes)):
            raise ConfigError(f"{_NAME}.subsampling is {stages!r}", fix="Give a stage or a list")
        if len(stages) > _MOST_STAGES:
            raise ConfigError(
                f"{_NAME}.subsampling has {len(stages)} stages",
                fix=f"Give {_MOST_STAGES} at most; a stage that comes several times has `repeat`",
            )
        return cls(
            _Encoder(
                sample_rate=sample_rate,
                fft=spectrogram["n_fft"],
                hop=spectrogram["hop_length"],
                pad=spectrogram["stft_pad_amount"],
                stages=tuple(map(_stage, stages)),
                chunk=_chunk(options.get("chunk_size_seconds"), sample_rate),
            )
        )

    @property
    def text(self) -> str:
        """The rule in some 100 bytes; `parse` reads it."""
        return self._rule.text

    @classmethod
    def parse(cls, text: str) -> AudioTokens:
        """Return the rule that a `text` says.

        Raises
        ------
        ConfigError
            When the text says none.
        """
        try:
            return cls(_parsed(text))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ConfigError(
                f"{text!r} does not say how many tokens audio takes",
                fix="Give it as it was written",
            ) from error

    def count(self, duration_us: NDArray[np.int64]) -> NDArray[np.int64]:
        """Tokens of audio of these lengths (µs), at least 1 each."""
        return np.maximum(self._rule(np.clip(duration_us, 0, _LONGEST_US)), 1)

    def count_one(self, duration_us: int) -> int:
        """Tokens of one stretch of audio of this length (µs), at least 1."""
        return int(self.count(np.array([duration_us], dtype=np.int64))[0])


def _stage(stage: Any) -> _Conv | _Stack:
    name = f"{_NAME}.subsampling"
    kind = stage.get("type", "conv") if isinstance(stage, Mapping) else "conv"
    if kind == "feature_stacking":
        options = _mapping(name, stage, ("type", "factor"), required=("factor",))
        _whole_at_least(f"{name}.factor", options["factor"], 1)
        return _Stack(options["factor"])
    if kind != "conv":
        raise ConfigError(f"{name}.type is {kind!r}", fix="Use conv or feature_stacking")
    options = _mapping(name, stage, ("type", *_CONV, *_CONV_EXTRA), required=_CONV)
    for key, least in (("kernel_size", 1), ("stride", 1), ("padding", 0)):
        _whole_at_least(f"{name}.{key}", options[key], least)
    repeat, ceil = options.get("repeat", 1), options.get("ceil_mode", False)
    _whole_at_least(f"{name}.repeat", repeat, 1, _MOST_REPEATS)
    if not isinstance(ceil, bool):
        raise ConfigError(f"{name}.ceil_mode is {ceil!r}", fix="Give true or false")
    return _Conv(options["kernel_size"], options["stride"], options["padding"], repeat, ceil)


def _chunk(seconds: Any, sample_rate: int) -> int | None:
    """Samples of a chunk; None where audio is encoded at once."""
    if seconds is None:
        return None
    number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    if not number or not 0 < seconds <= _LARGEST:
        raise ConfigError(
            f"{_NAME}.chunk_size_seconds is {seconds!r}",
            fix="Give a positive number of seconds, or leave it out",
        )
    return max(1, round(seconds * sample_rate))


def _mapping(
    name: str, value: Any, known: Sequence[str], *, required: Sequence[str]
) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{name} is {value!r}", fix=_FIX)
    for key in value:
        if key not in known:
            raise ConfigError(
                f"{name} has the unknown key {key!r}", fix=f"Use {', '.join(known)} alone"
            )
    missing = [key for key in required if value.get(key) is None]
    if missing:
        raise ConfigError(f"{name} has no {', '.join(missing)}", fix=_FIX)
    return value


def _whole(value: Any, least: int, most: int = _LARGEST) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _whole_at_least(name: str, value: Any, least: int, most: int = _LARGEST) -> None:
    if not _whole(value, least, most):
        raise ConfigError(
            f"{name} is {value!r}", fix=f"Give a whole number from {least} to {most:,}"
        )


def _parsed(text: str) -> _Even | _Encoder:
    stages: list[_Conv | _Stack] = []
    numbers: dict[str, int] = {}
    for word in text.split(" "):
        name, _, value = word.partition("=")
        if name in ("conv", "ceil"):
            kernel, stride, padding, repeat = value.split(",")
            stages.append(
                _Conv(
                    kernel=_number(kernel, 1),
                    stride=_number(stride, 1),
                    padding=_number(padding, 0),
                    repeat=_number(repeat, 1, _MOST_REPEATS),
                    ceil=name == "ceil",
                )
            )
        elif name == "stack":
            stages.append(_Stack(_number(value, 1)))
        elif name in ("us", "rate", "fft", "hop", "pad", "chunk") and name not in numbers:
            numbers[name] = _number(value, 0 if name == "pad" else 1)
        else:
            raise ValueError(word)
    if "us" in numbers:
        if len(numbers) > 1 or stages:
            raise ValueError(text)
        return _Even(numbers["us"])
    return _Encoder(
        sample_rate=numbers["rate"],
        fft=numbers["fft"],
        hop=numbers["hop"],
        pad=numbers["pad"],
        stages=tuple(stages),
        chunk=numbers.get("chunk"),
    )


def _number(text: str, least: int, most: int = _LONGEST_US) -> int:
    number = int(text)
    if not _whole(number, least, most):
        raise ValueError(text)
    return number
