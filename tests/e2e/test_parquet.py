"""Parquet files of real speech give what pyarrow and soundfile read of them, and go on exactly."""

from __future__ import annotations

import io
import json
import warnings
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import soundfile as sf
import torch

import playhead
from playhead.datasets import Ids
from playhead.errors import ConfigError, DataError, ManifestError, StaleIndexError
from playhead.formats import parquet_cache
from playhead.formats.parquet_file import TableFile
from support.handed_out import ids_of, lines, resumed, take
from support.parquet import cells, write_table
from support.real_speech import RATE, SOUNDS, asterisk_prompts, flac_of, made_once

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lhotse import CutSet

pytestmark = pytest.mark.e2e

NUM_PROMPTS = 240
LAYOUTS = ("bytes", "struct", "path", "bare", "gaps")


class Cuts(torch.utils.data.Dataset):
    """Hands the cuts themselves over."""

    def __getitem__(self, cuts: CutSet) -> dict[str, Any]:
        return {"cuts": list(cuts)}


def write_layouts(folder: Path) -> None:
    """Each layout in three files: with durations and ids and without, in every kind of cell."""
    prompts = asterisk_prompts()[:NUM_PROMPTS]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sounds").symlink_to(SOUNDS)
    for layout in LAYOUTS:
        kind = {"bare": "struct", "gaps": "bytes"}.get(layout, layout)
        for part in range(3):
            mine = prompts[part * 80 : part * 80 + 80]
            audio = [flac_of(p) if n % 2 else p.path.read_bytes() for n, p in enumerate(mine)]
            paths = [f"../sounds/{p.key}.wav" for p in mine]
            columns = {
                "id": [f"{layout}/{p.key}" for p in mine],
                "audio": cells(audio, kind, paths),
                "duration": [p.seconds for p in mine],
                "text": [p.text for p in mine],
                "lang": ["en"] * len(mine),
                "words": [len(p.text.split()) for p in mine],
            }
            if layout == "bare":
                del columns["id"], columns["duration"]
            if layout == "gaps":
                columns["duration"] = [None if n % 3 else p.seconds for n, p in enumerate(mine)]
                columns["id"] = [
                    None if n % 5 == 0 else name for n, name in enumerate(columns["id"])
                ]
            write_table(folder / layout / f"part_{part}.parquet", columns, rows=17 + part)


@pytest.fixture(scope="session")
def tables(shared_folder: Path) -> Path:
    return made_once(shared_folder / "parquet", write_layouts)


def read_by_pyarrow(folder: Path) -> Iterator[tuple[str, str, np.ndarray]]:
    """Id, text and samples of each row, in order."""
    for path in sorted(folder.glob("*.parquet")):
        for number, row in enumerate(pq.read_table(path).to_pylist()):
            cell = row["audio"]
            data = cell if isinstance(cell, bytes) else cell.get("bytes")
            source = io.BytesIO(data) if data is not None else folder / cell["path"]
            name = row.get("id") or f"{path.stem}_{number}"
            yield name, row["text"], sf.read(source, dtype="float32")[0]


def entry_of(folder: Path, **options: Any) -> dict[str, Any]:
    paths = [str(path) for path in sorted(folder.glob("*.parquet"))]
    return {"type": "parquet", "manifest_filepath": paths, **options}


def loader_of(*entries: dict[str, Any], dataset: Any = None, **options: Any) -> playhead.Loader:
    """A finite shuffled pass in steps of two micro-batches, unless options say otherwise."""
    config = {
        "input_cfg": list(entries),
        "sample_rate": RATE,
        "batch_duration": 25,
        "shuffle": True,
        "seed": 7,
        "force_finite": True,
        "micro_batches_per_step": 2,
        "num_workers": 0,
    }
    place = {"rank": options.pop("rank", 0), "world_size": options.pop("world_size", 1)}
    return playhead.dataloader({**config, **options}, dataset=dataset, **place)


def heard(loader: Any) -> list[tuple[str, str, np.ndarray]]:
    return [
        (name, text, samples[:length])
        for batch in loader
        for name, text, samples, length in zip(
            batch["ids"],
            batch["texts"],
            batch["audio"].numpy(),
            batch["audio_lens"].tolist(),
            strict=True,
        )
    ]


def as_bytes(samples: Any) -> list[tuple[str, str, bytes]]:
    return [(name, text, audio.tobytes()) for name, text, audio in samples]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_pass_is_what_pyarrow_and_soundfile_read(tables, layout):
    expected = as_bytes(read_by_pyarrow(tables / layout))
    assert len(expected) == len({name for name, _, _ in expected}) == NUM_PROMPTS
    entry = entry_of(tables / layout)
    assert as_bytes(heard(loader_of(entry, shuffle=False, batch_size=7))) == expected
    shuffled = as_bytes(heard(loader_of(entry)))
    assert shuffled != expected
    assert sorted(shuffled) == sorted(expected)


def test_the_cuts_have_all_other_columns(tables):
    entry = entry_of(tables / "struct", tags={"mode": "asr"})
    loader = loader_of(entry, dataset=Cuts(), shuffle=False)
    cuts = [cut for batch in loader for cut in batch["cuts"]]
    for cut, (name, text, samples) in zip(cuts, read_by_pyarrow(tables / "struct"), strict=True):
        assert cut.id == name
        assert (cut.supervisions[0].text, cut.supervisions[0].language) == (text, "en")
        assert (cut.words, cut.mode) == (len(text.split()), "asr")
        np.testing.assert_array_equal(cut.load_audio()[0], samples)


def test_it_goes_on_from_every_place(tables):
    entry = entry_of(tables / "bare")
    whole = lines(loader_of(entry))
    assert len(set(ids_of(whole))) == NUM_PROMPTS
    for batches in range(0, len(whole), 2):
        loader = loader_of(entry)
        prefix = take(loader, batches)
        assert prefix + lines(resumed(loader_of(entry), loader.state_dict())) == whole


@pytest.mark.parametrize(("workers", "method"), [(2, "fork"), (1, "spawn")])
def test_it_goes_on_with_other_workers_on_other_ranks(tables, workers, method):
    entry = entry_of(tables / "gaps")
    whole = lines(loader_of(entry))
    loader = loader_of(entry, num_workers=workers, multiprocessing_context=method)
    prefix = take(loader, 4)
    state = loader.state_dict()
    loader.close()
    rest = [
        line
        for rank in range(2)
        for line in lines(resumed(loader_of(entry, rank=rank, world_size=2), state))
    ]
    rest.sort(key=lambda line: (line["step"], line["slot"]))
    assert prefix + rest == whole


def test_an_endless_blend_goes_on_through_several_windows(tables, prompts):
    entries = [
        entry_of(tables / "bytes", weight=0.5),
        entry_of(tables / "path", weight=0.3),
        {"type": "nemo", "manifest_filepath": str(prompts / "nemo.json"), "weight": 0.2},
    ]
    options = {"force_finite": False, "window_draws": 90}
    whole = take(loader_of(*entries, **options), 60)
    assert {name.split("/")[0] for name in ids_of(whole)} >= {"bytes", "path"}
    for batches in (2, 14, 30, 44):
        loader = loader_of(*entries, **options)
        prefix = take(loader, batches)
        again = resumed(loader_of(*entries, **options), loader.state_dict())
        assert prefix + take(again, 60 - batches) == whole


def unpacked_in_a_pass(monkeypatch: pytest.MonkeyPatch, loader: playhead.Loader) -> Counter:
    """How often each row group was unpacked with its audio."""
    count: Counter = Counter()
    read = TableFile.batches

    def counted(self: TableFile, group: Any, columns: Any, *, with_audio: bool) -> Any:
        count[self.path, group.number] += with_audio
        return read(self, group, columns, with_audio=with_audio)

    with monkeypatch.context() as patch:
        patch.setattr(TableFile, "batches", counted)
        assert len(heard(loader)) == NUM_PROMPTS
    return count


def test_each_row_group_is_unpacked_once(tables, tmp_path, monkeypatch):
    entry = entry_of(tables / "bytes")
    loader_of(entry).close()
    monkeypatch.setenv("PLAYHEAD_CACHE", str(tmp_path))
    monkeypatch.setattr(parquet_cache, "_state", parquet_cache._State())
    loader = loader_of(entry)
    count = unpacked_in_a_pass(monkeypatch, loader)
    groups = sum(pq.read_metadata(path).num_row_groups for path in entry["manifest_filepath"])
    assert set(count.values()) == {1}
    assert len(count) == groups
    assert not +unpacked_in_a_pass(monkeypatch, loader), "the next pass finds them there"


def test_a_cache_smaller_than_the_data_unpacks_each_about_once_a_pass(
    tables, tmp_path, monkeypatch
):
    entry = entry_of(tables / "bytes")
    sizes = [
        pq.read_metadata(path).row_group(n).total_byte_size
        for path in entry["manifest_filepath"]
        for n in range(pq.read_metadata(path).num_row_groups)
    ]
    monkeypatch.setenv("PLAYHEAD_CACHE", str(tmp_path))
    monkeypatch.setattr(parquet_cache, "_state", parquet_cache._State())
    most = sum(sizes) // 2
    loader = loader_of(entry, cache_bytes=most)
    for _ in range(2):
        count = unpacked_in_a_pass(monkeypatch, loader)
        # The end of a window and the start of the next may share row groups, and which of them is
        # still there depends on the clock; one for each batch would be hundreds.
        assert sum(count.values()) <= 2 * len(sizes)
        held = sum(f.stat().st_size for f in (tmp_path / "tables").iterdir() if f.is_file())
        assert held <= most


def test_ids_alone_read_no_audio(tables, tmp_path, monkeypatch):
    entry = entry_of(tables / "struct")
    loader_of(entry).close()
    monkeypatch.setenv("PLAYHEAD_CACHE", str(tmp_path))
    loader = loader_of(entry, dataset=Ids())
    assert len(ids_of(lines(loader))) == NUM_PROMPTS
    held = sum(f.stat().st_size for f in (tmp_path / "tables").iterdir() if f.is_file())
    assert held < 200_000


def test_rows_are_joined_and_get_lines_of_text_files(tables, tmp_path):
    (tmp_path / "lines.txt").write_text("".join(f"line {n}\n" for n in range(NUM_PROMPTS)))
    field = {"type": "text_iter", "name": "extra", "path": str(tmp_path / "lines.txt")}
    entry = entry_of(tables / "gaps", extra_fields=[field])
    loader = loader_of(entry, dataset=Cuts())
    order = [name for name, _, _ in read_by_pyarrow(tables / "gaps")]
    cuts = [cut for batch in loader for cut in batch["cuts"]]
    assert sorted(cut.id for cut in cuts) == sorted(order)
    assert all(cut.extra == f"line {order.index(cut.id)}" for cut in cuts)
    joined = {"type": "lhotse_concat", "max_duration": 12, "gap": 0.25, "input_cfg": [entry]}
    rows = list(read_by_pyarrow(tables / "gaps"))
    samples = heard(loader_of(joined, shuffle=False))
    assert len(samples) < NUM_PROMPTS
    first = 0
    for _, text, audio in samples:
        parts = [rows[first]]
        while len(parts[-1][2]) and sum(len(p[2]) + 2000 for p in parts) - 2000 < len(audio) - 9:
            parts.append(rows[first + len(parts)])
        first += len(parts)
        assert text == " ".join(part[1] for part in parts)
        expected = np.concatenate([a for p in parts for a in (p[2], np.zeros(2000, "f4"))][:-1])
        np.testing.assert_allclose(audio, expected, atol=1e-6)
    assert first == NUM_PROMPTS
    field["path"] = str(tmp_path / "short.txt")
    (tmp_path / "short.txt").write_text("one\n")
    with pytest.raises(ConfigError, match="has 1 lines for 240 rows"):
        loader_of(entry)


def small(folder: Path, **changed: Any) -> tuple[Path, dict[str, Any]]:
    source = pq.read_table(next((folder / "bytes").glob("part_0.parquet"))).slice(0, 20)
    columns = {name: source[name] for name in source.column_names}
    return folder, {**columns, **changed}


def test_mistakes_are_named_with_leaf_and_file(tables, tmp_path):
    _, columns = small(tables)
    path = write_table(tmp_path / "t.parquet", columns, rows=6)
    entry = {"type": "parquet", "manifest_filepath": str(path), "name": "mine"}
    with pytest.raises(DataError, match=r"no column 'wav' .*t\.parquet.*there are id, audio, dur"):
        loader_of({**entry, "audio_field": "wav"})
    audio = columns["audio"].to_pylist()
    audio[13] = None
    write_table(path, {**columns, "audio": audio}, rows=6)
    with pytest.raises(
        ManifestError,
        match=r"Row 13 counted from 0, row group 2: .*no audio \(leaf mine, .*t\.parquet\)",
    ):
        loader_of(entry)
    audio[13] = b"RIFF but no more"
    write_table(path, {**columns, "audio": audio}, rows=6)
    loader = loader_of(entry, fault_tolerant_audio_loading=False)
    with pytest.raises(playhead.AudioError, match=r"leaf mine, .*t\.parquet.*row 13 counted"):
        heard(loader)
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(DataError, match=r"not Parquet, or damaged: .*t\.parquet"):
        loader_of(entry)


def test_what_changed_is_noticed(tables, tmp_path):
    _, columns = small(tables)
    path = write_table(tmp_path / "t.parquet", columns, rows=6)
    entry = {"type": "parquet", "manifest_filepath": str(path)}
    loader = loader_of(entry, batch_duration=6)
    take(loader, 2)
    state = loader.state_dict()
    changed = {**columns, "text": [f"other {n}" for n in range(20)]}
    write_table(path, changed, rows=6)
    with pytest.raises(StaleIndexError, match=r"t\.parquet|not the one that was indexed"):
        heard(loader)
    with pytest.raises(playhead.PositionError, match=r"(?i)changed"):
        take(resumed(loader_of(entry, batch_duration=6), state), 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        more = loader_of(entry, batch_duration=6, on_change="restart_pass")
        again = as_bytes(heard(resumed(more, state)))
    assert sorted(text for _, text, _ in again) == sorted(changed["text"])
    assert json.dumps(state)


def test_files_by_hugging_face_polars_and_pandas_are_read(tables, tmp_path):
    """Large strings and views, dictionaries, other codecs and page versions, an index of pandas."""
    _, columns = small(tables)
    expected = list(islice(read_by_pyarrow(tables / "bytes"), 20))
    table = pa.table(columns)
    variants = {
        "large": table.cast(
            pa.schema(
                [
                    (f.name, pa.large_binary() if f.name == "audio" else
                     pa.large_string() if pa.types.is_string(f.type) else f.type)
                    for f in table.schema
                ]
            )
        ),
        "dictionary": table.set_column(4, "lang", table["lang"].dictionary_encode()),
        "index": table.append_column("__index_level_0__", pa.array(range(20))),
    }  # fmt: skip
    options = {
        "large": {"compression": "zstd", "data_page_version": "2.0"},
        "dictionary": {"compression": "gzip", "use_dictionary": ["lang"]},
        "index": {"compression": "none", "version": "1.0"},
    }
    for name, variant in variants.items():
        path = write_table(tmp_path / f"{name}.parquet", variant, rows=6, **options[name])
        entry = {"type": "parquet", "manifest_filepath": str(path)}
        assert as_bytes(heard(loader_of(entry, shuffle=False))) == as_bytes(expected)
