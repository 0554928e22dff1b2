"""Rules on tokens, prompts and texts."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import msgspec

from playhead.check.preflight.changes import diff
from playhead.check.preflight.reading import faults_of
from playhead.check.preflight.rule import CannotRun, Seen, rule
from playhead.errors import PlayheadError
from playhead.formats import Example
from playhead.formats.example import Place, Turn
from playhead.loader.settings import measures_tokens, needs_tokens
from playhead.storage import access
from playhead.storage.compression import is_compressed
from playhead.tokens.base import BadTextError
from playhead.tokens.prompts.registry import get_prompt, prompt_names, prompt_type

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.check.preflight.subject import Named, Subject

__all__: list[str] = []

_TEXTS = frozenset({"txt", "txt_jsonl", "nemo_sft_jsonl"})
_SHARE_GPT = frozenset({"share_gpt", "share_gpt_webdataset"})
_HEAD_BYTES = 1 << 16
# Enough to tell a misspelt field, and few enough for any store.
_MOST_MANIFESTS = 64


@rule("tokenizer", "fail", "Batches depend on tokens that nothing would count", 41)
def tokenizer(subject: Subject) -> Iterator[Seen]:
    """Options that need tokens, where nothing makes them."""
    for _, options, _, spot in subject.parts:
        if not (needs_tokens(options) or options.prompt_format):
            continue
        if not options.pretokenize:
            yield Seen(
                "`pretokenize` is false, and options look at tokens",
                str(spot.at("pretokenize")),
                diff(spot, remove=("pretokenize",)),
            )
        elif subject.tokenizer is None:
            yield Seen(
                "options look at tokens, and no tokenizer was given to this check",
                str(spot),
                advice="Give the tokenizer of the training run as --tokenizer, and as"
                " dataloader(…, tokenizer=…)",
                severity="note",
            )


@rule("audio-tokens", "fail", "Nothing says how many tokens audio takes", 39, 41)
def audio_tokens(subject: Subject) -> Iterator[Seen]:
    """Lengths in tokens of what is heard."""
    for _, options, blend, spot in subject.parts:
        if not measures_tokens(options) or options.audio_token_estimator is not None:
            continue
        heard = [
            leaf
            for leaf in blend.leaves
            if leaf.kind == "cut" or leaf.type in ("multimodal_conversation", *_SHARE_GPT)
        ]
        if not heard or any(leaf.options.token_equivalent_duration for leaf in blend.leaves):
            continue
        yield Seen(
            f"leaf {heard[0].name} has audio, samples are measured in tokens, and there is neither"
            " token_equivalent_duration nor audio_token_estimator",
            str(spot.at("token_equivalent_duration")),
            diff(spot, add={"token_equivalent_duration": 0.08}),
            "Set the seconds of audio that one token of the model stands for",
        )


@rule("prompt-format", "fail", "Conversations become tokens by a prompt format alone", 41)
def prompt_format(subject: Subject) -> Iterator[Seen]:
    """Prompt formats that are missing or unknown."""
    yield from faults_of(subject, "prompt-format")
    for _, options, blend, spot in subject.parts:
        name = options.prompt_format
        if name is not None:
            try:
                prompt_type(name)
            except PlayheadError as error:
                meant = get_close_matches(name, prompt_names(), 1)
                yield Seen(
                    str(error).partition(". ")[0].rstrip("."),
                    str(spot.at("prompt_format")),
                    diff(spot, add={"prompt_format": meant[0]}) if meant else (),
                    error.advice,
                )
            continue
        turns = [leaf for leaf in blend.leaves if leaf.kind in ("conversation", "sft")]
        if turns and measures_tokens(options):
            yield Seen(
                f"leaf {turns[0].name} holds conversations, they are measured in tokens, and there"
                " is no `prompt_format`",
                str(spot.at("prompt_format")),
                (),
                f"Choose the model's: {', '.join(prompt_names())}",
            )


@rule("prompt-role", "fail", "A prompt format writes the roles that it has, and no others", 41)
def prompt_role(subject: Subject) -> Iterator[Seen]:
    """System prompts, where the prompt format has no system."""
    formats = {options.prompt_format for _, options, _, _ in subject.parts} - {None}
    if not formats:
        return
    for named in subject.leaves:
        name = named.options.prompt_format
        system = named.leaf.tags.get("system_prompt", named.leaf.outer_tags.get("system_prompt"))
        makes_turns = named.leaf.kind == "conversation"
        if name is None or name not in prompt_names() or system is None or not makes_turns:
            continue
        if not _has_system(name):
            yield Seen(
                f"leaf {named.leaf.name} has the tag system_prompt, and the prompt format"
                f" `{name}` has no role `system`",
                str(named.spot.at("tags", "system_prompt")),
                diff(named.spot.at("tags"), remove=("system_prompt",)),
                "Take the tag out, or use a prompt format that has the role",
            )


def _has_system(name: str) -> bool:
    roles = ("system", "user", "assistant")
    turns = tuple(Turn(role=role, text="a") for role in roles)
    place = Place(leaf="", shard="", row=0, byte=0)
    example = Example(
        id="", text=None, language=None, audio=None, place=place, kind="conversation", turns=turns
    )
    try:
        get_prompt(name, _Letters()).encode(example)
    except BadTextError:
        return False
    except PlayheadError:
        # It wants something else of the sample.
        return True
    return True


class _Letters:
    """A tokenizer that has every token, to look at prompts with."""

    digest = ""
    vocab_size = 256
    languages = None
    runs_in_threads = False

    def encode(self, text: str, language: str | None = None) -> list[int]:  # noqa: ARG002
        return list(text.encode())

    def count(self, texts: Any, languages: Any) -> Any:  # noqa: ARG002
        import numpy as np  # noqa: PLC0415  (never called by prompts)

        return np.array([len(text.encode()) for text in texts], np.uint32)

    def token_id(self, token: str, language: str | None = None) -> int | None:  # noqa: ARG002
        return 0

    def edge_ids(self, language: str | None = None) -> tuple[int | None, int | None]:  # noqa: ARG002
        return 1, 2


@rule(
    "text-language", "warning", "A tokenizer for each language has to know which one a text is", 22
)
def text_language(subject: Subject) -> Iterator[Seen]:
    """Texts whose language nobody says."""
    per_language = isinstance(subject.tokenizer, dict) and len(subject.tokenizer) > 1
    for named in subject.leaves:
        leaf = named.leaf
        if leaf.type in _TEXTS and not leaf.own.get("language"):
            language = next(iter(subject.tokenizer)) if per_language else "en"
            yield Seen(
                f"leaf {leaf.name} ({leaf.type}) has no `language`",
                str(named.spot),
                diff(named.spot, add={"language": language}),
                "Say its language",
                "fail" if per_language else "note",
            )


@rule("audio-placeholders", "note", "A placeholder that is not known stays a text", 22)
def audio_placeholders(subject: Subject) -> Iterator[Seen]:
    """ShareGPT data whose placeholders are the usual ones."""
    for named in subject.leaves:
        leaf = named.leaf
        if leaf.type in _SHARE_GPT and not leaf.own.get("audio_placeholders"):
            yield Seen(
                f"leaf {leaf.name} has no `audio_placeholders`: <sound> and <speech> stand for"
                " audio",
                str(named.spot),
                diff(named.spot, add={"audio_placeholders": ["<sound>", "<speech>"]}),
            )


@rule(
    "text-field", "warning", "Rows without the field have no transcript, and no row is refused", 27
)
def text_field(subject: Subject) -> Iterator[Seen]:
    """NeMo manifests whose first row lacks the field of the transcript."""
    of_nemo = [named for named in subject.leaves if named.leaf.type in ("nemo", "nemo_tarred")]
    of_nemo = of_nemo[:: -(-len(of_nemo) // _MOST_MANIFESTS) or 1]
    looked = 0
    for named in of_nemo:
        row = _first_row(named)
        if row is None:
            continue
        looked += 1
        field = named.leaf.options.text_field
        if field not in row:
            texts = [key for key in ("text", "answer", "transcript", "text_pnc") if key in row]
            yield Seen(
                f"the first row of leaf {named.leaf.name} has no {field!r}, but"
                f" {', '.join(map(repr, row))}",
                str(named.spot.at("text_field")),
                diff(named.spot, add={"text_field": texts[0]}) if texts else (),
                "Name the key that holds the transcript",
            )
    if of_nemo and not looked:
        raise CannotRun("no first row of a manifest could be read")


def _first_row(named: Named) -> dict[str, Any] | None:
    path = named.leaf.paths["manifest"][0]
    if is_compressed(path) or path.startswith("pipe:"):
        return None
    try:
        count = min(_HEAD_BYTES, access.size(path))
        head = access.read_ranges(path, [0], [count])[0]
        row = msgspec.json.decode(head.lstrip().partition(b"\n")[0])
    except (PlayheadError, OSError, msgspec.DecodeError):
        return None
    return row if isinstance(row, dict) else None
