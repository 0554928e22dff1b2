"""Training from AIStore: in every mode, with faults, kills and other ranks, as from local files."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest

import playhead
from playhead.errors import ConfigError, StorageError
from support.conversation_leaves import write_rows
from support.corpus import wav_bytes, write_tar
from support.handed_out import lines, take
from support.impatience import be_impatient
from support.jobs import history_of, last_state, wait_for_lines
from support.shar import simple_cuts, write_shar

if TYPE_CHECKING:
    from pathlib import Path

    from support.ais_emulator import AisEmulator

pytestmark = pytest.mark.e2e
pytest.importorskip("aistore")

RATE = 8000
MODES = {
    "ranges": {},
    "batch": {"USE_AIS_GET_BATCH": "true"},
    "individual": {"USE_AIS_GET_BATCH": "true", "USE_AIS_INDIVIDUAL_GETS": "true"},
}


@pytest.fixture(scope="module")
def uploaded(ais_server: AisEmulator, corpus: Path) -> str:
    return ais_server.load("speech", corpus / "tarred")


def blend(corpus: Path, folder: str, manifests: str | None = None, **options: Any) -> dict:
    """Archives of a folder beside plain files of this machine; names keep the plan the same."""
    return {
        "input_cfg": [
            {
                "name": "plain",
                "type": "nemo",
                "manifest_filepath": str(corpus / "plain/manifest.json"),
                "weight": 0.3,
            },
            {
                "name": "tarred",
                "type": "nemo_tarred",
                "manifest_filepath": f"{manifests or folder}/manifest__OP_0..2_CL_.json",
                "tarred_audio_filepaths": f"{folder}/audio__OP_0..2_CL_.tar",
                "weight": 0.7,
            },
        ],
        "sample_rate": RATE,
        "shuffle": True,
        "seed": 5,
        "batch_duration": 1.5,
        "micro_batches_per_step": 4,
        "window_draws": 60,
        "locality": "rows",
        **options,
    }


def loader_of(config: dict, workers: int = 0) -> playhead.Loader:
    return playhead.dataloader(config, rank=0, world_size=1, num_workers=workers)


@pytest.fixture(scope="module")
def by_files(corpus: Path, own_cache: None) -> list[dict[str, Any]]:
    """What the local files give."""
    return take(loader_of(blend(corpus, str(corpus / "tarred"))), 40)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("manifests", ["near", "far"])
def test_batches_are_those_of_local_files(  # noqa: PLR0917 - fixtures
    ais_server, uploaded, by_files, corpus, tmp_path, monkeypatch, mode, manifests
):
    ais_server.heal()
    be_impatient(monkeypatch, ais_server, **MODES[mode])
    monkeypatch.setenv("PLAYHEAD_CACHE", str(tmp_path))
    near = str(corpus / "tarred") if manifests == "near" else None
    config = blend(corpus, uploaded, near)
    assert take(loader_of(config), 40) == by_files
    ais_server.heal()
    assert take(loader_of(config), 40) == by_files
    counts = ais_server.counts()
    if mode == "batch" and near:
        assert counts["batch"] <= 40
        # Alone in its batch, a member needs none.
        assert counts.get("get", 0) + counts["batch"] <= 40


@pytest.mark.parametrize(
    "mode",
    ["batch", *(pytest.param(one, marks=pytest.mark.slow) for one in ("ranges", "individual"))],
)
def test_kills_and_other_ranks_change_nothing(  # noqa: PLR0917 - fixtures
    ais_server, uploaded, by_files, corpus, tmp_path, monkeypatch, mode, server
):
    config = blend(corpus, uploaded, str(corpus / "tarred"))
    expected = {(line["step"], line["slot"]): line for line in by_files}
    ais_server.heal()
    be_impatient(monkeypatch, ais_server)
    environment = {"AIS_ENDPOINT": ais_server.endpoint, **MODES[mode]}
    environment |= {"PLAYHEAD_CACHE": str(tmp_path / "cache")}
    done: list[Any] = []
    state: Path | None = None
    for (ranks, workers), kind in zip(
        [(2, 1), (1, 2), (4, 0)],
        [{"what": "cut", "at": "inside"}, {"what": "status", "status": 503}, {"what": "cut"}],
        strict=True,
    ):
        ais_server.fault(times=2, **kind)
        is_last = ranks == 4
        spec = {
            "config": config,
            "overrides": {"num_workers": workers, "info": True},
            "ranks": list(range(ranks)),
            "world_size": ranks,
            "steps": 10 if is_last else 1000,
            "state_in": None if state is None else str(state),
            "environment": environment,
        }
        job = server.start(tmp_path, spec)
        if is_last:
            job.finish(60)
        else:
            wait_for_lines(job, 12, 60)
            job.kill()
            state = last_state([job])
        done.append(job)
    found = history_of(done)
    assert {place: found.get(place) for place in expected} == expected


@pytest.mark.parametrize("mode", MODES)
def test_conversations_are_those_of_local_files(ais_server, tmp_path, monkeypatch, mode):
    rows = [
        {
            "id": f"talk{number}",
            "conversations": [
                {"from": "user", "type": "text", "value": "what is said?"},
                *(
                    {"from": "user", "type": "audio", "value": f"d/{number}{turn}.wav"}
                    | {"duration": 0.2 + 0.1 * turn}
                    for turn in range(number % 3 + 1)
                ),
                {"from": "assistant", "type": "text", "value": f"number {number}"},
            ],
        }
        for number in range(20)
    ]
    write_rows(tmp_path / "talk/talk_0.jsonl", *rows)
    members = [
        (turn["value"], wav_bytes(turn["duration"], RATE, seed=number))
        for row in rows
        for number, turn in enumerate(row["conversations"])
        if turn["type"] == "audio"
    ]
    write_tar(tmp_path / "talk/audio_0.tar", members)

    def config(folder: str) -> dict:
        return {
            "input_cfg": [
                {
                    "name": "talk",
                    "type": "multimodal_conversation",
                    "manifest_filepath": f"{folder}/talk_0.jsonl",
                    "tarred_audio_filepaths": f"{folder}/audio_0.tar",
                    "audio_locator_tag": "[audio]",
                }
            ],
            "sample_rate": RATE,
            "batch_size": 4,
            "force_finite": True,
            "shuffle": True,
            "seed": 1,
            "locality": "rows",
        }

    expected = heard(config(str(tmp_path / "talk")))
    ais_server.heal()
    far = ais_server.load("talk", tmp_path / "talk")
    be_impatient(monkeypatch, ais_server, **MODES[mode])
    assert heard(config(far)) == expected
    assert len(expected) == 20


class Conversations:
    """A dataset of samples: who says what, and every sound."""

    reads_audio = True

    def collate(self, examples, *, sample_rate, sample_keys):
        return {
            "turns": [
                (example.id, turn.role, turn.text, turn.audio.audio.source)
                if turn.audio is not None
                else (example.id, turn.role, turn.text)
                for example in examples
                for turn in example.turns
            ]
        }


def heard(config: dict) -> list[list[Any]]:
    loader = playhead.dataloader(
        config, dataset=Conversations(), rank=0, world_size=1, num_workers=0
    )
    turns = [turn for batch in loader for turn in batch["turns"]]
    return [[turn for turn in turns if turn[0] == name] for name in sorted({t[0] for t in turns})]


@pytest.mark.parametrize("mode", MODES)
def test_shars_are_those_of_local_files(ais_server, tmp_path, monkeypatch, mode):
    cuts = simple_cuts(tmp_path / "wav", [f"cut{number}" for number in range(12)])
    write_shar(tmp_path / "shar", cuts, suffix="")
    names = sorted(path.name for path in (tmp_path / "shar").iterdir())

    def config(folder: str) -> dict:
        paths = {
            field: [f"{folder}/{name}" for name in names if name.startswith(field)]
            for field in ("cuts", "recording")
        }
        entry = {"name": "shar", "type": "lhotse_shar", "shar_path": paths}
        return {
            "input_cfg": [entry],
            "sample_rate": RATE,
            "batch_size": 4,
            "force_finite": True,
            "shuffle": True,
            "seed": 1,
            "locality": "rows",
        }

    expected = lines(loader_of(config(str(tmp_path / "shar"))))
    ais_server.heal()
    far = ais_server.load("shar", tmp_path / "shar")
    be_impatient(monkeypatch, ais_server, **MODES[mode])
    assert lines(loader_of(config(far))) == expected
    assert len(expected) == 3


def test_a_cluster_that_is_gone_ends_training_with_its_name(
    ais_server, uploaded, corpus, tmp_path, monkeypatch
):
    be_impatient(monkeypatch, ais_server, **MODES["batch"])
    monkeypatch.setenv("PLAYHEAD_CACHE", str(tmp_path))
    loader = loader_of(blend(corpus, uploaded, str(corpus / "tarred")))
    batches = iter(loader)
    next(batches)
    ais_server.heal()
    ais_server.fault(what="status", status=503)
    with pytest.raises(StorageError, match=r"AIStore at http.*503.*ais://speech/audio_"):
        list(islice(batches, 10))
    ais_server.heal()


def test_a_pack_without_offsets_trains_by_batches_alone(  # noqa: PLR0917 - fixtures
    ais_server, uploaded, by_files, corpus, tmp_path, monkeypatch
):
    be_impatient(monkeypatch, ais_server, **MODES["batch"])
    manifests = tmp_path / "manifests"
    shutil.copytree(corpus / "tarred", manifests, ignore=shutil.ignore_patterns("*.tar"))
    config = blend(corpus, uploaded, str(manifests), indexed=True)
    (tmp_path / "blend.yaml").write_text(json.dumps(config))
    packed = tmp_path / "all.idxpack"
    command = [sys.executable, "-m", "playhead", "pack", "--native-tar-paths-only"]
    command += ["-o", str(packed), str(tmp_path / "blend.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    ais_server.heal()
    with pytest.warns(UserWarning, match="has no member offsets"):
        loader = loader_of({**config, "index_pack": str(packed)})
    assert take(loader, 20) == by_files[:20]
    monkeypatch.delenv("USE_AIS_GET_BATCH")
    with pytest.raises(ConfigError, match=r"no member offsets.*USE_AIS_GET_BATCH=true.*pack"):
        loader_of({**config, "index_pack": str(packed)})
