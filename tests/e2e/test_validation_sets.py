"""Ranks that evaluate sets of real speech between steps of training, each sample once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from playhead.local_ranks import run_ranks
from support import evaluate_sets
from support.corpus import write_jsonl

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.e2e

NUM_DIGITS, NUM_PROMPTS, NUM_FEW = 101, 40, 3


@pytest.fixture
def config(tmp_path: Path, digits: Path, prompts: Path) -> dict[str, Any]:
    def first(whole: Path, count: int) -> str:
        rows = [json.loads(line) for line in whole.read_text().splitlines()]
        kept = [row for row in rows if not row.get("_skipme")][:count]
        for row in kept:
            row["audio_filepath"] = str(whole.parent / row["audio_filepath"])
        return str(write_jsonl(tmp_path / f"{whole.stem}{count}.json", kept))

    return {
        "train_ds": {
            "manifest_filepath": str(digits / "manifest.json"),
            "sample_rate": 8000,
            "shuffle": True,
            "seed": 5,
            "batch_duration": 10,
            "force_finite": False,
        },
        "validation_ds": {
            "sample_rate": 8000,
            "batch_size": 4,
            "datasets": {
                "digits": {
                    "manifest_filepath": first(digits / "manifest.json", NUM_DIGITS),
                    "batch_size": 1,
                },
                "prompts": {
                    "manifest_filepath": first(prompts / "nemo.json", NUM_PROMPTS),
                    "shuffle": True,
                },
                "few": {"manifest_filepath": first(digits / "manifest.json", NUM_FEW)},
            },
        },
    }


def evaluate(config: dict[str, Any], folder: Path, ranks: int, **more: Any) -> Iterator[dict]:
    folder.mkdir()
    spec = folder / "spec.json"
    options = {"passes": 2, "abandoned": 2, "num_workers": 1, **more}
    spec.write_text(json.dumps({"config": config, "out": str(folder / "told"), **options}))
    script = [str(Path(evaluate_sets.__file__)), str(spec)]
    run_ranks("evaluation", ranks, lambda _: script, folder, deadline_seconds=150)
    return (json.loads((folder / f"told.{rank}.json").read_text()) for rank in range(ranks))


def results(told: list[dict], name: str, number: int) -> list[list[Any]]:
    """What all ranks together found in a pass of a set, in the order of its manifest."""
    return sorted(
        line for rank in told for batch in rank["evaluated"][name][number] for line in batch
    )


def test_any_number_of_ranks_finds_what_one_does(config: dict[str, Any], tmp_path: Path) -> None:
    alone = list(evaluate(config, tmp_path / "alone", 1, abandoned=0, num_workers=0))
    shared = list(evaluate(config, tmp_path / "shared", 4))
    counts = {"digits": NUM_DIGITS, "prompts": NUM_PROMPTS, "few": NUM_FEW}
    for name, count in counts.items():
        expected = results(alone, name, 0)
        assert [place for place, _, _ in expected] == [[0, row, 0] for row in range(count)]
        for told in (alone, shared):
            for number in range(2):
                found = results(told, name, number)
                assert [line[:2] for line in found] == [line[:2] for line in expected]
            for rank in told:
                assert {len(lines) for lines in rank["evaluated"][name]} == {rank["lengths"][name]}
            assert len({rank["lengths"][name] for rank in told}) == 1
    # Batches of one sample have no padding that could depend on the number of ranks.
    energies = [[line[2] for line in results(told, "digits", 1)] for told in (alone, shared)]
    assert energies[0] == pytest.approx(energies[1], rel=1e-6)
