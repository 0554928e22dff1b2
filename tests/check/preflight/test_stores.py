"""The pre-flight on real servers of objects, and on the official client of AIStore."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from playhead.check.preflight.fetching import FetchRequest, fetch_some
from playhead.paths import expand
from support import servers
from support.corpus import tarred_corpus

pytestmark = pytest.mark.e2e

DURATIONS = [0.2 + 0.01 * n for n in range(24)]


@pytest.fixture
def speech(place):
    """Local manifests, local tars, and the entry that names them; `at` puts the tars elsewhere."""
    manifests, tars = tarred_corpus(place / "speech", DURATIONS, 3)

    def at(folder):
        entry = {
            "type": "nemo_tarred",
            "manifest_filepath": manifests,
            "tarred_audio_filepaths": f"{folder}/{Path(tars).name}",
            "name": "speech",
        }
        return {"batch_size": 4, "num_workers": 1, "indexes_root": "indexes", "input_cfg": [entry]}

    return at, expand(tars)


@pytest.fixture
def on_ais(speech, ais, request):
    """A config of tars in a bucket of AIStore."""
    pytest.importorskip("aistore")
    at, tars = speech
    bucket = re.sub(r"\W", "", request.node.name)[-40:].lower()
    for path in tars:
        ais.put(bucket, Path(path).name, Path(path).read_bytes())
    return at(f"ais://{bucket}"), ais


def fetched(subject, samples=12):
    [one] = fetch_some(subject, FetchRequest(samples=samples)).leaves
    return one


@pytest.mark.parametrize(
    ("mode", "switches"),
    [
        ("ais-ranges", []),
        ("ais-batch", ["USE_AIS_GET_BATCH"]),
        ("ais-individual", ["USE_AIS_GET_BATCH", "USE_AIS_INDIVIDUAL_GETS"]),
    ],
)
def test_samples_come_in_the_mode_that_training_will_use(
    on_ais, subject_of, monkeypatch, mode, switches
):
    config, ais = on_ais
    for name in switches:
        monkeypatch.setenv(name, "true")
    subject = subject_of(config)
    fetched(subject, 1)
    ais.heal()
    one = fetched(subject)
    assert (one.mode, one.asked, one.fetched, one.failures) == (mode, 12, 12, [])
    assert one.num_bytes > 12 * 0.2 * 16000 * 2
    counts = ais.counts()
    asked_in_batches = any("batch" in what for what in counts)
    assert asked_in_batches == (mode == "ais-batch"), counts


def test_an_object_that_is_gone_is_named(on_ais, subject_of, look, monkeypatch):
    config, ais = on_ais
    monkeypatch.setenv("USE_AIS_GET_BATCH", "true")
    subject = subject_of(config)
    fetched(subject, 1)
    folder = config["input_cfg"][0]["tarred_audio_filepaths"].rpartition("/")[0]
    ais.forget(folder.removeprefix("ais://"), "audio_1.tar")
    one = fetched(subject, 24)
    assert (one.asked, one.fetched, one.failed, one.not_tried) == (24, 0, 1, 23)
    assert "audio_1.tar" in one.failures[-1]
    [seen] = look("source-missing", config)
    assert f"{folder}/audio_1.tar" in seen.saw


def test_a_store_that_is_down_is_a_failure_within_the_deadline(
    on_ais, subject_of, look, monkeypatch
):
    config, ais = on_ais
    monkeypatch.setenv("USE_AIS_GET_BATCH", "true")
    subject = subject_of(config)
    fetched(subject, 1)
    # It can be looked at still, and gives nothing.
    ais.fault(on="batch", what="status", status=503)
    ais.fault(on="get", what="status", status=503)
    begin = time.monotonic()
    one = fetched(subject)
    assert (one.fetched, one.failed, one.not_tried) == (0, 1, 11)
    assert time.monotonic() - begin < 60
    [seen] = look("fetch-storage", config, facts={"fetch": FetchRequest(samples=4)})
    assert "did not come by batch requests to AIStore" in seen.saw
    assert "USE_AIS_INDIVIDUAL_GETS=true" in seen.advice


@pytest.fixture
def on_s3(speech, s3):
    """A config of tars in a bucket."""
    pytest.importorskip("obstore")
    at, tars = speech
    for path in tars:
        s3.put("check-preflight", Path(path).name, Path(path).read_bytes())
    return at("s3://check-preflight")


@pytest.mark.parametrize(("locality", "mode"), [(None, "shards"), ("rows", "ranges")])
def test_samples_of_s3(on_s3, subject_of, look, locality, mode):
    config = {**on_s3, "locality": locality}
    one = fetched(subject_of(config))
    assert (one.mode, one.fetched, one.failures) == (mode, 12, [])
    for id_ in ("server-ranges", "source-missing", "storage-extra", "storage-scheme"):
        assert look(id_, config) == []


def test_a_server_that_ignores_ranges_is_named_before_it_is_used(
    speech, place, subject_of, look, monkeypatch
):
    pytest.importorskip("obstore")
    at, tars = speech
    root = place / "root"
    (root / "bucket").mkdir(parents=True)
    for path in tars:
        (root / "bucket" / Path(path).name).write_bytes(Path(path).read_bytes())
    with servers.rclone_s3(root, logs=place / "logs") as server:
        servers.use(monkeypatch, server.environment())
        config = at("s3://bucket")
        [seen] = look("server-ranges", config)
        assert "the server bucket answers with whole files" in seen.saw
        with servers.caddy(root, logs=place / "web") as web:
            config = at(f"{web.url}/bucket")
            assert look("server-ranges", config) == []
            assert fetched(subject_of({**config, "locality": "rows"})).fetched == 12
