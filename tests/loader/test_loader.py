"""The loader over made-up columns: what iterators, states and lengths mean."""

from __future__ import annotations

import gc
import json
import warnings
import weakref
from collections import Counter
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.errors import ConfigError, PositionError, TopologyError
from playhead.loader import run
from support.column_loader import LEAVES, loader, rows_of


def take(iterable, count):
    return list(islice(iter(iterable), count))


def seen(batches):
    return Counter(
        row
        for batch in batches
        for row, again in zip(batch["rows"], batch["repeated"], strict=True)
        if not again
    )


EVERYTHING = Counter((n, row) for n, leaf_ in enumerate(LEAVES) for row in range(leaf_.num_rows))


def test_a_finite_pass_gives_every_sample_once_and_says_how_long_it_is():
    whole = loader(finite=True)
    expected = len(whole)
    batches = list(whole)
    assert len(batches) == expected
    assert seen(batches) == EVERYTHING


def test_ranks_share_every_step():
    alone = list(loader(finite=True))
    shared = [list(loader(finite=True, rank=rank, world_size=3)) for rank in range(3)]
    merged = sorted((b for part in shared for b in part), key=lambda b: (b["step"], b["slot"]))
    assert merged == alone
    assert len({len(part) for part in shared}) == 1


@settings(max_examples=25)
@given(
    steps=st.lists(st.integers(0, 3), min_size=1, max_size=4),
    sizes=st.lists(st.sampled_from([1, 2, 3, 6]), min_size=4, max_size=4),
    finite=st.booleans(),
)
def test_stopped_and_resumed_on_other_world_sizes_is_the_uninterrupted_run(steps, sizes, finite):
    whole = take(loader(finite=finite), 6 * 12)
    state, got = None, []
    for count, size in zip([*steps, 99], [*sizes, 1], strict=False):
        ranks = [loader(finite=finite, rank=rank, world_size=size) for rank in range(size)]
        if state is not None:
            for part in ranks:
                part.load_state_dict(state)
        wanted = min(count, len(whole) // 6 - len(got) // 6)
        if not wanted and got:
            continue
        parts = [take(part, wanted * part.batches_per_step) for part in ranks]
        got += sorted((b for part in parts for b in part), key=lambda b: (b["step"], b["slot"]))
        states = [json.dumps(part.state_dict()) for part in ranks]
        assert len(set(states)) == 1
        state = json.loads(states[0])
    assert got == whole


def test_an_endless_loader_goes_on_at_a_second_iter():
    straight = take(loader(), 30)
    broken = loader()
    got = take(broken, 7)
    assert got + take(broken, 23) == straight


def test_a_finite_loader_starts_its_next_pass_at_every_iter():
    twice = loader(finite=True)
    first, second = list(twice), list(twice)
    assert seen(first) == seen(second) == EVERYTHING
    assert first != second
    again = loader(finite=True)
    again.set_epoch(1)
    assert [b["rows"] for b in again] == [b["rows"] for b in second]


def test_declared_order_is_the_same_in_every_pass():
    plain = loader(finite=True, shuffle=False)
    assert [b["rows"] for b in plain] == [b["rows"] for b in plain]


def test_a_break_then_iter_is_a_whole_pass():
    broken = loader(finite=True)
    take(broken, 3)
    assert seen(list(broken)) == EVERYTHING


def test_a_second_iterator_ends_the_first():
    two = loader()
    first = iter(two)
    next(first)
    second = iter(two)
    assert next(second)["slot"] == 1
    with pytest.raises(StopIteration):
        next(first)


def test_loading_a_state_moves_a_live_iterator():
    straight = take(loader(), 24)
    live = loader()
    batches = iter(live)
    for _ in range(6):
        next(batches)
    state = live.state_dict()
    for _ in range(9):
        next(batches)
    live.load_state_dict(state)
    assert [next(batches) for _ in range(18)] == straight[6:]


@pytest.mark.parametrize("batches", [0, 3, 6, None])
def test_a_state_loaded_between_passes_is_what_the_next_iter_gives(batches):
    whole = list(loader(finite=True))
    saved = loader(finite=True)
    take(saved, 6)
    used = loader(finite=True)
    list(islice(iter(used), batches))
    used.load_state_dict(saved.state_dict())
    assert len(used) == len(whole) - 6
    assert list(used) == whole[6:]


def test_set_epoch_waits_for_a_restored_state():
    straight = list(loader(finite=True))
    saved = loader(finite=True)
    batches = iter(saved)
    for _ in range(6):
        next(batches)
    fresh = loader(finite=True)
    fresh.load_state_dict(saved.state_dict())
    fresh.set_epoch(9)
    assert len(fresh) == len(straight) - 6
    assert list(fresh) == straight[6:]
    fresh.set_epoch(1)
    assert len(list(fresh)) == len(fresh)


def test_the_skip_of_a_resumed_pass_does_not_stick():
    passes = loader(finite=True)
    expected = [list(passes) for _ in range(3)]
    saved = loader(finite=True)
    take(saved, 6)
    state = saved.state_dict()
    resumed = loader(finite=True)
    resumed.load_state_dict(state)
    got = [list(resumed) for _ in range(3)]
    assert got[0] == expected[0][6:]
    assert [[b["rows"] for b in p] for p in got[1:]] == [
        [b["rows"] for b in p] for p in expected[1:]
    ]


def test_the_length_between_passes_is_that_of_the_next():
    whole = loader(finite=True)
    full = len(whole)
    saved = loader(finite=True)
    take(saved, 6)
    resumed = loader(finite=True)
    resumed.load_state_dict(saved.state_dict())
    batches = iter(resumed)
    assert len(resumed) == full - 6
    assert len(list(batches)) == full - 6
    assert len(resumed) == len(list(resumed))


def test_a_state_of_a_finished_pass_is_the_start_of_the_next():
    passes = loader(finite=True)
    expected = [[b["rows"] for b in passes] for _ in range(2)]
    saved = loader(finite=True)
    list(saved)
    resumed = loader(finite=True)
    resumed.load_state_dict(saved.state_dict())
    assert [b["rows"] for b in resumed] == expected[1]


def test_a_state_inside_a_step_is_its_start_and_says_so():
    straight = take(loader(world_size=1), 18)
    inside = loader()
    batches = iter(inside)
    for _ in range(8):
        next(batches)
    with pytest.warns(UserWarning, match="inside a step"):
        state = inside.state_dict()
    resumed = loader()
    resumed.load_state_dict(state)
    assert take(resumed, 12) == straight[6:]


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_saving_right_after_loading_is_the_identity(steps):
    saved = loader()
    batches = iter(saved)
    for _ in range(6 * steps):
        next(batches)
    state = saved.state_dict()
    resumed = loader()
    resumed.load_state_dict(state)
    assert resumed.state_dict() == state
    iter(resumed)
    assert resumed.state_dict() == state


def test_position_after_is_what_a_state_would_have_been():
    run = loader()
    batches = iter(run)
    states = []
    for _ in range(20):
        for _ in range(6):
            next(batches)
        states.append(run.state_dict())
    for step, state in enumerate(states[-3:], 18):
        assert run.position_after(6 * step).to_json() == state
    ahead = run.position_after(6 * 40)
    resumed = loader()
    resumed.load_state_dict(ahead.to_json())
    assert take(resumed, 1)[0]["step"] == 40


def test_position_before_anything_is_an_error():
    with pytest.raises(PositionError, match="Iterate first"):
        loader().position_after(0)


def test_another_seed_is_refused_unless_asked_for():
    saved = loader(seed=3)
    take(saved, 6)
    state = saved.state_dict()
    other = loader(seed=4)
    with pytest.raises(PositionError, match="seed 3 and the config has 4"):
        other.load_state_dict(state)
    with pytest.warns(UserWarning, match="from the next window"):
        other.load_state_dict(state, reseed=True)
    assert take(other, 6) == take(loader(seed=3), 12)[6:]
    again = loader(seed=4)
    with pytest.warns(UserWarning, match="from the next window"):
        again.load_state_dict(other.state_dict())


def test_a_drawn_seed_comes_back_from_the_state():
    drawn = loader(seed="trng")
    whole = take(drawn, 12)
    state = drawn.state_dict()
    resumed = loader(seed="trng")
    resumed.load_state_dict(state)
    assert take(resumed, 6)[0]["step"] == 2
    assert whole[0]["key"] != take(loader(seed="trng"), 1)[0]["key"]


def test_ranks_that_cannot_agree_on_a_seed_do_not_save_one():
    with pytest.raises(PositionError, match="drawn when all ranks begin"):
        loader(seed="trng", world_size=2, rank=1).state_dict()


def test_the_step_of_the_state_is_kept_where_none_was_asked_for():
    saved = loader(step=6)
    take(saved, 6)
    state = saved.state_dict()
    resumed = loader(step=2, world_size=2, fixed_step=False)
    resumed.load_state_dict(state)
    assert resumed.micro_batches_per_step == 6
    assert resumed.batches_per_step == 3


def test_a_step_that_cannot_be_kept_is_a_new_one_with_a_warning():
    saved = loader(step=6, finite=True)
    first = take(saved, 6)
    ranks = [loader(step=4, rank=r, world_size=4, fixed_step=False, finite=True) for r in range(4)]
    state = saved.state_dict()
    with (
        pytest.warns(UserWarning, match="4 ranks cannot share"),
        pytest.warns(UserWarning, match="dealt out anew"),
    ):
        ranks[0].load_state_dict(state)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for other in ranks[1:]:
            other.load_state_dict(state)
    rest = [batch for part in ranks for batch in part]
    whole = list(loader(step=6, finite=True))
    assert seen(whole[:6]) + seen(rest) == EVERYTHING
    assert first == whole[:6]


def test_a_world_that_does_not_divide_the_step_is_refused():
    with pytest.raises(TopologyError, match="1, 2, 3, 6"):
        loader(step=6, world_size=4)


def test_an_endless_loader_has_no_length():
    with pytest.raises(TypeError, match="force_finite"):
        len(loader())


@pytest.mark.parametrize("state", [{}, {"epoch": 1}, [], None, "position", {"version": 99}])
def test_states_that_are_not_ours_are_refused(state):
    with pytest.raises(PositionError):
        loader().load_state_dict(state)


@pytest.mark.parametrize("workers", [1, 3])
def test_workers_do_not_enter(workers):
    parallel = loader(workers=workers)
    assert take(parallel, 30) == take(loader(), 30)
    parallel.close()


def test_windows_smaller_than_what_workers_fetch_ahead():
    tiny = loader(window_draws=5, step=1, workers=2)
    got = take(tiny, 60)
    assert got == take(loader(window_draws=5, step=1), 60)
    tiny.close()


def test_an_error_does_not_lose_its_batch():
    calls = {"left": 1}

    def fails_once(micro_batch):
        if micro_batch.step == 1 and micro_batch.slot == 2 and calls["left"]:
            calls["left"] -= 1
            raise OSError("the disk went away")
        return rows_of(micro_batch)

    flaky = loader()
    flaky._stream._fetch = fails_once
    batches = iter(flaky)
    got = [next(batches) for _ in range(8)]
    with pytest.raises(OSError, match="went away"):
        next(batches)
    got += [next(batches) for _ in range(8)]
    assert got == take(loader(), 16)


@pytest.mark.parametrize("workers", [0, 1])
def test_an_interrupt_between_taking_a_batch_and_counting_it_does_not_lose_it(workers, monkeypatch):
    interrupted = loader(workers=workers)
    batches = iter(interrupted)
    got = [next(batches) for _ in range(7)]

    def never_counted(*_, **__):
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(type(interrupted._tally), "add", never_counted)
    with pytest.raises(KeyboardInterrupt):
        next(batches)
    got += [next(batches) for _ in range(9)]
    assert got == take(loader(), 16)
    interrupted.close()


def test_waits_are_counted():
    timed = loader()
    take(timed, 9)
    assert timed.waits.batches == 9
    assert 0 < timed.waits.longest <= timed.waits.seconds
    assert 0 < timed.waits.share <= 1


@pytest.mark.parametrize("epoch", [-1, 2**40, 1.5, None, "x"])
def test_passes_that_no_state_can_hold_are_refused(epoch):
    with pytest.raises(ConfigError, match="no pass"):
        loader(finite=True).set_epoch(epoch)


def test_a_loader_that_is_dropped_ends_at_once():
    """Held by its own iterator, it would keep its workers until garbage is collected."""
    gc.disable()
    try:
        dropped = loader()
        batches = iter(dropped)
        next(batches)
        gone = weakref.ref(dropped)
        del dropped, batches
        assert gone() is None
    finally:
        gc.enable()


def test_an_epoch_may_be_an_integer_of_numpy():
    one, other = loader(finite=True), loader(finite=True)
    one.set_epoch(np.int64(2))
    other.set_epoch(2)
    assert list(one) == list(other)


def test_a_pass_is_planned_once_however_often_its_length_and_its_end_are_asked_for(monkeypatch):
    one = loader(finite=True)
    planned = []
    count_steps = run.count_steps

    def counted(position, *settings):
        planned.append(position.pass_)
        return count_steps(position, *settings)

    monkeypatch.setattr(run, "count_steps", counted)
    for _ in range(2):
        list(islice(iter(one), 3))
        assert not one.pass_ended
    assert planned == []
    assert len({len(one) for _ in range(3)}) == 1
    assert planned == [1]
