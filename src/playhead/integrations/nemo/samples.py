"""Texts and conversations in the classes of NeMo, which its datasets ask for."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import numpy as np

from playhead.fetch.conversations import AudioTurn, Conversation, TextPair, TextSample, Written

if TYPE_CHECKING:
    from lhotse.cut import Cut

__all__ = ["to_nemo"]

_HOME = "nemo.collections.common.data.lhotse.text_adapters"
_OF_PROMPTS = ("input_ids", "context_ids", "answer_ids", "mask")


def to_nemo(sample: Cut | Written) -> Any:
    """Make of a sample what a dataset of NeMo gets: cuts stay, others take NeMo's classes.

    A text is a `TextExample`, a pair a `SourceTargetTextExample`; a conversation, a chat of
    `nemo_sft_jsonl` too, is a `NeMoMultimodalConversation`.
    """
    if not isinstance(sample, Written):
        return sample
    nemo = importlib.import_module(_HOME)
    made = _made(nemo, sample)
    if sample.input_ids is not None:
        for name in _OF_PROMPTS:
            setattr(made, name, getattr(sample, name))
    if sample.num_tokens is not None:
        made.num_tokens = sample.num_tokens
    return made


def _made(nemo: Any, sample: Written) -> Any:
    if isinstance(sample, TextSample):
        return _text(nemo, sample)
    if isinstance(sample, TextPair):
        question = sample.question
        return nemo.SourceTargetTextExample(
            source=_text(nemo, sample.source),
            target=_text(nemo, sample.target),
            question=None if question is None else _text(nemo, question),
            custom=dict(sample.custom),
        )
    assert isinstance(sample, Conversation)
    return nemo.NeMoMultimodalConversation(
        id=sample.id,
        turns=[
            nemo.AudioTurn(
                cut=turn.cut,
                role=turn.role,
                audio_locator_tag=turn.audio_locator_tag,
                text=turn.text,
            )
            if isinstance(turn, AudioTurn)
            else nemo.TextTurn(value=turn.value, role=turn.role)
            for turn in sample.turns
        ],
        token_equivalent_duration=sample.token_equivalent_duration,
        custom=dict(sample.custom),
    )


def _text(nemo: Any, sample: TextSample) -> Any:
    return nemo.TextExample(
        text=sample.text,
        language=sample.language,
        tokens=None if sample.tokens is None else np.asarray(sample.tokens),
        custom=dict(sample.custom),
    )
