"""Real speech with everything switched on, stopped and gone on with on other ranks and workers."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

import playhead
from playhead.datasets import SpeechToText
from support.jobs import history_of, last_state
from support.real_speech import RATE, leaves

if TYPE_CHECKING:
    from pathlib import Path

    from lhotse import CutSet

    from support.jobs import Server

pytestmark = pytest.mark.e2e

EVERYTHING = {
    "noise_mix_prob": 0.6,
    "noise_snr": [5, 15],
    "perturb_speed": True,
    "truncate_duration": 4.0,
    "cut_into_windows_duration": 2.0,
    "cut_into_windows_hop": 1.5,
    "pad_min_duration": 0.6,
    "pad_direction": "random",
    "concatenate_samples": True,
    "db_norm": None,
    "lowpass_enabled": True,
    "lowpass_frequencies_interval": [1500, 4000],
    "clipping_enabled": True,
    "rir_enabled": True,
    "compression_enabled": True,
    "compression_codecs": ["opus", "mp3", "vorbis", "gsm"],
}
SINGLE = {
    name: value
    for name, value in EVERYTHING.items()
    if not name.startswith(("concatenate", "cut_into"))
}


def config_of(prompts: Path, **options: Any) -> dict[str, Any]:
    """Three kinds of rows, with other voices for noise."""
    rows = leaves(prompts)
    return {
        "input_cfg": [
            {**rows["nemo"], "weight": 0.4},
            {**rows["tarred"], "weight": 0.3},
            {**rows["cuts_mixed"], "weight": 0.3},
        ],
        "noise_path": rows["nemo_segments"]["manifest_filepath"],
        "sample_rate": RATE,
        "shuffle": True,
        "seed": 3,
        "batch_duration": 20,
        "micro_batches_per_step": 4,
        "window_draws": 200,
        "num_workers": 0,
        **options,
    }


class Cuts(torch.utils.data.Dataset):
    """Hands over what is heard of each cut, by its id."""

    def __getitem__(self, cuts: CutSet) -> dict[str, Any]:
        return {
            "ids": [cut.id for cut in cuts],
            "heard": [cut.load_audio()[0] for cut in cuts],
            "lengths": [cut.duration for cut in cuts],
        }


def digest(samples: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(samples).tobytes()).hexdigest()


@pytest.mark.parametrize("dataset", ["default", "augmented"])
def test_a_run_that_is_stopped_is_the_run_that_was_not(
    prompts: Path, server: Server, tmp_path: Path, dataset: str
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(json.dumps(config_of(prompts, **EVERYTHING, info=True)))
    job = {"config": str(config), "dataset": dataset, "notes": "ignore"}
    whole = [
        server.start(tmp_path, {**job, "ranks": [0, 2], "world_size": 4, "steps": 6}),
        server.start(tmp_path, {**job, "ranks": [1, 3], "world_size": 4, "steps": 6}),
    ]
    for one in whole:
        one.finish(120)
    expected = history_of(whole)
    assert len(expected) == 24
    assert len({line["sha256"] for line in expected.values()}) == 24

    found: dict[Any, Any] = {}
    state = None
    for steps, ranks, workers, start in ((2, 2, 2, "fork"), (3, 1, 1, "spawn"), (6, 4, 0, None)):
        overrides = {"num_workers": workers, "multiprocessing_context": start}
        part = server.start(
            tmp_path,
            {
                **job,
                "ranks": list(range(ranks)),
                "world_size": ranks,
                "steps": steps,
                "overrides": overrides,
                "state_in": state and str(state),
            },
        )
        part.finish(120)
        found.update(history_of([part]))
        state = last_state([part])
    assert found == expected


def test_a_sample_sounds_the_same_in_any_batch(prompts: Path) -> None:
    """Other limits make other batches of the same window."""
    heard: list[dict[str, str]] = []
    for seconds in (20, 11):
        config = config_of(
            prompts,
            **SINGLE,
            input_cfg=[leaves(prompts)["nemo"]],
            force_finite=True,
            batch_duration=seconds,
        )
        loader = playhead.dataloader(config, dataset=Cuts(), rank=0, world_size=1)
        found: dict[str, str] = {}
        for batch in islice(loader, 40):
            found.update(zip(batch["ids"], map(digest, batch["heard"]), strict=True))
        heard.append(found)
    both = heard[0].keys() & heard[1].keys()
    assert len(both) > 40
    assert {name: heard[0][name] for name in both} == {name: heard[1][name] for name in both}


def test_both_kinds_of_datasets_hear_the_same(prompts: Path) -> None:
    config = config_of(prompts, **EVERYTHING)
    ours = playhead.dataloader(config, dataset=SpeechToText(), rank=0, world_size=1)
    theirs = playhead.dataloader(config, dataset=Cuts(), rank=0, world_size=1)
    for mine, other in islice(zip(ours, theirs, strict=False), 6):
        assert mine["ids"] == other["ids"]
        for row, length, samples in zip(
            mine["audio"].numpy(), mine["audio_lens"].tolist(), other["heard"], strict=True
        ):
            np.testing.assert_array_equal(row[:length], samples)


def test_no_batch_is_over_its_limit(prompts: Path) -> None:
    """What was joined apart, which is done to a finished batch."""
    config = config_of(prompts, **{**EVERYTHING, "concatenate_samples": False})
    loader = playhead.dataloader(config, dataset=SpeechToText(), rank=0, world_size=1)
    for batch in islice(loader, 25):
        rows, length = batch["audio"].shape
        assert 0.6 * RATE <= length <= 2.0 * RATE
        assert rows * length <= 20 * RATE + rows


def test_windows_of_a_pass_are_all_that_there_is(prompts: Path) -> None:
    """Each row in windows of two seconds: nothing is left out, nothing comes twice."""
    config = {
        "input_cfg": [leaves(prompts)["nemo"]],
        "sample_rate": RATE,
        "force_finite": True,
        "shuffle": True,
        "batch_duration": 60,
        "num_workers": 0,
    }
    whole = playhead.dataloader(config, rank=0, world_size=1)
    samples = {}
    for batch in whole:
        for name, row, length in zip(
            batch["ids"], batch["audio"].numpy(), batch["audio_lens"].tolist(), strict=True
        ):
            samples[name] = row[:length]
    parts: dict[str, dict[int, np.ndarray]] = {}
    counts: Counter[str] = Counter()
    loader = playhead.dataloader(config, rank=0, world_size=1, cut_into_windows_duration=2.0)
    for batch in loader:
        counts.update(batch["ids"])
        for name, row, length in zip(
            batch["ids"], batch["audio"].numpy(), batch["audio_lens"].tolist(), strict=True
        ):
            stem, _, part = name.rpartition("-")
            assert length <= 2 * RATE
            parts.setdefault(stem, {})[int(part)] = row[:length]
    assert set(counts.values()) == {1}
    assert parts.keys() == samples.keys()
    for name, pieces in parts.items():
        joined = np.concatenate([pieces[part] for part in range(len(pieces))])
        np.testing.assert_array_equal(joined, samples[name], err_msg=name)
