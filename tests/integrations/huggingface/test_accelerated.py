"""A loop with accelerate trains on what a loader gives, and goes on where its state stands."""

from __future__ import annotations

import itertools

import pytest
import torch
from accelerate import Accelerator, skip_first_batches
from accelerate.state import AcceleratorState, GradientState, PartialState

from playhead import ConfigError, PositionError, TopologyError
from playhead.inspect.inspecting import inspect_checkpoint
from playhead.integrations.huggingface import prepare_loader
from support.small_whisper import digest_of, small_whisper


@pytest.fixture(autouse=True)
def fresh_state():
    """Accelerators of one process share what the first of them was told."""

    def reset():
        for state in (AcceleratorState, GradientState, PartialState):
            state._reset_state()

    reset()
    yield
    reset()


@pytest.fixture
def train():
    """Trains for some steps, and returns the digests of the batches of each."""

    def train(loader, *, steps, accumulation=2, load=None, save=None):
        GradientState._reset_state()
        accelerator = Accelerator(cpu=True, gradient_accumulation_steps=accumulation)
        model = small_whisper(0.2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model, optimizer, whole = accelerator.prepare(model, optimizer, loader)
        assert whole is loader
        batches = prepare_loader(accelerator, loader)
        if load is not None:
            accelerator.load_state(str(load))
        seen = [[]]
        for batch in batches:
            seen[-1].append(digest_of(batch))
            with accelerator.accumulate(model):
                inputs = {name: batch[name] for name in ("input_features", "labels")}
                accelerator.backward(model(**inputs).loss)
                optimizer.step()
                optimizer.zero_grad()
            if not accelerator.sync_gradients:
                continue
            if save is not None and len(seen) == save[0]:
                accelerator.save_state(str(save[1]))
            if len(seen) == steps:
                break
            seen.append([])
        return seen, accelerator.unwrap_model(model).state_dict()

    return train


def steps_of(loader, count, size):
    digests = [digest_of(batch) for batch in itertools.islice(iter(loader), count * size)]
    return [digests[start : start + size] for start in range(0, len(digests), size)]


def test_a_state_carries_the_position_and_the_weights_become_the_same(make_loader, train, tmp_path):
    whole, weights = train(make_loader(), steps=6, save=(3, tmp_path / "state"))
    assert whole == steps_of(make_loader(), 6, 2)
    assert inspect_checkpoint(tmp_path / "state").overall.step == 3
    resumed, again = train(make_loader(), steps=3, load=tmp_path / "state")
    assert resumed == whole[3:]
    assert all(torch.equal(weights[name], again[name]) for name in weights)


def test_steps_are_whole_after_a_resume_that_accumulates_more(make_loader, train, tmp_path):
    # The Accelerator has counted 3 batches, and 4 make a step from then on.
    train(
        make_loader(micro_batches_per_step=3),
        steps=1,
        accumulation=3,
        save=(1, tmp_path / "state"),
    )
    with pytest.warns(UserWarning, match="the batching changed"):
        resumed, _ = train(
            make_loader(micro_batches_per_step=4), steps=2, accumulation=4, load=tmp_path / "state"
        )
    assert [len(step) for step in resumed] == [4, 4]


def test_a_state_that_is_loaded_while_batches_are_iterated_begins_a_step(make_loader, tmp_path):
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    model = accelerator.prepare(torch.nn.Linear(1, 1))
    batches = iter(prepare_loader(accelerator, make_loader()))

    def train(count):
        syncs, seen = [], []
        for _ in range(count):
            seen.append(digest_of(next(batches)))
            with accelerator.accumulate(model):
                syncs.append(accelerator.sync_gradients)
        return syncs, seen

    _, before = train(3)
    with pytest.warns(UserWarning, match="inside a step"):
        accelerator.save_state(str(tmp_path))
    train(2)
    accelerator.load_state(str(tmp_path))
    syncs, seen = train(4)
    assert syncs == [False, True, False, True]
    assert seen[0] == before[2]


def test_a_finite_loader_makes_a_pass_of_whole_steps_each_time(make_loader):
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    model = accelerator.prepare(torch.nn.Linear(1, 1))
    loader = make_loader(force_finite=True)
    batches = prepare_loader(accelerator, loader)
    for _ in range(2):
        length = len(batches)
        syncs = []
        for _ in batches:
            with accelerator.accumulate(model):
                syncs.append(accelerator.sync_gradients)
        assert syncs == [False, True] * (length // 2)


def test_tensors_are_on_the_device_and_all_else_stays(make_loader):
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    batches = prepare_loader(accelerator, make_loader(info=True))
    accelerator.state.device = torch.device("meta")
    batch = next(iter(batches))
    assert batch["labels"].device == batch["input_features"].device == torch.device("meta")
    assert isinstance(batch["texts"][0], str)
    assert batch["playhead"].step == 0


def test_a_step_of_another_size_is_refused_with_what_to_set(make_loader):
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=3)
    batches = prepare_loader(accelerator, make_loader())
    with pytest.raises(ConfigError, match="gradient_accumulation_steps=2, or the loader micro"):
        next(iter(batches))


def test_a_loader_of_other_processes_is_refused(make_loader):
    loader = make_loader(places={"rank": 1, "world_size": 2})
    with pytest.raises(TopologyError, match="among 2 processes, and 1 train") as raised:
        prepare_loader(Accelerator(cpu=True), loader)
    assert "give cpu=True to the Accelerator" in str(raised.value)


def test_skipping_batches_is_refused(make_loader):
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    batches = prepare_loader(accelerator, make_loader())
    with pytest.raises(PositionError, match="without skip_first_batches"):
        skip_first_batches(batches, 4)
    with pytest.raises(PositionError, match="this process's share"):
        accelerator.prepare_data_loader(batches)
    assert accelerator.prepare(batches) is batches
