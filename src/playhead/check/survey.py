"""Which random generators a dataset uses, and which of them nobody seeds."""

from __future__ import annotations

import random
import sys
import types
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from playhead.fetch.generators import find_generators

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Generator", "Survey"]

_GENERATORS = (random.Random, np.random.Generator, np.random.RandomState, torch.Generator)
# Their own generators are seeded as globals, or are none of the dataset's.
_LIBRARIES = frozenset(
    {"builtins", "lhotse", "numpy", "playhead", "random", "torch", "torchaudio", "typing"}
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Generator:
    """A random generator that a dataset may draw from."""

    path: str
    """Where it is, such as `dataset.transforms[0].random`."""
    kind: str
    """Its type, or `set_rng hook` for an object that is given the batch's key."""
    why_not_seeded: str | None = None
    """Why it goes on from batch to batch; None where it is seeded before each batch."""


class Survey:
    """The generators that a dataset holds, and those in reach of it that nobody seeds.

    Not seeded are a `random.SystemRandom`; what is shared by all objects of a class, or is a global
    of the module of a class or function that the dataset consists of; and what lies in a set. Of
    those in reach only the ones that were drawn from count. Randomness that is no object, such as
    `os.urandom`, and clocks cannot be listed.

    Parameters
    ----------
    dataset
        The dataset, before it makes the batches in question.
    """

    def __init__(self, dataset: object) -> None:
        self._dataset = dataset
        self._before = {id(item): _state(item) for _, item, _ in _out_of_reach(dataset)}

    def result(self) -> tuple[Generator, ...]:
        """List them, now that batches were made."""
        found = find_generators(self._dataset)
        seeded = {id(item) for item in found.values()}
        listed = [_seen(path, item) for path, item in found.items()]
        for path, item, why in _out_of_reach(self._dataset):
            if id(item) not in seeded and self._before.get(id(item)) != _state(item):
                seeded.add(id(item))
                listed.append(Generator(path=path, kind=_kind(item), why_not_seeded=why))
        return tuple(listed)


def _state(item: Any) -> str | None:
    """Where a generator stands; None of one that never stands anywhere."""
    if isinstance(item, random.SystemRandom):
        return None
    if isinstance(item, np.random.Generator):
        return repr(item.bit_generator.state)
    if isinstance(item, torch.Generator):
        return item.get_state().numpy().tobytes().hex()
    return repr(item.getstate() if isinstance(item, random.Random) else item.get_state())


def _seen(path: str, item: Any) -> Generator:
    why = None
    if callable(getattr(type(item), "set_rng", None)):
        kind = "set_rng hook"
    else:
        kind = _kind(item)
        if isinstance(item, random.SystemRandom):
            why = "it draws from the operating system, which nobody can seed"
    return Generator(path=f"dataset{path}", kind=kind, why_not_seeded=why)


def _out_of_reach(dataset: object) -> Iterator[tuple[str, Any, str]]:
    modules: dict[str, None] = {}
    for path, item in _members(dataset):
        if isinstance(item, (set, frozenset)):
            why = "it lies in a set, whose order differs between processes"
            yield from ((path, value, why) for value in item if isinstance(value, _GENERATORS))
        elif isinstance(item, types.FunctionType):
            modules[item.__module__] = None
        else:
            classes = [cls for cls in type(item).__mro__ if not _is_library(cls.__module__)]
            modules.update((cls.__module__, None) for cls in classes)
            for cls in classes:
                why = "it belongs to the class, not to the object"
                yield from _globals_of(f"{cls.__module__}.{cls.__qualname__}", cls, why)
    for name in modules:
        if name in sys.modules and not _is_library(name):
            yield from _globals_of(name, sys.modules[name], "it is a global of a module")


def _globals_of(name: str, owner: object, why: str) -> Iterator[tuple[str, Any, str]]:
    for attribute, value in list(vars(owner).items()):
        if isinstance(value, _GENERATORS):
            yield f"{name}.{attribute}", value, why


def _members(dataset: object) -> Iterator[tuple[str, Any]]:
    """The dataset, what it holds, and what that holds: where people put their own code."""
    level: list[tuple[str, Any]] = [("dataset", dataset)]
    seen: set[int] = set()
    for _ in range(4):
        below: list[tuple[str, Any]] = []
        for path, item in level:
            if id(item) in seen or isinstance(item, (str, bytes, type, types.ModuleType)):
                continue
            seen.add(id(item))
            yield path, item
            held: Any = getattr(item, "__dict__", None)
            if isinstance(held, dict):
                below += [(f"{path}.{name}", value) for name, value in list(held.items())]
            elif isinstance(item, (list, tuple)) and len(item) <= 1000:
                below += [(f"{path}[{number}]", value) for number, value in enumerate(item)]
        level = below


def _is_library(module: str) -> bool:
    return module.partition(".")[0] in _LIBRARIES


def _kind(item: object) -> str:
    cls = type(item)
    # Where people import it from, not where it was written.
    module = {"numpy": "numpy.random", "torch": "torch", "_random": "random"}.get(
        cls.__module__.partition(".")[0], cls.__module__
    )
    return f"{module}.{cls.__qualname__}"
