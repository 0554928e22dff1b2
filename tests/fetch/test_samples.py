"""Cuts, texts and conversations in one batch, augmented or without their audio."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from lhotse.cut import Cut

import playhead
from playhead.errors import AudioError
from playhead.fetch.bad import BadAudio
from playhead.fetch.inspection import _culprit
from playhead.fetch.waveforms import waveform
from playhead.formats import Audio, Example, Turn
from support.corpus import nemo_corpus, wav_bytes, write_tar
from support.fetching import PLACE
from support.talk import conversations_tars, section, txt
from support.talk_cuts import FORMS
from support.told import Words, conversations, said, spoken

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

SECONDS = [0.1, 0.2, 0.8, 1.0, 0.3, 0.2, 0.1, 0.2]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAYHEAD_CACHE", str(tmp_path / "cache"))


class Sample(NamedTuple):
    id: str
    kind: str
    sounds: list[bytes]
    tokens: list[int] | None = None


class Cuts:
    """What is heard of samples as Lhotse's datasets get them."""

    def __getitem__(self, samples: Iterable[Any]) -> dict[str, Any]:
        return {"samples": [self._told(one) for one in samples]}

    def _told(self, one: Any) -> Sample:
        tokens = getattr(one, "input_ids", None)
        listed = None if tokens is None else tokens.tolist()
        if isinstance(one, Cut):
            return Sample(one.id, "Cut", [one.load_audio().tobytes()], listed)
        cuts = one.list_cuts() if hasattr(one, "list_cuts") else []
        sounds = [cut.load_audio().tobytes() for cut in cuts]
        return Sample(one.id, type(one).__name__, sounds, listed)


class Examples:
    """The same of examples."""

    reads_audio = True

    def collate(
        self, examples: list[Example], *, sample_rate: int | None, sample_keys: Any
    ) -> dict[str, Any]:
        assert len(sample_keys) == len(examples)
        return {"samples": [self._told(one, sample_rate) for one in examples]}

    def _told(self, one: Example, rate: int | None) -> Sample:
        heard = [one] if one.kind == "cut" else [turn.audio for turn in one.turns if turn.audio]
        kind = {"cut": "Cut", "text": "TextSample"}.get(one.kind, "Conversation")
        sounds = [waveform(audio, rate)[0].tobytes() for audio in heard]
        tokens = one.tokens.get("input_ids")
        return Sample(one.id, kind, sounds, None if tokens is None else list(tokens))


@pytest.fixture(scope="module")
def blend(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Speech, conversations with and without audio, and texts; llama3 has to be told what to do."""
    manifest = nemo_corpus(tmp_path_factory.mktemp("cuts"), SECONDS)
    speech = {"type": "nemo", "manifest_filepath": str(manifest)}
    return [
        {**speech, "tags": {"context": "what is said"}},
        conversations_tars(tmp_path_factory.mktemp("talk")),
        txt(tmp_path_factory.mktemp("text")),
    ]


@pytest.fixture(scope="module")
def noise(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(nemo_corpus(tmp_path_factory.mktemp("noise"), [2.0] * 2, prefix="noise"))


def batches(
    blend: list[dict[str, Any]], dataset: Any, tokenizer: Any = None, **options: Any
) -> list[dict[str, Any]]:
    plain = {"sample_rate": 16000, "batch_size": 14, "info": True, "shuffle": True, "seed": 3}
    config = section(*blend, **{**plain, **options})
    return list(playhead.dataloader(config, dataset=dataset, tokenizer=tokenizer))


SINGLE: dict[str, dict[str, Any]] = {
    "noise": {"noise_mix_prob": 1.0},
    "speed": {"perturb_speed": True},
    "truncation": {"truncate_duration": 0.15},
    "padding": {"pad_min_duration": 1.5},
    "lowpass": {
        "lowpass_enabled": True,
        "lowpass_prob": 1.0,
        "lowpass_frequencies_interval": [1500, 4000],
    },
    "clipping": {"clipping_enabled": True, "clipping_prob": 1.0},
    "reverb": {"rir_enabled": True, "rir_prob": 1.0},
    "compression": {
        "compression_enabled": True,
        "compression_prob": 1.0,
        "compression_codecs": ["opus"],
    },
}
EVERYTHING = {name: value for options in SINGLE.values() for name, value in options.items()}
# What leaves some cuts as they are: speeds of 1, and those that are short or long enough.
NOT_ALL = {"speed", "truncation"}


@pytest.mark.parametrize("dataset", [Cuts, Examples])
@pytest.mark.parametrize("name", [*SINGLE, "everything"])
def test_cuts_are_augmented_and_others_are_not(
    blend: list[dict[str, Any]], noise: str, dataset: Any, name: str
):
    options = EVERYTHING if name == "everything" else SINGLE[name]
    if "noise_mix_prob" in options:
        options = {**options, "noise_path": noise}
    plain = batches(blend, dataset())
    found = batches(blend, dataset(), **options)
    assert len(plain) == 2
    changed = []
    for before, after in zip(plain, found, strict=True):
        assert [one.id for one in before["samples"]] == [one.id for one in after["samples"]]
        assert len(after["playhead"].repeated) == len(after["samples"])
        for one, other in zip(before["samples"], after["samples"], strict=True):
            if one.kind == "Cut":
                changed.append(one != other)
            else:
                assert one == other
    assert any(changed)
    assert name in NOT_ALL or all(changed)


@pytest.mark.parametrize("options", [{}, EVERYTHING, {"concatenate_samples": True}])
def test_batches_of_text_alone_are_not_augmented(
    blend: list[dict[str, Any]], noise: str, options: dict[str, Any]
):
    more = {**options, "noise_path": noise, "noise_mix_prob": 1.0, "db_norm": None}
    for dataset in (Cuts, Examples):
        plain = batches(blend[2:], dataset(), batch_size=4)
        found = batches(blend[2:], dataset(), batch_size=4, **more)
        assert [one["samples"] for one in found] == [one["samples"] for one in plain]
        assert sum(len(one["samples"]) for one in found) == 10


@pytest.mark.parametrize("dataset", [Cuts, Examples])
@pytest.mark.parametrize("tokenizer", [None, Words()])
def test_joined_cuts_stand_before_what_is_not_joined(
    blend: list[dict[str, Any]], dataset: Any, tokenizer: Any
):
    options = {} if tokenizer is None else {"prompt_format": "llama3"}
    plain = batches(blend, dataset(), tokenizer, batch_size=28, **options)
    more = {"concatenate_samples": True, "db_norm": None, "concatenate_merge_supervisions": True}
    found = batches(blend, dataset(), tokenizer, batch_size=28, **options, **more)
    ((before,), (after,)) = ([one["samples"] for one in each] for each in (plain, found))
    cuts = [one for one in before if one.kind == "Cut"]
    others = [one for one in before if one.kind != "Cut"]
    joined = after[: -len(others)]
    assert after[-len(others) :] == others
    assert {one.kind for one in joined} == {"Cut"}
    # Some are joined, none is lost.
    assert 1 < len(joined) < len(cuts)
    heard = sum(len(one.sounds[0]) for one in joined)
    assert heard >= sum(len(one.sounds[0]) for one in cuts)
    lengths = [len(one.sounds[0]) for one in joined]
    assert lengths == sorted(lengths, reverse=True)
    assert len(found[0]["playhead"].repeated) == len(after)
    if tokenizer is not None:
        assert all(one.tokens for one in after)
        # The prompt stands before each: joined samples have it once, and all that is said in them.
        asked, told = (sum(word.encode()) for word in ("is", "utt"))
        assert [(one.tokens or []).count(asked) for one in joined] == [1] * len(joined)
        assert sum((one.tokens or []).count(told) for one in joined) == len(cuts)


def test_windows_are_of_cuts(blend: list[dict[str, Any]]):
    found = batches(blend, Cuts(), cut_into_windows_duration=0.25)
    samples = [one for batch in found for one in batch["samples"]]
    cuts = [one for one in samples if one.kind == "Cut"]
    assert len(cuts) == sum(max(1, -(-round(s * 100) // 25)) for s in SECONDS)
    assert len({one.id for one in cuts}) == len(cuts)
    assert len(samples) - len(cuts) == 20


@pytest.mark.parametrize("rate", [8000, 22050])
@pytest.mark.parametrize("dataset", [Cuts, Examples])
def test_turns_are_resampled_as_cuts_are(tmp_path: Path, dataset: Any, rate: int):
    rows = []
    for number, original in enumerate((16000, 44100)):
        (tmp_path / f"{number}.wav").write_bytes(wav_bytes(0.4, original, seed=number))
        turns = [spoken(f"{number}.wav", 0.2, offset=0.1), said("yes", "Assistant")]
        rows.append({"id": str(number), "conversations": turns})
    (batch,) = batches([conversations(tmp_path, rows)], dataset(), sample_rate=rate, shuffle=False)
    for sample in batch["samples"]:
        assert [len(sound) // 4 for sound in sample.sounds] == [round(0.2 * rate)]


def test_all_channels_of_a_turn_are_kept_and_those_of_cuts_chosen(tmp_path: Path):
    (tmp_path / "two.wav").write_bytes(wav_bytes(0.2, channels=2))
    turns = [spoken("two.wav", 0.2), said("yes", "Assistant")]
    entry = conversations(tmp_path, [{"id": "x", "conversations": turns}])
    row = {"audio_filepath": "two.wav", "duration": 0.2, "text": "x"}
    (tmp_path / "m.json").write_text(json.dumps(row) + "\n")
    nemo = {"type": "nemo", "manifest_filepath": str(tmp_path / "m.json")}
    as_talk = {"type": "lhotse_as_conversation", "input_cfg": [nemo]}
    for dataset in (Cuts, Examples):
        (batch,) = batches([entry, nemo, as_talk], dataset(), shuffle=False, channel_selector=1)
        sizes = sorted(len(one.sounds[0]) // 4 for one in batch["samples"])
        assert sizes == [3200, 3200, 6400]
        one, other = (one.sounds[0] for one in batch["samples"] if len(one.sounds[0]) == 3200 * 4)
        assert one == other


class Lengths:
    """What samples say without being heard."""

    def __getitem__(self, samples: Iterable[Any]) -> dict[str, Any]:
        told = []
        for one in samples:
            cuts = [one] if isinstance(one, Cut) else getattr(one, "list_cuts", list)()
            told.append((type(one).__name__, one.id, [round(cut.duration, 3) for cut in cuts]))
        return {"samples": told}


@pytest.mark.parametrize("name", [name for name, form in FORMS.items() if form.num])
def test_metadata_says_what_samples_say(tmp_path: Path, name: str):
    entry = FORMS[name].write(tmp_path / "data")
    read = batches([entry], Lengths())
    found = batches([entry], Lengths(), metadata_only=True)
    assert [one["samples"] for one in found] == [one["samples"] for one in read]
    if name == "lhotse_magpietts_data_as_continuation":
        # How long it becomes, only its target knows.
        return
    # Without audio nothing is missed.
    for path in (tmp_path / "data").rglob("*.wav"):
        path.unlink()
    again = batches([entry], Lengths(), metadata_only=True)
    assert [one["samples"] for one in again] == [one["samples"] for one in read]


def test_turns_of_one_name_have_lengths_of_their_own(tmp_path: Path):
    turns = [spoken("a/v.wav", 0.1), spoken("b/v.wav", 0.3), said("yes", "Assistant")]
    members = [("a/v.wav", wav_bytes(0.1)), ("b/v.wav", wav_bytes(0.3))]
    entry = conversations(
        tmp_path,
        [{"id": "x", "conversations": turns}],
        tarred_audio_filepaths=str(write_tar(tmp_path / "a.tar", members)),
    )
    for options in ({}, {"metadata_only": True}):
        (batch,) = batches([entry], Lengths(), **options)
        assert batch["samples"] == [("Conversation", "x", [0.1, 0.3])]


# Turns that cannot be heard ------------------------------------------------------------------


def talk_with_a_bad_turn(folder: Path, bad: bytes | None) -> dict[str, Any]:
    """Six conversations of three spoken turns, one of which, the last of the third, is bad."""
    rows, members = [], []
    for number in range(6):
        turns = []
        for turn in range(3):
            data = wav_bytes(0.1, seed=3 * number + turn)
            is_bad = (number, turn) == (2, 2)
            members.append((f"{number}{turn}.wav", data if not is_bad or bad is None else bad))
            turns += [spoken(f"{number}{turn}.wav", 0.1), said("yes", "Assistant")]
        rows.append({"id": f"c{number}", "conversations": turns})
    tar = write_tar(folder / "a.tar", members)
    return conversations(folder, rows, tarred_audio_filepaths=str(tar))


BAD = {"damaged": b"RIFF" + b"\1" * 5000, "empty": b""}


@pytest.mark.parametrize("dataset", [Cuts, Examples])
@pytest.mark.parametrize("how", BAD)
def test_a_bad_turn_takes_its_conversation_out(tmp_path: Path, dataset: Any, how: str):
    """Whole, counted, and named with the member; who does not tolerate it is told the same."""
    entry = talk_with_a_bad_turn(tmp_path, BAD[how])
    path = tmp_path / "bad.jsonl"
    options = {"shuffle": False, "bad_samples": str(path), "batch_size": 2}
    with pytest.raises(AudioError, match=r"row 2 counted from 0, audio .*a\.tar/22\.wav at byte"):
        batches([entry], dataset(), fault_tolerant_audio_loading=False, **options)
    found = batches([entry], dataset(), fault_tolerant_audio_loading=True, **options)
    assert [[one.id for one in batch["samples"]] for batch in found] == [
        ["c0", "c1"],
        ["c3"],
        ["c4", "c5"],
    ]
    assert [batch["playhead"].dropped for batch in found] == [0, 1, 0]
    (record,) = map(json.loads, path.read_text().splitlines())
    assert (record["id"], record["row"], record["step"]) == ("c2", 2, 1)
    assert record["member"] == f"{tmp_path}/a.tar/22.wav"
    assert "22.wav" not in record["reason"]


@pytest.mark.parametrize("dataset", [Cuts, Examples])
def test_a_batch_of_nothing_but_bad_conversations(tmp_path: Path, dataset: Any):
    entry = talk_with_a_bad_turn(tmp_path, BAD["damaged"])
    config = section(
        entry,
        batch_size=1,
        micro_batches_per_step=2,
        info=True,
        bad_samples=None,
        fault_tolerant_audio_loading=True,
    )
    loader = playhead.dataloader(config, dataset=dataset(), rank=0, world_size=1)
    found = [(batch["samples"][0].id, batch["playhead"].repeated) for batch in loader]
    assert found == [
        ("c0", [False]),
        ("c1", [False]),
        ("c3", [True]),
        ("c3", [False]),
        ("c4", [False]),
        ("c5", [False]),
    ]
    report = str(loader.report())
    assert "1 batches stand in" in report or "1 batch stands in" in report
    assert "bad audio" in report


@pytest.mark.parametrize("dataset", [Cuts, Examples])
def test_a_file_that_is_gone_is_bad_where_others_are_there(tmp_path: Path, dataset: Any):
    rows = []
    for number in range(3):
        (tmp_path / f"v{number}.wav").write_bytes(wav_bytes(0.1, seed=number))
        turns = [spoken(f"v{number}.wav", 0.1), said("yes", "Assistant")]
        rows.append({"id": f"c{number}", "conversations": turns})
    entry = conversations(tmp_path, rows)
    (tmp_path / "v1.wav").unlink()
    options = {"shuffle": False, "bad_samples": None, "fault_tolerant_audio_loading": True}
    (batch,) = batches([entry], dataset(), **options)
    assert [one.id for one in batch["samples"]] == ["c0", "c2"]


@pytest.mark.parametrize("dataset", [Cuts, Examples])
def test_turns_that_are_cuts(tmp_path: Path, dataset: Any):
    """Of cuts in a file of Lhotse, made into conversations; the file of one is damaged."""
    entry = FORMS["lhotse_as_conversation"].write(tmp_path)
    (tmp_path / "wav/spoken-3.wav").write_bytes(b"no audio")
    options = {"shuffle": False, "bad_samples": None, "fault_tolerant_audio_loading": True}
    (batch,) = batches([entry], dataset(), **options)
    assert [one.id for one in batch["samples"]] == [f"spoken-{n}" for n in range(10) if n != 3]
    with pytest.raises(AudioError, match=r"cuts\.jsonl.*row 3 counted"):
        batches([entry], dataset(), **{**options, "fault_tolerant_audio_loading": False})


def test_of_two_places_one_of_which_begins_the_other_the_right_one_is_named():

    places = [replace(PLACE, member="/data/a.tar", member_byte=byte) for byte in (1536, 15360, 153)]
    turns = []
    for place in places:
        audio = Audio(source=wav_bytes(0.1))
        one = Example(id="v", text=None, language=None, audio=audio, place=place)
        turns.append(Turn(role="user", audio=one))
    example = Example(
        id="a",
        text=None,
        language=None,
        audio=None,
        place=places[0],
        kind="conversation",
        turns=tuple(turns),
    )
    for place in places:
        error = AudioError("it is bad", where=str(place), fix="Restore it")
        culprit = _culprit(example, error)
        assert culprit.place == place
        assert culprit.id == "a"
        assert BadAudio(0, culprit, error).reason == "it is bad"
