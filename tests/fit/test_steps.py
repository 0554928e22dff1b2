"""Steps of training: what is held when, and weights that made-up batches cannot spoil."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from playhead.errors import ConfigError, FitError
from playhead.fit.bucket import Bucket
from playhead.fit.live_tensors import LiveTensors, rounded
from playhead.fit.steps import prepare, train_step
from playhead.fit.training import Training
from support.fit_models import Small, two_layers

BUCKET = Bucket(bound=1.0, input_length=20, output_length=3)
PLAIN = Training(dtype="float32", ddp=False)


def copies(module):
    return [weight.detach().clone() for weight in module.parameters()]


def test_a_step_makes_each_micro_batch_and_leaves_no_gradients():
    model = two_layers()
    prepared = prepare(model, Training(dtype="float32", ddp=False, accumulate=3))
    train_step(prepared, BUCKET, 7)
    assert model.batches == [(7, 20, 3)] * 3
    assert all(weight.grad is None for weight in model.module.parameters())
    assert len(prepared.optimizer.state) == 4


@pytest.mark.parametrize("accumulate", [1, 2])
def test_gradients_are_there_in_the_next_forward_where_lightning_trains(accumulate):
    seen = []

    class Looking(Small):
        def loss(self, batch):
            seen.append(sum(weight.grad is not None for weight in self.module.parameters()))
            return super().loss(batch)

    for keeps in (False, True):
        model = Looking(nn.Linear(16, 16), keeps_gradients=keeps)
        prepared = prepare(model, Training(dtype="float32", ddp=False, accumulate=accumulate))
        for _ in range(2):
            train_step(prepared, BUCKET, 2)
    within = [2] * (accumulate - 1)
    assert seen == [0, *within, 0, *within, 0, *within, 2, *within]


def test_gradients_of_an_earlier_step_do_not_add_up():
    for keeps in (False, True):
        torch.manual_seed(0)
        grads = []

        class Ones(Small):
            def make_batch(self, batch_size, input_length, output_length):
                return torch.ones(batch_size, input_length, self.width)

            def optimizer(self, name):
                weights = list(self.module.parameters())

                class Looking(torch.optim.SGD):
                    def step(self, closure=None):
                        grads.append(weights[0].grad.clone())  # noqa: B023

                return Looking(weights, lr=0.1)

        prepared = prepare(Ones(nn.Linear(16, 16), keeps_gradients=keeps), PLAIN)
        for _ in range(2):
            train_step(prepared, BUCKET, 2)
        assert torch.equal(grads[0], grads[1])


@pytest.mark.parametrize("name", ["sgd", "adamw"])
def test_weights_stay_as_they_are(name):
    model = two_layers()
    before = copies(model.module)
    prepared = prepare(model, Training(optimizer=name, dtype="float32", ddp=False))
    for _ in range(3):
        train_step(prepared, BUCKET, 2)
    assert all(map(torch.equal, before, copies(model.module)))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_loss_that_is_no_number_spoils_neither_weights_nor_states(value):
    class Broken(Small):
        def loss(self, batch):
            return super().loss(batch) * value

    model = Broken(nn.Linear(16, 16))
    before = copies(model.module)
    prepared = prepare(model, Training(dtype="float32", ema=True))
    train_step(prepared, BUCKET, 2)
    held = [t for state in prepared.optimizer.state.values() for t in state.values()]
    assert len(held) == 6
    assert all(tensor.isfinite().all() for tensor in [*held, *prepared.averages])
    assert all(map(torch.equal, before, copies(model.module)))


def test_sparse_gradients_are_made_finite_too():
    class Table(Small):
        def make_batch(self, batch_size, input_length, output_length):
            return torch.zeros(batch_size, input_length, dtype=torch.long)

        def loss(self, batch):
            return super().loss(batch) * float("nan")

    model = Table(nn.Embedding(10, 16, sparse=True))
    train_step(prepare(model, Training(optimizer="sgd", dtype="float32")), BUCKET, 2)
    assert model.module.weight.isfinite().all()


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_layers_compute_in_the_dtype_of_the_training(dtype):
    seen = []
    model = two_layers()
    model.module[0].register_forward_hook(lambda *told: seen.append(told[2].dtype))
    train_step(prepare(model, Training(dtype=dtype)), BUCKET, 2)
    assert seen == [getattr(torch, dtype)]
    assert {weight.dtype for weight in model.module.parameters()} == {torch.float32}


def test_another_dtype_is_an_error_that_names_those_there_are():
    with pytest.raises(ConfigError, match=r"trained in int8\. Choose one of float32, float16"):
        prepare(two_layers(), Training(dtype="int8"))


def test_a_model_of_which_nothing_is_trained_is_an_error():
    model = two_layers()
    model.module.requires_grad_(requires_grad=False)
    with pytest.raises(FitError, match="Nothing in small is trained"):
        prepare(model, PLAIN)


def test_a_loss_without_a_gradient_is_an_error():
    class Detached(Small):
        def loss(self, batch):
            return super().loss(batch).detach()

    with pytest.raises(FitError, match="The loss of small depends on no weight"):
        train_step(prepare(Detached(nn.Linear(16, 16)), PLAIN), BUCKET, 1)


def test_a_model_in_evaluation_mode_is_put_into_training_mode():
    model = two_layers()
    model.module.eval()
    prepare(model, PLAIN)
    assert all(part.training for part in model.module.modules())


def test_a_frozen_part_in_evaluation_mode_of_a_model_that_trains_stays_so():
    model = two_layers()
    model.module[0].eval()
    prepare(model, PLAIN)
    assert [part.training for part in model.module] == [False, True, True]


def test_ddp_holds_room_for_each_gradient_of_what_is_trained():
    module = nn.Sequential(nn.Linear(16, 16), nn.Linear(16, 16, dtype=torch.bfloat16))
    module[0].bias.requires_grad = False
    buckets = prepare(Small(module), Training(dtype="float32")).buckets
    held = {bucket.dtype: bucket.nbytes for bucket in buckets}
    assert held == {torch.float32: 16 * 16 * 4, torch.bfloat16: (16 * 16 + 16) * 2}
    assert prepare(Small(module), PLAIN).buckets == ()


def test_buckets_of_ddp_are_about_as_large_as_its_own():
    module = nn.Sequential(*(nn.Linear(1024, 1024, bias=False) for _ in range(20)))
    buckets = prepare(Small(module), Training(dtype="float32")).buckets
    # Weights of 4 MiB: the first bucket is full with one of them, the others with seven.
    assert [bucket.nbytes // 2**22 for bucket in buckets] == [1, 7, 7, 5]


def test_an_average_is_a_copy_in_float32_of_all_weights_and_follows_them():
    module = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4, dtype=torch.bfloat16))
    module[0].requires_grad_(requires_grad=False)

    class Mixed(Small):
        def loss(self, batch):
            return module[1](module[0](batch).bfloat16()).sum()

    prepared = prepare(Mixed(module, width=4), Training(dtype="float32", ema=True, ddp=False))
    assert [average.dtype for average in prepared.averages] == [torch.float32] * 4
    before = [weight.detach().float().clone() for weight in module.parameters()]
    with torch.no_grad():
        for weight in module.parameters():
            weight.mul_(2)
    train_step(prepared, BUCKET, 2)
    for average, was in zip(prepared.averages, before, strict=True):
        torch.testing.assert_close(average, was * 1.001)


@pytest.mark.parametrize("name", ["sgd", "adamw"])
def test_the_state_of_an_optimizer_is_there_after_the_first_step(name):
    model = two_layers()
    with LiveTensors() as tensors:
        tensors.watch(model.module.parameters())
        weights = tensors.live
        prepared = prepare(model, Training(optimizer=name, dtype="float32", ddp=False))
        assert tensors.live == weights
        train_step(prepared, BUCKET, 2)
        after = tensors.live
        train_step(prepared, BUCKET, 2)
    assert tensors.live == after
    sizes = [rounded(weight.nbytes) for weight in model.module.parameters()]
    # Two moments and a count of the steps.
    state = 2 * sum(sizes) + len(sizes) * rounded(4)
    assert after - weights == (state if name == "adamw" else 0)


def test_a_learning_rate_that_is_a_tensor_is_zero_too():
    class Tensors(Small):
        def optimizer(self, name):
            weights = list(self.module.parameters())
            return torch.optim.AdamW(weights, lr=torch.tensor(0.1), foreach=False)

    prepared = prepare(Tensors(nn.Linear(16, 16)), PLAIN)
    train_step(prepared, BUCKET, 1)
    assert float(prepared.optimizer.param_groups[0]["lr"]) == 0
