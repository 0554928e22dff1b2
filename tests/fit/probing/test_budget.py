"""How much the allocator may hold."""

from __future__ import annotations

import pytest

from playhead.errors import ConfigError, FitError
from playhead.fit.probing.budget import RESERVE, budget_of, total_of
from playhead.fit.probing.messages import Device, Neighbour
from playhead.fit.probing.options import ProbeOptions

GIB = 1 << 30


def card(free=79.5, neighbours=()):
    return Device(name="A card", total=80 * GIB, free=int(free * GIB), neighbours=neighbours)


def test_a_card_of_ones_own_gives_the_share():
    assert budget_of(card(), ProbeOptions(fraction=0.5)) == (40 * GIB, ())


def test_a_shared_card_gives_what_is_free_less_a_reserve_and_says_who_has_the_rest():
    others = (Neighbour(pid=7, name="python", held=20 * GIB), Neighbour(pid=8, name="x", held=None))
    budget, notes = budget_of(card(59.5, others), ProbeOptions(fraction=0.9))
    assert budget == 59.5 * GIB - RESERVE
    assert notes[0] == "another process holds 20.0 GiB of cuda: python (7)"
    assert notes[1] == "another process holds memory of cuda: x (8)"
    assert "59.5 GiB of cuda are free" in notes[2]
    assert "the budget is 58.5 GiB, not 72.0 GiB" in notes[2]


def test_a_small_share_of_a_shared_card_is_given_and_others_are_named_all_the_same():
    others = (Neighbour(pid=7, name="python", held=20 * GIB),)
    budget, notes = budget_of(card(59.5, others), ProbeOptions(fraction=0.5))
    assert budget == 40 * GIB
    assert len(notes) == 1


def test_a_full_card_is_refused():
    others = (Neighbour(pid=7, name="python", held=79 * GIB),)
    with pytest.raises(FitError, match=r"No memory is left.*python \(7\).*another card"):
        budget_of(card(RESERVE / GIB, others), ProbeOptions())


def test_less_than_a_card_has_may_be_asked_for_and_more_is_not_there():
    assert total_of(card(), ProbeOptions(memory=24 * GIB)) == 24 * GIB
    assert total_of(card(), ProbeOptions(memory=200 * GIB)) == 80 * GIB


def test_a_cpu_has_what_people_say():
    options = ProbeOptions(device="cpu", memory=2 * GIB, fraction=0.5)
    assert budget_of(Device(name="x86_64"), options) == (GIB, ())
    with pytest.raises(ConfigError, match="--memory 2GiB"):
        ProbeOptions(device="cpu")


@pytest.mark.parametrize("device", ["gpu", "cuda:", "cuda:x", "mps", "cpu:0", ""])
def test_other_devices_are_refused(device):
    with pytest.raises(ConfigError, match="Choose cuda"):
        ProbeOptions(device=device, memory=GIB)
