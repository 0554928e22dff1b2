"""Every sample of a pass goes to one rank, rows are skipped as they say, and indexes are exact."""

from __future__ import annotations

import gzip
import json
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
from lhotse import CutSet

import playhead
from playhead.datasets import Ids
from playhead.index.sidecars import Sidecar, build_sidecar
from playhead.index.tar import scan_tar
from support.corpus import nemo_corpus, tarred_corpus, wav_bytes, write_jsonl, write_tar
from support.parquet import speech_columns, write_table
from support.shar import FOREIGN, LONG, read_by_lhotse, simple_cuts, write_shar

FORMS = ["nemo", "cuts", "tarred", "shar", "parquet"]


@pytest.fixture(scope="session")
def twenty(tmp_path_factory) -> dict[str, dict]:
    """An entry of each type over twenty samples: four shards, or groups of seven rows."""
    folder = tmp_path_factory.mktemp("twenty")
    manifests, tars = tarred_corpus(folder / "tarred", [0.2] * 20, 4)
    cuts = simple_cuts(folder / "raw", [f"cut-{n:02d}" for n in range(20)], 0.1)
    CutSet.from_cuts(cuts).to_file(folder / "cuts.jsonl")
    return {
        "nemo": {
            "type": "nemo",
            "manifest_filepath": str(nemo_corpus(folder / "nemo", [0.2] * 20)),
        },
        "cuts": {"type": "lhotse", "cuts_path": str(folder / "cuts.jsonl")},
        "tarred": {
            "type": "nemo_tarred",
            "manifest_filepath": manifests,
            "tarred_audio_filepaths": tars,
        },
        "shar": {
            "type": "lhotse_shar",
            "shar_path": str(write_shar(folder / "shar", cuts, shard_size=5)),
        },
        "parquet": {
            "type": "parquet",
            "manifest_filepath": str(write_table(folder / "t.parquet", speech_columns(20), rows=7)),
        },
    }


def ids_of(config: dict, **options) -> list[str]:
    """The ids of a pass on one rank, without what fills up its last step."""
    plain = {"batch_size": 3, "shuffle": True, "seed": 2, "force_finite": True}
    found = []
    for batch in playhead.dataloader({**plain, **config}, dataset=Ids(), **options):
        repeated = batch["playhead"].repeated
        found += [name for name, twice in zip(batch["ids"], repeated, strict=True) if not twice]
    return found


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("world", [1, 2, 4, 5])
def test_ranks_have_disjoint_parts_of_all(form, world, twenty):
    config = {"input_cfg": [twenty[form]]}
    parts = [ids_of(config, rank=rank, world_size=world) for rank in range(world)]
    together = [name for part in parts for name in part]
    assert all(parts)
    assert len(together) == len(set(together)) == 20


def test_two_buckets_whose_shards_have_the_same_numbers(twenty, tmp_path):
    """Nothing of one stands in for the other's."""
    manifests, tars = tarred_corpus(tmp_path, [0.2] * 20, 4)
    one = twenty["tarred"]
    other = {**one, "manifest_filepath": manifests, "tarred_audio_filepaths": tars}
    assert len(ids_of({"input_cfg": [one, other]})) == 40
    nested = {
        "manifest_filepath": [[one["manifest_filepath"]], [manifests]],
        "tarred_audio_filepaths": [[one["tarred_audio_filepaths"]], [tars]],
    }
    assert len(ids_of(nested)) == 40


MARKS = {
    "true": {"_skipme": True},
    "text": {"_skipme": "noisy"},
    "number": {"_skipme": 2},
    "custom": {"custom": {"_skipme": True}},
    "empty": {"_skipme": ""},
    "zero": {"_skipme": 0},
    "false": {"_skipme": False},
    "custom_false": {"custom": {"_skipme": 0}},
    "none": {"_skipme": None},
    "absent": {},
}
SKIPPED = ["true", "text", "number", "custom"]


def marked_rows(folder: Path) -> Path:
    rows = [
        {"audio_filepath": f"{name}.wav", "duration": 0.5, "text": name, **mark}
        for name, mark in MARKS.items()
    ]
    return write_jsonl(folder / "manifest.json", rows)


def test_rows_that_say_so_are_skipped_and_counted(tmp_path):
    config = {"manifest_filepath": str(marked_rows(tmp_path)), "batch_size": 2}
    loader = playhead.dataloader(config, dataset=Ids())
    found = [Path(name).stem for batch in loader for name in batch["ids"]]
    assert found == [name for name in MARKS if name not in SKIPPED]
    assert loader.report().leaves[0].dropped == {"_skipme": len(SKIPPED)}
    assert loader.report().leaves[0].rows == len(MARKS) - len(SKIPPED)


def test_going_on_across_rows_that_are_skipped(tmp_path):
    config = {
        "manifest_filepath": str(marked_rows(tmp_path)),
        "batch_size": 1,
        "shuffle": True,
        "seed": 3,
    }
    whole = [batch["ids"] for batch in playhead.dataloader(config, dataset=Ids())]
    loader = playhead.dataloader(config, dataset=Ids())
    first = [batch["ids"] for batch in islice(loader, 2)]
    other = playhead.dataloader(config, dataset=Ids())
    other.load_state_dict(json.loads(json.dumps(loader.state_dict())))
    assert first + [batch["ids"] for batch in other] == whole
    assert len(whole) == 6


def test_a_row_that_is_no_json_is_fatal_and_named(tmp_path):
    manifest = marked_rows(tmp_path)
    manifest.write_text(manifest.read_text() + '{"audio_filepath": "x.wav", "dur\n')
    with pytest.raises(playhead.ManifestError, match=r"manifest\.json"):
        ids_of({"manifest_filepath": str(manifest)})


def test_indexing_opens_no_audio(tmp_path):
    """There is none."""
    config = {"manifest_filepath": str(marked_rows(tmp_path)), "indexed": True}
    path = config["manifest_filepath"]
    build_sidecar(Sidecar(path=path, kind="jsonl", idx=f"{path}.idx"))
    assert len(ids_of(config)) == 6


@pytest.mark.filterwarnings("ignore:options of config that have no meaning here")
@pytest.mark.parametrize("tolerant", [False, True])
def test_a_row_of_a_tar_without_its_length_is_an_error_whatever_is_tolerated(tmp_path, tolerant):
    write_tar(tmp_path / "audio_0.tar", [("a.wav", wav_bytes(0.2))])
    manifest = write_jsonl(tmp_path / "manifest_0.json", [{"audio_filepath": "a.wav", "text": "a"}])
    config = {
        "manifest_filepath": str(manifest),
        "tarred_audio_filepaths": str(tmp_path / "audio_0.tar"),
        "fault_tolerant_audio_loading": tolerant,
        "skip_missing_manifest_entries": tolerant,
    }
    with pytest.raises(playhead.ManifestError, match="no duration"):
        ids_of(config)


@pytest.mark.filterwarnings("ignore:options of config that have no meaning here")
@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("tolerant", [False, True])
def test_two_policies_that_know_nothing_of_each_other(tmp_path, skip, tolerant):
    """Members that no row names are one thing, audio that cannot be decoded is another."""
    good, bad = wav_bytes(0.2), b"this is no audio" * 40
    members = [("a.wav", good), ("unnamed.wav", good), ("bad.wav", bad), ("c.wav", good)]
    write_tar(tmp_path / "audio_0.tar", members)
    rows = [
        {"audio_filepath": name, "duration": 0.2, "text": name}
        for name in ("a.wav", "bad.wav", "c.wav")
    ]
    config = {
        "manifest_filepath": str(write_jsonl(tmp_path / "manifest_0.json", rows)),
        "tarred_audio_filepaths": str(tmp_path / "audio_0.tar"),
        "fault_tolerant_audio_loading": tolerant,
        "skip_missing_manifest_entries": skip,
        "bad_samples": None,
        "batch_size": 3,
        "force_finite": True,
    }
    loader = playhead.dataloader(config)
    if tolerant:
        assert [name for batch in loader for name in batch["ids"]] == ["a.wav", "c.wav"]
    else:
        with pytest.raises(playhead.AudioError, match=r"bad\.wav"):
            list(loader)


@pytest.mark.filterwarnings("ignore:options of config that have no meaning here")
@pytest.mark.parametrize("tolerant", [False, True])
def test_a_row_whose_member_is_missing_is_an_error_whatever_is_tolerated(tmp_path, tolerant):
    write_tar(tmp_path / "audio_0.tar", [("a.wav", wav_bytes(0.2))])
    rows = [{"audio_filepath": name, "duration": 0.2} for name in ("a.wav", "gone.wav")]
    config = {
        "manifest_filepath": str(write_jsonl(tmp_path / "manifest_0.json", rows)),
        "tarred_audio_filepaths": str(tmp_path / "audio_0.tar"),
        "fault_tolerant_audio_loading": tolerant,
        "skip_missing_manifest_entries": tolerant,
    }
    with pytest.raises(playhead.DataError, match=r"gone\.wav"):
        ids_of(config)


def test_the_index_of_a_tar_of_one_member(tmp_path):
    tar = write_tar(tmp_path / "one.tar", [("only.wav", b"x" * 700)])
    build_sidecar(Sidecar(path=str(tar), kind="nemo_tar", idx=f"{tar}.idx"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.tar", "one.tar.idx"]
    offsets = np.frombuffer(Path(f"{tar}.idx").read_bytes(), "<u8")
    assert offsets.tolist() == [0, tar.stat().st_size]
    assert tar.stat().st_size % 10240 == 0
    members = scan_tar(str(tar))
    assert members.names == ["only.wav"]
    payload = tar.read_bytes()[members.payload[0] : members.payload[0] + members.size[0]]
    assert payload == b"x" * 700


@pytest.fixture(scope="session")
def gzipped(tmp_path_factory) -> Path:
    """A Shar as Lhotse writes it, compressed, with a long and a foreign id."""
    folder = tmp_path_factory.mktemp("gzipped")
    names = [LONG, FOREIGN, *(f"cut-{n}" for n in range(7))]
    cuts = simple_cuts(folder / "raw", names, 0.2)
    write_shar(folder / "shar", cuts, fields={"recording": "flac"}, shard_size=4)
    assert list((folder / "shar").glob("*.jsonl.gz"))
    return folder / "shar"


def heard(loader, count: int | None = None) -> list:
    return [
        (batch["ids"], batch["audio"].numpy().tobytes(), batch["audio_lens"].tolist())
        for batch in islice(loader, count)
    ]


def test_a_compressed_shar_is_read_as_others_read_it(gzipped):
    config = {"input_cfg": [{"type": "lhotse_shar", "shar_path": str(gzipped)}], "batch_size": 2}
    loader = playhead.dataloader({**config, "force_finite": True})
    found = {
        name: audio[:length]
        for batch in loader
        for name, audio, length in zip(
            batch["ids"], batch["audio"], batch["audio_lens"].tolist(), strict=True
        )
    }
    theirs = read_by_lhotse(in_dir=str(gzipped))
    assert sorted(found) == sorted(cut.id for cut in theirs)
    for cut in theirs:
        torch.testing.assert_close(
            found[cut.id], torch.from_numpy(cut.load_audio()[0]), rtol=0, atol=0
        )


@pytest.mark.parametrize("workers", [0, 2])
def test_a_compressed_shar_goes_on_where_it_stopped(gzipped, workers):
    config = {
        "input_cfg": [{"type": "lhotse_shar", "shar_path": str(gzipped)}],
        "batch_size": 2,
        "shuffle": True,
        "seed": 5,
        "num_workers": workers,
    }
    whole = heard(playhead.dataloader(config), 12)
    loader = playhead.dataloader(config)
    first = heard(loader, 5)
    other = playhead.dataloader(config)
    other.load_state_dict(json.loads(json.dumps(loader.state_dict())))
    assert first + heard(other, 7) == whole


def test_a_field_that_was_added_later(gzipped, tmp_path):
    for path in gzipped.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    for shard in sorted(tmp_path.glob("cuts.*.jsonl.gz")):
        number = shard.name.split(".")[1]
        rows = [
            {"cut_id": json.loads(line)["id"], "wer": 0.5}
            for line in gzip.decompress(shard.read_bytes()).splitlines()
        ]
        write_jsonl(tmp_path / f"wer.{number}.jsonl", rows)

    class Wer:
        def __getitem__(self, cuts):
            return {"wer": [cut.wer for cut in cuts]}

    config = {"input_cfg": [{"type": "lhotse_shar", "shar_path": str(tmp_path)}], "batch_size": 9}
    (batch,) = playhead.dataloader({**config, "force_finite": True}, dataset=Wer())
    assert batch["wer"] == [0.5] * 9


def order(config: dict, seed, **options) -> list:
    loader = playhead.dataloader({**config, "seed": seed}, dataset=Ids(), **options)
    return [batch["ids"] for batch in islice(loader, 8)]


def test_what_an_integer_as_a_seed_decides(twenty):
    """Everything, on every rank; and another integer decides otherwise."""
    config = {"input_cfg": [twenty["tarred"]], "batch_size": 2, "shuffle": True}
    ranks = [order(config, 7, rank=rank, world_size=2) for rank in (0, 1)]
    assert ranks == [order(config, 7, rank=rank, world_size=2) for rank in (0, 1)]
    assert ranks[0] != ranks[1]
    assert order(config, 8, rank=0, world_size=2) != ranks[0]


def test_a_seed_from_the_system_repeats_nothing(twenty):
    config = {"input_cfg": [twenty["tarred"]], "batch_size": 2, "shuffle": True}
    assert order(config, "trng") != order(config, "trng")
    # Of ranks that cannot talk to each other, each would draw its own.
    with pytest.raises(playhead.ConfigError, match="drawn once for all 2 ranks"):
        order(config, "trng", rank=1, world_size=2)
