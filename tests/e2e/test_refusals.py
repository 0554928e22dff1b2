"""States that cannot be resumed from are refused, with the reason."""

from __future__ import annotations

import copy
import json
import shutil
import warnings
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest

import playhead
from playhead.datasets import Ids
from playhead.errors import PositionError, TopologyError
from support.corpus import nemo_corpus, tarred_corpus, write_jsonl
from support.real_speech import rows_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.e2e

SECONDS = [0.1 + i % 7 / 10 for i in range(50)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    nemo_corpus(tmp_path / "plain", SECONDS, rate=8000)
    tarred_corpus(tmp_path / "tarred", SECONDS[:20], shards=2, rate=8000)
    return tmp_path


def open_loader(folder: Path, **options: Any) -> playhead.Loader:
    config = {
        "input_cfg": [
            {
                "type": "nemo",
                "manifest_filepath": str(folder / "plain/manifest.json"),
                "name": "plain",
            },
            {
                "type": "nemo_tarred",
                "manifest_filepath": str(folder / "tarred/manifest__OP_0..1_CL_.json"),
                "tarred_audio_filepaths": str(folder / "tarred/audio__OP_0..1_CL_.tar"),
                "name": "tarred",
            },
        ],
        "sample_rate": 8000,
        "batch_duration": 3,
        "shuffle": True,
        "seed": 5,
        "micro_batches_per_step": 4,
        "window_draws": 200,
    }
    place = {"rank": options.pop("rank", 0), "world_size": options.pop("world_size", 1)}
    return playhead.dataloader({**config, **options}, dataset=Ids(), **place)


def take(loader: playhead.Loader, count: int) -> list[list[str]]:
    return [batch["ids"] for batch in islice(loader, count)]


def saved(folder: Path) -> dict:
    loader = open_loader(folder)
    take(loader, 8)
    return json.loads(json.dumps(loader.state_dict()))


@pytest.mark.parametrize(
    "state",
    [{}, {"foo": 1}, {"epoch": 3, "sampler_state": {}}, [], None, "state", 7, {"version": "one"}],
)
def test_a_foreign_state(folder: Path, state: Any) -> None:
    with pytest.raises(PositionError, match=r"(?i)playhead"):
        open_loader(folder).load_state_dict(state)


@pytest.mark.parametrize("version", [0, 99, -1, None, "1"])
def test_another_version_names_both(folder: Path, version: Any) -> None:
    state = saved(folder)
    with pytest.raises(PositionError, match="version"):
        open_loader(folder).load_state_dict({**state, "version": version})


def refusal(loader: playhead.Loader, state: Any) -> Exception | None:
    """What loading a state raises; a state that is still whole may load."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            loader.load_state_dict(copy.deepcopy(state))
        except Exception as error:  # noqa: BLE001  (which one it is, is what is tested)
            return error
    return None


def test_a_damaged_state_is_a_position_error_whatever_was_damaged(folder: Path) -> None:
    state = saved(folder)

    def damaged(value: Any) -> list[Any]:
        """Every copy of a JSON value with one part of it replaced or left out."""
        copies: list[Any] = [None, "x", -5, [], {}, 1.5, float("nan")]
        if isinstance(value, dict):
            for key in value:
                copies.append({name: part for name, part in value.items() if name != key})
                copies += [{**value, key: part} for part in damaged(value[key])]
        if isinstance(value, list):
            for i in range(len(value)):
                copies.append(value[:i] + value[i + 1 :])
                copies += [[*value[:i], part, *value[i + 1 :]] for part in damaged(value[i])]
        return [part for part in copies if part != value]

    loader = open_loader(folder)
    escaped = [
        f"{type(error).__name__}: {error} of {broken}"
        for broken in damaged(state)
        if not isinstance(error := refusal(loader, broken), PositionError | type(None))
    ]
    assert not escaped, "\n".join(escaped)


def test_another_seed(folder: Path) -> None:
    state = saved(folder)
    with pytest.raises(PositionError, match=r"seed 5.*6.*reseed=True"):
        open_loader(folder, seed=6).load_state_dict(state)
    loader = open_loader(folder, seed=6)
    with pytest.warns(UserWarning, match="seed"):
        loader.load_state_dict(state, reseed=True)
    next(iter(loader))


@pytest.mark.parametrize("world_size", [3, 5, 8])
def test_a_world_size_that_does_not_divide_lists_those_that_do(
    folder: Path, world_size: int
) -> None:
    with pytest.raises(TopologyError, match=r"1, 2, 4"):
        open_loader(folder, rank=0, world_size=world_size)


def longer(folder: Path) -> str:
    path = folder / "plain/manifest.json"
    rows = rows_of(path)
    rows[17]["duration"] += 0.05
    write_jsonl(path, rows)
    return r"plain.*manifest\.json"


def fewer(folder: Path) -> str:
    path = folder / "plain/manifest.json"
    write_jsonl(path, rows_of(path)[:-3])
    return r"plain"


def reordered(folder: Path) -> str:
    path = folder / "plain/manifest.json"
    write_jsonl(path, rows_of(path)[::-1])
    return r"plain"


def another_shard(folder: Path) -> str:
    path = folder / "tarred/manifest_1.json"
    rows = rows_of(path)
    rows[2]["duration"] += 0.05
    write_jsonl(path, rows)
    return r"tarred.*manifest_1\.json"


def repacked(folder: Path) -> str:
    """The same rows, whose members lie elsewhere in the archive."""
    for kind in ("manifest_{}.json", "audio_{}.tar"):
        one, two = (folder / "tarred" / kind.format(i) for i in (0, 1))
        other = folder / "other"
        shutil.move(one, other)
        shutil.move(two, one)
        shutil.move(other, two)
    return r"tarred"


@pytest.mark.parametrize("change", [longer, fewer, reordered, another_shard, repacked])
def test_changed_data_is_named(folder: Path, change: Callable[[Path], str]) -> None:
    state = saved(folder)
    named = change(folder)
    loader = open_loader(folder)
    with pytest.raises(PositionError, match=f"(?s){named}.*restart_pass"):
        loader.load_state_dict(state)


def test_changed_data_may_restart_its_pass(folder: Path) -> None:
    state = saved(folder)
    longer(folder)
    loader = open_loader(folder, on_change="restart_pass")
    with pytest.warns(UserWarning, match="plain"):
        loader.load_state_dict(state)
    next(iter(loader))


def test_touched_or_moved_data_are_the_same_data(folder: Path) -> None:
    loader = open_loader(folder)
    take(loader, 8)
    state = loader.state_dict()
    rest = take(loader, 8)
    (folder / "plain/manifest.json").touch()
    again = open_loader(folder)
    again.load_state_dict(state)
    assert take(again, 8) == rest
    moved = folder / "moved"
    shutil.copytree(folder / "plain", moved / "plain")
    shutil.copytree(folder / "tarred", moved / "tarred")
    elsewhere = open_loader(moved)
    elsewhere.load_state_dict(state)
    assert len(take(elsewhere, 8)) == 8


def test_a_leaf_that_is_gone_is_named_and_the_rest_goes_on(folder: Path) -> None:
    more = nemo_corpus(folder / "more", SECONDS[:10], rate=8000, prefix="more")
    entries = [
        {"type": "nemo", "manifest_filepath": str(path), "name": name}
        for name, path in (
            ("plain", folder / "plain/manifest.json"),
            ("more", more),
            ("gone", folder / "tarred/manifest_0.json"),
        )
    ]
    loader = open_loader(folder, input_cfg=entries)
    take(loader, 8)
    state = loader.state_dict()
    loader = open_loader(folder, input_cfg=entries[:2])
    with pytest.warns(UserWarning, match="gone"):
        loader.load_state_dict(state)
    assert len(take(loader, 40)) == 40
