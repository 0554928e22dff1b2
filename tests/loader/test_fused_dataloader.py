"""Configs with `multi_config` through the call that users make."""

from __future__ import annotations

import json
import warnings
from itertools import islice

import pytest
import torch

import playhead
from playhead.check import check_repeatable
from playhead.datasets import Ids, SpeechToText
from playhead.errors import ConfigError
from support.corpus import nemo_corpus, tarred_corpus, write_jsonl

G = 2

pytestmark = pytest.mark.filterwarnings("ignore:parts that end beside parts that do not")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PLAYHEAD_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def config(tmp_path):
    """A part that ends, of short words at 8 kHz, and one that does not."""
    plain = nemo_corpus(tmp_path / "plain", [0.2 + 0.02 * n for n in range(20)], prefix="plain")
    pattern, tars = tarred_corpus(tmp_path / "tarred", [0.3 + 0.03 * n for n in range(16)], 2)
    return {
        "multi_config": True, "seed": 3, "shard_seed": 3, "shuffle": True, "info": True,
        "micro_batches_per_step": G, "window_draws": 30,
        "plain": {
            # Names, or keys and with them the order would depend on where the files are.
            "input_cfg": [{"type": "nemo", "manifest_filepath": str(plain), "name": "plain"}],
            "batch_size": 3, "sample_rate": 8000,
            "perturb_speed": True, "window_draws": 30,
        },
        "tarred": {
            "input_cfg": [
                {
                    "type": "nemo_tarred", "manifest_filepath": pattern,
                    "tarred_audio_filepaths": tars, "name": "tarred",
                }
            ],
            "batch_duration": 2, "window_draws": 30, "pad_min_duration": 0.5,
        },
    }  # fmt: skip


class Sounds:
    """A dataset of cuts; those of several rates in a batch stay apart."""

    def __getitem__(self, cuts):
        audio = [torch.from_numpy(cut.load_audio()) for cut in cuts]
        return {
            "ids": [cut.id for cut in cuts],
            "rates": [cut.sampling_rate for cut in cuts],
            "texts": [cut.supervisions[0].text for cut in cuts],
            "audio": audio,
        }


def loader(config, dataset=None, **options):
    place = {"rank": options.pop("rank", 0), "world_size": options.pop("world_size", 1)}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*window_draws.*|.*shard_seed.*")
        return playhead.dataloader(config, dataset=dataset or Ids(), **place, **options)


def take(loader, count):
    return list(islice(iter(loader), count))


def part_of(names):
    (part,) = {"plain" if name.startswith("wav/plain") else "tarred" for name in names}
    return part


def test_round_robin_and_zip_end_as_their_parts_do(config):
    turns = [part_of(batch["ids"]) for batch in take(loader(config), 4 * G)]
    assert turns == ["plain"] * G + ["tarred"] * G + ["plain"] * G + ["tarred"] * G
    zipped = loader(config, sampler_fusion="zip")
    batches = list(zipped)
    assert len(batches) == len(zipped) or zipped.finite
    names = [name for batch in batches for name in batch["ids"] if name.startswith("wav/plain")]
    assert len(set(names)) == 20
    assert all({"w", "u"} == {name[0] for name in batch["ids"]} for batch in batches)


@pytest.mark.parametrize("fusion", ["round_robin", "randomized_round_robin", "zip"])
def test_each_part_is_read_and_augmented_as_it_says(config, fusion):
    batches = take(loader(config, Sounds(), sampler_fusion=fusion), 6 * G)
    rates = {
        (name[0], rate)
        for batch in batches
        for name, rate in zip(batch["ids"], batch["rates"], strict=True)
    }
    assert rates == {("w", 8000), ("u", 16000)}
    for batch in batches:
        for name, audio in zip(batch["ids"], batch["audio"], strict=True):
            if name[0] == "u":
                assert audio.shape[1] >= 8000


@pytest.mark.parametrize("fusion", ["round_robin", "randomized_round_robin", "zip"])
@pytest.mark.parametrize("workers", [0, 2])
def test_stopped_and_resumed_on_other_ranks_gives_the_same_tensors(config, fusion, workers):
    options = {"sampler_fusion": fusion, "force_finite": True}
    whole = list(loader(config, Sounds(), **options))
    first = loader(config, Sounds(), num_workers=workers, **options)
    got = take(first, 2 * G)
    state = json.loads(json.dumps(first.state_dict()))
    first.close()
    ranks = [loader(config, Sounds(), rank=n, world_size=G, **options) for n in range(G)]
    for one in ranks:
        one.load_state_dict(state)
    parts = [list(one) for one in ranks]
    got += [batch for step in zip(*parts, strict=True) for batch in step]
    assert len(got) == len(whole)
    for one, other in zip(got, whole, strict=True):
        assert one["playhead"] == other["playhead"]
        assert (one["ids"], one["texts"]) == (other["ids"], other["texts"])
        assert all(torch.equal(a, b) for a, b in zip(one["audio"], other["audio"], strict=True))


def test_batches_that_are_decoded_at_one_rate_need_one(config):
    with pytest.raises(ConfigError, match=r"sample_rate 8000 and 16000.*plain/.*: 8000; tarred/"):
        loader(config, SpeechToText(), sampler_fusion="zip")
    lengths = [batch["audio_lens"].max() for batch in take(loader(config, SpeechToText()), 2 * G)]
    assert max(lengths[:G]) < 8000 <= min(lengths[G:])
    same = loader(config, SpeechToText(), sampler_fusion="zip", sample_rate=8000)
    assert take(same, 1)[0]["audio"].shape[0] > 3


def test_a_dataset_that_cannot_take_a_part_is_named(config, tmp_path):
    path = write_jsonl(tmp_path / "texts.jsonl", [{"text": "a b"}] * 4)
    entry = {"type": "txt_jsonl", "paths": str(path), "language": "en"}
    words = {**config, "words": {"input_cfg": [entry], "batch_size": 2}}
    with pytest.raises(ConfigError, match=r"SpeechToText takes .*leaf words/.*\(modality 'text'\)"):
        loader(words, SpeechToText())
    names = take(loader(words), 3 * G)[-1]["ids"]
    assert all(name.startswith("texts") for name in names)


def test_what_a_part_is_told_is_said_once_by_rank_0(config):
    config["plain"]["bucket_buffer_size"] = 7
    config["sample_rate"] = 8000
    with pytest.warns(UserWarning) as said:  # noqa: PT030 - all that is said is looked at
        playhead.dataloader(config, dataset=Ids(), rank=0, world_size=2)
    texts = [str(one.message) for one in said]
    assert sum("sample_rate (not in tarred)" in text for text in texts) == 1
    assert sum(text.startswith("part plain:") and "bucket_buffer" in text for text in texts) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        playhead.dataloader(config, dataset=Ids(), rank=1, world_size=2)


def test_the_report_names_leaves_by_part(config):
    fused = loader(config, sampler_fusion="zip")
    list(fused)
    report = fused.report()
    assert [leaf.name.partition("/")[0] for leaf in report.leaves] == ["plain", "tarred"]
    assert report.leaves[0].samples >= 20
    assert sum(leaf.samples for leaf in report.leaves) == report.run.samples


def test_a_dataset_is_checked_over_batches_of_all_parts(config):
    found = check_repeatable(loader(config, Sounds(), sampler_fusion="zip"), 2, workers=0)
    assert found.repeatable
    assert found.batches == 2


def test_bad_audio_of_any_part_is_listed(config, tmp_path):
    (tmp_path / "plain/wav/plain00003.wav").write_bytes(b"RIFF" + bytes(60))
    options = {
        "sampler_fusion": "zip", "sample_rate": 16000, "fault_tolerant_audio_loading": True,
        "bad_samples": str(tmp_path / "bad.jsonl"), "perturb_speed": False,
    }  # fmt: skip
    fused = loader(config, SpeechToText(), **options)
    batches = list(fused)
    assert not any("plain00003" in name for batch in batches for name in batch["ids"])
    assert sum(batch["playhead"].dropped for batch in batches) >= 1
    (line,) = (tmp_path / "bad.jsonl").read_text().splitlines()
    assert json.loads(line)["name"].startswith("plain/")
    assert sum(sum(leaf.bad.values()) for leaf in fused.report().leaves) >= 1


@pytest.mark.filterwarnings("default:parts that end beside parts that do not")
@pytest.mark.parametrize(
    ("fusion", "said"),
    [
        ("zip", "a pass ends with plain, though tarred would go on"),
        ("round_robin", "after one pass over plain only tarred is left"),
        ("randomized_round_robin", "after one pass over plain only tarred is left"),
    ],
)
def test_parts_that_end_are_told(config, fusion, said):
    with pytest.warns(UserWarning, match=said):
        playhead.dataloader({**config, "sampler_fusion": fusion}, dataset=Ids())


def test_parts_that_all_end_are_not_told(config, recwarn):
    playhead.dataloader({**config, "force_finite": True}, dataset=Ids())
    assert not any("that end beside" in str(one.message) for one in recwarn)
