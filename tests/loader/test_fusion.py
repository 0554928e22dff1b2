"""Several plans in one loader: whose turn it is, what a state means, and that resuming is exact."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections import Counter
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.errors import PositionError
from playhead.fetch.bad import BadSample, Holes
from playhead.loader.agreement import agree_on_plan
from playhead.loader.fusion import FusedPlanning
from playhead.loader.fusion_turns import Randomized, RoundRobin, Zip
from playhead.loader.loader import Loader
from playhead.loader.ranks import Topology
from playhead.loader.run import Planning
from playhead.loader.stream import Workers
from playhead.plan import Batching, LeafColumns, Shape

G = 6
ROWS = {"a": 90, "b": 37, "c": 55}
LIMITS = {"a": 40_000_000, "b": 15_000_000, "c": 60_000_000}
RULES = {
    "round_robin": RoundRobin(),
    "randomized": Randomized((3, 1, 2)),
    "zip": Zip(3),
}


def leaf(key, rows):
    seed = sum(key.encode())
    durations = np.random.default_rng(seed).integers(300_000, 12_000_000, rows)

    def fingerprint(n):
        return hashlib.blake2b(durations[:n].tobytes(), digest_size=8).hexdigest()

    return LeafColumns(
        key=key, name=f"{key}/data", weight=1, duration_us=durations, fingerprint=fingerprint
    )


def planning(name, *, finite, step=G, shuffle=True):
    return Planning(
        leaves=(leaf(f"{name}0", ROWS[name]), leaf(f"{name}1", 20)),
        shape=Shape(finite=finite, shuffle=shuffle, window_draws=60),
        batching=Batching(
            micro_batches_per_step=step, batch_duration_us=LIMITS[name], batch_size=6
        ),
    )


def rows_of(micro_batch):
    """A batch that shows where it comes from."""
    pairs = zip(micro_batch.leaf.tolist(), micro_batch.row.tolist(), strict=True)
    return {
        "rows": list(pairs),
        "parts": list(dict.fromkeys(number // 2 for number in micro_batch.leaf.tolist())),
        "step": micro_batch.step,
        "slot": micro_batch.slot,
        "key": micro_batch.key,
        "sample_keys": micro_batch.sample_keys.tolist(),
        "repeated": micro_batch.repeated.tolist(),
    }


def loader(rule="round_robin", *, finite=False, names="abc", rank=0, world_size=1, **options):
    """`finite` is true, false, or the names of the parts that are."""
    ends = finite if isinstance(finite, str) else names if finite else ""
    step = options.pop("step", G)
    rules = {**RULES, "zip": Zip(len(names))}
    return Loader(
        planning=FusedPlanning(
            parts={name: planning(name, finite=name in ends, step=step) for name in names},
            rule=rules[rule] if isinstance(rule, str) else rule,
        ),
        fetch=options.pop("fetch", rows_of),
        topology=Topology(rank=rank, world_size=world_size),
        workers=Workers(num_workers=options.pop("workers", 0)),
        seed=options.pop("seed", 3),
        fixed_step=options.pop("fixed_step", True),
        **options,
    )


def take(iterable, count):
    return list(islice(iter(iterable), count))


def parts_of_steps(batches):
    """The parts of each step; all of its micro-batches have the same."""
    steps = {}
    for batch in batches:
        steps.setdefault(batch["step"], []).append(batch["parts"])
    assert all(parts == found[0] for found in steps.values() for parts in found)
    return [found[0] for found in steps.values()]


def seen(batches):
    return Counter(
        row
        for batch in batches
        for row, again in zip(batch["rows"], batch["repeated"], strict=True)
        if not again
    )


def rows_of_parts(names):
    return Counter(
        (2 * number + which, row)
        for number, name in enumerate("abc")
        if name in names
        for which, count in enumerate((ROWS[name], 20))
        for row in range(count)
    )


def alone(name, count, *, finite=False, seed):
    """What a part gives by itself."""
    one = Loader(
        planning=planning(name, finite=finite),
        fetch=rows_of,
        topology=Topology(rank=0, world_size=1),
        workers=Workers(),
        seed=seed,
        fixed_step=True,
    )
    return [[row for _, row in batch["rows"]] for batch in take(one, count)]


def test_round_robin_takes_the_parts_in_turn():
    assert parts_of_steps(take(loader(), 7 * G)) == [[0], [1], [2], [0], [1], [2], [0]]


def test_zip_takes_a_step_of_each_and_joins_them_slot_by_slot():
    batches = take(loader("zip"), 4 * G)
    assert parts_of_steps(batches) == [[0, 1, 2]] * 4
    state = loader("zip").state_dict()
    for number, name in enumerate("abc"):
        own = [[row for leaf_, row in batch["rows"] if leaf_ // 2 == number] for batch in batches]
        assert own == alone(name, 4 * G, seed=state["parts"][name]["seed"])
    # One part's samples stand together, in the order of the parts.
    for batch in batches:
        numbers = [leaf_ // 2 for leaf_, _ in batch["rows"]]
        assert numbers == sorted(numbers)
    assert len({batch["key"] for batch in batches}) == len(batches)
    assert [(batch["step"], batch["slot"]) for batch in batches] == [
        (n // G, n % G) for n in range(4 * G)
    ]


def test_a_randomized_turn_follows_the_weights_and_the_seed():
    rule = RULES["randomized"]
    runs = [[rule.taken(seed, 0, step, range(3)) for step in range(3000)] for seed in (3, 4)]
    for turns in runs:
        shares = [turns.count((part,)) / 3000 for part in range(3)]
        assert shares == pytest.approx([3 / 6, 1 / 6, 2 / 6], abs=0.03)
    assert runs[0] != runs[1]
    assert parts_of_steps(take(loader("randomized"), 20 * G)) == [list(t) for t in runs[0][:20]]
    # Another pass has other turns.
    assert runs[0] != [rule.taken(3, 1, step, range(3)) for step in range(3000)]
    # What is live changes nothing for the others: their proportion stays.
    without = [rule.taken(3, 0, step, [0, 2]) for step in range(3000)]
    assert without.count((0,)) / 3000 == pytest.approx(3 / 5, abs=0.03)


def test_a_part_without_weight_has_no_turn():
    rule = Randomized((1, 0, 1))
    assert [1] not in parts_of_steps(take(loader(rule), 20 * G))
    finite = list(loader(rule, finite=True))
    assert seen(finite) == rows_of_parts("ac")
    assert len(loader(rule, finite=True)) == len(finite)


@pytest.mark.parametrize("rule", ["round_robin", "randomized"])
def test_a_finite_pass_gives_every_sample_of_every_part_once(rule):
    whole = loader(rule, finite=True)
    expected = len(whole)
    batches = list(whole)
    assert len(batches) == expected
    assert seen(batches) == rows_of_parts("abc")
    assert [batch["step"] for batch in batches] == [n // G for n in range(expected)]


def test_a_part_that_ends_drops_out_of_the_round():
    turns = parts_of_steps(loader(finite=True))
    ends = [max(n for n, parts in enumerate(turns) if parts == [part]) for part in range(3)]
    alive = {part for part in range(3) if ends[part] == len(turns) - 1}
    assert len(set(ends)) == 3
    assert len(alive) == 1
    for step, (part,) in enumerate(turns):
        live = [one for one in range(3) if ends[one] >= step]
        assert part == live[step % len(live)]


def test_endless_parts_go_on_when_a_finite_one_has_ended():
    mixed = loader(finite="b")
    assert not mixed.finite
    with pytest.raises(TypeError, match="endless"):
        len(mixed)
    batches = take(mixed, 80 * G)
    assert seen(b for b in batches if b["parts"] == [1]) == rows_of_parts("b")
    assert parts_of_steps(batches)[-4:] in ([[0], [2]] * 2, [[2], [0]] * 2)


@pytest.mark.parametrize("finite", [True, "bc", "c"])
def test_zip_ends_with_the_first_part_that_ends(finite):
    whole = loader("zip", finite=finite)
    assert whole.finite
    lengths = [
        len(alone(name, None, finite=True, seed=whole.state_dict()["parts"][name]["seed"]))
        for name in ("abc" if finite is True else finite)
    ]
    assert len(whole) == len(list(whole)) == min(lengths)


def test_the_next_pass_takes_finite_parts_anew_and_lets_endless_ones_go_on():
    straight = loader("zip", finite="b")
    first, second = list(straight), list(straight)
    assert len(first) == len(second)
    for batches in (first, second):
        assert seen(batches) & rows_of_parts("b") == rows_of_parts("b")
    endless = [[row for leaf_, row in batch["rows"] if leaf_ < 2] for batch in (*first, *second)]
    own = straight.state_dict()["parts"]["a"]["seed"]
    assert endless == alone("a", len(endless), seed=own)


@pytest.mark.parametrize("rule", RULES)
def test_a_pass_is_the_same_however_one_comes_to_it(rule):
    passes = loader(rule, finite=True)
    expected = [[b["rows"] for b in passes] for _ in range(3)]
    assert expected[0] != expected[1] != expected[2]
    chosen = loader(rule, finite=True)
    chosen.set_epoch(2)
    assert [b["rows"] for b in chosen] == expected[2]


@pytest.mark.parametrize("rule", RULES)
def test_a_state_of_a_finished_pass_is_the_start_of_the_next(rule):
    for finite in (True, "b") if rule == "zip" else (True,):
        passes = loader(rule, finite=finite)
        expected = [list(passes) for _ in range(2)]
        saved = loader(rule, finite=finite)
        list(saved)
        resumed = loader(rule, finite=finite)
        resumed.load_state_dict(saved.state_dict())
        assert len(resumed) == len(expected[1])
        assert list(resumed) == expected[1]


@settings(max_examples=25, deadline=None)
@given(
    rule=st.sampled_from(sorted(RULES)),
    finite=st.sampled_from([False, True, "b", "ac"]),
    steps=st.lists(st.integers(0, 7), min_size=1, max_size=4),
    sizes=st.lists(st.sampled_from([1, 2, 3, 6]), min_size=4, max_size=4),
    again=st.booleans(),
)
def test_stopped_and_resumed_is_the_uninterrupted_run(rule, finite, steps, sizes, again):
    """On any ranks, any number of times, with workers that had fetched ahead or not."""
    whole = take(loader(rule, finite=finite), 22 * G)
    state, got = None, []
    for count, size in zip([*steps, 99], [*sizes, 1], strict=False):
        if len(got) == len(whole):
            break
        ranks = [loader(rule, finite=finite, rank=rank, world_size=size) for rank in range(size)]
        if state is not None:
            for part in ranks:
                part.load_state_dict(state)
                if again:
                    assert part.state_dict() == state
                    part.load_state_dict(part.state_dict())
        wanted = min(count, (len(whole) - len(got)) // G)
        parts = [take(part, wanted * part.batches_per_step) for part in ranks]
        got += sorted((b for part in parts for b in part), key=lambda b: (b["step"], b["slot"]))
        states = [json.dumps(part.state_dict()) for part in ranks]
        assert len(set(states)) == 1
        state = json.loads(states[0])
        assert state["step"] == len(got) // G
    assert got == whole


@pytest.mark.parametrize("rule", RULES)
def test_workers_do_not_enter(rule):
    parallel = loader(rule, workers=2)
    assert take(parallel, 5 * G) == take(loader(rule), 5 * G)
    parallel.close()


@pytest.mark.parametrize("rule", RULES)
def test_position_after_is_what_a_state_would_have_been(rule):
    run = loader(rule)
    batches = iter(run)
    states = []
    for _ in range(60):
        for _ in range(G):
            next(batches)
        states.append(run.state_dict())
    for step, state in enumerate(states[-3:], 58):
        assert run.position_after(G * step).to_json() == state
    assert len(run._course.run._turns._turns) < 60
    ahead = run.position_after(G * 80)
    resumed = loader(rule)
    resumed.load_state_dict(ahead.to_json())
    assert take(resumed, 1)[0]["step"] == 80
    with pytest.raises(PositionError, match="further back"):
        run.position_after(0)


def test_there_is_no_position_after_the_end():
    ended = loader(finite=True)
    count = len(list(ended))
    assert ended.position_after(count).step == count // G
    with pytest.raises(PositionError, match="no step"):
        ended.position_after(count + G)


def test_a_state_inside_a_step_is_its_start():
    straight = take(loader("zip"), 3 * G)
    inside = loader("zip")
    batches = iter(inside)
    for _ in range(G + 2):
        next(batches)
    with pytest.warns(UserWarning, match="inside a step"):
        state = inside.state_dict()
    resumed = loader("zip")
    resumed.load_state_dict(state)
    assert take(resumed, 2 * G) == straight[G:]


def test_loading_a_state_moves_a_live_iterator():
    straight = take(loader("randomized"), 9 * G)
    live = loader("randomized")
    batches = iter(live)
    for _ in range(4 * G):
        next(batches)
    state = live.state_dict()
    for _ in range(9):
        next(batches)
    live.load_state_dict(state)
    assert [next(batches) for _ in range(5 * G)] == straight[4 * G :]


def test_what_is_to_be_made_can_be_asked_for_beforehand():
    asked = loader("zip")
    keys = [batch.key for batch in islice(asked.micro_batches(), 2 * G)]
    assert keys == [batch["key"] for batch in take(asked, 2 * G)]


def moved(rule, count, **options):
    saved = loader(rule, **options)
    take(saved, count * G)
    return json.loads(json.dumps(saved.state_dict()))


def test_a_part_that_is_added_begins_at_its_start_and_is_named():
    state = moved("round_robin", 8, names="ac")
    more = loader(names="abc")
    with pytest.warns(UserWarning, match="part b is new: it begins at its start") as said:
        more.load_state_dict(state)
    assert len(said) == 1
    batches = take(more, 6 * G)
    fresh = loader(names="abc")
    rows = [batch["rows"] for batch in batches if batch["parts"] == [1]]
    own = [batch["rows"] for batch in take(fresh, 6 * G) if batch["parts"] == [1]]
    assert rows == own[: len(rows)]
    # Those that were there go on from where they stood.
    numbers = {"a": 0, "c": 2}
    longer = take(loader(names="ac"), 20 * G)
    for name, number in numbers.items():
        there = [[row for _, row in b["rows"]] for b in longer if b["parts"] == ["ac".index(name)]]
        here = [[row for _, row in b["rows"]] for b in batches if b["parts"] == [number]]
        assert here == there[4 * G : 4 * G + len(here)]


def test_a_part_that_is_gone_is_named_with_what_is_abandoned():
    state = moved("round_robin", 9)
    fewer = loader(names="ac")
    with pytest.warns(UserWarning, match="part b is gone: its progress, 3 steps, is abandoned"):
        fewer.load_state_dict(state)
    assert parts_of_steps(take(fewer, 4 * G)) == [[1], [0], [1], [0]]
    assert set(fewer.state_dict()["parts"]) == {"a", "c"}
    assert fewer.state_dict()["step"] == 13


def test_other_weights_and_another_fusion_go_on_from_the_same_places():
    state = moved("randomized", 9)
    other = loader(Randomized((0, 0, 5)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        other.load_state_dict(state)
    assert parts_of_steps(take(other, 4 * G)) == [[2]] * 4
    zipped = loader("zip")
    zipped.load_state_dict(state)
    assert parts_of_steps(take(zipped, 2 * G)) == [[0, 1, 2]] * 2


def test_only_rank_0_speaks():
    state = moved("round_robin", 9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loader(names="ac", rank=1, world_size=2).load_state_dict(state)


def test_a_state_of_other_parts_altogether_is_refused():
    with pytest.raises(PositionError, match="parts a, b, and the config has c"):
        loader(names="c").load_state_dict(moved("round_robin", 4, names="ab"))


def test_another_seed_is_refused_unless_asked_for():
    state = moved("randomized", 6)
    assert state["seed"] == 3
    other = loader("randomized", seed=4)
    with pytest.raises(PositionError, match="seed 3 and the config has 4"):
        other.load_state_dict(state)
    with pytest.warns(UserWarning, match="part a: .*from the next window"):
        other.load_state_dict(state, reseed=True)
    take(other, G)
    again = loader("randomized", seed=4)
    with pytest.warns(UserWarning, match="part a: .*from the next window"):
        again.load_state_dict(other.state_dict())


def test_a_drawn_seed_comes_back_from_the_state():
    drawn = loader("randomized", seed="trng")
    take(drawn, 2 * G)
    state = drawn.state_dict()
    rest = take(drawn, 4 * G)
    resumed = loader("randomized", seed="trng")
    resumed.load_state_dict(state)
    assert take(resumed, 4 * G) == rest


def test_the_step_of_the_state_is_kept_where_none_was_asked_for():
    state = moved("zip", 1)
    resumed = loader("zip", step=2, world_size=2, fixed_step=False)
    resumed.load_state_dict(state)
    assert (resumed.micro_batches_per_step, resumed.batches_per_step) == (6, 3)
    whole = take(loader("zip"), 2 * G)
    assert take(resumed, 3) == whole[G::2]


def test_a_step_that_cannot_be_kept_is_a_new_one_with_every_sample_once():
    whole = list(loader(finite=True))
    state = moved("round_robin", 1, finite=True)
    options = {"step": 4, "world_size": 4, "fixed_step": False, "finite": True}
    ranks = [loader(rank=rank, **options) for rank in range(4)]
    with (
        pytest.warns(UserWarning, match="4 ranks cannot share"),
        pytest.warns(UserWarning, match="part a: .*dealt out anew"),
    ):
        ranks[0].load_state_dict(state)
    for other in ranks[1:]:
        other.load_state_dict(state)
    rest = [batch for part in ranks for batch in part]
    assert seen(whole[:G]) + seen(rest) == rows_of_parts("abc")


def test_a_state_is_small_and_json():
    state = moved("zip", 30)
    assert set(state) == {"version", "seed", "step", "parts"}
    assert len(json.dumps(state)) < 3 * (1024 + 2 * 70)


ONE = {"a": "state"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"version": 9}, "version 9"),
        ({"parts": {}}, "no parts"),
        ({"parts": {"a": {"version": 1}}}, "Part a of this state"),
        ({"step": "3"}, "numbers are none"),
        ({"begin": 99}, "numbers are none"),
        ({"more": 1}, "it has more"),
        ({"step": 1 << 70}, "numbers are none"),
        ({"parts": {1: {}, "a": {}}}, "parts have no names"),
    ],
)
def test_damaged_states_are_refused(change, said):
    state = {**moved("round_robin", 2), **change}
    with pytest.raises(PositionError, match=said):
        loader().load_state_dict(state)


@pytest.mark.parametrize("state", [{}, {"epoch": 1}, [], None])
def test_states_that_are_not_ours_are_refused(state):
    with pytest.raises(PositionError, match="not one of a config with multi_config"):
        loader().load_state_dict(state)


def test_states_of_one_config_and_of_several_are_told_apart():
    single = Loader(
        planning=planning("a", finite=False),
        fetch=rows_of,
        topology=Topology(rank=0, world_size=1),
        workers=Workers(),
        seed=3,
    )
    with pytest.raises(PositionError, match="of a config of one blend"):
        loader().load_state_dict(single.state_dict())
    with pytest.raises(PositionError, match="of a config with multi_config"):
        single.load_state_dict(loader().state_dict())


class Bad:
    """Batches in which every sample of some parts is bad."""

    def __init__(self, leaves):
        self.leaves = leaves

    def __call__(self, micro_batch):
        batch = rows_of(micro_batch)
        places = tuple(at for at, (number, _) in enumerate(batch["rows"]) if number in self.leaves)
        if not places:
            return batch
        records = tuple(
            BadSample(
                leaf="same", name=f"{'abc'[batch['rows'][at][0] // 2]}/data", shard="x", row=1,
                byte=0, row_crc=0, member=None, id="x", reason="bad", step=0, slot=0,
            )
            for at in places
        )  # fmt: skip
        empty = len(places) == len(batch["rows"])
        batch["rows"] = [pair for pair in batch["rows"] if pair[0] not in self.leaves]
        return Holes(None if empty else batch, records, places, empty=empty)


def test_the_report_counts_by_part_and_adds_up():
    fused = loader("zip", fetch=Bad({2}), finite=True)
    batches = list(fused)
    report = fused.report()
    given = Counter(number for batch in batches for number, _ in batch["rows"])
    assert [leaf_.samples for leaf_ in report.leaves] == [given[n] for n in range(6)]
    assert report.leaves[2].samples == 0
    assert [leaf_.share for leaf_ in report.leaves] == pytest.approx([1 / 6] * 6)
    assert report.run.batches == len(batches)
    assert json.loads(json.dumps(report.to_json()))["run"]["samples"] == sum(given.values())


def test_a_stand_in_is_of_the_same_step():
    """A whole micro-batch of a part is bad: its neighbour of the same step stands in."""

    class OneSlot(Bad):
        def __call__(self, micro_batch):
            own = micro_batch.step == 1 and micro_batch.slot == 2
            return (super().__call__ if own else rows_of)(micro_batch)

    fused = loader(fetch=OneSlot({2, 3}))
    batches = take(fused, 3 * G)
    assert [batch["parts"] for batch in batches[G : 2 * G]] == [[1]] * G
    assert batches[G + 2] == batches[G + 3]
    assert fused.report().run.repeated_batches == 1


def test_what_windows_dropped_is_counted_for_each_part():
    filtered = loader(finite=True)
    parts = {
        name: Planning(
            leaves=part.leaves,
            shape=Shape(finite=True, min_duration_us=3_000_000, window_draws=60),
            batching=part.batching,
        )
        for name, part in filtered.planning.parts.items()
    }
    fused = Loader(
        planning=FusedPlanning(parts=parts, rule=RoundRobin()),
        fetch=rows_of,
        topology=Topology(rank=0, world_size=1),
        workers=Workers(),
        seed=3,
        fixed_step=True,
    )
    next(iter(fused))
    assert fused.report().run.dropped["min_duration"] > 0
    fused.set_epoch(0)
    list(fused)
    short = sum(
        int((columns.duration_us < 3_000_000).sum())
        for part in parts.values()
        for columns in part.leaves
    )
    assert fused.report().run.dropped == {"min_duration": short}


def test_ranks_compare_every_part(monkeypatch):
    """What differs between ranks is named by part: options, data, positions and turns."""
    seen_details = []
    monkeypatch.setattr(
        "playhead.loader.agreement.check_agreement",
        lambda _, details: seen_details.append(details),
    )
    fused = loader("randomized")
    positions = [fused._course.fresh_position(), fused._course.fresh_position()]
    agree_on_plan(fused.planning, positions[0])
    other = loader(Randomized((1, 1, 1)), step=12)
    agree_on_plan(other.planning, positions[1])
    one, two = seen_details
    assert set(one["data"]) == {f"{name}{n}/data" for name in "abc" for n in (0, 1)}
    assert one["data"] == two["data"]
    different = {name for name, value in one["options"].items() if two["options"][name] != value}
    assert different == {"turns", *(f"{name}.micro_batches_per_step" for name in "abc")}
    assert {"seed", "step", "a.leaves", "b.chain"} <= set(one["position"])
