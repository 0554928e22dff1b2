"""Leaves whose samples are made of others: their keys, their progress, and what they may hold."""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest

import playhead
from playhead.blend import read_blend
from playhead.errors import ConfigError, NotSupportedError
from support.talk import section
from support.talk_cuts import FORMS
from support.told import Samples, ids_of_pass

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAYHEAD_CACHE", str(tmp_path / "cache"))


def dialogues(folder: Path) -> dict[str, dict[str, Any]]:
    path = FORMS["s2s_as_conversation"].write(folder)["cuts_path"]
    return {
        "turns": {"type": "s2s_as_conversation", "cuts_path": path},
        "whole": {"type": "lhotse_as_conversation", "cuts_path": path},
        "cuts": {"type": "lhotse", "cuts_path": path},
    }


def keys_of(*entries: dict[str, Any]) -> list[str]:
    return [leaf.key for leaf in read_blend(section(*entries)).leaves]


def test_what_is_made_of_the_same_data_has_keys_of_its_own(tmp_path: Path):
    made = dialogues(tmp_path)
    keys = dict(zip(made, keys_of(*made.values()), strict=True))
    assert len(set(keys.values())) == 3
    for order in (["cuts", "turns", "whole"], ["whole", "cuts"], ["turns"]):
        assert keys_of(*(made[name] for name in order)) == [keys[name] for name in order]
    # The same in a group around it is the same.
    inside = {"type": "lhotse", "cuts_path": made["cuts"]["cuts_path"]}
    nested = {"type": "s2s_as_conversation", "input_cfg": [inside]}
    assert keys_of({"type": "group", "input_cfg": [nested]}) == [keys["turns"]]
    # Other options of it are the same samples; twice the same are told apart.
    other = {**made["turns"], "strip_timestamp_tokens": False}
    assert keys_of(other) == [keys["turns"]]
    assert len(set(keys_of(made["turns"], other))) == 2
    both = {"type": "lhotse_as_conversation", "input_cfg": [made["turns"]]}
    assert keys_of(both)[0] not in keys.values()


def test_what_is_made_of_the_same_data_has_names_of_its_own(tmp_path: Path):
    made = dialogues(tmp_path)
    path = made["cuts"]["cuts_path"]
    names = [leaf.name for leaf in read_blend(section(*made.values())).leaves]
    whole = f"{path} ({path})"
    assert names == [f"{whole} s2s_as_conversation", f"{whole} lhotse_as_conversation", whole]
    (alone,) = read_blend(section(made["turns"])).leaves
    assert alone.name == path


def test_progress_survives_another_order_and_what_is_added(tmp_path: Path):
    made = dialogues(tmp_path)
    options = {"force_finite": False, "shuffle": True, "batch_size": 3, "seed": 1}

    def loader(*names: str, state: Any = None) -> Any:
        config = section(*(made[name] for name in names), **options)
        found = playhead.dataloader(config, dataset=Samples(), rank=0, world_size=1)
        if state is not None:
            found.load_state_dict(state)
        return found

    def batches(found: Any, count: int) -> list[Any]:
        told = islice(iter(found), count)
        return [[(one.id, one.kind) for one in batch["samples"]] for batch in told]

    expected = batches(loader("turns", "whole", "cuts"), 12)
    first = loader("turns", "whole", "cuts")
    assert batches(first, 5) == expected[:5]
    state = json.loads(json.dumps(first.state_dict()))
    assert batches(loader("cuts", "turns", "whole", state=state), 7) == expected[5:]
    assert len(state["leaves"]) == 3


def test_other_options_of_a_transform_are_another_index(tmp_path: Path):
    made = dialogues(tmp_path)["turns"]
    assert len(ids_of_pass(section(made))) == 10
    roles = ["assistant", "Assistant", "agent", "Agent", "narrator"]
    assert len(ids_of_pass(section({**made, "output_roles": roles}))) == 11
    assert len(ids_of_pass(section(made))) == 10


# What lhotse_concat joins -------------------------------------------------------------------


def joined(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"type": "lhotse_concat", "max_duration": 2.0, "input_cfg": list(entries)}


def test_what_is_no_audio_is_not_joined(tmp_path: Path):
    made = dialogues(tmp_path)
    words = {"type": "txt", "paths": "a.txt"}
    assert len(keys_of(joined(made["cuts"]))) == 1
    with pytest.raises(ConfigError, match=r"rows of `txt` .*\(config: .*input_cfg\[0\].*\[1\]\)"):
        keys_of(joined(made["cuts"], words))
    with pytest.raises(ConfigError, match="rows of `lhotse/lhotse_as_conversation` are no"):
        keys_of(joined(made["whole"]))
    group = {"type": "group", "input_cfg": [words]}
    with pytest.raises(ConfigError, match="joins audio, and rows of `txt`"):
        keys_of(joined(group))


@pytest.mark.parametrize("name", ["lhotse_as_conversation", "s2s_duplex_reverse_role"])
def test_what_is_joined_is_not_transformed(tmp_path: Path, name: str):
    inner = joined(dialogues(tmp_path)["cuts"])
    with pytest.raises(NotSupportedError, match=f"`{name}` holds one of type `lhotse_concat`"):
        keys_of({"type": name, "input_cfg": [inner]})
    with pytest.raises(NotSupportedError, match="holds one of type `lhotse_concat`"):
        keys_of({"type": name, "input_cfg": [{"type": "group", "input_cfg": [inner]}]})


def test_transforms_of_cuts_may_stand_inside(tmp_path: Path):
    cuts = dialogues(tmp_path)["cuts"]
    (leaf,) = read_blend(
        section(joined({"type": "s2s_duplex_reverse_role", "input_cfg": [cuts]}))
    ).leaves
    assert leaf.concatenation is not None
    assert leaf.kind == "cut"
