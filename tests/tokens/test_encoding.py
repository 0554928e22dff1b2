"""What a sample becomes without a prompt, and what identifies it."""

from __future__ import annotations

import pickle

import pytest

from playhead.errors import ManifestError
from playhead.tokens.encoding import Encoding
from playhead.tokens.sentencepiece_model import SentencePieceModel
from playhead.tokens.tokenizer import load_tokenizer
from support.token_models import ByLanguage, Words, example, sentencepiece_bytes

ENGLISH = SentencePieceModel(sentencepiece_bytes(), None)


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
