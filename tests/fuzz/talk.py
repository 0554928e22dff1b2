"""Corpora of texts and conversations, and what others read of them when they are damaged."""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from fuzz import texts
from fuzz.corpora import SECONDS, Corpus, heard, sound, write_lines, write_tar
from fuzz.texts import ROLES, SAID, Files, talk
from support.talk_cuts import FORMS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fuzz.readings import Sample


def conversation(number: int, suffix: str) -> dict[str, Any]:
    def audio(which: int, **more: Any) -> dict[str, Any]:
        name = f"a{which}.{suffix}"
        seconds = {"duration": SECONDS[which % len(SECONDS)]}
        return {"from": "User", "type": "audio", "value": name, **seconds, **more}

    def text(who: str, value: str) -> dict[str, Any]:
        return {"from": who, "type": "text", "value": value}

    turns = [text("User", SAID[number]), audio(2 * number), text("Assistant", "x")]
    if number == 1:
        turns = [text("User", SAID[number]), text("Assistant", "x")]
    if number == 2:
        turns += [audio(5, offset=0.01, duration=0.03), text("Assistant", "y")]
    row: dict[str, Any] = {"id": f"talk-{number}", "conversations": turns}
    return {**row, "custom": {"_skipme": 1}} if number == 3 else row


def build_conversations(folder: Path) -> None:
    for number in (0, 4, 5, 6, 8):
        (folder / f"a{number}.wav").write_bytes(sound(number))
    write_lines(folder / "talk.jsonl", [conversation(number, "wav") for number in range(5)])


def build_conversation_tars(folder: Path) -> None:
    for shard in (0, 1):
        rows = [
            conversation(number, "wav") for number in range(3 * shard, 3 * shard + 3)[: 3 - shard]
        ]
        voices = ((0, 4, 5), (6, 8))[shard]
        write_tar(folder / f"audio_{shard}.tar", [(f"a{n}.wav", sound(n)) for n in voices])
        write_lines(folder / f"manifest_{shard}.jsonl", rows)


def conversation_sample(row: dict[str, Any], open_audio: Callable[[str], Any]) -> Sample:
    turns: list[tuple[str, str | None]] = []
    audio = []
    for turn in row["conversations"]:
        role = ROLES[turn["from"].lower()]
        assert turn["type"] in ("audio", "text")
        assert isinstance(turn["value"], str)
        if turn["type"] == "text":
            turns.append((role, turn["value"]))
            continue
        turns.append((role, None))
        start, seconds = turn.get("offset") or 0.0, turn.get("duration")
        audio.append(heard(open_audio(turn["value"]), start, seconds))
    assert turns
    assert row["id"] is not None
    return talk(str(row["id"]), turns, audio)


def read_conversations(files: Files) -> list[Sample]:
    return [
        conversation_sample(row, lambda name: files.folder / name)
        for row in files.lines("talk.jsonl")
    ]


def read_conversation_tars(files: Files) -> list[Sample]:
    found = []
    for shard in (0, 1):
        members = files.members(f"audio_{shard}.tar")
        names = dict(members)
        assert len(names) == len(members)
        rows = files.lines(f"manifest_{shard}.jsonl")
        found += [conversation_sample(row, names.__getitem__) for row in rows]
    return found


def share_row(number: int, *, named: bool = True) -> dict[str, Any]:
    text = ("<sound>\nwhat", "a <speech> b", "no audio", "<sound> <sound>", "x <sound>")[number]
    said = [{"from": "human", "value": text}, {"from": "gpt", "value": SAID[number]}]
    row: dict[str, Any] = {"id": f"share-{number}", "conversations": said}
    if number == 4:
        said[0] |= {"offset": 0.01, "duration": 0.03}
    return {**row, "sound": f"a{number}.wav"} if named and number != 2 else row


def build_share(folder: Path) -> None:
    for number in (0, 1, 3, 4):
        (folder / f"a{number}.wav").write_bytes(sound(number))
    write_lines(folder / "share.jsonl", [share_row(number) for number in range(5)])


def share_sample(row: dict[str, Any], own: str, open_audio: Callable[[str | None], Any]) -> Sample:
    """One file for all placeholders, as these corpora have it."""
    paths = next((row[key] for key in ("sound", "speech", "ori_sound") if row.get(key)), None)
    assert paths is None or isinstance(paths, str)
    turns: list[tuple[str, str | None]] = []
    audio = []
    for turn in row["conversations"]:
        role = {"human": "user", "user": "user", "system": "system"}.get(
            turn["from"].lower(), "assistant"
        )
        assert turn["from"]
        pieces = [turn["value"]]
        assert isinstance(turn["value"], str)
        if role == "user":
            pieces = turn["value"].replace("<speech>", "<sound>").split("<sound>")
        for place, piece in enumerate(pieces):
            if place:
                turns.append((role, None))
                start, seconds = turn.get("offset") or 0.0, turn.get("duration")
                audio.append(heard(open_audio(paths), start, seconds))
            if piece.strip() or len(pieces) == 1:
                turns.append((role, piece.strip()))
    assert turns
    return talk(own, turns, audio)


def read_share(files: Files) -> list[Sample]:
    found = []
    for number, row in enumerate(files.lines("share.jsonl")):
        del number
        own = row.get("id")
        own = "missing-example-id" if own is None else str(own)
        found.append(share_sample(row, own, lambda name: files.folder / str(name)))
    return found


def build_webdataset(folder: Path) -> None:
    for shard in (0, 1):
        members = []
        for number in range(2 * shard, 2 * shard + 2):
            row = share_row(number + (number >= 2), named=number != 1)
            row["sound"] = f"{number}.wav"
            if number == 1:
                del row["sound"], row["id"]
            sample = [
                (f"{number}.json", json.dumps(row).encode()),
                (f"{number}.wav", sound(number)),
            ]
            members += sample[:: -1 if shard else 1]
        write_tar(folder / f"part-{shard}.tar", members)


def read_webdataset(files: Files) -> list[Sample]:
    found = []
    for shard in (0, 1):
        members = files.members(f"part-{shard}.tar")
        assert len(members) % 2 == 0
        for one, two in zip(members[::2], members[1::2], strict=True):
            (name, data), audio = (one, two) if one[0].endswith(".json") else (two, one)
            assert name.endswith(".json")
            row = json.loads(data)
            if row.get("_skipme") or (row.get("custom") or {}).get("_skipme"):
                continue
            own = row.get("id")
            own = PurePosixPath(name).stem if own is None else str(own)
            sample = share_sample(row, own, lambda _, audio=audio: audio[1])
            found.append(sample)
    return found


def build_speech(folder: Path) -> None:
    rows = []
    for number in range(5):
        (folder / f"a{number}.wav").write_bytes(sound(number))
        seconds = SECONDS[number]
        rows.append({"audio_filepath": f"a{number}.wav", "duration": seconds, "text": SAID[number]})
    rows[1]["context"] = "what is said"
    rows[3]["system_prompt"] = "listen"
    write_lines(folder / "m.json", rows)


def read_speech(files: Files) -> list[Sample]:
    found = []
    for row in files.lines("m.json"):
        name, offset, seconds = row["audio_filepath"], row.get("offset"), row.get("duration")
        parts = [] if offset is None else [offset] if seconds is None else [offset, seconds]
        turns: list[tuple[str, str | None]] = [("user", None), ("assistant", row["text"])]
        for role, key in (("user", "context"), ("system", "system_prompt")):
            if key in row:
                turns.insert(0, (role, row[key]))
        audio = heard(files.folder / name, offset or 0.0, seconds)
        called = "-".join([name, *(f"{round(part * 100):06d}" for part in parts)])
        found.append(talk(called, turns, [audio]))
    return found


def _corpus(
    name: str,
    made: tuple[Callable[[Path], None], Callable[[Files], list[Sample]]],
    entry: dict[str, Any],
    rows: tuple[str, ...],
    audio: tuple[str, ...] = (),
) -> Corpus:
    def config(folder: Path) -> dict[str, Any]:
        def below(value: Any) -> Any:
            if isinstance(value, list):
                return [below(one) for one in value]
            return str(folder / value[2:]) if str(value).startswith("./") else value

        own = {key: below(value) for key, value in entry.items()}
        return {"input_cfg": [own], "audio_locator_tag": "<audio>"}

    build, read = made
    return Corpus(
        name,
        build,
        config,
        lambda folder: read(Files(folder)),
        rows,
        audio,
        as_audio_is=lambda folder, files: read(Files(folder, files)),
    )


def _of_cuts(name: str) -> Corpus:
    """A corpus of cuts of which something is made, as nobody else makes it."""
    # A config is asked for after the corpus was built.
    made: list[str] = []

    def build(folder: Path) -> None:
        endless = {"num_mixtures": 6} if FORMS[name].num is None else {}
        entry = {**FORMS[name].write(folder), **endless}
        made.append(json.dumps(entry).replace(str(folder), "FOLDER"))
        for path in (*folder.rglob("*.json"), *folder.rglob("*.jsonl")):
            path.write_text(path.read_text().replace(f"{folder}/", ""))

    def config(folder: Path) -> dict[str, Any]:
        entry = json.loads(made[-1].replace("FOLDER", str(folder)))
        return {"input_cfg": [entry], "audio_locator_tag": "<audio>", "info": True}

    rows, audio = ("*.jsonl", "*.json"), ("*.wav", "*.tar")
    return Corpus(name, build, config, lambda _: [], rows, audio, is_compared=False)


TALK = [
    _corpus(
        "txt",
        (texts.build_txt, texts.read_txt),
        {"type": "txt", "paths": ["./a.txt", "./b.txt"], "language": "en"},
        ("*.txt",),
    ),
    _corpus(
        "txt_pair",
        (texts.build_pair, texts.read_pair),
        {
            "type": "txt_pair",
            "source_paths": ["./source_0.txt", "./source_1.txt"],
            "target_paths": ["./target_0.txt", "./target_1.txt"],
        },
        ("*.txt",),
    ),
    _corpus(
        "txt_jsonl",
        (texts.build_txt_jsonl, texts.read_txt_jsonl),
        {"type": "txt_jsonl", "paths": "./rows.jsonl", "language": "en"},
        ("*.jsonl",),
    ),
    _corpus(
        "nemo_sft_jsonl",
        (texts.build_sft, texts.read_sft),
        {"type": "nemo_sft_jsonl", "paths": "./sft.jsonl"},
        ("*.jsonl",),
    ),
    _corpus(
        "materialized_sft_messages",
        (texts.build_messages, texts.read_messages),
        {"type": "materialized_sft_messages", "paths": "./messages.jsonl"},
        ("*.jsonl",),
    ),
    _corpus(
        "nemotron_text_converation",
        (texts.build_nemotron, texts.read_nemotron),
        {"type": "nemotron_text_converation", "paths": "./talk.jsonl"},
        ("*.jsonl",),
    ),
    _corpus(
        "nemotron_text_converation.tar",
        (texts.build_nemotron_tar, texts.read_nemotron_tar),
        {"type": "nemotron_text_converation", "paths": "./talk.tar"},
        ("*.tar",),
    ),
    _corpus(
        "multimodal_conversation",
        (build_conversations, read_conversations),
        {"type": "multimodal_conversation", "manifest_filepath": "./talk.jsonl"},
        ("*.jsonl",),
        ("*.wav",),
    ),
    _corpus(
        "multimodal_conversation.tar",
        (build_conversation_tars, read_conversation_tars),
        {
            "type": "multimodal_conversation",
            "manifest_filepath": "./manifest__OP_0..1_CL_.jsonl",
            "tarred_audio_filepaths": "./audio__OP_0..1_CL_.tar",
        },
        ("*.jsonl",),
        ("*.tar",),
    ),
    _corpus(
        "share_gpt",
        (build_share, read_share),
        {
            "type": "share_gpt",
            "manifest_filepath": "./share.jsonl",
            "audio_placeholders": ["<sound>", "<speech>"],
        },
        ("*.jsonl",),
        ("*.wav",),
    ),
    _corpus(
        "share_gpt_webdataset",
        (build_webdataset, read_webdataset),
        {"type": "share_gpt_webdataset", "data_dir": "./"},
        ("*.tar",),
        ("*.tar",),
    ),
    _corpus(
        "lhotse_as_conversation",
        (build_speech, read_speech),
        {"type": "lhotse_as_conversation", "manifest_filepath": "./m.json"},
        ("m.json",),
        ("*.wav",),
    ),
    *(
        _of_cuts(name)
        for name in (
            "sqa_as_conversation",
            "s2s_as_conversation",
            "s2s_duplex_overlap_as_s2s_duplex",
            "s2s_duplex_reverse_role",
            "lhotse_magpietts_data_as_continuation",
            "nemo_tarred_to_duplex, silence",
            "multi_speaker_simulator",
            "multi_speaker_simulator, mixtures",
        )
    ),
]
