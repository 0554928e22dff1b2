"""How long runs are, and where they are stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from playhead.errors import ConfigError, TopologyError
from playhead.loader.planned import open_planned
from playhead.validate.extent import Extent, check_resumed_ranks, choose_extent
from support.corpus import nemo_corpus

if TYPE_CHECKING:
    from pathlib import Path


def extent(folder: Path, ranks: int, finite: bool = True, **asked: Any) -> Extent:
    """Of 600 samples in batches of one."""
    entries = [{"type": "nemo", "manifest_filepath": str(folder / "manifest.json")}] * 2
    config = {"input_cfg": entries[: 1 + (not finite)], "batch_size": 1, "shuffle": True}
    config["micro_batches_per_step"] = asked.pop("step", ranks)
    config["force_finite"] = finite
    planning = open_planned(config, world_size=ranks).planning
    given = {"steps": None, "checkpoint_at": None, "whole_pass": False, **asked}
    return choose_extent(planning, seed=0, ranks=ranks, **given)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("extent")
    nemo_corpus(path, [0.1] * 600)
    return path


@pytest.fixture(autouse=True)
def _own_cache(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAYHEAD_CACHE", str(folder / "cache"))


@pytest.mark.parametrize(
    ("ranks", "asked", "wanted"),
    [
        # A pass where it is short; 200 batches where it is not; all of it where that is asked for.
        (4, {}, Extent(steps=150, checkpoint_at=111, is_whole_pass=True)),
        (3, {}, Extent(steps=200, checkpoint_at=149, is_whole_pass=True)),
        (2, {}, Extent(steps=200, checkpoint_at=149, is_whole_pass=False)),
        (2, {"whole_pass": True}, Extent(steps=300, checkpoint_at=224, is_whole_pass=True)),
        (2, {"steps": 301}, Extent(steps=300, checkpoint_at=224, is_whole_pass=True)),
        (2, {"steps": 9, "step": 4}, Extent(steps=9, checkpoint_at=5, is_whole_pass=False)),
        (
            2,
            {"steps": 9, "checkpoint_at": 2},
            Extent(steps=9, checkpoint_at=2, is_whole_pass=False),
        ),
        (2, {"finite": False}, Extent(steps=200, checkpoint_at=149, is_whole_pass=False)),
    ],
)
def test_runs_are_a_pass_of_at_most_200_batches_and_stopped_after_three_quarters(
    folder: Path, ranks: int, asked: dict[str, Any], wanted: Extent
) -> None:
    assert extent(folder, ranks, **asked) == wanted


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"steps": 1}, "ach of 2 ranks has 1 batch, and two .* take 2"),
        ({"steps": 3, "step": 4}, "ach of 2 ranks has 3 batches, and two .* take 4"),
        ({"steps": 8, "checkpoint_at": 7}, "no batch is left"),
        # Batch 6 lies in the step that batch 7 ends.
        ({"steps": 8, "checkpoint_at": 6, "step": 4}, "no batch is left"),
        ({"whole_pass": True, "finite": False}, "no whole pass"),
        ({"whole_pass": True, "steps": 9}, "--steps 9 ends before or after it"),
    ],
)
def test_runs_that_leave_nothing_to_compare_are_refused(
    folder: Path, asked: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        extent(folder, 2, **asked)


def test_ranks_that_cannot_share_a_step_that_the_config_fixes_are_wrong_input(
    folder: Path,
) -> None:
    check_resumed_ranks([1, 3, 5], None)
    check_resumed_ranks([1, 2, 4], 4)
    for refused in (
        lambda: check_resumed_ranks([1, 3], 4),
        lambda: choose_extent(
            open_planned(
                {
                    "manifest_filepath": str(folder / "manifest.json"),
                    "batch_size": 1,
                    "shuffle": True,
                    "micro_batches_per_step": 4,
                },
                world_size=2,
            ).planning,
            seed=0,
            ranks=3,
            steps=None,
            checkpoint_at=None,
            whole_pass=False,
        ),
    ):
        with pytest.raises(TopologyError, match="3 ranks cannot share") as caught:
            refused()
        assert caught.value.exit_code == 2
