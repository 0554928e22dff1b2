"""A stand-in for the parts of NeMo that are replaced or made, as modules."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

NAME = "get_lhotse_dataloader_from_config"
HOME = "nemo.collections.common.data.lhotse.dataloader"
PACKAGE = "nemo.collections.common.data.lhotse"
DATA_MODULE = "nemo.collections.speechlm2.data.datamodule"
MODEL = "nemo.collections.asr.models.ctc_models"


def theirs(*_: Any, **__: Any) -> str:
    return "NeMo's own"


@dataclass
class TextExample:
    text: str
    language: str | None = None
    tokens: Any = None
    custom: Any = None


@dataclass
class SourceTargetTextExample:
    source: TextExample
    target: TextExample
    question: TextExample | None = None
    custom: Any = None


@dataclass
class TextTurn:
    value: str
    role: str


@dataclass
class AudioTurn:
    cut: Any
    role: str
    audio_locator_tag: str
    text: str | None = None


@dataclass
class NeMoMultimodalConversation:
    id: str
    turns: list[Any]
    token_equivalent_duration: float | None = None
    custom: Any = None


class BroadcastingDataLoader:
    def __init__(self, source: Any, device_mesh: Any, axes: tuple[str, ...] = ("cp", "tp")):
        self.source, self.mesh, self.axes = source, device_mesh, axes


def is_dp_source_rank(device_mesh: Any) -> bool:
    return device_mesh.rank == 0


CLASSES = (
    TextExample,
    SourceTargetTextExample,
    TextTurn,
    AudioTurn,
    NeMoMultimodalConversation,
)


def build(monkeypatch: pytest.MonkeyPatch) -> dict[str, ModuleType]:
    """Put a tree of modules where NeMo's are; a model has imported the function by name."""
    adapters = f"{PACKAGE}.text_adapters"
    modules: dict[str, ModuleType] = {}
    broadcasting = f"{PACKAGE}.broadcasting"
    for name in (HOME, adapters, broadcasting, MODEL, DATA_MODULE):
        parts = name.split(".")
        for end in range(1, len(parts) + 1):
            path = ".".join(parts[:end])
            modules.setdefault(path, ModuleType(path)).__path__ = []
    for path, module in modules.items():
        monkeypatch.setitem(sys.modules, path, module)
    segments: list[bool] = []

    def expand(enabled: bool) -> None:
        segments.append(enabled)

    vars(modules[HOME]).update(
        {
            NAME: theirs,
            "maybe_set_cuda_expandable_segments": expand,
            "segments": segments,
        }
    )
    for name in (PACKAGE, MODEL, DATA_MODULE):
        setattr(modules[name], NAME, theirs)
    # A class of this module's own would stay changed from test to test.
    kind = type("BroadcastingDataLoader", (BroadcastingDataLoader,), {})
    for name in (broadcasting, DATA_MODULE):
        held = {"BroadcastingDataLoader": kind, "is_dp_source_rank": is_dp_source_rank}
        vars(modules[name]).update(held)
    vars(modules[adapters]).update({made.__name__: made for made in CLASSES})
    return modules
