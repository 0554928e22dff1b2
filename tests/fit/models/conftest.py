"""Modules of people's own code, written for a test."""

from __future__ import annotations

import itertools
import sys
import textwrap

import pytest

_numbers = itertools.count()


@pytest.fixture
def own_code(tmp_path, monkeypatch):
    """Write a module in a folder that is the current one, and return its name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)

    def write(text: str) -> str:
        name = f"own_code_{next(_numbers)}"
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
        return name

    yield write
    for name in set(sys.modules) - before:
        if name.startswith("own_code_"):
            del sys.modules[name]
