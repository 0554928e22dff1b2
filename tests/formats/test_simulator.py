from __future__ import annotations

import bz2
import gzip
import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import soundfile as sf
from hypothesis import given, settings
from hypothesis import strategies as st
from lhotse import CutSet, Recording, SupervisionSegment
from lhotse.cut import MixedCut
from lhotse.serialization import deserialize_item
from lhotse.utils import compute_num_samples
from tests.support.stores import MemoryStore, plugged_in

from playhead.errors import (
    ConfigError,
    DataError,
    ManifestError,
    NotSupportedError,
    PlayheadError,
)
from playhead.formats import BadRowError, Place, ScannedFormat, TableFormat, get_format
from playhead.formats.simulator import MultiSpeakerSimulator
from playhead.index.build import build_packs
from support.corpus import wav_bytes, write_jsonl
from support.leaves import open_one
from support.simulated import TYPE, simulator_leaf, voice_rows, voices

if TYPE_CHECKING:
    from playhead.blend.leaf import Leaf
    from playhead.formats import Example, TableBlock

SECONDS = [1.0, 1.25, 0.7, 2.0, 1.5, 0.9, 1.1, 0.3, 1.3]
MADE = MultiSpeakerSimulator()


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("PLAYHEAD_CACHE", str(folder))
    return folder


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return voices(tmp_path_factory.mktemp("voices"), SECONDS)


def blocks(leaf: Leaf, on_bad: Any = None) -> list[TableBlock]:
    return [block for pair in MADE.sources(leaf) for block in MADE.scan(leaf, pair, on_bad)]


def rows(leaf: Leaf, on_bad: Any = None) -> dict[int, bytes]:
    """The rows of all mixtures by their numbers."""
    return {
        number: row
        for block in blocks(leaf, on_bad)
        for number, row in zip(block.place.tolist(), block.rows, strict=True)
    }


def dropped(leaf: Leaf, on_bad: Any = None) -> dict[str, int]:
    total: dict[str, int] = {}
    for block in blocks(leaf, on_bad):
        for reason, count in block.columns.dropped.items():
            total[reason] = total.get(reason, 0) + count
    return total


def example_of(leaf: Leaf, number: int) -> Example:
    path = leaf.paths["manifest"][0]
    place = Place(leaf=leaf.name, shard=path, row=number, byte=number, is_table=True)
    return MADE.example(leaf, place, rows(leaf)[number], [])


def cut_of(example: Example) -> Any:
    assert example.cut_data is not None
    return deserialize_item(json.loads(json.dumps(example.cut_data)))


def test_it_is_the_reader_of_its_type():
    assert isinstance(get_format(TYPE), MultiSpeakerSimulator)
    assert isinstance(MADE, ScannedFormat)
    assert not isinstance(MADE, TableFormat)


def test_the_index_knows_what_lhotse_says_of_every_mixture(manifest, tmp_path):
    leaf = simulator_leaf(manifest, num_mixtures=60)
    pack = open_one(leaf, tmp_path)
    assert pack.num_rows == 60
    for number in range(60):
        cut = cut_of(example_of(leaf, number))
        assert isinstance(cut, MixedCut)
        assert pack.duration_us[number] == round(cut.duration * 1e6)
        assert pack.num_samples[number] == cut.num_samples
        assert pack.rate[number] == cut.sampling_rate == 16000
        assert pack.channels[number] == cut.num_channels == 1
        assert pack.row_offset[number] == number
        assert pack.tar[number] == -1


def test_what_is_heard_is_the_files_one_over_another(manifest):
    leaf = simulator_leaf(manifest, num_speakers=3, num_mixtures=10)
    for number in range(10):
        example = example_of(leaf, number)
        cut = cut_of(example)
        total = np.zeros(cut.num_samples, np.float64)
        for track in cut.tracks:
            samples, rate = sf.read(track.cut.recording.sources[0].source)
            at = compute_num_samples(track.offset, rate)
            total[at : at + len(samples)] += samples[: len(total) - at]
        heard = cut.load_audio()
        assert heard.shape == (1, len(total))
        np.testing.assert_allclose(heard[0], total, atol=1e-6)


def test_every_speaker_has_a_supervision(manifest):
    listed = {row["text"]: row for row in map(json.loads, manifest.read_text().splitlines())}
    leaf = simulator_leaf(manifest, num_speakers=3, num_mixtures=20, tags={"corpus": "mix"})
    for number in range(20):
        example = example_of(leaf, number)
        cut = cut_of(example)
        said = cut.supervisions
        assert len({one.speaker for one in said}) == len(said) == 3
        for one, track in zip(said, cut.tracks, strict=True):
            row = listed[one.text]
            assert (one.speaker, one.language) == (row["speaker_id"], "en")
            assert one.start == pytest.approx(track.offset)
            assert one.duration == track.cut.duration == row["duration"]
            assert track.cut.custom["speaker_id"] == one.speaker
            assert track.cut.custom["text"] == one.text
        assert example.text == " ".join(one.text for one in said)
        assert example.language == "en"
        assert example.custom["corpus"] == "mix"
        assert example.audio is None
        speakers = "_".join(one.speaker for one in said)
        assert example.id == cut.id == f"lsmix_{speakers}_{number}"


def test_other_fields_may_hold_text_and_language(tmp_path):
    listed = [
        {**row, "transcript": f"other {n}", "tongue": "fr"}
        for n, row in enumerate(voice_rows([1.0, 1.0], 2))
    ]
    path = write_jsonl(tmp_path / "m.json", [{**row, "sampling_rate": 16000} for row in listed])
    plain = simulator_leaf(path, num_mixtures=3)
    other = simulator_leaf(
        path, num_mixtures=3, options={"text_field": "transcript", "lang_field": "tongue"}
    )
    # Packs do not depend on these options, so neither may rows.
    assert rows(plain) == rows(other)
    assert {one.text for one in cut_of(example_of(plain, 0)).supervisions} == {"words 0", "words 1"}
    got = cut_of(example_of(other, 0)).supervisions
    assert {one.text for one in got} == {"other 0", "other 1"}
    assert {one.language for one in got} == {"fr"}


def test_a_text_that_is_none_names_the_mixture(tmp_path):
    listed = [{**row, "text": [1], "sampling_rate": 8000} for row in voice_rows([1.0, 1.0], 2)]
    leaf = simulator_leaf(write_jsonl(tmp_path / "m.json", listed))
    with pytest.raises(ManifestError, match=r"'text' is \[1\].*row 3 counted from 0"):
        example_of(leaf, 3)


@settings(max_examples=25, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 400_000).map(lambda n: n / 16000), min_size=3, max_size=8),
    rate=st.sampled_from([8000, 16000, 22050, 44100]),
    count=st.integers(1, 3),
    delay=st.integers(0, 3000).map(lambda ms: ms / 1000),
)
def test_lengths_and_delays_are_exact(tmp_path_factory, lengths, rate, count, delay):
    folder = tmp_path_factory.mktemp("exact")
    listed = [{**row, "sampling_rate": rate} for row in voice_rows(lengths)]
    leaf = simulator_leaf(
        write_jsonl(folder / "m.json", listed),
        num_speakers=count,
        min_delay=min(delay, int(max(lengths) * 1000) / 1000),
        min_duration=0.0,
        num_mixtures=15,
    )
    for block in blocks(leaf):
        for at, row in enumerate(block.rows):
            cut = deserialize_item(json.loads(row))
            assert block.columns.num_samples[at] == cut.num_samples
            assert abs(int(block.columns.duration_us[at]) - cut.duration * 1e6) <= 0.5 + 1e-3
            assert block.columns.rate[at] == rate
            starts = [track.offset for track in cut.tracks]
            assert starts[0] == 0
            # In whole microseconds: as decimals their differences are not exact.
            steps = [round(b * 1e6) - round(a * 1e6) for a, b in pairwise(starts)]
            assert all(step >= round(leaf.own["min_delay"] * 1e6) for step in steps)
            assert len({track.cut.supervisions[0].speaker for track in cut.tracks}) == count


def test_mixtures_are_the_same_in_any_process(manifest, tmp_path):
    leaf = simulator_leaf(manifest, num_mixtures=3000)
    expected = rows(leaf)
    assert list(expected) == list(range(3000))
    script = f"""
import sys
from playhead.formats import SourcePair
from playhead.formats.simulator import MultiSpeakerSimulator
from support.simulated import simulator_leaf
leaf = simulator_leaf({str(manifest)!r}, num_mixtures=3000)
blocks = MultiSpeakerSimulator().scan(leaf, SourcePair(manifest={str(manifest)!r}), None)
rows = [row for block in blocks for row in block.rows]
for number in (5, 2048):
    sys.stdout.buffer.write(rows[number] + b"\\n")
"""
    support = Path(__file__).parents[1]
    other = subprocess.run(
        [sys.executable, "-c", script],
        check=True,
        capture_output=True,
        timeout=120,
        env={"PYTHONPATH": str(support), "PLAYHEAD_CACHE": str(tmp_path), "PYTHONHASHSEED": "7"},
    )
    assert other.stdout.splitlines() == [expected[5], expected[2048]]


def test_a_prefix_does_not_depend_on_how_many_there_are(manifest):
    few, many = (rows(simulator_leaf(manifest, num_mixtures=count)) for count in (10, 1500))
    assert few == {number: many[number] for number in few}
    assert len(rows(simulator_leaf(manifest))) == 1000


def test_a_pass_has_as_many_as_the_manifest_has_rows(tmp_path):
    listed = [{**row, "sampling_rate": 16000} for row in voice_rows([1.0] * 1100)]
    leaf = simulator_leaf(write_jsonl(tmp_path / "m.json", listed))
    assert len(rows(leaf)) == 1100


def test_ranks_and_what_else_has_no_meaning(manifest):
    plain = simulator_leaf(manifest, num_mixtures=30)
    other = simulator_leaf(
        manifest, num_mixtures=30, global_rank=3, world_size=8, is_tarred=True, sample_rate=8000
    )
    assert rows(plain) == rows(other)


def test_gzip_is_the_same(manifest, tmp_path):
    packed = manifest.parent / "voices.jsonl.gz"
    packed.write_bytes(gzip.compress(manifest.read_bytes()))
    leaf = simulator_leaf(packed, num_mixtures=30)
    assert rows(leaf) == rows(simulator_leaf(manifest, num_mixtures=30))
    pack = open_one(leaf, tmp_path)
    assert pack.row_bytes(3) == rows(leaf)[3]


def test_a_gzip_that_is_cut_short_is_no_shorter_manifest(manifest, tmp_path):
    packed = tmp_path / "voices.jsonl.gz"
    packed.write_bytes(gzip.compress(manifest.read_bytes())[:-20])
    with pytest.raises(DataError, match="cannot be decompressed"):
        rows(simulator_leaf(packed))


def test_a_manifest_may_be_compressed_or_on_a_store(manifest):
    expected = rows(simulator_leaf(manifest, num_mixtures=9))
    content = manifest.read_bytes()
    packed = manifest.parent / "m.jsonl.bz2"
    packed.write_bytes(bz2.compress(content))
    assert rows(simulator_leaf(packed, num_mixtures=9)) == expected
    wavs = {f"s3://b/wav/{path.name}": path.read_bytes() for path in manifest.parent.glob("wav/*")}
    with plugged_in(MemoryStore({"s3://b/m.jsonl": content, **wavs})):
        assert rows(simulator_leaf("s3://b/m.jsonl", num_mixtures=9)) == expected


def test_other_compressions_are_refused_by_name(tmp_path):
    path = tmp_path / "m.jsonl.lz4"
    path.write_bytes(b"?")
    with pytest.raises(NotSupportedError, match=r"zstd only.*Decompress it"):
        rows(simulator_leaf(path))


def test_blank_lines_and_a_byte_order_mark(manifest):
    odd = manifest.parent / "odd.json"
    odd.write_bytes(b"\xef\xbb\xbf" + manifest.read_bytes().replace(b"\n", b"\r\n\n \n"))
    assert rows(simulator_leaf(odd, num_mixtures=9)) == rows(
        simulator_leaf(manifest, num_mixtures=9)
    )


def test_a_row_with_its_rate_needs_no_header(tmp_path):
    listed = voice_rows([1.0, 2.0, 1.5])
    with_rate = [{**row, "sampling_rate": 22050} for row in listed]
    leaf = simulator_leaf(write_jsonl(tmp_path / "a.json", with_rate), num_mixtures=4)
    cut = deserialize_item(json.loads(rows(leaf)[0]))
    assert cut.sampling_rate == 22050
    # The same from the leaf's option; the files do not exist.
    leaf = simulator_leaf(
        write_jsonl(tmp_path / "b.json", listed),
        num_mixtures=4,
        options={"input_sampling_rate": 22050},
    )
    assert deserialize_item(json.loads(rows(leaf)[0])).duration == cut.duration
    leaf = simulator_leaf(tmp_path / "b.json", num_mixtures=4)
    said = r"Line \d: the row has no sampling_rate, and the header of .*: there is no such file"
    with pytest.raises(BadRowError, match=said):
        rows(leaf)


def test_the_header_tells_rate_and_channels(tmp_path):
    (tmp_path / "wav").mkdir()
    listed = voice_rows([1.0, 0.75], 2)
    for n, row in enumerate(listed):
        data = wav_bytes(row["duration"], 22050, channels=2, seed=n)
        (tmp_path / row["audio_filepath"]).write_bytes(data)
    leaf = simulator_leaf(write_jsonl(tmp_path / "m.json", listed), num_mixtures=1)
    cut = cut_of(example_of(leaf, 0))
    assert cut.sampling_rate == 22050
    assert cut.load_audio().shape == (1, cut.num_samples)
    first = cut.tracks[0].cut
    samples, _ = sf.read(first.recording.sources[0].source, always_2d=True)
    np.testing.assert_allclose(first.load_audio()[0], samples[:, 0], atol=1e-6)


def test_a_row_may_be_a_stretch_of_a_file(tmp_path):
    (tmp_path / "long.wav").write_bytes(wav_bytes(5.0, 16000, seed=3))
    common = {"audio_filepath": str(tmp_path / "long.wav"), "duration": 1.25}
    listed = [
        {**common, "offset": offset, "speaker_id": offset, "text": f"at {offset}"}
        for offset in (0, 1, 3)
    ]
    leaf = simulator_leaf(write_jsonl(tmp_path / "m.json", listed), num_mixtures=6)
    whole, _ = sf.read(tmp_path / "long.wav")
    for number in range(6):
        for track in cut_of(example_of(leaf, number)).tracks:
            begin = int(track.cut.supervisions[0].speaker) * 16000
            heard = track.cut.load_audio()[0]
            np.testing.assert_allclose(heard, whole[begin : begin + 20000], atol=1e-6)
            # The supervision begins with the cut, and so does what is told by `offset`.
            assert track.cut.supervisions[0].start == track.cut.custom["offset"] == 0


def cuts_manifest(folder: Path, name: str = "cuts.jsonl") -> Path:
    cuts = []
    for n, seconds in enumerate(SECONDS):
        path = folder / f"{n}.wav"
        path.write_bytes(wav_bytes(seconds, seed=n))
        cut = Recording.from_file(path).to_cut().with_id(f"cut-{n}")
        half = seconds / 2
        cut.supervisions = [
            SupervisionSegment(f"{n}a", cut.recording_id, 0, half, text="one", speaker=f"s{n % 3}"),
            SupervisionSegment(f"{n}b", cut.recording_id, half, half, text=None),
        ]
        cut.custom = {"speaker_id": f"s{n % 3}", "more": n, "text": "of both"}
        cuts.append(cut)
    CutSet.from_cuts(cuts).to_file(folder / name)
    return folder / name


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz"])
def test_rows_may_be_lhotse_cuts(tmp_path, suffix):
    path = cuts_manifest(tmp_path, f"cuts{suffix}")
    theirs = {cut.id: cut for cut in CutSet.from_file(path)}
    leaf = simulator_leaf(path, num_mixtures=12)
    for number in range(12):
        cut = cut_of(example_of(leaf, number))
        for track in cut.tracks:
            original = theirs[track.cut.id]
            said = track.cut.supervisions
            assert [one.text for one in said] == ["one", None]
            assert {one.speaker for one in said} == {original.custom["speaker_id"]}
            assert track.cut.recording == original.recording
            assert track.cut.custom == original.custom
        assert cut.load_audio().shape == (1, cut.num_samples)


def test_the_speaker_of_a_cut_is_who_is_heard_in_it(tmp_path):
    cuts = []
    for n in range(3):
        (tmp_path / f"{n}.wav").write_bytes(wav_bytes(1.0, seed=n))
        cut = Recording.from_file(tmp_path / f"{n}.wav").to_cut()
        cut.supervisions = [SupervisionSegment("a", cut.recording_id, 0, 1, speaker=f"s{n}")]
        cuts.append(cut)
    CutSet.from_cuts(cuts).to_file(tmp_path / "cuts.jsonl")
    leaf = simulator_leaf(tmp_path / "cuts.jsonl", num_speakers=3, num_mixtures=2)
    got = cut_of(example_of(leaf, 0)).supervisions
    assert {one.speaker for one in got} == {"s0", "s1", "s2"}


def test_a_cut_without_supervisions_gets_one(tmp_path):
    (tmp_path / "a.wav").write_bytes(wav_bytes(1.0))
    cut = Recording.from_file(tmp_path / "a.wav").to_cut()
    cut.custom = {"speaker_id": 7, "text": "seven"}
    CutSet.from_cuts([cut]).to_file(tmp_path / "cuts.jsonl")
    leaf = simulator_leaf(tmp_path / "cuts.jsonl", num_speakers=1, num_mixtures=2)
    (got,) = cut_of(example_of(leaf, 1)).supervisions
    assert (got.speaker, got.text, got.start, got.duration) == ("7", "seven", 0, 1.0)


def test_relative_paths_are_beside_the_manifest(manifest):
    leaf = simulator_leaf(manifest, num_mixtures=2)
    source = cut_of(example_of(leaf, 0)).tracks[0].cut.recording.sources[0].source
    assert Path(source).parent == manifest.parent / "wav"
    assert b"/wav/" not in rows(leaf)[0]


GOOD = voice_rows([1.0, 1.0, 1.0])
MIXED = {"id": "m", "type": "MixedCut", "tracks": []}
SHAR = {
    "id": "c",
    "type": "MonoCut",
    "start": 0,
    "duration": 1,
    "channel": 0,
    "recording": {
        "id": "r",
        "sampling_rate": 8000,
        "num_samples": 8000,
        "duration": 1,
        "sources": [{"type": "shar", "channels": [0], "source": ""}],
    },
    "custom": {"speaker_id": "a"},
}
BAD = [
    ("{", r"Line 2: the row is not valid JSON"),
    ("[1]", r"Line 2: the row is not what it should be"),
    ('{"a": 1} {"b": 2}', r"Line 2: the line is not one JSON object"),
    ({"duration": 1, "speaker_id": "a"}, r"Line 2: the row has no audio_filepath.*Add the path"),
    ({"audio_filepath": "a", "speaker_id": "a"}, r"Line 2: the row has no duration"),
    ({**GOOD[0], "duration": -1}, r"Line 2: the duration is -1.0 seconds"),
    ({**GOOD[0], "duration": "1"}, r"Line 2: the row's field 'duration' has the wrong type"),
    ({**GOOD[0], "offset": -1}, r"Line 2: the offset is -1.0 seconds"),
    ({"audio_filepath": "a", "duration": 1}, r"Line 2: .* whose voice it is.*Add a speaker_id"),
    (MIXED, r"Line 2: the row is a MixedCut, and only a MonoCut can be mixed"),
    (SHAR, r"Line 2: the cut has no recording in a file of its own"),
]


@pytest.mark.parametrize(("row", "said"), BAD)
def test_a_row_that_cannot_be_used_is_named(tmp_path, row, said):
    path = tmp_path / "m.json"
    bad = row if isinstance(row, str) else json.dumps(row)
    good = [json.dumps({**each, "sampling_rate": 8000}) for each in GOOD]
    path.write_text("\n".join([good[0], bad, *good[1:]]) + "\n")
    leaf = simulator_leaf(path, num_mixtures=5)
    with pytest.raises(ManifestError) as caught:
        open_one(leaf, tmp_path / "packs")
    assert caught.match(said)
    assert f"{path})" in str(caught.value)
    assert "--skip-bad-rows" in str(caught.value)
    # On request it is left out and counted: what is left is as if it had never been there.
    (built,) = build_packs([leaf], indexes_root=str(tmp_path / "root"), skip_bad_rows=True)
    assert (built.num_rows, built.dropped, built.error) == (5, {"bad row": 1}, None)
    told: list[BadRowError] = []
    got = rows(leaf, told.append)
    assert len(told) == 1
    path.write_text("\n".join(good) + "\n")
    assert got == rows(leaf)


def test_skipped_rows_are_counted(tmp_path):
    listed = [{**row, "sampling_rate": 8000} for row in voice_rows([1.0] * 5, 5)]
    listed[1]["_skipme"] = "noisy"
    listed[3]["custom"] = {"_skipme": 1}
    path = write_jsonl(tmp_path / "m.json", listed)
    assert dropped(simulator_leaf(path, num_speakers=3, num_mixtures=2500)) == {"_skipme": 2}
    leaf = simulator_leaf(path, num_speakers=3, num_mixtures=9)
    heard = {one.speaker for n in range(9) for one in cut_of(example_of(leaf, n)).supervisions}
    assert heard == {"s0", "s2", "s4"}


def test_audio_that_cannot_be_looked_at_leaves_its_mixtures_out(manifest, tmp_path):
    listed = [json.loads(line) for line in manifest.read_text().splitlines()]
    for row in listed:
        row["audio_filepath"] = str(manifest.parent / row["audio_filepath"])
    listed[0]["audio_filepath"] = "/nowhere/a.wav"
    leaf = simulator_leaf(write_jsonl(tmp_path / "m.json", listed), num_mixtures=40)
    told: list[BadRowError] = []
    got = rows(leaf, told.append)
    assert 0 < len(told) == 40 - len(got)
    assert all("line 1: the row has no sampling_rate" in error.what for error in told)


def test_mixtures_out_of_bounds_are_counted_and_keep_their_numbers(tmp_path):
    # One speaker has one cut, which is too long.
    listed = [{**row, "sampling_rate": 8000} for row in voice_rows([9.0] + [1.0] * 9, 10)]
    path = write_jsonl(tmp_path / "m.json", listed)
    leaf = simulator_leaf(path, num_speakers=10, max_duration=9.5, num_mixtures=300)
    got = rows(leaf)
    left_out = dropped(leaf)["mixture above max_duration"]
    assert left_out == 300 - len(got)
    assert 0 < len(got) < 300
    pack = open_one(leaf, tmp_path / "packs")
    assert pack.row_offset.tolist() == list(got)
    assert int(pack.duration_us.max()) <= 9_500_000


@pytest.mark.parametrize(
    ("seconds", "own", "said"),
    [
        ([], {}, r"no row that can be used \(leaf sim, .*m.json\). Add rows"),
        ([1.0], {}, r"has 1 speakers, and num_speakers is 2.*Lower num_speakers"),
        ([1.0, 1.0], {"num_speakers": 3}, "has 2 speakers, and num_speakers is 3"),
        ([1.0, 1.2], {"min_delay": 1.5}, r"min_delay is 1.5 s and no row is longer than 1.2 s"),
        ([1.0, 1.0], {"max_duration": 0.5}, r"first 1000 is from 0.1 to 0.5 s.*Raise max_d"),
    ],
)
def test_a_manifest_that_gives_no_mixtures(tmp_path, seconds, own, said):
    listed = [{**row, "sampling_rate": 8000} for row in voice_rows(seconds)]
    leaf = simulator_leaf(write_jsonl(tmp_path / "m.json", listed), **own)
    with pytest.raises(PlayheadError, match=said):
        open_one(leaf, tmp_path / "packs")


def test_one_manifest_only(manifest):
    with pytest.raises(ConfigError, match=r"one manifest, and manifest_filepath names 2"):
        MADE.sources(simulator_leaf(manifest, manifest))


def test_options_are_checked_before_anything_is_read():
    with pytest.raises(ConfigError, match="num_speakers is 0"):
        MADE.sources(simulator_leaf("/nowhere.json", num_speakers=0))


def test_a_nan_somewhere_in_a_row(tmp_path):
    listed = [{**row, "sampling_rate": 8000, "snr": float("nan")} for row in GOOD]
    leaf = simulator_leaf(write_jsonl(tmp_path / "m.json", listed), num_mixtures=2)
    assert cut_of(example_of(leaf, 0)).tracks[0].cut.custom["snr"] is None


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {"text": "\ud800", "sampling_rate": 8000},
            "Line 1: the row cannot be written again: .*surr",
        ),
        (
            {"audio_filepath": "\ud800.wav"},
            "Line 1: the row has no sampling_rate.*there is no such file",
        ),
        ({"audio_filepath": "a\0.wav"}, "Line 1: the row has no sampling_rate"),
        ({"sampling_rate": 0.5}, "Line 1: the sampling rate is 0.5 Hz"),
    ],
)
def test_a_row_that_can_be_read_and_not_used(tmp_path, changed, said):
    path = write_jsonl(tmp_path / "m.json", [{**GOOD[0], **changed}])
    with pytest.raises(ManifestError, match=said):
        open_one(simulator_leaf(path, num_speakers=1), tmp_path / "packs")


def test_changed_rows_are_other_mixtures(manifest, tmp_path):
    leaf = simulator_leaf(
        write_jsonl(tmp_path / "m.json", GOOD),
        num_mixtures=5,
        options={"input_sampling_rate": 8000},
    )
    before = rows(leaf)
    write_jsonl(tmp_path / "m.json", [{**row, "duration": 1.5} for row in GOOD])
    after = rows(leaf)
    assert len(before) == 5
    assert all(after[number] != row for number, row in before.items())
