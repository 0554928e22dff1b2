"""Transforms: other samples made of those that an input type reads, such as conversations."""

from __future__ import annotations

from playhead.formats.transforms.continuation import Continuation
from playhead.formats.transforms.duplex import DuplexSegments
from playhead.formats.transforms.other_side import OtherSide
from playhead.formats.transforms.registry import (
    RowTransform,
    register_transform,
    transform_names,
)
from playhead.formats.transforms.silent_agent import SilentAgent
from playhead.formats.transforms.to_conversation import QuestionedSpeech, TranscribedSpeech
from playhead.formats.transforms.turns_of_speech import TurnsOfSpeech
from playhead.formats.transforms.wrapped import TransformedLines, TransformedTable, transformed

__all__ = [
    "Continuation",
    "DuplexSegments",
    "OtherSide",
    "QuestionedSpeech",
    "RowTransform",
    "SilentAgent",
    "TranscribedSpeech",
    "TransformedLines",
    "TransformedTable",
    "TurnsOfSpeech",
    "register_transform",
    "transform_names",
    "transformed",
]
