"""The example of a type of one's own: through workers of every kind, stopped and gone on with."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import soundfile as sf

import playhead
from playhead.errors import ManifestError
from support.corpus import wav_bytes
from support.handed_out import ids_of, lines, resumed, take

if TYPE_CHECKING:
    from types import ModuleType

pytestmark = pytest.mark.e2e

EXAMPLE = Path(__file__).parents[2] / "examples/own_type.py"
NUM_ROWS = 40


@pytest.fixture(scope="module")
def own_type() -> ModuleType:
    """The example as a module that workers can import."""
    spec = importlib.util.spec_from_file_location("own_type", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "own_type", module)
        patch.syspath_prepend(str(EXAMPLE.parent))
        spec.loader.exec_module(module)
        yield module


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`list_{0..3}.tsv` of ten rows each, `all.tsv`, and the wavs in `audio`."""
    folder = tmp_path_factory.mktemp("tsv")
    (folder / "audio").mkdir()
    rows = []
    for number in range(NUM_ROWS):
        seconds = 0.2 + number * 37 % 40 / 100
        name = f"audio/ä {number:02d}.wav"
        (folder / name).write_bytes(wav_bytes(seconds, 8000, seed=number))
        rows.append(f"{name}\t{sf.info(folder / name).duration}\tsaid {number}\n")
    for number in range(4):
        (folder / f"list_{number}.tsv").write_text("".join(rows[number * 10 : number * 10 + 10]))
    (folder / "all.tsv").write_text("".join(rows))
    return folder


def loader(corpus: Path, files: str = "list_{0..3}.tsv", **options: Any) -> playhead.Loader:
    entry = {"type": "tsv", "list_path": str(corpus / files), "tags": {"mode": "asr"}}
    config = {
        "input_cfg": [entry],
        "batch_duration": 1.5,
        "shuffle": True,
        "seed": 3,
        "force_finite": True,
        "sample_rate": 8000,
        "micro_batches_per_step": 2,
        "num_workers": 0,
    }
    place = {"rank": options.pop("rank", 0), "world_size": options.pop("world_size", 1)}
    return playhead.dataloader({**config, **options}, **place)


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_the_script_runs_with_workers_of_every_kind(corpus, tmp_path, context):
    def run(*arguments: str) -> list[str]:
        done = subprocess.run(
            [sys.executable, str(EXAMPLE), str(corpus / "all.tsv"), *arguments],
            env={**os.environ, "PLAYHEAD_CACHE": str(tmp_path), "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout.splitlines()

    printed = run("--start", context)
    assert printed == run("--workers", "0")
    assert sum(line.startswith("first") for line in printed) == 2
    names = [name for line in printed for name in line.split()[1:] if name.endswith(".wav")]
    assert sorted(names) == [f"{number:02d}.wav" for number in range(NUM_ROWS)]


def test_samples_are_what_the_lists_say(own_type, corpus):
    whole = loader(corpus)
    seen = {}
    for batch in whole:
        parts = zip(batch["ids"], batch["texts"], batch["audio"], batch["audio_lens"], strict=True)
        for name, text, audio, length in parts:
            seen[name] = (text, audio[: int(length)].numpy())
    assert len(seen) == NUM_ROWS
    for name, (text, audio) in seen.items():
        expected, _ = sf.read(corpus / name, dtype="float32")
        assert text == f"said {int(Path(name).stem.split()[1])}"
        assert audio.tobytes() == expected.tobytes()


def test_it_goes_on_from_every_place_with_other_workers_and_ranks(own_type, corpus):
    whole = lines(loader(corpus))
    assert len(set(ids_of(whole))) == NUM_ROWS
    for batches in range(0, len(whole), 4):
        one = loader(corpus)
        prefix = take(one, batches)
        state = one.state_dict()
        workers = {"num_workers": 2, "multiprocessing_context": "fork"} if batches == 4 else {}
        rest = [
            line
            for rank in range(2)
            for line in lines(resumed(loader(corpus, rank=rank, world_size=2, **workers), state))
        ]
        rest.sort(key=lambda line: (line["step"], line["slot"]))
        assert prefix + rest == whole


def test_a_type_in_a_module_reaches_spawned_workers(own_type, corpus):
    options = {"num_workers": 2, "multiprocessing_context": "spawn"}
    assert lines(loader(corpus, **options)) == lines(loader(corpus))


def test_own_options_and_mistakes(own_type, corpus, tmp_path):
    rows = (corpus / "list_0.tsv").read_text().replace("audio/", "")
    (tmp_path / "other.tsv").write_text(rows)
    entry = {"type": "tsv", "list_path": str(tmp_path / "other.tsv")}
    config = {"batch_duration": 3, "force_finite": True, "num_workers": 0, "sample_rate": 8000}
    read = playhead.dataloader([{**entry, "root": str(corpus / "audio")}], **config)
    assert sum(len(batch["ids"]) for batch in read) == 10
    with pytest.raises(playhead.ConfigError, match="rood"):
        playhead.dataloader([{**entry, "rood": "x"}], strict=True, **config)
    (tmp_path / "bad.tsv").write_text(rows + "no tabs\n")
    with pytest.raises(ManifestError, match=r"not path, seconds and text.*bad\.tsv:11, byte "):
        playhead.dataloader([{**entry, "list_path": str(tmp_path / "bad.tsv")}], **config)
    assert json.dumps(read.state_dict())


def test_the_commands_import_a_type_of_ones_own(tmp_path: Path):
    """Indexed by several processes and checked, from a config that names the type."""
    for number in range(2):
        lines = []
        for n in range(4):
            (tmp_path / f"{number}-{n}.wav").write_bytes(wav_bytes(0.2 + n / 10, seed=n))
            lines.append(f"{number}-{n}.wav\t{0.2 + n / 10}\ttext {n}\n")
        (tmp_path / f"{number}.tsv").write_text("".join(lines))
    entries = [{"type": "tsv", "list_path": str(tmp_path / f"{n}.tsv")} for n in range(2)]
    (tmp_path / "blend.yaml").write_text(json.dumps({"input_cfg": entries, "batch_size": 2}))
    environment = {
        **os.environ,
        "PYTHONPATH": str(EXAMPLE.parent),
        "PLAYHEAD_CACHE": str(tmp_path / "cache"),
    }

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "playhead", *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )

    unknown = run("index", "blend.yaml")
    assert "unknown type 'tsv'" in unknown.stderr
    indexed = run("index", "blend.yaml", "--import", "own_type", "--workers", "2", "--json")
    assert indexed.returncode == 0, indexed.stderr
    assert "Packs: 2 built" in indexed.stderr
    checked = run("check", "blend.yaml", "--import", "own_type", "--repeatable")
    assert checked.returncode == 0, checked.stderr
    missing = run("index", "blend.yaml", "--import", "no_such_module")
    assert missing.returncode == 2
    assert "there is no module no_such_module (--import)" in missing.stderr.lower()
    assert "Traceback" not in missing.stderr
