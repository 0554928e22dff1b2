from __future__ import annotations

import functools
import random
from collections import deque
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from lhotse.dataset.cut_transforms import PerturbSpeed, PerturbTempo

from playhead.fetch.generators import derive, find_generators, seed_generators


class Slotted:
    __slots__ = ("empty", "rng")

    def __init__(self):
        self.rng = random.Random()


class Hooked:
    def __init__(self):
        self.keys = []
        self.inner = random.Random(3)

    def set_rng(self, key: int) -> None:
        self.keys.append(key)


def draws(found):
    """What each generator gives next."""
    drawn = {}
    for path, item in found.items():
        if isinstance(item, random.Random):
            drawn[path] = item.random()
        elif isinstance(item, (np.random.Generator, np.random.RandomState)):
            drawn[path] = (item.standard_normal(), item.standard_normal())
        elif isinstance(item, torch.Generator):
            drawn[path] = torch.rand(1, generator=item).item()
    return drawn


def make_everything():
    keyed = random.Random()

    def closure():
        return keyed

    def defaults(rng=random.Random(), *, other=np.random.default_rng()):  # noqa: B008
        return rng, other

    module = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Identity())
    module[1].noise = torch.Generator()
    return SimpleNamespace(
        python=random.Random(),
        pcg=np.random.default_rng(),
        mersenne=np.random.Generator(np.random.MT19937()),
        philox=np.random.Generator(np.random.Philox()),
        legacy=np.random.RandomState(),
        pytorch=torch.Generator(),
        nested=[({"a": deque([SimpleNamespace(rng=random.Random())])},)],
        slotted=Slotted(),
        partial=functools.partial(print, random.Random(), file=np.random.default_rng()),
        method=Slotted().__init__,
        closure=closure,
        defaults=defaults,
        module=module,
        plain=["text", 1, None, b"bytes", np.zeros(5), torch.zeros(5), random, print],
    )


PLACES = {
    ".python",
    ".pcg",
    ".mersenne",
    ".philox",
    ".legacy",
    ".pytorch",
    ".nested[0][0]['a'][0].rng",
    ".slotted.rng",
    ".partial.args[0]",
    ".partial.keywords['file']",
    ".closure.keyed",
    ".defaults.__defaults__[0]",
    ".defaults.__kwdefaults__['other']",
    ".module._modules['1'].noise",
}


def test_generators_are_found_wherever_they_are():
    places = set(find_generators(make_everything()))
    assert places >= PLACES
    assert len(places - PLACES) == 1
    (method,) = places - PLACES
    assert method.startswith(".method.__self__")


def test_every_generator_depends_on_the_key_and_its_place_alone():
    one, two = find_generators(make_everything()), find_generators(make_everything())
    seed_generators(one, 11)
    first = draws(one)
    draws(one)
    seed_generators(two, 12)
    other = draws(two)
    seed_generators(one, 11)
    seed_generators(two, 11)
    assert draws(one) == draws(two) == first
    assert all(first[path] != other[path] for path in first)
    assert len(set(first.values())) == len(first)


def test_a_half_used_pair_of_gaussians_is_forgotten():
    """RandomState keeps the second of two normal numbers."""
    found = {"": np.random.RandomState(1)}
    seed_generators(found, 5)
    first = found[""].standard_normal()
    seed_generators(found, 5)
    assert found[""].standard_normal() == first


def test_a_hook_wins_over_what_the_object_holds():
    top = SimpleNamespace(child=Hooked())
    found = find_generators(top)
    assert list(found) == [".child"]
    seed_generators(found, 1)
    seed_generators(found, 1)
    seed_generators(found, 2)
    assert top.child.keys[0] == top.child.keys[1] != top.child.keys[2]
    assert 0 <= top.child.keys[0] < 2**64
    assert top.child.inner.random() == random.Random(3).random()


def test_cycles_and_shared_generators():
    shared = random.Random()
    one = SimpleNamespace(rng=shared)
    two = SimpleNamespace(rng=shared, back=one)
    one.forth = two
    assert list(find_generators(one)) == [".rng"]


def test_depth_and_size_are_bounded():
    chain = last = []
    for _ in range(100):
        last.append([])
        last = last[0]
    last.append(random.Random())
    assert find_generators(SimpleNamespace(chain=chain)) == {}
    many = SimpleNamespace(
        words=dict.fromkeys(map(str, range(100_000))),
        objects=[[SimpleNamespace() for _ in range(1000)] for _ in range(100)],
        rng=random.Random(),
    )
    assert list(find_generators(many)) == [".rng"]


def test_sets_have_no_order_to_name_places_by():
    assert find_generators(SimpleNamespace(some={random.Random()})) == {}


@pytest.mark.parametrize("state", [None, random, random.Random(4)])
@pytest.mark.parametrize("transform", [PerturbSpeed, PerturbTempo])
def test_lhotses_lazy_generators_are_made(transform, state):
    """Whether they were used before must not matter."""
    item = transform(factors=[0.9, 1.1], p=0.5)
    item.random = state
    found = find_generators([item])
    assert list(found) == ["[0].random"]
    seed_generators(found, 8)
    assert item.random.random() == random.Random(derive(8, "[0].random")).random()
    assert random.Random is type(item.random)


def test_the_users_own_lazy_attributes_are_left_alone():
    own = SimpleNamespace(rng=None, random=random)
    assert find_generators(own) == {}
    assert own.rng is None
    assert own.random is random


def test_attributes_that_are_computed_are_not_touched():
    class Lazy:
        @property
        def model(self):
            raise AssertionError

        def __getattr__(self, name):
            raise AssertionError

    assert find_generators(Lazy()) == {}


def test_derived_keys_never_change():
    """Runs would not go on as they began."""
    assert derive(0, "") == 4331143152044847043
    assert derive(2**64 - 1, ".rng") == 983128840949964386
