from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.stores import MemoryStore, plugged_in

from playhead.errors import ConfigError, SourceNotFoundError
from playhead.formats.share_gpt_shards import shards_of
from playhead.storage import access

if TYPE_CHECKING:
    from pathlib import Path

FORMAT = {"format": "nemo-wds-shard-catalog", "version": 1}


def tars(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def found(folder: Path) -> list[str]:
    return [path.removeprefix(f"{folder}/") for path in shards_of(str(folder), "talk")]


def urls(*names: str) -> list[dict[str, Any]]:
    return [{"url": name, "nsamples": 5} for name in names]


def wids(folder: Path, *names: str) -> None:
    (folder / "wids-meta.json").write_text(json.dumps({"shardlist": urls(*names)}))


def split(folder: Path, text: str) -> None:
    (folder / ".nv-meta").mkdir()
    (folder / ".nv-meta/split.yaml").write_text(text)


def catalog(folder: Path, *names: str, called: str = "wds-catalog.json", **more: Any) -> Path:
    path = folder / called
    path.write_text(json.dumps({**FORMAT, "shards": urls(*names), **more}))
    return path


def test_all_tars_below_a_folder_sorted(tmp_path: Path):
    tars(tmp_path, "b.tar", "a/1.tar", "a/0/x.tar", "c.tar.idx", "d.tar.gz", "e.txt")
    (tmp_path / "f.tar").mkdir()
    assert found(tmp_path) == ["a/0/x.tar", "a/1.tar", "b.tar"]


def test_a_list_in_its_order(tmp_path: Path):
    tars(tmp_path, "a.tar", "b.tar", "c.tar")
    wids(tmp_path, "b.tar", "d/x_{0..1}.tar", "a.tar")
    assert found(tmp_path) == ["b.tar", "d/x_0.tar", "d/x_1.tar", "a.tar"]


def test_a_split(tmp_path: Path):
    split(
        tmp_path,
        "exclude:\n- '*_1.tar'\n- 'x/{a,b}.tar'\n"
        "split_parts:\n  train:\n  - s_{0..2}.tar\n  - x/a.tar\n  - x/c.tar\n  val: [v.tar]\n",
    )
    assert found(tmp_path) == ["s_0.tar", "s_2.tar", "x/c.tar"]


def test_a_split_without_exclusions(tmp_path: Path):
    split(tmp_path, "split_parts:\n  train: [b.tar, a.tar]\nexclude:\n")
    assert found(tmp_path) == ["b.tar", "a.tar"]


def test_a_catalog_by_name_or_path(tmp_path: Path):
    catalog(tmp_path, "b.tar", "a.tar")
    assert found(tmp_path) == ["b.tar", "a.tar"]
    mine = catalog(tmp_path, "/other/c.tar", "a.tar", called="mine.wds-catalog.json")
    assert shards_of(str(mine), "talk") == ["/other/c.tar", str(tmp_path / "a.tar")]


def test_which_list_wins(tmp_path: Path):
    tars(tmp_path, "scan.tar")
    catalog(tmp_path, "catalog.tar")
    assert found(tmp_path) == ["catalog.tar"]
    split(tmp_path, "split_parts:\n  train: [split.tar]\n")
    assert found(tmp_path) == ["split.tar"]
    wids(tmp_path, "wids.tar")
    assert found(tmp_path) == ["wids.tar"]


def test_folders_without_shards(tmp_path: Path):
    with pytest.raises(SourceNotFoundError, match="holds no tars"):
        found(tmp_path)
    with pytest.raises(SourceNotFoundError, match="no such folder"):
        found(tmp_path / "other")
    with pytest.raises(SourceNotFoundError, match="no such folder"):
        shards_of(str(tmp_path / "mine.wds-catalog.json"), "talk")


def test_a_folder_on_a_store_has_the_shards_that_it_has_on_a_disk(tmp_path: Path):
    root = "s3://bucket/talk"
    for name in ("b/x.tar", "a.tar", "c.jsonl"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")

    def split_list(folder: Path, *names: str) -> None:
        split(folder, f"split_parts: {{train: [{', '.join(names)}]}}")

    for make in (lambda *_: None, catalog, split_list, wids):
        make(tmp_path, "b/x.tar", "./a.tar")
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        store = {f"{root}/{path.relative_to(tmp_path)}": path.read_bytes() for path in files}
        with plugged_in(MemoryStore(store)):
            assert [uri.removeprefix(f"{root}/") for uri in shards_of(root, "talk")] == found(
                tmp_path
            )
            assert shards_of(f"{root}/", "talk") == shards_of(root, "talk")


def test_shards_may_be_listed_by_their_url():
    listed = b'{"shardlist": [{"url": "s3://bucket/talk/a.tar"}, {"url": "%s"}]}'
    objects = {
        "s3://bucket/talk/wids-meta.json": listed % b"b.tar",
        "s3://bucket/other/wids-meta.json": listed % b"b.tar",
        "s3://bucket/third/wids-meta.json": listed % b"/b.tar",
    }
    with plugged_in(MemoryStore(objects)):
        assert shards_of("s3://bucket/talk", "talk") == [
            "s3://bucket/talk/a.tar",
            "s3://bucket/talk/b.tar",
        ]
        for folder in ("other", "third"):
            with pytest.raises(ConfigError, match="is not in the folder"):
                shards_of(f"s3://bucket/{folder}", "talk")
        with pytest.raises(SourceNotFoundError, match="no tars"):
            shards_of("s3://bucket/none", "talk")


def test_shards_on_a_store_are_not_those_of_a_folder_of_a_disk(tmp_path: Path):
    wids(tmp_path, "a.tar", "s3://bucket/b.tar")
    with pytest.raises(ConfigError, match="is not in the folder"):
        found(tmp_path)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "not valid JSON"),
        ("[]", "no list of shards"),
        ("{}", "no shards are listed|without its path"),
        ('{"shardlist": []}', "no shards are listed"),
        ('{"shardlist": [5]}', "without its path"),
        ('{"shardlist": [{"url": ""}]}', "without its path"),
        ('{"shardlist": [{"url": 5}]}', "without its path"),
        ('{"shardlist": ["a.tar"]}', "without its path"),
        ('{"shardlist": [{"url": "../a.tar"}]}', "is not in the folder"),
        ('{"shardlist": [{"url": "a.tar"}, {"url": "./a.tar"}]}', "is listed twice"),
        ('{"shardlist": [{"url": "a.{tar,tar}"}]}', "is listed twice"),
        ('{"shardlist": [{"url": "a.zip"}]}', r"ends neither with \.tar"),
        ('{"shardlist": "\xff"}', "without its path|no shards"),
    ],
)
def test_lists_that_cannot_be_used(tmp_path: Path, text: str, says: str):
    (tmp_path / "wids-meta.json").write_text(text)
    with pytest.raises(ConfigError, match=f"(?i){says}"):
        found(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "[",
        "- a.tar",
        "split_parts: [a.tar]",
        "split_parts: {val: [a.tar]}",
        "split_parts: {train: a.tar}",
        "split_parts: {train: [5]}",
        "split_parts: {train: []}",
        "split_parts: {train: [a.tar]}\nexclude: a.tar",
        "split_parts: {train: [a.tar]}\nexclude: ['*']",
    ],
)
def test_splits_that_cannot_be_used(tmp_path: Path, text: str):
    tars(tmp_path, "a.tar")
    split(tmp_path, text)
    with pytest.raises(ConfigError, match=r"split\.yaml"):
        found(tmp_path)


@pytest.mark.parametrize("more", [{"format": "other"}, {"version": 2}, {"version": None}])
def test_catalogs_of_another_format(tmp_path: Path, more: dict[str, Any]):
    catalog(tmp_path, "a.tar", **more)
    with pytest.raises(ConfigError, match=f"(?i)the catalog has .*{next(iter(more.values()))}"):
        found(tmp_path)


@pytest.mark.parametrize("which", ["wids", "split", "catalog"])
def test_a_list_that_cannot_be_read_is_named(tmp_path, monkeypatch, which):
    {"wids": wids, "split": lambda folder: split(folder, ""), "catalog": catalog}[which](tmp_path)

    def refused(uri):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(access, "stream", refused)
    with pytest.raises(ConfigError, match=r"cannot be read: Permission denied.*Give the right"):
        found(tmp_path)
