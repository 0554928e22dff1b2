"""Small corpora in every form, for NeMo and Playhead to read; all below one folder."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from lhotse import CutSet, MonoCut, SupervisionSegment

from peer.nemo_talk import write_talk
from support.corpus import wav_bytes, write_jsonl, write_tar
from support.parquet import speech_columns, write_table
from support.shar import FIELDS, enriched, simple_cuts, write_shar
from support.ten_cuts import make
from support.token_models import sentencepiece_bytes, sentences

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def seconds_of(number: int) -> float:
    return 0.3 + 0.1 * number


def plain_rows(folder: Path) -> None:
    """Rows of every kind that a NeMo manifest has."""
    rows: list[dict[str, Any]] = []
    for n in range(8):
        name = f"sub dir/é{n}.wav" if n % 2 else f"a{n}.wav"
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        rate = (16000, 8000, 22050)[n % 3]
        path.write_bytes(wav_bytes(seconds_of(n), rate, seed=n))
        row = {"audio_filepath": name, "duration": seconds_of(n), "text": f"said {n}", "lang": "en"}
        rows.append(row)
    rows[0] |= {"x": [1, {"y": None}], "score": 0.5, "big": 2**40, "ok": True, "note": "ü😀"}
    rows[1] |= {"text": "übergroße Äpfel  zwei ", "lang": "de", "id": "own-id"}
    rows[2].pop("text")
    rows[3].pop("lang")
    rows[4] |= {"text": None, "_skipme": False}
    rows[5] |= {"text": "", "speaker": "s1"}
    rows[6] |= {"offset": 0.0, "duration": 0.5}
    rows[7] |= {"audio_filepath": str(folder / rows[7]["audio_filepath"])}
    more = [
        {**rows[6], "offset": 0.25, "duration": 0.4, "text": "stretch", "_skipme": ""},
        {**rows[6], "offset": 0.1, "duration": 0.333, "text": "odd"},
        {**rows[0], "_skipme": True},
        {**rows[0], "_skipme": "noise"},
    ]
    write_jsonl(folder / "rows.json", rows + more)


def rates_in_rows(folder: Path) -> None:
    rows = []
    for n, rate in enumerate((16000, 8000)):
        (folder / f"r{n}.wav").write_bytes(wav_bytes(1.0, rate, seed=n))
        row = {"audio_filepath": f"r{n}.wav", "duration": 1.0, "text": f"r {n}", "lang": "en"}
        rows.append({**row, "sampling_rate": rate})
    write_jsonl(folder / "rates.json", rows)


def member_rows(folder: Path) -> None:
    """Two tars of stretches, one of which has more than ten; rows with no stretch beside them."""
    for shard in (0, 1):
        rows: list[dict[str, Any]] = [
            {
                "audio_filepath": f"m{shard}-sub{n}.wav",
                "duration": 0.25,
                "offset": 0.25 * n,
                "text": f"m{shard} {n}",
                "lang": "en",
                "shard_id": shard,
            }
            for n in range(12 - 8 * shard)
        ]
        rows += [
            {"audio_filepath": "whole.wav", "duration": 0.7, "text": f"w {shard}", "x": {"y": [1]}},
            {"audio_filepath": "skipped.wav", "duration": 0.7, "text": "no", "_skipme": "noise"},
            {"audio_filepath": "late.wav", "duration": 0.4, "offset": 0.5, "lang": "de"},
            {"audio_filepath": "sub-sub.wav", "duration": 0.7, "sampling_rate": 16000},
        ]
        for row in rows:
            row["shard_id"] = shard
        names = dict.fromkeys(re.sub(r"-sub\d+\.", ".", row["audio_filepath"]) for row in rows)
        lengths = {f"m{shard}.wav": 3.0, "late.wav": 1.4}
        members = [
            (name, wav_bytes(lengths.get(name, 0.7), seed=10 * shard + k))
            for k, name in enumerate(names)
        ]
        write_tar(folder / f"audio_{shard}.tar", members)
        write_jsonl(folder / f"manifest_{shard}.json", rows)
    both = "".join((folder / f"manifest_{shard}.json").read_text() for shard in (0, 1))
    (folder / "all.json").write_text(both)
    (folder / "part.json").write_text("".join(both.splitlines(keepends=True)[::3]))


def rounded_rows(folder: Path) -> None:
    """Declared lengths that are not quite those of the files; `exact.json` has what NeMo reads."""
    rows: list[dict[str, Any]] = []
    for n, seconds in enumerate((1.0, 0.9, 0.996, 1.004, 1.1)):
        (folder / f"{n}.wav").write_bytes(wav_bytes(1.0, seed=n))
        rows.append({"audio_filepath": f"{n}.wav", "duration": seconds, "text": f"{n}"})
    write_jsonl(folder / "rounded.json", rows)
    exact = [{**row, "duration": 1.0} for row in rows]
    write_jsonl(folder / "exact.json", exact)
    rows += [
        {**rows[0], "audio_filepath": "5.wav", "duration": 0.9, "offset": 0.1},
        {**rows[0], "audio_filepath": "6.wav", "duration": 0.5},
    ]
    exact += [
        {**rows[0], "audio_filepath": "5.wav", "duration": 1.0},
        {**rows[0], "audio_filepath": "6.wav", "duration": 0.5},
    ]
    for name, some in (("rounded", rows), ("exact", exact)):
        write_jsonl(folder / f"{name}_members.json", [{**row, "shard_id": 0} for row in some])
    members = [(f"{n}.wav", wav_bytes(1.0, seed=n)) for n in range(7)]
    write_tar(folder / "audio_0.tar", members)


def odd_rows(folder: Path) -> None:
    """Rows that have a status, that say their channel, that have other translations."""
    rows = []
    for n in range(4):
        (folder / f"{n}.wav").write_bytes(wav_bytes(1.0, channels=2, seed=n))
        rows.append({"audio_filepath": f"{n}.wav", "duration": 1.0, "text": f"{n}", "lang": "en"})
    write_jsonl(folder / "channels.json", [{**row, "side": n % 2} for n, row in enumerate(rows)])
    rows = [{**row, "audio_filepath": "mono.wav"} for row in rows]
    rows[1]["validation_status"] = "fail"
    rows[2]["validation_status"] = "pass"
    write_jsonl(folder / "statuses.json", rows)
    others = {"a": {"text": "eins", "lang": "de"}, "b": {"text": "un", "lang": "fr", "x": 1}}
    (folder / "mono.wav").write_bytes(wav_bytes(1.0, seed=5))
    translated = {**rows[0], "audio_filepath": "mono.wav", "alt_text": others}
    write_jsonl(folder / "translated.json", [translated])
    number = {"audio_filepath": "mono.wav", "duration": 1, "offset": 0, "text": 5}
    late = {**number, "sampling_rate": 16000, "offset": 0.4}
    write_jsonl(folder / "number.json", [number])
    write_jsonl(folder / "late.json", [{**late, "duration": 0.5}])
    write_jsonl(folder / "late_exact.json", [{**late, "duration": 0.1}])
    (folder / "lines.txt").write_text("".join(f"  line {n} ü \n" for n in range(10)))


def rich_cuts(folder: Path) -> list[MonoCut]:
    """Cuts with two transcripts, begun late, mixed, and with all that `custom` can hold."""
    cuts: list[Any] = enriched(folder, simple_cuts(folder, [f"c{n}" for n in range(9)], 0.5))
    for cut in cuts:
        # NeMo loses them on its way to absolute paths.
        cut.custom.pop("alignment", None)
    cuts[1] = cuts[1].truncate(offset=0.1, duration=0.3, preserve_id=True)
    said = cuts[2].supervisions[0]
    cuts[2].supervisions = [
        SupervisionSegment(said.id, said.recording_id, 0.0, 0.2, text="one", speaker="a"),
        SupervisionSegment("b", said.recording_id, 0.3, 0.2, text="two", custom={"cer": 0.2}),
    ]
    cuts[3] = cuts[3].pad(duration=1.0, preserve_id=True)
    cuts[4] = cuts[4].append(cuts[0]).with_id("joined")
    cuts[5].supervisions[0].custom = {"cer": 0.5, "context_speaker_similarity": 0.3}
    cuts[6].supervisions = []
    cuts[7].validation_status = "fail"
    cuts[8].validation_status = "pass"
    return cuts


def spoken_rows(folder: Path) -> None:
    """Rows with sentences of two languages and the fields of Canary's prompts."""
    english, german = sentences(6, "en", seed=3), sentences(6, "de", seed=4)
    rows = []
    for n, (text, lang) in enumerate(
        [*((one, "en") for one in english), *((one, "de") for one in german)]
    ):
        name = f"s{n}.wav"
        (folder / name).write_bytes(wav_bytes(0.5 + 0.1 * n, seed=n))
        row = {"audio_filepath": name, "duration": 0.5 + 0.1 * n, "text": text, "lang": lang}
        task = "translate" if n % 4 == 3 else "asr"
        pnc = ("yes", "no", "pnc", "nopnc")[n % 4]
        rows.append({**row, "source_lang": "en", "target_lang": lang, "task": task, "pnc": pnc})
    more = [{**rows[0], "text": ""}, {**rows[1], "source_lang": "<|de|>", "pnc": "<|nopnc|>"}]
    write_jsonl(folder / "spoken.json", rows + more)
    second = [
        {
            **row,
            "decodercontext": ("", "we speak")[n % 2],
            "emotion": "<|emo:undefined|>",
            "itn": ("yes", "noitn")[n % 2],
            "timestamp": "no",
            "diarize": ("nodiarize", "yes")[n % 2],
        }
        for n, row in enumerate(rows)
    ]
    write_jsonl(folder / "spoken2.json", second)
    few = {"decodercontext", "emotion", "itn", "timestamp", "diarize"}
    third = [{key: value for key, value in row.items() if key not in few} for row in second]
    write_jsonl(folder / "spoken3.json", third)


def models(folder: Path) -> None:
    made = {
        "en": sentencepiece_bytes("en"),
        "de": sentencepiece_bytes("de"),
        "special": sentencepiece_bytes("en", special=True),
    }
    for name, data in made.items():
        (folder / f"{name}.model").write_bytes(data)


def shars(folder: Path) -> None:
    """A Shar with every field in three shards, another, and a field beside that of ten cuts."""
    ids = [f"s{n}" for n in range(7)]
    write_shar(folder / "shar", enriched(folder / "a", simple_cuts(folder / "a", ids)), FIELDS, 3)
    for shard in (0, 1):
        numbers = range(5 * shard, 5 * shard + 5)
        rows = [{"cut_id": f"cut-{n:04d}", "wer": n / 10} for n in numbers]
        write_jsonl(folder / f"wer.{shard}.jsonl", rows)
    write_shar(folder / "other", simple_cuts(folder / "b", ["o0", "o1"]), None, 1)


def tables(folder: Path) -> None:
    for kind in ("bytes", "struct"):
        write_table(folder / f"{kind}.parquet", speech_columns(10, kind))
    nameless = speech_columns(10)
    nameless.pop("id")
    nameless["lang"][3] = None
    write_table(folder / "nameless.parquet", nameless)


def plain(folder: Path) -> None:
    plain_rows(folder)
    rates_in_rows(folder)


def spoken(folder: Path) -> None:
    spoken_rows(folder)
    models(folder)


def rich(folder: Path) -> None:
    timed = enriched(folder / "timed", simple_cuts(folder / "timed", ["t0", "t1"]))
    CutSet.from_cuts(timed).to_file(folder / "timed.jsonl")
    CutSet.from_cuts(rich_cuts(folder)).to_file(folder / "rich.jsonl")


WRITERS: dict[str, Callable[[Path], object]] = {
    "ten": lambda folder: make(folder, [0.4 + 0.15 * n for n in range(10)]),
    "two": lambda folder: make(folder, channels=2),
    "rows": plain,
    "members": member_rows,
    "rounded": rounded_rows,
    "odd": odd_rows,
    "rich": rich,
    "shars": shars,
    "tables": tables,
    "spoken": spoken,
    "talk": write_talk,
}


def build(root: Path) -> None:
    """All of it."""
    for name, write in WRITERS.items():
        folder = root / name
        folder.mkdir()
        write(folder)
