"""The house: imports go one way, modules stay small, and starting is quick."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import playhead

SOURCE = Path(playhead.__file__).parent
ROOT = SOURCE.parents[1]
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages([str(SOURCE)], "playhead.")
    if module.name != "playhead.__main__"
)
# Nothing of this may be imported before somebody asks for what needs it.
HEAVY = ("torch", "lhotse", "pyarrow", "omegaconf", "soundfile", "numpy", "matplotlib")


def run(*arguments, timeout=120):
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        cwd=ROOT,
    )


def test_imports_go_one_way():
    pytest.importorskip("importlinter", reason="import-linter comes with the lint extra")
    if not (ROOT / "pyproject.toml").exists():
        pytest.skip("the contracts are in the repository")
    linted = run("-c", "from importlinter.cli import lint_imports_command; lint_imports_command()")
    assert linted.returncode == 0, linted.stdout + linted.stderr


def test_a_module_has_about_400_lines_at_most():
    long = {
        str(path.relative_to(SOURCE)): lines
        for path in SOURCE.rglob("*.py")
        if (lines := len(path.read_text().splitlines())) > 400
    }
    assert not long


def test_nothing_is_called_utils():
    assert not [path for path in SOURCE.rglob("*.py") if "util" in path.name]


@pytest.mark.parametrize(
    "code",
    ["import playhead", "import playhead.cli as cli, sys; sys.argv[1:] = ['--help']; cli.main()"],
)
def test_starting_imports_nothing_heavy(code):
    started = run(
        "-c",
        "import sys, atexit\n"
        f"atexit.register(lambda: print('LOADED', *[m for m in {HEAVY} if m in sys.modules]))\n"
        f"{code}",
    )
    assert started.returncode == 0, started.stderr
    assert started.stdout.rstrip().endswith("LOADED"), started.stdout


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_docstrings_run(name):
    module = importlib.import_module(name)
    failed, _ = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert failed == 0


@pytest.mark.parametrize("name", MODULES)
def test_modules_say_what_they_are_and_what_they_export(name):
    module = importlib.import_module(name)
    assert module.__doc__
    if hasattr(module, "__path__") and not hasattr(module, "__all__"):
        return
    for exported in module.__all__:
        assert hasattr(module, exported)
