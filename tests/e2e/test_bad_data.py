"""Bad audio in a training run: what is left out, what stands in, what is excluded for good."""

from __future__ import annotations

import json
import shutil
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest
import torch
from lhotse.dataset.collation import collate_audio

import playhead
from playhead.blend import read_blend
from playhead.cli import main
from playhead.datasets import Ids
from playhead.errors import AudioError, ManifestError
from playhead.index.build import build_packs
from support.corpus import nemo_corpus, tarred_corpus, wav_bytes, write_jsonl, write_tar
from support.damage import DAMAGE
from support.handed_out import first, lines, resumed, take

if TYPE_CHECKING:
    from pathlib import Path

    from lhotse import CutSet

pytestmark = pytest.mark.e2e

SECONDS = [round(0.7 + (i * 37 % 89) / 200, 3) for i in range(48)]
BAD = [3, 4, 17, 30, 41]


class Recognition(torch.utils.data.Dataset):
    """A dataset of Lhotse's kind; each sample's waveform can be told from its row."""

    def __getitem__(self, cuts: CutSet) -> dict[str, Any]:
        audio, lengths = collate_audio(cuts)
        return {"audio": audio, "audio_lens": lengths, "ids": [cut.id for cut in cuts]}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bad-data")
    nemo_corpus(folder / "plain", SECONDS, rate=8000)
    tarred_corpus(folder / "tarred", SECONDS[:24], shards=2, rate=8000)
    return folder


def break_plain(folder: Path, rows: list[int]) -> None:
    """Damage files, each in another way; one is missing."""
    ways = [*DAMAGE.values(), lambda _: wav_bytes(0.1, 8000)]
    for place, row in enumerate(rows):
        path = folder / f"plain/wav/utt{row:05d}.wav"
        if place == 0:
            path.unlink()
        else:
            path.write_bytes(ways[place % len(ways)](path.read_bytes()))


def break_tarred(folder: Path, rows: list[int]) -> None:
    """Overwrite members of archives, headers and sizes as they were."""
    for row in rows:
        tar = folder / f"tarred/audio_{row % 2}.tar"
        payload = wav_bytes(SECONDS[row], 8000, seed=row)
        data = tar.read_bytes()
        at = data.index(payload)
        tar.write_bytes(data[:at] + b"\xff" * len(payload) + data[at + len(payload) :])


@pytest.fixture
def broken(whole: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "broken"
    shutil.copytree(whole, folder)
    break_plain(folder, BAD)
    break_tarred(folder, [2, 9, 20])
    return folder


def loader_of(folder: Path, **options: Any) -> playhead.Loader:
    """An endless blend of a plain and a tarred leaf, whatever folder it lies in."""
    tarred = folder / "tarred"
    config = {
        "input_cfg": [
            {
                "type": "nemo",
                "name": "plain",
                "manifest_filepath": str(folder / "plain/manifest.json"),
                "weight": 0.6,
            },
            {
                "type": "nemo_tarred",
                "name": "tarred",
                "manifest_filepath": str(tarred / "manifest__OP_0..1_CL_.json"),
                "tarred_audio_filepaths": str(tarred / "audio__OP_0..1_CL_.tar"),
                "weight": 0.4,
            },
        ],
        "sample_rate": 8000,
        "shuffle": True,
        "seed": 11,
        "batch_duration": 4.0,
        "micro_batches_per_step": 2,
        "window_draws": 60,
        "num_workers": 0,
        "info": True,
        "fault_tolerant_audio_loading": True,
        "bad_samples": str(folder / "bad_samples.jsonl"),
    }
    place = {"rank": options.pop("rank", 0), "world_size": options.pop("world_size", 1)}
    dataset = options.pop("dataset", None)
    return playhead.dataloader({**config, **options}, dataset=dataset, **place)


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def is_bad(name: str) -> bool:
    plain = name.startswith("wav/")
    return int(name[-9:-4]) in (BAD if plain else (2, 9, 20))


@pytest.mark.parametrize("dataset", [None, Recognition()])
@pytest.mark.parametrize(
    ("num_workers", "method"),
    [(0, None), (2, "fork"), pytest.param(2, "spawn", marks=pytest.mark.slow)],
)
def test_what_is_left_is_exactly_what_it_would_have_been(
    whole: Path, broken: Path, num_workers: int, method: str | None, dataset: Any
) -> None:
    intact = loader_of(whole, dataset=dataset)
    options = {"num_workers": num_workers, "multiprocessing_context": method}
    loader = loader_of(broken, dataset=dataset, **options)
    dropped = 0
    for expected, batch in islice(zip(intact, loader, strict=True), 30):
        good = [at for at, name in enumerate(expected["ids"]) if not is_bad(name)]
        assert batch["ids"] == [expected["ids"][at] for at in good]
        assert batch["playhead"].dropped == len(expected["ids"]) - len(good)
        assert batch["playhead"].step == expected["playhead"].step
        assert batch["audio_lens"].tolist() == expected["audio_lens"][good].tolist()
        assert batch["audio"].shape[1] == max(batch["audio_lens"])
        for row, other, length in zip(
            batch["audio"], expected["audio"][good], batch["audio_lens"], strict=True
        ):
            assert torch.equal(row[:length], other[:length])
        dropped += batch["playhead"].dropped
    assert dropped > 8
    written = records(broken / "bad_samples.jsonl")
    assert len({(one["leaf"], one["row"]) for one in written}) == len(written)
    assert all(is_bad(one["id"]) for one in written)
    assert {one["name"] for one in written} == {"plain", "tarred"}
    report = loader.report()
    assert sum(report.run.bad.values()) == dropped
    assert sum(sum(leaf.bad.values()) for leaf in report.leaves) == dropped
    assert report.run.batches == 30
    assert report.run.repeated_batches == 0
    assert "bad audio" in str(report)
    assert json.loads(json.dumps(report.to_json()))["run"]["samples"] == report.run.samples
    intact.close()
    loader.close()


def test_a_run_that_is_stopped_around_bad_samples_is_the_uninterrupted_run(broken: Path) -> None:
    straight = take(loader_of(broken), 24)
    got: list[dict] = []
    state = None
    for turn in range(12):
        world = 1 + turn % 2
        ranks = [
            loader_of(broken, rank=rank, world_size=world, num_workers=turn % 3 and 1)
            for rank in range(world)
        ]
        for rank in ranks:
            if state is not None:
                resumed(rank, state)
        parts = [take(rank, rank.batches_per_step) for rank in ranks]
        got += sorted((line for part in parts for line in part), key=lambda line: line["slot"])
        state = ranks[0].state_dict()
        for rank in ranks:
            rank.close()
    assert got == straight


def solitary(folder: Path, **options: Any) -> playhead.Loader:
    """Batches of one sample in steps of four, in declared order."""
    config = {
        "manifest_filepath": str(folder / "plain/manifest.json"),
        "sample_rate": 8000,
        "force_finite": True,
        "batch_size": 1,
        "micro_batches_per_step": 4,
        "fault_tolerant_audio_loading": True,
        "bad_samples": str(folder / "bad_samples.jsonl"),
    }
    place = {"rank": options.pop("rank", 0), "world_size": options.pop("world_size", 1)}
    return playhead.dataloader({**config, **options}, **place)


@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize("world", [1, 2, 4])
def test_a_batch_of_which_nothing_is_left_is_its_neighbours(
    whole: Path, tmp_path: Path, num_workers: int, world: int
) -> None:
    folder = tmp_path / "broken"
    shutil.copytree(whole, folder)
    expected = lines(solitary(folder))
    numbers = [[int(name[-9:-4]) for name in line["ids"]] for line in expected]
    steps = [[row for (row,) in numbers[at : at + 4]] for at in range(0, 48, 4)]
    # The middle of a step; its end, whose neighbour is its beginning; three in a row.
    bad = [steps[1][1], steps[3][3], steps[6][0], steps[6][1], steps[6][3]]
    break_plain(folder, bad)
    stands_in = {
        (1, 1): steps[1][2], (3, 3): steps[3][0],
        (6, 0): steps[6][2], (6, 1): steps[6][2], (6, 3): steps[6][2],
    }  # fmt: skip
    loaders = [
        solitary(folder, rank=rank, world_size=world, num_workers=num_workers)
        for rank in range(world)
    ]
    got = []
    for loader in loaders:
        for batch in loader:
            info = batch["playhead"]
            place = (info.step, info.slot)
            assert info.dropped == (place in stands_in)
            got.extend(lines([batch]))
    got.sort(key=lambda line: (line["step"], line["slot"]))
    for line, one in zip(got, expected, strict=True):
        place = (line["step"], line["slot"])
        if place not in stands_in:
            assert line == one
            continue
        wanted = next(other for other in expected if other["ids"] == [_name(stands_in[place])])
        assert line == {**wanted, "slot": place[1], "repeated": [True]}
    reports = [loader.report().run for loader in loaders]
    assert sum(report.repeated_batches for report in reports) == 5
    assert sum(report.samples for report in reports) == 48
    files = [
        folder / "bad_samples.jsonl",
        *(folder / f"bad_samples-{r}.jsonl" for r in range(1, 4)),
    ]
    written = [records(path) for path in files if path.exists()]
    assert sorted(int(one["id"][-9:-4]) for part in written for one in part) == sorted(bad)
    for loader in loaders:
        loader.close()


def _name(row: int) -> str:
    return f"wav/utt{row:05d}.wav"


def test_a_step_of_which_nothing_is_left_is_an_error_that_names_its_samples(
    whole: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "broken"
    shutil.copytree(whole, folder)
    break_plain(folder, [8, 9, 10, 11])
    loader = solitary(folder, num_workers=2)
    batches = iter(loader)
    first(batches, 8)
    for _ in range(2):
        with pytest.raises(AudioError, match=r"step 2.*utt00008.*utt00011.*--exclude"):
            next(batches)
    assert [one["id"] for one in records(folder / "bad_samples.jsonl")] == [
        _name(row) for row in (8, 9, 10, 11)
    ]
    assert loader.state_dict()["step"] == 2
    # More slots have a neighbour that can be read: the way on.
    state = loader.state_dict()
    loader.close()
    wider = solitary(folder, micro_batches_per_step=8)
    with pytest.warns(UserWarning, match="dealt out anew"):
        resumed(wider, state)
    rest = [name for line in lines(wider) for name in line["ids"]]
    assert set(rest) == {_name(row) for row in range(12, 48)}


@pytest.mark.parametrize("option", [{}, {"skip_missing_manifest_entries": True}])
@pytest.mark.filterwarnings("ignore:.*skip_missing_manifest_entries")
def test_members_without_a_row_are_passed_over_and_rows_without_a_member_are_named(
    tmp_path: Path, option: dict[str, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAYHEAD_CACHE", str(tmp_path / "cache"))
    members = [(f"u{i}.wav", wav_bytes(0.2, 8000, seed=i)) for i in range(4)]
    rows = [{"audio_filepath": f"u{i}.wav", "duration": 0.2, "text": ""} for i in (3, 1)]
    tar = write_tar(tmp_path / "a.tar", members)
    manifest = write_jsonl(tmp_path / "m.json", rows)
    config = {
        "manifest_filepath": str(manifest),
        "tarred_audio_filepaths": str(tar),
        "batch_size": 2,
        "sample_rate": 8000,
        "force_finite": True,
        **option,
    }
    place = {"rank": 0, "world_size": 1}
    loader = playhead.dataloader(config, **place)
    assert [batch["ids"] for batch in loader] == [["u3.wav", "u1.wav"]]
    (leaf,) = loader.report().leaves
    assert leaf.dropped == {"tar member without a row": 2}
    # The option hides no row whose audio is missing.
    write_jsonl(manifest, [*rows, {"audio_filepath": "u9.wav", "duration": 0.2, "text": ""}])
    with pytest.raises(ManifestError, match=r"u9\.wav.*a\.tar.*m\.json:3"):
        playhead.dataloader(config, **place)
    build_packs(read_blend(config).leaves, skip_bad_rows=True)
    loader = playhead.dataloader(config, **place)
    assert [batch["ids"] for batch in loader] == [["u3.wav", "u1.wav"]]
    (leaf,) = loader.report().leaves
    assert sum(leaf.dropped.values()) == 3


def test_what_was_bad_is_excluded_from_the_next_window_on(
    broken: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setenv("PLAYHEAD_CACHE", str(tmp_path / "cache"))
    ids = {"dataset": Ids()}
    running = loader_of(broken)
    batches = iter(running)
    first(batches, 40)
    while not (state := running.state_dict())["chain"][-1][2]:
        first(batches, 2)  # a window that has not begun is drawn anew
    listed = records(broken / "bad_samples.jsonl")
    rows = {(one["name"], one["row"]) for one in listed}
    assert len(rows) > 4
    window = state["window"]
    before = take(resumed(loader_of(broken, **ids), state), 60)

    config = tmp_path / "blend.yaml"
    entries = [
        {
            "type": "nemo",
            "name": "plain",
            "manifest_filepath": str(broken / "plain/manifest.json"),
        },
        {
            "type": "nemo_tarred",
            "name": "tarred",
            "manifest_filepath": str(broken / "tarred/manifest__OP_0..1_CL_.json"),
            "tarred_audio_filepaths": str(broken / "tarred/audio__OP_0..1_CL_.tar"),
        },
    ]
    config.write_text(json.dumps({"input_cfg": entries}))
    arguments = ["index", str(config), "--exclude", str(broken / "bad_samples.jsonl")]
    monkeypatch.setattr("sys.argv", ["playhead", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    said = capsys.readouterr()
    assert "rows of leaf plain" in said.out + said.err

    loader = loader_of(broken, **ids)
    with pytest.warns(UserWarning, match="in effect from the next window"):
        resumed(loader, state)
    batches = iter(loader)
    excluded = {one["id"] for one in listed}
    at = 0
    while loader.state_dict()["window"] == window:
        assert first(batches, 2) == before[at : at + 2]
        at += 2
    assert at > 0
    assert any(excluded & set(line["ids"]) for line in before[at:])
    for _ in range(60):
        (line,) = first(batches, 1)
        assert not excluded & set(line["ids"])
    report = loader.report()
    assert sum(leaf.refused.get("excluded", 0) for leaf in report.leaves) == len(rows)
    fresh = take(loader_of(broken, **ids), 60)
    assert not excluded & {name for line in fresh for name in line["ids"]}
