"""What windows are drawn with: how rows are ordered, reshaped, measured and filtered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from playhead.audio_tokens import AudioTokens
from playhead.errors import PlanError
from playhead.plan.values import at_least, finite, one_of, text, true_or_false

__all__ = ["Locality", "Shape", "TruncateOffset"]

Locality = Literal["rows", "shards"]
TruncateOffset = Literal["random", "start", "end"]

# Shorter windows would make millions of samples of a long row.
_SHORTEST_WINDOW_US = 1_000
_YES_OR_NO = (
    "finite",
    "shuffle",
    "excluded_speakers",
    "perturb_speed",
    "multimodal",
    "total_length",
)
_LEAST = {
    "min_duration_us": 0,
    "max_duration_us": 0,
    "exclusions": 0,
    "cache_bytes": 1,
    "window_draws": 1,
    "truncate_us": 1,
    "window_us": _SHORTEST_WINDOW_US,
    "hop_us": _SHORTEST_WINDOW_US,
    "pad_us": 1,
    "slice_length": 1,
    "min_tokens": 0,
    "max_tokens": 0,
    "text_window": 1,
    "text_overhead": 0,
}
_NUMBERS = ("min_tps", "max_tps", "max_cer", "min_similarity", "min_tpt", "max_tpt")
_OF_TOKENS = ("audio_tokens", "min_tokens", "max_tokens", "min_tpt", "max_tpt", "text_window")
_MOST_TOKENS = (1 << 31) - 1
_AS_THEY_ARE = (None, None, None, None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """What windows are drawn with; a change takes effect at the next window.

    Raises
    ------
    PlanError
        When an option has a value that means nothing.
    """

    finite: bool = False
    """One pass over every row, weights ignored, instead of an endless blend."""
    shuffle: bool = True
    """Draw rows in keyed order; declared order if false."""
    min_duration_us: int | None = None
    """Shortest length that is kept (µs, inclusive)."""
    max_duration_us: int | None = None
    """Longest length that is kept (µs, inclusive)."""
    locality: Locality = "rows"
    """Permute the rows of a leaf, or its shards so that each is used in one stretch a pass."""
    cache_bytes: int = 64 << 30
    """What the shards of a window may take (bytes) where locality is `shards`."""
    window_draws: int | None = None
    """Draws per window; None takes enough for about 100 steps, at most a million or so."""
    keep: str = "pass"
    """The status that rows must have; rows that say none are kept."""
    exclusions: int = 0
    """Rows that were excluded no later than this are out; set when a window opens."""
    tokens: str | None = None
    """Digest of the token counts of the leaves."""
    min_tps: float | None = None
    """Fewest tokens by second that are kept (inclusive); needs `tokens`."""
    max_tps: float | None = None
    """Most tokens by second that are kept (inclusive); needs `tokens`."""
    fields: str | None = None
    """Digest of the columns that the next three look at."""
    max_cer: float | None = None
    """Highest character error rate that is kept (inclusive); needs `fields`."""
    min_similarity: float | None = None
    """Lowest similarity of the context speaker that is kept (inclusive); needs `fields`."""
    excluded_speakers: bool = False
    """Refuse rows of the speakers that are held out; needs `fields`."""
    perturb_speed: bool = False
    """Play every draw at 0.9, 1.0 or 1.1 times its speed, by a keyed choice."""
    truncate_us: int | None = None
    """Length that longer rows are truncated to (µs)."""
    truncate_offset: TruncateOffset = "random"
    """Which stretch truncation keeps: a keyed one, the first or the last."""
    window_us: int | None = None
    """Length of the windows that rows are cut into (µs); the last of a row may be shorter."""
    hop_us: int | None = None
    """From the start of one window to the next (µs); None is `window_us`."""
    pad_us: int | None = None
    """Length that shorter samples are padded to (µs)."""
    slice_length: int | None = None
    """Rows that a pass takes of each shard, from a keyed row on; None takes all."""
    multimodal: bool = False
    """Measure samples in tokens, audio among them; then `tokens` has all five columns."""
    audio_tokens: str | None = None
    """How many tokens the audio of a cut takes, as `AudioTokens.text` says it."""
    total_length: bool = True
    """The length in tokens is all of a sample; that of what comes before the answer if false."""
    min_tokens: int | None = None
    """Shortest length in tokens that is kept of what is no cut (inclusive)."""
    max_tokens: int | None = None
    """Longest length in tokens that is kept of what is no cut (inclusive)."""
    min_tpt: float | None = None
    """Fewest tokens of the answer by token before it that are kept (inclusive); not of cuts."""
    max_tpt: float | None = None
    """Most tokens of the answer by token before it that are kept (inclusive); not of cuts."""
    text_window: int | None = None
    """Tokens of the windows that texts are cut into; the last of a text may be shorter."""
    text_overhead: int = 0
    """Tokens that the prompt puts around a text, and around each window of it."""

    def __post_init__(self) -> None:
        for name in _YES_OR_NO:
            true_or_false(name, getattr(self, name))
        for name, least in _LEAST.items():
            at_least(name, getattr(self, name), least)
        for name in _NUMBERS:
            finite(name, getattr(self, name))
        for name in ("keep", "tokens", "fields", "audio_tokens"):
            text(name, getattr(self, name))
        one_of("locality", self.locality, get_args(Locality))
        one_of("truncate_offset", self.truncate_offset, get_args(TruncateOffset))
        if self.hop_us is not None and self.window_us is None:
            raise PlanError(
                f"the option hop_us is {self.hop_us} and window_us is not given",
                fix="Set cut_into_windows_duration too",
            )
        self._check_columns()
        self._check_multimodal()
        self._check_ranges()

    @property
    def reshapes(self) -> bool:
        """Whether samples may have another length than their rows, or be several of one row."""
        return (
            self.perturb_speed
            or (self.truncate_us, self.window_us, self.pad_us, self.text_window) != _AS_THEY_ARE
        )

    @property
    def in_parts(self) -> bool:
        """Whether a row may give several samples."""
        return self.window_us is not None or self.text_window is not None

    def _check_ranges(self) -> None:
        for least, most in (
            ("min_tps", "max_tps"),
            ("min_duration_us", "max_duration_us"),
            ("min_tokens", "max_tokens"),
            ("min_tpt", "max_tpt"),
        ):
            low, high = getattr(self, least), getattr(self, most)
            if low is not None and high is not None and low > high:
                raise PlanError(
                    f"the option {least} {low} is above {most} {high}: nothing would be kept",
                    fix="Exchange or widen them",
                )

    def _check_multimodal(self) -> None:
        asked = [name for name in _OF_TOKENS if getattr(self, name) is not None]
        if asked and not self.multimodal:
            raise PlanError(
                f"the option {asked[0]} measures samples in tokens, and multimodal is false",
                fix="Set use_multimodal_sampling, or take the option out",
            )
        for name in ("text_window", "text_overhead"):
            value = getattr(self, name)
            if value is not None and value > _MOST_TOKENS:
                raise PlanError(
                    f"the option {name} is {value}", fix=f"Give at most {_MOST_TOKENS:,} tokens"
                )
        if self.audio_tokens is not None:
            AudioTokens.parse(self.audio_tokens)

    def _check_columns(self) -> None:
        for digest, of, names in (
            ("tokens", "a tokenizer", ("min_tps", "max_tps", "min_tpt", "max_tpt", "text_window")),
            ("fields", "columns", ("max_cer", "min_similarity", "excluded_speakers")),
        ):
            asked = [
                name
                for name in names
                if getattr(self, name) is not None and getattr(self, name) is not False
            ]
            if asked and getattr(self, digest) is None:
                raise PlanError(
                    f"the option {asked[0]} looks at the {digest} of rows, and none are given",
                    fix=f"Give {of} to count them with, or take the option out",
                )
