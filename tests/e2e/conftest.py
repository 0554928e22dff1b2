"""Corpora and processes that the end-to-end tests share."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

import playhead
from playhead.datasets import Ids
from support.corpus import nemo_corpus, tarred_corpus
from support.jobs import Server
from support.real_speech import made_once, write_digits, write_prompts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


SECONDS = [round(0.05 + (i * 37 % 89) / 200, 3) for i in range(103)]


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder a test session, the same for all of its worker processes."""
    base = tmp_path_factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "real-speech"


@pytest.fixture(scope="session", autouse=True)
def own_cache(shared_folder: Path) -> Iterator[None]:
    """Packs are cached in the session's folder, not in the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLAYHEAD_CACHE", str(shared_folder / "cache"))
        yield


@pytest.fixture(scope="session")
def prompts(shared_folder: Path) -> Path:
    return made_once(shared_folder / "prompts", write_prompts)


@pytest.fixture(scope="session")
def digits(shared_folder: Path) -> Path:
    return made_once(shared_folder / "digits", write_digits)


@pytest.fixture(scope="session")
def server(own_cache: None) -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


@pytest.fixture(scope="session")
def corpus(shared_folder: Path) -> Path:
    def make(folder: Path) -> None:
        nemo_corpus(folder / "plain", SECONDS, rate=8000)
        tarred_corpus(folder / "tarred", SECONDS[:60], shards=3, rate=8000)

    return made_once(shared_folder / "small", make)


@pytest.fixture
def finite(corpus: Path) -> Callable[..., playhead.Loader]:
    """A loader of a finite shuffled pass of 103 samples in steps of two micro-batches."""

    def make(**options: Any) -> playhead.Loader:
        config = {
            "manifest_filepath": str(corpus / "plain/manifest.json"),
            "sample_rate": 8000,
            "force_finite": True,
            "shuffle": True,
            "seed": 5,
            "batch_duration": 1.5,
            "micro_batches_per_step": 2,
            "window_draws": 40,
            "num_workers": 0,
        }
        place = {"rank": options.pop("rank", 0), "world_size": options.pop("world_size", 1)}
        dataset = options.pop("dataset", Ids())
        return playhead.dataloader({**config, **options}, dataset=dataset, **place)

    return make


@pytest.fixture
def endless(corpus: Path) -> Callable[..., playhead.Loader]:
    """A loader of an endless blend of a plain and a tarred leaf."""

    def make(**options: Any) -> playhead.Loader:
        tarred = corpus / "tarred"
        config = {
            "input_cfg": [
                {
                    "type": "nemo",
                    "manifest_filepath": str(corpus / "plain/manifest.json"),
                    "weight": 0.7,
                },
                {
                    "type": "nemo_tarred",
                    "manifest_filepath": str(tarred / "manifest__OP_0..2_CL_.json"),
                    "tarred_audio_filepaths": str(tarred / "audio__OP_0..2_CL_.tar"),
                    "weight": 0.3,
                },
            ],
            "sample_rate": 8000,
            "shuffle": True,
            "seed": 5,
            "batch_duration": 1.5,
            "micro_batches_per_step": 2,
            "window_draws": 60,
            "num_workers": 0,
        }
        place = {"rank": options.pop("rank", 0), "world_size": options.pop("world_size", 1)}
        dataset = options.pop("dataset", Ids())
        return playhead.dataloader({**config, **options}, dataset=dataset, **place)

    return make
