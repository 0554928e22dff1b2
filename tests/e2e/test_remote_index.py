"""`playhead index` of data on real servers: the indexes and packs of the same files on a disk."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from playhead.blend import read_blend
from playhead.index.build import open_leaves
from support import servers
from support.corpus import wav_bytes, write_jsonl, write_tar
from support.fault_proxy import FaultProxy, Faults
from support.parquet import speech_columns, write_table
from support.shar import simple_cuts, write_shar
from support.talk_cuts import FORMS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.servers import S3Server

pytestmark = pytest.mark.e2e

TALK = ("share_gpt_webdataset", "multimodal_conversation, tars", "s2s_as_conversation")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of each kind."""
    folder = tmp_path_factory.mktemp("data")
    for shard in range(2):
        names = [f"{shard}-{number}.wav" for number in range(6)]
        members = [(name, wav_bytes(0.1 + 0.1 * shard, 8000)) for name in names]
        write_tar(folder / f"tarred/audio_{shard}.tar", members)
        rows = [{"audio_filepath": name, "duration": 0.1 + 0.1 * shard} for name in names]
        write_jsonl(folder / f"tarred/manifest_{shard}.json", rows)
    for number in range(6):
        path = folder / f"plain/wav/{number}.wav"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(wav_bytes(0.1 + number / 10, 8000))
    plain = [{"audio_filepath": f"wav/{number}.wav", "text": "x"} for number in range(6)]
    write_jsonl(folder / "plain/manifest.json", plain)
    write_shar(folder / "shar", simple_cuts(folder / "cuts", list("abcde")), shard_size=2)
    (folder / "tables").mkdir()
    write_table(folder / "tables/t.parquet", speech_columns(8))
    return folder


@pytest.fixture(scope="module")
def entries(data: Path) -> list[dict[str, Any]]:
    """What reads it; paths are relative."""
    talk = [FORMS[name].write(data / f"talk-{number}") for number, name in enumerate(TALK)]
    given = [
        {
            "type": "nemo_tarred",
            "manifest_filepath": f"{data}/tarred/manifest__OP_0..1_CL_.json",
            "tarred_audio_filepaths": f"{data}/tarred/audio__OP_0..1_CL_.tar",
        },
        {"type": "nemo", "manifest_filepath": f"{data}/plain/manifest.json"},
        {"type": "lhotse_shar", "shar_path": f"{data}/shar"},
        {"type": "parquet", "manifest_filepath": f"{data}/tables/t.parquet"},
        *talk,
    ]
    return json.loads(json.dumps(given).replace(f"{data}/", "ROOT/"))


def config_of(entries: list[dict[str, Any]], root: object, path: Path) -> Path:
    placed = json.loads(json.dumps(entries).replace("ROOT/", f"{root}/"))
    path.write_text(yaml.safe_dump({"input_cfg": placed, "token_equivalent_duration": 0.08}))
    return path


def index(config: Path, root: object, environment: dict[str, str], *more: str) -> Any:
    """The exit code of the command, and its summary."""
    command = [sys.executable, "-m", "playhead", "index", str(config), "--json", *more]
    command += ["--indexes-root", str(root)]
    done = subprocess.run(
        command,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, json.loads(done.stdout or "{}"), done.stderr


def packs_built(summary: dict[str, Any]) -> int:
    return [pack["status"] for pack in summary["packs"]].count("built")


def indexes_under(root: Path, above: str) -> dict[str, bytes]:
    files = root.rglob("*.idx")
    return {str(path.relative_to(root / above)): path.read_bytes() for path in files}


def columns_of(config: Path, packs: Path) -> list[Any]:
    leaves = read_blend({**yaml.safe_load(config.read_text()), "batch_size": 1}).leaves
    opened = open_leaves(leaves, pack_dir=str(packs / "playhead"))
    return [{name: c.tolist() for name, c in pack.columns().items()} for pack in opened]


@pytest.fixture(scope="module")
def local(data: Path, entries: list[dict[str, Any]], tmp_path_factory) -> tuple[dict, list]:
    """The indexes and the columns of the files."""
    folder = tmp_path_factory.mktemp("local")
    config = config_of(entries, data, folder / "blend.yaml")
    code, summary, said = index(config, folder / "root", {})
    assert code == 0, said
    assert summary["failures"] == []
    above = str(data).lstrip("/")
    return indexes_under(folder / "root", above), columns_of(config, folder / "root")


def test_on_s3_it_finds_what_is_in_files(seaweed: S3Server, data, entries, local, tmp_path):
    seaweed.put_folder("indexed", data)
    config = config_of(entries, "s3://indexed", tmp_path / "blend.yaml")
    code, summary, said = index(config, tmp_path / "root", seaweed.environment())
    assert code == 0, said
    assert summary["failures"] == []
    assert indexes_under(tmp_path / "root", "indexed") == local[0]
    with pytest.MonkeyPatch.context() as patch:
        servers.use(patch, seaweed.environment())
        assert columns_of(config, tmp_path / "root") == local[1]
    # Nothing is built twice; an object that changes is, and its indexes with it.
    code, summary, _ = index(config, tmp_path / "root", seaweed.environment())
    assert (code, summary["built"], packs_built(summary)) == (0, 0, 0)
    manifest = (data / "plain/manifest.json").read_bytes()
    seaweed.put("indexed", "plain/manifest.json", manifest.splitlines(keepends=True)[0])
    code, summary, _ = index(config, tmp_path / "root", seaweed.environment())
    assert (code, summary["built"], packs_built(summary)) == (0, 1, 1)


def test_indexes_may_lie_on_s3(seaweed: S3Server, data, entries, local, tmp_path):
    seaweed.put_folder("beside", data)
    config = config_of(entries[:1], "s3://beside", tmp_path / "blend.yaml")
    environment = seaweed.environment()
    code, _, said = index(config, "s3://indexes/root", environment)
    assert code == 1
    assert "the bucket does not exist" in said.lower()
    seaweed.put("indexes", "root/other", b"")
    code, summary, said = index(config, "s3://indexes/root", environment)
    assert (code, summary["built"]) == (0, 4), said
    assert "no packs are built" in said.lower()
    assert "playhead prefetch" in said
    with pytest.MonkeyPatch.context() as patch:
        servers.use(patch, environment)
        from playhead.storage import access

        for name in ("manifest_0.json", "manifest_1.json", "audio_0.tar", "audio_1.tar"):
            found = b"".join(access.stream(f"s3://indexes/root/beside/tarred/{name}.idx"))
            assert found == local[0][f"tarred/{name}.idx"]
    assert index(config, "s3://indexes/root", environment)[1]["built"] == 0


def test_a_dead_store_is_waited_for_once(entries, tmp_path):
    (port,) = servers.free_ports(1)
    server = f"http://127.0.0.1:{port}"
    environment = {
        "AWS_ENDPOINT_URL": server,
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "b",
        "PLAYHEAD_STORAGE_TRIES": "3",
    }
    named = [one for one in entries if one["type"] == "nemo_tarred"][:1]
    config = config_of(named, "s3://dead", tmp_path / "blend.yaml")
    code, summary, said = index(config, tmp_path / "root", environment)
    assert code == 1
    errors = [one["error"] for one in summary["failures"]]
    assert len(errors) > 3
    assert all(server in error for error in errors)
    assert all("a moment ago either" in error for error in errors), said
    assert "more, for the same reason" in said


@pytest.fixture
def web(data: Path, tmp_path: Path) -> Iterator[str]:
    with servers.caddy(data, logs=tmp_path / "logs") as server:
        yield server.url


def test_on_a_web_server_files_are_named_one_by_one(web, entries, local, tmp_path):
    # It has no listings: what names a folder is an error by itself.
    config = config_of(entries, web, tmp_path / "blend.yaml")
    code, summary, said = index(config, tmp_path / "root", {})
    assert code != 0
    assert f"{web}/shar" in said
    named = [one for one in entries if one["type"] != "lhotse_shar"]
    config = config_of(named, web, tmp_path / "blend.yaml")
    code, summary, said = index(config, tmp_path / "root", {})
    assert code == 0, said
    assert summary["failures"] == []
    found = indexes_under(tmp_path / "root", web.partition("://")[2])
    assert found.items() <= local[0].items()
    assert len(found) > 8
    expected = [pack for one, pack in zip(entries, local[1], strict=True) if one in named]
    assert columns_of(config, tmp_path / "root") == expected


@pytest.mark.slow
def test_a_server_that_answers_ranges_wrongly_makes_no_wrong_index(data, entries, local, tmp_path):
    with servers.rclone_s3(tmp_path / "served", logs=tmp_path / "logs") as server:
        server.put_folder("odd", data)
        some = [entries[0], entries[2]]
        config = config_of(some, "s3://odd", tmp_path / "blend.yaml")
        code, _, said = index(config, tmp_path / "root", server.environment())
        assert code == 0, said
        with pytest.MonkeyPatch.context() as patch:
            servers.use(patch, server.environment())
            found = columns_of(config, tmp_path / "root")
    assert indexes_under(tmp_path / "root", "odd").items() <= local[0].items()
    assert found == [local[1][0], local[1][2]]


@pytest.mark.slow
def test_faults_that_pass_change_nothing(seaweed: S3Server, data, entries, local, tmp_path):
    seaweed.put_folder("shaky", data)
    config = config_of(entries, "s3://shaky", tmp_path / "blend.yaml")
    kinds = ("reset", "reset_inside", "cut", "short", "long", "500", "503")
    with FaultProxy(seaweed.port) as proxy:
        proxy.set(Faults(share=0.2, kinds=kinds, tries=2, seed=3))
        environment = seaweed.environment(proxy.url)
        code, summary, said = index(config, tmp_path / "root", environment)
        assert proxy.seen().faults.total() > 5
    assert code == 0, said
    assert summary["failures"] == []
    assert indexes_under(tmp_path / "root", "shaky") == local[0]


def test_what_is_missing_or_cut_short_is_named(seaweed: S3Server, data, entries, tmp_path):
    seaweed.put_folder("broken", data)
    whole = (data / "tarred/audio_0.tar").read_bytes()
    seaweed.put("broken", "tarred/audio_0.tar", whole[:1000])
    config = config_of(entries[:1], "s3://broken", tmp_path / "blend.yaml")
    code, _, said = index(config, tmp_path / "root", seaweed.environment())
    assert code == 1
    assert "cut short" in said
    assert "s3://broken/tarred/audio_0.tar" in said
    config = config_of(entries[:1], "s3://nowhere", tmp_path / "blend.yaml")
    code, _, said = index(config, tmp_path / "root", seaweed.environment())
    assert code in (1, 2)
    assert "s3://nowhere/tarred/manifest_0.json" in said
    config = tmp_path / "gone.jsonl"
    code, _, said = index("s3://broken/gone.jsonl", tmp_path / "root", seaweed.environment())
    assert code == 2
    assert "s3://broken/gone.jsonl" in said
