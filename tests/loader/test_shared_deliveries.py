"""One process reads and its peers are sent the batches: what each of them sees."""

from __future__ import annotations

import hashlib
import warnings
from itertools import islice

import numpy as np
import pytest
import torch

from playhead.errors import (
    AudioError,
    NotSupportedError,
    RankMismatchError,
    WorkerError,
)
from playhead.fetch.bad import BadSample, Holes
from playhead.fetch.info import BatchInfo
from playhead.loader.loader import Loader
from playhead.loader.parcel import as_bytes, pack, unpack
from playhead.loader.ranks import Topology
from playhead.loader.run import Planning
from playhead.loader.stream import Workers
from playhead.plan import Batching, LeafColumns, Shape

PEERS = (4, 5)


class Line:
    """What the first peer sends, kept until the other takes it."""

    first = 4

    def __init__(self):
        self.sent = []

    def end(self, *, is_first):
        return End(self, is_first=is_first)


class End:
    def __init__(self, line, *, is_first):
        self.line, self.is_first, self.first = line, is_first, line.first

    def send(self, value):
        assert self.is_first
        self.line.sent.append(pack(value))

    def receive(self):
        assert not self.is_first
        parcel = self.line.sent.pop(0)
        unpacked = unpack(parcel.skeleton)
        for made, like in zip(unpacked.contents, parcel.contents, strict=True):
            as_bytes(made).copy_(as_bytes(like))
        return unpacked.value()


def leaf(rows, seed=0):
    durations = np.random.default_rng(seed).integers(300_000, 12_000_000, rows)

    def fingerprint(n):
        return hashlib.blake2b(durations[:n].tobytes(), digest_size=8).hexdigest()

    return LeafColumns(key="a", name="a", weight=1, duration_us=durations, fingerprint=fingerprint)


LEAF = leaf(60)


def made_of(micro_batch):
    return {
        "rows": torch.from_numpy(micro_batch.row.copy()),
        "names": [str(row) for row in micro_batch.row],
        "playhead": BatchInfo.of(micro_batch),
    }


def never(micro_batch):
    raise AssertionError("only one of the peers reads")


def one(line, *, is_first, fetch=made_of, finite=True, of=LEAF, planning_type=Planning, **options):
    return Loader(
        planning=planning_type(
            leaves=(of,),
            shape=Shape(finite=finite, shuffle=True, window_draws=30),
            batching=Batching(micro_batches_per_step=2, batch_duration_us=20_000_000, batch_size=4),
        ),
        fetch=fetch if is_first or line is None else never,
        topology=Topology(rank=0, world_size=1, peers=PEERS, is_first=is_first),
        workers=Workers(),
        seed=3,
        broadcast=None if line is None else line.end(is_first=is_first),
        **options,
    )


def both(**options):
    line = Line()
    return one(line, is_first=True, **options), one(line, is_first=False, **options)


def seen(batch):
    return batch["rows"].tolist(), batch["names"], batch["playhead"]


def taken(*loaders, count=None):
    """What each of the loaders hands out, asked in turn."""
    iterators = [iter(loader) for loader in loaders]
    turns = islice(zip(*iterators, strict=True), count)
    return [list(map(seen, column)) for column in zip(*turns, strict=True)]


def test_both_get_what_each_would_have_read():
    alone = taken(one(None, is_first=True))
    assert taken(*both()) == [alone[0], alone[0]]


def test_lengths_states_and_reports_are_the_same_on_both():
    reader, other = both()
    alone = one(None, is_first=True)
    assert len(reader) == len(other) == len(alone)
    for count in (2, 4):
        taken(reader, other, count=count)
        taken(alone, count=count)
        assert reader.state_dict() == other.state_dict() == alone.state_dict()
    reports = [loader.report().to_json() for loader in (reader, other, alone)]
    assert reports[0]["run"]["waits"]["batches"] == reports[1]["run"]["waits"]["batches"] == 6
    for report in reports:
        del report["run"]["waits"]
    assert reports[0] == reports[1] == reports[2]


def test_passes_follow_each_other_on_both():
    alone = one(None, is_first=True)
    wanted = [taken(alone)[0], taken(alone)[0]]
    reader, other = both()
    assert taken(reader, other) == [wanted[0], wanted[0]]
    assert taken(reader, other) == [wanted[1], wanted[1]]
    assert wanted[0] != wanted[1]


def test_an_endless_loader_plans_its_windows_on_both():
    reader, other = both(finite=False)
    alone = one(None, is_first=True, finite=False)
    wanted = taken(alone, count=60)[0]
    assert taken(reader, other, count=60) == [wanted, wanted]
    assert reader.state_dict() == other.state_dict() == alone.state_dict()
    assert reader.report().run.dropped == other.report().run.dropped == alone.report().run.dropped


def test_a_live_iterator_goes_on_from_a_loaded_state_on_both():
    alone = one(None, is_first=True, finite=False)
    wanted = taken(alone, count=12)[0]
    reader, other = both(finite=False)
    states = []
    turns = zip(iter(reader), iter(other), strict=True)
    for _ in range(4):
        next(turns)
    states = [reader.state_dict(), other.state_dict()]
    for _ in range(4):
        next(turns)
    reader.load_state_dict(states[0])
    other.load_state_dict(states[1])
    again = [tuple(map(seen, next(turns))) for _ in range(8)]
    assert again == [(batch, batch) for batch in wanted[4:]]


def test_states_follow_training_on_both():
    reader, other = both(finite=False)
    for loader in (reader, other):
        loader.follow_training()
    first = taken(reader, other, count=6)
    for loader in (reader, other):
        loader.mark_trained(2)
    assert reader.state_dict() == other.state_dict()
    assert reader.batches_ahead == other.batches_ahead == 4
    again = taken(reader, other, count=4)
    assert again[0] == again[1] == first[0][2:]


class Flaky:
    """Fails at one batch, once."""

    def __init__(self, error):
        self.error = error

    def __call__(self, micro_batch):
        if self.error is not None and (micro_batch.step, micro_batch.slot) == (1, 0):
            error, self.error = self.error, None
            raise error
        return made_of(micro_batch)


class PickyError(Exception):
    def __init__(self, what, where):
        super().__init__(f"{what} at {where}")


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (AudioError("it is noise", where="a.wav", fix="Mend it"), AudioError, "It is noise (a.wav"),
        (KeyError("label"), KeyError, "'label'"),
        (StopIteration("early"), RuntimeError, "the dataset raised StopIteration: early"),
        (PickyError("odd", "row 7"), RuntimeError, "PickyError: odd at row 7"),
    ],
    ids=["ours", "builtin", "stop", "unpicklable"],
)
def test_an_error_reaches_both_and_both_go_on_with_the_batch_that_failed(error, kind, said):
    wanted = taken(one(None, is_first=True))[0]
    line = Line()
    reader = one(line, is_first=True, fetch=Flaky(error))
    other = one(line, is_first=False)
    turns = [iter(reader), iter(other)]
    got = [[seen(next(turn)) for turn in turns] for _ in range(2)]
    for turn, expected in zip(turns, [type(error), kind], strict=True):
        with pytest.raises(RuntimeError if isinstance(error, StopIteration) else expected) as met:
            next(turn)
        assert said in str(met.value) or f"PickyError: {met.value}" == said
    assert isinstance(met.value.__cause__, WorkerError)
    assert "rank 4 raised it" in str(met.value.__cause__).lower()
    assert "Flaky" in str(met.value.__cause__) or "__call__" in str(met.value.__cause__)
    got += [[seen(batch) for batch in batches] for batches in zip(*turns, strict=True)]
    assert got == [[batch, batch] for batch in wanted]


def test_an_error_of_ours_keeps_its_place_and_its_advice():
    line = Line()
    reader = one(line, is_first=True, fetch=Flaky(AudioError("noise", where="a.wav", fix="Mend")))
    other = one(line, is_first=False)
    turns = [iter(reader), iter(other)]
    for _ in range(2):
        [next(turn) for turn in turns]
    with pytest.raises(AudioError):
        next(turns[0])
    with pytest.raises(AudioError) as met:
        next(turns[1])
    assert (met.value.where, met.value.advice) == ("a.wav", "Mend")


def test_a_batch_that_cannot_be_sent_is_refused_on_both():
    line = Line()
    reader = one(line, is_first=True, fetch=lambda _: {"function": lambda: 0})
    other = one(line, is_first=False)
    for turn in (iter(reader), iter(other)):
        with pytest.raises(NotSupportedError, match=r"cannot be sent to other ranks: .*lambda"):
            next(turn)
    assert not line.sent


def test_an_interrupt_is_not_sent():
    line = Line()
    reader = one(line, is_first=True, fetch=Flaky(KeyboardInterrupt()))
    turn = iter(reader)
    next(turn), next(turn)
    line.sent.clear()
    with pytest.raises(KeyboardInterrupt):
        next(turn)
    assert not line.sent


def test_peers_that_take_different_numbers_of_batches_are_told():
    reader, other = both()
    turns = [iter(reader), iter(other)]
    next(turns[0]), next(turns[0])
    other._deliveries._peers.line.sent.pop(0)
    with pytest.raises(RankMismatchError, match=r"asks for batch 0 .* rank 4, .* at batch 1\."):
        next(turns[1])


def test_loaders_that_peers_iterate_in_another_order_are_told_apart():
    line, other = Line(), leaf(60, seed=1)
    reading = [iter(one(line, is_first=True, of=of, finite=False)) for of in (LEAF, other)]
    following = [iter(one(line, is_first=False, of=of, finite=False)) for of in (LEAF, other)]
    for turn in (*reading, *following):
        next(turn)
    for turn in reading:
        next(turn)
    with pytest.raises(RankMismatchError, match=r"batch 1 of one pass, and rank 4, .* loader\."):
        next(following[1])


def test_another_pass_on_one_of_the_peers_is_noticed():
    reader, other = both()
    taken(reader, other)
    reader.set_epoch(5)
    turns = [iter(reader), iter(other)]
    next(turns[0])
    with pytest.raises(RankMismatchError, match=r"batch 0 of one pass, and rank 4, .* loader\."):
        next(turns[1])


class Unplanned(Planning):
    """Fails to plan a window, as often as it says."""

    failures = 0

    def window(self, position):
        if position.window and type(self).failures:
            type(self).failures -= 1
            raise ValueError("there is no plan")
        return super().window(position)


def test_a_window_that_cannot_be_planned_is_said_on_all_and_leaves_no_message_behind():
    Unplanned.failures = 2
    line = Line()
    turns = [
        iter(one(line, is_first=is_first, finite=False, planning_type=Unplanned))
        for is_first in (True, False)
    ]

    def said(turn):
        try:
            next(turn)
        except ValueError as error:
            return str(error)

    met = []
    for _ in range(40):
        met.append([said(turn) for turn in turns])
        assert not line.sent
    assert ["there is no plan"] * 2 in met
    assert all(one == other for one, other in met)


def test_where_nobody_is_left_to_hear_of_an_error_it_is_still_the_one_that_is_raised():
    line = Line()
    turn = iter(one(line, is_first=True, fetch=Flaky(KeyError("label"))))
    next(turn), next(turn)

    class Gone(list):
        def append(self, _):
            raise WorkerError("rank 5 is gone")

    line.sent = Gone()
    with pytest.raises(KeyError, match="label"):
        next(turn)
    with pytest.raises(WorkerError, match="Rank 5 is gone"):
        next(turn)


def with_holes(micro_batch):
    """Nothing of the first batch can be read, and of others with several samples the first."""
    rows = micro_batch.row.tolist()
    empty = (micro_batch.step, micro_batch.slot) == (0, 0)
    places = range(len(rows) if empty else min(len(rows) - 1, 1))
    bad = tuple(
        BadSample(
            leaf="a",
            name="a",
            shard="a.json",
            row=rows[place],
            byte=0,
            row_crc=0,
            member=None,
            id=str(rows[place]),
            reason="it is noise",
            step=micro_batch.step,
            slot=micro_batch.slot,
        )
        for place in places
    )
    if empty:
        return Holes(None, bad, tuple(places), empty=True)
    batch = made_of(micro_batch)
    return Holes({**batch, "rows": batch["rows"][1:]}, bad, tuple(places))


def test_holes_are_counted_on_both_and_written_down_once(tmp_path):
    logs = [tmp_path / name for name in ("alone.jsonl", "shared.jsonl")]
    alone = one(None, is_first=True, fetch=with_holes, bad_samples=str(logs[0]))
    wanted = taken(alone, count=4)[0]
    reader, other = both(fetch=with_holes, bad_samples=str(logs[1]))
    assert taken(reader, other, count=4) == [wanted, wanted]
    assert logs[0].read_text() == logs[1].read_text() != ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["alone.jsonl", "shared.jsonl"]
    runs = [loader.report().run for loader in (alone, reader, other)]
    assert runs[0].repeated_batches == 1
    assert sum(runs[0].bad.values()) > 1
    for run in runs[1:]:
        assert (run.samples, run.bad, run.repeated_batches) == (
            runs[0].samples,
            runs[0].bad,
            runs[0].repeated_batches,
        )


def test_without_a_broadcast_the_first_peer_alone_writes_and_speaks(tmp_path):
    log = tmp_path / "bad.jsonl"
    first, second = (
        one(None, is_first=is_first, fetch=with_holes, bad_samples=str(log))
        for is_first in (True, False)
    )
    taken(second, count=2)
    assert not log.exists()
    taken(first, count=2)
    assert log.exists()
    assert [loader._topology.is_speaker for loader in (first, second)] == [True, False]


def test_closing_one_that_only_receives_does_no_harm():
    reader, other = both()
    wanted = taken(reader, other, count=2)
    reader.close()
    other.close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(taken(reader, other)[1]) == len(reader)
    assert wanted[0] == wanted[1]
