"""Prompt formats that are written turn by turn, each role in its own way."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from playhead.errors import ConfigError
from playhead.tokens.base import BadTextError, digest_of
from playhead.tokens.prompts.dialog import ANSWER, Said, said_in
from playhead.tokens.prompts.registry import register_maker
from playhead.tokens.prompts.turns import field_of
from playhead.tokens.writing import Piece, Writing, encode_writing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from playhead.formats.example import Example
    from playhead.tokens.base import Tokenizer

__all__ = ["Template", "TemplatePrompt", "TextFrame", "register_template"]

_VERSION = b"template 1"
_SLOT = re.compile(r"\{(\w+)\}")
_BEGIN, _END = "{bos}", "{eos}"
_MESSAGE, _SYSTEM = "message", "system"
# What no row says.
_MARK = "\x02\x03"


@dataclass(frozen=True, kw_only=True, slots=True)
class Template:
    """How a prompt format writes its turns.

    In the texts of roles `{message}` stands for what is said, other names in braces for what
    `slots` gives. A text that begins with `{bos}` or ends with `{eos}` has the token that begins or
    ends a sentence there. Every turn is encoded by itself.
    """

    name: str
    """Its name."""
    roles: Mapping[str, str]
    """Each role and its text."""
    preamble: str = ""
    """What stands before all turns."""
    asking: str = ""
    """What stands behind all turns where the last one is no answer."""
    begins: bool = False
    """Whether the token that begins a sentence stands before everything."""
    ends: bool = False
    """Whether the token that ends a sentence stands behind the last answer."""
    joined: str | None = None
    """The role that a system's turn and the user's behind it become together."""
    slots: Mapping[str, Callable[[Example], str | None]] = field(default_factory=dict)
    """What else roles ask for, of the sample; None is an error that names the slot."""
    asked: tuple[str, ...] = ("context", "question", "default_context")
    """Fields of a cut that the user may have said; the first that it has counts."""
    asked_else: str | None = None
    """What the user said where a cut has none of them; None is an error."""
    system_else: str | None = None
    """What the system says where a cut has no `system_prompt`; None says nothing."""
    rewrite: Callable[[list[Said]], list[Said]] | None = None
    """What becomes of all turns before they are written."""
    masks_last: bool = False
    """Whether only the last answer is what a model learns to say."""
    version: str = ""
    """Another text where `slots` or `rewrite` give others than before."""
    question: Literal["user", "system"] | None = "user"
    """Who asks the question of a pair: the user, before the source, the system, or nobody."""


def register_template(template: Template) -> Template:
    """Make a template the prompt format of its name."""
    register_maker(template.name, partial(TemplatePrompt, template))
    return template


class TextFrame(NamedTuple):
    """What a prompt puts around a text."""

    before: str
    """What is written before it, and encoded with it."""
    behind: str
    """What is written behind it, and encoded with it."""
    context: int
    """How many tokens stand before all that."""
    edges: int
    """How many tokens stand beside all that and count as the answer's."""


class _Role(NamedTuple):
    parts: tuple[str, ...]
    """Texts and, between them, names of slots."""
    begins: bool
    ends: bool


class TemplatePrompt:
    """A prompt format that a template describes.

    Parameters
    ----------
    template
        The template.
    tokenizer
        The tokenizer.

    Raises
    ------
    ConfigError
        If the template does not write answers, or wants tokens that begin or end a sentence and
        the tokenizer has none.

    Attributes
    ----------
    digest
        Of all that the template says, and of these tokens.
    """

    def __init__(self, template: Template, tokenizer: Tokenizer) -> None:
        self._template = template
        self._tokenizer = tokenizer
        self._roles = {role: _parsed(text) for role, text in template.roles.items()}
        if ANSWER not in self._roles or self._roles[ANSWER].parts[1::2] != (_MESSAGE,):
            raise ConfigError(
                f"the prompt format `{template.name}` does not write what the {ANSWER} says",
                fix=f"Give it a role `{ANSWER}` that holds {{{_MESSAGE}}} and no other slot",
            )
        known = {_MESSAGE, "system", *template.slots}
        for role, parsed in self._roles.items():
            unknown = [name for name in parsed.parts[1::2] if name not in known]
            if unknown:
                raise ConfigError(
                    f"the prompt format `{template.name}` has the slot {{{unknown[0]}}} in its role"
                    f" `{role}`, which nothing fills",
                    fix=f"Use some of {', '.join(sorted(known))}, or give the template the slot",
                )
        wants = (
            template.begins or any(role.begins for role in self._roles.values()),
            template.ends or any(role.ends for role in self._roles.values()),
        )
        languages = (None,) if tokenizer.languages is None else tokenizer.languages
        edges = [list(tokenizer.edge_ids(language)) if any(wants) else [] for language in languages]
        for each in edges:
            for token, wanted, what in zip(each, wants, ("begins", "ends"), strict=False):
                if wanted and token is None:
                    raise _lacks(what, template)
        said = {
            **asdict(replace(template, slots={}, rewrite=None)),
            "slots": sorted(template.slots),
            "rewrites": template.rewrite is not None,
        }
        self.digest = digest_of(_VERSION, msgspec.json.encode([said, edges], order="sorted"))

    def encode(self, example: Example) -> dict[str, list[Any]]:
        """Return the tokens of a sample; `Prompt.encode`."""
        return encode_writing(self.write(example), self._tokenizer)

    def write(self, example: Example) -> Writing:
        """Return a sample as it is encoded.

        Raises
        ------
        BadTextError
            If the sample has no such prompt.
        """
        template = self._template
        turns = self._turns(example)
        if template.rewrite is not None:
            turns = template.rewrite(turns)
        answers = turns[-1].role == ANSWER
        pieces = self._opening(turns[0].language)
        first = len(pieces) + len(turns) - 1
        for number, turn in enumerate(turns, len(pieces)):
            role = self._roles[turn.role]
            text = "".join(
                self._slot(part, example, turn) if place % 2 else part
                for place, part in enumerate(role.parts)
            )
            is_answer = answers and turn.role == ANSWER
            if template.masks_last and number < first:
                is_answer = False
            pieces.append(Piece(text, turn.language, is_answer, role.begins, role.ends))
        language = turns[-1].language
        if not answers:
            pieces.append(Piece(template.asking, language))
        elif template.ends:
            pieces.append(Piece("", language, is_answer=True, ends=True))
        return Writing(pieces, first if answers else len(pieces))

    def text_edges(self) -> tuple[int, int]:
        """Return how many tokens stand before the own tokens of a text, and how many behind."""
        languages = self._tokenizer.languages
        language = languages[0] if languages else None
        encode = self._tokenizer.encode
        opening = encode_writing(Writing(self._opening(language), 0), self._tokenizer)
        turns = [Said(ANSWER, _MARK, language)]
        if self._template.rewrite is not None:
            turns = self._template.rewrite(turns)
        role = self._roles[ANSWER]
        text = f"{role.parts[0]}{turns[-1].text}{role.parts[2]}"
        before, _, behind = text.partition(_MARK)
        first = len(opening["input_ids"]) + role.begins
        if before:
            first += len(encode(before, language))
        last = role.ends + self._template.ends
        if behind:
            last += len(encode(f"a{behind}", language)) - len(encode("a", language))
        return first, last

    def text_frame(self, language: str | None) -> TextFrame | None:
        """Return what stands around a text in a language; None if that depends on the text."""
        if self._template.rewrite is not None:
            return None
        role = self._roles[ANSWER]
        before, _, behind = role.parts
        opening = encode_writing(Writing(self._opening(language), 0), self._tokenizer)
        edges = role.begins + role.ends + self._template.ends
        return TextFrame(before, behind, len(opening["input_ids"]), edges)

    def _turns(self, example: Example) -> list[Said]:
        """What is said, in roles of the template."""
        template = self._template
        turns = self._of_cut(example) if example.kind == "cut" else said_in(example)
        if example.kind == "pair" and template.question != "user":
            question = field_of(example, "question")
            source = turns[0]._replace(text=field_of(example, "source") or "")
            turns = [source, *turns[1:]]
            if template.question == "system" and question is not None:
                turns = [source._replace(role=_SYSTEM, text=question), *turns]
        if template.joined is not None and turns[0].role == _SYSTEM:
            turns = self._with_system(turns)
        for turn in turns:
            if turn.role not in self._roles:
                raise _no_role(turn.role, template)
        return turns

    def _of_cut(self, example: Example) -> list[Said]:
        template, language = self._template, example.language
        turns: list[Said] = []
        if _SYSTEM in self._roles or template.joined is not None:
            system = field_of(example, "system_prompt")
            system = template.system_else if system is None else system
            if system is not None:
                turns.append(Said(_SYSTEM, system, language))
        found = [field_of(example, name) for name in template.asked]
        asked = next((one for one in found if one is not None), template.asked_else)
        if asked is None:
            raise BadTextError(
                f"the row has no {' and no '.join(template.asked)}, and the prompt format "
                f"`{template.name}` needs what the user says",
                fix="Add it to the row, or to the entry of the blend as a tag",
            )
        turns.append(Said("user", asked, language))
        if example.text is not None:
            turns.append(Said(ANSWER, example.text, language))
        return turns

    def _with_system(self, turns: list[Said]) -> list[Said]:
        """Join the system's turn, which has no text of its own, with the one behind it."""
        system, *others = turns
        if not others or others[0].role != "user":
            raise BadTextError(
                f"the system's turn is not followed by the user's, and the prompt format "
                f"`{self._template.name}` writes them as one",
                fix="Correct the row, or leave it out",
            )
        first = others[0]._replace(role=self._template.joined or "", system=system.text)
        return [first, *others[1:]]

    def _opening(self, language: str | None) -> list[Piece]:
        """What stands before all turns."""
        template = self._template
        if not template.begins and not template.preamble:
            return []
        return [Piece(template.preamble, language, begins=template.begins)]

    def _slot(self, name: str, example: Example, turn: Said) -> str:
        if name == _MESSAGE:
            return turn.text
        if name == _SYSTEM:
            return turn.system
        value = self._template.slots[name](example)
        if value is None:
            raise BadTextError(
                f"the row does not say {name}, which the prompt format `{self._template.name}` "
                "writes",
                fix="Add it to the row, or to the entry of the blend as a tag",
            )
        return value


def _parsed(text: str) -> _Role:
    begins, ends = text.startswith(_BEGIN), text.endswith(_END)
    inner = text[len(_BEGIN) if begins else 0 : -len(_END) if ends else None]
    return _Role(tuple(_SLOT.split(inner)), begins, ends)


def _lacks(what: str, template: Template) -> ConfigError:
    return ConfigError(
        f"the tokenizer has no token that {what} a sentence, which the prompt format "
        f"`{template.name}` writes",
        fix="Put tokenizer_config.json beside tokenizer.json, or use the model's own tokenizer",
    )


def _no_role(role: str, template: Template) -> BadTextError:
    return BadTextError(
        f"the prompt format `{template.name}` has no role {role!r}; it has "
        f"{', '.join(role for role in template.roles if role != template.joined)}",
        fix="Correct the row or leave it out, or use a prompt format that has the role",
    )
