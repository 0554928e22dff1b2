from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import soundfile as sf
from lhotse.cut import MonoCut
from lhotse.serialization import deserialize_item

from playhead.errors import ManifestError
from playhead.formats import Place, SourcePair
from playhead.formats.simulator import MultiSpeakerSimulator
from support.corpus import write_jsonl
from support.leaves import open_one
from support.simulated import conversations, simulator_leaf

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.blend.leaf import Leaf
    from playhead.formats import Example

MADE = MultiSpeakerSimulator()
TALKS = [
    [(0.0, 0.8, "a"), (1.0, 1.9, "b"), (1.6, 2.4, "a"), (2.5, 3.0, "b")],
    [(0.25, 1.25, "c"), (0.5, 0.75, "d"), (1.0, 1.5, "d"), (2.0, 2.5, "c")],
]


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAYHEAD_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return conversations(tmp_path_factory.mktemp("talks"), TALKS)


def loader_leaf(path: Path, **own: Any) -> Leaf:
    return simulator_leaf(path, simulator_type="mixture_loader", **own)


def examples(leaf: Leaf, count: int) -> list[Example]:
    path = leaf.paths["manifest"][0]
    blocks = MADE.scan(leaf, SourcePair(manifest=path), None)
    found = [row for block in blocks for row in block.rows][:count]
    place = Place(leaf=leaf.name, shard=path, row=0, byte=0, is_table=True)
    return [MADE.example(leaf, place, row, []) for row in found]


def cut_of(example: Example) -> Any:
    assert example.cut_data is not None
    return deserialize_item(json.loads(json.dumps(example.cut_data)))


def test_a_mixture_is_a_stretch_of_a_conversation(manifest):
    leaf = loader_leaf(manifest, num_mixtures=40)
    seen = set()
    for number, example in enumerate(examples(leaf, 40)):
        cut = cut_of(example)
        assert isinstance(cut, MonoCut)
        name, of = cut.id.rsplit("_", 1)
        assert int(of) == number
        talk = TALKS[int(name.removeprefix("talk"))]
        said = [
            (one.start + cut.start, one.end + cut.start, one.speaker) for one in cut.supervisions
        ]
        begin = next(at for at, one in enumerate(talk) if one[0] == cut.start)
        expected = talk[begin : begin + len(said)]
        np.testing.assert_allclose([one[:2] for one in said], [one[:2] for one in expected])
        assert [one[2] for one in said] == [one[2] for one in expected]
        assert [one.text for one in cut.supervisions] == [f"{s} at {b}" for b, _, s in expected]
        assert {one.language for one in cut.supervisions} == {"de"}
        assert len({one.id for one in cut.supervisions}) == len(said)
        assert cut.duration == pytest.approx(max(one[1] for one in expected) - cut.start)
        assert cut.custom["offset"] == 0
        assert example.text == " ".join(one.text for one in cut.supervisions)
        seen.add((name, cut.start))
    assert seen == {("talk0", 0), ("talk0", 1), ("talk0", 2.5), ("talk1", 0.25), ("talk1", 2)}


def test_the_index_knows_its_length_and_rate(manifest, tmp_path):
    leaf = loader_leaf(manifest, num_mixtures=12)
    pack = open_one(leaf, tmp_path)
    for number, example in enumerate(examples(leaf, 12)):
        cut = cut_of(example)
        assert pack.duration_us[number] == round(cut.duration * 1e6)
        assert pack.num_samples[number] == cut.num_samples
        assert pack.rate[number] == 8000


def test_what_is_heard_is_that_stretch(manifest):
    for example in examples(loader_leaf(manifest, num_mixtures=12), 12):
        cut = cut_of(example)
        whole, rate = sf.read(cut.recording.sources[0].source)
        begin = round(cut.start * rate)
        heard = cut.load_audio()[0]
        np.testing.assert_allclose(heard, whole[begin : begin + cut.num_samples], atol=1e-6)
        assert example.audio is not None
        assert (example.audio.start, example.audio.duration) == (cut.start, cut.duration)


def test_a_declared_rate_spares_the_header(manifest):
    rows = [json.loads(line) for line in manifest.read_text().splitlines()]
    for row, seconds in zip(rows, (3.0, 2.5), strict=True):
        row |= {"sampling_rate": 8000, "duration": seconds}
    other = write_jsonl(manifest.parent / "declared.json", rows)
    pairs = zip(
        examples(loader_leaf(manifest, num_mixtures=9), 9),
        examples(loader_leaf(other, num_mixtures=9), 9),
        strict=True,
    )
    for measured, declared in pairs:
        assert cut_of(measured).recording == cut_of(declared).recording
        assert (cut_of(measured).load_audio() == cut_of(declared).load_audio()).all()


def test_longer_stretches_on_request(manifest):
    leaf = loader_leaf(manifest, num_mixtures=30, min_duration=2.0)
    lengths = {round(cut_of(example).duration, 6) for example in examples(leaf, 30)}
    # One and the next: the last ones of all, alone, are too short.
    assert lengths == {2.4, 2.0, 2.25}


def test_a_transcript_of_several_conversations(tmp_path):
    path = conversations(tmp_path, TALKS[:1])
    seglst = json.loads((tmp_path / "talk0.json").read_text())
    other = {**seglst[0], "session_id": "else", "words": "no", "start_time": 5, "end_time": 6}
    (tmp_path / "talk0.json").write_text(json.dumps([other, *seglst]))
    leaf = loader_leaf(path, num_mixtures=20)
    assert not any("no" in (example.text or "").split() for example in examples(leaf, 20))
    # Where none bears the name of the row's, all are of the one conversation.
    for one in seglst:
        one["session_id"] = "another name"
    (tmp_path / "talk0.json").write_text(json.dumps(seglst))
    path.write_text(path.read_text() + "\n")
    assert len(examples(leaf, 20)) == 20


def test_a_transcript_may_be_in_any_order(tmp_path):
    path = conversations(tmp_path, TALKS)
    before = [example.cut_data for example in examples(loader_leaf(path, num_mixtures=9), 9)]
    for name in ("talk0.json", "talk1.json"):
        seglst = json.loads((tmp_path / name).read_text())
        (tmp_path / name).write_text(json.dumps(seglst[::-1]))
    path.write_text(path.read_text() + "\n")
    assert [e.cut_data for e in examples(loader_leaf(path, num_mixtures=9), 9)] == before


def test_times_may_be_texts(tmp_path):
    path = conversations(tmp_path, TALKS[:1])
    seglst = json.loads((tmp_path / "talk0.json").read_text())
    for one in seglst:
        one |= {"start_time": str(one["start_time"]), "end_time": str(one["end_time"])}
    before = [example.cut_data for example in examples(loader_leaf(path, num_mixtures=5), 5)]
    (tmp_path / "talk0.json").write_text(json.dumps(seglst))
    path.write_text(path.read_text() + "\n")
    assert [e.cut_data for e in examples(loader_leaf(path, num_mixtures=5), 5)] == before


ENTRY = {"session_id": "talk0", "speaker": "a", "words": "hm", "start_time": 0.0, "end_time": 1.0}


@pytest.mark.parametrize(
    ("seglst", "said"),
    [
        (None, r"Line 1: the transcript .*talk0.json cannot be read: it cannot be opened: No such"),
        ("{", r"talk0.json cannot be read: it is no list of entries"),
        ([{"start_time": 1}], r"it is no list of entries with start_time"),
        ([], r"nobody says anything in .*talk0.json"),
        ([{**ENTRY, "end_time": 0.0}], r"an entry from 0.0 to 0.0 s.*the end after the start"),
        ([{**ENTRY, "start_time": -1.0}], r"an entry from -1.0 to 1.0 s"),
    ],
)
def test_a_transcript_that_cannot_be_used_is_named(tmp_path, seglst, said):
    path = conversations(tmp_path, TALKS[:1])
    if seglst is None:
        (tmp_path / "talk0.json").unlink()
    else:
        text = seglst if isinstance(seglst, str) else json.dumps(seglst)
        (tmp_path / "talk0.json").write_text(text)
    with pytest.raises(ManifestError, match=said):
        open_one(loader_leaf(path), tmp_path / "packs")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"seglst_filepath": "a\x00b"}, "Line 1: .*cannot be opened"),
        ({"duration": 1e300, "sampling_rate": 8000}, "Line 1: the duration is 1e[+]300 seconds"),
        ({"duration": -5, "sampling_rate": 8000}, "Line 1: the duration is -5"),
    ],
)
def test_a_row_with_what_nothing_can_be_is_named(tmp_path, more, said):
    path = conversations(tmp_path, TALKS[:1])
    write_jsonl(path, [{**json.loads(path.read_text()), **more}])
    with pytest.raises(ManifestError, match=said):
        open_one(loader_leaf(path), tmp_path / "packs")


@pytest.mark.parametrize("name", ["audio_filepath", "seglst_filepath", "session_id"])
def test_a_row_that_lacks_something_is_named(tmp_path, name):
    path = conversations(tmp_path, TALKS[:1])
    row = json.loads(path.read_text())
    del row[name]
    write_jsonl(path, [row])
    with pytest.raises(ManifestError, match=f"Line 1: the row has no {name}"):
        open_one(loader_leaf(path), tmp_path / "packs")
