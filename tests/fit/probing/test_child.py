"""What a probe does, in this very process."""

from __future__ import annotations

import mmap
from unittest.mock import Mock

import pytest
import torch

from playhead.errors import ConfigError
from playhead.fit.bucket import Bucket, LengthRule
from playhead.fit.models import open_model
from playhead.fit.probing.child import describe, run
from playhead.fit.probing.messages import Device, Task
from playhead.fit.training import Training
from support.small_models import small

TRAINING = Training(dtype="float32")
BUCKETS = tuple(Bucket(bound=n, input_length=n, output_length=n) for n in (10, 100))


@pytest.fixture
def model():
    return open_model(small("Small"), "cpu", TRAINING)


@pytest.fixture
def memory():
    """Memory in which nothing goes wrong, and in which every step takes what it is told."""
    memory = Mock()
    memory.limit.return_value = None
    memory.peaks.return_value = (5, 7)
    return memory


@pytest.fixture
def done():
    with mmap.mmap(-1, 8) as done:
        yield done


def task(*order):
    return Task(buckets=BUCKETS, sizes=(3, 2), order=order, budget=99, seconds=1.0, title="a probe")


def test_the_memory_is_limited_before_anything_is_placed_in_it(model, memory, done):
    assert run(model, TRAINING, memory, task(1, 1, 1), done).status == "ok"
    step = ["begin_step", "wait", "peaks"]
    assert [call[0] for call in memory.mock_calls] == ["limit", "place", *step * 3]
    memory.limit.assert_called_once_with(99)
    memory.place.assert_called_once_with(model.module)
    assert int.from_bytes(done[:8], "little") == 3


def test_each_bucket_has_the_most_of_its_steps_and_all_have_the_most_that_was_held(
    model, memory, done
):
    memory.peaks.side_effect = [(1, 10), (5, 6), (4, 20), (3, 9)]
    answer = run(model, TRAINING, memory, task(0, 1, 0, 1), done)
    assert answer.allocated == (4, 5)
    assert answer.reserved == 20


def test_nothing_is_tried_in_memory_that_others_hold(model, memory, done):
    memory.limit.return_value = "another process has come"
    answer = run(model, TRAINING, memory, task(0), done)
    assert (answer.status, answer.reason) == ("busy", "another process has come")
    memory.place.assert_not_called()


def test_weights_that_do_not_fit_run_out(model, memory, done):
    memory.place.side_effect = torch.OutOfMemoryError("CUDA out of memory.")
    answer = run(model, TRAINING, memory, task(0), done)
    assert answer.status == "oom"
    assert answer.reserved == 0


def test_what_a_card_tells_late_counts_for_the_step_in_which_it_was_asked(model, memory, done):
    memory.wait.side_effect = [None, None, RuntimeError("CUDA error: out of memory")]
    answer = run(model, TRAINING, memory, task(0, 0, 1), done)
    assert answer.status == "oom"
    # The step that failed held less than it would have: nobody knows what its bucket needs.
    assert (answer.allocated, answer.reserved) == ((5, 0), 7)
    assert int.from_bytes(done[:8], "little") == 2


def test_a_model_that_is_trained_in_no_such_dtype_is_refused(model, memory, done):
    answer = run(model, Training(dtype="float8"), memory, task(0), done)
    assert answer.refusal is not None
    assert isinstance(answer.refusal.error(), ConfigError)


def test_a_card_is_looked_at_before_a_model_may_be_on_it(model, memory):
    memory.device.return_value = Device(name="A card")
    opening = Mock(return_value=model)
    memory.attach_mock(opening, "opening")
    facts = describe(memory, opening).facts
    assert [call[0] for call in memory.mock_calls] == ["device", "opening"]
    assert facts is not None
    assert facts.device.name == "A card"
    assert facts.model == "support.small_models:Small"
    assert facts.rule == LengthRule(input_rate=None)
    nothing_opened = describe(memory, None).facts
    assert nothing_opened is not None
    assert nothing_opened.model == ""
