"""Values of small fake tensors, so that Python which looks into them can go on."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    unset_fake_temporarily,
)
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map_only
from torch.utils.weak import WeakIdKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

__all__ = ["SmallValues"]

# Lengths, masks and labels of a batch are smaller; what comes from weights is not known anyway.
_MOST_WHOLE_NUMBERS = 2**22
_MOST_FRACTIONS = 2**16
_ATEN = torch.ops.aten
_UNIFORM = frozenset({_ATEN.rand.default, _ATEN.rand_like.default, _ATEN.uniform_.default})
_INDEXED = frozenset({_ATEN.index.Tensor, _ATEN.index_put.default, _ATEN.index_put_.default})
_MASKS = frozenset({torch.bool, torch.uint8})


class SmallValues(TorchDispatchMode):
    """Know what is in small tensors that depend on no weights and no inputs.

    What lengths, masks and labels are computed from is computed on the CPU too, beside the fake
    tensors. So `item()`, ``if mask.any()`` and indexing by masks work as on real tensors. Random
    numbers are drawn with one seed; uniform ones are a half, so that what is left out by chance
    (a layer, say) is not left out.

    Parameters
    ----------
    fake
        The mode of the fake tensors, which must be entered before.

    Attributes
    ----------
    looked
        How often Python looked into a tensor, by operator.
    """

    def __init__(self, fake: FakeTensorMode) -> None:
        super().__init__()
        self.looked: Counter[str] = Counter()
        self._fake = fake
        self._values: Any = WeakIdKeyDictionary()

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if func in _INDEXED:
            args = self._without_masks(func, args)
        known = self._known(args, kwargs)
        try:
            result = func(*args, **kwargs)
        except (DynamicOutputShapeException, DataDependentOutputException):
            if known is None:
                raise
            self.looked[func.name()] += 1
            return self._faked(_evaluated(func, *known))
        if known is not None and _is_small(result):
            self._remember(result, _evaluated(func, *known))
        elif func._schema.is_mutable:  # noqa: SLF001  (torch has no other way to ask)
            self._forget((args, kwargs))
        return result

    def _known(self, args: Any, kwargs: Any) -> tuple[Any, Any] | None:
        """Put values in the place of tensors; None where one is unknown."""
        leaves, spec = tree_flatten((args, kwargs))
        for place, leaf in enumerate(leaves):
            if isinstance(leaf, FakeTensor):
                if (value := self._values.get(leaf)) is None:
                    return None
                leaves[place] = value
            elif isinstance(leaf, torch.Tensor):
                if leaf.device.type != "cpu" or not _is_small(leaf):
                    return None
            elif isinstance(leaf, torch.device):
                leaves[place] = torch.device("cpu")
            elif isinstance(leaf, torch.Generator):
                leaves[place] = None
        return spec.unflatten(leaves)

    def _remember(self, result: Any, value: Any) -> None:
        for fake, real in zip(tree_leaves(result), tree_leaves(value), strict=True):
            if isinstance(fake, torch.Tensor) and fake.shape == real.shape:
                self._values[fake] = real

    def _forget(self, arguments: Any) -> None:
        """Forget what an operator may have written to, in all of its views."""
        for leaf in tree_leaves(arguments):
            if isinstance(leaf, torch.Tensor) and leaf in self._values:
                storage = leaf.untyped_storage()
                for other in list(self._values):
                    if other.untyped_storage() is storage:
                        del self._values[other]

    def _faked(self, value: Any) -> Any:
        def fake(real: Tensor) -> Tensor:
            made = torch.empty_like(real)
            self._values[made] = real
            return made

        with self._fake:
            return tree_map_only(torch.Tensor, fake, value)

    def _without_masks(self, func: Any, args: Sequence[Any]) -> Sequence[Any]:
        """Put places where masks are: of a known mask, their number is known."""
        indices = args[1]
        if all(index is None or index.dtype not in _MASKS for index in indices):
            return args
        places: list[Tensor | None] = []
        for index in indices:
            value = None if index is None else self._values.get(index)
            if value is None or value.dtype not in _MASKS:
                places.append(index)
            else:
                self.looked[func.name()] += 1
                with unset_fake_temporarily():
                    found = value.nonzero().unbind(-1)
                places.extend(self._faked(found))
        return (args[0], places, *args[2:])


def _is_small(result: Any) -> bool:
    return all(
        leaf.numel()
        <= (
            _MOST_FRACTIONS
            if leaf.is_floating_point() or leaf.is_complex()
            else _MOST_WHOLE_NUMBERS
        )
        for leaf in tree_leaves(result)
        if isinstance(leaf, torch.Tensor)
    )


def _evaluated(func: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    with unset_fake_temporarily():
        if torch.Tag.nondeterministic_seeded not in getattr(func, "tags", ()):
            return func(*args, **kwargs)
        with torch.random.fork_rng(devices=()):
            torch.manual_seed(0)
            value = func(*args, **kwargs)
        return value.fill_(0.5) if func in _UNIFORM else value
