"""Samples are fetched as training would, and what is said of it adds up."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from playhead.check.preflight.fetching import Fetched, FetchRequest, LeafFetch, fetch_some
from playhead.check.preflight.picking import in_batches, in_runs, spread
from playhead.errors import StorageError
from playhead.formats.nemo import Nemo
from playhead.paths import expand
from playhead.storage import local
from support.corpus import tarred_corpus, write_tar
from support.stores import MemoryStore, plugged_in

DURATIONS = [0.2 + 0.01 * n for n in range(40)]


@pytest.fixture
def shards(place):
    """A config of a blend of tars, and the paths of these."""
    manifests, tars = tarred_corpus(place / "tars", DURATIONS, 4)
    entry = {
        "type": "nemo_tarred",
        "manifest_filepath": manifests,
        "tarred_audio_filepaths": tars,
        "name": "shards",
    }
    return {"batch_size": 4, "input_cfg": [entry]}, expand(tars)


def fetched(subject, samples, **request):
    return fetch_some(subject, FetchRequest(samples=samples, **request))


def test_what_came_adds_up(shards, subject_of):
    config, tars = shards
    [one] = fetched(subject_of(config), 1000).leaves
    facts = one.to_json()
    assert (one.leaf, one.mode) == ("shards", "local")
    assert one.asked == one.fetched == len(DURATIONS)
    assert one.hours == pytest.approx(sum(DURATIONS) / 3600)
    assert facts["requests"] == 4
    assert one.batch == 10
    # Every member with its header, every row.
    audio = sum(Path(path).stat().st_size for path in tars)
    assert 0.8 * audio < one.num_bytes < 1.3 * audio
    assert facts["seconds"] == pytest.approx(sum(one.request_seconds))
    assert facts["samples_per_second"] == pytest.approx(40 / facts["seconds"])
    assert facts["audio_hours_per_second"] == pytest.approx(one.hours / facts["seconds"])
    assert facts["megabytes_per_second"] == pytest.approx(one.num_bytes / 1e6 / facts["seconds"])
    assert min(one.request_seconds) <= facts["p50_seconds"] <= facts["p95_seconds"]
    json.dumps(facts)


def test_samples_of_all_shards_are_read_the_same_each_time(shards, subject_of, monkeypatch):
    config, tars = shards
    read = []
    real = local.read_ranges

    def counted(path, *arguments):
        read.append(path)
        return real(path, *arguments)

    subject = subject_of(config)
    fetched(subject, 1)
    monkeypatch.setattr(local, "read_ranges", counted)
    fetched(subject, 8)
    first = list(read)
    assert set(tars) <= set(first)
    read.clear()
    fetched(subject, 8)
    assert read == first


def test_plain_files_count_with_their_bytes(subject_of, corpus):
    entry = {"type": "nemo", "manifest_filepath": corpus["plain"]}
    [one] = fetched(subject_of({"batch_size": 2, "input_cfg": [entry]}), 6).leaves
    audio = sum(path.stat().st_size for path in Path(corpus["plain"]).parent.glob("wav/*"))
    assert one.fetched == 6
    assert one.num_bytes > audio


def test_workers_follow_from_the_rates_and_shares_of_all_leaves():
    def leaf(name, share, seconds, hours):
        made = LeafFetch(leaf=name, mode="local", asked=10, fetched=10, share=share, hours=hours)
        made.request_seconds = [seconds]
        return made

    # One gives 0.1 h in 1 s, the other 0.4 h in 1 s; three of four samples are of the first.
    leaves = (leaf("a", 0.75, 1.0, 0.1), leaf("b", 0.25, 1.0, 0.4))
    found = Fetched(leaves=leaves, hours_per_hour=3600.0)
    assert found.hours_per_second == pytest.approx(0.75 * 0.1 + 0.25 * 0.4)
    # 3,600 hours an hour are 1 hour a second, and a worker gives 0.175.
    assert found.workers == 6
    assert Fetched(leaves=leaves, hours_per_hour=None).workers is None
    assert Fetched(leaves=leaves, hours_per_hour=1.0).workers == 1
    assert Fetched(leaves=(), hours_per_hour=1.0).workers is None


def test_bad_audio_is_counted_and_named(shards, subject_of, look):
    config, tars = shards
    broken = Path(tars[2])
    content = broken.read_bytes()
    at = content.index(b"RIFF")
    broken.write_bytes(content[:at] + b"XXXX" + content[at + 4 :])
    [one] = fetched(subject_of(config), 1000).leaves
    assert (one.fetched, one.bad_audio, one.failed) == (39, 1, 0)
    assert one.hours == pytest.approx((sum(DURATIONS) - DURATIONS[2]) / 3600)
    assert one.failures[0].startswith("bad audio, ")
    assert str(broken) in one.failures[0]
    request = {"fetch": FetchRequest(samples=1000)}
    [seen] = look("fetch-audio", config, facts=request)
    assert "of 1 of 40 samples" in seen.saw
    assert seen.severity is None
    assert seen.change[1:] == ("+ fault_tolerant_audio_loading: true",)
    tolerant = {**config, "fault_tolerant_audio_loading": True}
    [seen] = look("fetch-audio", tolerant, facts=request)
    assert (seen.severity, seen.change) == ("warning", ())
    assert look("fetch-data", config, facts=request) == []


def test_what_cannot_be_made_of_a_row_is_counted_and_the_rest_comes(
    shards, subject_of, look, monkeypatch
):
    config, _ = shards
    real = Nemo.example

    def example(self, leaf, place, row, parts):
        if b'"utt 7"' in row:
            raise KeyError("utt 7")
        return real(self, leaf, place, row, parts)

    subject = subject_of(config)
    fetched(subject, 1)
    monkeypatch.setattr(Nemo, "example", example)
    [one] = fetched(subject, 1000).leaves
    assert (one.fetched, one.bad_data, one.bad_audio, one.failed) == (39, 1, 0, 0)
    assert "KeyError: 'utt 7'" in one.failures[0]
    [seen] = look(
        "fetch-data", config, facts={"fetched": Fetched(leaves=(one,), hours_per_hour=None)}
    )
    assert "1 of 40 samples" in seen.saw


def test_a_store_that_fails_is_asked_once_and_the_rest_is_not_tried(
    shards, subject_of, look, monkeypatch
):
    config, tars = shards
    subject = subject_of(config)
    fetched(subject, 1)
    real, asked = local.read_ranges, []

    def read_ranges(path, *arguments):
        if path in tars:
            asked.append(path)
            raise StorageError("the store does not answer", where=path)
        return real(path, *arguments)

    monkeypatch.setattr(local, "read_ranges", read_ranges)
    [one] = fetched(subject, 20).leaves
    assert (one.asked, one.fetched, one.failed, one.not_tried) == (20, 0, 1, 19)
    assert one.to_json()["p50_seconds"] is None
    assert len(asked) == 1
    found = Fetched(leaves=(one,), hours_per_hour=5.0)
    assert found.workers is None
    [seen] = look("fetch-storage", config, facts={"fetched": found})
    assert "1 of 20 samples" in seen.saw
    assert "19 were not tried: The store does not answer" in seen.saw


def test_a_leaf_that_cannot_be_opened_does_not_hide_the_others(shards, subject_of):
    config, _ = shards
    lost = {"type": "nemo", "manifest_filepath": "nowhere.json", "name": "lost"}
    config = {**config, "input_cfg": [lost, *config["input_cfg"]]}
    found = {one.leaf: one for one in fetched(subject_of(config), 5).leaves}
    assert found["shards"].fetched == 5
    assert found["lost"].failed == 1
    assert "nowhere.json" in found["lost"].failures[0]


@pytest.mark.parametrize(
    ("locality", "mode"), [(None, "shards"), ("rows", "ranges"), ("shards", "shards")]
)
def test_objects_are_fetched_as_passes_go_through_them(shards, subject_of, locality, mode):
    config, tars = shards
    [entry] = config["input_cfg"]
    objects = {f"s3://bucket{path}": Path(path).read_bytes() for path in tars}
    entry["tarred_audio_filepaths"] = f"s3://bucket{entry['tarred_audio_filepaths']}"
    store = MemoryStore(objects)
    with plugged_in(store):
        subject = subject_of({**config, "locality": locality})
        fetched(subject, 1)
        store.streamed.clear()
        store.asked.clear()
        [one] = fetched(subject, 12).leaves
    assert (one.mode, one.asked, one.fetched) == (mode, 12, 12)
    whole = sum(map(len, objects.values()))
    if mode == "shards":
        # From four places, each of another shard here; the first was there already.
        assert one.first_seconds > 0
        assert 3 <= len(set(store.streamed)) + len({uri for uri, _, _ in store.asked}) <= 4
    else:
        assert not store.streamed
        assert 0 < store.num_bytes < whole / 2
        assert {uri for uri, _, _ in store.asked} == set(objects)


def test_compressed_archives_are_fetched_through_the_cache(shards, subject_of, look):
    config, tars = shards
    [entry] = config["input_cfg"]
    for path in tars:
        Path(f"{path}.gz").write_bytes(gzip.compress(Path(path).read_bytes()))
        Path(path).unlink()
    entry["tarred_audio_filepaths"] += ".gz"
    entry["indexed"] = True
    seen = look("index-missing", config)
    assert any("can have no .idx" in one.saw for one in seen)
    entry["indexed"] = False
    [one] = fetched(subject_of(config), 12).leaves
    assert (one.mode, one.asked, one.fetched, one.failures) == ("shards", 12, 12, [])
    assert one.first_seconds > 0


def test_texts_and_options_of_tokens_are_fetched_without_a_tokenizer(place, subject_of):
    (place / "a.txt").write_text("one\ntwo\nthree\n")
    config = {
        "use_multimodal_sampling": True,
        "batch_tokens": 100,
        "input_cfg": [{"type": "txt", "paths": "a.txt", "language": "en"}],
    }
    [one] = fetched(subject_of(config), 2).leaves
    assert (one.fetched, one.hours) == (2, 0)


def test_a_dataset_of_the_users_is_called_with_what_training_gives_it(shards, subject_of):
    config, _ = shards

    class Counts:
        def __init__(self):
            self.cuts = 0

        def __getitem__(self, cuts):
            self.cuts += len(cuts)
            return {}

    dataset = Counts()
    [one] = fetched(subject_of(config), 8, dataset=dataset).leaves
    # One sample comes first, which no rate counts.
    assert (one.fetched, dataset.cuts) == (8, 9)


def test_a_dataset_that_fails_is_named(shards, subject_of):
    config, _ = shards

    class Fails:
        def __getitem__(self, cuts):
            raise ZeroDivisionError("in the user's code")

    [one] = fetched(subject_of(config), 4, dataset=Fails()).leaves
    assert (one.fetched, one.bad_data) == (0, 4)
    assert one.failures[0] == "ZeroDivisionError: in the user's code"


@pytest.mark.parametrize("rows", [0, 1, 7, 1000])
@pytest.mark.parametrize("count", [1, 5, 64])
def test_picked_rows_are_distinct_and_spread(rows, count):
    picked = spread(rows, count, 3)
    assert len(picked) == min(rows, count)
    assert len(set(picked.tolist())) == len(picked)
    if len(picked):
        borders = np.arange(len(picked) + 1) * rows // len(picked)
        stretch = np.searchsorted(borders, np.sort(picked), "right") - 1
        assert stretch.tolist() == list(range(len(picked)))
    runs = in_runs(rows, count, 4, 3)
    together = [row for run in runs for row in run.tolist()]
    assert len(set(together)) == len(together) <= count
    assert not rows or len(together) >= min(rows, count, 4)
    assert all(0 <= row < rows for row in together)
    for run in runs:
        assert set(np.diff(run).tolist()) <= {1}


def test_micro_batches_of_picked_rows():
    batches = list(in_batches(2, np.arange(7), 3, by_shard=True))
    assert [len(batch.row) for batch in batches] == [3, 3, 1]
    assert batches[1].leaf.tolist() == [2, 2, 2]
    assert batches[0].by_shard.all()
    assert len({batch.key for batch in batches}) == 3
    assert next(in_batches(0, np.arange(2), 2)).by_shard is None


def test_an_empty_leaf_has_nothing_to_fetch(place, subject_of):
    write_tar(place / "audio_0.tar", [])
    (place / "manifest_0.json").write_text("")
    entry = {"type": "nemo_tarred", "manifest_filepath": "manifest_0.json",
             "tarred_audio_filepaths": "audio_0.tar"}  # fmt: skip
    [one] = fetched(subject_of({"batch_size": 4, "input_cfg": [entry]}), 3).leaves
    assert (one.asked, one.fetched, one.failed) in [(0, 0, 0), (1, 0, 0)]
