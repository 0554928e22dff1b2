"""A card, whose functions of torch.cuda are replaced."""

from __future__ import annotations

import os
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
import torch

from playhead.errors import ConfigError
from playhead.fit.probing import cuda_memory
from playhead.fit.probing.cuda_memory import CudaMemory
from playhead.fit.probing.messages import Neighbour

GIB = 1 << 30
OTHER = 2**31 - 1  # no process has such a number
CARD = torch.device("cuda", 1)


@pytest.fixture
def card(monkeypatch):
    """Two cards; what was called is kept in the order in which it was."""
    calls = Mock()
    calls.mem_get_info.return_value = (70 * GIB, 80 * GIB)
    calls.max_memory_allocated.return_value = 11
    calls.max_memory_reserved.return_value = 22
    calls.get_device_properties.return_value = SimpleNamespace(name="A card", uuid="abc")
    for name in (
        "set_device",
        "init",
        "mem_get_info",
        "get_device_properties",
        "set_per_process_memory_fraction",
        "reset_peak_memory_stats",
        "synchronize",
        "max_memory_allocated",
        "max_memory_reserved",
    ):
        monkeypatch.setattr(torch.cuda, name, getattr(calls, name))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.version, "cuda", "12.8")
    for name in ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"):
        monkeypatch.delenv(name, raising=False)
    calls.neighbours.return_value = tuple(
        Neighbour(pid=pid, name="python", held=GIB) for pid in (OTHER, os.getpid(), os.getppid())
    )
    monkeypatch.setattr(cuda_memory, "neighbours", calls.neighbours)
    monkeypatch.setattr(cuda_memory, "driver_version", lambda: "570.86")
    monkeypatch.setattr(cuda_memory, "_TICK_SECONDS", 0.0)
    return calls


def names(calls):
    return [call[0] for call in calls.mock_calls]


def test_the_card_is_described_and_others_but_not_oneself_before_it_is_used(card):
    device = CudaMemory("cuda:1").device()
    assert (device.name, device.total, device.free) == ("A card", 80 * GIB, 70 * GIB)
    assert device.versions["cuda"] == "12.8"
    assert device.versions["driver"] == "570.86"
    assert device.versions["torch"] == torch.__version__
    assert [other.pid for other in device.neighbours] == [OTHER]
    card.neighbours.assert_called_once_with("GPU-abc")
    called = names(card)
    assert called.index("neighbours") < called.index("init") < called.index("mem_get_info")


def test_settings_of_the_allocator_are_among_what_peaks_depend_on(card, monkeypatch):
    assert "allocator" not in CudaMemory("cuda:1").device().versions
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")
    versions = CudaMemory("cuda:1").device().versions
    assert versions["allocator"] == "expandable_segments:True"


def test_the_allocator_is_capped_at_the_budget(card):
    assert CudaMemory("cuda:1").limit(20 * GIB) is None
    card.set_per_process_memory_fraction.assert_called_once_with(0.25, CARD)
    assert names(card).index("mem_get_info") < names(card).index("set_per_process_memory_fraction")


def test_memory_that_comes_back_late_is_waited_for(card):
    card.mem_get_info.side_effect = [(GIB, 80 * GIB), (GIB, 80 * GIB), (70 * GIB, 80 * GIB)]
    assert CudaMemory("cuda:1").limit(20 * GIB) is None
    assert card.mem_get_info.call_count == 3


def test_memory_that_others_have_taken_is_not_blamed_on_the_model(card, monkeypatch):
    monkeypatch.setattr(cuda_memory, "_WAIT_SECONDS", 0.05)
    card.mem_get_info.return_value = (10 * GIB, 80 * GIB)
    said = CudaMemory("cuda:1").limit(20 * GIB)
    assert said is not None
    assert "10.0 GiB of cuda:1 are free, and 20.0 were" in said
    card.set_per_process_memory_fraction.assert_not_called()


def test_each_step_has_peaks_of_its_own_that_are_read_once_the_card_is_done(card):
    memory = CudaMemory("cuda")
    memory.begin_step()
    memory.wait()
    assert memory.peaks() == (11, 22)
    assert names(card) == [
        "reset_peak_memory_stats",
        "synchronize",
        "max_memory_allocated",
        "max_memory_reserved",
    ]
    assert {call.args for call in card.mock_calls} == {(torch.device("cuda", 0),)}


def test_weights_go_to_the_card(card):
    module = Mock()
    CudaMemory("cuda:1").place(module)
    module.to.assert_called_once_with(CARD)


def test_a_card_that_is_not_there_is_refused_in_one_line(card):
    with pytest.raises(ConfigError, match=r"no cuda:2 here: the last card is cuda:1.*--device"):
        CudaMemory("cuda:2")


def test_a_machine_without_a_card_is_told_of_the_estimate():
    if torch.cuda.is_available():
        pytest.skip("this one has a card")
    with pytest.raises(ConfigError, match=r"There is no cuda here: .*--device fake --memory 80GiB"):
        CudaMemory("cuda")
