"""What files of checkpoints hold is read without torch and without their tensors."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import warnings
import zipfile
from collections import OrderedDict
from pathlib import Path

import pytest
import torch
import torch.distributed.checkpoint as dcp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from playhead.errors import ConfigError, DataError, PlayheadError, SourceNotFoundError
from playhead.inspect.containers import load_payload
from playhead.inspect.distributed import METADATA, load_distributed
from playhead.inspect.finding import candidates, load_payloads
from playhead.inspect.inert import Tensor

STATE = {"loader": {"step": 3, "leaves": {"a.b": [0, 1, 2, "f"]}}, "epoch": 1}


class Evil:
    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return os.system, (f"touch {self.mark}",)


@pytest.mark.parametrize("new", [True, False], ids=["zip", "legacy"])
def test_torch_files_give_containers_and_shapes(tmp_path, new):
    weights = OrderedDict(
        w=torch.zeros(3, 4, dtype=torch.bfloat16), b=torch.nn.Parameter(torch.zeros(2))
    )
    content = {
        **STATE,
        "weights": weights,
        "size": torch.Size([2, 3]),
        "model": torch.nn.Linear(2, 2),
    }
    torch.save(content, tmp_path / "x.pt", _use_new_zipfile_serialization=new)
    found = load_payload(tmp_path / "x.pt").content
    assert found["loader"] == STATE["loader"]
    assert found["size"] == (2, 3)
    assert found["weights"] == {"w": Tensor("bfloat16", (3, 4)), "b": Tensor("float32", (2,))}
    assert dict(found["model"])["_parameters"]["weight"] == Tensor("float32", (2, 2))


@pytest.mark.parametrize("new", [True, False], ids=["zip", "legacy"])
def test_nothing_in_a_torch_file_runs(tmp_path, new):
    mark = tmp_path / "ran"
    torch.save({**STATE, "evil": Evil(mark)}, tmp_path / "x.pt", _use_new_zipfile_serialization=new)
    assert load_payload(tmp_path / "x.pt").content["epoch"] == 1
    assert not mark.exists()


def test_full_loading_is_asked_for_and_said(tmp_path):
    path = tmp_path / "x.pkl"
    torch.save({"text": "x" * 4096, **STATE}, path)
    with pytest.raises(ConfigError, match=r"MiB are read at most.*--max-full-load-mb"):
        load_payload(path, most_full_load_bytes=1024)
    payload = load_payload(path, most_full_load_bytes=1024, allow_full_load=True)
    assert payload.content["epoch"] == 1
    assert "runs what stands in it" in payload.note


def test_json_and_plain_pickles_are_read(tmp_path):
    (tmp_path / "x.json").write_text(json.dumps(STATE))
    (tmp_path / "x.pkl").write_bytes(pickle.dumps(STATE, 0))
    for name in ("x.json", "x.pkl"):
        assert load_payload(tmp_path / name).content == STATE


def _zip_without_pickle(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.npy", b"x")


def _half(path):
    torch.save({**STATE, "w": torch.zeros(999)}, path)
    path.write_bytes(path.read_bytes()[:2000])


def _compressed(method):
    """An archive whose one member is compressed in a way that torch never uses, and damaged."""

    def make(path):
        with zipfile.ZipFile(path, "w", method) as archive:
            archive.writestr("x/data.pkl", os.urandom(4000))
        data = bytearray(path.read_bytes())
        data[64:400] = b"\xff" * 336
        path.write_bytes(data)

    return make


WRONG = {
    "deflated": (_compressed(zipfile.ZIP_DEFLATED), DataError, "not whole"),
    "bzip2": (_compressed(zipfile.ZIP_BZIP2), DataError, "not whole"),
    "lzma": (_compressed(zipfile.ZIP_LZMA), DataError, "not whole"),
    "link to itself": (lambda p: p.symlink_to(p), ConfigError, "cannot be read"),
    "endless": (lambda p: p.symlink_to("/dev/zero"), ConfigError, "not a regular file"),
    "no memory": (lambda p: p.symlink_to("/proc/self/mem"), ConfigError, "cannot be read"),
    "empty": (lambda path: path.write_bytes(b""), ConfigError, "empty"),
    "yaml": (lambda path: path.write_text("train_ds: {batch_size: 1}\n"), ConfigError, "neither"),
    "audio": (lambda path: path.write_bytes(b"RIFF" + bytes(99)), ConfigError, "neither"),
    "another zip": (_zip_without_pickle, ConfigError, "data.pkl"),
    "half a zip": (_half, DataError, "ends early"),
    "half a pickle": (lambda p: p.write_bytes(pickle.dumps(STATE)[:-9]), DataError, "damaged"),
    "half a JSON": (lambda p: p.write_text(json.dumps(STATE)[:-2]), DataError, "not complete JSON"),
    "deep JSON": (lambda p: p.write_text("[" * 100_000), DataError, "not complete JSON"),
    "folder": (lambda p: p.mkdir(), ConfigError, "not a regular file"),
    "pipe": (os.mkfifo, ConfigError, "not a regular file"),
    "nothing": (lambda p: None, SourceNotFoundError, "no such file"),
    "safetensors": (
        lambda p: p.write_bytes((16).to_bytes(8, "little") + b'{"a":{"b":1}}   '),
        ConfigError,
        "tensors alone",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_checkpoint_is_refused_in_a_line(tmp_path, name):
    make, kind, said = WRONG[name]
    make(tmp_path / "x")
    with pytest.raises(kind, match=said) as refused:
        load_payload(tmp_path / "x")
    assert str(tmp_path / "x") in str(refused.value)
    assert "\n" not in str(refused.value)


def test_what_can_be_no_path_is_refused():
    with pytest.raises(ConfigError, match="no path"):
        load_payload("a\0b")


def test_json_may_begin_with_the_mark_of_its_encoding(tmp_path):
    (tmp_path / "x").write_text(json.dumps(STATE), encoding="utf-8-sig")
    assert load_payload(tmp_path / "x").content == STATE


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_damaged_torch_files_give_one_error_or_are_read(tmp_path, data):
    path = tmp_path / "x.pt"
    torch.save({**STATE, "w": torch.zeros(4)}, path)
    damaged = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(0, 6))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(damaged[: data.draw(st.integers(0, len(damaged)))])
    said = None
    try:
        load_payload(path)
    except PlayheadError as error:
        said = str(error)
    assert said is None or "\n" not in said


def test_a_folder_of_torch_distributed_is_put_together_again(tmp_path):
    state = {**STATE, "model": torch.nn.Linear(2, 2).state_dict(), "chain": [[{}, 1, 0]]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dcp.save(state, checkpoint_id=str(tmp_path / "x"))
    found = load_distributed(tmp_path / "x").content
    assert {name: found[name] for name in STATE} == STATE
    assert found["chain"] == [[{}, 1, 0]]
    assert "model" not in found


DISTRIBUTED = {
    "pipe": (os.mkfifo, ConfigError, "not a regular file"),
    "endless": (lambda path: path.symlink_to("/dev/zero"), ConfigError, "not a regular file"),
    "huge": (lambda path: os.truncate(path, 20 << 30), ConfigError, "read at most"),
    "empty": (lambda path: None, DataError, "damaged"),
    "a list": (lambda path: path.write_bytes(pickle.dumps([1])), DataError, "damaged"),
    "nothing": (lambda path: path.unlink(), SourceNotFoundError, "no such file"),
}


@pytest.mark.parametrize("name", DISTRIBUTED)
def test_metadata_that_is_none_is_refused_in_a_line(tmp_path, name):
    make, kind, said = DISTRIBUTED[name]
    path = tmp_path / METADATA
    if name not in ("pipe", "endless"):
        path.touch()
    make(path)
    with pytest.raises(kind, match=said) as refused:
        load_distributed(tmp_path, most_full_load_bytes=1 << 20)
    assert "\n" not in str(refused.value)


def test_data_of_a_distributed_folder_that_are_a_pipe_are_not_waited_for(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dcp.save(dict(STATE), checkpoint_id=str(tmp_path))
    for data in tmp_path.glob("*.distcp"):
        data.unlink()
        os.mkfifo(data)
    with pytest.raises(PlayheadError, match="not a regular file"):
        load_distributed(tmp_path)


def test_a_huge_checkpoint_is_looked_at_without_torch(tmp_path):
    """Five gigabytes of tensors, of which not a byte is read."""
    small, huge = tmp_path / "small.pt", tmp_path / "huge.pt"
    torch.save(STATE, small)
    with zipfile.ZipFile(small) as old:
        pickled = old.read(next(name for name in old.namelist() if name.endswith("data.pkl")))
    with huge.open("wb") as file, zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", pickled)
        file.seek(5 << 30, os.SEEK_CUR)
        archive.start_dir = file.tell()
    code = (
        "import sys; from playhead.inspect.containers import load_payload;"
        f"print(load_payload({str(huge)!r}).content['epoch'], 'torch' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["1", "False"]


def test_files_of_a_folder_come_in_the_order_of_the_guides(tmp_path):
    run = tmp_path / "run"
    for name in (
        "checkpoints/step=40.ckpt",
        "checkpoints/step-40-last.ckpt",
        "checkpoints/step=41.ckpt",
        "eval-step-40/b.ckpt",
        "eval-step-40/a.ckpt",
        "eval-step-40/meta.pt",
        "eval-step-40/state.json",
        "eval-step-40/deep/er/meta.pt",
        "eval-step-40/notes.txt",
    ):
        (run / name).parent.mkdir(parents=True, exist_ok=True)
        (run / name).write_text("{}")
    found = [str(path.relative_to(run)) for path in candidates(run / "eval-step-40")]
    assert found == [
        "checkpoints/step=40.ckpt",
        "checkpoints/step-40-last.ckpt",
        "eval-step-40/meta.pt",
        "eval-step-40/a.ckpt",
        "eval-step-40/b.ckpt",
        "eval-step-40/state.json",
        "eval-step-40/deep/er/meta.pt",
    ]


def test_a_folder_below_that_may_not_be_read_hides_no_other(tmp_path, monkeypatch):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.json").write_text(json.dumps(STATE))
    listed = Path.iterdir

    def iterdir(path):
        if path.name == "a":
            raise PermissionError(13, "Permission denied")
        return listed(path)

    monkeypatch.setattr(Path, "iterdir", iterdir)
    refused: list[str] = []
    (payload,) = load_payloads(tmp_path, refused=refused)
    assert payload.file == str(tmp_path / "b" / "x.json")
    assert refused == [f"the folder {tmp_path / 'a'} cannot be read: Permission denied"]


def test_bad_files_of_a_folder_are_passed_over_and_named(tmp_path):
    (tmp_path / "a.json").write_text("{")
    (tmp_path / "b.json").write_text('{"x": 1}')
    refused: list[str] = []
    found = list(load_payloads(tmp_path, refused=refused))
    assert [payload.content for payload in found] == [{"x": 1}]
    assert len(refused) == 1
    assert "a.json" in refused[0]
