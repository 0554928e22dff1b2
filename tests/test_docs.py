"""What the documentation says is true: its code runs, and its site builds."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch

import playhead
from playhead.config import STATUS
from support.corpus import nemo_corpus
from support.pages import PAGES, ROOT, blocks_of

LANGUAGES = {"python", "bash", "console", "yaml", "json", "jsonl", "text"}
NOT_RUN = {
    "it needs NeMo": "an environment of its own; tests/integrations/nemo has one",
    "it needs a GPU": "CUDA, or memory that only a GPU has",
    "it needs several machines": "a cluster",
    "it needs several processes": "a part of an example that tests/test_examples.py starts",
    "it belongs to another program": "a config that Playhead does not read",
}
"""The only reasons why a block of a page may not be run, and what they mean."""
WARNS = {"oomptimizer.md"}
"""Pages that speak of the warnings that their code makes."""
GIVEN = {"training.md"}
"""Pages whose code is about a model and an optimizer that people have."""


class Model(torch.nn.Module):
    """What pages call a model: audio, its lengths and the texts give a loss."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(()))

    def forward(self, audio, lengths, texts):
        return (self.weight - audio.mean()) ** 2


def names_of(page):
    names = {"__name__": "__docs__"}
    if page.name in GIVEN:
        model = Model()
        names |= {"model": model, "optimizer": torch.optim.SGD(model.parameters(), lr=0.1)}
    return names


@pytest.mark.parametrize("page", PAGES[1:], ids=lambda page: page.name)
def test_the_code_of_a_page_runs_from_top_to_bottom(page, page_project, tmp_path, monkeypatch):
    monkeypatch.chdir(shutil.copytree(page_project, tmp_path / "project"))
    monkeypatch.setenv("PLAYHEAD_CACHE", str(tmp_path / "cache"))
    names = names_of(page)
    for block in blocks_of(page, "python"):
        if block.reason:
            continue
        # Padding makes the line numbers of a failure those of the page.
        source = "\n" * (block.line - 1) + block.code
        with warnings.catch_warnings():
            if page.name in WARNS:
                warnings.simplefilter("default")
            # Of Lhotse's own code, about NumPy.
            warnings.filterwarnings("ignore", category=DeprecationWarning, module="lhotse")
            # And of Lightning's, about torch.
            warnings.filterwarnings("ignore", ".*LeafSpec", category=FutureWarning)
            exec(compile(source, str(page), "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_names_its_language_and_one_that_is_not_run_a_reason(page):
    for block in blocks_of(page):
        assert block.language in LANGUAGES, f"{block.place}: ```{block.language}"
        assert block.reason is None or block.reason in NOT_RUN, f"{block.place}: {block.reason}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_that_is_not_run_uses_names_and_options_that_there_are(page):
    for block in blocks_of(page, "python"):
        for node in ast.walk(ast.parse(block.code, block.place)) if block.reason else ():
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("playhead"):
                module = importlib.import_module(str(node.module))
                assert all(hasattr(module, name.name) for name in node.names), block.place
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "playhead.dataloader":
                known = {*inspect.signature(playhead.dataloader).parameters, *STATUS}
                unknown = {keyword.arg for keyword in node.keywords} - known
                assert not unknown, f"{block.place}: {unknown}"


def test_the_readme_trains_and_goes_on_from_its_own_checkpoint(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PLAYHEAD_CACHE", str(tmp_path / "cache"))
    manifest = nemo_corpus(tmp_path, [0.2 + 0.01 * n for n in range(80)])
    entries = [{"type": "nemo", "manifest_filepath": str(manifest)}]
    # YAML reads JSON. What the README takes as given is this blend, a model and its optimizer.
    Path("blend.yaml").write_text(
        json.dumps({"input_cfg": entries, "sample_rate": 16000, "force_finite": True, "seed": 0})
    )
    weight = torch.nn.Parameter(torch.zeros(()))
    steps = []

    class Counted(torch.optim.SGD):
        def step(self, *arguments):
            steps.append(weight.grad is not None)
            return super().step(*arguments)

    seen = []

    def model(audio, lengths, texts):
        seen.extend(texts)
        return (weight - audio.mean()) ** 2

    [block] = blocks_of(ROOT / "README.md", "python")
    for run in (1, 2):
        given = {"model": model, "optimizer": Counted([weight], lr=0.1)}
        exec(compile(block.code, "README.md", "exec"), given)
        # The second run has loaded the first one's end of a pass, and makes the next pass.
        assert torch.load("checkpoint.pt")["loader"]["step"] == run
        assert len(steps) == run
        assert all(steps)
    assert sorted(seen) == sorted(2 * [f"utt {n}" for n in range(80)])


def test_there_is_code_to_run():
    assert sum(len(blocks_of(page, "python")) for page in PAGES) >= 30


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_speak_of_the_project_alone(page):
    assert not re.search(r"(^|[\s`(])/(work|root|home)/", page.read_text())


def test_links_of_the_readme_lead_to_files():
    links = re.findall(r"\]\((?!https?:)([^)#]+)", (ROOT / "README.md").read_text())
    assert links
    assert not [link for link in links if not (ROOT / link).exists()]


def test_the_site_builds(tmp_path):
    pytest.importorskip("mkdocs", reason="mkdocs comes with the docs extra")
    pytest.importorskip("mkdocstrings", reason="mkdocstrings comes with the docs extra")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    assert (tmp_path / "index.html").exists()
