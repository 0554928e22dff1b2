"""Tokenizers by language: ids behind each other, and rows of unknown languages."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.errors import ConfigError
from playhead.tokens.aggregate import AggregateTokenizer
from playhead.tokens.base import BadTextError
from playhead.tokens.hf_tokenizer import HuggingFaceTokenizer
from playhead.tokens.sentencepiece_model import SentencePieceModel
from playhead.tokens.tokenizer import load_tokenizer
from support.token_models import Words, hf_bytes, sentencepiece_bytes, sentences

ENGLISH = SentencePieceModel(sentencepiece_bytes(), None)
GERMAN = HuggingFaceTokenizer(hf_bytes("de"), None)
BOTH = AggregateTokenizer({"en": ENGLISH, "de": GERMAN})


def test_ids_stand_behind_those_of_the_languages_before():
    assert BOTH.encode("the dog", "en") == ENGLISH.encode("the dog")
    shifted = [ENGLISH.vocab_size + token for token in GERMAN.encode("der hund")]
    assert BOTH.encode("der hund", "de") == shifted
    assert BOTH.vocab_size == ENGLISH.vocab_size + GERMAN.vocab_size
    assert BOTH.languages == ("en", "de")
    assert BOTH.token_id("<s>", "de") == ENGLISH.vocab_size + 1
    assert BOTH.token_id("nowhere", "de") is None


@given(st.lists(st.tuples(st.sampled_from(sentences(9)), st.sampled_from(["en", "de"]))))
def test_counts_are_the_lengths_of_encodings(rows):
    texts, languages = [row[0] for row in rows], [row[1] for row in rows]
    counts = BOTH.count(texts, languages)
    assert counts.tolist() == [len(BOTH.encode(*row)) for row in rows]


@pytest.mark.parametrize(("language", "said"), [("fr", "language 'fr'"), (None, "no language")])
def test_a_language_that_is_not_there_is_named_with_those_that_are(language, said):
    with pytest.raises(BadTextError, match=f"(?s){said}.*there are en, de"):
        BOTH.encode("le chien", language)
    with pytest.raises(BadTextError, match=said) as caught:
        BOTH.count(["a", "b", "c", "d"], ["en", "de", language, "en"])
    assert caught.value.index == 2


def test_a_bad_text_is_found_among_the_languages():
    with pytest.raises(BadTextError, match="surrogates") as caught:
        BOTH.count(["a", "b", "c", "\ud800"], ["en", "de", "en", "de"])
    assert caught.value.index == 3


def test_the_digest_knows_content_names_and_order():
    digests = {
        BOTH.digest,
        AggregateTokenizer({"de": GERMAN, "en": ENGLISH}).digest,
        AggregateTokenizer({"en": ENGLISH, "at": GERMAN}).digest,
        AggregateTokenizer({"en": ENGLISH, "de": ENGLISH}).digest,
        ENGLISH.digest,
    }
    assert len(digests) == 5
    assert AggregateTokenizer({"en": ENGLISH, "de": GERMAN}).digest == BOTH.digest


def test_it_travels_and_lets_threads_run_if_all_do():
    copy = pickle.loads(pickle.dumps(BOTH))
    assert copy.encode("der hund", "de") == BOTH.encode("der hund", "de")
    assert BOTH.runs_in_threads
    assert not load_tokenizer({"en": ENGLISH, "xx": Words()}).runs_in_threads


def test_vocabularies_that_others_follow_must_have_a_size():
    with pytest.raises(ConfigError, match="how many tokens the tokenizer of 'xx'"):
        load_tokenizer({"xx": Words(), "en": ENGLISH})
    with pytest.raises(ConfigError, match="no languages"):
        load_tokenizer({})


def test_each_language_has_its_own_edges():
    english = SentencePieceModel(sentencepiece_bytes(), None)
    words = load_tokenizer(Words())
    both = AggregateTokenizer({"en": english, "de": english, "xx": words})
    begin, end = english.edge_ids()
    assert (begin, end) == (1, 2)
    size = english.vocab_size
    assert both.edge_ids("en") == (1, 2)
    assert both.edge_ids("de") == (size + 1, size + 2)
    assert both.edge_ids("xx") == (None, None)
    with pytest.raises(BadTextError, match="no tokenizer for the language 'fr'"):
        both.edge_ids("fr")
