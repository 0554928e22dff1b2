"""Commands of the documentation: those that read data run, of all others the options exist."""

from __future__ import annotations

import shlex
import shutil

import pytest

from support.page_commands import check_command
from support.pages import PAGES, blocks_of, commands_of

BLOCKS = [block for page in PAGES for block in blocks_of(page, "bash", "console")]


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.place)
def test_the_commands_of_a_page_can_be_given(block, page_project, tmp_path, monkeypatch):
    folder = shutil.copytree(page_project, tmp_path / "project")
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)
    commands = commands_of(block)
    assert commands, f"{block.place}: no command; in a console each begins with `$ `"
    for command in commands:
        print(command.place, *command.words)
        check_command(command.words, folder)


@pytest.mark.parametrize(
    "words",
    [
        "playhead index train.yaml --wrokers 2",
        "playhead chekc train.yaml",
        "playhead oomptimizer --model my_models:MyModel --bins bins.yaml",
        "playhead index missing.yaml",
        "python scripts/dataloading/build_index.py blend.yaml",
        "python scripts/dataloading/build_indexes.py --no-such blend.yaml",
        "python examples/train.py blend.yaml --stesp 3",
        "torchrun --nproc-per-nodes 2 examples/train.py blend.yaml",
        "torchrun --nproc-per-node 2 examples/trian.py blend.yaml",
        "accelerate launch --no-such examples/train.py blend.yaml",
        "make tests",
        "pip install 'playhead[s4]'",
        "nobody knows this",
    ],
)
def test_a_command_that_is_wrong_is_noticed(words, page_project, tmp_path):
    folder = shutil.copytree(page_project, tmp_path / "project")
    with pytest.raises((AssertionError, SystemExit)):
        check_command(shlex.split(words), folder)
