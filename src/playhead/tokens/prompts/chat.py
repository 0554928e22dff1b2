"""The chat template of a tokenizer as a prompt format."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from playhead.errors import ConfigError
from playhead.tokens.base import BadTextError, digest_of, missing_extra
from playhead.tokens.hf_tokenizer import ChatTemplate
from playhead.tokens.prompts.registry import register_prompt
from playhead.tokens.prompts.turns import field_of, joined_turns

if TYPE_CHECKING:
    from playhead.formats.example import Example
    from playhead.tokens.base import Tokenizer

__all__ = ["Chat"]


@register_prompt("chat")
class Chat:
    """A turn of the user, the row's `context`, and one of the assistant, the row's text.

    A row with a `system_prompt` begins with that. The template is written twice, without the
    assistant's turn and with it: the tokens that both begin with are the context. Templates get no
    clock (`strftime_now`), for the same row must always have the same tokens.

    Raises
    ------
    ConfigError
        If the tokenizer has no chat template, or it cannot be read.
    MissingExtraError
        If Jinja is not installed.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        found = _template_of(tokenizer)
        self._template = _compiled(found)
        self._special_tokens = found.special_tokens
        tokens = json.dumps(found.special_tokens, sort_keys=True)
        self.digest = digest_of(b"chat 1", found.source.encode(), tokens.encode())

    def encode(self, example: Example) -> dict[str, list[Any]]:
        """Return the tokens of a sample; `Prompt.encode`."""
        system = field_of(example, "system_prompt")
        turns = [] if system is None else [_turn("system", system)]
        turns.append(_turn("user", field_of(example, "context") or ""))
        asked = self._encoded(turns, example.language, ask=True)
        if example.text is None:
            return joined_turns(asked, [])
        turns.append(_turn("assistant", example.text))
        everything = self._encoded(turns, example.language, ask=False)
        shared = _shared(asked, everything)
        return joined_turns(everything[:shared], everything[shared:])

    def _encoded(
        self, turns: list[dict[str, str]], language: str | None, *, ask: bool
    ) -> list[int]:
        from jinja2 import TemplateError  # noqa: PLC0415  (an extra)

        try:
            text = self._template.render(
                messages=turns, add_generation_prompt=ask, **self._special_tokens
            )
        except (TemplateError, TypeError, ValueError, KeyError, AttributeError) as error:
            raise BadTextError(
                f"the chat template refuses the row: {error}",
                fix="Correct the row's context or system_prompt, or use another template",
            ) from None
        return self._tokenizer.encode(text, language)


def _turn(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


def _shared(first: list[int], second: list[int]) -> int:
    """How many tokens two sequences begin with together."""
    for place, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            return place
    return min(len(first), len(second))


def _template_of(tokenizer: Any) -> ChatTemplate:
    find = getattr(tokenizer, "chat_template", None)
    found = find() if callable(find) else None
    if isinstance(found, str):
        found = ChatTemplate(found, tokenizer.special_tokens())
    if not isinstance(found, ChatTemplate):
        raise ConfigError(
            "the tokenizer has no chat template, which the prompt format `chat` writes",
            fix="Put chat_template.jinja, or tokenizer_config.json with it, beside tokenizer.json",
        )
    return found


def _compiled(template: ChatTemplate) -> Any:
    try:
        from jinja2 import TemplateError, nodes  # noqa: PLC0415  (an extra)
        from jinja2.ext import Extension, loopcontrols  # noqa: PLC0415
        from jinja2.sandbox import ImmutableSandboxedEnvironment  # noqa: PLC0415
    except ImportError:
        raise missing_extra("a chat template", "jinja2") from None

    class Generation(Extension):
        """`{% generation %}`, which marks what the assistant says, and writes only its content."""

        tags = {"generation"}  # noqa: RUF012 - Jinja's way

        def parse(self, parser: Any) -> list[nodes.Node]:
            next(parser.stream)
            return parser.parse_statements(("name:endgeneration",), drop_needle=True)

    def refuse(message: str) -> None:
        raise TemplateError(message)

    def to_json(value: Any, indent: int | None = None) -> str:
        # Jinja's own filter writes for HTML.
        return json.dumps(value, ensure_ascii=False, indent=indent)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
    )
    names: dict[str, Any] = environment.globals  # pyright: ignore[reportAssignmentType]  (typed for Jinja's own)
    names["raise_exception"] = refuse
    environment.filters["tojson"] = to_json
    try:
        return environment.from_string(template.source)
    except TemplateError as error:
        raise ConfigError(
            f"the chat template cannot be read: {error}", fix="Correct the tokenizer's template"
        ) from None
