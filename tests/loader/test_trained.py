"""States that go as far as training, where a framework fetches batches ahead of it."""

from __future__ import annotations

import dataclasses
import itertools
import warnings
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.errors import PositionError
from support.column_loader import loader


def state_of(one):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return one.state_dict()


def train(one, batches, ahead, trained):
    """Train on so many batches of one iterator, which is asked for `ahead` more than that."""
    iterator = iter(one)
    queue = list(islice(iterator, ahead))
    for _ in range(batches):
        queue += islice(iterator, 1)
        if not queue:
            return
        trained.append(queue.pop(0))
        one.mark_trained()


@pytest.mark.parametrize("ahead", [0, 1, 3, 40])
@pytest.mark.parametrize("batches", [0, 1, 5, 6, 30, 61])
def test_a_state_is_where_a_loader_would_stand_that_fetches_nothing_ahead(ahead, batches):
    plain, followed = loader(), loader()
    list(islice(iter(plain), batches))
    followed.follow_training()
    trained = []
    train(followed, batches, ahead, trained)
    assert len(trained) == batches
    assert state_of(followed) == state_of(plain)
    assert followed.batches_into_step == batches % 6
    assert followed.batches_ahead == ahead


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 25), st.integers(0, 8)), max_size=6), st.booleans())
def test_what_is_trained_is_what_one_iterator_gives(parts, restart):
    """However often an endless loader is iterated anew, with batches of the last time ahead."""
    followed = loader()
    followed.follow_training()
    trained = []
    for batches, ahead in parts:
        whole = batches // 6 * 6
        train(followed, whole, ahead, trained)
        if restart:
            state = state_of(followed)
            followed = loader()
            followed.follow_training()
            followed.load_state_dict(state)
    assert trained == list(islice(iter(loader()), len(trained)))


@pytest.mark.parametrize("ahead", [0, 1, 7])
def test_a_pass_may_begin_before_the_last_batches_of_the_one_before_are_trained_on(ahead):
    plain, states = loader(finite=True), []
    for _ in range(3):
        states.extend(state_of(plain) for _ in plain)
    followed, seen = loader(finite=True), []
    followed.follow_training()
    batches = itertools.chain.from_iterable(itertools.repeat(followed, 3))
    queue = list(islice(batches, ahead))
    for batch in batches:
        queue.append(batch)
        queue.pop(0)
        followed.mark_trained()
        seen.append(state_of(followed))
    assert seen == states[: len(states) - ahead]


def test_a_pass_that_is_left_in_the_middle_leaves_its_batches():
    followed = loader(finite=True)
    followed.follow_training()
    list(islice(iter(followed), 9))
    followed.mark_trained(6)
    second = next(iter(followed))
    assert followed.batches_ahead == 1
    followed.mark_trained()
    expected = loader(finite=True)
    expected.set_epoch(1)
    assert second == {**next(iter(expected)), "step": 1}


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(0, 30), st.booleans()), max_size=4),
)
def test_passes_that_are_left_are_left_where_training_stands(passes):
    """However much of them was handed out, to their very end; by a new iterator or in words."""
    plain, followed = loader(finite=True), loader(finite=True)
    followed.follow_training()
    for steps, ahead, in_words in passes:
        list(islice(iter(plain), 6 * steps))
        handed = len(list(islice(iter(followed), 6 * steps + ahead)))
        followed.mark_trained(min(6 * steps, handed))
        if in_words or followed.pass_ended:
            plain.leave_pass()
            followed.leave_pass()
        else:
            iter(plain)
            iter(followed)
        assert followed.batches_ahead == 0
        assert followed.state_dict() == plain.state_dict()
        assert followed.course.step == plain.course.step
        assert len(followed) == len(plain)


def test_a_pass_that_is_chosen_after_another_was_begun_keeps_what_is_still_trained_on():
    followed = loader(finite=True)
    followed.follow_training()
    batches = len(list(followed))
    followed.mark_trained(batches - 2)
    iter(followed)
    followed.set_epoch(1)
    iter(followed)
    assert followed.batches_ahead == 2
    followed.mark_trained(2)
    assert followed.course.step == batches // 6


def test_a_second_iterator_in_the_middle_of_a_step_goes_back_to_its_start():
    followed = loader()
    followed.follow_training()
    history = list(islice(iter(followed), 9))
    followed.mark_trained(8)
    again = list(islice(iter(followed), 3))
    assert again == history[6:]
    assert followed.batches_ahead == 3
    assert followed.batches_into_step == 0
    followed.mark_trained(2)
    assert followed.batches_into_step == 2


def test_options_do_not_change_under_batches_that_are_ahead_of_training():
    followed = loader()
    followed.follow_training()
    list(islice(iter(followed), 12))
    followed.mark_trained(6)
    batching = dataclasses.replace(followed.planning.batching, batch_duration_us=20_000_000)
    planning = dataclasses.replace(followed.planning, batching=batching)
    before = followed.state_dict()
    with pytest.raises(PositionError, match="while 6 that were handed out are not trained on"):
        followed.rebatch(planning)
    assert followed.state_dict() == before
    followed.mark_trained(6)
    with pytest.warns(UserWarning, match="the batching changed"):
        followed.rebatch(planning)
    assert followed.state_dict()["step"] == followed.course.step == 2


def test_loading_forgets_what_is_ahead():
    followed = loader()
    followed.follow_training()
    iterator = iter(followed)
    history = list(islice(iterator, 12))
    followed.mark_trained(6)
    followed.load_state_dict(followed.state_dict())
    assert followed.batches_ahead == 0
    assert next(iterator) == history[6]
    assert followed.batches_ahead == 1
    with pytest.raises(PositionError, match="2 more batches are said to be trained on, and 1"):
        followed.mark_trained(2)


def test_following_may_begin_in_the_middle():
    followed = loader()
    iterator = iter(followed)
    list(islice(iterator, 6))
    before = followed.state_dict()
    followed.follow_training()
    list(islice(iterator, 6))
    assert followed.state_dict() == before
    followed.mark_trained(6)
    assert followed.state_dict()["step"] == before["step"] + 1
    assert followed.follows_training


def test_nobody_marks_without_following():
    with pytest.raises(PositionError, match="nobody follows training"):
        loader().mark_trained()


def test_a_pass_of_which_nobody_took_a_batch_is_the_next_one_still():
    """Frameworks try whether a loader can be iterated at all."""
    plain, tried = loader(finite=True), loader(finite=True)
    for _ in range(2):
        iter(tried)
        iter(tried)
        assert list(tried) == list(plain)
    iter(tried)
    tried.set_epoch(0)
    assert next(iter(tried)) == {**next(iter(loader(finite=True))), "step": 2 * len(plain) // 6}


def test_a_state_that_was_loaded_survives_that_somebody_tries_to_iterate():
    first = loader(finite=True)
    batches = list(first)
    list(islice(iter(first), 6))
    resumed = loader(finite=True)
    resumed.load_state_dict(first.state_dict())
    iter(resumed)
    assert len(resumed) == len(batches) - 6
    assert len(list(resumed)) == len(batches) - 6


@pytest.mark.parametrize("follow", [False, True])
@pytest.mark.parametrize("taken", [6, 9])
def test_a_pass_that_is_left_is_followed_by_the_next_at_once(follow, taken):
    left, expected = loader(finite=True), loader(finite=True)
    if follow:
        left.follow_training()
    iterator = iter(left)
    list(islice(iterator, taken))
    if follow:
        left.mark_trained(6)
    left.leave_pass()
    left.leave_pass()
    expected.set_epoch(1)
    state = left.state_dict()
    assert state["step"] == 1
    resumed = loader(finite=True)
    resumed.load_state_dict(state)
    second = list(expected)
    assert len(left) == len(resumed) == len(second)
    for one in (resumed, left):
        assert [batch["rows"] for batch in one] == [batch["rows"] for batch in second]


def test_there_is_nothing_to_leave_between_passes_and_where_nothing_ends():
    finite, endless = loader(finite=True), loader()
    finite.leave_pass()
    list(finite)
    before = finite.state_dict()
    finite.leave_pass()
    assert finite.state_dict() == before
    list(islice(iter(endless), 6))
    before = endless.state_dict()
    endless.leave_pass()
    assert endless.state_dict() == before


@pytest.mark.parametrize("package", ["lightning.pytorch", "pytorch_lightning"])
def test_lightning_gets_no_state_that_nobody_follows(package):
    """As its own loop asks for it."""
    ask = eval("lambda one: one.state_dict()", {"__name__": f"{package}.utilities.combined_loader"})
    one = loader()
    one.state_dict()
    line = f"from playhead.integrations.{package.partition('.')[0]} import PlayheadCallback"
    with pytest.raises(PositionError, match=line):
        ask(one)
    one.follow_training()
    assert ask(one) == one.state_dict()


def test_batches_are_not_taken_back():
    followed = loader()
    followed.follow_training()
    next(iter(followed))
    with pytest.raises(PositionError, match="-1 more batches are said to be trained on"):
        followed.mark_trained(-1)
