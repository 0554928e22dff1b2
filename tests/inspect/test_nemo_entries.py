"""Sources of configs that Playhead cannot train from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from playhead.errors import ConfigError, SourceNotFoundError
from playhead.inspect.nemo_declared import DeclaredSource
from playhead.inspect.nemo_entries import lenient_sources

if TYPE_CHECKING:
    from pathlib import Path


def _weights(config: Any, **more: Any) -> list[float | None]:
    return [round(one.desired_weight or 0, 6) for one in lenient_sources(config, **more)]


def test_entries_are_taken_as_they_stand(tmp_path: Path) -> None:
    entry: dict[str, Any] = {
        "type": "of_our_lab",
        "corpus": "libri",
        "language": "en",
        "weight": 2,
        "hours": "7.5",
        "tags": {"task": "asr"},
        "manifest_filepath": str(tmp_path / "m_OP_0..1_CL_.jsonl"),
        "indexes_root": "/idx",
        "index_pack_root": "/packs",
        "index_pack": "p.idxpack",
    }

    (source,) = lenient_sources([entry])

    assert source == DeclaredSource(
        name="libri/en",
        type="of_our_lab",
        desired_weight=1.0,
        raw_weight=2.0,
        hours=7.5,
        tags={"task": "asr"},
        first_path=entry["manifest_filepath"],
        specs={"manifest_filepath": entry["manifest_filepath"]},
        groups=((f"{tmp_path}/m0.jsonl", f"{tmp_path}/m1.jsonl"),),
        indexes_root="/idx",
        index_pack="/packs/p.idxpack",
        pack_name="p.idxpack",
    )


def test_a_source_without_a_name_is_called_by_its_file_or_its_number() -> None:
    sources = lenient_sources([{"type": "x", "paths": [["a.txt", 1]]}, {"type": "y"}, "no entry"])

    assert [one.name for one in sources] == ["a.txt", "source-1", "source-2"]


def test_tars_of_a_tarred_source_are_asked_first() -> None:
    entry = {"type": "nemo_tarred", "manifest_filepath": "a", "tarred_audio_filepaths": ["b", "c"]}

    assert lenient_sources([entry])[0].groups == (("b", "c"), ("a",))


@pytest.mark.parametrize(
    ("weights", "temperature", "expected"),
    [
        ([3, 1], None, [0.75, 0.25]),
        ([3, 1], 0, [0.5, 0.5]),
        ([9, 1], 0.5, [0.75, 0.25]),
        ([9, 1], [0.5], [0.75, 0.25]),
        ([9, 1], [], [0.9, 0.1]),
        ([3, None], None, [0.5, 0.5]),
        ([3, 0], None, [0.5, 0.5]),
        ([3, "much"], None, [0.5, 0.5]),
        ([3, float("inf")], None, [0.5, 0.5]),
        ([1e300, 1e300], 2, [0.5, 0.5]),
        ([1e-300, 1e-300], 2, [0.5, 0.5]),
        ([1e300, 1e-300], 2, [1.0, 0.0]),
        ([1e300, 1e-300], -2, [0.0, 1.0]),
        ([4, 1], -1, [0.2, 0.8]),
    ],
)
def test_siblings_share_by_weights_where_all_have_one(
    weights: list[Any], temperature: Any, expected: list[float]
) -> None:
    entries = [{"type": "x", "weight": weight} for weight in weights]
    config = {"train_ds": {"input_cfg": entries, "reweight_temperature": temperature}}

    assert _weights(config) == expected


def test_groups_and_files_multiply_and_hand_down(tmp_path: Path) -> None:
    (tmp_path / "inner.yaml").write_text(
        "input_cfg:\n- {type: x, weight: 9, paths: '${data_blend_dir}/a'}\n- {type: x, weight: 1}\n"
    )
    config = tmp_path / "config.yaml"
    config.write_text(
        "model: {train_ds: {indexes_root: /top, reweight_temperature: [1, 0.5], input_cfg: [\n"
        "  {type: group, weight: 3, corpus: c, tags: {t: 1}, input_cfg: inner.yaml},\n"
        "  {type: x, weight: 1, indexes_root: /own}]}}\n"
    )

    sources = lenient_sources(str(config), data_blend_dir=str(tmp_path))

    assert [round(one.desired_weight or 0, 6) for one in sources] == [0.5625, 0.1875, 0.25]
    assert [one.name for one in sources] == [f"c ({tmp_path}/a)", "c", "source-2"]
    assert [one.indexes_root for one in sources] == ["/top", "/top", "/own"]
    assert [dict(one.tags) for one in sources] == [{"t": 1}, {"t": 1}, {}]
    assert sources[0].groups == ((f"{tmp_path}/a",),)


@pytest.mark.parametrize("value", [5, ["a"], {"a": 1}, True])
def test_a_root_or_a_pack_that_is_no_text_is_none(value: Any) -> None:
    entry = {"type": "x", "indexes_root": value, "index_pack_root": value, "index_pack": value}

    (source,) = lenient_sources([entry])

    assert (source.indexes_root, source.index_pack, source.pack_name) == (None, None, None)


def test_a_section_may_name_its_files_itself() -> None:
    (source,) = lenient_sources({"train_ds": {"manifest_filepath": "a.jsonl"}})

    assert (source.name, source.desired_weight) == ("a.jsonl", 1.0)


def test_a_config_that_names_itself_ends(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("[{type: group, input_cfg: config.yaml}]")

    with pytest.raises(ConfigError, match="names itself"):
        lenient_sources(str(config))


def test_a_file_that_is_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SourceNotFoundError):
        lenient_sources([{"type": "group", "input_cfg": str(tmp_path / "none.yaml")}])
