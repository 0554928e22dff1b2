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

import pytest
import torch
import torch.distributed.checkpoint as dcp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from playhead.errors import ConfigError, DataError, PlayheadError, SourceNotFoundError
from playhead.inspect.containers import load_payload
from playhead.inspect.distributed import load_distributed
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


WRONG = {
    "empty": (lambda path: path.write_bytes(b""), ConfigError, "empty"),
    "yaml": (lambda path: path.write_text("train_ds: {batch_size: 1}\n"), ConfigError, "neither"),
    "audio": (lambda path: path.write_bytes(b"RIFF" + bytes(99)), ConfigError, "neither"),
    "another zip": (_zip_without_pickle, ConfigError, "data.pkl"),
    "half a zip": (_half, DataError, "ends early"),
    "half a pickle": (lambda p: p.write_bytes(pickle.dumps(STATE)[:-9]), DataError, "damaged"),
    "half a JSON": (lambda p: p.write_text(json.dumps(STATE)[:-2]), DataError, "no whole JSON"),
    "deep JSON": (lambda p: p.write_text("[" * 100_000), DataError, "no whole JSON"),
    "folder": (lambda p: p.mkdir(), ConfigError, "no plain file"),
    "pipe": (os.mkfifo, ConfigError, "no plain file"),
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


def test_bad_files_of_a_folder_are_passed_over_and_named(tmp_path):
    (tmp_path / "a.json").write_text("{")
    (tmp_path / "b.json").write_text('{"x": 1}')
    refused: list[str] = []
    found = list(load_payloads(tmp_path, refused=refused))
    assert [payload.content for payload in found] == [{"x": 1}]
    assert len(refused) == 1
    assert "a.json" in refused[0]
