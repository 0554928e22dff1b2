"""Optimizers: by name, and all that configure_optimizers may return."""

from __future__ import annotations

from typing import NamedTuple

import pytest
import torch
from torch import nn

from playhead.errors import ConfigError
from playhead.fit.models.moving import moved
from playhead.fit.models.optimizers import SeveralOptimizers, named_optimizer, optimizer_of


def weights_of(optimizer):
    return [weight for group in optimizer.param_groups for weight in group["params"]]


def test_frozen_weights_are_left_to_themselves():
    module = nn.Linear(2, 2)
    module.bias.requires_grad_(False)
    optimizer = named_optimizer(module, "AdamW")
    assert isinstance(optimizer, torch.optim.AdamW)
    assert weights_of(optimizer) == [module.weight]


@pytest.mark.parametrize("name", ["lbfgs", "sparseadam", "muon", "optimizer", "lion", ""])
def test_names_of_none_are_refused_with_those_there_are(name):
    with pytest.raises(ConfigError, match=r"Choose one of .*adamw, asgd"):
        named_optimizer(nn.Linear(1, 1), name)


@pytest.mark.parametrize("name", ["adafactor", "adam", "adamw", "rprop", "sgd"])
def test_an_optimizer_by_name_steps(name):
    module = nn.Linear(2, 2)
    optimizer = named_optimizer(module, name)
    module(torch.ones(1, 2)).sum().backward()
    optimizer.step()


def forms():
    first, second = (torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=1.0) for _ in range(2))
    schedule = torch.optim.lr_scheduler.StepLR(first, 1)
    with_schedule = {"optimizer": first, "lr_scheduler": {"scheduler": schedule}}
    return [
        (None, []),
        ([], []),
        (first, [first]),
        ([first], [first]),
        ((first,), [first]),
        ((first, second), [first, second]),
        (with_schedule, [first]),
        ([with_schedule, {"optimizer": second}], [first, second]),
        (([first], [schedule]), [first]),
        (([first, second], [schedule]), [first, second]),
        ([[first], []], [first]),
    ]


@pytest.mark.parametrize(("returned", "expected"), forms())
def test_every_form_that_lightning_takes_is_taken(returned, expected):
    found = optimizer_of(returned, "it")
    if not expected:
        assert found is None
    elif len(expected) == 1:
        assert found is expected[0]
    else:
        assert isinstance(found, SeveralOptimizers)
        assert list(found.optimizers) == expected


@pytest.mark.parametrize("returned", [3, "adamw", {"lr_scheduler": None}, [None, 3]])
def test_what_is_no_optimizer_is_told(returned):
    with pytest.raises(ConfigError, match=r"configure_optimizers of it returned .* no optimizer"):
        optimizer_of(returned, "it")


def test_several_optimizers_step_and_forget_together():
    first, second = nn.Linear(1, 1), nn.Linear(1, 1)
    both = SeveralOptimizers(
        [
            torch.optim.SGD(first.parameters(), lr=1.0),
            torch.optim.AdamW(second.parameters(), lr=1.0),
        ]
    )
    before = [first.weight.item(), second.weight.item()]
    second(first(torch.ones(1, 1))).sum().backward()
    both.step()
    assert first.weight.item() != before[0]
    assert second.weight.item() != before[1]
    assert len(both.param_groups) == 2
    assert both.optimizers[1].state.keys() == set(second.parameters())
    both.zero_grad()
    assert all(weight.grad is None for weight in weights_of(both))


class Pair(NamedTuple):
    audio: torch.Tensor
    name: str


def test_batches_of_any_form_go_to_a_device():
    ones = torch.ones(1)
    batch = {"pair": Pair(ones, "a"), "list": [ones, (ones, 3)], "none": None}
    there = moved(batch, torch.device("meta"))
    assert there["pair"].audio.device.type == "meta"
    assert there["pair"].name == "a"
    assert there["list"][1][0].device.type == "meta"
    assert there["list"][1][1] == 3
    assert there["none"] is None
    assert ones.device.type == "cpu"
    assert batch["pair"].audio is ones
