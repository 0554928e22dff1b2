"""Stopping and going on, in one process: every save point, passes, iterators, lengths."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import pytest

from support.handed_out import first, ids_of, lines, resumed, samples, take, through_json

if TYPE_CHECKING:
    from collections.abc import Callable

    import playhead

pytestmark = pytest.mark.e2e

NUM_ROWS = 103


def test_every_save_point_of_a_finite_pass(finite: Callable[..., playhead.Loader]) -> None:
    whole = lines(finite())
    assert ids_of(whole) == sorted(set(ids_of(whole)))
    assert len(set(ids_of(whole))) == NUM_ROWS
    for batches in range(0, len(whole), 2):
        loader = finite()
        prefix = take(loader, batches)
        assert prefix + lines(resumed(finite(), loader.state_dict())) == whole


def test_a_state_at_the_end_of_a_pass_is_the_start_of_the_next(
    finite: Callable[..., playhead.Loader],
) -> None:
    loader = finite()
    one, two = lines(loader), lines(loader)
    assert one != two
    loader = finite()
    iterator = iter(loader)
    assert first(iterator, len(one)) == one
    before_the_end_is_seen = loader.state_dict()
    assert next(iterator, None) is None
    after = loader.state_dict()
    assert lines(resumed(finite(), before_the_end_is_seen)) == two
    assert lines(resumed(finite(), after)) == two


def test_a_state_before_the_first_batch(finite: Callable[..., playhead.Loader]) -> None:
    whole = lines(finite())
    loader = finite()
    untouched = loader.state_dict()
    iter(loader)
    assert loader.state_dict() == untouched
    assert lines(resumed(finite(), untouched)) == whole


def test_a_state_right_after_a_load_is_the_one_loaded(
    endless: Callable[..., playhead.Loader],
) -> None:
    loader = endless()
    take(loader, 14)
    state = through_json(loader.state_dict())
    other = resumed(endless(), state)
    assert through_json(other.state_dict()) == state
    iterator = iter(other)
    assert through_json(other.state_dict()) == state
    rest = first(iterator, 20)
    again = resumed(endless(), resumed(endless(), state).state_dict())
    assert take(again, 20) == rest == take(loader, 20)


def test_three_resumes_in_one_pass_and_clean_passes_after(
    finite: Callable[..., playhead.Loader],
) -> None:
    loader = finite()
    passes = [lines(loader) for _ in range(3)]
    for interrupted in range(2):
        loader = finite()
        history: list[dict] = []
        for _ in range(interrupted):
            history += lines(loader)
        for batches in (2, 4, 2):
            history += take(loader, batches)
            loader = resumed(finite(), loader.state_dict())
        history += lines(loader)
        assert history == [line for one in passes[: interrupted + 1] for line in one]
        assert lines(loader) == passes[interrupted + 1]
        assert ids_of(passes[interrupted + 1]) == ids_of(passes[0])


def test_set_epoch_chooses_the_pass_but_not_over_a_restored_state(
    finite: Callable[..., playhead.Loader],
) -> None:
    loader = finite()
    passes = [lines(loader) for _ in range(3)]
    chosen = finite()
    chosen.set_epoch(2)
    assert samples(lines(chosen)) == samples(passes[2])
    chosen.set_epoch(0)
    assert samples(lines(chosen)) == samples(passes[0])
    loader = finite()
    loader.set_epoch(1)
    prefix = take(loader, 4)
    other = resumed(finite(), loader.state_dict())
    other.set_epoch(0)
    assert samples(prefix + lines(other)) == samples(passes[1])


def test_an_endless_loader_continues_and_a_finite_one_restarts(
    endless: Callable[..., playhead.Loader], finite: Callable[..., playhead.Loader]
) -> None:
    whole = take(endless(), 30)
    loader = endless()
    assert take(loader, 3) + take(loader, 0) + take(loader, 27) == whole
    loader = finite()
    passes = [lines(loader), lines(loader)]
    loader = finite()
    assert take(loader, 3) == passes[0][:3]
    again = lines(loader)
    assert samples(again) == samples(passes[1])
    assert again[0]["step"] == 1, "one whole step was handed out"


def test_steps_count_from_the_start_of_training(
    endless: Callable[..., playhead.Loader], finite: Callable[..., playhead.Loader]
) -> None:
    history = take(endless(), 40)
    assert [(line["step"], line["slot"]) for line in history] == [
        (step, slot) for step in range(20) for slot in range(2)
    ]
    loader = finite()
    both = lines(loader) + lines(loader)
    assert [line["step"] for line in both[::2]] == list(range(len(both) // 2))


def test_a_second_iterator_ends_the_first(endless: Callable[..., playhead.Loader]) -> None:
    whole = take(endless(), 6)
    loader = endless()
    old = iter(loader)
    assert first(old, 2) == whole[:2]
    new = iter(loader)
    assert next(old, None) is None
    assert first(new, 4) == whole[2:6]
    assert next(old, None) is None


def test_loading_moves_a_live_iterator(endless: Callable[..., playhead.Loader]) -> None:
    loader = endless()
    iterator = iter(loader)
    whole = first(iterator, 10)
    state = loader.state_dict()
    later = first(iterator, 12)
    loader.load_state_dict(state)
    assert first(iterator, 12) == later
    loader.load_state_dict(endless().state_dict())
    assert first(iterator, 10) == whole


@pytest.mark.parametrize("batches", [0, 3, 6, None])
def test_a_state_loaded_between_passes_is_what_comes_next(
    finite: Callable[..., playhead.Loader], batches: int | None
) -> None:
    whole = lines(finite())
    loader = finite()
    take(loader, 8)
    state = loader.state_dict()
    again = finite()
    lines(islice(iter(again), batches))
    again.load_state_dict(state)
    assert len(again) == len(whole) - 8
    assert through_json(again.state_dict()) == through_json(state)
    assert lines(again) == whole[8:]


def test_a_state_inside_a_step_is_its_start_and_says_so(
    endless: Callable[..., playhead.Loader],
) -> None:
    whole = take(endless(), 12)
    loader = endless()
    iterator = iter(loader)
    first(iterator, 7)
    with pytest.warns(UserWarning, match="inside a step"):
        state = loader.state_dict()
    assert take(resumed(endless(), state), 6) == whole[6:12]


def test_lengths_are_exact(finite: Callable[..., playhead.Loader]) -> None:
    for world_size in (1, 2):
        loader = finite(world_size=world_size)
        for _ in range(3):
            iterator = iter(loader)
            announced = len(loader)
            assert sum(1 for _ in iterator) == announced
    loader = finite()
    whole = len(lines(loader))
    loader = finite()
    take(loader, 6)
    other = resumed(finite(), loader.state_dict())
    assert len(other) == whole - 6
    assert len(lines(other)) == whole - 6


def test_an_endless_loader_has_no_length(endless: Callable[..., playhead.Loader]) -> None:
    with pytest.raises(TypeError, match="force_finite"):
        len(endless())


def test_positions_for_those_who_fetch_ahead(endless: Callable[..., playhead.Loader]) -> None:
    loader = endless()
    iterator = iter(loader)
    states = [loader.state_dict()]
    for _ in range(20):
        first(iterator, 2)
        states.append(loader.state_dict())
    ahead = endless()
    iterator = iter(ahead)
    for step in range(20):
        first(iterator, 2)
        for trained in range(max(0, 2 * step - 4), 2 * step + 3):
            assert ahead.position_after(trained).to_json() == states[trained // 2]


def test_ranks_share_every_step(endless: Callable[..., playhead.Loader]) -> None:
    alone = take(endless(micro_batches_per_step=6), 60)
    for world_size in (2, 3, 6):
        together = [
            line
            for rank in range(world_size)
            for line in take(
                endless(micro_batches_per_step=6, rank=rank, world_size=world_size),
                60 // world_size,
            )
        ]
        assert sorted(together, key=lambda line: (line["step"], line["slot"])) == alone


def test_any_state_of_any_rank_restores_all(endless: Callable[..., playhead.Loader]) -> None:
    alone = take(endless(micro_batches_per_step=6), 48)
    loaders = [endless(micro_batches_per_step=6, rank=rank, world_size=3) for rank in range(3)]
    for loader in loaders:
        take(loader, 4)
    states = [loader.state_dict() for loader in loaders]
    assert states[0] == states[1] == states[2]
    rest = [
        line
        for rank in range(2)
        for line in take(
            resumed(endless(micro_batches_per_step=6, rank=rank, world_size=2), states[2]), 18
        )
    ]
    assert sorted(rest, key=lambda line: (line["step"], line["slot"])) == alone[12:]
