"""Whoever runs Playhead out of a folder is told so, and nothing fails for it."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from playhead import version as module


def test_the_version_is_that_of_the_package():
    assert module.own_version() == version("playhead")


def test_a_bare_folder_has_no_version(monkeypatch):
    def missing(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(module, "version", missing)
    assert module.own_version() == "uninstalled"
