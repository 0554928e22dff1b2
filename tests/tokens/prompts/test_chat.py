"""A tokenizer's chat template as the prompt."""

from __future__ import annotations

import json
import sys

import pytest

from playhead.errors import ConfigError, ManifestError, MissingExtraError
from playhead.formats import Turn
from playhead.tokens.encoding import Encoding
from playhead.tokens.tokenizer import load_tokenizer
from support.token_models import Words, example, hf_bytes, sentencepiece_bytes, write

TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}"
    "<|{{ message.role }}|>{{ message.content }}{{ eos_token }}"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
CONFIG = {"chat_template": TEMPLATE, "bos_token": "<s>", "eos_token": {"content": "</s>"}}


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "tokenizer.json", hf_bytes())
    return tmp_path


def encoding_of(folder, template=TEMPLATE, **config):
    content = {**CONFIG, "chat_template": template, **config}
    write(folder / "tokenizer_config.json", json.dumps(content).encode())
    return Encoding(load_tokenizer(folder), "chat")


def test_turns_are_written_as_the_template_says(folder):
    encoding = encoding_of(folder)
    encode = encoding.tokenizer.encode
    got = encoding.encode(example("we speak", context="the house"))
    asked = encode("<s><|user|>the house</s><|assistant|>")
    assert got["input_ids"] == encode("<s><|user|>the house</s><|assistant|>we speak</s>")
    assert got["context_ids"] == asked
    assert got["answer_ids"] == encode("we speak</s>")
    assert got["mask"] == [False] * len(asked) + [True] * len(got["answer_ids"])


def test_a_system_prompt_begins_and_no_context_is_an_empty_turn(folder):
    encoding = encoding_of(folder)
    got = encoding.encode(example("we", system_prompt="listen"))
    text = "<s><|system|>listen</s><|user|></s><|assistant|>we</s>"
    assert got["input_ids"] == encoding.tokenizer.encode(text)


def test_without_text_only_the_question_is_there(folder):
    encoding = encoding_of(folder)
    got = encoding.encode(example(None, context="the"))
    assert got["input_ids"] == encoding.tokenizer.encode("<s><|user|>the</s><|assistant|>")
    assert got["answer_ids"] == []


def test_the_answer_begins_where_the_two_writings_part(folder):
    # What is asked ends with more than what is answered begins with, as where models think.
    template = TEMPLATE.replace("<|assistant|>{% endif %}", "<|assistant|>the dog{% endif %}")
    encoding = encoding_of(folder, template)
    got = encoding.encode(example("cat", context="a"))
    assert got["context_ids"] == encoding.tokenizer.encode("<s><|user|>a</s><|assistant|>")
    assert got["context_ids"] + got["answer_ids"] == got["input_ids"]


def test_blocks_for_what_is_generated_and_loops_are_known(folder):
    template = (
        "{% for m in messages %}{% if m.role == 'system' %}{% continue %}{% endif %}"
        "{% if m.role == 'assistant' %}{% generation %}{{ m.content }}{% endgeneration %}"
        "{% else %}{{ m | tojson }}{% endif %}{% endfor %}"
    )
    encoding = encoding_of(folder, template)
    got = encoding.encode(example("we", context="<ü>", system_prompt="x"))
    text = '{"role": "user", "content": "<ü>"}we'
    assert got["input_ids"] == encoding.tokenizer.encode(text)


def test_templates_have_no_clock(folder):
    template = "{% if strftime_now is defined %}{{ strftime_now('%H') }}{% else %}no{% endif %}"
    encoding = encoding_of(folder, template)
    assert encoding.encode(example())["input_ids"] == encoding.tokenizer.encode("no")


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{{ raise_exception('only one turn') }}", "only one turn"),
        ("{{ messages.append(1) }}", "refuses"),
        ("{{ ''.__class__.__mro__[1].__subclasses__() }}", "refuses"),
        ("{{ messages[7].content }}", "refuses"),
    ],
)
def test_what_a_template_refuses_names_the_row(folder, template, said):
    with pytest.raises(ManifestError, match=rf"(?s){said}.*rows\.jsonl.*row 3"):
        encoding_of(folder, template).encode(example("we"))


def test_templates_that_cannot_be_read_are_refused(folder):
    with pytest.raises(ConfigError, match="chat template cannot be read"):
        encoding_of(folder, "{% for %}")


def test_the_digest_knows_template_and_special_tokens(folder):
    digests = {
        encoding_of(folder).digest,
        encoding_of(folder, TEMPLATE + " ").digest,
        encoding_of(folder, bos_token="<x>").digest,
        Encoding(load_tokenizer(folder)).digest,
    }
    assert len(digests) == 4
    assert encoding_of(folder).digest in digests


def test_tokenizers_without_a_template_are_refused(folder, tmp_path):
    with pytest.raises(ConfigError, match="no chat template"):
        Encoding(load_tokenizer(folder), "chat")
    model = write(tmp_path / "m.model", sentencepiece_bytes())
    with pytest.raises(ConfigError, match="no chat template"):
        Encoding(load_tokenizer(model), "chat")


def test_objects_may_bring_their_own():
    words = Words()
    words.chat_template = "{{ bos_token }} {{ messages[-1].content }}"
    words.special_tokens_map = {"bos_token": "begin", "additional_special_tokens": ["x"]}
    got = Encoding(load_tokenizer(words), "chat").encode(example("we speak", context="a"))
    assert got["input_ids"] == [5, 2, 5]
    assert got["context_ids"] == [5]


def test_a_missing_library_names_the_extra(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtraError, match=r"playhead\[tokens\]"):
        encoding_of(folder)


def chat(*said, kind="conversation"):
    one = example(None)
    one.kind = kind
    one.turns = tuple(Turn(role=role, text=text) for role, text in said)
    return one


def test_every_answer_of_a_conversation_is_masked(folder):
    encoding = encoding_of(folder)
    encode = encoding.tokenizer.encode
    said = [("system", "the"), ("user", "a"), ("assistant", "dog"), ("user", "we")]
    got = encoding.encode(chat(*said, ("assistant", "speak"), ("assistant", "today")))
    parts = [
        (False, "<s><|system|>the</s><|user|>a</s><|assistant|>"),
        (True, "dog</s>"),
        (False, "<|user|>we</s><|assistant|>"),
        (True, "speak today</s>"),
    ]
    pieces = [(is_answer, encode(text)) for is_answer, text in parts]
    assert got["input_ids"] == [token for _, ids in pieces for token in ids]
    assert got["mask"] == [is_answer for is_answer, ids in pieces for _ in ids]
    assert got["answer_ids"] == encode("speak today</s>")
    asked = encoding.encode(chat(*said))
    assert asked["input_ids"] == encode("".join(text for _, text in parts[:3]))
    assert (asked["answer_ids"], any(asked["mask"])) == ([], False)


def test_texts_are_answers_alone_and_can_be_cut(folder):
    encoding = encoding_of(folder)
    encode = encoding.tokenizer.encode
    one = example("the quick brown dog")
    one.kind = "text"
    whole = encode("<s><|assistant|>the quick brown dog</s>")
    got = encoding.encode(one)
    assert got["input_ids"] == got["answer_ids"] == whole
    assert all(got["mask"])
    assert encoding.text_edges == (2, 1)
    one.token_window = (1, 3)
    assert encoding.encode(one)["input_ids"] == [*whole[:2], *whole[3:5], whole[-1]]


def test_pairs_are_a_question_and_its_answer(folder):
    encoding = encoding_of(folder)
    pair = example("das", source="the", question="say")
    pair.kind = "pair"
    text = "<s><|user|>say the</s><|assistant|>das</s>"
    assert encoding.encode(pair)["input_ids"] == encoding.tokenizer.encode(text)
