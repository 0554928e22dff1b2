"""Stores and networks that fail: the right bytes, or an error that says what happened, in time."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import numpy as np
import pytest

from playhead.errors import DataError, SourceNotFoundError, StorageError
from playhead.storage import access
from playhead.storage.base import ByteRange, Stat
from playhead.storage.failures import said
from support import servers
from support.fault_proxy import FaultProxy, Faults

DATA = np.random.default_rng(2).bytes(2_000_000)
QUICK = {
    "PLAYHEAD_STORAGE_DEADLINE_SECONDS": "3",
    "PLAYHEAD_STORAGE_REQUEST_SECONDS": "0.3",
    "PLAYHEAD_STORAGE_TRIES": "3",
}
PASSING = ("reset", "reset_inside", "cut", "short", "long", "other_range", "garbage", "429", "500")
PASSING = (*PASSING, "503", "silence", "stall")


@pytest.fixture(scope="module")
def web(tmp_path_factory):
    root = tmp_path_factory.mktemp("www")
    (root / "a.bin").write_bytes(DATA)
    (root / "empty.bin").write_bytes(b"")
    with (
        servers.caddy(root, logs=tmp_path_factory.mktemp("logs")) as server,
        FaultProxy(server.port) as proxy,
    ):
        yield server, proxy


@pytest.fixture
def proxy(web, monkeypatch):
    servers.use(monkeypatch, QUICK)
    web[1].set(Faults())
    web[1].forget()
    return web[1]


def read(proxy):
    uri = f"{proxy.url}/a.bin"
    return access.read_many([ByteRange(uri, 10, 1000), ByteRange(uri, 1_500_000, 50_000)])


RIGHT = [DATA[10:1010], DATA[1_500_000:1_550_000]]


@pytest.mark.parametrize("kind", PASSING)
def test_what_passes_is_tried_again(proxy, kind):
    proxy.set(Faults(share=1, kinds=(kind,), tries=1))
    assert read(proxy) == RIGHT
    assert access.read_files([f"{proxy.url}/a.bin"]) == [DATA]
    assert proxy.seen().faults[kind] >= 3


@pytest.mark.parametrize("kind", PASSING)
def test_what_does_not_pass_is_named_in_time(proxy, kind):
    proxy.set(Faults(share=1, kinds=(kind,)))
    begin = time.monotonic()
    with pytest.raises(StorageError, match=r"/a\.bin") as raised:
        read(proxy)
    # A bound, and not a time to be kept: without a deadline it would be minutes.
    assert time.monotonic() - begin < 20
    assert "tried" in str(raised.value) or "times" in str(raised.value)
    assert proxy.seen().requests <= 2 * 3 + 2 * 3
    if kind.isdigit():
        assert kind in str(raised.value)


def test_a_deadline_ends_what_would_take_longer(proxy, monkeypatch):
    servers.use(monkeypatch, {**QUICK, "PLAYHEAD_STORAGE_REQUEST_SECONDS": "60"})
    proxy.set(Faults(share=1, kinds=("silence",)))
    begin = time.monotonic()
    with pytest.raises(StorageError, match=r"within 3 s.*/a\.bin"):
        read(proxy)
    assert time.monotonic() - begin < 20


@pytest.mark.parametrize(("kind", "error"), [("403", StorageError), ("404", SourceNotFoundError)])
def test_a_refusal_is_not_tried_again(proxy, kind, error):
    proxy.set(Faults(share=1, kinds=(kind,)))
    with pytest.raises(error):
        access.read_ranges(f"{proxy.url}/a.bin", [0], [10])
    assert proxy.seen().requests == 1


def test_who_may_only_get_objects_looks_at_them_all_the_same(web, proxy):
    uris = [f"{proxy.url}/{name}" for name in ("a.bin", "empty.bin")]
    # The server says the same of an object whichever way it is asked.
    direct, _ = access.stats([f"{web[0].url}/{name}" for name in ("a.bin", "empty.bin")])
    proxy.set(Faults(share=1, kinds=("403",), only="^HEAD "))
    assert access.stats(uris) == [direct, Stat(0, access.stats(uris)[1].version)]
    with pytest.raises(DataError, match="ends early"):
        access.read_ranges(uris[0], [len(DATA) - 1], [2])
    assert list(access.stream(uris[1])) == []
    proxy.set(Faults(share=1, kinds=("no_range",)))
    access._store.cache_clear()
    assert not access.has_ranges(uris[0])
    proxy.set(Faults(share=1, kinds=("403",)))
    with pytest.raises(StorageError, match="denied"):
        access.stats(uris)


@pytest.mark.parametrize("scheme", ["s3", "http"])
def test_an_error_names_the_server_that_nobody_can_reach(monkeypatch, scheme):
    (port,) = servers.free_ports(1)
    server = f"http://127.0.0.1:{port}"
    keys = {"AWS_ENDPOINT_URL": server, "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    keys["PLAYHEAD_STORAGE_UNREACHED_SECONDS"] = "30"
    servers.use(monkeypatch, {**QUICK, **keys})
    folder = "s3://bucket" if scheme == "s3" else server
    failed = rf" at {server} failed 3 times in .*: no connection could be made \({folder}/a\)"
    with pytest.raises(StorageError, match=failed) as raised:
        access.stats([f"{folder}/a"])
    assert raised.value.__suppress_context__, "the library's own words are printed as well"
    with pytest.raises(StorageError, match=rf" at {server} failed: .* moment ago .*/b\)"):
        access.stats([f"{folder}/b"])


def test_an_error_names_the_host_that_nobody_knows():
    # As the library writes it.
    text = 'Error performing HEAD http://me:secret@a.invalid/b in 1 ms - kind: Connect, "dns error"'
    assert said(OSError(text)).endswith("(nobody knows the host a.invalid)")


def test_a_server_that_ignores_a_range_once_is_asked_again(proxy):
    assert access.has_ranges(f"{proxy.url}/a.bin")
    proxy.set(Faults(share=1, kinds=("no_range",), tries=1))
    assert read(proxy) == RIGHT
    assert access.has_ranges(f"{proxy.url}/a.bin")


def test_a_stream_goes_through_faults(proxy, monkeypatch):
    servers.use(monkeypatch, {"PLAYHEAD_STORAGE_REQUEST_SECONDS": "0.3"})
    proxy.set(Faults(share=0.15, kinds=PASSING, seed=4))
    assert b"".join(access.stream(f"{proxy.url}/a.bin", 0, 50_000)) == DATA
    assert proxy.seen().faults.total() >= 3


def test_a_stream_of_whole_objects_goes_on_after_cuts(proxy, monkeypatch):
    # The server ignores ranges, and cuts its answers half of the time.
    proxy.set(Faults(share=1, kinds=("no_range",)))
    uri = f"{proxy.url}/a.bin"
    assert not access.has_ranges(uri)
    proxy.set(Faults(share=0.6, kinds=("cut", "reset_inside", "503"), seed=3))
    proxy.forget()
    assert b"".join(access.stream(uri, 1000, 300_000)) == DATA[1000:]
    assert proxy.seen().faults.total() >= 1


def test_a_stream_that_is_always_cut_ends_with_an_error(proxy):
    proxy.set(Faults(share=1, kinds=("no_range",)))
    uri = f"{proxy.url}/a.bin"
    assert not access.has_ranges(uri)
    proxy.set(Faults(share=1, kinds=("cut",)))
    with pytest.raises(StorageError, match=r"cut 3 times.*a\.bin, byte 1000000"):
        list(access.stream(uri, 0, 100_000))


TRICKLE = """
import sys
from playhead.storage import access
assert not access.has_ranges(sys.argv[1])
print(next(access.stream(sys.argv[1])))
"""


def test_an_answer_that_trickles_holds_up_neither_a_stream_nor_the_end_of_the_process(proxy):
    proxy.set(Faults(share=1, kinds=("no_range",), bytes_per_second=200))
    ended = subprocess.run(
        [sys.executable, "-c", TRICKLE, f"{proxy.url}/a.bin"],
        env={**os.environ, **QUICK},
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=60,  # the object takes hours
    )
    assert f"StorageError: The server at {proxy.url} did not answer within 3 s" in ended.stderr


def test_an_object_that_is_replaced_while_it_is_streamed_is_noticed(web, proxy, tmp_path):
    path = web[0].root / "b.bin"
    path.write_bytes(DATA)
    stream = access.stream(f"{proxy.url}/b.bin", 0, 100_000)
    assert next(stream) == DATA[:100_000]
    new = web[0].root / "c.bin"
    new.write_bytes(DATA[::-1])
    new.replace(path)
    with pytest.raises(DataError, match=r"replaced.*b\.bin"):
        list(stream)


def test_requests_go_out_together_and_not_too_many(web, monkeypatch):
    servers.use(monkeypatch, {"PLAYHEAD_STORAGE_CONCURRENCY": "10"})
    with FaultProxy(web[0].port) as proxy:
        proxy.set(Faults(latency=0.1))
        uri = f"{proxy.url}/a.bin"
        offsets = [number * 100_000 for number in range(20)]
        found = access.read_ranges(uri, offsets, [100] * 20)
        seen = proxy.seen()
    assert found == [DATA[offset : offset + 100] for offset in offsets]
    assert seen.requests == 20
    assert 5 <= seen.at_once <= 10


def test_a_server_that_is_not_there_is_named(monkeypatch):
    servers.use(monkeypatch, QUICK)
    (port,) = servers.free_ports(1)
    with pytest.raises(StorageError, match=rf"no connection.*127\.0\.0\.1:{port}/a\.bin"):
        access.size(f"http://127.0.0.1:{port}/a.bin")


def test_retries_leave_the_random_numbers_of_everybody_alone(proxy):
    import random

    random.seed(5)
    expected = random.random()
    random.seed(5)
    proxy.set(Faults(share=1, kinds=("503",), tries=1))
    assert read(proxy) == RIGHT
    assert random.random() == expected
