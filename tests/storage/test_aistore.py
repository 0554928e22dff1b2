"""AIStore as a store: the right bytes or an error with a name, whatever the server does."""

from __future__ import annotations

import os
import time

import pytest

from playhead.errors import ConfigError, DataError, SourceNotFoundError, StorageError
from playhead.storage import access
from playhead.storage.ais_objects import Wanted
from playhead.storage.aistore import AIStore
from playhead.storage.base import ByteRange
from support.ais_emulator import AisEmulator
from support.ais_sdk_checks import a_tar
from support.certificate import make_certificate
from support.impatience import be_impatient

pytest.importorskip("aistore")

DATA = bytes(range(256)) * 1200


@pytest.fixture(autouse=True)
def _objects(ais):
    ais.put("speech", "x/o #1.bin", DATA)
    ais.put("speech", "t.tar", a_tar({"a.flac": b"123456", "d/b.flac": b"b" * 700}))


OBJECT = "ais://speech/x/o #1.bin"
RANGES = [
    ByteRange(OBJECT, 5, 10),
    ByteRange(OBJECT, 300_000, 50),
    ByteRange(OBJECT, 100, 0),
    ByteRange(OBJECT, 9, 20),
]
BYTES = [DATA[one.offset : one.offset + one.size] for one in RANGES]


def test_objects_are_looked_at_read_streamed_listed_and_written(ais):
    assert access.read_many(RANGES) == BYTES
    assert ais.counts()["get"] == 2, "near ranges come together"
    assert access.size(OBJECT) == len(DATA)
    assert b"".join(access.stream(OBJECT, 100, 7000)) == DATA[100:]
    assert b"".join(access.stream(OBJECT, len(DATA))) == b""
    assert access.list_files("ais://speech/x") == [OBJECT]
    access.write("ais://speech/new", b"written")
    assert access.stats(["ais://speech/new"])[0].size == 7
    before = access.stats(["ais://speech/new"])[0].version
    access.write("ais://speech/new", b"another")
    assert access.stats(["ais://speech/new"])[0].version != before


def test_members_of_archives_come_whole_or_in_part(ais):
    tar = "ais://speech/t.tar"
    wanted = [Wanted(tar, "a.flac"), Wanted(tar, "a.flac", 2, 3), Wanted(tar, "d/b.flac", 1)]
    assert AIStore().get(wanted) == [b"123456", b"345", b"b" * 699]
    with pytest.raises(DataError, match="byte 7 is asked for"):
        AIStore().get([Wanted(tar, "a.flac", 2, 5)])


PASSING = [
    {"what": "status", "status": 503},
    {"what": "status", "status": 429},
    {"what": "delay", "seconds": 1.5},
    {"what": "stall", "seconds": 1.5},
    {"what": "cut", "at": "start"},
    {"what": "cut", "at": "inside"},
    {"what": "cut", "at": "inside", "ending": "reset"},
    {"what": "short"},
]


@pytest.mark.parametrize("fault", PASSING, ids=lambda fault: "-".join(map(str, fault.values())))
def test_a_fault_that_passes_leaves_no_trace(ais, fault):
    ais.fault(on="get", times=1, **fault)
    assert access.read_many(RANGES) == BYTES


@pytest.mark.parametrize("fault", PASSING, ids=lambda fault: "-".join(map(str, fault.values())))
def test_a_fault_that_stays_is_named_in_time(ais, fault):
    ais.fault(on="get", **fault)
    begin = time.monotonic()
    with pytest.raises(StorageError, match=r"AIStore at .* \(ais://speech/x/o #1.bin\)"):
        access.read_many(RANGES)
    assert time.monotonic() - begin < 12


def test_a_stream_goes_on_where_an_answer_broke_off(ais):
    ais.fault(on="get", what="cut", at="inside", times=3)
    assert b"".join(access.stream(OBJECT, 10, 20_000)) == DATA[10:]
    assert ais.counts()["get"] >= 4


def test_an_object_that_changes_while_it_is_streamed_is_noticed(ais):
    ais.put("speech", "changing", DATA)
    ais.fault(on="get", what="cut", at="inside", times=1)
    stream = access.stream("ais://speech/changing", 0, 100_000)
    next(stream)
    ais.put("speech", "changing", DATA[::-1])
    with pytest.raises(DataError, match="changed while it was read"):
        list(stream)


def test_a_server_that_ignores_ranges_is_refused_at_once(ais):
    ais.fault(on="get", what="ignore_range")
    with pytest.raises(StorageError, match="answers a range with the whole object"):
        access.read_many(RANGES)
    assert ais.counts()["get"] <= 2


def test_a_bucket_that_is_not_there_is_no_missing_object(ais):
    for act in (access.read_files, lambda uris: access.read_many([ByteRange(uris[0], 0, 1)])):
        with pytest.raises(StorageError, match=r"no such bucket .*ais://nowhere/none"):
            act(["ais://nowhere/none"])


def test_objects_that_are_not_there_are_left_out_of_whole_ones(ais):
    assert access.read_files(["ais://speech/none", OBJECT]) == [None, DATA]
    ais.fault(on="get", name="none", what="status", status=503)
    with pytest.raises(StorageError, match=r"503.*ais://speech/none"):
        access.read_files(["ais://speech/none", OBJECT])


def test_what_is_not_there_is_named_at_once(ais):
    uri = "ais://speech/none"
    for act in (
        lambda: access.read_many([ByteRange(uri, 0, 1)]),
        lambda: access.size(uri),
        lambda: list(access.stream(uri)),
    ):
        with pytest.raises(SourceNotFoundError, match=uri):
            act()


def test_a_range_behind_the_end_is_no_fault_of_the_server(ais):
    for offset in (len(DATA) - 1, len(DATA)):
        with pytest.raises(DataError):
            access.read_many([ByteRange(OBJECT, offset, 2)])
    assert ais.counts()["get"] == 2


def test_writing_and_listing_are_tried_again(ais):
    ais.fault(on="put", what="status", times=1)
    ais.fault(on="list", what="status", where="proxy", times=1)
    access.write("ais://speech/y/new", b"1")
    assert access.list_files("ais://speech/y") == ["ais://speech/y/new"]


def test_targets_out_of_reach_are_asked_through_the_proxy(ais, monkeypatch):
    import requests

    def raw(self, wanted, span, *, direct):
        if direct:
            asked.append(wanted)
            raise requests.ConnectionError(reachable_error())
        return through_proxy(self, wanted, span, direct=False)

    from urllib3.connectionpool import HTTPConnectionPool
    from urllib3.exceptions import MaxRetryError, NewConnectionError

    from playhead.storage.ais_objects import AisObjects

    def reachable_error():
        pool = HTTPConnectionPool("localhost")
        return MaxRetryError(pool, "/", NewConnectionError(pool, "no route"))

    asked, through_proxy = [], AisObjects._raw
    monkeypatch.setattr(AisObjects, "_raw", raw)
    store = AIStore()
    for _ in range(3):
        assert store.read(RANGES[:1]) == BYTES[:1]
    assert len(asked) == 1


def test_without_an_endpoint_its_variable_is_named(ais, monkeypatch):
    monkeypatch.delenv("AIS_ENDPOINT")
    with pytest.raises(ConfigError, match="AIS_ENDPOINT is not set"):
        access.size(OBJECT)
    monkeypatch.setenv("AIS_ENDPOINT", "http://proxy:51080/v1")
    with pytest.raises(ConfigError, match=r"is no http\(s\)://host:port"):
        access.size(OBJECT)
    monkeypatch.setenv("AIS_ENDPOINT", "http://proxy:51080")
    monkeypatch.setenv("AIS_READ_TIMEOUT", "soon")
    with pytest.raises(ConfigError, match="AIS_READ_TIMEOUT is 'soon'"):
        access.size(OBJECT)


def test_a_server_that_is_not_there_is_named(ais, monkeypatch):
    monkeypatch.setenv("AIS_ENDPOINT", "http://127.0.0.1:9")
    said = r"AIStore at http://127.0.0.1:9 failed 3 times in .* made to 127.0.0.1:9 \(ais://"
    with pytest.raises(StorageError, match=said):
        access.size(OBJECT)


@pytest.mark.parametrize("name", ["s3", "gs", "az"])
def test_buckets_of_others_come_through_aistore_only_where_it_is_meant(ais, monkeypatch, name):
    uri = f"{name}://bucket/key"
    ais.put("bucket", "key", b"behind", provider=name)
    monkeypatch.setenv("USE_AIS_GET_BATCH", "true")
    assert access.size(uri) == 6
    monkeypatch.delenv("AIS_ENDPOINT")
    assert not isinstance(_store_or_none(uri), AIStore)
    monkeypatch.setenv("AIS_ENDPOINT", ais.endpoint)
    monkeypatch.setenv("USE_AIS_GET_BATCH", "false")
    assert not isinstance(_store_or_none(uri), AIStore)


def _store_or_none(uri):
    try:
        return access.store_of(uri)
    except ConfigError:
        return None


def test_tls_tokens_and_what_is_wrong_with_them(tmp_path, monkeypatch):
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    folder = make_certificate(tmp_path)
    with AisEmulator(token="let me in", tls=folder) as ais:
        ais.put("speech", "o", b"secret")
        be_impatient(monkeypatch, ais)
        wanted = [ByteRange("ais://speech/o", 1, 3)]
        begin = time.monotonic()
        with pytest.raises(StorageError, match=r"certificate is not trusted.*Set AIS_CLIENT_CA"):
            AIStore().read(wanted)
        assert time.monotonic() - begin < 10
        monkeypatch.setenv("AIS_CLIENT_CA", str(folder / "cert.pem"))
        with pytest.raises(StorageError, match=r"refuses access.*Set AIS_AUTHN_TOKEN"):
            AIStore().read(wanted)
        monkeypatch.setenv("AIS_AUTHN_TOKEN", "let me in")
        assert AIStore().read(wanted) == [b"ecr"]
        AIStore().write("ais://speech/o", b"written")
        import certifi

        monkeypatch.setenv("REQUESTS_CA_BUNDLE", certifi.where())
        with pytest.raises(StorageError, match="Unset REQUESTS_CA_BUNDLE"):
            AIStore().read(wanted)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_process_that_was_forked_asks_for_itself(ais):
    assert access.read_many(RANGES) == BYTES
    child = os.fork()
    if child == 0:
        os._exit(0 if access.read_many(RANGES) == BYTES else 1)
    assert os.waitpid(child, 0)[1] == 0
