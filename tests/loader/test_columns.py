"""Options that look at columns, from the config to what is handed out."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import playhead
from playhead.blend.types import type_names
from playhead.cli import app
from playhead.cli.index import index as _registered  # noqa: F401
from playhead.datasets import Ids
from playhead.formats import Example, RowColumns, SourcePair
from support.corpus import tarred_corpus, wav_bytes, write_jsonl, write_tar

ROWS = 12
_STRETCH = "-000000-000100"


class Letters:
    """A token for each letter."""

    digest = "letters"

    def encode(self, text: str) -> list[int]:
        return [ord(letter) % 256 for letter in text]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PLAYHEAD_CACHE", str(tmp_path / "cache"))


def write(tmp_path: Path, *changes: dict, seconds: float = 1.0, name: str = "m.json") -> dict:
    """A section over rows called 0, 1, …, of a second each, changed one by one."""
    wav = tmp_path / "a.wav"
    wav.write_bytes(wav_bytes(seconds))
    rows = [
        {"audio_filepath": str(wav), "duration": seconds, "text": str(n), "offset": 0, **change}
        for n, change in enumerate(changes)
    ]
    manifest = write_jsonl(tmp_path / name, rows)
    return {"manifest_filepath": str(manifest), "batch_size": 100, "shuffle": False}


class Texts:
    reads_audio = False

    def collate(self, examples, *, sample_rate, sample_keys):
        return {"texts": [e.text for e in examples], "custom": [dict(e.custom) for e in examples]}


def texts(config: dict, **options) -> list[str]:
    loader = playhead.dataloader(config, dataset=Texts(), **options)
    return [text for batch in loader for text in batch["texts"]]


def test_rows_of_another_validation_status_are_left_out(tmp_path: Path):
    statuses = [{"validation_status": s} for s in ("pass", "fail", "pass", "later")]
    config = write(tmp_path, *statuses, {})
    assert texts(config) == ["0", "2", "4"]
    assert texts(config, keep="fail") == ["1", "4"]
    assert texts(config, keep=None) == ["0", "1", "2", "3", "4"]
    # Another choice makes no other data.
    loader = playhead.dataloader(config, dataset=Ids())
    state = loader.state_dict()
    other = playhead.dataloader(config, dataset=Ids(), keep="fail")
    other.load_state_dict(state)
    assert [text for batch in other for text in batch["ids"]] == [
        str(tmp_path / "a.wav") + _STRETCH
    ] * 2


def test_filters_on_what_rows_say(tmp_path: Path):
    config = write(
        tmp_path,
        {"cer": 0.1, "context_speaker_similarity": 0.9, "speaker": "ann"},
        {"cer": 0.5, "speaker": "bob"},
        {"context_speaker_similarity": 0.2, "speaker": "cat"},
        {},
    )
    assert texts(config, max_cer=0.1) == ["0", "2", "3"]
    assert texts(config, min_context_speaker_similarity=0.5) == ["0", "1", "3"]
    held_out = {"excluded_speaker_ids": ["bob", "dan"], "speaker_filter_fields": ["speaker"]}
    assert texts(config, **held_out) == ["0", "2", "3"]
    speakers = tmp_path / "held_out.yaml"
    speakers.write_text("excluded_speaker_ids: [cat]\n")
    config |= {"excluded_speaker_ids": str(speakers), "speaker_filter_fields": ["speaker"]}
    assert texts(config) == ["0", "1", "3"]
    with pytest.raises(playhead.ConfigError, match="needs speaker_filter_fields"):
        texts({**config, "speaker_filter_fields": None})


def test_tokens_by_second(tmp_path: Path):
    config = write(
        tmp_path, *({"text": "x" * n, "duration": 2.0} for n in range(1, 9)), seconds=2.0
    )
    lengths = [len(text) for text in texts(config, tokenizer=Letters(), min_tps=1, max_tps=3)]
    assert lengths == [2, 3, 4, 5, 6]
    with pytest.warns(UserWarning, match="min_tps or max_tps: no effect, as there is no tokenizer"):
        assert len(texts(config, min_tps=1, max_tps=3)) == 8
    with pytest.warns(UserWarning, match="no effect, as pretokenize is false"):
        assert len(texts(config, tokenizer=Letters(), pretokenize=False, max_tps=3)) == 8


def test_bins_of_two_dimensions(tmp_path: Path):
    sizes = [(1.0, 4), (1.0, 9), (2.0, 4), (2.0, 9), (2.0, 30), (3.0, 1)]
    wav = tmp_path / "a.wav"
    wav.write_bytes(wav_bytes(3.0))
    rows = [
        {"audio_filepath": str(wav), "duration": seconds, "text": "x" * length, "offset": 0}
        for seconds, length in sizes * 4
    ]
    config = {"manifest_filepath": str(write_jsonl(tmp_path / "m.json", rows)), "shuffle": True}
    bins, batch_sizes = [[1, 5], [1, 10], [2, 5], [2, 10]], [4, 2, 2, 1]
    two = {"bucket_duration_bins": bins, "bucket_batch_size": batch_sizes}
    with (
        pytest.raises(playhead.ConfigError, match="two dimensions and there is no tokenizer"),
        pytest.warns(UserWarning, match="longer than the last of bucket_duration_bins, 2 s"),
    ):
        texts({**config, **two})
    config["max_duration"] = 2
    loader = playhead.dataloader({**config, **two}, dataset=Texts(), tokenizer=Letters())
    batches = [sorted(map(len, batch["texts"])) for batch in loader]
    # What fits no bin is dropped: too many tokens, and too long.
    assert sorted(n for batch in batches for n in batch) == sorted([4, 9, 4, 9] * 4)
    assert all(len(batch) <= 4 and (max(batch) <= 5 or len(batch) <= 2) for batch in batches)


def test_rows_are_joined(tmp_path: Path):
    section = write(tmp_path, *({"text": f"t{n}"} for n in range(7)))
    entry = {
        "type": "lhotse_concat",
        "max_duration": 2.5,
        "manifest_filepath": section.pop("manifest_filepath"),
    }
    config = {**section, "input_cfg": [entry]}
    assert texts(config) == ["t0 t1", "t2 t3", "t4 t5", "t6"]
    (batch,) = playhead.dataloader(config)
    assert batch["audio_lens"].tolist() == [32000, 32000, 32000, 16000]
    assert texts({**config, "max_duration": 1.5}) == ["t6"]
    # The tokens of joined rows are those of both: four letters in two seconds, or two in one.
    assert len(texts(config, tokenizer=Letters(), max_tps=2)) == 4
    with pytest.raises(playhead.PlanError, match=r"max_tps is 1.9 .* range from 2 to 2"):
        texts(config, tokenizer=Letters(), max_tps=1.9)


def test_lines_of_a_text_file(tmp_path: Path):
    section = write(tmp_path, {}, {"_skipme": True}, {}, {})
    lines = tmp_path / "lines.txt"
    lines.write_text("first\nsecond\nthird\n")
    extra = [
        {"type": "text_iter", "name": "line", "path": str(lines)},
        {"type": "text_sample", "name": "any", "path": str(lines)},
    ]
    entry = {
        "type": "nemo",
        "manifest_filepath": section.pop("manifest_filepath"),
        "extra_fields": extra,
    }
    config = {**section, "input_cfg": [entry], "seed": 3}

    def fields(**options) -> dict[str, tuple[str, str]]:
        loader = playhead.dataloader(config, dataset=Texts(), **options)
        return {
            text: (custom["line"], custom["any"])
            for batch in loader
            for text, custom in zip(batch["texts"], batch["custom"], strict=True)
        }

    expected = fields()
    assert {text: line for text, (line, _) in expected.items()} == {
        "0": "first",
        "2": "second",
        "3": "third",
    }
    assert fields(batch_size=1, num_workers=2) == expected
    lines.write_text("first\nsecond\n")
    with pytest.raises(playhead.ConfigError, match="has 2 lines for 3 rows"):
        fields()


def test_slices_of_shards(tmp_path: Path):
    manifest, tars = tarred_corpus(tmp_path, [0.1] * ROWS, 3)
    config = {
        "manifest_filepath": manifest,
        "tarred_audio_filepaths": tars,
        "slice_length": 2,
        "batch_size": 100,
        "force_finite": True,
        "shuffle": True,
        "seed": 1,
    }
    seen = set()
    for epoch in range(20):
        loader = playhead.dataloader(config, dataset=Texts())
        loader.set_epoch(epoch)
        (batch,) = loader
        numbers = sorted(int(text.split()[1]) for text in batch["texts"])
        # Utterances were dealt to the three shards in turn: a slice is one after another in each.
        by_shard = [sorted(n // 3 for n in numbers if n % 3 == shard) for shard in range(3)]
        assert all(len(rows) == 2 and rows[1] == rows[0] + 1 for rows in by_shard)
        seen.add(tuple(numbers))
    # Of 27 choices; which ones they are follows from where the data lie, too.
    assert len(seen) > 5


def test_slices_need_shards_that_stand_together(tmp_path: Path):
    rows, members = [], {0: [], 1: []}
    for n in range(4):
        members[n % 2].append((f"{n}.wav", wav_bytes(0.1)))
        rows.append({"audio_filepath": f"{n}.wav", "duration": 0.1, "shard_id": n % 2})
    for shard, payloads in members.items():
        write_tar(tmp_path / f"audio_{shard}.tar", payloads)
    config = {
        "manifest_filepath": str(write_jsonl(tmp_path / "m.json", rows)),
        "tarred_audio_filepaths": str(tmp_path / "audio_{0..1}.tar"),
        "slice_length": 1,
        "batch_size": 2,
    }
    with pytest.raises(playhead.ConfigError, match="does not keep the rows of a shard together"):
        playhead.dataloader(config)
    write_jsonl(tmp_path / "m.json", sorted(rows, key=lambda row: row["shard_id"]))
    assert playhead.dataloader(config) is not None


def test_entries_slice_alike(tmp_path: Path):
    entries = []
    for name, length in (("a", 1), ("b", 2)):
        manifest, tars = tarred_corpus(tmp_path / name, [0.1] * 4, 2)
        entries.append(
            {
                "type": "nemo_tarred",
                "manifest_filepath": manifest,
                "tarred_audio_filepaths": tars,
                "slice_length": length,
            }
        )
    with pytest.raises(playhead.ConfigError, match=r"(?i)slice_length is 1 and 2"):
        playhead.dataloader({"input_cfg": entries, "batch_size": 2})


def test_the_state_names_what_the_window_was_drawn_with(tmp_path: Path):
    config = {**write(tmp_path, *({"cer": n / 10} for n in range(8))), "batch_size": 2}
    loader = playhead.dataloader(config, dataset=Texts(), max_cer=0.5)
    batches = iter(loader)
    first = next(batches)["texts"]
    state = json.loads(json.dumps(loader.state_dict()))
    stricter = playhead.dataloader(config, dataset=Texts(), max_cer=0.1)
    with pytest.warns(UserWarning, match=r"changed filters .* in effect from the next window"):
        stricter.load_state_dict(state)
    rest = [text for batch in stricter for text in batch["texts"]]
    assert first + rest == [str(n) for n in range(6)]


def exclude(config: dict, tmp_path: Path, *numbers: int) -> None:
    """What `playhead index --exclude` does with a list of bad samples."""
    manifest = Path(config["manifest_filepath"])
    lines, offset, records = manifest.read_bytes().splitlines(keepends=True), 0, []
    for number, line in enumerate(lines):
        if number in numbers:
            records.append(
                {
                    "leaf": "x",
                    "name": "x",
                    "shard": str(manifest),
                    "row": number,
                    "byte": offset,
                    "row_crc": crc32(line.rstrip()),
                    "member": None,
                    "id": str(number),
                    "reason": "no audio",
                    "step": 0,
                    "slot": 0,
                }
            )
        offset += len(line)
    bad = write_jsonl(tmp_path / "bad_samples.jsonl", records)
    blend = tmp_path / "blend.yaml"
    blend.write_text(json.dumps({"manifest_filepath": str(manifest), "batch_size": 1}))
    result = CliRunner().invoke(app, ["index", str(blend), "--exclude", str(bad)])
    assert result.exit_code == 0, result.output


def test_excluded_rows_are_out_from_the_next_window_on(tmp_path: Path):
    config = {**write(tmp_path, *({} for _ in range(6))), "batch_size": 2}
    loader = playhead.dataloader(config, dataset=Texts())
    first = next(iter(loader))["texts"]
    state = loader.state_dict()
    exclude(config, tmp_path, 1, 4)
    assert texts(config) == ["0", "2", "3", "5"]
    resumed = playhead.dataloader(config, dataset=Texts())
    with pytest.warns(UserWarning, match="in effect from the next window"):
        resumed.load_state_dict(state)
    rest = [text for batch in resumed for text in batch["texts"]]
    assert first + rest == [str(n) for n in range(6)]
    joined = {"type": "lhotse_concat", "max_duration": 2, **config}
    del joined["batch_size"], joined["shuffle"]
    section = {"input_cfg": [joined], "batch_size": 2, "shuffle": False}
    # A sample that holds an excluded row is out as a whole.
    assert texts(section) == ["2 3"]
    manifest = Path(config["manifest_filepath"])
    manifest.write_text(manifest.read_text().replace('"text": "1"', '"text": "I"'))
    with pytest.warns(UserWarning, match=r"1 rows of leaf .* have changed since"):
        assert texts(config) == ["0", "I", "2", "3", "5"]


def test_bad_rows_of_tables_are_left_out_where_that_is_asked_for(tmp_path: Path):
    audio = [wav_bytes(1.0, seed=n) for n in range(9)]
    audio[5] = b"this is not audio"
    durations = [1.0, -1.0, None, 1.0, float("nan"), None, 1.0, 1.0, 1.0]
    cells = [None if n == 7 else {"bytes": data, "path": None} for n, data in enumerate(audio)]
    table = pa.table(
        {"audio": cells, "duration": durations, "text": [str(n) for n in range(9)]},
    )
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=4)
    entry = {"type": "parquet", "manifest_filepath": str(tmp_path / "t.parquet")}
    config = {"input_cfg": [entry], "batch_size": 9, "force_finite": True}
    with pytest.raises(playhead.ManifestError, match=r"Row 1 counted from 0.*--skip-bad-rows"):
        texts(config)
    blend = tmp_path / "blend.yaml"
    blend.write_text(json.dumps(config))
    arguments = ["index", str(blend), "--skip-bad-rows", "--json"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert texts(str(blend)) == ["0", "2", "3", "6", "8"]
    loader = playhead.dataloader(str(blend), dataset=Texts())
    assert loader.report().leaves[0].dropped == {"bad row": 4}


class Broken:
    """A type of one's own that fails now and then."""

    def sources(self, leaf):
        return [SourcePair(manifest=path) for path in leaf.paths["manifest"]]

    def columns(self, leaf, pair, block):
        rows = [json.loads(line) for line in block.splitlines()]
        if any(row["kind"] == "columns" for row in rows):
            raise KeyError("kind")
        nothing = np.zeros(len(rows), np.int64)
        return RowColumns(
            num_rows=len(rows),
            kept=np.arange(len(rows)),
            duration_us=nothing + 1_000_000,
            num_samples=nothing,
            rate=nothing.astype(np.int32),
            channels=nothing.astype(np.int16),
            tar=np.full(len(rows), -1, np.int32),
        )

    def example(self, leaf, place, row, parts):
        kind = json.loads(row)["kind"]
        if kind == "fine":
            return Example(id="x", text="", language=None, audio=None, place=place, custom={})
        return None if kind == "none" else {}[kind]


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("columns", r"'broken' fails: KeyError.*m.json:2, byte 17"),
        ("example", r"'broken' fails: KeyError.*m.json, byte 17, row 1"),
        ("none", r"'broken' makes a NoneType of a row.*m.json, byte 17, row 1"),
    ],
)
def test_what_fails_in_a_type_of_ones_own_names_the_row(tmp_path: Path, kind: str, said: str):
    if "broken" not in type_names():
        playhead.register_type("broken", inputs={"manifest": "manifest_filepath"})(Broken)
    manifest = write_jsonl(tmp_path / "m.json", [{"kind": "fine"}, {"kind": kind}])
    config = {
        "input_cfg": [{"type": "broken", "manifest_filepath": str(manifest)}],
        "batch_size": 1,
        "shuffle": False,
    }
    with pytest.raises(playhead.ManifestError, match=said):
        list(playhead.dataloader(config, dataset=Texts()))


def test_fields_that_no_row_has_are_said(tmp_path: Path):
    config = write(tmp_path, {"speaker": "ann", "words": "one"}, {"speaker": "bob"})
    with pytest.warns(UserWarning, match=r"text_field is 'txt', which none of 2 rows of leaf"):
        assert texts(config, text_field="txt") == [None, None]
    assert texts(config, text_field="words") == ["one", None]
    with pytest.warns(UserWarning, match=r"lang_field is 'language', which none of 2 rows"):
        texts(config, lang_field="language")
    held_out = {"excluded_speaker_ids": ["ann"]}
    with pytest.warns(UserWarning, match=r"names speker, which none of 2 rows has: no speaker"):
        assert texts(config, **held_out, speaker_filter_fields=["speker"]) == ["0", "1"]
    assert texts(config, **held_out, speaker_filter_fields=["speker", "speaker"]) == ["1"]


class Halves(Letters):
    """A token for two letters."""

    digest = "halves"

    def encode(self, text: str) -> list[int]:
        return super().encode(text)[::2]


def test_another_tokenizer_is_no_other_data(tmp_path: Path):
    """Its counts lie beside the pack: progress stays, and the running window keeps the old ones."""
    changes = [{"text": "x" * (2 + n % 8), "duration": 2.0} for n in range(24)]
    section = write(tmp_path, *changes, seconds=2.0)
    entry = {"type": "nemo", "manifest_filepath": section.pop("manifest_filepath")}
    config = {"input_cfg": [entry, entry], "batch_size": 2, "shuffle": True, "seed": 3}
    config |= {"window_draws": 40, "max_tps": 2.0}

    def lengths(loader, count):
        return [sorted(map(len, batch["texts"])) for batch in islice(loader, count)]

    whole = playhead.dataloader(config, dataset=Texts(), tokenizer=Letters())
    expected, windows = [], []
    for batch in islice(whole, 60):
        expected.append(sorted(map(len, batch["texts"])))
        windows.append(whole.state_dict()["window"])
    # A state after the last step of a window is the start of the next.
    window = windows.index(1) + 1
    first = playhead.dataloader(config, dataset=Texts(), tokenizer=Letters())
    before = lengths(first, 3)
    state = json.loads(json.dumps(first.state_dict()))
    other = playhead.dataloader(config, dataset=Texts(), tokenizer=Halves())
    with pytest.warns(UserWarning, match="in effect from the next window"):
        other.load_state_dict(state)
    after = lengths(other, 57)
    assert 5 < window < 30
    assert (before + after)[:window] == expected[:window]
    assert all(max(batch) <= 4 for batch in expected)
    # Of letters two a second are four in two seconds; of halves, eight letters.
    assert max(max(batch) for batch in after) == 8
    # Where the counts of the running window are gone, nobody guesses.
    for path in (tmp_path / "cache").rglob("*.tokens-*"):
        path.unlink()
    lost = playhead.dataloader(config, dataset=Texts(), tokenizer=Halves())
    with pytest.warns(UserWarning, match="in effect from the next window"):
        lost.load_state_dict(state)
    with pytest.raises(playhead.PositionError, match="token"):
        next(iter(lost))
