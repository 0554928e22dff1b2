"""What `nvidia-smi` tells."""

from __future__ import annotations

import pytest

from playhead.fit.probing import neighbours as module
from playhead.fit.probing.messages import Neighbour
from playhead.fit.probing.neighbours import driver_version, neighbours, takes_one_process


@pytest.fixture
def tool(tmp_path, monkeypatch):
    """A script in its place."""
    path = tmp_path / "nvidia-smi"

    def write(script):
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return write


def test_processes_of_one_card_are_told_with_what_they_hold(tool):
    tool(
        "cat <<END\n"
        "GPU-1, 101, /usr/bin/python3, 20480\n"
        "GPU-2, 102, /usr/bin/other, 10\n"
        "GPU-1, 103, a name, with a comma, [N/A]\n"
        "END"
    )
    assert neighbours("GPU-1") == (
        Neighbour(pid=101, name="/usr/bin/python3", held=20 << 30),
        Neighbour(pid=103, name="a name, with a comma", held=None),
    )
    assert len(neighbours("")) == 3


def test_the_driver_is_asked_with_a_question_that_the_tool_knows(tool):
    tool('[ "$1 $2" = "--query-gpu=driver_version --format=csv,noheader,nounits" ] && echo 570.86')
    assert driver_version() == "570.86"


def test_a_card_that_takes_one_process_is_known_and_others_beside_it(tool):
    tool(
        '[ "$1" = "--query-gpu=uuid,compute_mode" ] || exit 1\n'
        "cat <<END\n"
        "GPU-1, Default\n"
        "GPU-2, Exclusive_Process\n"
        "END"
    )
    assert takes_one_process("GPU-2")
    assert not takes_one_process("GPU-1")
    assert not takes_one_process("")


@pytest.mark.parametrize(
    "script",
    [
        "exit 9",
        "echo 'NVIDIA-SMI has failed because it could not communicate with the driver'; exit 9",
        "echo 'No running processes found'",
        "exec sleep 100",
        "printf '\\377\\376'",
    ],
)
def test_a_tool_that_is_of_no_use_tells_of_nobody(tool, monkeypatch, script):
    monkeypatch.setattr(module, "_SECONDS", 0.3)
    tool(script)
    assert neighbours("GPU-1") == ()


def test_without_the_tool_nobody_is_known(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert neighbours("GPU-1") == ()
    assert driver_version() is None
