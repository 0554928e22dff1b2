"""What a loader reports: of its data, of what filters refuse, and of what it handed out."""

from __future__ import annotations

import json
import os
from itertools import islice

import numpy as np
import pytest

from playhead.datasets import Ids
from playhead.fetch.bad import BadSample, Holes
from playhead.loader.bad_log import BadLog
from playhead.loader.loader import Loader
from playhead.loader.ranks import Topology
from playhead.loader.run import Planning
from playhead.loader.stream import Workers
from playhead.plan import Batching, LeafColumns, Shape

NAMES = ["a", "b"]


def columns(key, durations, weight=1):
    return LeafColumns(
        key=key,
        name=f"leaf {key}",
        weight=weight,
        duration_us=np.asarray(durations, np.int64),
        fingerprint=lambda n: f"{n:016x}",
    )


def bad_sample(leaf, row, reason="the audio cannot be decoded: Format not recognised"):
    return BadSample(
        leaf=leaf, name=f"leaf {leaf}", shard=f"/data/{leaf}.json", row=row, byte=9 * row,
        row_crc=row, member=None, id=f"{leaf}{row}", reason=reason, step=0, slot=0,
    )  # fmt: skip


class Fetch:
    """Batches that say their rows; those of some rows are bad."""

    def __init__(self, bad=(), reason="the audio ends 1.250 s before the sample does"):
        self.bad = set(bad)
        self.reason = reason

    def __call__(self, micro_batch):
        pairs = list(zip(micro_batch.leaf.tolist(), micro_batch.row.tolist(), strict=True))
        places = tuple(at for at, pair in enumerate(pairs) if pair in self.bad)
        batch = {"rows": [pair for pair in pairs if pair not in self.bad]}
        if not places:
            return batch
        records = tuple(bad_sample(NAMES[pairs[at][0]], pairs[at][1], self.reason) for at in places)
        empty = len(places) == len(pairs)
        return Holes(None if empty else batch, records, places, empty=empty)


def loader_of(fetch, *, low=None, step=2, size=4, workers=0, finite=True, **options):
    return Loader(
        planning=Planning(
            leaves=(columns("a", [1_000_000] * 30, 3), columns("b", [100_000, 2_000_000] * 9)),
            shape=Shape(finite=finite, shuffle=True, min_duration_us=low, window_draws=40),
            batching=Batching(micro_batches_per_step=step, batch_size=size),
        ),
        fetch=fetch,
        topology=Topology(rank=options.pop("rank", 0), world_size=options.pop("world_size", 1)),
        workers=Workers(num_workers=workers),
        seed=3,
        fixed_step=True,
        **options,
    )


def test_before_anything_is_handed_out():
    report = loader_of(Fetch(), low=500_000, dropped=[{"_skipme": 4}, {}]).report()
    assert [leaf.name for leaf in report.leaves] == ["leaf a", "leaf b"]
    assert [leaf.rows for leaf in report.leaves] == [30, 18]
    assert [leaf.share for leaf in report.leaves] == [0.75, 0.25]
    assert [leaf.dropped for leaf in report.leaves] == [{"_skipme": 4}, {}]
    assert [leaf.refused for leaf in report.leaves] == [{}, {"min_duration": 9}]
    assert [leaf.samples for leaf in report.leaves] == [0, 0]
    assert (report.run.batches, report.run.samples) == (0, 0)
    assert report.run.waits.batches == 0


@pytest.mark.parametrize("workers", [0, 2])
def test_a_pass_adds_up(workers):
    bad = [(0, 4), (0, 17), (1, 3)]
    loader = loader_of(Fetch(bad), low=500_000, workers=workers)
    batches = list(loader)
    report = loader.report()
    given = [pair for batch in batches for pair in batch["rows"]]
    assert report.run.batches == len(batches)
    assert report.run.samples == len(given)
    assert [leaf.samples for leaf in report.leaves] == [
        sum(leaf == number for leaf, _ in given) for number in (0, 1)
    ]
    assert len(set(given)) == 30 + 9 - 3
    reason = "the audio ends N s before the sample does"
    assert [leaf.bad for leaf in report.leaves] == [{reason: 2}, {reason: 1}]
    assert report.run.bad == {reason: 3}
    assert report.run.dropped == {"min_duration": 9}
    assert report.run.waits.batches == len(batches) + 1
    loader.close()


def test_windows_count_once_however_often_they_are_entered():
    loader = loader_of(Fetch(), low=500_000, finite=False)
    take = list(islice(iter(loader), 6))
    first = loader.report().run.dropped
    loader.load_state_dict(loader.state_dict())
    take += list(islice(iter(loader), 2))
    assert loader.report().run.dropped == first
    assert loader.report().run.batches == len(take) == 8
    list(islice(iter(loader), 40))
    assert loader.report().run.dropped["min_duration"] > first["min_duration"]


def test_a_stand_in_is_counted_as_what_it_is():
    """Rows in declared order, one a batch: which neighbour it is can be said beforehand."""
    loader = Loader(
        planning=Planning(
            leaves=(columns("a", [1_000_000] * 8),),
            shape=Shape(finite=True, shuffle=False),
            batching=Batching(micro_batches_per_step=4, batch_size=1),
        ),
        fetch=Fetch([(0, 1), (0, 2)]),
        topology=Topology(rank=0, world_size=1),
        workers=Workers(),
        seed=3,
    )
    rows = [batch["rows"] for batch in loader]
    steps = [sorted(row for pairs in rows[at : at + 4] for _, row in pairs) for at in (0, 4)]
    assert steps[1] == [4, 5, 6, 7]
    assert set(steps[0]) == {0, 3}
    assert len(steps[0]) == 4
    report = loader.report().run
    assert (report.batches, report.samples, report.repeated_batches) == (8, 8, 2)
    assert sum(report.bad.values()) == 2


def test_it_is_json_and_a_table():
    loader = loader_of(Fetch([(0, 4)]), low=500_000, dropped=[{"_skipme": 4}, {}])
    list(loader)
    report = loader.report()
    data = json.loads(json.dumps(report.to_json(), allow_nan=False))
    assert data["leaves"][0]["dropped"] == {"_skipme": 4}
    assert data["run"]["waits"]["batches"] == report.run.waits.batches
    lines = str(report).splitlines()
    assert lines[0].split() == ["leaf", "rows", "share", "samples", "bad"]
    assert lines[1].split() == ["leaf", "a", "30", "75.00%", "29", "1"]
    assert "  left out of the index: _skipme 4" in lines
    assert "  refused by filters in a pass: min_duration 9" in lines
    assert "  bad audio: the audio ends N s before the sample does 1" in lines
    assert all(len(line) < 200 for line in lines)


def test_many_leaves_are_summed_up():
    leaves = tuple(columns(f"{n:04d}", [1_000_000] * 3) for n in range(300))
    loader = Loader(
        planning=Planning(
            leaves=leaves,
            shape=Shape(finite=True),
            batching=Batching(micro_batches_per_step=1, batch_size=9),
        ),
        fetch=Ids.__init__,
        topology=Topology(rank=0, world_size=1),
        workers=Workers(),
        seed=3,
    )
    lines = str(loader.report()).splitlines()
    assert len(lines) < 110
    assert "and 200 more leaves" in lines


def test_the_list_has_each_sample_once_and_a_file_for_each_rank(tmp_path):
    logs = [BadLog(str(tmp_path / "new/bad.jsonl"), rank) for rank in (0, 3)]
    for log in logs:
        log.add([bad_sample("a", 1), bad_sample("a", 2)])
        log.add([bad_sample("a", 1), bad_sample("b", 1)])
    for name in ("bad.jsonl", "bad-3.jsonl"):
        rows = [json.loads(line) for line in (tmp_path / "new" / name).read_text().splitlines()]
        assert [(row["leaf"], row["row"]) for row in rows] == [("a", 1), ("a", 2), ("b", 1)]


def test_the_list_stays_where_it_was_when_the_script_moves(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    log = BadLog("bad.jsonl", 0)
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    log.add([bad_sample("a", 1)])
    assert (tmp_path / "bad.jsonl").exists()


def test_a_full_disk_is_said_once_and_training_goes_on(tmp_path, monkeypatch):
    loader = loader_of(
        Fetch([(0, row) for row in range(0, 30, 3)]), bad_samples=str(tmp_path / "bad.jsonl")
    )

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.warns(UserWarning, match=r"bad\.jsonl: No space left.*Training goes on") as said:
        batches = list(loader)
    assert len(said) == 1
    assert sum(len(batch["rows"]) for batch in batches) == 38
    assert sum(loader.report().run.bad.values()) == 10


def test_a_line_that_a_full_disk_cut_short_does_not_spoil_the_next(tmp_path, monkeypatch):
    log = BadLog(str(tmp_path / "bad.jsonl"), 0)
    real = os.write
    monkeypatch.setattr(os, "write", lambda file, data: real(file, data[:20]))
    with pytest.warns(UserWarning, match="no room for a whole line"):
        log.add([bad_sample("a", 1)])
    monkeypatch.undo()
    log.add([bad_sample("a", 2)])
    cut, whole = (tmp_path / "bad.jsonl").read_bytes().splitlines()
    assert len(cut) == 20
    assert json.loads(whole)["row"] == 2


def test_without_a_name_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    list(loader_of(Fetch([(0, 1)])))
    assert list(tmp_path.iterdir()) == []
