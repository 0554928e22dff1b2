"""How what NeMo gives of texts and conversations differs from what Playhead gives; on purpose."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from peer.nemo_rules import NEW, of_members, same

if TYPE_CHECKING:
    from peer.nemo_rules import Facts, Rule


def of_fields(facts: Facts) -> list[Facts]:
    """NeMo keeps no other fields of such rows."""
    return [{**facts, "custom": {}}]


def of_chats(facts: Facts) -> list[Facts]:
    """NeMo keeps the row as it is, and gives it no id."""
    facts = {**facts, "custom": {**facts["custom"], "system": "", "mask": "User"}}
    del facts["id"]
    return [facts]


def of_conversations(facts: Facts) -> list[Facts]:
    """NeMo keeps a `_skipme` that says nothing."""
    said = {"_skipme": False} if "score" in facts["custom"] else {}
    return [{**facts, "custom": {**facts["custom"], **said}}]


def of_archives(facts: Facts) -> list[Facts]:
    """NeMo gives new ids to the stretches of members; no other fields are kept."""
    turns = [{**turn, "cut": NEW} if "cut" in turn else turn for turn in facts["turns"]]
    return [{**facts, "custom": {}, "turns": turns}]


def of_rows(facts: Facts) -> list[Facts]:
    """NeMo calls a row by its file's stem."""
    turns = [
        {**turn, "cut": Path(turn["cut"]).stem} if "cut" in turn else turn
        for turn in facts["turns"]
    ]
    return [{**facts, "id": Path(facts["id"]).stem, "turns": turns}]


def of_questions(facts: Facts) -> list[Facts]:
    """In NeMo the transcript of what is heard is not told."""
    turns = [{**turn, "text": ""} if "text" in turn else turn for turn in facts["turns"]]
    return [{**facts, "turns": turns}]


OF_TALK: dict[str, Rule] = {
    "txt": same,
    "txt_jsonl": of_fields,
    "nemo_sft_jsonl": of_chats,
    "multimodal_conversation": of_conversations,
    "multimodal_conversation, tars": of_conversations,
    "multimodal_conversation, text": of_conversations,
    "multimodal_conversation, tags": of_conversations,
    "share_gpt": of_fields,
    "share_gpt, audio root": of_fields,
    "share_gpt, tars": of_fields,
    "share_gpt_webdataset": of_archives,
    "share_gpt_webdataset, scan": of_archives,
    "lhotse_as_conversation, manifest": of_rows,
    "sqa_as_conversation": of_questions,
    "nemo_tarred_to_duplex": of_members,
    "nemo_tarred_to_duplex, silence": of_members,
}
TARRED = {"lhotse_as_conversation, tars", "nemo_tarred_to_duplex", "nemo_tarred_to_duplex, silence"}
