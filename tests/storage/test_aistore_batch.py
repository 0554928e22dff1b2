"""Batches of AIStore: whatever goes wrong, every request gets its own bytes or an error."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.errors import StorageError
from playhead.storage.ais_batch_answer import BatchAnswer, answer_name
from playhead.storage.ais_objects import Wanted
from playhead.storage.aistore import AIStore
from playhead.storage.base import ByteRange
from support.ais_emulator import AisEmulator
from support.ais_sdk_checks import a_tar
from support.impatience import be_impatient

pytest.importorskip("aistore")

MEMBERS = {f"d/{number:02}.flac": random.Random(number).randbytes(200) for number in range(20)}
LONG = "d/" + "x" * 150 + ".flac"
MEMBERS[LONG] = b"long"
BLOB = random.Random(7).randbytes(5000)
TAR, OBJECT = "ais://batches/a/0.tar", "ais://batches/b ü.bin"
WANTED = [
    *(Wanted(TAR, name) for name in MEMBERS),
    Wanted(OBJECT),
    # The same sample may be in a batch twice.
    Wanted(TAR, LONG),
    Wanted(OBJECT),
]
RANGES = [Wanted(OBJECT, "", 10 * number, 7 + number % 3) for number in range(30)]


def expected(wanted):
    data = MEMBERS[wanted.member] if wanted.member else BLOB
    return data[wanted.offset :][: wanted.size]


@pytest.fixture(autouse=True)
def _objects(ais):
    fill(ais)


def fill(server):
    server.put("batches", "a/0.tar", a_tar(MEMBERS))
    server.put("batches", "b ü.bin", BLOB)


def check(wanted):
    assert AIStore().batch(wanted) == [expected(one) for one in wanted]


def test_everything_comes_in_one_request_and_nothing_twice(ais):
    check([*WANTED, *RANGES])
    counts = ais.counts()
    assert (counts["batch"], counts.get("get", 0)) == (1, 0)
    assert counts["batch entries"] == len(MEMBERS) + 1 + len(RANGES)


def test_one_alone_needs_no_batch(ais):
    check(WANTED[:1] * 3)
    assert ais.counts().get("batch", 0) == 0


FAULTS = [
    {"what": "status", "status": 503},
    {"what": "status", "status": 429},
    {"what": "status", "status": 400},
    {"what": "status", "status": 404},
    {"what": "status", "status": 501},
    {"what": "delay", "seconds": 1.0},
    {"what": "disorder"},
    *(
        {"what": "cut", "at": at, "after": after, "ending": ending}
        for at, after in (("start", 0), ("inside", 0), ("inside", 5), ("member", 5))
        for ending in ("clean", "reset")
    ),
    {"what": "stall", "at": "start", "seconds": 1.0},
    {"what": "stall", "at": "inside", "after": 5, "seconds": 1.0},
]


def as_words(fault):
    return "-".join(map(str, fault.values()))


@pytest.mark.parametrize("times", [1, -1], ids=["once", "for ever"])
@pytest.mark.parametrize("fault", FAULTS, ids=as_words)
def test_a_batch_that_fails_is_made_up_for(ais, fault, times):
    ais.fault(on="batch", times=times, **fault)
    check(WANTED)


@pytest.mark.parametrize("fault", FAULTS, ids=as_words)
def test_ranges_in_a_batch_that_fails_are_made_up_for(ais, fault):
    if fault["what"] == "disorder":
        pytest.skip("ranges of one object and of one size have nothing but their order")
    ais.fault(on="batch", times=1, **fault)
    check([*WANTED, *RANGES])


def test_ranges_of_several_sizes_are_told_apart_in_any_order(ais):
    ais.fault(on="batch", what="disorder")
    check([Wanted(OBJECT, "", 3 * number, 1 + number) for number in range(20)])
    assert ais.counts().get("get", 0) == 0


def test_ranges_of_one_size_that_are_read_together_are_told_apart_in_any_order(ais):
    big = random.Random(3).randbytes(1 << 20)
    ais.put("batches", "big.bin", big)
    ais.fault(on="batch", what="disorder")
    spans = [ByteRange("ais://batches/big.bin", 100_000 * number, 500) for number in range(10)]
    read = AIStore().read_together(spans)
    assert read == [big[start : start + size] for _, start, size in spans]
    assert ais.counts().get("get", 0) == 0


def test_a_batch_that_was_cut_is_asked_for_what_it_left_out(ais):
    ais.fault(on="batch", what="cut", at="member", after=15, times=1)
    check(WANTED)
    counts = ais.counts()
    distinct = len(MEMBERS) + 1
    assert (counts["batch"], counts.get("get", 0)) == (2, 0)
    assert counts["batch entries"] == distinct + (distinct - 15)


@pytest.mark.parametrize(
    "fault", [{"what": "status"}, {"what": "cut", "at": "inside"}, {"what": "delay", "seconds": 1}]
)
def test_a_server_that_gives_nothing_is_named_in_time(ais, fault):
    ais.fault(on="batch", **fault)
    ais.fault(on="get", **fault)
    begin = time.monotonic()
    with pytest.raises(StorageError, match=r"AIStore at .* \(ais://batches/"):
        AIStore().batch(WANTED)
    assert time.monotonic() - begin < 15


def test_what_the_cluster_has_not_yet_is_fetched(ais):
    names = [f"cold/{number}" for number in range(40)]
    for name in names:
        ais.put("lake", name, name.encode(), provider="s3", present=False)
    wanted = [Wanted(f"s3://lake/{name}") for name in names]
    found = [name.encode() for name in names]
    assert AIStore().batch(wanted) == found
    # And then is there for batches.
    before = ais.counts()
    assert AIStore().batch(wanted) == found
    assert ais.counts()["get"] == before["get"]


@pytest.mark.parametrize("count", [3, 9])
def test_what_exists_nowhere_is_nothing_and_the_rest_comes(ais, count):
    # More of them than a batch may lack end it.
    absent = [Wanted("ais://batches/none.tar", str(one)) for one in range(count)]
    absent += [Wanted(TAR, "gone.flac"), Wanted("ais://batches/none")]
    found = AIStore().batch([*absent, *WANTED])
    assert found == [None] * len(absent) + [expected(one) for one in WANTED]


def test_what_nobody_says_is_missing_is_an_error(ais):
    ais.fault(on="get", what="status", status=503, name="none.tar")
    with pytest.raises(StorageError, match=r"503.*none\.tar/x"):
        AIStore().batch([*WANTED, Wanted("ais://batches/none.tar", "x")])


@pytest.mark.parametrize("way", ["batch", "get"])
@pytest.mark.parametrize("dotted", [True, False])
def test_a_dot_before_a_name_makes_no_other_name(ais, way, dotted):
    bare = {"a.flac": b"1", "d/b.flac": b"22", "c.flac": b"333"}
    there = {f"./{name}": data for name, data in bare.items()}
    tar = ais.put("batches", f"dotted{dotted}.tar", a_tar(there if dotted else bare))
    wanted = [Wanted(tar, name) for name in (bare if dotted else there)]
    store = AIStore()
    read = getattr(store, way)
    assert read(wanted) == list(bare.values())
    ais.heal()
    assert read(wanted) == list(bare.values())
    if way == "batch":
        # By now it knows how the archive writes them.
        assert (ais.counts()["batch"], ais.counts().get("get", 0)) == (1, 0)
    assert read([*wanted, Wanted(tar, "nowhere")])[-1] is None
    ais.heal()
    ais.fault(on="get", what="status", status=503)
    with pytest.raises(StorageError, match="503"):
        store.get(wanted)


def test_an_empty_object_is_empty(ais):
    ais.put("batches", "empty", b"")
    assert AIStore().batch([*WANTED[:3], Wanted("ais://batches/empty")])[-1] == b""


def test_a_server_that_knows_no_batches_is_asked_once(ais):
    ais.fault(on="batch", what="status", status=404)
    store = AIStore()
    for _ in range(3):
        assert store.batch(WANTED[:4]) == [expected(one) for one in WANTED[:4]]
    assert ais.counts()["batch"] == 1


def test_a_server_that_knows_no_ranges_in_batches_is_asked_for_each(old_ais_server, monkeypatch):
    fill(old_ais_server)
    be_impatient(monkeypatch, old_ais_server)
    store = AIStore()
    wanted = [*WANTED, *RANGES]
    assert store.batch(wanted) == [expected(one) for one in wanted]
    assert store.batches.know_ranges is False
    old_ais_server.heal()
    assert store.batch(wanted) == [expected(one) for one in wanted]
    counts = old_ais_server.counts()
    assert (counts["batch"], counts["batch entries"]) == (1, len(MEMBERS) + 1)


def test_nobody_is_let_in_without_a_token(monkeypatch):
    with AisEmulator(token="let me in") as closed:
        fill(closed)
        be_impatient(monkeypatch, closed)
        with pytest.raises(StorageError, match="Set AIS_AUTHN_TOKEN"):
            AIStore().batch(WANTED)
        monkeypatch.setenv("AIS_AUTHN_TOKEN", "let me in")
        check(WANTED)


MOMENTS = st.lists(
    st.one_of(
        st.sampled_from(range(30)), st.just("strange"), st.just("absent"), st.just("archive")
    ),
    max_size=40,
)


@given(MOMENTS)
def test_no_answer_gives_a_request_the_bytes_of_another(moments):
    wanted = list(dict.fromkeys([*WANTED, *RANGES]))
    answer = BatchAnswer(wanted)
    for moment in moments:
        if moment == "strange":
            answer.take("batches/else", b"else")
        elif moment == "absent":
            answer.take("__404__/" + answer_name(wanted[0]), b"")
        elif moment == "archive":
            answer.take("__404__/batches/a/0.tar", b"")
        else:
            one = wanted[moment % len(MEMBERS)]
            answer.take(answer_name(one), expected(one))
    for one, data in answer.found.items():
        assert data == expected(one)
    assert not answer.absent & answer.found.keys()
    assert set(answer.rest).isdisjoint(answer.found)
    assert not answer.found.keys() - set(wanted)
