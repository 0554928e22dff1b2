"""The benchmark's table and its arithmetic; no clock decides anything here."""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture
def bench(monkeypatch):
    """Imports a module of the benchmark by its name."""
    monkeypatch.syspath_prepend(str(BENCH))
    return importlib.import_module


def figure_of(bench, **fields):
    return bench("figures").Figure(**{"bench": "b", "key": "k", "what": "w", **fields})


def test_every_figure_has_its_script_and_a_key_of_its_own(bench):
    figures = bench("figures").FIGURES
    names = [(figure.bench, figure.key) for figure in figures]
    assert len(set(names)) == len(names)
    for figure in figures:
        assert (BENCH / "ours" / f"{figure.bench}.py").is_file()
        if figure.peer is not None:
            script = figure.peer.partition(".")[0] if "." in figure.peer else figure.bench
            assert (BENCH / "peer" / f"{script}.py").is_file()


@pytest.mark.parametrize(("better", "ratio"), [("more", 2.0), ("less", 0.5)])
def test_ratios_say_how_many_times_better(bench, better, ratio):
    figure = figure_of(bench, better=better)
    assert bench("report").ratio_of(figure, 6.0, 3.0) == ratio
    assert bench("report").ratio_of(figure, 6.0, None) is None


def test_budgets(bench):
    is_met = bench("report").is_met
    assert is_met(figure_of(bench, bound=5.0), 5.0, None) is True
    assert is_met(figure_of(bench, bound=5.0, better="less"), 5.1, None) is False
    assert is_met(figure_of(bench, ratio=1.5), 1.0, 1.4) is False
    assert is_met(figure_of(bench, ratio=1.5), 1.0, None) is None
    assert is_met(figure_of(bench), 1.0, 9.0) is None


def test_the_table_says_what_failed(bench):
    figures = [
        figure_of(bench, peer="p", ratio=1.5, unit="h/s"),
        figure_of(bench, key="gone", peer="other.p", bound=2.0),
    ]
    medians = {"ours": {"b.k": 3.0}, "peer": {"b.p": 1.0, "other.p": 7.0}}
    head, _, first, second = bench("report").table_of(figures, medians).splitlines()
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in (head, first, second)]
    assert cells == [
        ["what", "ours", "Lhotse 2.0.0a7", "ratio", "budget", "met?"],
        ["w", "3 h/s", "1 h/s", "3x", ">= 1.5x", "yes"],
        ["w", "failed", "7", "", ">= 2", "no"],
    ]


def test_evenness_of_two_ranks(bench):
    figures = bench("quality").batch_quality(
        count=np.array([[2, 4]]),
        longest=np.array([[10.0, 5.0]]),
        total=np.array([[15.0, 20.0]]),
        limit=26.0,
        quadratic=30.0,
    )
    # Costs: 2 (10 + 100 / 30) = 26.67, above the limit of 26, and 4 (5 + 25 / 30) = 23.33.
    assert figures["padding_pct"] == pytest.approx(100 * 5 / 40)
    assert figures["over_limit_pct"] == 50
    assert figures["worst_over_limit_pct"] == pytest.approx(100 * (80 / 3 / 26 - 1))
    assert figures["imbalance_own"] == pytest.approx(80 / 3 / 25)
    assert figures["imbalance_linear"] == 1


def test_a_measurement_prints_its_figures(tmp_path):
    ran = subprocess.run(
        [sys.executable, str(BENCH / "ours/startup.py"), str(tmp_path), "--quick"],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(BENCH), "PATH": "/usr/bin:/bin"},
    )
    assert set(json.loads(ran.stdout.splitlines()[-1])) == {"help_s", "import_s"}


def test_the_benchmark_of_gpus_says_that_it_needs_one():
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    ran = subprocess.run(
        [sys.executable, str(BENCH / "gpu.py")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == "bench-gpu needs a GPU, and torch sees none here\n"


def test_the_table_of_gpus_in_the_docs_is_the_one_that_is_printed(bench):
    options = argparse.Namespace(buckets=30, steps=200)
    printed = bench("gpu")._table({"Whisper-small": {}, "Conformer-CTC": {}}, options)
    page = (BENCH.parent / "docs" / "oomptimizer.md").read_text()
    rows = {line.split("|")[1] for line in page.splitlines() if line.startswith("|")}
    assert rows.issuperset(line.split("|")[1] for line in printed.splitlines())
