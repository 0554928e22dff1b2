"""The chat template of a tokenizer as a prompt format."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from playhead.errors import ConfigError
from playhead.tokens.base import BadTextError, digest_of, missing_extra
from playhead.tokens.hf_tokenizer import ChatTemplate
from playhead.tokens.prompts.dialog import ANSWER, Said, said_in
from playhead.tokens.prompts.registry import register_prompt
from playhead.tokens.prompts.turns import field_of, joined_turns

if TYPE_CHECKING:
    from playhead.formats.example import Example
    from playhead.tokens.base import Tokenizer

__all__ = ["Chat"]

# What no row has.
_MARK = "\x02\x03"


@register_prompt("chat")
class Chat:
    """The turns of a sample as the template writes them.

    Of a cut they are the user's, its `context`, and the assistant's, its text, behind its
    `system_prompt` if it has one. The template is written without each of the assistant's turns and
    with it: what both begin with stands before the turn. Templates get no clock (`strftime_now`),
    for the same row must always have the same tokens.

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
        said = _of_cut(example) if example.kind == "cut" else said_in(example)
        turns = [{"role": one.role, "content": one.text} for one in said]
        language = example.language
        if said[-1].role != ANSWER:
            return joined_turns(self._encoded(turns, language, ask=True), [])
        everything = self._encoded(turns, language, ask=False)
        mask = [False] * len(everything)
        start = 0
        for place, one in enumerate(said):
            if one.role != ANSWER:
                continue
            # Without any turn some templates have nothing to write.
            asked = self._encoded(turns[:place], language, ask=True) if place else []
            start = _shared(asked, everything)
            stop = len(everything)
            if place + 1 < len(said):
                stop = _shared(self._encoded(turns[: place + 1], language, ask=False), everything)
            mask[start:stop] = [True] * max(0, stop - start)
        return {
            "input_ids": everything,
            "context_ids": everything[:start],
            "answer_ids": everything[start:],
            "mask": mask,
        }

    def text_edges(self) -> tuple[int, int]:
        """Return how many tokens stand before the own tokens of a text, and how many behind."""
        languages = self._tokenizer.languages
        language = languages[0] if languages else None
        text = self._written([{"role": ANSWER, "content": _MARK}], ask=False)
        before, _, behind = text.partition(_MARK)
        encode = self._tokenizer.encode
        own = len(encode("a", language))
        first = len(encode(before, language)) if before else 0
        return first, len(encode(f"a{behind}", language)) - own if behind else 0

    def _encoded(
        self, turns: list[dict[str, str]], language: str | None, *, ask: bool
    ) -> list[int]:
        return self._tokenizer.encode(self._written(turns, ask=ask), language)

    def _written(self, turns: list[dict[str, str]], *, ask: bool) -> str:
        from jinja2 import TemplateError  # noqa: PLC0415  (an extra)

        try:
            return self._template.render(
                messages=turns, add_generation_prompt=ask, **self._special_tokens
            )
        except (TemplateError, TypeError, ValueError, KeyError, AttributeError) as error:
            raise BadTextError(
                f"the chat template refuses the row: {error}",
                fix="Correct the row or leave it out, or use another template",
            ) from None


def _of_cut(example: Example) -> list[Said]:
    language = example.language
    system = field_of(example, "system_prompt")
    said = [] if system is None else [Said("system", system, language)]
    said.append(Said("user", field_of(example, "context") or "", language))
    return said if example.text is None else [*said, Said(ANSWER, example.text, language)]


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
