"""Batches taken apart and put together again."""

from __future__ import annotations

import collections
import pickle
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from lhotse import CutSet, MonoCut, SupervisionSegment

from playhead.fetch.info import BatchInfo
from playhead.loader.parcel import as_bytes, pack, unpack


def sent(value):
    parcel = pack(value)
    unpacked = unpack(parcel.skeleton)
    assert len(unpacked.contents) == len(parcel.contents)
    for made, like in zip(unpacked.contents, parcel.contents, strict=True):
        assert as_bytes(made).data_ptr() != as_bytes(like).data_ptr() or not like.numel()
        as_bytes(made).copy_(as_bytes(like))
    return unpacked.value()


class Pair(NamedTuple):
    audio: torch.Tensor
    name: str


@dataclass
class Named:
    audio: torch.Tensor
    inner: dict


DTYPES = [
    torch.float32,
    torch.bfloat16,
    torch.float16,
    torch.float64,
    torch.int64,
    torch.uint8,
    torch.bool,
    torch.complex64,
]


@st.composite
def tensors(draw):
    shape = draw(st.lists(st.integers(0, 4), max_size=3))
    made = torch.arange(int(np.prod(shape)), dtype=torch.float64).reshape(shape)
    made = made.to(draw(st.sampled_from(DTYPES)))
    kind = draw(st.sampled_from(["whole", "turned", "gaps", "spread"]))
    if kind == "turned":
        return made.permute(draw(st.permutations(range(made.ndim))))
    if kind == "gaps" and made.ndim:
        return made[::2]
    return made.unsqueeze(0).expand(3, *shape) if kind == "spread" else made


@given(tensors())
def test_a_tensor_of_any_form_is_the_same(tensor):
    got = sent(tensor)
    assert torch.equal(got, tensor)
    assert (got.dtype, got.shape) == (tensor.dtype, tensor.shape)
    if tensor.is_contiguous() or tensor.permute(*range(tensor.ndim)[::-1]).is_contiguous():
        assert got.stride() == tensor.stride()


VALUES = st.recursive(
    st.one_of(
        tensors(),
        st.none(),
        st.text(max_size=3),
        st.integers(),
        st.just(np.arange(6, dtype=np.int16).reshape(2, 3)),
        st.just(BatchInfo(step=1, slot=2, repeated=[True])),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.text(max_size=2), inner, max_size=3),
        st.tuples(inner, inner),
        st.builds(Pair, tensors(), st.text(max_size=2)),
    ),
    max_leaves=8,
)


def assert_same(got, value):
    assert type(got) is type(value)
    if isinstance(value, torch.Tensor):
        assert torch.equal(got, value)
    elif isinstance(value, np.ndarray):
        np.testing.assert_array_equal(got, value)
    elif isinstance(value, dict):
        assert list(got) == list(value)
        assert_same(list(got.values()), list(value.values()))
    elif isinstance(value, (list, tuple)):
        assert len(got) == len(value)
        for one, other in zip(got, value, strict=True):
            assert_same(one, other)
    else:
        assert got == value


@given(VALUES)
def test_anything_nested_is_the_same(value):
    assert_same(sent(value), value)


def test_tensors_and_arrays_are_not_pickled_wherever_they_are():
    big = torch.zeros(100_000)
    value = {
        "plain": big,
        "in a dataclass": Named(torch.ones(100_000), {"deep": [torch.ones(100_000)]}),
        "counter": collections.OrderedDict(array=np.zeros(100_000)),
        "again": big,
    }
    parcel = pack(value)
    assert len(parcel.skeleton) < 4_000
    assert len(parcel.contents) == 4
    got = sent(value)
    assert got["plain"] is got["again"]
    assert torch.equal(got["in a dataclass"].inner["deep"][0], torch.ones(100_000))


@pytest.mark.parametrize(
    "array",
    [
        np.array(["a", "bcd"]),
        np.array([{"a": 1}, None], dtype=object),
        np.zeros((2, 0)),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(10)[::3],
        np.array([(1, 2.5)], dtype=[("a", np.int8), ("b", np.float64)]),
        np.frombuffer(b"read only", dtype=np.uint8),
        np.float32(2.5),
    ],
    ids=lambda array: str(getattr(array, "dtype", "")),
)
def test_arrays_of_any_kind_are_the_same(array):
    got = sent(array)
    np.testing.assert_array_equal(got, array)
    assert got.dtype == array.dtype
    if array.shape and array.dtype != object and array.flags.writeable:
        got.flat[:1] = got.flat[-1:]


def test_cuts_without_audio_are_the_same():
    words = SupervisionSegment("s", "r", 0, 1, text="hello")
    cuts = CutSet.from_cuts([MonoCut("a", 0, 1.5, 0, [words]), MonoCut("b", 0, 2, 0)])
    got = sent({"cuts": cuts, "audio": torch.ones(2)})
    assert [cut.to_dict() for cut in got["cuts"]] == [cut.to_dict() for cut in cuts]


def test_tensors_with_more_to_them_than_bytes_travel_in_the_skeleton():
    sparse = torch.eye(3).to_sparse()
    conjugate = torch.tensor([1 + 2j]).conj()
    parameter = torch.nn.Parameter(torch.ones(2))
    named = torch.ones(2)
    named.of = "a.wav"
    got = sent([sparse, conjugate, parameter, named])
    assert torch.equal(got[0].to_dense(), torch.eye(3))
    assert torch.equal(got[1].resolve_conj(), conjugate.resolve_conj())
    assert type(got[2]) is torch.nn.Parameter
    assert got[3].of == "a.wav"


def test_a_tensor_that_wants_its_gradient_still_does():
    assert sent(torch.ones(2, requires_grad=True)).requires_grad


def test_room_is_made_on_the_device_that_the_tensor_was_on():
    parcel = pack({"audio": torch.empty(3, 2, device="meta"), "lens": torch.ones(3)})
    assert [content.device.type for content in unpack(parcel.skeleton).contents] == ["meta", "cpu"]


def test_what_cannot_be_pickled_says_so_before_anything_is_sent():
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pack({"function": lambda: 0})
