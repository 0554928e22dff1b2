from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import fields

import pytest

from playhead.config import Options
from playhead.errors import ConfigError, MissingExtraError, NotSupportedError, SourceNotFoundError
from playhead.fetch.augment import Augmentation
from support.augmenting import augmentation

SWITCHES = {
    "noise_path": "noise.json",
    "perturb_speed": True,
    "truncate_duration": 1.0,
    "cut_into_windows_duration": 1.0,
    "pad_min_duration": 1.0,
    "concatenate_samples": True,
    "lowpass_enabled": True,
    "clipping_enabled": True,
    "rir_enabled": True,
    "compression_enabled": True,
}
STRETCHES = {"truncate_duration", "cut_into_windows_duration"}
BATCHWISE = {"concatenate_samples", "lowpass_enabled", "clipping_enabled", "rir_enabled"}


def test_nothing_is_on_by_default():
    assert Augmentation.from_options(Options()) is None


def test_details_alone_switch_nothing_on():
    assert Augmentation.from_options(Options(noise_snr=(0.0, 5.0), rir_prob=1.0)) is None


def test_defaults_are_those_of_the_options():
    own = {item.name: item.default for item in fields(Augmentation)}
    theirs = {item.name: item.default for item in fields(Options)}
    assert own == {name: theirs[name] for name in own}


@pytest.mark.parametrize("name", SWITCHES)
def test_each_switch(name):
    made = augmentation(db_norm=None, **{name: SWITCHES[name]})
    assert made.only_stretches == (name in STRETCHES)
    assert made.is_batchwise == (name in BATCHWISE | {"compression_enabled"})
    assert pickle.loads(pickle.dumps(made)) == made


REFUSED = [
    ({"noise_path": "a", "noise_mix_prob": 1.5}, "`noise_mix_prob` is 1.5.*from 0 to 1"),
    ({"noise_path": "a", "noise_mix_prob": -0.1}, "`noise_mix_prob`"),
    ({"noise_path": "a", "noise_snr": (20.0, 10.0)}, "`noise_snr`.*of dB, the lower first"),
    ({"noise_path": "a", "noise_snr": (20.0,)}, "`noise_snr`.*two numbers"),
    ({"noise_path": "a", "noise_snr": (1.0, float("inf"))}, "`noise_snr`"),
    ({"truncate_duration": 0.0}, "`truncate_duration` is 0.0.*above 0"),
    ({"truncate_duration": float("inf")}, "`truncate_duration`"),
    ({"cut_into_windows_duration": -1.0}, "`cut_into_windows_duration`"),
    (
        {"cut_into_windows_duration": 1.0, "cut_into_windows_hop": 0.0},
        "`cut_into_windows_hop` is 0.0",
    ),
    ({"pad_min_duration": -2.0}, "`pad_min_duration`"),
    ({"concatenate_samples": True, "concatenate_gap_seconds": -0.1}, "`concatenate_gap_seconds`"),
    ({"concatenate_samples": True, "concatenate_duration_factor": 0.0}, "_duration_factor`"),
    ({"concatenate_samples": True, "db_norm": float("-inf")}, "`db_norm`"),
    ({"lowpass_enabled": True, "lowpass_prob": 2.0}, "`lowpass_prob`"),
    (
        {"lowpass_enabled": True, "lowpass_frequencies_interval": (3500.0, 8001.0)},
        "`lowpass_frequencies_interval`.*from 1 to 8000",
    ),
    (
        {"lowpass_enabled": True, "lowpass_frequencies_interval": (0.0, 8000.0)},
        "`lowpass_frequencies_interval`",
    ),
    ({"clipping_enabled": True, "clipping_prob": -1.0}, "`clipping_prob`"),
    ({"clipping_enabled": True, "clipping_prob_hard": 1.1}, "`clipping_prob_hard`"),
    ({"clipping_enabled": True, "clipping_gain_db": (5.0, 1.0)}, "`clipping_gain_db`"),
    ({"clipping_enabled": True, "clipping_oversampling": 0}, "`clipping_oversampling`"),
    ({"rir_enabled": True, "rir_prob": 1.1}, "`rir_prob`"),
    ({"rir_enabled": True, "rir_path": ["a", "b"]}, "`rir_path`.*manifest of recordings"),
    ({"compression_enabled": True, "compression_prob": 1.1}, "`compression_prob`"),
    (
        {"compression_enabled": True, "compression_level_interval": (0.5, 1.5)},
        "`compression_level_interval`.*from 0 to 1",
    ),
    ({"compression_enabled": True, "compression_codecs": ()}, "`compression_codecs`.*opus, mp3"),
    ({"compression_enabled": True, "compression_codecs": ("aac",)}, "`compression_codecs`"),
    ({"compression_enabled": True, "compression_codecs": ("mp3", "mp3")}, "each once"),
    (
        {"compression_enabled": True, "compression_codec_weights": (1.0, 2.0)},
        "2 weights for 1 codecs",
    ),
    (
        {"compression_enabled": True, "compression_codec_weights": (0.0,)},
        "`compression_codec_weights`.*not all 0",
    ),
    ({"compression_enabled": True, "compression_codec_weights": (-1.0,)}, "_weights`"),
]


@pytest.mark.parametrize(("options", "said"), REFUSED)
def test_what_makes_no_sense_is_refused_by_name(options, said):
    with pytest.raises(ConfigError, match=f"(?is){said}"):
        augmentation(**{"db_norm": None, **options})


@pytest.mark.parametrize(("options", "said"), REFUSED)
def test_what_is_off_is_not_looked_at(options, said):
    off = {
        name: None if name == "noise_path" else False
        for name in SWITCHES
        if name.endswith("_enabled") or name in ("noise_path", "concatenate_samples")
    }
    details = {name: value for name, value in options.items() if name not in SWITCHES}
    details.pop("cut_into_windows_hop", None)
    assert augmentation(perturb_speed=True, **off, **details)


@pytest.mark.parametrize(("codec", "rate"), [("opus", 22050), ("opus", 44100), ("mp3", 96000)])
def test_codecs_have_rates(codec, rate):
    with pytest.raises(ConfigError, match=f"{codec}, which cannot code {rate} Hz.*sample_rate"):
        augmentation(rate, compression_enabled=True, compression_codecs=(codec,))
    assert augmentation(rate, compression_enabled=True, compression_codecs=("vorbis", "gsm"))


def test_the_filter_goes_up_to_half_the_rate():
    interval = {"lowpass_enabled": True, "lowpass_frequencies_interval": (3000.0, 4000.0)}
    assert augmentation(8000, **interval)
    with pytest.raises(ConfigError):
        augmentation(7998, **interval)


def test_missing_impulse_responses(tmp_path):
    with pytest.raises(SourceNotFoundError, match=r"rir_path.*none\.jsonl"):
        augmentation(rir_enabled=True, rir_path=str(tmp_path / "none.jsonl"))
    with pytest.raises(NotSupportedError, match="rir_path"):
        augmentation(rir_enabled=True, rir_path="s3://bucket/rirs.jsonl")


def test_loudness_needs_a_package_and_names_it(monkeypatch):
    monkeypatch.setattr("playhead.fetch.augment.checks.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pyloudnorm.*pip install.*db_norm: null"):
        augmentation(concatenate_samples=True)
    assert augmentation(concatenate_samples=True, db_norm=None).concatenate_samples
    assert augmentation(perturb_speed=True).db_norm == -25.0


def test_settings_do_not_import_lhotse():
    code = (
        "import sys; from playhead.fetch.augment import Augmenter, Augmentation\n"
        "from playhead.config import Options\n"
        "assert Augmentation.from_options(Options(truncate_duration=1.0)).only_stretches\n"
        "assert 'lhotse' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
