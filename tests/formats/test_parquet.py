from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.errors import DataError, ManifestError, SourceNotFoundError, StaleIndexError
from playhead.formats import BadRowError, Parquet, Part, Place, TableFormat
from playhead.formats import parquet as parquet_module
from playhead.storage import access
from support.corpus import wav_bytes
from support.parquet import (
    SECONDS,
    audio_of,
    cells,
    parquet_leaf,
    speech_columns,
    write_table,
)

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.blend.leaf import Leaf
    from playhead.formats import Example


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("PLAYHEAD_CACHE", str(folder))
    return folder


def scanned(leaf: Leaf) -> dict[str, Any]:
    """All that the index keeps, of all files, end to end."""
    reader = Parquet()
    blocks = [block for pair in reader.sources(leaf) for block in reader.scan(leaf, pair, None)]
    names = ("duration_us", "num_samples", "rate", "channels", "tar")
    columns = {
        name: [value for b in blocks for value in getattr(b.columns, name).tolist()]
        for name in names
    }
    dropped = [b.columns.dropped for b in blocks]
    return {
        **columns,
        "rows": [row for b in blocks for row in b.rows],
        "place": [place for b in blocks for place in b.place.tolist()],
        "status": [s for b in blocks for s in (b.columns.status or [None] * len(b.rows))],
        "dropped": sum(some.get("_skipme", 0) for some in dropped),
        "num_rows": sum(b.columns.num_rows for b in blocks),
    }


def example_of(leaf: Leaf, path: Path, place: int, *, with_audio: bool = True) -> Example:
    row, audio = Parquet().load(leaf, str(path), np.array([place]), with_audio=with_audio)[0]
    where = Place(leaf="leaf", shard=str(path), row=place, byte=place)
    parts = [] if audio is None else [Part("audio", audio, str(path), place)]
    return Parquet().example(leaf, where, row, parts)


def test_it_is_a_table_format():
    assert isinstance(Parquet(), TableFormat)


@pytest.mark.parametrize("kind", ["bytes", "struct"])
def test_the_index_has_every_row(tmp_path, kind):
    path = write_table(tmp_path / "t.parquet", speech_columns(11, kind))
    got = scanned(parquet_leaf(path))
    assert got["duration_us"] == [round(SECONDS[n % 10] * 1e6) for n in range(11)]
    assert got["place"] == list(range(11))
    assert got["num_rows"] == 11
    assert got["tar"] == [-1] * 11
    assert got["rate"] == got["channels"] == got["num_samples"] == [0] * 11
    expected = {"id": "row-3", "duration": 0.05, "text": "text 3", "lang": "en", "speaker": 0}
    if kind == "struct":
        expected["audio"] = None
    assert json.loads(got["rows"][3]) == expected


def test_a_declared_rate_counts_samples(tmp_path):
    path = write_table(tmp_path / "t.parquet", speech_columns(2))
    for leaf in (parquet_leaf(path, own={"sampling_rate": 8000}),
                 parquet_leaf(path, input_sampling_rate=8000)):  # fmt: skip
        got = scanned(leaf)
        assert got["rate"] == [8000, 8000]
        assert got["num_samples"] == [800, 2000]


def test_the_audio_is_not_read_where_durations_are_there(tmp_path, monkeypatch):
    columns = speech_columns(8)
    columns["audio"] = cells([np.random.default_rng(n).bytes(200_000) for n in range(8)], "struct")
    path = write_table(tmp_path / "t.parquet", columns)
    read = []
    read_ranges = access.read_ranges
    monkeypatch.setattr(
        access,
        "read_ranges",
        lambda path, offsets, sizes: read.append(sum(sizes)) or read_ranges(path, offsets, sizes),
    )
    assert len(scanned(parquet_leaf(path))["rows"]) == 8
    assert sum(read) < 100_000
    columns["duration"][5] = None
    with pytest.raises(BadRowError, match="Row 5 counted from 0, row group 1: the row has no dur"):
        scanned(parquet_leaf(write_table(path, columns)))


@pytest.mark.parametrize("statistics", [True, False])
@pytest.mark.parametrize("kind", ["bytes", "struct", "path"])
def test_rows_without_a_duration_are_measured(tmp_path, kind, statistics):
    names = [f"wav/{n}.wav" for n in range(10)]
    (tmp_path / "wav").mkdir()
    for number, name in enumerate(names):
        if kind == "path":
            (tmp_path / name).write_bytes(audio_of(number))
    columns = speech_columns(10)
    columns["audio"] = cells([audio_of(n) for n in range(10)], kind, names)
    columns["duration"] = [None if n in (2, 3, 9) else 1.0 for n in range(10)]
    path = write_table(tmp_path / "t.parquet", columns, write_statistics=statistics)
    got = scanned(parquet_leaf(path))
    expected = [SECONDS[n] if n in (2, 3, 9) else 1.0 for n in range(10)]
    assert got["duration_us"] == [round(s * 1e6) for s in expected]
    assert got["num_samples"][2:4] == [2400, 400]
    assert got["rate"][1:4] == [0, 8000, 8000]
    assert got["channels"][1:4] == [0, 1, 1]
    del columns["duration"]
    got = scanned(parquet_leaf(write_table(path, columns)))
    assert got["duration_us"] == [round(s * 1e6) for s in SECONDS]
    chosen = scanned(parquet_leaf(path, channel_selector=0))
    assert chosen["channels"] == [1] * 10


@pytest.mark.parametrize("kind", [pa.int32(), pa.float32(), pa.decimal128(5, 2), pa.null()])
def test_durations_are_numbers_of_any_kind(tmp_path, kind):
    columns = speech_columns(3)
    is_null = pa.types.is_null(kind)
    columns["duration"] = pa.array([None] * 3 if is_null else [1, 2, 1], kind)
    got = scanned(parquet_leaf(write_table(tmp_path / "t.parquet", columns)))
    expected = [100_000, 250_000, 300_000] if is_null else [1e6, 2e6, 1e6]
    assert got["duration_us"] == expected


def test_skipped_rows_are_counted_and_the_others_keep_their_number(tmp_path):
    columns = speech_columns(9)
    columns["_skipme"] = ["", "noise", None, "", "x", "x", "x", "x", ""]
    columns["audio"] = cells([None if n == 1 else audio_of(n) for n in range(9)], "bytes")
    del columns["id"], columns["duration"]
    path = write_table(tmp_path / "t.parquet", columns)
    leaf = parquet_leaf(path)
    got = scanned(leaf)
    assert got["place"] == [0, 2, 3, 8]
    assert got["dropped"] == 5
    assert got["num_rows"] == 9
    assert got["duration_us"] == [round(SECONDS[n] * 1e6) for n in (0, 2, 3, 8)]
    assert example_of(leaf, path, 8).id == "t_8"
    assert "_skipme" not in example_of(leaf, path, 8).custom


def test_statuses(tmp_path):
    columns = speech_columns(6)
    columns["validation_status"] = pa.array(
        ["pass", None, "fail", "pass", None, None]
    ).dictionary_encode()
    got = scanned(parquet_leaf(write_table(tmp_path / "t.parquet", columns, rows=4)))
    assert got["status"] == ["pass", None, "fail", "pass", None, None]


def test_a_row_becomes_a_sample(tmp_path):
    columns = speech_columns(5)
    columns["speaker"] = [f"s{n}" for n in range(5)]
    path = write_table(tmp_path / "t.parquet", columns)
    got = example_of(parquet_leaf(path, tags={"mode": "asr"}), path, 4)
    assert (got.id, got.text, got.language) == ("row-4", "text 4", "en")
    assert got.custom == {"speaker": "s4", "mode": "asr"}
    assert got.audio is not None
    assert got.audio.source == audio_of(4)
    assert (got.audio.start, got.audio.duration, got.audio.channel) == (0.0, 0.2, None)
    assert got.cut_data is None


def test_other_columns_may_hold_what_is_wanted(tmp_path):
    columns = speech_columns(3)
    renamed = {"id": "key", "audio": "mp3", "duration": "length", "text": "said", "lang": "l"}
    columns = {renamed.get(name, name): column for name, column in columns.items()}
    columns["key"] = [7, None, 9]
    columns["side"] = [0, 1, 0]
    path = write_table(tmp_path / "t.parquet", columns)
    own = {"audio_field": "mp3", "duration_field": "length", "id_field": "key"}
    leaf = parquet_leaf(path, own=own, text_field="said", lang_field="l", channel_selector="side")
    assert scanned(leaf)["duration_us"] == [100_000, 250_000, 300_000]
    got = [example_of(leaf, path, n) for n in range(3)]
    assert [e.id for e in got] == ["7", "t_1", "9"]
    assert (got[2].text, got[2].language) == ("text 2", "en")
    assert [e.audio.channel for e in got if e.audio] == [0, 1, 0]
    assert got[0].custom == {"speaker": 0, "side": 0}


def test_ids_count_through_the_whole_file(tmp_path):
    columns = speech_columns(10)
    del columns["id"]
    path = write_table(tmp_path / "train.part.parquet", columns, rows=3)
    ids = [example_of(parquet_leaf(path), path, n).id for n in range(10)]
    assert ids == [f"train.part_{n}" for n in range(10)]


def test_a_path_names_a_file_beside_the_table_and_bytes_win(tmp_path):
    (tmp_path / "a.wav").write_bytes(b"not this")
    (tmp_path / "b.wav").write_bytes(wav_bytes(0.5))
    columns = {
        "audio": cells([audio_of(0), None], "struct", ["a.wav", "b.wav"]),
        "duration": [0.1, None],
    }
    path = write_table(tmp_path / "t.parquet", columns)
    leaf = parquet_leaf(path)
    assert scanned(leaf)["duration_us"] == [100_000, 500_000]
    first, second = (example_of(leaf, path, n) for n in range(2))
    assert first.audio is not None
    assert second.audio is not None
    assert first.audio.source == audio_of(0)
    assert second.audio.source == str(tmp_path / "b.wav")
    assert second.audio.duration is None


@pytest.mark.parametrize("kind", ["bytes", "struct", "path"])
def test_a_cell_without_audio_is_named_by_its_row(tmp_path, kind):
    columns = speech_columns(10)
    names = [None if n == 6 else f"/{n}.wav" for n in range(10)]
    audio = [None if n == 6 else audio_of(n) for n in range(10)]
    columns["audio"] = cells(audio, kind, names if kind == "path" else [])
    path = write_table(tmp_path / "t.parquet", columns)
    says = r"Row 6 counted from 0, row group 1: the cell of the column 'audio' has no audio"
    with pytest.raises(BadRowError, match=says):
        scanned(parquet_leaf(path))
    columns["audio"] = cells([None] * 10, kind)
    with pytest.raises(BadRowError, match=r"Row 0 counted from 0, row group 0: the cell"):
        scanned(parquet_leaf(write_table(path, columns)))


def test_where_statistics_do_not_tell_it_is_found_when_it_is_read(tmp_path):
    columns = speech_columns(10)
    columns["audio"] = cells([None if n == 6 else audio_of(n) for n in range(10)], "struct")
    path = write_table(tmp_path / "t.parquet", columns, write_statistics=False)
    leaf = parquet_leaf(path)
    assert len(scanned(leaf)["rows"]) == 10
    says = r"no audio \(leaf leaf, .*t.parquet, row group 1, row 6 counted from 0\)"
    with pytest.raises(ManifestError, match=says):
        example_of(leaf, path, 6)
    assert example_of(leaf, path, 6, with_audio=False).text == "text 6"


def columns_with(**changed: Any) -> dict[str, Any]:
    columns = {**speech_columns(6), **changed}
    return {name: column for name, column in columns.items() if column is not None}


@pytest.mark.parametrize(
    ("columns", "own", "error", "says"),
    [
        (
            columns_with(audio=None),
            {},
            DataError,
            r"no column 'audio' \(.*audio_field; there are i",
        ),
        ({}, {"audio_field": "sound"}, DataError, "no column 'sound' .*audio_field; there are id,"),
        ({}, {"duration_field": "len"}, DataError, "no column 'len' .*duration_field; there are"),
        ({}, {"id_field": "key"}, DataError, "no column 'key' .*id_field; there are"),
        (columns_with(audio=["x"] * 6), {}, DataError, "'audio' holds string, which is no audio"),
        (
            columns_with(audio=[{"array": [1.0]}] * 6),
            {},
            DataError,
            "'audio' holds struct<.*which is no",
        ),
        (columns_with(duration=["1"] * 6), {}, DataError, "'duration' holds string, not a number"),
        (
            columns_with(duration=[1.0] * 5 + [-1.0]),
            {},
            BadRowError,
            "row 5 counted from 0, row group 1: the duration is -1.0 seconds",
        ),
        (
            columns_with(duration=[1.0, float("nan")] * 3),
            {},
            BadRowError,
            "row 1 counted from 0, row group 0: the duration is nan seconds",
        ),
        (
            columns_with(duration=None, audio=cells([audio_of(0)] * 5 + [b"no"], "bytes")),
            {},
            BadRowError,
            "row 5 counted from 0, row group 1: the row has no duration, and the header",
        ),
        (
            columns_with(text=pa.array([b"a", b"b", b"\xff", b"c", b"d", b"e"]).view(pa.string())),
            {},
            BadRowError,
            "row 2 counted from 0, row group 0: a text of the column 'text' is not UTF-8",
        ),
        (
            pa.Table.from_arrays([pa.array([1])] * 2, names=["a", "a"]),
            {},
            DataError,
            "two columns called 'a'",
        ),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path, columns, own, error, says):
    path = write_table(tmp_path / "t.parquet", columns or speech_columns(6))
    with pytest.raises(error, match=f"(?i){says}"):
        scanned(parquet_leaf(path, own=own))


def test_damage_is_named(tmp_path):
    whole = write_table(tmp_path / "t.parquet", speech_columns(20)).read_bytes()
    path = tmp_path / "d.parquet"
    for data in (b"", b"x", whole[: len(whole) // 2], whole[:-20], b"PAR1" + whole[4:-4] + b"PAR2"):
        path.write_bytes(data)
        with pytest.raises(DataError, match=r"not Parquet, or damaged.*d\.parquet"):
            scanned(parquet_leaf(path))
    path.unlink()
    with pytest.raises(SourceNotFoundError):
        scanned(parquet_leaf(path))


def test_a_damaged_page_is_named_by_its_row_group(tmp_path):
    table = pa.table(speech_columns(20))
    path = write_table(tmp_path / "t.parquet", table, write_page_checksum=True, compression="none")
    data = bytearray(path.read_bytes())
    for wanted, read in ((b"text 9", "scan"), (audio_of(9), "load")):
        at = data.index(wanted) + len(wanted) - 1
        data[at] ^= 1
        path.write_bytes(data)
        leaf = parquet_leaf(path)
        with pytest.raises(DataError, match=r"damaged: .*t\.parquet, row group 2\)"):
            scanned(leaf) if read == "scan" else example_of(leaf, path, 9)
        data[at] ^= 1
        path.write_bytes(data)
    assert len(scanned(leaf)["rows"]) == 20


@given(data=st.data())
def test_no_damage_goes_by_as_other_rows(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("damaged")
    table = pa.table(speech_columns(6))
    path = write_table(folder / "t.parquet", table, write_page_checksum=True)
    before = scanned(parquet_leaf(path))
    content = bytearray(path.read_bytes())
    if data.draw(st.booleans()):
        content = content[: data.draw(st.integers(0, len(content) - 1))]
    else:
        at = data.draw(st.integers(0, len(content) - 1))
        content[at] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(content)
    try:
        after = scanned(parquet_leaf(path))
    except (DataError, BadRowError):
        return
    # What a flipped bit of the footer says otherwise is not what rows say.
    if len(after["rows"]) == len(before["rows"]):
        assert sorted(json.loads(row)["text"] for row in after["rows"]) == sorted(
            json.loads(row)["text"] for row in before["rows"]
        )


def test_row_groups_and_their_bytes(tmp_path, caplog):
    path = write_table(tmp_path / "t.parquet", speech_columns(10), rows=4)
    leaf = parquet_leaf(path)
    ends, sizes = Parquet().groups(leaf, Parquet().sources(leaf)[0])
    assert ends.tolist() == [4, 8, 10]
    metadata = pq.read_metadata(path)
    assert sizes.tolist() == [metadata.row_group(n).total_byte_size for n in range(3)]
    empty = write_table(tmp_path / "e.parquet", pa.table(speech_columns(4)).slice(0, 0))
    ends, sizes = Parquet().groups(leaf, Parquet().sources(parquet_leaf(empty))[0])
    assert ends.tolist() in ([], [0])
    assert not caplog.records
    assert scanned(parquet_leaf(empty))["rows"] == []


def test_warnings_say_what_to_do(tmp_path, monkeypatch, caplog):
    caplog.set_level(logging.WARNING)
    columns = speech_columns(10)
    quiet = parquet_leaf(write_table(tmp_path / "quiet.parquet", columns))
    Parquet().groups(quiet, Parquet().sources(quiet)[0])
    assert not caplog.records
    del columns["text"]
    loud = parquet_leaf(write_table(tmp_path / "t.parquet", columns, write_statistics=False))
    monkeypatch.setattr(parquet_module, "_GIANT_BYTES", 10_000)
    Parquet().groups(loud, Parquet().sources(loud)[0])
    said = [record.getMessage() for record in caplog.records]
    assert all(str(tmp_path / "t.parquet") in text for text in said)
    assert "row group 0 has 0 MiB of 4 rows" in said[0]
    assert "row_group_size" in said[0]
    assert "3 of 3 row groups have no statistics" in said[1]
    assert "write_statistics=True" in said[1]
    assert "no column 'text'" in said[2]
    assert "text_field; there are id, audio" in said[2]
    assert len(said) == 3


def test_rows_are_loaded_in_the_order_asked_for(tmp_path):
    path = write_table(tmp_path / "t.parquet", speech_columns(23, "struct"), rows=5)
    leaf = parquet_leaf(path)
    rows = scanned(leaf)["rows"]
    places = np.random.default_rng(0).integers(0, 23, 60)
    for with_audio in (True, False, True):
        loaded = Parquet().load(leaf, str(path), places, with_audio=with_audio)
        assert [one.row for one in loaded] == [rows[place] for place in places]
        expected = [audio_of(place) if with_audio else None for place in places.tolist()]
        assert [one.audio for one in loaded] == expected
    assert Parquet().load(leaf, str(path), np.zeros(0, np.int64), with_audio=True) == []
    with pytest.raises(StaleIndexError, match="has 23 rows and row 23 is wanted"):
        Parquet().load(leaf, str(path), np.array([23]), with_audio=True)


@pytest.mark.parametrize("options", [{"cache_bytes": 64 << 30}, {"cache_bytes": 0}])
@given(
    shape=st.tuples(st.integers(1, 12), st.integers(1, 5)),
    kind=st.sampled_from(["bytes", "struct"]),
    data=st.data(),
)
def test_what_is_loaded_is_what_pyarrow_reads(tmp_path_factory, options, shape, kind, data):
    num_rows, group = shape
    columns = speech_columns(num_rows, kind)
    columns["when"] = pa.array(range(num_rows), pa.timestamp("ns", "Europe/Berlin"))
    columns["score"] = [n / 7 for n in range(num_rows)]
    path = write_table(tmp_path_factory.mktemp("t") / "t.parquet", columns, rows=group)
    leaf = parquet_leaf(path, **options)
    places = data.draw(st.lists(st.integers(0, num_rows - 1), max_size=8))
    loaded = Parquet().load(leaf, str(path), np.array(places, np.int64), with_audio=True)
    rows = scanned(leaf)["rows"]
    read = pq.read_table(path)
    for place, (row, audio) in zip(places, loaded, strict=True):
        cell = read["audio"][place].as_py()
        assert audio == (cell["bytes"] if kind == "struct" else cell)
        assert row == rows[place]
        fields = json.loads(row)
        assert fields["text"] == read["text"][place].as_py()
        assert fields["score"] == read["score"][place].as_py()


def test_a_file_that_was_written_anew_is_read_anew(tmp_path):
    path = write_table(tmp_path / "t.parquet", speech_columns(8))
    leaf = parquet_leaf(path)
    assert example_of(leaf, path, 2).text == "text 2"
    columns = speech_columns(8)
    columns["text"] = [f"other {n}" for n in range(8)]
    write_table(path, columns, rows=3)
    assert example_of(leaf, path, 2).text == "other 2"
    assert example_of(leaf, path, 7).text == "other 7"
    path.unlink()
    with pytest.raises(SourceNotFoundError, match=r"t\.parquet"):
        example_of(leaf, path, 7)
