"""Side files that parts of the work make: what one machine makes, each row looked at once."""

from __future__ import annotations

import itertools
import os
import uuid
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.errors import ManifestError
from playhead.index.part_work import Share
from playhead.index.partials import partials_folder
from playhead.tokens import shares
from playhead.tokens.jobs import Stretch
from playhead.tokens.partials import gaps
from playhead.tokens.shares import measure_share, pieces
from playhead.tokens.side_columns import find_columns, open_columns, side_path
from support.token_rows import nemo_leaf, nemo_row, open_pack_of, side_files, write_rows


class Sizes:
    """Notes which rows it is asked for."""

    kind = "sizes"
    columns = {"bytes": np.uint32, "twice": np.uint64}  # noqa: RUF012
    runs_in_threads = True

    def __init__(self, digest: str = "0" * 16) -> None:
        self.digest = digest
        self.asked: list[tuple[int, int]] = []

    def of_rows(self, leaf, pack, stretch):
        self.asked.append(tuple(stretch))
        sizes = pack.row_size[slice(*stretch)].astype(np.uint32)
        return {"bytes": sizes, "twice": 2 * sizes.astype(np.uint64)}


def rows_of(count: int) -> list[dict]:
    return [nemo_row(i, text="x" * (i % 7)) for i in range(count)]


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch):
    monkeypatch.setattr(shares, "_PIECE_BYTES", 200)


@pytest.fixture
def corpus(tmp_path):
    leaf = nemo_leaf(tmp_path, rows_of(40))
    return leaf, open_pack_of(leaf, tmp_path), tmp_path


def part(corpus, number, count, measure=None, **options):
    leaf, pack, _ = corpus
    return measure_share(leaf, pack, measure or Sizes(), Share(number, count), **options)


def rows_asked(*measures):
    return sorted(row for one in measures for asked in one.asked for row in range(*asked))


STRETCHES = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9)), max_size=8)


@given(STRETCHES, st.integers(0, 15), st.integers(0, 30))
def test_gaps_are_the_rows_that_nothing_covers(spans, start, length):
    done = [Stretch(first, first + size) for first, size in spans]
    within = Stretch(start, start + length)
    covered = {row for one in done for row in range(*one)}
    found = list(gaps(done, within))
    assert [row for gap in found for row in range(*gap)] == [
        row for row in range(*within) if row not in covered
    ]
    assert all(one.stop < other.start for one, other in itertools.pairwise(found))
    assert all(gap.start < gap.stop for gap in found)


@given(st.integers(1, 50), st.text("abc", min_size=1, max_size=5))
def test_every_row_is_of_one_part(corpus_rows, count, name):
    pack = corpus_rows
    divided = pieces(pack, Path(name), count)
    assert set(divided) <= set(range(1, count + 1))
    rows = [row for piece in divided.values() for row in range(*piece)]
    assert sorted(rows) == list(range(pack.num_rows))
    sizes = [piece.stop - piece.start for piece in divided.values()]
    assert max(sizes) - min(sizes) <= 1


@pytest.fixture(scope="module")
def corpus_rows(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    return open_pack_of(nemo_leaf(folder, rows_of(40)), folder)


@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_any_division_in_any_order_makes_the_same_bytes_and_looks_at_each_row_once(
    tmp_path_factory, data
):
    folder = tmp_path_factory.mktemp(f"f{uuid.uuid4().hex[:8]}")
    leaf = nemo_leaf(folder, rows_of(data.draw(st.integers(1, 40), "rows")))
    pack = open_pack_of(leaf, folder)
    count = data.draw(st.integers(2, 9), "parts")
    order = data.draw(st.permutations(range(1, count + 1)), "order")
    again = data.draw(st.lists(st.sampled_from(order), max_size=3), "run again")
    open_columns(leaf, pack, Sizes())
    path = side_path(leaf, pack, "sizes", "0" * 16)
    expected = path.read_bytes()
    path.unlink()
    measures = [Sizes() for _ in [*again, *order]]
    for number, measure in zip([*again, *order], measures, strict=True):
        missing = part((leaf, pack, folder), number, count, measure)
        assert number not in missing
    assert missing == ()
    assert path.read_bytes() == expected
    assert rows_asked(*measures) == list(range(pack.num_rows))
    assert not partials_folder(path).exists()


def test_a_part_says_which_others_are_missing(corpus):
    assert part(corpus, 2, 3) == (1, 3)
    assert part(corpus, 2, 3) == (1, 3)
    assert part(corpus, 3, 3) == (1,)
    assert find_columns(*corpus[:2], "sizes", "0" * 16) is None
    assert part(corpus, 1, 3) == ()
    assert part(corpus, 2, 3) == ()


def test_one_machine_and_other_numbers_of_parts_use_what_is_there(corpus):
    leaf, pack, _ = corpus
    first, second, rest = Sizes(), Sizes(), Sizes()
    part(corpus, 2, 3, first)
    part(corpus, 4, 5, second)
    open_columns(leaf, pack, rest)
    assert rows_asked(first, second, rest) == list(range(40))
    assert rest.asked
    assert not partials_folder(side_path(leaf, pack, "sizes", rest.digest)).exists()


def test_a_damaged_partial_is_said_and_looked_at_again(corpus, caplog):
    leaf, pack, folder = corpus
    part(corpus, 1, 2)
    (victim,) = folder.rglob("*.parts/*.arrow")
    victim.write_bytes(victim.read_bytes()[:-1])
    measure = Sizes()
    assert part(corpus, 2, 2, measure) == ()
    assert rows_asked(measure) == list(range(40))
    assert str(victim) in caplog.text
    np.testing.assert_array_equal(open_columns(leaf, pack, Sizes())["bytes"], pack.row_size)


def test_what_was_made_of_other_rows_or_with_another_measure_is_never_used(corpus):
    leaf, _, folder = corpus
    part(corpus, 1, 2)
    part(corpus, 1, 2, Sizes("1" * 16))
    write_rows(folder / "m.json", rows_of(39) + rows_of(1))
    new = (leaf, open_pack_of(leaf, folder), folder)
    assert part(new, 2, 2) == (1,)
    assert part(new, 2, 2, Sizes("1" * 16)) == (1,)


def test_rows_that_are_appended_are_all_that_parts_look_at(corpus):
    leaf, pack, folder = corpus
    open_columns(leaf, pack, Sizes())
    write_rows(folder / "m.json", rows_of(60))
    new = (leaf, open_pack_of(leaf, folder), folder)
    measures = [Sizes() for _ in range(3)]
    for number, measure in enumerate(measures, 1):
        missing = part(new, number, 3, measure)
    assert missing == ()
    assert rows_asked(*measures) == list(range(40, 60))


def test_force_looks_at_all_rows_again_and_replaces_the_file_at_the_end(corpus):
    leaf, pack, _ = corpus
    for number in (1, 2):
        part(corpus, number, 2)
    path = side_path(leaf, pack, "sizes", "0" * 16)
    os.utime(path, (1, 1))
    first, second, twin = Sizes(), Sizes(), Sizes()
    assert part(corpus, 1, 2, first, force=True) == (2,)
    assert path.stat().st_mtime == 1
    assert part(corpus, 2, 2, second, force=True) == ()
    assert rows_asked(first, second) == list(range(40))
    assert path.stat().st_mtime > 1
    assert part(corpus, 2, 2, twin, force=True) == (1,)


def test_a_bad_row_fails_in_its_part_alone(corpus):
    class Picky(Sizes):
        def of_rows(self, leaf, pack, stretch):
            if 39 in range(*stretch):
                raise ManifestError("no", where="row 39")
            return super().of_rows(leaf, pack, stretch)

    leaf, pack, _ = corpus
    divided = pieces(pack, side_path(leaf, pack, "sizes", "0" * 16), 2)
    (bad,) = [number for number, piece in divided.items() if 39 in range(*piece)]
    with pytest.raises(ManifestError, match="row 39"):
        part(corpus, bad, 2, Picky())
    assert part(corpus, 3 - bad, 2, Picky()) == (bad,)


def test_a_twin_that_comes_late_leaves_nothing(corpus):
    leaf, pack, folder = corpus
    part(corpus, 1, 2)

    class Late(Sizes):
        def of_rows(self, *arguments):
            if not side_files(folder):
                assert part(corpus, 2, 2) == ()
            return super().of_rows(*arguments)

    assert part(corpus, 2, 2, Late()) == ()
    path = side_path(leaf, pack, "sizes", "0" * 16)
    assert not partials_folder(path).exists()
