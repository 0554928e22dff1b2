"""Everything that a batch may hold is told apart bit by bit."""

from __future__ import annotations

import datetime as dt
import functools
import io
import random
import re
import threading
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
import torch
from lhotse import CutSet, Recording

from playhead.check.compare import first_difference
from playhead.check.facts import facts_of
from support.corpus import wav_bytes


class Slotted:
    __slots__ = ("absent", "value")

    def __init__(self, value):
        self.value = value


class Held(dict):
    """A dict of one's own."""


class Color(Enum):
    RED = 1
    BLUE = 2


class Wrapped(Exception):  # noqa: N818 - an object made in C with attributes of its own
    pass


@dataclass
class Sample:
    name: str
    values: list = field(default_factory=list)


class Pair(NamedTuple):
    left: int
    right: int


def closure_over(value):
    return lambda: value


def cuts(seed=0, name="r"):
    recording = Recording.from_bytes(wav_bytes(0.1, seed=seed), name)
    return CutSet.from_cuts([recording.to_cut()])


def tensor(*values, dtype=torch.float32):
    return torch.tensor(values, dtype=dtype)


def python_random(seed):
    generator = random.Random(seed)
    generator.random()
    return generator


# What makes one thing, what makes another, and where they differ; each is called twice.
UNLIKE = {
    "tensor": (lambda: tensor(1, 2), lambda: tensor(1, 3), "batch"),
    "row": (lambda: torch.zeros(3, 4), lambda: torch.eye(3, 4).roll(2, 0), "batch[0]"),
    "last_bit": (lambda: tensor(1.0), lambda: tensor(1.0).nextafter(tensor(2.0)), "batch"),
    "minus_zero": (lambda: tensor(0.0), lambda: tensor(-0.0), "batch"),
    "dtype": (lambda: tensor(1), lambda: tensor(1, dtype=torch.float64), "batch"),
    "shape": (lambda: torch.zeros(2, 3), lambda: torch.zeros(3, 2), "batch"),
    "bfloat16": (
        lambda: tensor(1, dtype=torch.bfloat16),
        lambda: tensor(2, dtype=torch.bfloat16),
        "batch",
    ),
    "scalar": (lambda: torch.tensor(1), lambda: torch.tensor(2), "batch"),
    "view": (lambda: torch.arange(6).reshape(2, 3).T, lambda: torch.arange(6).view(3, 2), "[0]"),
    "sparse": (torch.eye(2).to_sparse, (2 * torch.eye(2)).to_sparse, "values"),
    "array": (lambda: np.arange(3), lambda: np.array([0, 1, 3]), "batch"),
    "strings": (lambda: np.array(["a", "b"]), lambda: np.array(["a", "c"]), "batch"),
    "objects": (lambda: np.array([[1], "b"], object), lambda: np.array([[2], "b"], object), "[0]"),
    "number": (lambda: np.float32(1), lambda: np.float32(2), "batch"),
    "kind": (lambda: np.float32(1), lambda: 1.0, "batch"),
    "float": (lambda: 0.1, lambda: 0.1 + 1e-17 * 5, "batch"),
    "float_sign": (lambda: 0.0, lambda: -0.0, "batch"),
    "complex": (lambda: 1j, lambda: 1 + 1j, "batch"),
    "bool": (lambda: True, lambda: 1, "batch"),
    "text": (lambda: ["x", "y"], lambda: ["x", "z"], "batch[1]"),
    "surrogate": (lambda: "\ud800", lambda: "\ud801", "batch"),
    "bytes": (lambda: b"a", lambda: b"b", "batch"),
    "path": (lambda: Path("a"), lambda: Path("b"), "batch"),
    "enum": (lambda: Color.RED, lambda: Color.BLUE, "batch"),
    "missing": (lambda: {"a": 1, "b": 2}, lambda: {"a": 1}, "batch"),
    "longer": (lambda: [1], lambda: [1, 2], "batch"),
    "key_order": (lambda: {"a": 1, "b": 2}, lambda: {"b": 2, "a": 1}, "batch"),
    "nested": (lambda: {"x": [({"y": 1},)]}, lambda: {"x": [({"y": 2},)]}, '["x"][0][0]["y"]'),
    "type": (lambda: [1], lambda: (1,), "batch"),
    "own_mapping": (lambda: Held(a=1), lambda: Held(a=2), 'batch["a"]'),
    "ordered": (lambda: OrderedDict(a=1), lambda: {"a": 1}, "batch"),
    "deque": (lambda: deque([1]), lambda: deque([2]), "batch[0]"),
    "set": (lambda: {"a", "b"}, lambda: {"a", "c"}, "batch{"),
    "namedtuple": (lambda: Pair(1, 2), lambda: Pair(1, 3), "batch.right"),
    "dataclass": (lambda: Sample("a", [1]), lambda: Sample("a", [2]), "batch.values[0]"),
    "slots": (lambda: Slotted(1), lambda: Slotted(2), "batch.value"),
    "object": (lambda: SimpleNamespace(x=1), lambda: SimpleNamespace(x=2), "batch.x"),
    "partial": (
        lambda: functools.partial(print, 1),
        lambda: functools.partial(print, 2),
        "args[0]",
    ),
    "closure": (lambda: closure_over(1), lambda: closure_over(2), "__closure__[0]"),
    "method": (lambda: Sample("a").__repr__, lambda: Sample("b").__repr__, "__self__.name"),
    "time": (
        lambda: dt.date(2024, 1, 1),
        lambda: dt.date(2024, 1, 2),
        "batch.args",
    ),
    "pattern": (lambda: re.compile("a"), lambda: re.compile("b"), "batch.args"),
    "exception": (lambda: Wrapped("a"), lambda: Wrapped("b"), "batch.args"),
    "generator": (lambda: python_random(1), lambda: python_random(2), "batch.state"),
    "numpy_generator": (
        lambda: np.random.default_rng(1),
        lambda: np.random.default_rng(2),
        "batch.args",
    ),
    "cuts": (lambda: cuts(0), lambda: cuts(1), "batch[0].recording.sources[0].source"),
    "cut_id": (lambda: cuts(0, "a")[0], lambda: cuts(0, "b")[0], "batch.id"),
    "lazy_cuts": (lambda: cuts(0).repeat(2), lambda: cuts(1).repeat(2), "batch[0].recording"),
    "function": (lambda: print, lambda: len, "batch"),
}


@pytest.mark.parametrize("name", UNLIKE)
def test_what_is_unlike_is_told_apart_and_what_is_alike_is_not(name):
    one, other, place = UNLIKE[name]
    where, how = first_difference(facts_of(one()), facts_of(other()))
    assert where.startswith("batch")
    assert place in where
    assert how
    assert first_difference(facts_of(one()), facts_of(one())) is None
    assert first_difference(facts_of(other()), facts_of(other())) is None


def test_the_place_and_the_extent_are_named():
    audio = torch.zeros(4, 10)
    other = audio.clone()
    other[3, 7:] = 1
    assert first_difference(facts_of({"audio": audio}), facts_of({"audio": other})) == (
        'batch["audio"][3]',
        "3 of 40 elements differ, the first at [3, 7]",
    )


def test_a_nan_is_itself():
    facts = [facts_of([float("nan"), torch.tensor([float("nan")])]) for _ in range(2)]
    assert first_difference(*facts) is None


def test_what_is_taken_down_does_not_change_with_the_batch():
    batch = {"audio": torch.zeros(3), "ids": ["a"]}
    before = facts_of(batch)
    batch["audio"][1] = 5
    batch["ids"].append("b")
    assert first_difference(before, facts_of(batch))[0] == 'batch["audio"]'


def test_the_order_of_a_set_does_not_count():
    """It differs between processes, and what a batch means does not."""
    numbers = [0, 8, 16, 1 << 20]
    forth, back = set(), set()
    forth.update(numbers)
    back.update(reversed(numbers))
    assert list(forth) != list(back)
    assert first_difference(facts_of(forth), facts_of(back)) is None


@pytest.mark.parametrize(
    "item",
    [
        (x for x in ()),
        threading.Lock(),
        torch.empty(2, device="meta"),
        memoryview(b"a"),
        io.TextIOWrapper(io.BytesIO()),
    ],
    ids=lambda item: type(item).__name__,
)
def test_what_cannot_be_compared_is_named(item):
    facts = facts_of({"it": item})
    bad = {path: fact.shown for path, fact in facts.items() if not fact.is_comparable}
    assert list(bad) == ['batch["it"]']
    assert all(bad.values())


def test_cycles_and_depth_end():
    cycle = [1]
    cycle.append({"back": cycle})
    assert first_difference(facts_of(cycle), facts_of(cycle)) is None
    deep = []
    for _ in range(500):
        deep = [deep]
    assert sum(not fact.is_comparable for fact in facts_of(deep).values()) == 1


def test_keys_that_are_no_texts():
    facts = facts_of({1: 0, ("a", 2): 0, 'quo"te': 0, frozenset("a"): 0})
    assert list(facts)[1:] == [
        "batch[1]",
        "batch[('a', 2)]",
        'batch["quo\\"te"]',
        "batch[key 3: frozenset]",
    ]
