"""A `tokenizer.json` gives what the library gives, whole and without special tokens."""

from __future__ import annotations

import json
import os
import pickle
import shutil

import pytest

from playhead.errors import ConfigError, MissingExtraError, StaleIndexError
from playhead.tokens.base import BadTextError
from playhead.tokens.hf_tokenizer import HuggingFaceTokenizer, own_threads_off
from playhead.tokens.tokenizer import load_tokenizer
from support.token_models import hf_bytes, sentences, write

tokenizers = pytest.importorskip("tokenizers")
TEXTS = [*sentences(50), "", "Ünseen 你好 <unk>", "tab\tand  spaces "]


@pytest.fixture
def path(tmp_path):
    return write(tmp_path / "a/tokenizer.json", hf_bytes())


def test_tokens_are_those_of_the_library(path):
    own = load_tokenizer(path)
    library = tokenizers.Tokenizer.from_file(str(path))
    library.no_truncation()
    library.no_padding()
    expected = [library.encode(text, add_special_tokens=False).ids for text in TEXTS]
    assert max(map(len, expected)) > 9
    assert [own.encode(text, "any") for text in TEXTS] == expected
    assert own.count(TEXTS, [None] * len(TEXTS)).tolist() == [len(ids) for ids in expected]
    assert own.vocab_size == library.get_vocab_size()
    assert own.count([], []).tolist() == []


def test_tokens_are_found_by_their_spelling(path):
    own = load_tokenizer(path)
    assert own.token_id("<s>") == 1
    assert own.token_id("no such token") is None


def test_the_digest_is_of_the_content(path, tmp_path):
    digest = load_tokenizer(path).digest
    shutil.copy(path, tmp_path / "other.json")
    assert load_tokenizer(tmp_path / "other.json").digest == digest
    assert load_tokenizer(path.parent).digest == digest
    path.write_bytes(hf_bytes(vocab=280))
    assert load_tokenizer(path).digest != digest


def test_objects_of_the_library_are_taken_by_their_content(path):
    library = tokenizers.Tokenizer.from_file(str(path))
    own = load_tokenizer(library)
    assert own.runs_in_threads
    copy = pickle.loads(pickle.dumps(own))
    assert copy.encode(TEXTS[0]) == load_tokenizer(path).encode(TEXTS[0])


def test_it_travels_by_its_path(path):
    own = load_tokenizer(path)
    data = pickle.dumps(own)
    assert len(data) < 500
    assert pickle.loads(data).encode(TEXTS[0]) == own.encode(TEXTS[0])
    copy = pickle.loads(data)
    path.write_bytes(hf_bytes(vocab=280))
    with pytest.raises(StaleIndexError, match="replaced"):
        copy.count(["the"], [None])
    with pytest.raises(StaleIndexError, match="replaced"):
        copy.encode("the")


@pytest.mark.parametrize("data", [b"{}", b'{"model": 3}', hf_bytes()[:-100]])
def test_other_files_are_refused_by_name(tmp_path, data):
    with pytest.raises(ConfigError, match=r"no tokenizer\.json .*odd\.json"):
        load_tokenizer(write(tmp_path / "odd.json", data))


def test_texts_that_are_no_unicode_are_named(path):
    own = load_tokenizer(path)
    with pytest.raises(BadTextError, match="surrogates") as caught:
        own.count(["fine", "not \ud800"], [None] * 2)
    assert caught.value.index == 1


def test_chat_templates_and_their_tokens_are_found(path):
    own = load_tokenizer(path)
    assert own.chat_template() is None
    config = {
        "chat_template": "{{ bos_token }}",
        "bos_token": {"content": "<s>", "lstrip": False},
        "eos_token": "</s>",
        "pad_token": None,
        "model_max_length": 10,
    }
    write(path.parent / "tokenizer_config.json", json.dumps(config).encode())
    found = own.chat_template()
    assert found.source == "{{ bos_token }}"
    assert found.special_tokens == {"bos_token": "<s>", "eos_token": "</s>"}
    named = [{"name": "tool", "template": "t"}, {"name": "default", "template": "d"}]
    write(
        path.parent / "tokenizer_config.json",
        json.dumps({**config, "chat_template": named}).encode(),
    )
    assert own.chat_template().source == "d"
    write(path.parent / "chat_template.jinja", b"file")
    assert own.chat_template().source == "file"
    write(path.parent / "tokenizer_config.json", b"{")
    with pytest.raises(ConfigError, match=r"not valid JSON.*tokenizer_config\.json"):
        own.chat_template()


def test_the_library_starts_no_threads_and_the_environment_is_as_it_was(monkeypatch):
    monkeypatch.delenv("TOKENIZERS_PARALLELISM", raising=False)
    with own_threads_off():
        assert os.environ["TOKENIZERS_PARALLELISM"] == "false"
    assert "TOKENIZERS_PARALLELISM" not in os.environ
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "true")
    with own_threads_off():
        assert os.environ["TOKENIZERS_PARALLELISM"] == "true"
    assert os.environ["TOKENIZERS_PARALLELISM"] == "true"


def test_a_missing_library_names_the_extra(path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "tokenizers", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'playhead\[tokens\]'"):
        load_tokenizer(path)


def test_what_begins_and_ends_a_sentence_stands_beside_the_file(tmp_path):
    write(tmp_path / "tokenizer.json", hf_bytes())

    def edges(**files):
        for name in ("tokenizer_config", "special_tokens_map"):
            (tmp_path / f"{name}.json").unlink(missing_ok=True)
        for name, content in files.items():
            write(tmp_path / f"{name}.json", json.dumps(content).encode())
        return load_tokenizer(tmp_path).edge_ids()

    known = load_tokenizer(tmp_path)
    begin, end, user = (known.token_id(token) for token in ("<s>", "</s>", "<|user|>"))
    assert edges() == (None, None)
    config = {"bos_token": "<s>", "eos_token": {"content": "</s>"}}
    assert edges(tokenizer_config=config) == (begin, end)
    assert edges(special_tokens_map=config) == (begin, end)
    assert edges(special_tokens_map=config, tokenizer_config={"eos_token": "<|user|>"}) == (
        begin,
        user,
    )
    assert edges(tokenizer_config={"cls_token": "<s>", "sep_token": "</s>"}) == (begin, end)
    assert edges(tokenizer_config={"bos_token": "<nothing>", "eos_token": None}) == (None, None)
    assert HuggingFaceTokenizer(hf_bytes(), None).edge_ids() == (None, None)
