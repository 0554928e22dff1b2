"""Rows without audio in a loader: each once a pass, and exact after any stop."""

from __future__ import annotations

import json
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

import playhead
from playhead.formats import turns_of
from support.corpus import write_tar
from support.steps import steps

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pytest

    from playhead.formats import Example

G = 4
BLANK, SKIPPED = "blank", "skipped"


class Said:
    """What every sample says."""

    reads_audio = False

    def collate(self, examples: Sequence[Example], **_: Any) -> dict[str, Any]:
        turns = [[(turn.role, turn.text) for turn in turns_of(one)] for one in examples]
        return {"said": [(one.id, said) for one, said in zip(examples, turns, strict=True)]}


def chat(text: str) -> dict[str, Any]:
    return {"conversations": [{"from": "User", "value": "ask"}, {"from": "gpt", "value": text}]}


def fragments(text: str) -> dict[str, Any]:
    return {"conversation": [{"sender": "bot", "fragments": [text, {"value": "!"}]}]}


def messages(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "assistant", "content": text}]}


JSON_TYPES: dict[str, Any] = {
    "txt_jsonl": lambda text: {"text": text},
    "nemo_sft_jsonl": chat,
    "nemotron_text_converation": fragments,
    "materialized_sft_messages": messages,
}
TYPES = ["txt", "txt_pair", "tar", *JSON_TYPES]


def entry_of(folder: Path, type_: str, kinds: Sequence[str]) -> dict[str, Any]:
    """A file whose rows say their numbers; some are blank or left out."""
    texts = [f"{type_} {number}" for number in range(len(kinds))]
    kept = dict(zip(texts, kinds, strict=True))
    if type_ == "tar":
        members = [
            (
                f"{n}.json",
                json.dumps({**fragments(text), "_skipme": kept[text] == SKIPPED}).encode(),
            )
            for n, text in enumerate(texts)
            if kept[text] != BLANK
        ]
        return {
            "type": "nemotron_text_converation",
            "paths": str(write_tar(folder / "talk.tar", members)),
        }
    lines = [text if kept[text] == "row" else " \t" for text in texts]
    if make := JSON_TYPES.get(type_):
        rows = {text: {**make(text), "_skipme": kept[text] == SKIPPED} for text in texts}
        lines = ["" if kept[text] == BLANK else json.dumps(rows[text]) for text in texts]
    path = folder / f"{type_}.x"
    path.write_text("\r\n".join(lines))
    if type_ == "txt_pair":
        (folder / "target.x").write_text("".join(f"answer {text}\n" for text in texts))
        return {"type": type_, "source_paths": str(path), "target_paths": f"{folder}/target.x"}
    language = {"language": "en"} if type_.startswith("txt") else {}
    return {"type": type_, "paths": str(path), **language}


def config_of(folder: Path, corpora: dict[str, list[str]], **options: Any) -> dict[str, Any]:
    entries = [entry_of(folder, type_, kinds) for type_, kinds in corpora.items()]
    plain = {"shuffle": True, "seed": 3, "batch_size": 2, "micro_batches_per_step": G}
    return {"input_cfg": entries, "indexes_root": str(folder / "index"), **plain, **options}


def texts(config: dict[str, Any], count: int, world: int, state: Any = None) -> tuple[dict, Any]:
    """What the samples of some steps say, and the state then; see `support.steps`."""
    return steps(config, count, world=world, told=itemgetter("said"), state=state, dataset=Said())


row_kinds = st.lists(st.sampled_from(["row", "row", "row", BLANK, SKIPPED]), max_size=8).map(
    lambda kinds: ["row", *kinds]
)
EVERY = {type_: ["row", BLANK, "row", SKIPPED, "row"] for type_ in TYPES}
corpora_of = st.dictionaries(st.sampled_from(TYPES), row_kinds, min_size=1)


@settings(max_examples=6, deadline=None)
@example(corpora=EVERY, stops=[(2, 4), (1, 1), (2, 2)])
@given(
    corpora=corpora_of,
    stops=st.lists(
        st.tuples(st.integers(1, 3), st.sampled_from([1, 2, 4])), min_size=1, max_size=3
    ),
)
def test_stopped_anywhere_and_gone_on(tmp_path_factory: pytest.TempPathFactory, corpora, stops):
    config = config_of(tmp_path_factory.mktemp("stop"), corpora)
    whole, _ = texts(config, sum(count for count, _ in stops), 1)
    pieces, state = {}, None
    for count, world in stops:
        found, state = texts(config, count, world, state)
        pieces |= found
    assert pieces == whole
    assert len(whole) == G * sum(count for count, _ in stops)


@settings(max_examples=6, deadline=None)
@example(corpora=EVERY, world=2)
@given(corpora=corpora_of, world=st.sampled_from([1, 2, 4]))
def test_every_row_once_a_pass(tmp_path_factory: pytest.TempPathFactory, corpora, world):
    config = config_of(tmp_path_factory.mktemp("pass"), corpora, force_finite=True)
    seen = []
    for rank in range(world):
        loader = playhead.dataloader(config, dataset=Said(), rank=rank, world_size=world, info=True)
        for batch in loader:
            twice = batch["playhead"].repeated
            seen += [
                said for (_, said), again in zip(batch["said"], twice, strict=True) if not again
            ]
    texts = sorted(said[-1][1].strip().removeprefix("answer ").rstrip("!") for said in seen)
    assert texts == sorted(
        f"{type_} {number}"
        for type_, kinds in corpora.items()
        for number, kind in enumerate(kinds)
        if kind == "row"
    )
