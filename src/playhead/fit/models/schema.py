"""The `oomptimizer_schema` of a model: what its batches consist of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

import torch

from playhead.errors import FitError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Direction", "Item", "Schema", "read_schema"]

Direction = Literal["input", "output"]
_Kind = Literal["audio", "lengths", "labels", "mask", "constant", "scalar", "dummy"]
# Neural types are told by the names of their classes: the library itself is not needed.
_KINDS: Mapping[str, _Kind] = {
    "AudioSignal": "audio",
    "LengthsType": "lengths",
    "LabelsType": "labels",
    "MaskType": "mask",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Item:
    """One item of a batch."""

    kind: _Kind
    """What it holds."""
    name: str | None = None
    """Name of the argument that it is; None for one that goes by its place."""
    direction: Direction | None = None
    """Whose length it has; None for items without a length."""
    vocabulary: int = 1
    """Labels are below this."""
    value: Any = None
    """What a constant or a scalar holds; the constant `batch` is the batch size."""
    excluded: tuple[int, ...] = ()
    """Labels that no random label may be."""
    replacement: int = 0
    """What stands for them."""
    forced: tuple[tuple[int, int], ...] = ()
    """Positions, and the labels that stand there."""
    placeholder: int | None = None
    """Label that stands for a frame of audio, in front of all others; None without."""
    stride: int | None = None
    """Samples of audio in such a frame; None where one placeholder stands for all."""

    def frames(self, input_length: int) -> int:
        """Return how many placeholders come on top of the labels, for so many samples of audio."""
        return 0 if self.stride is None else -(-input_length // self.stride)


@dataclass(frozen=True, kw_only=True, slots=True)
class Schema:
    """What the batches of a model consist of."""

    make: Any
    """Makes a batch of its items: a tuple, a dict, or a class of the model's own."""
    items: Sequence[Item]
    """The items, in order."""
    mask_dtype: torch.dtype
    """What masks are made of."""

    def is_text(self, direction: Direction) -> bool:
        """Return whether a length counts labels; what has none is audio."""
        return any(item.kind == "labels" and item.direction == direction for item in self.items)

    def make_batch(
        self, batch_size: int, input_length: int, output_length: int, device: torch.device
    ) -> Any:
        """Make a batch whose samples all have these lengths.

        Parameters
        ----------
        batch_size
            Samples.
        input_length, output_length
            Samples of audio or labels of each.
        device
            Where it is to be.
        """
        frames = max((item.frames(input_length) for item in self.items), default=0)
        lengths = {"input": input_length, "output": output_length + frames}
        values = [
            self._tensor(item, batch_size, lengths[item.direction or "input"], input_length, device)
            for item in self.items
        ]
        named = {
            item.name: value
            for item, value in zip(self.items, values, strict=True)
            if item.name is not None
        }
        if self.make is dict:
            return named
        if self.make in {tuple, list}:
            return self.make(values)
        unnamed = (
            value for item, value in zip(self.items, values, strict=True) if item.name is None
        )
        return self.make(*unnamed, **named)

    def _tensor(
        self, item: Item, batch_size: int, length: int, input_length: int, device: torch.device
    ) -> Any:
        shape = (batch_size, length)
        if item.kind == "audio":
            return torch.randn(shape, device=device)
        if item.kind == "lengths":
            return torch.full((batch_size,), length, dtype=torch.int64, device=device)
        if item.kind == "labels":
            return _labels(item, shape, input_length, device)
        if item.kind == "mask":
            return torch.ones(shape, dtype=self.mask_dtype, device=device)
        if item.kind == "constant":
            value = batch_size if item.value == "batch" else item.value
            return torch.tensor([value], dtype=torch.int64, device=device)
        return item.value if item.kind == "scalar" else torch.empty(0)


def _labels(
    item: Item, shape: tuple[int, int], input_length: int, device: torch.device
) -> torch.Tensor:
    labels = torch.randint(0, item.vocabulary, shape, device=device)
    for label in item.excluded:
        labels = torch.where(labels == label, item.replacement, labels)
    if item.placeholder is not None:
        labels[:, : max(1, item.frames(input_length))] = item.placeholder
    for position, label in item.forced:
        if position < shape[1]:
            labels[:, position] = label
    return labels


def read_schema(raw: Any, model: str, *, is_speech_model: bool) -> Schema:
    """Read the schema of a model.

    Parameters
    ----------
    raw
        What the model declares: a mapping with `cls` and `inputs`.
    model
        What people call the model, for messages.
    is_speech_model
        Whether it is of NeMo's `speechlm2`, whose masks are booleans; they are numbers elsewhere.

    Raises
    ------
    FitError
        If it has an item that nobody can make.
    """
    if not (isinstance(raw, Mapping) and {"cls", "inputs"} <= set(cast("Any", raw))):
        raise FitError(
            f"the oomptimizer_schema of {model} has no `cls` and `inputs`",
            fix='Return {"cls": …, "inputs": […]}',
        )
    schema = cast("Mapping[str, Any]", raw)
    items = [_item(item, f"{model}: inputs[{n}]") for n, item in enumerate(schema["inputs"])]
    if schema["cls"] is dict and any(item.name is None for item in items):
        raise FitError(f"an item of the oomptimizer_schema of {model} has no `name`", fix="Name it")
    return Schema(
        make=schema["cls"],
        items=items,
        mask_dtype=torch.bool if is_speech_model else torch.float32,
    )


def _item(raw: Mapping[str, Any], where: str) -> Item:
    kind = _kind_of(raw.get("type"), where)
    direction: Any = raw.get("seq_length")
    if kind in _KINDS.values() and direction not in {"input", "output"}:
        raise FitError(
            f"an item has the seq_length {direction!r}", where=where, fix="Write input or output"
        )
    vocabulary = raw.get("vocab_size")
    if kind == "labels" and not (isinstance(vocabulary, int) and vocabulary > 0):
        raise FitError(
            f"labels have the vocab_size {vocabulary!r}", where=where, fix="Write their number"
        )
    stride = raw.get("audio_frame_stride_samples")
    return Item(
        kind=kind,
        name=raw.get("name"),
        direction=direction,
        vocabulary=vocabulary or 1,
        value=raw.get("value"),
        excluded=tuple(_ids(raw.get("excluded_token_ids"))),
        replacement=int(raw.get("excluded_token_replacement_id") or 0),
        forced=tuple(
            (int(at), int(id_)) for at, id_ in (raw.get("forced_token_ids") or {}).items()
        ),
        placeholder=raw.get("audio_placeholder_id"),
        stride=None if stride is None else int(stride),
    )


def _kind_of(kind: Any, where: str) -> _Kind:
    if kind in ("constant", "scalar"):
        return kind
    elements = getattr(kind, "elements_type", None)
    if elements is None:
        return "dummy"
    for parent in type(elements).__mro__:
        if parent.__name__ in _KINDS:
            return _KINDS[parent.__name__]
    raise FitError(
        f"no batch can be made with an item of {type(elements).__name__}",
        where=where,
        fix=f"Declare it as one of {', '.join(_KINDS)}, or as dummy",
    )


def _ids(given: Any) -> Iterable[int]:
    if given is None:
        return ()
    return map(int, given if isinstance(given, Iterable) else (given,))
