"""A small corpus, and one rule looked at by itself."""

from __future__ import annotations

import os

import pytest
import yaml

from playhead.check.preflight.rule import rules
from playhead.check.preflight.subject import open_subject
from support.corpus import nemo_corpus, tarred_corpus

SWITCHES = (
    "AIS_ENDPOINT",
    "LHOTSE_S3_LOCAL_MIRROR_ROOTS",
    "USE_AIS_GET_BATCH",
    "USE_AIS_INDIVIDUAL_GETS",
    "WORLD_SIZE",
)


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """`plain`, a manifest of files; `manifests` and `tars`, patterns of three shards."""
    folder = tmp_path_factory.mktemp("corpus")
    plain = nemo_corpus(folder / "plain", [0.2 + 0.01 * n for n in range(6)])
    manifests, tars = tarred_corpus(folder / "tars", [0.2 + 0.01 * n for n in range(9)], 3)
    return {"folder": folder, "plain": str(plain), "manifests": manifests, "tars": tars}


@pytest.fixture
def place(tmp_path, monkeypatch):
    """An empty working folder, with no switches set and a cache of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PLAYHEAD_CACHE", str(tmp_path / "cache"))
    for name in SWITCHES:
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def subject_of(place):
    """Opens a config that is given as containers."""

    def subject_of(config, **options):
        path = place / "config.yaml"
        path.write_text(yaml.safe_dump(config, sort_keys=False))
        given = {"section": None, "data_blend_dir": None, "tokenizer": None, **options}
        return open_subject("config.yaml", environment=os.environ, **given)

    return subject_of


@pytest.fixture
def look(subject_of, monkeypatch):
    """What one rule sees of a config."""

    def look(id_, config, environment=(), **options):
        for name, value in dict(environment).items():
            monkeypatch.setenv(name, value)
        facts = options.pop("facts", {})
        subject = subject_of(config, **options)
        subject.facts.update(facts)
        [one] = [one for one in rules() if one.id == id_]
        return list(one.look(subject))

    return look
