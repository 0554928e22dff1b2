"""What a sample becomes: its tokens, with or without a prompt."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from playhead.errors import ConfigError, ManifestError, PlayheadError
from playhead.tokens.base import BadTextError, digest_of
from playhead.tokens.lengths import Lengths, lengths_of, lengths_with_audio
from playhead.tokens.messages import encode_messages, is_checked, write_messages
from playhead.tokens.prompts import Prompt, TextFrame, prompt_digest, prompt_type
from playhead.tokens.texts import texts_of
from playhead.tokens.writing import Piece, Writing, encode_writing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.audio_tokens import AudioTokens
    from playhead.formats.example import Example
    from playhead.tokens.base import Tokenizer

__all__ = ["Encoding"]

_VERSION = b"1"


class Encoding:
    """A tokenizer and a prompt format, and how many tokens audio takes.

    Without a prompt format the tokens of a sample are those of its texts, each in its language: of
    a cut with several supervisions one after another, of a pair its question, its source and its
    target. With one they are what the prompt makes. Messages are encoded as they are either way.

    Parameters
    ----------
    tokenizer
        The tokenizer.
    prompt_format
        Name of the prompt format; None for plain texts.
    audio
        How many tokens a stretch of audio takes, where lengths are counted in tokens; None where
        they are not.

    Raises
    ------
    ConfigError
        If there is no such prompt format, or the tokenizer cannot serve it.

    Attributes
    ----------
    digest
        Identity of the tokens that it gives and of their numbers: the tokenizer's content, the
        prompt's version, and what audio takes.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        prompt_format: str | None = None,
        *,
        audio: AudioTokens | None = None,
    ) -> None:
        self.tokenizer = tokenizer
        self.prompt_format = prompt_format
        self.audio = audio
        self._type = None if prompt_format is None else prompt_type(prompt_format)
        self._prompt: Prompt | None = self._made()
        parts = [_VERSION, tokenizer.digest.encode(), (prompt_format or "").encode()]
        parts.append(b"" if self._prompt is None else prompt_digest(self._prompt).encode())
        if audio is not None:
            parts.append(audio.text.encode())
        self.digest = digest_of(*parts)

    def __getstate__(self) -> dict[str, Any]:
        # The class travels by its name: to find it, its module is loaded, which registers it.
        return {**self.__dict__, "_prompt": None}

    @cached_property
    def text_edges(self) -> tuple[int, int]:
        """How many tokens stand before a text's own and behind them.

        Raises
        ------
        ConfigError
            If the prompt format does not say, or there are several languages.
        """
        if self._type is None:
            return 0, 0
        edges = getattr(self._at_hand(), "text_edges", None)
        if edges is None:
            raise ConfigError(
                f"the prompt format {self.prompt_format!r} does not say what it adds to a text, "
                "which cannot be cut into windows then",
                fix="Leave cut_text_into_windows_tokens out, or give the format a method "
                "text_edges() that returns the tokens it adds before and behind",
            )
        languages = self.tokenizer.languages
        if languages is not None and len(languages) > 1:
            raise ConfigError(
                f"the prompt format {self.prompt_format!r} adds other numbers of tokens to a text"
                " in each language of the tokenizer, so texts cannot be cut into windows",
                fix="Leave cut_text_into_windows_tokens or prompt_format out, or give one tokenizer"
                " for all languages",
            )
        before, behind = edges()
        return before, behind

    @property
    def text_overhead(self) -> int:
        """How many tokens the prompt adds to a text.

        Raises
        ------
        ConfigError
            If the prompt format does not say.
        """
        return sum(self.text_edges)

    def text_frame(self, language: str | None) -> TextFrame | None:
        """Return what stands around each text in a language; None if only `encode` knows."""
        if self._type is None:
            return TextFrame("", "", 0, 0)
        frame = getattr(self._at_hand(), "text_frame", None)
        return None if frame is None else frame(language)

    def encode(self, example: Example) -> Mapping[str, list[Any]]:
        """Return the tokens of a sample: `tokens`, or what the prompt format gives.

        Of a pair without a prompt `answer_tokens` are those of its target, with which `tokens` end.
        Of a text with a `token_window` they are those of its own tokens that the window holds, and
        what the prompt puts around them.

        Raises
        ------
        ManifestError
            If the sample has none; it names the row.
        """
        return self._named(example, self._encoded)

    def written(self, example: Example) -> Writing | None:
        """Return the texts of a whole sample that are encoded; None if only `encode` knows.

        Raises
        ------
        ManifestError
            If the sample has none; it names the row.
        """
        return self._named(example, self._written)

    def lengths(self, example: Example) -> Lengths:
        """Return how many tokens a sample takes, with the audio of its turns.

        Raises
        ------
        ManifestError
            If the sample has none; it names the row.
        """
        return self._named(example, self._lengths)

    def measured(self, example: Example, counts: tuple[int, int]) -> Lengths:
        """Return what `lengths` returns, where the tokens are counted.

        Parameters
        ----------
        example
            The sample.
        counts
            Tokens before its answer, and of its answer.
        """
        return self._named(example, lambda one: self._measured(one, *counts))

    @staticmethod
    def num_tokens(encoded: Mapping[str, list[Any]]) -> int:
        """Count the tokens that a sample takes: its `tokens`, or all `input_ids`."""
        return len(encoded["input_ids"] if "input_ids" in encoded else encoded["tokens"])

    def _named(self, example: Example, make: Any) -> Any:
        try:
            return make(example)
        except BadTextError as error:
            raise error.placed(example.place) from error.__cause__
        except PlayheadError:
            raise
        except Exception as error:
            raise ManifestError(
                f"the prompt format {self.prompt_format!r} fails: {type(error).__name__}: {error}",
                where=str(example.place),
                fix="Correct the row, or the prompt format",
            ) from error

    def _measured(self, example: Example, context: int, answer: int) -> Lengths:
        return lengths_with_audio(example, context + answer, context, answer, self.audio)

    def _lengths(self, example: Example) -> Lengths:
        return lengths_of(example, self._encoded(example), self.audio)

    def _encoded(self, example: Example) -> Mapping[str, list[Any]]:
        if example.kind == "messages":
            return encode_messages(self.tokenizer, example)
        if self._type is not None:
            encoded = self._at_hand().encode(example)
        else:
            found = encode_writing(self._without_prompt(example), self.tokenizer)
            encoded = {"tokens": found["input_ids"]}
            if example.kind == "pair":
                encoded["answer_tokens"] = found["answer_ids"]
        if example.token_window is None:
            return encoded
        return self._window(encoded, *example.token_window)

    def _written(self, example: Example) -> Writing | None:
        if example.kind == "messages":
            return None if is_checked(example) else write_messages(example)
        if self._type is None:
            return self._without_prompt(example)
        write = getattr(self._at_hand(), "write", None)
        return None if write is None else write(example)

    def _without_prompt(self, example: Example) -> Writing:
        if example.kind in ("sft", "conversation"):
            raise BadTextError(
                "a conversation has no tokens without a prompt",
                fix="Set prompt_format, such as llama3, or chat for the tokenizer's own template",
            )
        pieces = [Piece(text, language) for text, language in texts_of(example)]
        return Writing(pieces, len(pieces) - 1 if example.kind == "pair" else 0)

    def _window(
        self, encoded: Mapping[str, list[Any]], start: int, stop: int
    ) -> Mapping[str, list[Any]]:
        """Keep of a text's own tokens those from `start` to before `stop`."""
        before, behind = self.text_edges
        count = self.num_tokens(encoded)
        end = max(before, count - behind)

        def cut(values: list[Any]) -> list[Any]:
            return values[:before] + values[before:end][start:stop] + values[end:]

        if "tokens" in encoded:
            return {"tokens": cut(encoded["tokens"])}
        ids, context = cut(encoded["input_ids"]), encoded["context_ids"]
        return {
            "input_ids": ids,
            "context_ids": context,
            "answer_ids": ids[len(context) :],
            "mask": cut(encoded["mask"]),
        }

    def _at_hand(self) -> Prompt:
        if self._prompt is None:
            self._prompt = self._made()
        assert self._prompt is not None
        return self._prompt

    def _made(self) -> Prompt | None:
        return None if self._type is None else self._type(self.tokenizer)
