"""How far the sources of runs of NeMo and Lhotse were read, from states made by hand."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.errors import ConfigError, SourceNotFoundError
from playhead.inspect.nemo_summary import summarise_nemo
from playhead.inspect.writing import csv_text, json_text, markdown
from support.nemo_states import (
    chain,
    indexed,
    mixture,
    nemo_sources,
    packed,
    per_rank,
    repeated,
    sampler,
    workers,
    write_records,
)

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.inspect.summary import Summary


@pytest.fixture(autouse=True)
def _no_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAYHEAD_CACHE", str(tmp_path_factory.mktemp("cache")))


def _summary(content: Any, config: Any = None, **more: Any) -> Summary:
    found = summarise_nemo(content, file="meta.pt", config=config, **more)
    assert found is not None
    return found


def test_a_checkpoint_without_such_a_state_is_nobodys() -> None:
    assert summarise_nemo({"state_dict": {}, "loops": [1]}, file="a.ckpt") is None


def test_items_of_all_ranks_and_workers_add_up(tmp_path: Path) -> None:
    # Four processes: parts of 10 are 3, 3, 2, 2; of 5 they are 2, 1, 1, 1.
    def one(shard: int, epoch: int, first: int, second: int) -> Any:
        return sampler(
            mixture(
                repeated(indexed(first, shard, 4), epoch), repeated(indexed(second, shard, 4), 0)
            )
        )

    content = per_rank(
        workers(one(0, 1, 2, 1), one(1, 1, 0, 0)), workers(one(2, 1, 1, 1), one(3, 0, 2, 0))
    )

    found = _summary(content, nemo_sources(tmp_path, [10, 5]))

    first, second = found.rows
    assert first.consumed_items == (3 + 2) + (3 + 0) + (2 + 1) + 2
    assert second.consumed_items == 1 + 0 + 1 + 0
    assert (first.total_items, second.total_items) == (10, 5)
    assert first.utilization_pct == pytest.approx(130)
    assert first.completed_epochs == 1
    assert first.current_epoch_pct == pytest.approx(30)
    assert (first.observed_weight, second.observed_weight) == (13 / 15, 2 / 15)
    assert (first.desired_weight, second.desired_weight) == pytest.approx((1 / 3, 2 / 3))
    assert first.drift_abs == pytest.approx(13 / 15 - 1 / 3)
    assert first.drift_ratio == pytest.approx(13 / 15 * 3)
    assert (first.partitions_seen, first.min_epoch, first.max_epoch) == (4, 0, 1)
    assert (first.min_position, first.max_position) == (0, 2)
    assert [row.dataset for row in found.rows] == ["corpus-0", "corpus-1"]
    assert first.state_type == "indexed"
    assert found.notes == ()
    assert [(one.source_index, one.rank, one.worker) for one in found.leaf_progress] == [
        (source, rank, worker) for source in (0, 1) for rank in (0, 1) for worker in (0, 1)
    ]


def test_without_a_config_the_first_pass_counts_and_later_ones_are_unknown() -> None:
    content = workers(sampler(mixture(indexed(3, 0, 2), indexed(4, 0, 2, epoch=1))))

    found = _summary(content)

    assert [row.dataset for row in found.rows] == ["source-0", "source-1"]
    assert [row.consumed_items for row in found.rows] == [3, None]
    assert [row.observed_weight for row in found.rows] == [1.0, None]
    assert [row.desired_weight for row in found.rows] == [None, None]
    assert "without a config (--config) sources have no names, weights or totals" in found.notes
    assert any("are unknown for 1 of 2 sources" in note for note in found.notes)


def test_a_state_that_says_its_total_needs_no_index() -> None:
    content = workers(
        *(sampler(indexed(1, shard, 2, epoch=1, range={"n": 5})) for shard in range(2))
    )

    (row,) = _summary(content).rows

    assert (row.total_items, row.consumed_items) == (5, 3 + 1 + 2 + 1)


def test_what_the_run_read_and_what_the_index_has_may_differ(tmp_path: Path) -> None:
    content = sampler(indexed(1, total_len=5))

    (row,) = _summary(content, nemo_sources(tmp_path, [8])).rows

    assert row.total_items == 5
    assert row.notes == ("the run read 5 items a pass, and the index has 8 now",)


def test_packed_states_count_passes_and_places(tmp_path: Path) -> None:
    shuffled = packed(2, 1, 3, passes=2)
    in_order = repeated(packed(0, 1, 3, seed=None, file=1, in_file=1), 1)
    files = [[4, 7], [5, 5]]
    config = [
        {
            "type": "nemo",
            "corpus": f"c{number}",
            "manifest_filepath": [
                str(write_records(tmp_path / f"{number}-{file}.jsonl", count))
                for file, count in enumerate(counts)
            ],
        }
        for number, counts in enumerate(files)
    ]

    found = _summary(sampler(mixture(shuffled, in_order)), config)

    # 11 items over 3: the second process has 4 of them. 5 and 5: it has 2 of each.
    assert [row.consumed_items for row in found.rows] == [2 * 4 + 2, (2 + 2) + (2 + 1)]
    assert [row.state_type for row in found.rows] == ["packed", "sequential packed"]
    assert [one.packed_current_shard for one in found.leaf_progress] == [None, 1]
    assert [one.packed_current_position for one in found.leaf_progress] == [None, 1]
    assert [one.position for one in found.leaf_progress] == [2, 3]


def test_files_in_order_are_one_source_where_the_config_has_one(tmp_path: Path) -> None:
    files = [str(write_records(tmp_path / f"{n}.jsonl", count)) for n, count in enumerate((4, 6))]
    content = sampler(repeated(chain(indexed(4), indexed(2), current=1), 1))

    one = _summary(content, [{"type": "nemo", "manifest_filepath": files}])
    two = _summary(content, [{"type": "nemo", "manifest_filepath": file} for file in files])

    assert [row.consumed_items for row in one.rows] == [10 + 4 + 2]
    assert [row.consumed_items for row in two.rows] == [4 + 4, 6 + 2]
    assert one.rows[0].state_type == "sequential chain"


def test_a_state_that_cannot_be_read_does_not_shift_the_names(tmp_path: Path) -> None:
    content = sampler(mixture(indexed(1), {"opaque": 3}, indexed(2)))

    found = _summary(content, nemo_sources(tmp_path, [5, 5, 5]))

    assert [(row.dataset, row.consumed_items) for row in found.rows] == [
        ("corpus-0", 1),
        ("corpus-1", None),
        ("corpus-2", 2),
    ]
    assert found.rows[1].state_type == "unknown"
    assert found.rows[1].notes == ("its state cannot be read",)
    assert [row.observed_weight for row in found.rows] == [1 / 3, None, 2 / 3]


@pytest.mark.parametrize(("declared", "shown"), [(1, "1 source"), (4, "4 sources")])
def test_another_number_of_sources_in_the_config_is_said(
    tmp_path: Path, declared: int, shown: str
) -> None:
    content = sampler(mixture(indexed(1), indexed(2)))

    found = _summary(content, nemo_sources(tmp_path, [5] * declared))

    assert found.notes[0] == (
        f"the config has {shown} and the checkpoint 2: they are matched by their order alone, so"
        " check that the names are right"
    )
    assert len(found.rows) == 2
    assert len(found.dataset_specs) == declared
    if declared == 1:
        assert found.rows[1].notes == ("the config has no source of this number",)


def test_missing_indexes_are_named(tmp_path: Path) -> None:
    config = nemo_sources(tmp_path, [5, 5])
    (tmp_path / "m1.jsonl.idx").unlink()

    found = _summary(sampler(mixture(indexed(1), indexed(2))), config)

    assert found.rows[0].notes == ()
    assert found.rows[1].notes == (
        "no index says how many items it has",
        f"missing index: {tmp_path}/m1.jsonl.idx",
    )
    assert found.rows[1].total_items is None
    assert found.dataset_specs[1].missing_index_paths == (f"{tmp_path}/m1.jsonl.idx",)
    assert any("unknown for 1 of 2 sources" in note for note in found.notes)


def test_states_that_come_twice_count_once(tmp_path: Path) -> None:
    one = workers(sampler(indexed(1)))
    again, other = per_rank(one), per_rank(workers(sampler(indexed(4))))
    config = nemo_sources(tmp_path, [5])

    same = _summary({"a": per_rank(one), "b": again}, config)
    different = _summary({"a": per_rank(one), "b": other}, config)

    assert [row.consumed_items for row in (*same.rows, *different.rows)] == [1, 1]
    assert same.notes == ()
    assert different.notes == (
        (
            "a source has several states of one rank and worker, and they differ (1 times): the"
            " first of each counts"
        ),
    )


def test_ranks_that_read_everything_count_once(tmp_path: Path) -> None:
    content = per_rank(
        *(sampler(indexed(place), world_size=2, rank=rank) for rank, place in enumerate((7, 9)))
    )

    found = _summary(content, nemo_sources(tmp_path, [20]))

    assert found.rows[0].consumed_items == 9
    assert any("items are counted once" in note for note in found.notes)


def test_epochs_of_a_trainer_are_said_and_not_counted(tmp_path: Path) -> None:
    found = _summary(sampler(indexed(2), epoch=3), nemo_sources(tmp_path, [20]))

    assert found.rows[0].consumed_items == 2
    assert any("the trainer is at epoch 3" in note for note in found.notes)


def test_items_in_buffers_are_said(tmp_path: Path) -> None:
    buckets = {"bucket_tokens": [[[1], [2]], [[3]]]}

    found = _summary(sampler(indexed(5), bucketer_state=buckets), nemo_sources(tmp_path, [20]))

    assert any(note.startswith("3 of the items that were read wait") for note in found.notes)


def test_processes_with_other_numbers_of_sources_are_said(tmp_path: Path) -> None:
    content = workers(sampler(indexed(1)), sampler(indexed(1), indexed(2)))

    found = _summary(content, nemo_sources(tmp_path, [20, 20]))

    assert "not all processes have states of as many sources: 1, 2" in found.notes


def test_hours_of_an_entry_are_shared_by_items(tmp_path: Path) -> None:
    config = nemo_sources(tmp_path, [10, 10])
    config[0]["hours"], config[1]["hours"] = 5, 20

    found = _summary(sampler(mixture(indexed(5), indexed(5))), config)

    assert [row.consumed_hours for row in found.rows] == [2.5, 10]
    assert [row.hours_left for row in found.rows] == [2.5, 10]
    assert [row.observed_weight_hours for row in found.rows] == [0.2, 0.8]
    del config[1]["hours"]
    found = _summary(sampler(mixture(indexed(5), indexed(5))), config)
    assert [row.observed_weight_hours for row in found.rows] == [None, None]


@pytest.mark.parametrize("config", [{"some": "thing"}, [], {"input_cfg": []}])
def test_a_config_without_sources_is_an_error(config: Any) -> None:
    with pytest.raises(ConfigError):
        _summary(sampler(indexed(1)), config)


def test_a_config_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SourceNotFoundError):
        _summary(sampler(indexed(1)), str(tmp_path / "none.yaml"))


def test_a_config_of_nemos_own_types_names_its_sources_all_the_same(tmp_path: Path) -> None:
    config = nemo_sources(tmp_path, [5, 6])
    config[0]["type"] = "of_our_lab"

    found = _summary(sampler(mixture(indexed(1), indexed(2))), config)

    assert [(row.dataset, row.total_items) for row in found.rows] == [
        ("corpus-0", 5),
        ("corpus-1", 6),
    ]
    assert found.notes[0].startswith("Playhead cannot train from this config: The input type")


def test_the_summary_can_be_written(tmp_path: Path) -> None:
    config = nemo_sources(tmp_path, [5, 5], tags={"task": "asr"})

    found = _summary(per_rank(sampler(mixture(indexed(1), packed(2)))), config, checkpoint="dir")

    assert found.checkpoint_input == "dir"
    assert found.checkpoint_metadata_loaded == "meta.pt"
    assert found.dataset_specs[1].tags == {"task": "asr"}
    assert found.dataset_specs[1].raw_weight == 2
    assert found.dataset_specs[1].source_path == config[1]["manifest_filepath"]
    for text in (json_text(found), markdown(found), csv_text(found)):
        assert "corpus-1" in text


_FORMS = st.sampled_from(
    ["repeated", "own epoch", "packed", "packed in order", "chain", "files", "said"]
)


class _Process:
    """Reads its part of a source round and round, and says where it is as each form does."""

    def __init__(self, form: str, files: list[int], shard: int, shards: int) -> None:
        self.form, self.files, self.shard, self.shards = form, files, shard, shards
        self.total = sum(files)
        by_file = form in {"packed in order", "files"}
        self.parts = [len(range(shard, n, shards)) for n in (files if by_file else [self.total])]
        self.read = 0

    def state(self) -> Any:
        own = sum(self.parts)
        # A pass begins when its first item is read.
        passes, place = divmod(self.read, own) if own else (0, 0)
        if passes and not place:
            passes, place = passes - 1, own
        plain = indexed(place, self.shard, self.shards)
        match self.form:
            case "repeated":
                return repeated(plain, passes)
            case "own epoch":
                return repeated({**plain, "epoch": passes}, passes)
            case "said":
                return {"source": repeated({**plain, "range": {"n": self.total}}, passes)}
            case "packed":
                return repeated(packed(place, self.shard, self.shards, passes=passes), passes)
            case "chain":
                mixed = {"global_seed": 5, "global_position": place, "num_iters": passes}
                ids = {"global_shard_id": self.shard, "global_num_shards": self.shards}
                files = chain(*[indexed(0)] * len(self.files))
                return repeated({**files, **mixed, **ids}, passes)
            case _:
                return repeated(self._in_files(place), passes)

    def _in_files(self, place: int) -> Any:
        file = 0
        while file + 1 < len(self.parts) and place > self.parts[file]:
            place -= self.parts[file]
            file += 1
        if self.form == "files":
            states = [indexed(0, None, None)] * len(self.files)
            states[file] = indexed(place, self.shard, self.shards)
            return chain(*states, current=file)
        return packed(0, self.shard, self.shards, seed=None, file=file, in_file=place)


@given(data=st.data(), ranks=st.integers(1, 3), num_workers=st.integers(1, 3))
def test_what_was_read_in_a_simulated_run_is_what_is_said(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, ranks: int, num_workers: int
) -> None:
    folder = tmp_path_factory.mktemp("run")
    shapes = data.draw(
        st.lists(
            st.tuples(_FORMS, st.lists(st.integers(1, 20), min_size=1, max_size=3)),
            min_size=1,
            max_size=4,
        )
    )
    shards = ranks * num_workers
    processes = [
        [_Process(form, files, shard, shards) for form, files in shapes] for shard in range(shards)
    ]
    rng = random.Random(data.draw(st.integers(0, 2**32)))
    for process in processes:
        for _ in range(rng.randrange(150)):
            one = rng.choice(process)
            # A process without a part of a source has nothing to read of it.
            one.read += bool(sum(one.parts))
    config = [
        {
            "type": "nemo",
            "corpus": f"c{number}",
            "manifest_filepath": [
                str(write_records(folder / f"{number}-{file}.jsonl", count))
                for file, count in enumerate(files)
            ],
        }
        for number, (_, files) in enumerate(shapes)
    ]
    content = per_rank(
        *(
            workers(
                *(
                    sampler(mixture(*(one.state() for one in processes[rank * num_workers + w])))
                    for w in range(num_workers)
                )
            )
            for rank in range(ranks)
        )
    )

    found = _summary(content, config)

    assert [row.consumed_items for row in found.rows] == [
        sum(process[number].read for process in processes) for number in range(len(shapes))
    ]
    assert sum(row.observed_weight or 0 for row in found.rows) == pytest.approx(
        1 if any(one.read for process in processes for one in process) else 0
    )
