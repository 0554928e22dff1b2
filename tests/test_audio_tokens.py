"""How many tokens audio takes: to the sample, at any length, and through its text."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.audio_tokens import AudioTokens
from playhead.errors import ConfigError

_SPECTROGRAM = {"n_fft": 512, "hop_length": 160, "stft_pad_amount": 256}
_CONV = {"kernel_size": 3, "stride": 2, "padding": 1, "repeat": 3}


def _estimator(**changed):
    return {"preprocessor": _SPECTROGRAM, "subsampling": _CONV, **changed}


def _frames(samples, config):
    """Frames of one stretch that is encoded at once, stage by stage."""
    spectrogram = config["preprocessor"]
    frames = math.floor(
        (samples + 2 * spectrogram["stft_pad_amount"] - spectrogram["n_fft"])
        / spectrogram["hop_length"]
    )
    stages = config["subsampling"]
    for stage in [stages] if isinstance(stages, dict) else stages:
        if stage.get("type") == "feature_stacking":
            frames = math.ceil(frames / stage["factor"])
            continue
        rounded = math.ceil if stage.get("ceil_mode") else math.floor
        for _ in range(stage.get("repeat", 1)):
            span = frames + 2 * stage["padding"] - stage["kernel_size"]
            frames = rounded(span / stage["stride"]) + 1
    return max(1, frames)


def _tokens(samples, config, rate):
    """Tokens of samples, chunk by chunk."""
    seconds = config.get("chunk_size_seconds")
    if seconds is None:
        return _frames(samples, config)
    spectrogram = config["preprocessor"]
    hop, lost = spectrogram["hop_length"], spectrogram["n_fft"] - 2 * spectrogram["stft_pad_amount"]
    shortest = next((n * hop for n in range(1, 17) if (n * hop - lost) // hop >= 2), 17 * hop)
    size = max(round(seconds * rate), 1, shortest)
    chunks = []
    while samples > size:
        chunks.append(size)
        samples -= size
    if chunks and samples < shortest:
        chunks[-1] += samples
    else:
        chunks.append(samples)
    return sum(_frames(chunk, config) for chunk in chunks)


_STAGES = st.one_of(
    st.fixed_dictionaries(
        {
            "kernel_size": st.integers(1, 9),
            "stride": st.integers(1, 4),
            "padding": st.integers(0, 5),
        },
        optional={"repeat": st.integers(1, 4), "ceil_mode": st.booleans(), "type": st.just("conv")},
    ),
    st.fixed_dictionaries({"type": st.just("feature_stacking"), "factor": st.integers(1, 9)}),
)
_CONFIGS = st.fixed_dictionaries(
    {
        "preprocessor": st.fixed_dictionaries(
            {
                "n_fft": st.integers(1, 4096),
                "hop_length": st.integers(1, 400),
                "stft_pad_amount": st.integers(0, 2048),
            }
        ),
        "subsampling": st.one_of(_STAGES, st.lists(_STAGES, max_size=3)),
    },
    optional={"chunk_size_seconds": st.one_of(st.none(), st.floats(0.001, 40.0), st.just(15))},
)


@given(_CONFIGS, st.sampled_from([8_000, 16_000, 22_050, 44_100]), st.lists(st.integers(0, 10**8)))
def test_an_encoder_is_followed_to_the_sample(config, rate, durations):
    tokens = AudioTokens.of_estimator(config, rate)
    wanted = []
    for us in durations:
        samples, rest = divmod(us * rate, 1_000_000)
        wanted.append(_tokens(samples + (2 * rest >= 1_000_000), config, rate))
    assert tokens.count(np.array(durations, dtype=np.int64)).tolist() == wanted
    assert [tokens.count_one(us) for us in durations] == wanted
    assert AudioTokens.parse(tokens.text) == tokens


@given(st.integers(1, 10**9), st.lists(st.integers(0, 10**12)))
def test_by_length_every_token_that_begins_counts(token_us, durations):
    tokens = AudioTokens.of_duration(token_us)
    wanted = [max(1, -(-us // token_us)) for us in durations]
    assert tokens.count(np.array(durations, dtype=np.int64)).tolist() == wanted
    assert AudioTokens.parse(tokens.text) == tokens


# By hand, with the lengths of a FastConformer, at 16 kHz.
@pytest.mark.parametrize(
    ("chunk", "samples", "tokens"),
    [
        (None, 30 * 16_000, 375),
        (15.0, 30 * 16_000, 376),
        (15.0, 15 * 16_000, 188),
        (15.0, 15 * 16_000 + 100, 188),
        (15.0, 15 * 16_000 + 320, 189),
        (1 / 16_000, 740, 2),
    ],
)
def test_chunks_are_rounded_one_by_one_and_a_short_rest_is_merged(chunk, samples, tokens):
    """By its length alone, a minute in chunks of 15 s is two tokens short."""
    rule = AudioTokens.of_estimator(_estimator(chunk_size_seconds=chunk), 16_000)
    assert rule.count_one(samples * 1_000_000 // 16_000) == tokens


def test_audio_without_samples_or_of_unknown_length_is_one_token():
    for rule in (
        AudioTokens.of_duration(80_000),
        AudioTokens.of_estimator(_estimator(), 16_000),
        AudioTokens.of_estimator(_estimator(chunk_size_seconds=1), 16_000),
    ):
        assert rule.count(np.array([-1, 0, 1])).tolist() == [1, 1, 1]
        # Longer than anything, and still a number.
        assert rule.count_one(1 << 62) > 10**6


def test_lengths_are_rounded_to_the_nearest_sample():
    """Half a sample up: 31.25 µs at 16 kHz is a half."""
    one_each = {"preprocessor": {"n_fft": 1, "hop_length": 1, "stft_pad_amount": 0}}
    rule = AudioTokens.of_estimator({**one_each, "subsampling": []}, 16_000)
    us = np.array([187, 219, 250])
    assert rule.count(us).tolist() == [2, 3, 3]


def test_a_text_is_short_and_says_it_all():
    rule = AudioTokens.of_estimator(_estimator(chunk_size_seconds=30), 16_000)
    assert rule.text == "rate=16000 fft=512 hop=160 pad=256 conv=3,2,1,3 chunk=480000"
    stacked = [{**_CONV, "ceil_mode": True}, {"type": "feature_stacking", "factor": 4}]
    rule = AudioTokens.of_estimator(_estimator(subsampling=stacked), 16_000)
    assert rule.text == "rate=16000 fft=512 hop=160 pad=256 ceil=3,2,1,3 stack=4"
    assert AudioTokens.of_duration(80_000).text == "us=80000"
    most = _estimator(subsampling=[_CONV] * 8, chunk_size_seconds=30)
    assert len(AudioTokens.of_estimator(most, 16_000).text) <= 200


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ("fastconformer", "audio_token_estimator is 'fastconformer'"),
        ({}, "has no preprocessor, subsampling"),
        ({"preprocessor": _SPECTROGRAM}, "has no subsampling"),
        (_estimator(chunk_seconds=1), "unknown key 'chunk_seconds'.*preprocessor, subsampling"),
        (_estimator(preprocessor=[]), r"preprocessor is \[\]"),
        (_estimator(preprocessor={"n_fft": 512}), "has no hop_length, stft_pad_amount"),
        (_estimator(preprocessor={**_SPECTROGRAM, "win": 1}), "unknown key 'win'"),
        (_estimator(preprocessor={**_SPECTROGRAM, "hop_length": 0}), "hop_length is 0"),
        (_estimator(preprocessor={**_SPECTROGRAM, "n_fft": 512.0}), r"n_fft is 512\.0"),
        (_estimator(preprocessor={**_SPECTROGRAM, "stft_pad_amount": -1}), "amount is -1"),
        (_estimator(preprocessor={**_SPECTROGRAM, "n_fft": True}), "n_fft is True"),
        (_estimator(subsampling="conv"), "subsampling is 'conv'"),
        (_estimator(subsampling=[_CONV] * 9), "has 9 stages"),
        (_estimator(subsampling=[3]), "subsampling is 3"),
        (_estimator(subsampling={"type": "pool"}), "type is 'pool'.*conv or feature_stacking"),
        (_estimator(subsampling={"stride": 2}), "has no kernel_size, padding"),
        (_estimator(subsampling={**_CONV, "repeat": 65}), "repeat is 65"),
        (_estimator(subsampling={**_CONV, "stride": 0}), "stride is 0"),
        (_estimator(subsampling={**_CONV, "padding": -1}), "padding is -1"),
        (_estimator(subsampling={**_CONV, "ceil_mode": 1}), "ceil_mode is 1"),
        (_estimator(subsampling={**_CONV, "factor": 2}), "unknown key 'factor'"),
        (_estimator(subsampling={"type": "feature_stacking"}), "has no factor"),
        (_estimator(subsampling={"type": "feature_stacking", "factor": 0}), "factor is 0"),
        (_estimator(chunk_size_seconds=0), "chunk_size_seconds is 0"),
        (_estimator(chunk_size_seconds="30"), "chunk_size_seconds is '30'"),
        (_estimator(chunk_size_seconds=math.nan), "chunk_size_seconds is nan"),
        (_estimator(chunk_size_seconds=True), "chunk_size_seconds is True"),
    ],
)
def test_an_estimator_that_is_none_is_refused_by_name(config, named):
    with pytest.raises(ConfigError, match=f"(?i){named}"):
        AudioTokens.of_estimator(config, 16_000)


def test_rates_and_lengths_are_whole_numbers_above_zero():
    with pytest.raises(ConfigError, match=r"(?i)sample_rate is 0"):
        AudioTokens.of_estimator(_estimator(), 0)
    for wrong in (0, -1, 0.08, True):
        with pytest.raises(ConfigError, match=r"(?i)token_equivalent_duration"):
            AudioTokens.of_duration(wrong)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "us=0",
        "us=x",
        "us=80000 rate=16000",
        "us=80000 us=1",
        "rate=16000 fft=512 hop=160",
        "rate=16000 fft=512 hop=160 pad=256 conv=3,2,1",
        "rate=16000 fft=512 hop=160 pad=256 conv=3,0,1,1",
        "rate=16000 fft=512 hop=160 pad=256 conv=3,2,1,1000000000",
        "rate=16000 fft=512 hop=160 pad=256 stack=99999999999999999999",
        "rate=16000 fft=512 hop=160 pad=256 pool=2",
        "rate=16000 fft=512 hop=160 pad=-1",
        None,
    ],
)
def test_a_text_that_says_nothing_is_refused(text):
    with pytest.raises(ConfigError, match="does not say how many tokens"):
        AudioTokens.parse(text)
