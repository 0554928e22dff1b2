"""SentencePiece models give what the library gives, and say what they are by content."""

from __future__ import annotations

import pickle
import shutil

import pytest

from playhead.errors import ConfigError, MissingExtraError, StaleIndexError
from playhead.tokens.base import BadTextError
from playhead.tokens.sentencepiece_model import SentencePieceModel
from playhead.tokens.tokenizer import load_tokenizer
from support.token_models import sentencepiece_bytes, sentences, write

sentencepiece = pytest.importorskip("sentencepiece")
TEXTS = [*sentences(50), "", "Ünseen 你好 <unk>", "tab\tand  spaces "]


@pytest.fixture
def path(tmp_path):
    return write(tmp_path / "a/tokenizer.model", sentencepiece_bytes())


def test_tokens_are_those_of_the_library(path):
    own = load_tokenizer(path)
    library = sentencepiece.SentencePieceProcessor(model_file=str(path))
    expected = [library.encode(text) for text in TEXTS]
    assert [own.encode(text, "any") for text in TEXTS] == expected
    counts = own.count(TEXTS, [None] * len(TEXTS))
    assert counts.dtype == "uint32"
    assert counts.tolist() == [len(ids) for ids in expected]
    assert own.vocab_size == len(library)
    assert own.languages is None
    assert own.count([], []).tolist() == []


def test_tokens_are_found_by_their_spelling(path):
    own = load_tokenizer(path)
    assert own.token_id("▁the") == own.encode("the")[0]
    assert own.token_id("<unk>") == 0
    assert own.token_id("no such piece") is None


def test_the_digest_is_of_the_content(path, tmp_path):
    digest = load_tokenizer(path).digest
    shutil.copy(path, tmp_path / "other.model")
    assert load_tokenizer(tmp_path / "other.model").digest == digest
    assert load_tokenizer(path.parent).digest == digest
    processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
    assert load_tokenizer(processor).digest == digest
    path.write_bytes(sentencepiece_bytes("de"))
    assert load_tokenizer(path).digest != digest
    assert len(digest) == 16


def test_it_travels_by_its_path_and_is_loaded_when_it_is_needed(path):
    own = load_tokenizer(path)
    data = pickle.dumps(own)
    assert len(data) < 500
    assert pickle.loads(data).encode(TEXTS[0]) == own.encode(TEXTS[0])
    copy = pickle.loads(data)
    path.write_bytes(sentencepiece_bytes("de"))
    with pytest.raises(StaleIndexError, match="replaced while it was in use"):
        copy.encode("the")
    with pytest.raises(StaleIndexError, match="replaced while it was in use"):
        copy.count(["the"], [None])


def test_bytes_travel_where_there_is_no_path():
    own = SentencePieceModel(sentencepiece_bytes(), None)
    assert pickle.loads(pickle.dumps(own)).encode(TEXTS[0]) == own.encode(TEXTS[0])


@pytest.mark.parametrize("data", [b"", b"no model at all", sentencepiece_bytes()[:1000]])
def test_other_files_are_refused_by_name(tmp_path, data, capfd):
    with pytest.raises(ConfigError, match=r"(?s)neither a SentencePiece model.*odd\.model"):
        load_tokenizer(write(tmp_path / "odd.model", data))


def test_texts_that_are_no_unicode_are_named(path):
    own = load_tokenizer(path)
    with pytest.raises(BadTextError, match="surrogates") as caught:
        own.count(["fine", "also", "not \ud800"], [None] * 3)
    assert caught.value.index == 2
    with pytest.raises(BadTextError):
        own.encode("\ud800")


def test_a_missing_library_names_the_extra(path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "sentencepiece", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'playhead\[tokens\]'"):
        load_tokenizer(path)
