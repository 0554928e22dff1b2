"""Messages say what, where and what to do, and survive the way out of a worker process."""

from __future__ import annotations

import pickle

import pytest

from playhead import errors

TREE = errors.__doc__ or ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "It broke"),
        ({"where": "a.json:3"}, "It broke (a.json:3)."),
        ({"fix": "Mend it"}, "It broke. Mend it."),
        ({"where": "a.json:3", "fix": "Mend it"}, "It broke (a.json:3). Mend it."),
    ],
)
def test_what_where_and_what_to_do(arguments, message):
    assert str(errors.PlayheadError("it broke", **arguments)) == message


@pytest.mark.parametrize("name", errors.__all__)
def test_a_message_passes_unchanged_between_processes(name):
    error = getattr(errors, name)("it broke", where="a.json:3", fix="Mend it")
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is type(error)
    assert str(back) == str(error)


@pytest.mark.parametrize("name", errors.__all__)
def test_the_tree_at_the_top_of_the_file_shows_every_error_once(name):
    kind = getattr(errors, name)
    lines = [line for line in TREE.splitlines() if f" {name} " in f" {line.strip('│├└─ ')} "]
    assert len(lines) == 1
    for base in kind.__bases__:
        if base.__module__ == "builtins" and base is not Exception:
            assert f"({base.__name__})" in lines[0]


def test_exit_codes():
    assert errors.ConfigError.exit_code == errors.SourceNotFoundError.exit_code == 2
    assert errors.BuildError.exit_code == errors.DataError.exit_code == 1
