"""Tokens of samples as loaders hand them out: windows of texts, and limits that hold."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest

import playhead
from playhead.audio_tokens import AudioTokens
from playhead.datasets import SpeechLanguage
from playhead.tokens.tokenizer import load_tokenizer
from support.talk import (
    SECONDS_PER_TOKEN,
    section,
    tokenizer,
)
from support.told import Samples, one_of_each, token_section

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.formats import Example

ESTIMATOR = {
    "preprocessor": {"n_fft": 512, "hop_length": 160, "stft_pad_amount": 256},
    "subsampling": {"kernel_size": 3, "stride": 2, "padding": 1, "repeat": 3},
}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAYHEAD_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tokenizer(tmp_path_factory.mktemp("model"), "json")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    return one_of_each(tmp_path_factory.mktemp)


# Windows of texts ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["text", "rows"])
@pytest.mark.parametrize("prompt", [None, "plain", "llama3"])
@pytest.mark.parametrize("window", [1, 7, 1000])
def test_every_token_of_every_text_is_in_one_window(
    corpus: dict[str, dict[str, Any]], model: str, name: str, prompt: str | None, window: int
):
    options = {
        "use_multimodal_sampling": True,
        "cut_text_into_windows_tokens": window,
        "batch_tokens": 200,
        "batch_size": None,
        "shuffle": True,
    }
    config = section(corpus[name], prompt_format=prompt, **options)
    whole = section(corpus[name], prompt_format=None, batch_size=50)
    encode = load_tokenizer(model).encode
    (texts,) = playhead.dataloader(whole, dataset=Samples())
    expected = {one.id: list(encode(one.text, one.language)) for one in texts["samples"]}
    loader = playhead.dataloader(config, dataset=Samples(), tokenizer=model)
    found: dict[str, dict[int, list[int]]] = defaultdict(dict)
    for batch in loader:
        lengths = [len(_tokens(one)) for one in batch["samples"]]
        assert len(lengths) * max(lengths) <= 200 or len(lengths) == 1
        for one in batch["samples"]:
            text, _, part = one.id.rpartition("-")
            assert int(part) not in found[text]
            found[text][int(part)] = _tokens(one)
    assert set(found) == set(expected)
    around = len(_prompt_alone(prompt, model)) if prompt else 0
    for text, tokens in expected.items():
        count = max(1, math.ceil(len(tokens) / window))
        assert sorted(found[text]) == list(range(count))
        for part, got in found[text].items():
            own = tokens[part * window : (part + 1) * window]
            assert len(got) == len(own) + around
            assert any(got[at : at + len(own)] == own for at in range(around + 1))


def _tokens(example: Example) -> list[int]:
    return list(example.tokens.get("input_ids", example.tokens.get("tokens", ())))


def _prompt_alone(prompt: str, model: str) -> list[int]:
    from playhead.tokens.encoding import Encoding

    return [0] * Encoding(load_tokenizer(model), prompt).text_overhead


def test_windows_go_on_where_they_stopped(corpus: dict[str, dict[str, Any]], model: str):
    options = {"cut_text_into_windows_tokens": 5, "batch_tokens": 60, "batch_size": None}
    config = token_section(corpus["text"], corpus["rows"], shuffle=True, **options)

    def loader() -> Any:
        return playhead.dataloader(config, dataset=Samples(), tokenizer=model, rank=0, world_size=1)

    every = [batch["ids"] for batch in loader()]
    for stop in (1, 4, len(every) - 1):
        first = loader()
        before = [batch["ids"] for batch in islice(iter(first), stop)]
        second = loader()
        second.load_state_dict(json.loads(json.dumps(first.state_dict())))
        assert before + [batch["ids"] for batch in second] == every


# Limits in tokens, measured on what batches hold --------------------------------------------------


@pytest.mark.parametrize("estimator", [None, ESTIMATOR, {**ESTIMATOR, "chunk_size_seconds": 0.5}])
@pytest.mark.parametrize("factor", [None, 60])
@pytest.mark.parametrize("packed", [False, True])
def test_no_batch_holds_more_than_its_limit(
    corpus: dict[str, dict[str, Any]],
    model: str,
    estimator: dict[str, Any] | None,
    factor: int | None,
    packed: bool,
):
    """Of ids and of audio as a model gets them, not of what the index says."""
    limit = 300
    config = token_section(
        *corpus.values(),
        batch_tokens=limit,
        batch_size=None,
        quadratic_factor=factor,
        use_packed_sequence_sampling=packed,
        audio_token_estimator=estimator,
        oversize="drop",
        shuffle=True,
    )
    seconds = round(SECONDS_PER_TOKEN * 1e6)
    rule = (
        AudioTokens.of_duration(seconds)
        if estimator is None
        else AudioTokens.of_estimator(estimator, 16000)
    )
    seen = 0
    for batch in playhead.dataloader(config, dataset=SpeechLanguage(), tokenizer=model):
        lengths = batch["input_lens"].tolist()
        heard = zip(batch["audio_row"].tolist(), batch["audio_lens"].tolist(), strict=True)
        for row, samples in heard:
            # The tag of a turn is one token, and stands for all of the audio.
            has_tag = batch["kinds"][row] != "cut"
            lengths[row] += rule.count_one(round(samples / 16000 * 1e6)) - has_tag
        costs = [length + (length * length / factor if factor else 0) for length in lengths]
        held = sum(map(math.ceil, costs)) if packed else max(costs) * len(costs)
        assert held <= limit
        seen += len(lengths)
    assert seen > 40
