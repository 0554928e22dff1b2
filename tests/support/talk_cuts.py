"""Small corpora of cuts that are made into conversations, duplex speech and mixtures.

Importing this module enters them in `support.talk.FORMS`: `from support.talk_cuts import FORMS` has
the forms of both.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from lhotse import CutSet, MonoCut, Recording, SupervisionSegment

from support.corpus import write_jsonl, write_tar
from support.talk import FORMS, NUM, RATE, form, seconds_of, texts, voice, write_voice

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["FORMS", "dialogues", "duplex_cuts", "spoken_cuts", "tarred"]


def _recording(folder: Path, name: str, number: int, seconds: float | None = None) -> Recording:
    path = write_voice(folder / f"wav/{name}.wav", number, seconds)
    return Recording.from_file(path, recording_id=name)


def _segment(
    recording: Recording, start: float, seconds: float, text: str, **more: Any
) -> SupervisionSegment:
    name = f"{recording.id}-{start:g}"
    return SupervisionSegment(name, recording.id, start, seconds, text=text, language="en", **more)


def _cut(
    name: str, recording: Recording, said: Sequence[SupervisionSegment], **custom: Any
) -> MonoCut:
    return MonoCut(
        id=name,
        start=0.0,
        duration=recording.duration,
        channel=0,
        recording=recording,
        supervisions=list(said),
        custom=custom or None,
    )


def _write(folder: Path, cuts: Sequence[MonoCut]) -> dict[str, Any]:
    CutSet.from_cuts(cuts).to_file(folder / "cuts.jsonl")
    return {"cuts_path": str(folder / "cuts.jsonl")}


def spoken_cuts(folder: Path) -> list[MonoCut]:
    """Cuts with a transcript; some have what becomes the turns before it."""
    cuts = []
    for number, text in enumerate(texts(21)):
        recording = _recording(folder, f"spoken-{number}", number)
        said = _segment(recording, 0.0, recording.duration, text, speaker=f"s{number % 3}")
        custom: dict[str, Any] = {"number": number}
        if number % 2:
            custom["context"] = f"listen {number}"
        if number % 5 == 4:
            custom["system_prompt"] = "speak"
        cuts.append(_cut(f"spoken-{number}", recording, [said], **custom))
    return cuts


@form("lhotse_as_conversation", "conversation")
def as_conversation(folder: Path) -> dict[str, Any]:
    return {"type": "lhotse_as_conversation", **_write(folder, spoken_cuts(folder))}


@form("lhotse_as_conversation, manifest", "conversation")
def manifest_as_conversation(folder: Path) -> dict[str, Any]:
    """Rows of a NeMo manifest, in a blend inside, with tags that become turns."""
    rows = []
    for number, text in enumerate(texts(22)):
        write_voice(folder / f"wav/r{number}.wav", number)
        row = {"audio_filepath": f"wav/r{number}.wav", "duration": seconds_of(number)}
        rows.append({**row, "text": text, "lang": "en"})
    path = write_jsonl(folder / "manifest.json", rows)
    return {
        "type": "lhotse_as_conversation",
        "input_cfg": [{"type": "nemo", "manifest_filepath": str(path)}],
        "tags": {"context": "what is said", "system_prompt": "listen"},
    }


@form("lhotse_as_conversation, tars", "conversation")
def tars_as_conversation(folder: Path) -> dict[str, Any]:
    return {"type": "lhotse_as_conversation", **tarred(folder)}


@form("sqa_as_conversation", "conversation")
def sqa(folder: Path) -> dict[str, Any]:
    cuts = spoken_cuts(folder)
    for number, cut in enumerate(cuts):
        cut.question = f"what is {number}"
        cut.answer = texts(23)[number]
    return {"type": "sqa_as_conversation", **_write(folder, cuts)}


def dialogues(folder: Path, *, marked: bool = True) -> list[MonoCut]:
    """Two speakers in turn, two or four times; texts with marks of time where it is asked."""
    cuts = []
    for number in range(NUM):
        rounds = 2 if number % 2 else 4
        seconds = 0.5 * rounds
        recording = _recording(folder, f"both-{number}", number, seconds)
        said = []
        for n in range(rounds):
            text = texts(24)[(number + n) % NUM]
            text = f"<|{n}|> {text} <|{n + 1}|>" if marked else text
            speaker = (("user", "assistant"), ("User", "agent"))[number % 3 == 0][n % 2]
            said.append(_segment(recording, 0.5 * n, 0.4, text, speaker=speaker))
        cuts.append(_cut(f"both-{number}", recording, said, number=number))
    return cuts


@form("s2s_as_conversation", "conversation")
def s2s(folder: Path) -> dict[str, Any]:
    """One more cut has a speaker who is neither; it is left out."""
    cuts = dialogues(folder)
    recording = _recording(folder, "stranger", 3, 1.0)
    said = [_segment(recording, 0.1, 0.5, "who", speaker="narrator")]
    cuts.insert(4, _cut("stranger", recording, said))
    return {"type": "s2s_as_conversation", **_write(folder, cuts)}


def duplex_cuts(folder: Path) -> list[MonoCut]:
    """What both say, in a recording each."""
    cuts = dialogues(folder, marked=False)
    for number, cut in enumerate(cuts):
        target = _recording(folder, f"target-{number}", number + 50, cut.duration)
        cut.target_audio = target
    return cuts


@form("s2s_duplex_overlap_as_s2s_duplex", "cut")
def overlap(folder: Path) -> dict[str, Any]:
    cuts = duplex_cuts(folder)
    for number, cut in enumerate(cuts):
        cut.supervisions = []
        cut.user_segments = [
            {"start": 0.1, "end": 0.5, "text": f"asked {number}"},
            {"start": 0.7, "end": 0.9, "text": "and today"},
        ]
        cut.agent_segments = [{"start": 0.4, "end": 0.8, "text": f"told {number}"}]
    return {
        "type": "s2s_duplex_overlap_as_s2s_duplex",
        "move_agent_text_back_by": 0.1,
        **_write(folder, cuts),
    }


@form("s2s_duplex_reverse_role", "cut")
def reverse(folder: Path) -> dict[str, Any]:
    return {"type": "s2s_duplex_reverse_role", **_write(folder, duplex_cuts(folder))}


@form("lhotse_magpietts_data_as_continuation", "cut")
def magpie(folder: Path) -> dict[str, Any]:
    """Three more that filters drop: by error rate, by similarity and by status."""
    cuts = []
    for number in range(NUM + 3):
        recording = _recording(folder, f"said-{number}", number)
        custom = {"cer": 0.5 if number == 3 else 0.01}
        custom["context_speaker_similarity"] = 0.2 if number == 6 else 0.9
        text = texts(25)[number % NUM]
        said = _segment(
            recording, 0.0, recording.duration, text, speaker=f"| Language:en Speaker:{number} |"
        )
        said.custom = custom
        cut = _cut(f"said-{number}", recording, [said])
        cut.target_audio = _recording(folder, f"target-{number}", number + 30)
        cut.context_audio = _recording(folder, f"context-{number}", number + 60, 0.5)
        cut.validation_status = "fail" if number == 8 else "pass"
        cuts.append(cut)
    return {"type": "lhotse_magpietts_data_as_continuation", **_write(folder, cuts)}


def tarred(folder: Path) -> dict[str, str]:
    """Two NeMo manifests and their tars."""
    for shard in (0, 1):
        rows, members = [], []
        for number in range(5 * shard, 5 * shard + 5):
            name = f"t{number}.flac"
            row = {"audio_filepath": name, "duration": seconds_of(number), "lang": "en"}
            rows.append({**row, "text": texts(26)[number], "shard_id": shard})
            members.append((name, voice(seconds_of(number), number, RATE, "FLAC")))
        write_jsonl(folder / f"manifest_{shard}.json", rows)
        write_tar(folder / f"audio_{shard}.tar", members)
    return {
        "manifest_filepath": f"{folder}/manifest__OP_0..1_CL_.json",
        "tarred_audio_filepaths": f"{folder}/audio__OP_0..1_CL_.tar",
    }


@form("nemo_tarred_to_duplex", "cut")
def to_duplex(folder: Path) -> dict[str, Any]:
    return {"type": "nemo_tarred_to_duplex", **tarred(folder)}


@form("nemo_tarred_to_duplex, silence", "cut")
def to_duplex_with_silence(folder: Path) -> dict[str, Any]:
    return {**to_duplex(folder), "agent_silence_duration": 0.5}


@form("multi_speaker_simulator", "cut", num=None)
def simulator(folder: Path) -> dict[str, Any]:
    """Single speakers, some of whom say more than others."""
    rows = []
    for number, text in enumerate(texts(27)):
        path = write_voice(folder / f"wav/one-{number}.wav", number)
        row = {"audio_filepath": str(path), "duration": seconds_of(number), "text": text}
        rows.append({**row, "speaker_id": f"speaker-{(0, 0, 0, 1, 2)[number % 5]}"})
    path = write_jsonl(folder / "single.jsonl", rows)
    return {
        "type": "multi_speaker_simulator",
        "manifest_filepath": str(path),
        "simulator_type": "lsmix",
        "min_delay": 0.2,
    }


@form("multi_speaker_simulator, mixtures", "cut", num=None)
def mixtures(folder: Path) -> dict[str, Any]:
    """Meetings of three stretches, the second of which overlaps the third."""
    rows = []
    for number in range(4):
        path = write_voice(folder / f"wav/meeting-{number}.wav", number, 3.0)
        stretches = [(0.0, 0.8, "a"), (1.0, 1.9, "b"), (1.6, 2.4, "a"), (2.5, 3.0, "b")]
        said = [
            {
                "session_id": f"meeting-{number}",
                "speaker": speaker,
                "words": f"words {number} {n}",
                "start_time": start,
                "end_time": end,
            }
            for n, (start, end, speaker) in enumerate(stretches)
        ]
        listed = folder / f"meeting-{number}.json"
        listed.write_text(json.dumps(said))
        row = {"audio_filepath": str(path), "seglst_filepath": str(listed), "duration": 3.0}
        rows.append({**row, "session_id": f"meeting-{number}"})
    path = write_jsonl(folder / "mixtures.jsonl", rows)
    return {
        "type": "multi_speaker_simulator",
        "manifest_filepath": str(path),
        "simulator_type": "mixture_loader",
        "min_duration": 0.1,
    }
