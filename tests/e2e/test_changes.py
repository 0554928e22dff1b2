"""Blends that are edited between a stop and the next start."""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest

import playhead
from playhead.datasets import Ids
from support.corpus import nemo_corpus, write_jsonl
from support.real_speech import rows_of

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.e2e

SECONDS = [0.1 + i % 5 / 10 for i in range(60)]


@pytest.fixture
def manifests(tmp_path: Path) -> list[Path]:
    return [
        nemo_corpus(tmp_path / name, SECONDS[:rows], rate=8000, prefix=name)
        for name, rows in (("a", 60), ("b", 40))
    ]


def entries_of(manifests: list[Path], *weights: float) -> list[dict[str, Any]]:
    return [
        {"type": "nemo", "manifest_filepath": str(path), "weight": weight}
        for path, weight in zip(manifests, weights, strict=True)
    ]


def open_loader(entries: list[dict[str, Any]], **options: Any) -> playhead.Loader:
    config = {
        "input_cfg": entries,
        "batch_duration": 2,
        "shuffle": True,
        "seed": 1,
        "window_draws": 50,
        "micro_batches_per_step": 2,
    }
    return playhead.dataloader({**config, **options}, dataset=Ids(), rank=0, world_size=1)


def take(loader: playhead.Loader, count: int | None) -> list[list[str]]:
    return [batch["ids"] for batch in islice(iter(loader), count)]


def stopped(loader: playhead.Loader, count: int) -> tuple[dict, list[list[str]]]:
    """The state after some batches, and the batches that would follow."""
    take(loader, count)
    state = json.loads(json.dumps(loader.state_dict()))
    return state, take(loader, 60)


def test_the_order_of_the_entries_does_not_matter(manifests: list[Path]) -> None:
    state, rest = stopped(open_loader(entries_of(manifests, 1, 2)), 4)
    loader = open_loader(entries_of(manifests, 1, 2)[::-1])
    loader.load_state_dict(state)
    assert take(loader, 60) == rest


def test_weights_take_effect_at_the_next_window(manifests: list[Path]) -> None:
    state, rest = stopped(open_loader(entries_of(manifests, 1, 1)), 2)
    loader = open_loader(entries_of(manifests, 1, 9))
    with pytest.warns(UserWarning, match=r"weights.*next window"):
        loader.load_state_dict(state)
    after = take(loader, 200)
    window = next(i for i, (old, new) in enumerate(zip(rest, after, strict=False)) if old != new)
    assert window > 4
    names = [name for ids in after[window:] for name in ids]
    assert sum("/b" in name for name in names) / len(names) == pytest.approx(0.9, abs=0.03)


def test_rows_that_were_appended_join_at_the_next_pass(manifests: list[Path]) -> None:
    """Of an endless leaf: the pass that runs keeps its own rows, each of them once."""
    entries = entries_of(manifests, 1, 1)
    loader = open_loader(entries)
    before = take(loader, 6)
    state = loader.state_dict()
    rows = rows_of(manifests[0])
    new = [dict(rows[i], audio_filepath=f"wav/new{i}.wav") for i in range(20)]
    write_jsonl(manifests[0], rows + new)
    grown = open_loader(entries)
    grown.load_state_dict(state)
    names = [name for ids in before + take(grown, 200) for name in ids if "/b" not in name]
    # Windows shuffle their draws: the first pass ends inside one, which two passes share.
    assert set(names[:40]).isdisjoint(row["audio_filepath"] for row in new)
    assert len(set(names[:40])) == 40
    assert {row["audio_filepath"] for row in rows + new} <= set(names)


def test_rows_that_were_appended_wait_for_the_end_of_a_finite_pass(manifests: list[Path]) -> None:
    entries = entries_of(manifests[:1], 1)
    loader = open_loader(entries)
    before = take(loader, 6)
    state = loader.state_dict()
    rows = rows_of(manifests[0])
    write_jsonl(manifests[0], [*rows, dict(rows[0], audio_filepath="wav/new.wav")])
    grown = open_loader(entries)
    grown.load_state_dict(state)
    first = [name for ids in before + take(grown, None) for name in ids]
    second = [name for ids in take(grown, None) for name in ids]
    assert sorted(first) == sorted(row["audio_filepath"] for row in rows)
    assert sorted(second) == sorted([*first, "wav/new.wav"])
