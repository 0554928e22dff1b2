"""Prompt formats by their names."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from playhead.errors import ConfigError, NotSupportedError
from playhead.tokens.base import digest_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from playhead.formats.example import Example
    from playhead.tokens.base import Tokenizer

__all__ = [
    "Prompt",
    "PromptMaker",
    "get_prompt",
    "prompt_digest",
    "prompt_names",
    "prompt_type",
    "register_maker",
    "register_prompt",
]

_ELSEWHERE = frozenset({"example_prompt_format", "nemotron-nano-v3"})


class Prompt(Protocol):
    """How a sample becomes what a model reads and answers; made with the tokenizer.

    A class attribute `digest`, a text, tells versions apart whose tokens differ. Without it the
    source of the class does, which knows nothing of the functions that the class calls. A method
    `text_edges()` says how many tokens the prompt puts before the own tokens of a text (a sample of
    kind `text`) and behind them: only then such texts can be cut into windows.
    """

    def __init__(self, tokenizer: Tokenizer) -> None: ...

    def encode(self, example: Example) -> Mapping[str, list[Any]]:
        """Return the tokens of a sample.

        Returns
        -------
        Mapping
            `input_ids`, all of it; `context_ids`, what stands before the answer; `answer_ids`;
            `mask`, true where `input_ids` is the answer.

        Raises
        ------
        BadTextError
            If the sample has no such prompt.
        """
        ...


PromptMaker: TypeAlias = "Callable[[Tokenizer], Any]"
"""A class of prompt formats, or what else makes one with a tokenizer; can be pickled."""

_PROMPTS: dict[str, PromptMaker] = {}
PromptType = TypeVar("PromptType", bound=type[Any])


def register_prompt(name: str) -> Callable[[PromptType], PromptType]:
    """Make a class the prompt format `name`; a name that is there is replaced.

    Examples
    --------
    >>> @register_prompt("shouted")
    ... class Shouted:
    ...     digest = "1"
    ...     def __init__(self, tokenizer):
    ...         self.tokenizer = tokenizer
    ...     def encode(self, example):
    ...         ids = self.tokenizer.encode(example.text.upper(), example.language)
    ...         return {"input_ids": ids, "context_ids": [], "answer_ids": ids,
    ...                 "mask": [True] * len(ids)}
    >>> "shouted" in prompt_names()
    True
    >>> _ = _PROMPTS.pop("shouted")
    """

    def add(cls: PromptType) -> PromptType:
        register_maker(name, cls)
        return cls

    return add


def register_maker(name: str, maker: PromptMaker) -> None:
    """Let the prompt format `name` be made by something."""
    _PROMPTS[name] = maker


def prompt_names() -> list[str]:
    """Names of the prompt formats that may be used."""
    return sorted(_PROMPTS)


def prompt_type(name: str) -> PromptMaker:
    """Return what makes a prompt format: its class, as a rule.

    Raises
    ------
    NotSupportedError
        If it is one of NeMo's that is not built.
    ConfigError
        If there is none.
    """
    if name in _PROMPTS:
        return _PROMPTS[name]
    there = ", ".join(prompt_names())
    if name in _ELSEWHERE:
        raise NotSupportedError(
            f"the prompt format {name!r} is not built; there are {there}",
            fix="Use `chat` with a tokenizer that has a chat template, or register your own "
            "(playhead.tokens.prompts.register_prompt)",
        )
    raise ConfigError(
        f"there is no prompt format {name!r}; there are {there}",
        fix="Correct prompt_format, or register your own (playhead.tokens.prompts.register_prompt)",
    )


def get_prompt(name: str, tokenizer: Tokenizer) -> Prompt:
    """Make a prompt format with a tokenizer.

    Raises
    ------
    ConfigError
        If there is none of that name, or the tokenizer cannot serve it.
    """
    return prompt_type(name)(tokenizer)


def prompt_digest(prompt: Prompt) -> str:
    """Identify what a prompt format makes of samples: 16 hexadecimal digits."""
    own = getattr(prompt, "digest", None)
    if isinstance(own, str):
        return digest_of(b"own digest", own.encode())
    cls = type(prompt)
    # The source of a class is looked for by its name, that of a function by its place: a class that
    # was defined twice is told apart by the second.
    functions = sorted(name for name, one in vars(cls).items() if inspect.isfunction(one))
    parts = [_source(cls), *(_source(vars(cls)[name]) for name in functions)]
    name = f"{cls.__module__}.{cls.__qualname__}"
    return digest_of(b"source", name.encode(), *(part.encode() for part in parts))


def _source(one: Any) -> str:
    try:
        return inspect.getsource(one)
    except (OSError, TypeError):
        return ""
