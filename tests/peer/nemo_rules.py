"""How what NeMo gives of a sample differs from what Playhead gives of it; all of it on purpose.

Each rule makes of one sample of Playhead's the samples that NeMo has in its place.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.parquet import SECONDS

Facts = dict[str, Any]
Rule = Callable[[Facts], list[Facts]]

# Stands for the folder of the corpora, which is known when the tests run.
ROOT = "/ROOT"
# Stands for an id that is drawn anew in each run.
NEW = "NEW"


def same(facts: Facts) -> list[Facts]:
    return [facts]


# Rows of the corpus that are not skipped though they have the field.
SAID_NOTHING: dict[str, Facts] = {
    "a4.wav": {"_skipme": False},
    "a6.wav-000025-000040": {"_skipme": ""},
}


def of_plain_rows(facts: Facts) -> list[Facts]:
    """NeMo calls a sample by its file's stem alone, and keeps a `_skipme` that says nothing."""
    name, behind = re.fullmatch(r"(.*?\.wav)(.*)", facts["id"]).groups()
    custom = {**facts["custom"], **SAID_NOTHING.get(facts["id"], {})}
    return [{**facts, "id": Path(name).stem + behind, "custom": custom}]


def of_rows_with_rates(facts: Facts) -> list[Facts]:
    """NeMo calls such a sample by its whole path, and does not keep the rate in `custom`."""
    custom = {key: value for key, value in facts["custom"].items() if key != "sampling_rate"}
    return [{**facts, "id": f"{ROOT}/rows/{facts['id']}", "custom": custom}]


def of_members(facts: Facts) -> list[Facts]:
    """NeMo calls a stretch by its member, begins it at 0 and keeps `offset` in `custom`."""
    stem, suffix, offset, behind = re.fullmatch(
        r"(.*?)(?:-sub\d+)?(\.wav)(?:-(\d{6})-\d{6})?(.*)", facts["id"]
    ).groups()
    facts = {**facts, "id": stem + suffix + behind}
    if offset is None:
        return [facts]
    return [{**facts, "start": 0.0, "custom": {**facts["custom"], "offset": int(offset) / 100}}]


def of_table_rows(facts: Facts) -> list[Facts]:
    """NeMo keeps every column but the audio in `custom`."""
    said, number = facts["supervisions"][0], int(re.search(r"\d+$", facts["id"]).group())
    # What is missing becomes Pandas' NaN.
    language = float("nan") if said["language"] is None else said["language"]
    columns = {"duration": SECONDS[number], "text": said["text"], "lang": language}
    if facts["id"].startswith("row-"):
        columns["id"] = facts["id"]
    said = {**said, "language": language}
    return [{**facts, "custom": {**facts["custom"], **columns}, "supervisions": [said]}]


def of_a_mixture(facts: Facts) -> list[Facts]:
    """Rows of tables, and members with what NeMo says of where they are from."""
    if facts["id"].startswith("row"):
        return of_table_rows(facts)
    shard = int(re.search(r"\d+", facts["id"]).group()) // 5
    custom = {
        **facts["custom"],
        "manifest_origin": f"{ROOT}/ten/manifest_{shard}.json",
        "tar_origin": f"{ROOT}/ten/audio_{shard}.tar",
    }
    return of_members({**facts, "custom": custom})


def of_whole_members(facts: Facts) -> list[Facts]:
    """The offset that is not looked at is kept."""
    custom = {**facts["custom"], "offset": 0.1} if facts["id"] == "5.wav" else facts["custom"]
    return of_members({**facts, "custom": custom})


def of_translated_rows(facts: Facts) -> list[Facts]:
    """NeMo makes a sample of every text in `alt_text`, beside that of the row."""
    (said,) = facts["supervisions"]
    found = [{**facts, "id": "mono"}]
    for other in facts["custom"]["alt_text"].values():
        said = {**said, "text": other["text"], "language": other["lang"]}
        found.append({**facts, "id": "mono", "custom": other, "supervisions": [said]})
    return found


def of_blends(facts: Facts) -> list[Facts]:
    """In NeMo the tags of the outer group win."""
    if facts["custom"].get("level") == "inner":
        facts = {**facts, "custom": {**facts["custom"], "level": "outer"}}
    return of_plain_rows(facts) if facts["id"].endswith(".wav") else [facts]


@dataclass(frozen=True)
class Truncated:
    """NeMo gives new ids to what it truncates; cut n of the ten has 0.4 + 0.15 n seconds."""

    rule: Rule
    seconds: float

    def __call__(self, facts: Facts) -> list[Facts]:
        stem, number, behind = re.fullmatch(r"(cut-)(\d+)(.*)", facts["id"]).groups()
        found = self.rule({**facts, "id": f"{stem}{number}{behind}"})
        if 0.4 + 0.15 * int(number) <= self.seconds:
            return found
        behind = behind.removeprefix(".wav")
        return [{**one, "id": f"{NEW}{behind}"} for one in found]


@dataclass(frozen=True)
class OfChannel:
    """NeMo writes the channel that it takes of several behind the id.

    Its transcripts of members are of channel 0: with any other channel they are lost.
    """

    rule: Rule
    channel: int

    def __call__(self, facts: Facts) -> list[Facts]:
        found = [{**one, "id": f"{one['id']}-{self.channel}"} for one in self.rule(facts)]
        if self.rule is of_members and self.channel:
            return [{**one, "supervisions": []} for one in found]
        return found


def of_windows(facts: Facts) -> list[Facts]:
    """The last window of the padded cut is nothing but padding: NeMo's has no fields."""
    return [{**facts, "custom": {}} if facts["id"] == "c3-3" else facts]


def of_numbers(facts: Facts) -> list[Facts]:
    """NeMo leaves texts that are numbers as they are."""
    (said,) = facts["supervisions"]
    return of_plain_rows({**facts, "supervisions": [{**said, "text": 5}]})


def of_late_rows(facts: Facts) -> list[Facts]:
    """NeMo says what the row says, and takes less."""
    found = of_numbers({**facts, "id": f"{facts['id'][:-6]}000050"})
    custom = {key: value for key, value in facts["custom"].items() if key != "sampling_rate"}
    name = f"{ROOT}/odd/mono.wav-000040-000050"
    return [{**one, "id": name, "custom": custom} for one in found]


def of_new_cuts(facts: Facts) -> list[Facts]:
    """All of them are truncated, which gives them new ids in NeMo."""
    return [{**facts, "id": NEW}]


def of_joined(facts: Facts) -> list[Facts]:
    """NeMo gives new ids to what it joins."""
    return [{**facts, "id": NEW}] if "+" in facts["id"] else [facts]
