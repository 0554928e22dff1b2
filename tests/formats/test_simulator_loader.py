from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest

import playhead
from playhead.datasets import Ids
from playhead.formats.simulator import MultiSpeakerSimulator
from support.simulated import TYPE, conversations, voices
from support.steps import heard, steps

if TYPE_CHECKING:
    from pathlib import Path

G = 4
SECONDS = [1.0, 1.25, 0.7, 2.0, 1.5, 0.9, 1.1, 0.3, 1.3]


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    assert MultiSpeakerSimulator
    monkeypatch.setenv("PLAYHEAD_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(scope="module")
def entries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    folder: Path = tmp_path_factory.mktemp("simulated")
    talks = [[(0.0, 0.8, "a"), (1.0, 1.9, "b"), (1.6, 2.4, "a"), (2.5, 3.0, "b")]] * 2
    mixed: dict[str, Any] = {
        "type": TYPE,
        "manifest_filepath": str(voices(folder, SECONDS)),
        "num_mixtures": 70,
    }
    loaded: dict[str, Any] = {
        "type": TYPE,
        "simulator_type": "mixture_loader",
        "manifest_filepath": str(conversations(folder / "talks", talks, rate=16000)),
        "num_mixtures": 50,
    }
    return {
        "lsmix": [mixed],
        "mixture_loader": [loaded],
        "blend": [{**mixed, "num_speakers": 3, "weight": 1}, {**mixed, "weight": 2}, loaded],
    }


PLAIN = {"batch_duration": 12, "shuffle": True, "seed": 5, "micro_batches_per_step": G}


@pytest.mark.parametrize("form", ["lsmix", "mixture_loader", "blend"])
def test_stopped_and_gone_on_with_other_ranks_and_workers(entries, form):
    weighted = [{"weight": 1, **entry} for entry in entries[form]]
    config = {**PLAIN, "input_cfg": weighted}
    whole, _ = steps(config, 6, world=4, told=heard)
    first, state = steps(config, 2, world=2, told=heard)
    second, state = steps(config, 3, world=1, workers=2, state=state, told=heard)
    third, _ = steps(config, 1, world=4, state=state, told=heard)
    assert first | second | third == whole
    assert len(whole) == 6 * G


def test_ranks_need_not_be_named_alike(entries):
    config = {**PLAIN, "input_cfg": entries["lsmix"]}
    whole, _ = steps(config, 2, world=2, told=heard)
    for rank in range(2):
        (entry,) = entries["lsmix"]
        named = {**entry, "global_rank": rank, "world_size": 2}
        other, _ = steps({**PLAIN, "input_cfg": [named]}, 2, world=2, told=heard)
        assert other == whole


def test_a_pass_has_every_mixture_once_and_the_next_has_them_in_another_order(entries):
    config = {
        "input_cfg": entries["lsmix"],
        "shuffle": True,
        "seed": 1,
        "batch_size": 10,
        "force_finite": True,
        "use_bucketing": False,
    }
    loader = playhead.dataloader(config)
    passes = [[name for batch in loader for name in batch["ids"]] for _ in range(2)]
    assert passes[0] != passes[1]
    for ids in passes:
        assert sorted(int(name.rsplit("_", 1)[1]) for name in ids) == list(range(70))
    assert sorted(passes[0]) == sorted(passes[1])


def test_it_goes_on_without_end_where_it_stands_alone(entries):
    config = {**PLAIN, "input_cfg": entries["mixture_loader"], "micro_batches_per_step": 1}
    count: Counter[str] = Counter()
    for batch in islice(playhead.dataloader(config), 40):
        count.update(batch["ids"])
    assert len(count) == 50
    assert min(count.values()) >= 2


def test_batches_keep_to_their_limit(entries):
    config = {**PLAIN, "input_cfg": entries["lsmix"], "batch_duration": 9}
    for batch in islice(playhead.dataloader(config), 20):
        audio = batch["audio"]
        assert audio.shape[0] * audio.shape[1] <= 9 * 16000
        assert batch["audio_lens"].max() == audio.shape[1]


def test_the_pack_has_the_mixtures_and_ranks_share_it(tmp_path):
    manifest = voices(tmp_path, SECONDS)
    first, second = (
        playhead.dataloader(
            [{"type": TYPE, "manifest_filepath": str(manifest), **more}],
            batch_duration=8,
            dataset=Ids(),
            seed=1,
            shuffle=True,
            indexes_root=str(tmp_path / "root"),
        )
        for more in ({"global_rank": 0, "world_size": 2}, {"global_rank": 1, "world_size": 2})
    )
    (pack,) = (tmp_path / "root").rglob("*.idxpack")
    (leaf,) = first.fetch.spec.packs
    assert leaf.open().entry.embedded
    assert leaf.open().groups is None
    assert str(pack) == leaf.path
    assert next(iter(first))["ids"] == next(iter(second))["ids"]
