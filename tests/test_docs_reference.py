"""The reference names everything that is public."""

from __future__ import annotations

import importlib
import pkgutil
import re

import pytest

import playhead
import playhead.integrations
from support.pages import ROOT

LISTED = re.findall(r"^::: (\S+)$", (ROOT / "docs/reference.md").read_text(), re.MULTILINE)
# Of each framework there is one module that people import; those below it are its own.
FRAMEWORKS = [name for _, name, _ in pkgutil.iter_modules(playhead.integrations.__path__)]


def found(name):
    """The module of that name, or what a module has of it."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        module, _, attribute = name.rpartition(".")
        return getattr(importlib.import_module(module), attribute)


@pytest.mark.parametrize("name", LISTED)
def test_what_the_reference_lists_is_there_and_documented(name):
    assert found(name).__doc__


@pytest.mark.parametrize("name", playhead.__all__)
def test_the_reference_has_every_public_name(name):
    public = getattr(playhead, name)
    assert any(
        public is listed or public in vars(listed).values()
        for listed in map(found, LISTED)
        if listed is public or hasattr(listed, "__path__") or hasattr(listed, "__file__")
    )


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_the_reference_has_every_framework(name):
    module = f"playhead.integrations.{name}"
    public = importlib.import_module(module).__all__
    assert not public or any(f"{listed}.".startswith(f"{module}.") for listed in LISTED)
