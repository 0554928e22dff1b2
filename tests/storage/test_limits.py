"""Limits of stores come from the environment, and only good numbers do."""

from __future__ import annotations

from dataclasses import fields

import pytest

from playhead.errors import ConfigError
from playhead.storage.limits import Limits, limits


@pytest.fixture(autouse=True)
def _fresh(monkeypatch):
    # Commands that other tests ran in this process have set some.
    for field in fields(Limits):
        monkeypatch.delenv(f"PLAYHEAD_STORAGE_{field.name.upper()}", raising=False)
    limits.cache_clear()
    yield
    limits.cache_clear()


def test_without_variables_the_defaults_hold():
    assert limits() == Limits()


def test_a_variable_changes_one_limit(monkeypatch):
    monkeypatch.setenv("PLAYHEAD_STORAGE_DEADLINE_SECONDS", "7.5")
    monkeypatch.setenv("PLAYHEAD_STORAGE_TRIES", "2")
    assert limits() == Limits(deadline_seconds=7.5, tries=2)


@pytest.mark.parametrize("text", ["", "0", "-1", "nan", "inf", "soon", "1.5"])
def test_what_is_no_positive_number_is_refused(monkeypatch, text):
    monkeypatch.setenv("PLAYHEAD_STORAGE_CONCURRENCY", text)
    with pytest.raises(ConfigError, match="PLAYHEAD_STORAGE_CONCURRENCY"):
        limits()


@pytest.mark.parametrize("field", fields(Limits))
def test_what_no_clock_can_count_to_is_refused(monkeypatch, field):
    name = f"PLAYHEAD_STORAGE_{field.name.upper()}"
    monkeypatch.setenv(name, "3000000")
    with pytest.raises(ConfigError, match=name):
        limits()
