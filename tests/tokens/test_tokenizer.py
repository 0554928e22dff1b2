"""What a person may name as the tokenizer."""

from __future__ import annotations

import pytest

from playhead.errors import ConfigError, SourceNotFoundError
from playhead.tokens.hf_tokenizer import HuggingFaceTokenizer
from playhead.tokens.sentencepiece_model import SentencePieceModel
from playhead.tokens.tokenizer import load_tokenizer
from support.token_models import hf_bytes, sentencepiece_bytes, write


def test_files_are_told_apart_by_their_content(tmp_path):
    model = write(tmp_path / "one.bin", sentencepiece_bytes())
    json = write(tmp_path / "two.bin", b"\n" + hf_bytes())
    assert isinstance(load_tokenizer(str(model)), SentencePieceModel)
    assert isinstance(load_tokenizer(json), HuggingFaceTokenizer)


def test_folders_hold_one_under_its_usual_name(tmp_path):
    write(tmp_path / "sp/tokenizer.model", sentencepiece_bytes())
    write(tmp_path / "hf/tokenizer.json", hf_bytes())
    write(tmp_path / "hf/tokenizer.model", sentencepiece_bytes())
    assert isinstance(load_tokenizer(tmp_path / "sp"), SentencePieceModel)
    assert isinstance(load_tokenizer(tmp_path / "hf"), HuggingFaceTokenizer)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match=r"neither tokenizer\.json nor tokenizer\.model.*empty"):
        load_tokenizer(tmp_path / "empty")


def test_configs_of_nemo_are_understood(tmp_path):
    write(tmp_path / "sp/tokenizer.model", sentencepiece_bytes())
    folder = str(tmp_path / "sp")
    single = load_tokenizer({"dir": folder, "type": "bpe"})
    assert isinstance(single, SentencePieceModel)
    both = load_tokenizer(
        {
            "type": "agg",
            "langs": {"en": {"dir": folder, "type": "bpe"}, "de": {"dir": folder, "type": "bpe"}},
        }
    )
    assert both.languages == ("en", "de")
    assert both.digest == load_tokenizer({"en": folder, "de": folder}).digest


def test_a_tokenizer_is_taken_as_it_is(tmp_path):
    own = SentencePieceModel(sentencepiece_bytes(), None)
    assert load_tokenizer(own) is own


def test_paths_are_absolute_when_they_travel(tmp_path, monkeypatch):
    write(tmp_path / "m.model", sentencepiece_bytes())
    monkeypatch.chdir(tmp_path)
    assert load_tokenizer("m.model").path == str(tmp_path / "m.model")


@pytest.mark.parametrize("spec", ["nope.model", "org/name", "m.model/inside"])
def test_files_that_are_not_there_are_named(tmp_path, monkeypatch, spec):
    write(tmp_path / "m.model", sentencepiece_bytes())
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SourceNotFoundError, match=spec):
        load_tokenizer(spec)
