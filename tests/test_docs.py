"""What the documentation says is true: its code runs, and its site builds."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch

from support.corpus import nemo_corpus

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
FENCE = re.compile(r"^```python *(?P<flags>[^\n]*)\n(?P<code>.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page):
    return [
        (match["code"], page.read_text()[: match.start()].count("\n") + 2)
        for match in FENCE.finditer(page.read_text())
        if "notest" not in match["flags"]
    ]


@pytest.mark.parametrize("page", PAGES[1:], ids=lambda page: page.name)
def test_the_code_of_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PLAYHEAD_CACHE", str(tmp_path / "cache"))
    names: dict = {"__name__": "__docs__"}
    for code, line in blocks(page):
        # Padding makes the line numbers of a failure those of the page.
        source = "\n" * (line - 1) + code
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            exec(compile(source, str(page), "exec"), names)


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

    [(code, _)] = blocks(ROOT / "README.md")
    for run in (1, 2):
        given = {"model": model, "optimizer": Counted([weight], lr=0.1)}
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            exec(compile(code, "README.md", "exec"), given)
        # The second run has loaded the first one's end of a pass, and makes the next pass.
        assert torch.load("checkpoint.pt")["loader"]["step"] == run
        assert len(steps) == run
        assert all(steps)
    assert sorted(seen) == sorted(2 * [f"utt {n}" for n in range(80)])


def test_there_is_code_to_run():
    assert sum(len(blocks(page)) for page in PAGES) >= 4


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_speak_of_the_project_alone(page):
    assert not re.search(r"(^|[\s`(])/(work|root|home)/", page.read_text())


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
