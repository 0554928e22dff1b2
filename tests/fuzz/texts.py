"""Corpora of texts and written conversations, and what others read of them."""

from __future__ import annotations

import io
import json
import tarfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from fuzz.corpora import write_lines, write_tar
from fuzz.readings import Sample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROLES = {
    **dict.fromkeys(("user", "human"), "user"),
    **dict.fromkeys(("assistant", "gpt", "model", "bot"), "assistant"),
    "system": "system",
    "tool": "tool",
}
SAID = ["we speak", "the lazy dog", "über den fluss", "and listen today", "a", "brown 5"]


@dataclass(frozen=True)
class Files:
    """The files of a corpus as they are; or rows as they were, and audio as it is."""

    folder: Path
    rows_were: dict[str, bytes] | None = None

    def rows(self, name: str) -> bytes:
        if self.rows_were is not None:
            return self.rows_were[name]
        return (self.folder / name).read_bytes()

    def lines(self, name: str) -> Iterator[dict[str, Any]]:
        for line in self.rows(name).removeprefix(b"\xef\xbb\xbf").split(b"\n"):
            if not line.strip():
                continue
            # Keys that nobody reads may be no texts; what is read of others is like nothing.
            row = json.loads(line.decode(errors="surrogateescape"))
            custom = row.get("custom")
            mark = custom.get("_skipme") if isinstance(custom, dict) else None
            if not (row.get("_skipme") or mark):
                yield row

    def members(self, name: str) -> list[tuple[str, bytes]]:
        """Names and bytes; where rows are as they were, names and places are too."""
        now = (self.folder / name).read_bytes()
        rows = self.rows(name)
        with tarfile.open(fileobj=io.BytesIO(rows)) as tar:
            found = [info for info in tar if info.isreg()]
        # What is no audio is as it was.
        return [
            (
                info.name,
                (rows if info.name.endswith(".json") else now)[info.offset_data :][: info.size],
            )
            for info in found
        ]


def written(turns: list[tuple[str, str | None]]) -> str:
    """Turns as a text; None stands for audio."""
    return " | ".join(f"{role}: {'<>' if text is None else text}" for role, text in turns)


def talk(name: str, turns: list[tuple[str, str | None]], audio: list[Any] | None = None) -> Sample:
    return Sample(name, written(turns), None, audios=tuple(audio or ()))


def numbered(paths: list[str], texts: Callable[[str], list[str]]) -> list[Sample]:
    """Samples that are called by their file and their place among all."""
    found: list[Sample] = []
    for path in paths:
        stem = PurePosixPath(path).stem
        found += [
            Sample(f"{stem}-{number}", text, None, audios=())
            for number, text in enumerate(texts(path), len(found))
        ]
    return found


TXT = ["a.txt", "b.txt"]


def build_txt(folder: Path) -> None:
    (folder / "a.txt").write_text("".join(f"{text}\n" for text in SAID[:4]))
    (folder / "b.txt").write_text("one\r\n\n  two  \nno end")


def text_lines(data: bytes) -> list[bytes]:
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    return lines[:-1] if not lines[-1] else lines


def read_txt(files: Files) -> list[Sample]:
    def texts(path: str) -> list[str]:
        lines = [line.removesuffix(b"\r") for line in text_lines(files.rows(path))]
        return [f"assistant: {line.decode()}\n" for line in lines if line.strip()]

    return numbered(TXT, texts)


def build_pair(folder: Path) -> None:
    for number in (0, 1):
        some = SAID[3 * number : 3 * number + 3]
        (folder / f"source_{number}.txt").write_text("".join(f"{text}\n" for text in some))
        (folder / f"target_{number}.txt").write_text("".join(f" to {text}\n" for text in some))


def read_pair(files: Files) -> list[Sample]:
    def texts(path: str) -> list[str]:
        sources, targets = (
            text_lines(files.rows(one)) for one in (path, path.replace("source", "target"))
        )
        return [
            written([("user", source.decode().strip()), ("assistant", target.decode().strip())])
            for source, target in zip(sources, targets, strict=True)
            if source.strip()
        ]

    return numbered(["source_0.txt", "source_1.txt"], texts)


def build_txt_jsonl(folder: Path) -> None:
    rows = [{"text": text, "n": n} for n, text in enumerate(SAID)]
    rows[2]["_skipme"] = 1
    rows.insert(1, {"n": 9})
    write_lines(folder / "rows.jsonl", rows)


def read_txt_jsonl(files: Files) -> list[Sample]:
    """Numbers are texts as they are printed."""
    rows = [row for row in files.lines("rows.jsonl") if row.get("text") is not None]
    assert all(type(row["text"]) in {str, int, float} for row in rows)
    rows = [row for row in rows if str(row["text"]).strip()]
    made = numbered(["rows.jsonl"], lambda _: [f"assistant: {row['text']}" for row in rows])
    return [
        Sample(str(row["id"]), one.text, None, audios=()) if row.get("id") else one
        for row, one in zip(rows, made, strict=True)
    ]


def build_sft(folder: Path) -> None:
    rows = [
        {"conversations": [{"from": "User", "value": text}, {"from": "Assistant", "value": "x"}]}
        for text in SAID
    ]
    rows[2]["system"] = "be kind"
    rows[4]["id"] = "own"
    write_lines(folder / "sft.jsonl", rows)


def roles_of(row: dict[str, Any], field: str, who: str, what: str) -> list[tuple[str, str | None]]:
    """The turns of a row; whoever fails here is no row."""
    turns = [(ROLES[turn[who].lower()], turn[what]) for turn in row[field]]
    assert turns
    assert all(isinstance(text, str) for _, text in turns)
    return turns


def read_sft(files: Files) -> list[Sample]:
    found = []
    for number, row in enumerate(files.lines("sft.jsonl")):
        system = row.get("system")
        turns = roles_of(row, "conversations", "from", "value")
        assert system is None or isinstance(system, str)
        turns = [("system", system), *turns] if system else turns
        found.append(talk(str(row.get("id") or f"sft-{number}"), turns))
    return found


def build_messages(folder: Path) -> None:
    rows = [
        {"messages": [{"role": "user", "content": text}, {"role": "assistant", "content": " x"}]}
        for text in SAID
    ]
    write_lines(folder / "messages.jsonl", rows)


def read_messages(files: Files) -> list[Sample]:
    found = []
    for number, row in enumerate(files.lines("messages.jsonl")):
        assert row.keys() <= {"messages", "_skipme"}
        assert row["messages"]
        turns: list[tuple[str, str | None]] = []
        for one in row["messages"]:
            assert one.keys() == {"role", "content"}
            assert one["role"] in ("system", "user", "assistant", "tool")
            assert isinstance(one["content"], str)
            turns.append((one["role"], one["content"]))
        found.append(talk(f"messages-{number:012d}", turns))
    return found


def nemotron_row(number: int) -> dict[str, Any]:
    said = [
        {"sender": "human", "fragments": [SAID[number]]},
        {"sender": "gpt", "fragments": ["x", {"t": "text", "value": " y"}, {"value": "z"}]},
    ]
    return {"conversation": said, **({"id": f"own-{number}"} if number % 2 else {})}


def nemotron_turns(row: dict[str, Any]) -> list[tuple[str, str | None]]:
    turns = []
    for turn in row["conversation"]:
        assert isinstance(turn["fragments"], list)
        parts = [
            part if isinstance(part, str) else (part.get("t") in (None, "text") and part["value"])
            for part in turn["fragments"]
        ]
        assert parts
        assert all(isinstance(part, str) for part in parts)
        turns.append((ROLES[turn["sender"].lower()], "".join(parts)))
    assert turns
    return turns


def build_nemotron(folder: Path) -> None:
    write_lines(folder / "talk.jsonl", [nemotron_row(number) for number in range(6)])


def read_nemotron(files: Files) -> list[Sample]:
    return [
        talk(str(row.get("id") or f"talk-{number:012d}"), nemotron_turns(row))
        for number, row in enumerate(files.lines("talk.jsonl"))
    ]


def build_nemotron_tar(folder: Path) -> None:
    members = [
        (f"row{n}.json", json.dumps(nemotron_row(n), indent=n == 3 or None).encode())
        for n in range(6)
    ]
    write_tar(folder / "talk.tar", [*members[:3], ("notes.txt", b"no row"), *members[3:]])


def read_nemotron_tar(files: Files) -> list[Sample]:
    found = []
    for name, data in files.members("talk.tar"):
        if name.endswith(".json"):
            row = json.loads(data)
            if not (row.get("_skipme") or (row.get("custom") or {}).get("_skipme")):
                own = row.get("id") or PurePosixPath(name).stem
                found.append(talk(str(own), nemotron_turns(row)))
    return found
