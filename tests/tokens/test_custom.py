"""Objects of a person's own as tokenizers."""

from __future__ import annotations

import pickle
from types import SimpleNamespace

import pytest

from playhead.errors import ConfigError
from playhead.tokens.base import BadTextError
from playhead.tokens.tokenizer import load_tokenizer
from support.token_models import ByLanguage, Words


class Nemo:
    """Called as NeMo's are; what stands second is no language and must not be given."""

    vocab_size = 20
    unk_id = 0

    def text_to_ids(self, text, sample_alpha=None):
        assert sample_alpha is None
        return [len(word) for word in text.split()]

    def encode(self, text):
        raise AssertionError("text_to_ids comes first")

    def token_to_id(self, token):
        return {"a": 1}.get(token, 0)


class WithIds:
    def encode(self, text, add_special_tokens=True):
        return SimpleNamespace(ids=[0] * add_special_tokens + [len(w) for w in text.split()])


@pytest.mark.parametrize(
    "inner",
    [Words(), Nemo(), WithIds(), SimpleNamespace(tokenizer=SimpleNamespace(tokenizer=Nemo()))],
)
def test_each_way_to_encode_is_understood(inner):
    own = load_tokenizer(inner)
    assert own.encode("we speak now", "en") == [2, 5, 3]
    assert own.count(["we speak", ""], [None, "en"]).tolist() == [2, 0]
    assert own.languages is None
    assert not own.runs_in_threads


def test_languages_are_handed_on():
    own = load_tokenizer(ByLanguage())
    assert own.languages == ("en", "de")
    assert own.encode("wir", "de") == [103]
    assert own.count(["we", "wir sprechen"], ["en", "de"]).tolist() == [1, 2]
    with pytest.raises(BadTextError, match="no language"):
        own.encode("we")
    with pytest.raises(BadTextError, match=r"'fr'; there are en, de.*KeyError") as caught:
        own.count(["we", "nous"], ["en", "fr"])
    assert caught.value.index == 1


def test_what_it_raises_is_said_with_the_text():
    class Picky:
        def encode(self, text):
            if "bad" in text:
                raise RuntimeError("cannot")
            return [1]

    own = load_tokenizer(Picky())
    with pytest.raises(BadTextError, match=r"'so bad'.*RuntimeError: cannot") as caught:
        own.count(["good", "so bad"], [None, None])
    assert caught.value.index == 1


def test_the_digest_is_its_own_or_that_of_what_it_does():
    assert load_tokenizer(Words()).digest == load_tokenizer(Words()).digest
    assert load_tokenizer(Words()).digest != load_tokenizer(Words(base=1)).digest
    named = Words()
    named.digest = "v1"
    other = Words(base=1)
    other.digest = "v1"
    assert load_tokenizer(named).digest == load_tokenizer(other).digest
    assert load_tokenizer(named).digest != load_tokenizer(Words()).digest
    first, second = Words(), Words()
    first.vocab, second.vocab = {"a": 1}, {"a": 2}
    assert load_tokenizer(first).digest != load_tokenizer(second).digest
    assert load_tokenizer(ByLanguage()).digest != load_tokenizer(Words()).digest


def test_tokens_are_found_if_it_can_tell():
    assert load_tokenizer(Nemo()).token_id("a") == 1
    assert load_tokenizer(Nemo()).token_id("b") is None
    assert load_tokenizer(Words()).token_id("a") is None


def test_sizes_are_what_it_says():
    assert load_tokenizer(Nemo()).vocab_size == 20
    assert load_tokenizer(Words()).vocab_size == 0
    listed = Words()
    listed.get_vocab = lambda: {"a": 0, "b": 1}
    assert load_tokenizer(listed).vocab_size == 2


def test_it_travels():
    own = load_tokenizer(Words(base=7))
    copy = pickle.loads(pickle.dumps(own))
    assert copy.encode("we") == [9]
    assert copy.digest == own.digest


@pytest.mark.parametrize("spec", [3, object(), SimpleNamespace(tokenizer=None), None])
def test_what_cannot_encode_is_refused(spec):
    with pytest.raises(ConfigError, match="is no tokenizer"):
        load_tokenizer(spec)


def test_edges_of_sentences_are_asked_for_by_several_names():
    def edges(**attributes):
        words = Words()
        vars(words).update(attributes)
        return load_tokenizer(words).edge_ids()

    assert edges() == (None, None)
    assert edges(bos_id=3, eos_id=4) == (3, 4)
    assert edges(bos_token_id=3, eos_token_id=None) == (3, None)
    assert edges(bos_id=lambda: 3, eos_id=lambda: -1) == (3, None)
    assert edges(bos_id="<s>") == (None, None)
