"""Lengths of texts and conversations beside their packs are those of what workers encode."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from playhead.audio_tokens import AudioTokens
from playhead.blend import read_blend
from playhead.errors import ManifestError
from playhead.fetch.reader import Reader
from playhead.fetch.timings import Timings
from playhead.index.build import open_leaves
from playhead.tokens.count import find_token_columns, open_token_columns
from playhead.tokens.encoding import Encoding
from playhead.tokens.lengths import lengths_of
from playhead.tokens.tokenizer import load_tokenizer
from support.fetching import micro_batch
from support.talk import SECONDS_PER_TOKEN, section, tokenizer
from support.talk_cuts import FORMS

AUDIO = AudioTokens.of_duration(round(SECONDS_PER_TOKEN * 1e6))
SAMPLES = [name for name, form in FORMS.items() if form.num is not None]
ALONE = ("txt", "txt_jsonl", "txt_pair", "txt_pair, shards", "materialized_sft_messages")
NAMES = ("tokens", "input", "output", "context", "answer")


def opened(folder, name, **more):
    entry = {**FORMS[name].write(folder), **more}
    blend = read_blend(section(entry, use_multimodal_sampling=True, batch_tokens=1000))
    packs = open_leaves(blend.leaves, pack_dir=str(folder / "packs"))
    return list(zip(blend.leaves, packs, strict=True))


def read(leaf, pack):
    reader = Reader((leaf,), (pack.ref,), Timings())
    return reader.read(micro_batch(range(pack.num_rows)), with_audio=True)


def encoding_of(folder, prompt, kind="sentencepiece", audio=AUDIO):
    return Encoding(load_tokenizer(tokenizer(folder, kind)), prompt, audio=audio)


def by_hand(example, encoded):
    """NeMo's formulas, of what is encoded and of how long the turns are."""
    ids = encoded.get("input_ids", encoded.get("tokens"))
    answer = len(encoded.get("answer_ids", encoded.get("answer_tokens", ids)))
    extra = [
        0
        if turn.audio is None
        else math.ceil(Fraction(str(turn.duration)) / Fraction(str(SECONDS_PER_TOKEN))) - 1
        for turn in example.turns
    ] or [0]
    context = len(ids) - answer
    if example.kind == "cut":
        return len(ids), 0, len(ids), context, answer
    return (
        len(ids) + sum(extra),
        context + sum(extra[:-1]),
        answer + extra[-1],
        context,
        answer,
    )


@pytest.mark.parametrize("name", SAMPLES)
def test_counts_are_those_of_what_workers_encode(tmp_path, name):
    for prompt in ("llama3", None) if name in ALONE else ("llama3",):
        # SentencePiece begins every message with a blank, which the whole has not.
        kind = "json" if name == "materialized_sft_messages" else "sentencepiece"
        encoding = encoding_of(tmp_path, prompt, kind)
        for leaf, pack in opened(tmp_path, name, tags={"context": "the house"}):
            columns = open_token_columns(leaf, pack, encoding)
            assert tuple(columns) == NAMES
            assert {column.dtype.name for column in columns.values()} == {"uint32"}
            found = np.stack([columns[name] for name in NAMES], axis=1).tolist()
            samples = read(leaf, pack)
            assert len(samples) == len(found) > 0
            for sample, lengths in zip(samples, found, strict=True):
                encoded = encoding.encode(sample)
                assert tuple(lengths) == by_hand(sample, encoded)
                assert tuple(lengths) == lengths_of(sample, encoded, AUDIO)
                assert encoding.lengths(sample) == tuple(lengths)


@pytest.mark.parametrize(
    ("prompt", "kind"),
    [
        *(
            (prompt, kind)
            for prompt in ("llama3", "plain", None)
            for kind in ("json", "sentencepiece")
        ),
        *((prompt, "sentencepiece") for prompt in ("qwen3", "gemma", "llama2")),
    ],
)
@pytest.mark.parametrize("name", ["txt", "txt_jsonl", "txt_pair, shards"])
@pytest.mark.parametrize("embed", [False, True])
def test_texts_in_blocks_are_counted_as_one_by_one(tmp_path, name, prompt, kind, embed):
    from playhead.index.build import build_packs

    entry = FORMS[name].write(tmp_path)
    leaf = read_blend(section(entry)).leaves[0]
    if embed:
        (result,) = build_packs([leaf], indexes_root=str(tmp_path), embed_rows=True)
        assert result.error is None, result.error
    (pack,) = open_leaves([leaf], pack_dir=str(tmp_path / "playhead"))
    encoding = encoding_of(tmp_path, prompt, kind, audio=None)
    columns = open_token_columns(leaf, pack, encoding)
    assert tuple(columns) == ("tokens",)
    counts = [encoding.num_tokens(encoding.encode(sample)) for sample in read(leaf, pack)]
    assert columns["tokens"].tolist() == counts


@pytest.mark.parametrize(("tag", "is_said"), [("<audio>", False), ("<|audio here|>", True)])
def test_a_tag_of_several_tokens_is_said(tmp_path, caplog, tag, is_said):
    ((leaf, pack),) = opened(tmp_path, "multimodal_conversation", audio_locator_tag=tag)
    open_token_columns(leaf, pack, encoding_of(tmp_path, "llama3"))
    said = [one for one in caplog.messages if "audio_locator_tag" in one]
    assert len(said) == is_said
    assert not said or f"{tag!r} is " in said[0]


def test_another_tag_or_transform_is_counted_anew(tmp_path):
    ((leaf, pack),) = opened(tmp_path, "lhotse_as_conversation")
    encoding = encoding_of(tmp_path, "llama3")
    counts = open_token_columns(leaf, pack, encoding)["tokens"]
    assert find_token_columns(leaf, pack, encoding.digest) is not None
    assert find_token_columns(replace(leaf, transforms=()), pack, encoding.digest) is None
    tagged = replace(leaf, options=replace(leaf.options, audio_locator_tag="<audio> and more"))
    assert find_token_columns(tagged, pack, encoding.digest) is None
    assert (open_token_columns(tagged, pack, encoding)["tokens"] > counts).all()
    ((leaf, pack),) = opened(tmp_path / "talk", "multimodal_conversation, tags")
    open_token_columns(leaf, pack, encoding)
    changed = replace(leaf, options=replace(leaf.options, audio_locator_tag="<en>"))
    assert find_token_columns(changed, pack, encoding.digest) is None


def test_conversations_without_a_prompt_are_refused_by_row(tmp_path):
    ((leaf, pack),) = opened(tmp_path, "nemo_sft_jsonl")
    with pytest.raises(ManifestError, match=r"(?s)without a prompt.*sft_0\.jsonl, byte 0, row 0"):
        open_token_columns(leaf, pack, encoding_of(tmp_path, None))


def test_roles_that_a_prompt_has_not_are_refused_by_row(tmp_path):
    ((leaf, pack),) = opened(tmp_path, "nemotron_text_converation")
    with pytest.raises(ManifestError, match=r"no role 'system'; it has user, assistant.*row 4 c"):
        open_token_columns(leaf, pack, encoding_of(tmp_path, "qwen"))


def test_messages_are_compared_with_the_whole_unless_their_entry_says_no(tmp_path):
    name = "materialized_sft_messages"
    encoding = encoding_of(tmp_path, "llama3")
    ((leaf, pack),) = opened(tmp_path, name)
    said = r"(?s)other tokens together.*from message 1 on.*messages\.jsonl, byte 0, row 0"
    with pytest.raises(ManifestError, match=said):
        open_token_columns(leaf, pack, encoding)
    ((leaf, pack),) = opened(tmp_path, name, validate_chunk_tokenization=False)
    columns = open_token_columns(leaf, pack, encoding)
    for row, sample in enumerate(read(leaf, pack)):
        chunks = [encoding.tokenizer.encode(turn.text) for turn in sample.turns]
        encoded = encoding.encode(sample)
        assert encoded["input_ids"] == [token for chunk in chunks for token in chunk]
        assert columns["tokens"][row] == sum(map(len, chunks))
        assert columns["output"][row] == columns["answer"][row] == len(chunks[-1])


def test_lengths_that_only_the_index_measured_are_known(tmp_path):
    import json

    form = FORMS["multimodal_conversation, tars"].write(tmp_path)
    known = {}
    for leaf, pack in opened(tmp_path, "multimodal_conversation, tars"):
        known = dict(open_token_columns(leaf, pack, encoding_of(tmp_path, "llama3")))
    for path in sorted(tmp_path.glob("talk_*.jsonl")):
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        for row in rows:
            for turn in row["conversations"]:
                if "offset" not in turn:
                    turn.pop("duration", None)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    blend = read_blend(section(form, use_multimodal_sampling=True, batch_tokens=1000))
    (pack,) = open_leaves(blend.leaves, pack_dir=str(tmp_path / "again"))
    columns = open_token_columns(blend.leaves[0], pack, encoding_of(tmp_path, "llama3"))
    assert {name: column.tolist() for name, column in columns.items()} == {
        name: column.tolist() for name, column in known.items()
    }
