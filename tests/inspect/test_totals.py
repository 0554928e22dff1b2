"""Items of a pass, out of indexes that exist."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from playhead.index import build_target
from playhead.index.build import build_packs
from playhead.inspect.nemo_config import declared_sources
from playhead.inspect.totals import Roots, Total, totals_of
from support.corpus import nemo_corpus
from support.idxpack import Collection, write_idxpack
from support.nemo_states import nemo_sources, write_records

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.inspect.nemo_declared import DeclaredSource

_NOWHERE = Roots()


@pytest.fixture(autouse=True)
def _no_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAYHEAD_CACHE", str(tmp_path_factory.mktemp("cache")))


def _source(entry: dict[str, Any]) -> DeclaredSource:
    (source,) = declared_sources([{"type": "nemo", **entry}]).sources
    return source


def _total(entry: dict[str, Any], **roots: str) -> Total:
    return _of(_source(entry), Roots(**roots))


def _of(source: DeclaredSource, roots: Roots = _NOWHERE) -> Total:
    (total,) = totals_of([source], roots)
    return total


def _pack(path: Path, counts: dict[str, int], role: str = "manifest", kind: str = "jsonl") -> Path:
    """A pack of NeMo with one collection."""
    offsets = [[10 * n for n in range(count + 1)] for count in counts.values()]
    return write_idxpack(path, [Collection(role, kind, list(counts), offsets)])


def test_indexes_beside_the_data_add_up(tmp_path: Path) -> None:
    write_records(tmp_path / "m0.jsonl", 4)
    write_records(tmp_path / "m1.jsonl", 7)

    total = _total({"manifest_filepath": f"{tmp_path}/m_OP_0..1_CL_.jsonl"})

    assert (total.items, total.shard_lengths, total.missing) == (11, (4, 7), ())


def test_a_total_without_one_of_its_indexes_is_none(tmp_path: Path) -> None:
    write_records(tmp_path / "m0.jsonl", 4)

    total = _total({"manifest_filepath": f"{tmp_path}/m_OP_0..1_CL_.jsonl"})

    assert (total.items, total.shard_lengths) == (None, ())
    assert total.missing == (f"{tmp_path}/m1.jsonl.idx",)


def test_each_of_many_sources_has_its_own_total(tmp_path: Path) -> None:
    tarred = {"type": "nemo_tarred", "tarred_audio_filepaths": "none.tar"}
    config = nemo_sources(tmp_path, [4, 5, 6, 7])
    config[1] |= tarred
    config[3] |= tarred
    (tmp_path / "m2.jsonl.idx").unlink()

    totals = totals_of(declared_sources(config).sources, _NOWHERE)

    assert [total.items for total in totals] == [4, 5, None, 7]
    assert [total.missing for total in totals] == [(), (), (f"{tmp_path}/m2.jsonl.idx",), ()]


def test_only_the_first_missing_indexes_are_kept(tmp_path: Path) -> None:
    assert len(_total({"manifest_filepath": f"{tmp_path}/m_OP_0..99_CL_.jsonl"}).missing) == 20


@pytest.mark.parametrize("size", [0, 7, 12])
def test_what_is_no_index_is_named(tmp_path: Path, size: int) -> None:
    (tmp_path / "a.jsonl.idx").write_bytes(bytes(size))

    total = _total({"manifest_filepath": str(tmp_path / "a.jsonl")})

    assert total.items is None
    assert total.notes == (
        f"{tmp_path}/a.jsonl.idx has {size} bytes, which is not a whole number of entries",
    )


def test_tars_say_it_first_and_manifests_where_tars_have_no_index(tmp_path: Path) -> None:
    write_records(tmp_path / "a.jsonl", 4)
    entry = {
        "type": "nemo_tarred",
        "manifest_filepath": str(tmp_path / "a.jsonl"),
        "tarred_audio_filepaths": str(tmp_path / "a.tar"),
    }

    assert _total(entry).items == 4
    write_records(tmp_path / "a.tar", 3)
    assert _total(entry).items == 3


def test_the_callers_root_wins_over_the_configs(tmp_path: Path) -> None:
    data = tmp_path / "data" / "a.jsonl"
    for number, root in enumerate(("of-config", "of-caller")):
        write_records(tmp_path / root / str(data).lstrip("/"), 4 + number)
    entry = {"manifest_filepath": str(data), "indexes_root": str(tmp_path / "of-config")}

    assert _total(entry).items == 4
    assert _total(entry, indexes=str(tmp_path / "of-caller")).items == 5


def test_indexes_of_relative_paths_are_below_the_root_as_they_are_declared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_records(tmp_path / "root" / "data" / "a.jsonl", 4)

    assert _total({"manifest_filepath": "data/a.jsonl"}, indexes=str(tmp_path / "root")).items == 4


def test_a_pack_of_nemo_says_it_by_the_key_of_what_is_declared(tmp_path: Path) -> None:
    data = str(write_records(tmp_path / "a.jsonl", 4))
    # The files lie elsewhere: only the key is the same.
    pack = _pack(tmp_path / "p.idxpack", {data: 9})
    entry = {"manifest_filepath": [data], "indexed": True, "index_pack": str(pack)}

    total = _total(entry)

    assert (total.items, total.shard_lengths, total.pack) == (9, (9,), str(pack))
    assert total.matched_key in total.keys


def test_a_pack_of_nemo_says_it_by_the_files_too(tmp_path: Path) -> None:
    files = {str(tmp_path / f"m{n}.jsonl"): 4 + n for n in range(2)}
    pack = _pack(tmp_path / "p.idxpack", files, role="other")
    spec = f"{tmp_path}/m_OP_0..1_CL_.jsonl"

    total = _total({"manifest_filepath": spec, "indexed": True, "index_pack": str(pack)})

    assert (total.items, total.shard_lengths, total.matched_key) == (9, (4, 5), None)


def test_a_pack_that_does_not_hold_it_is_said_and_indexes_are_asked(tmp_path: Path) -> None:
    data = str(write_records(tmp_path / "a.jsonl", 4))
    pack = _pack(tmp_path / "p.idxpack", {"b.jsonl": 9})

    total = _total({"manifest_filepath": data, "indexed": True, "index_pack": str(pack)})

    assert (total.items, total.pack) == (4, str(pack))
    assert total.notes == (f"the pack {pack} does not have it",)


@pytest.mark.parametrize("content", [b"", b"IDXPACK2", b"something else", b"ARROW1"])
def test_a_pack_that_cannot_be_used_is_said(tmp_path: Path, content: bytes) -> None:
    data = str(write_records(tmp_path / "a.jsonl", 4))
    (tmp_path / "p.idxpack").write_bytes(content)

    total = _total({"manifest_filepath": data}, pack=str(tmp_path / "p.idxpack"))

    assert total.items == 4
    (note,) = total.notes
    assert note.startswith("its pack cannot be used: ")


def test_a_pack_that_is_not_there_is_said(tmp_path: Path) -> None:
    data = str(write_records(tmp_path / "a.jsonl", 4))

    total = _total({"manifest_filepath": data}, pack=str(tmp_path / "p.idxpack"))

    assert (total.items, total.missing) == (4, ())
    assert total.notes == (f"there is no pack {tmp_path}/p.idxpack",)


def test_the_callers_packs_win_and_the_default_is_the_last(tmp_path: Path) -> None:
    data = str(tmp_path / "a.jsonl")
    for number, root in enumerate(("nearest", "caller", "default")):
        (tmp_path / root).mkdir()
        _pack(tmp_path / root / "p.idxpack", {data: 1 + number})
    entry = {"manifest_filepath": data, "indexed": True, "index_pack": "p.idxpack"}
    nearest = {**entry, "index_pack_root": str(tmp_path / "nearest")}
    caller, default = str(tmp_path / "caller"), str(tmp_path / "default")

    assert _total(nearest, default_pack=default).items == 1
    assert _total(nearest, pack=caller, default_pack=default).items == 2
    assert _total(entry, default_pack=default).items == 3
    assert _total({"manifest_filepath": data}, default_pack=default).items == 3
    assert _total({"manifest_filepath": data}, pack=f"{caller}/p.idxpack").items == 2


def test_an_own_pack_says_items_and_hours_and_none_is_built(tmp_path: Path) -> None:
    manifest = nemo_corpus(tmp_path, [0.5, 1.0, 1.5])
    source = _source({"manifest_filepath": str(manifest)})
    before = sorted(tmp_path.rglob("*"))

    assert _of(source).items is None
    assert sorted(tmp_path.rglob("*")) == before
    assert source.leaf is not None
    build_packs([source.leaf])
    total = _of(source)

    assert total.items == 3
    assert total.hours == pytest.approx(3 / 3600)


def test_own_packs_that_many_sources_share_are_found_until_the_data_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_target, "MAX_SINGLE_PACKS", 2)
    manifests = [nemo_corpus(tmp_path / str(number), [0.5] * (number + 1)) for number in range(4)]
    entries = [
        {"type": "nemo", "weight": 1, "manifest_filepath": str(manifest)} for manifest in manifests
    ]
    sources = declared_sources(entries).sources
    build_packs([source.leaf for source in sources if source.leaf is not None])

    assert [total.items for total in totals_of(sources, _NOWHERE)] == [1, 2, 3, 4]
    for manifest in manifests:
        manifest.write_text(manifest.read_text() * 2)
    assert [total.items for total in totals_of(sources, _NOWHERE)] == [None] * 4


def test_sources_come_with_their_names_shares_and_places(tmp_path: Path) -> None:
    inner = tmp_path / "inner.yaml"
    entries = nemo_sources(tmp_path, [1, 1])
    inner.write_text(
        f"- {{type: nemo, corpus: deep, weight: 3, manifest_filepath: a.jsonl, hours: 7}}\n"
        f"- {{type: nemo, weight: 1, manifest_filepath: '{tmp_path}/b.jsonl'}}\n"
    )
    config = tmp_path / "config.yaml"
    config.write_text(
        "data: {train_ds: {input_cfg: [\n"
        f"  {{type: group, weight: 0.5, tags: {{task: asr}}, input_cfg: {inner}}},\n"
        f"  {{type: nemo, weight: 0.5, manifest_filepath: '{entries[0]['manifest_filepath']}'}}\n"
        "]}}\n"
    )

    deep, further, last = declared_sources(str(config)).sources

    assert [one.desired_weight for one in (deep, further, last)] == [0.375, 0.125, 0.5]
    assert [one.raw_weight for one in (deep, further, last)] == [3, 1, 0.5]
    assert deep.name == "deep"
    assert deep.hours == 7
    assert deep.tags == {"task": "asr"}
    assert (deep.first_path, deep.specs) == ("a.jsonl", {"manifest_filepath": "a.jsonl"})
    assert further.groups == ((f"{tmp_path}/b.jsonl",),)


def test_parts_of_a_config_share_the_blend(tmp_path: Path) -> None:
    first, second = nemo_sources(tmp_path, [1, 1])
    config = {
        "multi_config": True,
        "seed": 1,
        "shuffle": True,
        "sampler_fusion": "randomized_round_robin",
        "sampler_weights": {"audio": 3, "more": 1},
        "audio": {"input_cfg": [first]},
        "more": {"input_cfg": [second]},
    }

    sources = declared_sources(config).sources

    assert [one.desired_weight for one in sources] == [0.75, 0.25]
