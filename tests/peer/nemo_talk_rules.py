"""How what NeMo gives of texts and conversations differs from what Playhead gives; on purpose."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peer.nemo_rules import NEW, ROOT, same
from peer.nemo_talk import SHARED
from support.talk import sentencepiece_model

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


def of_speech(facts: Facts) -> list[Facts]:
    """In NeMo what is made of speech has no language."""
    return [{**facts, "language": None}]


def of_rows(facts: Facts) -> list[Facts]:
    """NeMo calls a row by its file's stem."""
    turns = [
        {**turn, "cut": Path(turn["cut"]).stem} if "cut" in turn else turn
        for turn in facts["turns"]
    ]
    return of_speech({**facts, "id": Path(facts["id"]).stem, "turns": turns})


def of_questions(facts: Facts) -> list[Facts]:
    """In NeMo the transcript of what is heard is not told."""
    turns = [{**turn, "text": ""} if "text" in turn else turn for turn in facts["turns"]]
    return of_speech({**facts, "turns": turns})


@lru_cache
def _model() -> Any:
    import sentencepiece

    return sentencepiece.SentencePieceProcessor(model_proto=sentencepiece_model())


def of_speakers(facts: Facts) -> list[Facts]:
    """In NeMo the first transcript is the answer, whoever says it."""
    answer = _model().encode(facts["supervisions"][0]["text"])
    ids = {"input_ids": answer, "answer_ids": answer, "mask": [1] * len(answer)}
    return [{**facts, **ids}]


def of_windows(facts: Facts) -> list[Facts]:
    """NeMo makes a text of each window and encodes that; here all windows have the whole text."""
    model = _model()
    text = model.decode(facts["answer_ids"][:-1])
    answer = [*model.encode(f"{text} "), model.eos_id()]
    count = len(answer)
    ids = {"input_ids": answer, "answer_ids": answer, "mask": [1] * count}
    lengths = {"output_length": count, "total_length": count}
    return [{**facts, **ids, **lengths, "custom": {}, "text": text}]


def of_continuations(facts: Facts) -> list[Facts]:
    """NeMo keeps no other fields."""
    kept = ("target_audio", "context_audio", "task")
    custom = {key: facts["custom"][key] for key in kept}
    return of_speakers({**facts, "custom": custom})


def of_a_blend(facts: Facts) -> list[Facts]:
    """The rules of each; NeMo says of which shard a sample of tars is."""
    name, custom = facts.get("id", ""), facts["custom"]
    if name.startswith("share"):
        return [{**facts, "custom": {key: custom[key] for key in ("task", "origin")}}]
    if name.startswith("sft"):
        # Tags are no fields of the row there.
        custom = {key: value for key, value in custom.items() if key != "origin"}
        return of_chats({**facts, "custom": custom})
    if not name.startswith("t"):
        return [facts]
    number = int(name[1]) // 5
    folder = f"{ROOT}/talk/{SHARED.index('lhotse_as_conversation, tars'):02d}"
    origins = {
        "manifest_origin": f"{folder}/manifest_{number}.json",
        "tar_origin": f"{folder}/audio_{number}.tar",
    }
    return of_speech({**facts, "custom": {**custom, **origins}})


OF_TALK: dict[str, Rule] = {
    "a blend": of_a_blend,
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
    "lhotse_as_conversation": of_speech,
    "lhotse_as_conversation, tars": of_speech,
    "lhotse_as_conversation, manifest": of_rows,
    "s2s_as_conversation": of_speech,
    "sqa_as_conversation": of_questions,
    "s2s_duplex_overlap_as_s2s_duplex": of_speakers,
    "s2s_duplex_reverse_role": of_speakers,
    "lhotse_magpietts_data_as_continuation": of_continuations,
}
TARRED = {"lhotse_as_conversation, tars", "nemo_tarred_to_duplex", "nemo_tarred_to_duplex, silence"}
