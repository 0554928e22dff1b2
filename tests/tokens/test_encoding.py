"""What a sample becomes without a prompt, and what identifies it."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.audio_tokens import AudioTokens
from playhead.errors import ConfigError, ManifestError
from playhead.formats import Turn
from playhead.tokens.aggregate import AggregateTokenizer
from playhead.tokens.encoding import Encoding
from playhead.tokens.hf_tokenizer import HuggingFaceTokenizer
from playhead.tokens.lengths import lengths_of
from playhead.tokens.prompts import register_prompt, registry
from playhead.tokens.sentencepiece_model import SentencePieceModel
from playhead.tokens.tokenizer import load_tokenizer
from support.token_models import (
    ByLanguage,
    Words,
    example,
    hf_bytes,
    sentencepiece_bytes,
    sentences,
)

ENGLISH = SentencePieceModel(sentencepiece_bytes(), None)
BYTES = HuggingFaceTokenizer(hf_bytes(), None)
AUDIO = AudioTokens.of_duration(80_000)
unicode = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
texts = st.one_of(st.sampled_from(sentences(20)), unicode.filter(str.strip))


def of_kind(kind, text, language="en", **custom):
    one = example(text, language, **custom)
    one.kind = kind
    return one


def talk(*said, kind="conversation"):
    one = of_kind(kind, None)
    one.turns = tuple(
        Turn(role=role, text=said)
        if isinstance(said, str)
        else Turn(role=role, audio=example(), locator="<a>", duration=said)
        for role, said in said
    )
    return one


def supervision(text, language):
    return {"text": text, "language": language}


def test_the_text_alone_becomes_tokens():
    encoding = Encoding(ENGLISH)
    got = encoding.encode(example("we speak", context="never"))
    assert got == {"tokens": ENGLISH.encode("we speak")}
    assert encoding.num_tokens(got) == len(got["tokens"])
    assert encoding.encode(example(None)) == {"tokens": []}


def test_each_supervision_is_in_its_own_language():
    cut = {
        "type": "MonoCut",
        "supervisions": [
            supervision("we speak", "en"),
            supervision(None, "de"),
            supervision("wir", "de"),
        ],
    }
    encoding = Encoding(load_tokenizer(ByLanguage()))
    assert encoding.encode(example("we speak wir", "en", cut)) == {"tokens": [2, 5, 103]}
    tracks = [{"cut": {"supervisions": [supervision("wir", "de")]}}, {"cut": cut}]
    mixed = {"type": "MixedCut", "tracks": tracks}
    assert encoding.encode(example("x", "en", mixed)) == {"tokens": [103, 2, 5, 103]}


def test_a_cut_without_supervisions_has_the_samples_text():
    cut = {"type": "MonoCut", "supervisions": []}
    assert Encoding(load_tokenizer(Words())).encode(example("we", None, cut)) == {"tokens": [2]}


def test_errors_name_the_row():
    with pytest.raises(
        ManifestError, match=r"'fr'; there are en, de.*rows\.jsonl, byte 120, row 3"
    ):
        Encoding(load_tokenizer(ByLanguage())).encode(example("nous", "fr"))


def test_the_digest_knows_tokenizer_and_prompt():
    digests = {
        Encoding(ENGLISH).digest,
        Encoding(ENGLISH, "plain").digest,
        Encoding(load_tokenizer(Words())).digest,
        Encoding(load_tokenizer(Words()), "plain").digest,
    }
    assert len(digests) == 4
    assert Encoding(SentencePieceModel(sentencepiece_bytes(), None)).digest in digests


def test_it_travels_with_its_prompt():
    encoding = Encoding(load_tokenizer(Words()), "plain")
    copy = pickle.loads(pickle.dumps(encoding))
    assert copy.encode(example("we", context="a"))["input_ids"] == [1, 2]
    assert copy.digest == encoding.digest


def test_a_pair_is_its_source_and_its_target_each_in_its_language():
    languages = {"source_language": "en", "target_language": "de"}
    pair = of_kind("pair", "wir", source="we speak", question=None, **languages)
    encoding = Encoding(load_tokenizer(ByLanguage()))
    got = encoding.encode(pair)
    assert got == {"tokens": [2, 5, 103], "answer_tokens": [103]}
    assert encoding.lengths(pair) == (3, 2, 1, 2, 1)
    asked = of_kind("pair", "wir", source="we", question="say", question_language="de", **languages)
    assert encoding.encode(asked) == {"tokens": [103, 2, 103], "answer_tokens": [103]}


@pytest.mark.parametrize("tokenizer", [ENGLISH, BYTES], ids=["sentencepiece", "tokenizers"])
@pytest.mark.parametrize("prompt", [None, "plain", "llama3", "qwen", "mistral", "phi2_qa", "gemma"])
@settings(max_examples=20)
@given(
    text=texts.filter(lambda text: text.strip() and "\ud800" not in text), size=st.integers(1, 7)
)
def test_windows_of_a_text_add_up(tokenizer, prompt, text, size):
    if prompt == "gemma" and tokenizer is BYTES:
        return
    encoding = Encoding(tokenizer, prompt)
    one = of_kind("text", text)
    whole = encoding.encode(one)
    count = encoding.num_tokens(whole)
    name = "tokens" if prompt is None else "input_ids"
    before, behind = encoding.text_edges
    assert encoding.text_overhead == before + behind
    plain = count - encoding.text_overhead
    parts = max(1, -(-plain // size))
    own = []
    for part in range(parts):
        one.token_window = (part * size, (part + 1) * size)
        got = encoding.encode(one)
        length = min(size, plain - part * size) + encoding.text_overhead
        assert encoding.num_tokens(got) == length
        assert encoding.lengths(one).tokens == length
        ids = got[name]
        assert ids[:before] == whole[name][:before]
        assert ids[len(ids) - behind :] == whole[name][count - behind :]
        own += ids[before : len(ids) - behind]
        if prompt is not None:
            assert got["context_ids"] == whole["context_ids"]
            assert got["context_ids"] + got["answer_ids"] == ids
            assert got["mask"] == [False] * len(got["context_ids"]) + [True] * len(
                got["answer_ids"]
            )
    assert own == whole[name][before : count - behind]


@pytest.mark.parametrize(
    ("prompt", "edges"), [(None, (0, 0)), ("plain", (0, 0)), ("llama3", None), ("mistral", None)]
)
def test_what_a_prompt_adds_to_a_text(prompt, edges):
    encoding = Encoding(BYTES, prompt)
    if edges is None:
        empty = encoding.encode(of_kind("text", "the"))["input_ids"]
        own = BYTES.encode("the")
        before, behind = encoding.text_edges
        assert empty[before : len(empty) - behind] == own
        edges = (before, len(empty) - len(own) - before)
    assert encoding.text_edges == edges


def test_texts_of_several_languages_are_not_cut_under_a_prompt():
    """What it adds is another number of tokens in each."""
    both = AggregateTokenizer({"en": ENGLISH, "de": BYTES})
    with pytest.raises(ConfigError, match=r"'llama3' adds other numbers .*cut_text_into_windows"):
        _ = Encoding(both, "llama3").text_overhead
    assert Encoding(both).text_overhead == 0
    assert Encoding(AggregateTokenizer({"en": BYTES}), "llama3").text_overhead > 0


def test_a_prompt_that_does_not_say_what_it_adds_cannot_be_cut(monkeypatch):
    monkeypatch.setattr(registry, "_PROMPTS", dict(registry._PROMPTS))

    @register_prompt("mine")
    class Mine:
        def __init__(self, tokenizer):
            self.tokenizer = tokenizer

        def encode(self, sample):
            ids = [9, *self.tokenizer.encode(sample.text)]
            return {"input_ids": ids, "context_ids": [9], "answer_ids": ids[1:], "mask": [0, 1]}

    words = load_tokenizer(Words())
    with pytest.raises(ConfigError, match=r"'mine' does not say.*cut_text_into_windows_tokens"):
        _ = Encoding(words, "mine").text_overhead
    Mine.text_edges = lambda self: (1, 0)
    encoding = Encoding(words, "mine")
    assert encoding.text_overhead == 1
    one = of_kind("text", "we speak today")
    one.token_window = (1, 2)
    assert encoding.encode(one)["input_ids"] == [9, 5]


def test_audio_of_turns_takes_the_room_of_its_tag():
    # 0.08 s a token: 1 s takes 13, 0.16 s 2, 0.05 s 1.
    encoding = Encoding(load_tokenizer(Words()), "plain", audio=AUDIO)
    one = talk(("user", "we"), ("user", 1.0), ("assistant", 0.16), ("user", 0.05))
    assert encoding.lengths(one) == (4 + 12 + 1 + 0, 4 + 12 + 1, 0, 4, 0)
    # The answer's audio is that of the last turn, what it is merged with or not.
    one = talk(("user", 1.0), ("assistant", 0.16), ("assistant", 0.24))
    encoded = encoding.encode(one)
    assert len(encoded["answer_ids"]) == 2
    assert encoding.lengths(one) == lengths_of(one, encoded, AUDIO)
    assert encoding.lengths(one) == (3 + 12 + 1 + 2, 1 + 12 + 1, 2 + 2, 1, 2)
    # Where nothing is measured in tokens, tags are what they are.
    assert Encoding(load_tokenizer(Words()), "plain").lengths(one) == (3, 1, 2, 1, 2)


def test_a_cut_is_its_answer_whatever_is_asked():
    encoding = Encoding(load_tokenizer(Words()), "plain", audio=AUDIO)
    assert encoding.lengths(example("we speak", context="a")) == (3, 0, 3, 1, 2)
    assert Encoding(load_tokenizer(Words()), audio=AUDIO).lengths(example("a b")) == (2, 0, 2, 0, 2)


def test_a_turn_of_unknown_length_names_the_row():
    encoding = Encoding(load_tokenizer(Words()), "plain", audio=AUDIO)
    with pytest.raises(ManifestError, match=r"how long an audio turn is.*row 3"):
        encoding.lengths(talk(("user", None), ("assistant", "we")))


def test_messages_are_encoded_as_they_are_with_any_prompt():
    said = [("system", "a"), ("user", " the"), ("assistant", " dog"), ("tool", " we")]
    for prompt in (None, "llama3"):
        encoding = Encoding(BYTES, prompt)
        chunks = [BYTES.encode(text) for _, text in said]
        got = encoding.encode(talk(*said, kind="messages"))
        assert got["input_ids"] == got["context_ids"] == BYTES.encode("a the dog we")
        assert got["answer_ids"] == []
        assert got["mask"] == [
            role == "assistant" for (role, _), ids in zip(said, chunks, strict=True) for _ in ids
        ]
        got = encoding.encode(talk(*said[:3], kind="messages"))
        assert got["answer_ids"] == chunks[2]
        assert got["context_ids"] == chunks[0] + chunks[1]


def test_messages_whose_tokens_change_where_they_meet_name_the_row_and_the_message():
    split = talk(("user", "a"), ("assistant", "ho"), ("user", "use"), kind="messages")
    with pytest.raises(ManifestError, match=r"from message 1 on.*row 3.*validate_chunk_tokeniz"):
        Encoding(BYTES).encode(split)
    split.custom = {"validate_chunk_tokenization": False}
    ids = [token for text in ("a", "ho", "use") for token in BYTES.encode(text)]
    assert Encoding(BYTES).encode(split)["input_ids"] == ids
    with pytest.raises(ManifestError, match=r"no messages.*row 3"):
        Encoding(BYTES).encode(talk(kind="messages"))


@pytest.mark.parametrize("kind", ["sft", "conversation"])
def test_conversations_need_a_prompt(kind):
    with pytest.raises(ManifestError, match=r"without a prompt.*row 3.*prompt_format"):
        Encoding(BYTES).encode(talk(("user", "a"), kind=kind))


def test_the_digest_knows_what_audio_takes():
    audios = [None, AUDIO, AudioTokens.of_duration(40_000), AudioTokens.of_duration(80_000)]
    digests = [Encoding(ENGLISH, "plain", audio=audio).digest for audio in audios]
    assert len(set(digests)) == 3
    assert digests[1] == digests[3]
    assert digests[0] == Encoding(ENGLISH, "plain").digest
