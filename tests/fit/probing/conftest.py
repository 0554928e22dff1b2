"""Probers of small models on a CPU with little memory."""

from __future__ import annotations

from dataclasses import replace

import pytest

from playhead.fit.probing.process_prober import ProcessProber
from playhead.fit.training import Training
from support.small_models import FOLDER, OPTIONS, small


@pytest.fixture(scope="module")
def module_folder(tmp_path_factory):
    """The folder in which `Told` looks; processes that are started find it."""
    folder = tmp_path_factory.mktemp("told")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(FOLDER, str(folder))
        yield folder


@pytest.fixture(scope="module")
def module_prober(module_folder):
    """A model that does what it is told, for all tests of a module: starting it takes seconds."""
    training = Training(dtype="float32")
    log = module_folder / "probes.log"
    with ProcessProber(small("Told"), [10, 100], training, OPTIONS, log=log) as prober:
        yield prober


@pytest.fixture
def folder(module_folder):
    """That folder, empty but for the log."""
    for path in module_folder.iterdir():
        if path.name != "probes.log":
            path.unlink()
    return module_folder


@pytest.fixture
def prober(module_prober, folder, monkeypatch):
    """That prober, as if it were new: nothing is told, nothing has died."""
    monkeypatch.setattr(module_prober, "_deaths", 0)
    monkeypatch.setattr(module_prober, "_has_passed", True)
    monkeypatch.setattr(module_prober, "_passes_with_one", set())
    return module_prober


@pytest.fixture
def tell(folder):
    """Tell the model what to do with batches of so many samples or more."""

    def tell(act, size=1):
        (folder / "act").write_text(f"{act} {size}")

    return tell


@pytest.fixture
def impatient(prober, monkeypatch):
    """That prober, with steps that may take no more than a moment."""
    monkeypatch.setattr(prober, "_options", replace(OPTIONS, seconds=8.0))
    return prober
