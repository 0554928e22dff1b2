"""Pickles are read as they were written, and nothing of them runs, however hostile or damaged."""

from __future__ import annotations

import collections
import os
import pickle
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.errors import DataError
from playhead.inspect.inert import Inert
from playhead.inspect.pickles import read_pickle

ATOMS = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**80), 2**80), st.floats(allow_nan=False), st.text()
)
PLAIN = st.recursive(
    st.one_of(ATOMS, st.binary()),
    lambda inner: st.one_of(
        st.lists(inner), st.dictionaries(st.one_of(st.text(), st.integers()), inner)
    ),
)


@dataclass
class Settings:
    """Stands for the classes that checkpoints have."""

    rate: int
    names: list


class Record(dict):
    """A dict with attributes."""


class Rows(list):
    """A list with a class."""


class Evil:
    """Runs something where it is unpickled."""

    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


@settings(deadline=None)
@given(PLAIN, st.integers(0, 5))
def test_plain_containers_come_back_as_they_are(value, protocol):
    data = pickle.dumps(value, protocol)
    found = read_pickle(data)
    assert found.content == value
    assert found.end == len(data)


@pytest.mark.parametrize("protocol", range(6))
def test_known_containers_become_plain_ones(protocol):
    value = {
        "ordered": collections.OrderedDict(a=1),
        "default": collections.defaultdict(list, k=[1]),
        "deque": collections.deque([1, 2]),
        "counted": collections.Counter("aab"),
        "set": {7},
        "frozen": frozenset([3]),
        "array": bytearray(b"xy"),
        "float": np.float32(1.5),
        "whole": np.int64(-7),
        "yes": np.bool_(True),
        "tuple": (1, (2, 3), ()),
    }
    assert read_pickle(pickle.dumps(value, protocol)).content == {
        "ordered": {"a": 1},
        "default": {"k": [1]},
        "deque": [1, 2],
        "counted": {"a": 2, "b": 1},
        "set": [7],
        "frozen": [3],
        "array": b"xy",
        "float": 1.5,
        "whole": -7,
        "yes": True,
        "tuple": (1, (2, 3), ()),
    }


@pytest.mark.parametrize("protocol", range(2, 6))
def test_objects_are_dicts_of_what_they_hold(protocol):
    record, rows = Record(a=1), Rows([1, 2])
    record.extra = 5
    value = {"settings": Settings(16000, ["x"]), "record": record, "rows": rows, "again": record}
    found = read_pickle(pickle.dumps(value, protocol)).content
    assert dict(found["settings"]) == {"rate": 16000, "names": ["x"]}
    assert found["settings"].name.endswith("Settings")
    assert dict(found["record"]) == {"a": 1, "extra": 5}
    assert found["rows"]["[]"] == [1, 2]
    assert found["again"] is found["record"]


def test_a_pickle_that_contains_itself_is_read():
    value: list = [1]
    value.append(value)
    found = read_pickle(pickle.dumps(value)).content
    assert found[1] is found


@pytest.mark.parametrize("protocol", range(6))
def test_nothing_of_a_pickle_runs(protocol, tmp_path):
    mark = tmp_path / "ran"
    evil = [
        Evil(os.system, f"touch {mark}"),
        Evil(eval, f"__import__('os').system('touch {mark}')"),
        Evil(exec, f"open({str(mark)!r}, 'w')"),
        Evil(Path.touch, mark),
        Evil(pickle.loads, pickle.dumps(Evil(os.mkdir, str(mark)))),
    ]
    found = read_pickle(pickle.dumps({"state": evil, "step": 3}, protocol)).content
    assert found["step"] == 3
    assert all(isinstance(one, Inert) for one in found["state"])
    assert not mark.exists()


HOSTILE = {
    "a list that grows by copying itself": b"\x80\x02]q\x00(" + b"K\x01" * 5000 + b"e"
    + b"cbuiltins\nlist\nh\x00\x85R0" * 5000 + b"N.",
    "a memo with a number of four billion": b"\x80\x02Nr\xff\xff\xff\xff.",
    "a text of 2**63 bytes": b"\x80\x04\x8d" + struct.pack("<Q", 2**63 - 1) + b"x.",
    "a number of 2 GB": b"\x80\x02\x8b" + struct.pack("<i", 2**31 - 1) + b"\x01.",
    "a negative size": b"\x80\x02\x8b" + struct.pack("<i", -5) + b"\x01.",
    "digits without end": b"I" + b"9" * 100_000 + b"\n.",
    "a line without an end": b"c" + b"a" * 100,
    "a mark that was never set": b"\x80\x02e.",
    "an empty stack": b".",
    "nothing": b"",
    "a protocol of the future": b"\x80\xff.",
    "an operation that is none": b"\x80\x02\xfe.",
    "items of no container": b"\x80\x02K\x01(K\x01e.",
    "a dict with a key too many": b"\x80\x02}(K\x01u.",
}  # fmt: skip


def _said_of(data):
    """What the one error says; None where there is none."""
    try:
        read_pickle(data, where="x.pkl")
    except DataError as error:
        return str(error)
    return None


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_pickles_end_in_one_error_or_none(data):
    said = _said_of(data)
    assert said is None or ("x.pkl" in said and "\n" not in said)


def test_what_takes_for_ever_to_hash_is_no_key():
    # Tuples of the same tuple twice, fifty deep: their hash has 2**50 parts.
    deep = b"K\x01\x85q\x00" + b"".join(
        b"0h" + bytes([n]) + b"h" + bytes([n]) + b"\x86q" + bytes([n + 1]) for n in range(50)
    )
    data = b"\x80\x02}" + deep + b"K\x02s."
    (key,) = read_pickle(data).content
    assert isinstance(key, Inert)
    # And one tuple in another a hundred thousand times: its hash would end the process.
    deep = b"K\x01" + b"\x85" * 100_000
    (key,) = read_pickle(b"\x80\x02}" + deep + b"K\x02s.").content
    assert isinstance(key, Inert)


def test_a_program_without_an_end_is_cut_off():
    with pytest.raises(DataError, match="more than 1,000 operations"):
        read_pickle(b"\x80\x02" + b"N0" * 10_000 + b"N.", most_operations=1000)


_SEED = pickle.dumps(
    {
        "loops": {"fit": [{"version": 1, "leaves": {"a": [0, 1, 2, "f"]}}]},
        "settings": Settings(1, ["b"]),
        "numbers": np.arange(4),
        "evil": Evil(os.system, "exit 1"),
        "sets": {1, 2},
        "record": Record(a=(1, 2)),
    }
)


@settings(deadline=None, max_examples=400)
@given(st.data())
def test_damaged_pickles_end_in_one_error_or_are_read(data):
    """Truncated, with bytes exchanged, and with stretches of it put elsewhere."""
    damaged = bytearray(_SEED)
    for _ in range(data.draw(st.integers(0, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        begin, end = sorted(data.draw(st.tuples(*[st.integers(0, len(damaged))] * 2)))
        damaged[begin:begin] = damaged[begin:end]
    damaged = damaged[: data.draw(st.integers(0, len(damaged)))]
    said = _said_of(bytes(damaged))
    assert said is None or "\n" not in said
