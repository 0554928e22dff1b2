"""The dict that loggers get: its names, and what it says of an interval."""

from __future__ import annotations

import json
import math
import re
import string
from collections import Counter
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import playhead
from playhead.datasets import Ids, SpeechLanguage, SpeechToText
from playhead.errors import ConfigError
from playhead.loader import DataLog
from playhead.loader.loader import Loader
from playhead.loader.logged import safe_names
from playhead.loader.ranks import Topology
from playhead.loader.run import Planning
from playhead.loader.stream import Workers
from playhead.plan import Batching, LeafColumns, Shape
from support.corpus import nemo_corpus
from support.small_blends import Letters, quiet

PAGE = Path(__file__).parents[2] / "docs" / "logging.md"


@pytest.fixture(autouse=True)
def _own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PLAYHEAD_CACHE", str(tmp_path / "cache"))


def loader_of_many(count, weights=None):
    """A loader of many small sources; batches are micro-batches."""
    leaves = tuple(
        LeafColumns(
            key=f"{n:08x}",
            name=f"leaf {n}",
            weight=1 if weights is None else weights[n],
            duration_us=np.full(7, 1_000_000),
            fingerprint=lambda n: f"{n:016x}",
        )
        for n in range(count)
    )
    return Loader(
        planning=Planning(
            leaves=leaves,
            shape=Shape(finite=False, shuffle=True),
            batching=Batching(micro_batches_per_step=1, batch_size=4),
        ),
        fetch=lambda micro_batch: micro_batch,
        topology=Topology(rank=0, world_size=1),
        workers=Workers(),
        seed=3,
        fixed_step=True,
    )


def loader_of(config, dataset=None, **options):
    return quiet(
        lambda: playhead.dataloader(
            {"seed": 3, "shuffle": True, **config},
            dataset=Ids() if dataset is None else dataset,
            rank=0,
            world_size=1,
            **options,
        )
    )


def logged(loader, batches=30, **options):
    log = DataLog(loader, **options)
    list(islice(iter(loader), batches))
    return log.figures()


def documented():
    rows = [line.split("|")[1] for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    return Counter(name for row in rows for name in re.findall(r"`([^`]+)`", row))


def as_documented(name, loader, leaves):
    """A name with what stands for sources, blends and reasons, as the page has it."""
    kind, slash, rest = name.removeprefix("data/").partition("/")
    placeholder = {"drift": "<source>", "passes": "<source>", "window": "<blend>"}
    if slash and kind in placeholder:
        assert rest in (leaves if placeholder[kind] == "<source>" else loader.planning.parts)
        return f"data/{kind}/{placeholder[kind]}"
    return f"data/{kind}/<reason>" if kind == "dropped" else name


def test_the_page_has_every_name_once_and_no_other(tmp_path):
    speech = nemo_corpus(tmp_path / "speech", [0.2 + 0.05 * n for n in range(20)])
    lines = tmp_path / "lines.txt"
    lines.write_text("".join(f"line {'abc ' * (n % 9)}{n}\n" for n in range(40)))
    of_speech = {"input_cfg": [{"type": "nemo", "manifest_filepath": str(speech), "name": "s"}]}
    of_lines = {"input_cfg": [{"type": "txt", "paths": str(lines), "name": "l", "language": "en"}]}
    in_tokens = {
        "use_multimodal_sampling": True, "prompt_format": "plain", "batch_tokens": 200,
        "token_equivalent_duration": 0.1, "audio_locator_tag": "<audio>",
    }  # fmt: skip
    found = set()
    for loader, leaves in (
        (loader_of({**of_speech, "batch_size": 3, "min_duration": 0.5, "force_finite": True}), "s"),
        (
            loader_of(
                {
                    "multi_config": True, "shard_seed": 1,
                    "one": {**of_speech, "batch_duration": 3},
                    "two": {**of_speech, "batch_size": 3},
                }
            ),
            ("one.s", "two.s"),
        ),
        (loader_of({**of_lines, **in_tokens}, tokenizer=Letters()), "l"),
    ):  # fmt: skip
        names = logged(loader)
        found |= {as_documented(name, loader, leaves) for name in names}
    pages = documented()
    assert set(pages) == found
    assert set(pages.values()) == {1}


def test_audio_that_is_padded_is_what_is_logged(tmp_path):
    manifest = nemo_corpus(tmp_path, [0.2 + 0.01 * (n * 7 % 50) for n in range(60)])
    config = {
        "input_cfg": [{"type": "nemo", "manifest_filepath": str(manifest), "weight": 1.0}],
        "batch_duration": 4, "num_buckets": 3, "micro_batches_per_step": 2, "force_finite": False,
        "sample_rate": 16000,
    }  # fmt: skip
    loader = loader_of(config, dataset=SpeechToText())
    log = DataLog(loader)
    iterator = iter(loader)
    for steps in (3, 5):
        batches = list(islice(iterator, 2 * steps))
        padded = sum(batch["audio"].numel() for batch in batches)
        heard = sum(int(batch["audio_lens"].sum()) for batch in batches)
        before = log._before
        interval = loader.measures().since(before)
        figures = log.figures()
        assert figures["data/padding_seconds"] == pytest.approx(1 - heard / padded, abs=1e-12)
        assert 0 < figures["data/padding_seconds"] < 0.5
        assert "data/padding_tokens" not in figures
        assert interval.hours == pytest.approx(heard / 16000 / 3600)
        assert interval.samples == sum(len(batch["ids"]) for batch in batches)
        per_second = figures["data/hours_per_second"] / figures["data/samples_per_second"]
        assert per_second == pytest.approx(interval.hours / interval.samples)
        assert figures["data/hours_per_hour"] == pytest.approx(
            3600 * figures["data/hours_per_second"]
        )


def test_tokens_that_are_padded_are_what_is_logged(tmp_path):
    rows = [{"text": f"line {'abc ' * (n * 5 % 11)}{n}"} for n in range(80)]
    lines = tmp_path / "lines.txt"
    lines.write_text("".join(f"{row['text']}\n" for row in rows))
    config = {
        "input_cfg": [{"type": "txt", "paths": str(lines), "language": "en", "weight": 1.0}],
        "use_multimodal_sampling": True, "prompt_format": "plain", "batch_tokens": 300,
        "num_buckets": 2,
    }  # fmt: skip
    loader = loader_of(config, dataset=SpeechLanguage(), tokenizer=Letters())
    log = DataLog(loader)
    batches = list(islice(iter(loader), 12))
    padded = sum(batch["input_ids"].numel() for batch in batches)
    tokens = sum(int(batch["input_lens"].sum()) for batch in batches)
    assert loader.measures().tokens == tokens
    figures = log.figures()
    assert figures["data/padding_tokens"] == pytest.approx(1 - tokens / padded, abs=1e-12)
    assert not {"data/padding_seconds", "data/hours_per_second"} & set(figures)
    assert figures["data/tokens_per_second"] / figures["data/samples_per_second"] == pytest.approx(
        tokens / sum(len(batch["ids"]) for batch in batches)
    )


def test_an_interval_begins_where_the_one_before_ended(tmp_path):
    loader = loader_of_many(3)
    log = DataLog(loader)
    assert set(log.figures()) == {
        "data/step", "data/repeated_samples", "data/rank/bad_samples",
        "data/rank/repeated_batches",
    }  # fmt: skip
    iterator = iter(loader)
    list(islice(iterator, 5))
    first = log.figures()
    assert first["data/step"] == 5
    nothing_new = log.figures()
    assert nothing_new["data/step"] == 5
    assert "data/samples_per_second" not in nothing_new
    assert "data/rank/wait_seconds_per_step" not in nothing_new
    assert nothing_new["data/drift/leaf_0"] == first["data/drift/leaf_0"]
    list(islice(iterator, 4))
    assert log.figures()["data/step"] == 9


def test_waits_are_those_of_the_interval():
    loader = loader_of_many(1)
    log = DataLog(loader)
    list(islice(iter(loader), 4))
    loader.waits.seconds = 8.0
    assert log.figures()["data/rank/wait_seconds_per_step"] == 2.0
    list(islice(iter(loader), 3))
    loader.waits.seconds = 8.75
    figures = log.figures()
    assert figures["data/rank/wait_seconds_per_step"] == 0.25
    assert figures["data/rank/wait_share"] > 0


@pytest.mark.parametrize("most", [0, 3])
def test_of_many_sources_those_with_the_largest_drift_are_named(most):
    loader = loader_of_many(500, weights=[1 + 400 * (n % 100 == 9) for n in range(500)])
    figures = logged(loader, batches=9, most_leaves=most)
    drift = loader.measures().leaves.drift
    named = {name for name in figures if name.startswith("data/drift/")}
    largest = sorted(range(500), key=lambda n: (-abs(drift[n]), n))[:most]
    assert named == {f"data/drift/leaf_{n}" for n in largest}
    assert figures["data/sources"] == 500
    assert figures["data/sources_unnamed"] == 500 - most
    assert figures["data/drift_largest"] == pytest.approx(max(abs(drift)))
    assert figures["data/drift_total"] == pytest.approx(abs(drift).sum() / 2)
    assert len(figures) < 40


def test_no_fewer_than_no_sources():
    with pytest.raises(ConfigError, match="most_leaves is -1"):
        DataLog(loader_of_many(1), most_leaves=-1)


def test_all_are_numbers_that_json_takes_and_have_the_prefix(tmp_path):
    figures = logged(loader_of_many(4), prefix="train/data/")
    assert all(name.startswith("train/data/") for name in figures)
    assert all(type(value) in {int, float} and math.isfinite(value) for value in figures.values())
    assert json.loads(json.dumps(figures, allow_nan=False)) == figures


def test_what_is_bad_or_refused_is_counted_from_the_start(tmp_path):
    manifest = nemo_corpus(tmp_path, [0.2 + 0.05 * n for n in range(20)])
    (tmp_path / "wav" / "utt00011.wav").write_bytes(b"no audio")
    config = {
        "input_cfg": [{"type": "nemo", "manifest_filepath": str(manifest), "name": "s"}],
        "batch_size": 4, "min_duration": 0.4, "force_finite": True, "sample_rate": 16000,
        "fault_tolerant_audio_loading": True,
    }  # fmt: skip
    loader = loader_of(config, dataset=SpeechToText())
    log = DataLog(loader)
    list(loader)
    for _ in range(2):
        figures = log.figures()
        assert figures["data/dropped/min_duration"] == 4
        assert figures["data/rank/bad_samples"] == 1
        assert figures["data/passes/s"] == 1.0
    assert loader.measures().samples == 16
    assert loader.measures().rank.samples == 15


SAFE = set(string.ascii_letters + string.digits + "_.-")


KEYS = st.sampled_from(["0a", "1b"])
# Such as are as long as they may be, or look like one with a key.
NAMES = st.text(max_size=100) | st.builds(
    "{}{}{}".format, st.sampled_from(["a", "x" * 80]), st.sampled_from([":", "-", ""]), KEYS
)


@given(st.lists(st.tuples(NAMES, KEYS), max_size=30, unique=True))
def test_names_are_safe_and_differ(sources):
    """Of a source that several blends have, the key is the same."""
    names, keys = [name for name, _ in sources], [key for _, key in sources]
    safe = safe_names(names, keys)
    assert len(set(safe)) == len(names)
    assert all(name and set(name) <= SAFE and len(name) <= 100 for name in safe)
    back = safe_names(names[::-1], keys[::-1])[::-1]
    assert back == safe
