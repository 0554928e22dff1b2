"""How many tokens audio takes: who may say it, where, and that all say the same."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.audio_tokens import AudioTokens
from playhead.blend.leaf import Leaf, LeafOptions
from playhead.config import Options
from playhead.errors import ConfigError
from playhead.loader.audio_lengths import audio_tokens_of

ESTIMATOR = {
    "preprocessor": {"n_fft": 512, "hop_length": 160, "stft_pad_amount": 256},
    "subsampling": {"kernel_size": 3, "stride": 2, "padding": 1, "repeat": 3},
}


def leaf(kind: Any = "cut", seconds: float | None = None) -> Leaf:
    options = LeafOptions(token_equivalent_duration=seconds)
    return Leaf(
        key=kind, name=f"the {kind}", type="x", kind=kind, weight=1, paths={}, options=options
    )


def rule(options: Options, *leaves: Leaf, lengths: list[int] | None = None) -> AudioTokens:
    packs: list[Any] = [
        SimpleNamespace(duration_us=np.array([0, one.kind in ("cut", "conversation")]))
        if lengths is None
        else SimpleNamespace(duration_us=np.array(lengths))
        for one in leaves
    ]
    return audio_tokens_of(options, leaves, packs)


@given(st.sampled_from([0.01, 0.08, 0.0805, 0.125, 1.0, 7.25]))
def test_a_section_or_an_entry_says_it(seconds: float):
    expected = AudioTokens.of_duration(round(seconds * 1e6))
    said, silent = Options(token_equivalent_duration=seconds), Options()
    assert rule(said, leaf(seconds=seconds)) == expected
    assert rule(silent, leaf(seconds=seconds)) == expected
    assert rule(silent, leaf(), leaf("conversation", seconds), leaf("text")) == expected
    assert rule(said, leaf()) == expected


def test_two_entries_that_differ_are_refused():
    with pytest.raises(ConfigError, match=r"is 0\.08 in .* and 0\.1 in the cut"):
        rule(Options(), leaf(seconds=0.1), leaf("conversation", 0.08))
    with pytest.raises(ConfigError, match=r"is 0\.08 in .* and 0\.1 in the cut"):
        rule(Options(token_equivalent_duration=0.08), leaf(seconds=0.1))


def test_an_estimator_wins():
    options = Options(audio_token_estimator=ESTIMATOR, token_equivalent_duration=9.0)
    found = rule(options, leaf(seconds=0.1), leaf("conversation", 0.2))
    assert found == AudioTokens.of_estimator(ESTIMATOR, 16000)
    assert found != rule(Options(audio_token_estimator=ESTIMATOR, sample_rate=8000), leaf())


@pytest.mark.parametrize("kind", ["cut", "conversation"])
def test_where_nobody_says_it_audio_is_refused_by_name(kind: Any):
    with pytest.raises(ConfigError, match=f"(?i)leaf the {kind} has audio.*token_equivalent"):
        rule(Options(), leaf("text"), leaf(kind))


def test_where_there_is_no_audio_nobody_has_to():
    for kind in ("text", "pair", "sft", "messages", "conversation"):
        assert rule(Options(), leaf(kind), lengths=[0, 0]).count_one(1) >= 1
    # A leaf of cuts may be empty today.
    with pytest.raises(ConfigError, match="the cut has audio"):
        rule(Options(), leaf("cut"), lengths=[])
