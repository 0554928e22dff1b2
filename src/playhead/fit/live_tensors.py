"""Bytes that tensors hold, counted as they come and go."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._python_dispatch import (
    TorchDispatchMode,
    is_traceable_wrapper_subclass,
)
from torch.utils._pytree import tree_leaves

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from torch import Tensor, UntypedStorage

__all__ = ["BLOCK", "LiveTensors", "OutOfTensorMemoryError", "rounded"]

BLOCK = 512
"""Bytes that CUDA's allocator rounds to, up."""


class OutOfTensorMemoryError(MemoryError):
    """Tensors hold more bytes than they may."""


def rounded(size: int) -> int:
    """Return a number of bytes, rounded up to whole blocks.

    Examples
    --------
    >>> rounded(0), rounded(1), rounded(513)
    (0, 512, 1024)
    """
    return -(-size // BLOCK) * BLOCK


class LiveTensors(TorchDispatchMode):
    """Count the bytes of all tensors that operators return while this is entered.

    Storages are counted, once each, however many tensors share one. Tensors that an operator makes
    and frees inside, as scratch, are not seen; nor are those made before: `watch` counts them.
    It works alike on real and on fake tensors.

    Parameters
    ----------
    limit
        Most that may be alive at once (bytes); None lets everything be.
    device
        Type of device whose tensors count (`cuda`, …); None counts all.

    Attributes
    ----------
    live
        Bytes of the storages that are alive.
    peak
        Most that `live` has been since the start, or since `reset_peak`.

    Examples
    --------
    >>> with LiveTensors() as tensors:
    ...     kept = torch.zeros(1000)
    ...     sum_of_a_copy = (kept + 1).sum()
    >>> tensors.live, tensors.peak
    (4608, 8704)
    """

    def __init__(self, *, limit: int | None = None, device: str | None = None) -> None:
        super().__init__()
        self.live = 0
        self.peak = 0
        self._limit = limit
        self._device = device
        # By identity: as long as a storage lives, so does the one object that stands for it.
        self._sizes: dict[int, int] = {}
        self._deaths: dict[int, weakref.ref[UntypedStorage]] = {}

    def watch(self, tensors: Iterable[Tensor]) -> None:
        """Count tensors that are there already.

        Raises
        ------
        OutOfTensorMemoryError
            If they alone hold more than they may.
        """
        for tensor in tensors:
            self._count(tensor)

    def reset_peak(self) -> None:
        """Forget what the most was."""
        self.peak = self.live

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        # Most operators return one tensor: flattening a tree costs more than counting it.
        if isinstance(result, torch.Tensor):
            self._count(result)
        else:
            for leaf in tree_leaves(result):
                if isinstance(leaf, torch.Tensor):
                    self._count(leaf)
        return result

    def _count(self, tensor: Tensor) -> None:
        for part in _strided(tensor):
            if self._device is None or part.device.type == self._device:
                self._hold(part.untyped_storage())

    def _hold(self, storage: UntypedStorage) -> None:
        key = id(storage)
        size = rounded(storage.nbytes())
        before = self._sizes.get(key)
        if before == size:
            return
        if before is None:
            self._deaths[key] = weakref.ref(storage, lambda _: self._free(key))
        self._sizes[key] = size
        self.live += size - (before or 0)
        self.peak = max(self.peak, self.live)
        if self._limit is not None and self.live > self._limit:
            raise OutOfTensorMemoryError(
                f"tensors hold {self.live} bytes, {size - (before or 0)} of them since the last "
                f"operator, and may hold {self._limit}"
            )

    def _free(self, key: int) -> None:
        del self._deaths[key]
        self.live -= self._sizes.pop(key)


def _strided(tensor: Tensor) -> Iterator[Tensor]:
    """Go through the tensors that have the storage of one of any kind."""
    if is_traceable_wrapper_subclass(tensor):
        names, _ = tensor.__tensor_flatten__()
        for name in names:
            yield from _strided(getattr(tensor, name))
    elif tensor.layout is torch.sparse_coo:
        yield tensor._indices()  # noqa: SLF001  (public ones demand that it is coalesced)
        yield tensor._values()  # noqa: SLF001  (likewise)
    elif tensor.layout is torch.strided:
        yield tensor
