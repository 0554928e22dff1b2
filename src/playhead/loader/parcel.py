"""A batch taken apart for sending: its tensors as they lie in memory, and all the rest."""

from __future__ import annotations

import io
import pickle
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Parcel", "Unpacked", "as_bytes", "pack", "unpack"]


class Parcel(NamedTuple):
    """What there is to send of a value."""

    skeleton: bytes
    """All that is no tensor and no array, and the forms of those."""
    contents: list[torch.Tensor]
    """The tensors, whose bytes follow."""


class Unpacked(NamedTuple):
    """A value whose tensors are still to be filled."""

    contents: list[torch.Tensor]
    """Tensors of the same forms as those of the parcel."""
    value: Callable[[], Any]
    """Gives the value, once they are filled."""


class _Form(NamedTuple):
    """All of a tensor but what is in it."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype
    device: str
    pinned: bool
    requires_grad: bool

    def empty(self) -> torch.Tensor:
        # A device without a number is the present one, which another rank counts otherwise.
        made = torch.empty_strided(
            self.shape,
            self.stride,
            dtype=self.dtype,
            device=self.device,
            pin_memory=self.pinned and torch.cuda.is_available(),
        )
        return made.requires_grad_(self.requires_grad)


class _Pickler(pickle.Pickler):
    """Leaves tensors out, wherever they are; arrays hand over their memory as buffers."""

    def __init__(self, file: io.BytesIO, buffers: list[pickle.PickleBuffer]) -> None:
        super().__init__(file, protocol=5, buffer_callback=buffers.append)
        self.tensors: list[torch.Tensor] = []
        self._places: dict[int, int] = {}

    def persistent_id(self, obj: Any) -> int | None:
        if not _is_plain(obj):
            return None
        if id(obj) not in self._places:
            self._places[id(obj)] = len(self.tensors)
            self.tensors.append(obj)
        return self._places[id(obj)]


class _Unpickler(pickle.Unpickler):
    def __init__(
        self, skeleton: bytes, tensors: list[torch.Tensor], buffers: list[torch.Tensor]
    ) -> None:
        super().__init__(io.BytesIO(skeleton), buffers=[buffer.numpy() for buffer in buffers])
        self._tensors = tensors

    def persistent_load(self, pid: int) -> torch.Tensor:
        return self._tensors[pid]


def pack(value: Any) -> Parcel:
    """Take a value apart.

    Parameters
    ----------
    value
        Anything that can be pickled, with tensors and NumPy arrays anywhere in it.

    Raises
    ------
    Exception
        Whatever pickling raises.

    Examples
    --------
    >>> parcel = pack({"audio": torch.ones(2, 3), "texts": ["a", "b"]})
    >>> [content.shape for content in parcel.contents]
    [torch.Size([2, 3])]
    """
    file = io.BytesIO()
    buffers: list[pickle.PickleBuffer] = []
    pickler = _Pickler(file, buffers)
    pickler.dump(value)
    tensors = [_dense(tensor) for tensor in pickler.tensors]
    arrays = [_of_buffer(buffer) for buffer in buffers]
    forms = [_form(tensor, like) for tensor, like in zip(tensors, pickler.tensors, strict=True)]
    skeleton = pickle.dumps((forms, [len(array) for array in arrays], file.getvalue()))
    return Parcel(skeleton, [*tensors, *arrays])


def unpack(skeleton: bytes) -> Unpacked:
    """Make room for the tensors of a parcel, which were not sent with its skeleton.

    Examples
    --------
    >>> parcel = pack({"audio": torch.ones(2, 3), "texts": ["a", "b"]})
    >>> unpacked = unpack(parcel.skeleton)
    >>> for made, sent in zip(unpacked.contents, parcel.contents):
    ...     _ = as_bytes(made).copy_(as_bytes(sent))
    >>> unpacked.value()
    {'audio': tensor([[1., 1., 1.],
            [1., 1., 1.]]), 'texts': ['a', 'b']}
    """
    forms, sizes, rest = pickle.loads(skeleton)  # noqa: S301 - another rank of this job made it
    tensors = [form.empty() for form in forms]
    arrays = [torch.empty(size, dtype=torch.uint8) for size in sizes]
    return Unpacked([*tensors, *arrays], lambda: _Unpickler(rest, tensors, arrays).load())


def as_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """The memory of a tensor without gaps, as a vector of bytes; nothing is copied."""
    return tensor.detach().as_strided((tensor.numel(),), (1,)).view(torch.uint8)


def _is_plain(thing: Any) -> bool:
    """Whether it is a tensor whose bytes are all there is to it."""
    return (
        type(thing) is torch.Tensor
        and thing.layout is torch.strided
        and not (thing.is_quantized or thing.is_conj() or thing.is_neg())
        and thing.is_leaf
        and not thing.__dict__
    )


def _dense(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor itself, unless there are gaps in its memory or places that it holds twice."""
    tensor, strides = tensor.detach(), tensor.stride()
    in_memory_order = tensor.permute(sorted(range(tensor.ndim), key=lambda dim: -strides[dim]))
    return tensor if in_memory_order.is_contiguous() else tensor.contiguous()


def _form(tensor: torch.Tensor, like: torch.Tensor) -> _Form:
    return _Form(
        tuple(tensor.shape),
        tensor.stride(),
        tensor.dtype,
        tensor.device.type,
        like.is_pinned(),
        like.requires_grad,
    )


def _of_buffer(buffer: pickle.PickleBuffer) -> torch.Tensor:
    raw = buffer.raw()
    if not len(raw):
        return torch.empty(0, dtype=torch.uint8)
    # torch warns of memory that may not be written to.
    return torch.frombuffer(bytearray(raw) if raw.readonly else raw, dtype=torch.uint8)
