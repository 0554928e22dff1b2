"""Objects of real servers: every call, what is not there, and what one is not allowed to see."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.errors import (
    ConfigError,
    DataError,
    NotSupportedError,
    SourceNotFoundError,
    StorageError,
)
from playhead.storage import access
from playhead.storage.base import ByteRange, NoRangesError
from playhead.storage.objects import ObjectStores
from support import servers
from support.fault_proxy import FaultProxy, Faults

DATA = np.random.default_rng(1).bytes(3_000_000)
NAMES = ("plain.bin", "a folder/b c+d=e#f%20g&h.bin", "ü/ß.bin")


@pytest.fixture(scope="module")
def web(tmp_path_factory):
    root = tmp_path_factory.mktemp("www")
    for name in NAMES:
        (root / "bucket" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "bucket" / name).write_bytes(DATA)
    (root / "bucket" / "empty").write_bytes(b"")
    with servers.caddy(root, logs=tmp_path_factory.mktemp("logs")) as server:
        yield server


@pytest.fixture(scope="module")
def bucket(seaweed):
    for name in NAMES:
        seaweed.put("objects", name, DATA)
    seaweed.put("objects", "empty", b"")
    return "s3://objects"


@pytest.fixture(params=["s3", "http", "gs", "az"])
def base(request, monkeypatch):
    """Where the objects lie; requests of all four kinds are understood by real servers."""
    if request.param == "s3":
        seaweed = request.getfixturevalue("seaweed")
        servers.use(monkeypatch, seaweed.environment())
        return request.getfixturevalue("bucket")
    web = request.getfixturevalue("web")
    account = {"gcs_base_url": web.url, "disable_oauth": True, "client_email": ""}
    account |= {"private_key": "", "private_key_id": ""}
    servers.use(
        monkeypatch,
        {
            "GOOGLE_SERVICE_ACCOUNT_KEY": json.dumps(account),
            "GOOGLE_ALLOW_HTTP": "true",
            "AZURE_STORAGE_ACCOUNT_NAME": "account",
            "AZURE_STORAGE_ENDPOINT": web.url,
        },
    )
    return f"{web.url}/bucket" if request.param == "http" else f"{request.param}://bucket"


def uri_of(base, name):
    from urllib.parse import quote

    return f"{base}/{quote(name) if base.startswith('http') else name}"


def test_ranges_come_in_the_order_asked_for(base):
    uris = [uri_of(base, name) for name in NAMES]
    asked = [
        ByteRange(uris[1], 2_000_000, 10),
        ByteRange(uris[0], 5, 100),
        ByteRange(uris[2], len(DATA) - 1, 1),
        ByteRange(uris[0], 90, 200_000),
        ByteRange(uris[0], 7, 0),
        ByteRange(uris[1], 0, 1),
    ]
    found = access.read_many(asked)
    assert found == [DATA[one.offset : one.offset + one.size] for one in asked]
    assert all(type(one) is bytes for one in found)


def test_stats_are_sizes_and_versions(base):
    found = access.stats([uri_of(base, name) for name in (*NAMES, "empty", NAMES[0])])
    assert [one.size for one in found] == [len(DATA)] * 3 + [0, len(DATA)]
    assert found[0] == found[-1]
    assert all(0 < one.version < 2**63 for one in found)


def test_files_are_read_whole(base):
    uris = [uri_of(base, name) for name in (NAMES[1], "empty", NAMES[0])]
    assert access.read_files(uris) == [DATA, b"", DATA]


@pytest.mark.parametrize("start", [0, 1, 1_000_000, len(DATA) - 1, len(DATA), len(DATA) + 7])
def test_a_stream_has_blocks_of_one_size_and_ends(base, start):
    blocks = list(access.stream(uri_of(base, NAMES[0]), start, 1 << 20))
    assert b"".join(blocks) == DATA[start:]
    assert all(len(block) == 1 << 20 for block in blocks[:-1])
    assert b"" not in blocks


def test_a_stream_of_nothing_is_empty(base):
    assert list(access.stream(uri_of(base, "empty"))) == []


def test_a_stream_may_be_left(base):
    with closing(access.stream(uri_of(base, NAMES[0]), 0, 1 << 18)) as stream:
        assert next(stream) == DATA[: 1 << 18]


def test_what_is_not_there_is_named(base):
    gone = f"{base}/gone.bin"
    for call in (
        lambda: access.stats([uri_of(base, NAMES[0]), gone]),
        lambda: access.read_many([ByteRange(gone, 0, 1)]),
        lambda: list(access.stream(gone)),
    ):
        with pytest.raises(SourceNotFoundError, match=r"gone\.bin"):
            call()
    assert access.read_files([gone, uri_of(base, NAMES[0])]) == [None, DATA]


@pytest.mark.parametrize("offset", [len(DATA) - 5, len(DATA), len(DATA) + 100])
def test_an_object_that_ends_early_is_no_failure_of_the_server(base, offset):
    with pytest.raises(DataError, match=rf"ends early.*plain\.bin, byte {offset}"):
        access.read_many([ByteRange(uri_of(base, NAMES[0]), offset, 10)])


def test_an_empty_object_has_no_ranges_and_its_server_has(base):
    with pytest.raises(DataError, match="empty"):
        access.read_many([ByteRange(f"{base}/empty", 0, 10)])
    assert access.has_ranges(f"{base}/empty")
    assert access.read_ranges(uri_of(base, NAMES[0]), [1], [2]) == [DATA[1:3]]


def test_objects_are_listed_at_any_depth(seaweed, s3, bucket):
    expected = [f"{bucket}/{name}" for name in sorted([*NAMES, "empty"])]
    assert access.list_files(bucket + "/") == access.list_files(f"{bucket}/") == expected
    assert access.list_files(f"{bucket}/a folder") == [f"{bucket}/{NAMES[1]}"]
    assert access.list_files(f"{bucket}/a") == []


def test_a_web_server_has_no_listing(web, monkeypatch):
    servers.use(monkeypatch, {})
    with pytest.raises(NotSupportedError, match="Name the files"):
        access.list_files(f"{web.url}/bucket")


def test_what_is_written_is_there_and_replaces_what_was(s3):
    uri = "s3://objects-new/a b/x.bin"
    for data in (b"first", DATA * 3, b""):
        access.write(uri, data)
        assert access.read_files([uri]) == [data]


def test_many_objects_of_a_folder_are_looked_at_by_its_listing(seaweed, monkeypatch):
    names = [f"many/{number:04d}.bin" for number in range(300)]
    with ThreadPoolExecutor(16) as pool:
        sizes = [b"x" * (number % 7) for number in range(len(names))]
        list(pool.map(seaweed.put, ["objects-many"] * len(names), names, sizes))
    uris = [f"s3://objects-many/{name}" for name in names]
    with FaultProxy(seaweed.port) as proxy:
        servers.use(monkeypatch, seaweed.environment(proxy.url))
        listed = access.stats(uris[50:])
        assert [one.size for one in listed] == [number % 7 for number in range(50, 300)]
        asked = Counter(one.partition(" ")[0] for one in proxy.seen().asked)
        assert asked["HEAD"] == 0
        assert asked["GET"] <= 4
        proxy.forget()
        # A few of many are not looked for among all.
        one_by_one = access.stats(uris[::10])
        assert Counter(one.partition(" ")[0] for one in proxy.seen().asked) == {"HEAD": 30}
        by_uri = dict(zip(uris[50:], listed, strict=True))
        assert one_by_one[5:] == [by_uri[uri] for uri in uris[50::10]]
        with pytest.raises(SourceNotFoundError, match="many/9999"):
            access.stats([*uris, "s3://objects-many/many/9999.bin"])


def test_who_gives_no_credentials_reads_what_is_public_and_no_more(seaweed, monkeypatch):
    seaweed.put("public", "a.bin", b"for all")
    seaweed.put("objects", "secret.bin", b"not for all")
    environment = {"AWS_ENDPOINT_URL": seaweed.endpoint, "HOME": "/nowhere"}
    servers.use(monkeypatch, environment)
    assert access.read_files(["s3://public/a.bin"]) == [b"for all"]
    for call in (access.size, lambda uri: access.read_ranges(uri, [0], [3])):
        with pytest.raises(StorageError, match=r"denied.*secret\.bin.*AWS_ACCESS_KEY_ID"):
            call("s3://objects/secret.bin")


def test_credentials_may_come_from_the_files_of_the_aws_tools(seaweed, monkeypatch, tmp_path):
    seaweed.put("objects", "secret.bin", b"not for all")
    credentials = tmp_path / ".aws" / "credentials"
    credentials.parent.mkdir()
    credentials.write_text(
        f"[team]\naws_access_key_id = {servers.ACCESS_KEY}\n"
        f"aws_secret_access_key = {servers.SECRET_KEY}\n"
    )
    (tmp_path / ".aws" / "config").write_text(f"[profile team]\nendpoint_url={seaweed.endpoint}\n")
    servers.use(monkeypatch, {"HOME": str(tmp_path), "AWS_PROFILE": "team"})
    assert access.read_files(["s3://objects/secret.bin"]) == [b"not for all"]


def test_a_bucket_that_is_missing_is_no_missing_object(s3):
    with pytest.raises(StorageError, match=r"bucket does not exist.*s3://no-such-bucket/a"):
        access.read_ranges("s3://no-such-bucket/a", [0], [1])
    for _ in range(2):
        with pytest.raises(StorageError, match=r"bucket does not exist.*s3://no-such-bucket/b"):
            access.stats(["s3://no-such-bucket/b"])


def test_whether_a_bucket_is_there_is_asked_once(seaweed, monkeypatch):
    seaweed.put("objects", "plain.bin", b"x")
    with FaultProxy(seaweed.port) as proxy:
        servers.use(monkeypatch, seaweed.environment(proxy.url))
        for number in range(3):
            with pytest.raises(SourceNotFoundError):
                access.stats([f"s3://objects/gone-{number}"])
        assert proxy.seen().requests == 3 + 1


def test_wrong_credentials_are_refused_at_once(seaweed, monkeypatch):
    environment = {**seaweed.environment(), "AWS_SECRET_ACCESS_KEY": "wrong"}
    with FaultProxy(seaweed.port) as proxy:
        servers.use(monkeypatch, {**environment, "AWS_ENDPOINT_URL": proxy.url})
        with pytest.raises(StorageError, match=r"denied.*s3://objects/x"):
            access.read_ranges("s3://objects/x", [0], [1])
        assert proxy.seen().requests == 1


@pytest.mark.parametrize("uri", ["s3://objects", "s3://objects/", "s3://objects/plain.bin/"])
def test_a_bucket_and_a_folder_are_no_objects(s3, uri):
    assert access.read_files([uri]) == [None]
    for read in (access.stats, lambda uris: next(access.stream(uris[0]))):
        with pytest.raises(NotSupportedError, match="not an object"):
            read([uri])
    with pytest.raises(NotSupportedError, match="not an object"):
        access.read_ranges(uri, [0], [3])


@pytest.mark.parametrize("uri", ["s3://a bucket/x", "http://a host/x"])
def test_a_name_that_no_request_can_have_is_refused(uri, monkeypatch):
    servers.use(monkeypatch, {})
    with pytest.raises(ConfigError, match=uri[:9]):
        access.read_files([uri])


@pytest.mark.parametrize(
    "uri", ["s3://bucket//x", "s3://bucket/a/../x", "s3:///x", "http:///a", "http://[::1/a"]
)
def test_a_uri_that_names_no_object_is_refused(uri, monkeypatch):
    servers.use(monkeypatch, {})
    with pytest.raises(NotSupportedError, match=re.escape(uri)):
        access.stats([uri])
    with pytest.raises(NotSupportedError, match=re.escape(uri)):
        access.read_ranges(uri, [0], [1])


def test_a_row_whose_url_no_object_can_have_keeps_nobody_from_the_rest(web, monkeypatch):
    servers.use(monkeypatch, {})
    uris = [f"{web.url}/bucket//x", "http://[::1/a", f"{web.url}/bucket/plain.bin"]
    assert access.read_files(uris) == [None, None, DATA]


def test_a_query_belongs_to_the_request(web, monkeypatch):
    servers.use(monkeypatch, {})
    with FaultProxy(web.port) as proxy:
        uri = f"{proxy.url}/bucket/a%20folder/b%20c%2Bd%3De%23f%2520g%26h.bin?token=a%2Fb"
        assert access.read_ranges(uri, [7], [3]) == [DATA[7:10]]
        assert proxy.seen().asked[-1].endswith(".bin?token=a%2Fb bytes=7-9")


def test_near_ranges_are_one_request(web, monkeypatch):
    servers.use(monkeypatch, {})
    with FaultProxy(web.port) as proxy:
        uri = f"{proxy.url}/bucket/plain.bin"
        asked = [(0, 10), (60_000, 10), (70_000, 10), (500_000, 10), (500_005, 20)]
        offsets, sizes = zip(*asked, strict=True)
        found = access.read_ranges(uri, offsets, sizes)
        assert found == [DATA[offset : offset + size] for offset, size in asked]
        said = {one.rpartition(" ")[2] for one in proxy.seen().asked}
        assert said == {"bytes=0-70009", "bytes=500000-500024"}


@pytest.fixture(scope="module")
def stores(web):
    return ObjectStores(), f"{web.url}/bucket/plain.bin"


@settings(max_examples=25)
@given(
    st.lists(st.tuples(st.integers(0, len(DATA) - 300_000), st.integers(0, 300_000)), max_size=20)
)
def test_any_ranges_are_the_bytes_of_the_object(stores, asked):
    store, uri = stores
    found = store.read([ByteRange(uri, offset, size) for offset, size in asked])
    assert found == [DATA[offset : offset + size] for offset, size in asked]


@pytest.fixture(scope="module")
def rangeless(tmp_path_factory):
    """Rclone, and a web server that ignores what part is wanted."""
    root = tmp_path_factory.mktemp("rclone")
    (root / "bucket").mkdir()
    (root / "bucket" / "a.bin").write_bytes(DATA)
    (root / "bucket" / "b.bin").write_bytes(DATA[:1000])
    logs = tmp_path_factory.mktemp("logs")
    with (
        servers.rclone_s3(root, logs=logs) as s3,
        servers.caddy(root, logs=logs) as web,
        FaultProxy(web.port) as proxy,
    ):
        proxy.set(Faults(share=1, kinds=("no_range",)))
        yield (
            {"s3": s3.environment(), "http": {}},
            {
                "s3": "s3://bucket",
                "http": f"{proxy.url}/bucket",
            },
        )


@pytest.mark.parametrize("scheme", ["s3", "http"])
def test_a_server_that_ignores_ranges_is_found_out_and_read_whole(rangeless, scheme, monkeypatch):
    environments, bases = rangeless
    servers.use(monkeypatch, environments[scheme])
    uri = f"{bases[scheme]}/a.bin"
    with pytest.raises(NoRangesError, match="whole objects only"):
        access.read_many([ByteRange(uri, 10, 20), ByteRange(uri, 2_000_000, 20)])
    assert not access.has_ranges(uri)
    assert access.read_files([uri, f"{bases[scheme]}/b.bin"]) == [DATA, DATA[:1000]]
    for start in (0, 12345, len(DATA), len(DATA) + 1):
        blocks = list(access.stream(uri, start, 1 << 20))
        assert b"".join(blocks) == DATA[start:]
        assert all(len(block) == 1 << 20 for block in blocks[:-1])


def test_a_mirror_on_a_disk_comes_first(s3, monkeypatch, tmp_path):
    s3.put("objects", "mirrored/a.bin", b"far")
    s3.put("objects", "mirrored/b.bin", b"only far")
    near = tmp_path / "two" / "objects" / "mirrored" / "a.bin"
    near.parent.mkdir(parents=True)
    near.write_bytes(b"near by")
    roots = os.pathsep.join([str(tmp_path / "one"), str(tmp_path / "two")])
    monkeypatch.setenv("LHOTSE_S3_LOCAL_MIRROR_ROOTS", roots)
    access._store.cache_clear()
    uris = ["s3://objects/mirrored/b.bin", "s3://objects/mirrored/a.bin"]
    assert access.read_files(uris) == [b"only far", b"near by"]
    assert [one.size for one in access.stats(uris)] == [8, 7]
    assert access.read_many([ByteRange(uris[1], 1, 3), ByteRange(uris[0], 0, 4)]) == [
        b"ear",
        b"only",
    ]
    assert list(access.stream(uris[1], 2)) == [b"ar by"]
    access.write(uris[1], b"new")
    assert Path(near).read_bytes() == b"near by"
    # What names no bucket is nowhere, not anywhere on the disk.
    assert access.read_files([f"s3://{near}"]) == [None]


def test_signed_urls_do_not_pile_up(web, monkeypatch):
    servers.use(monkeypatch, {})
    uris = [f"{web.url}/bucket/plain.bin?signature={number}" for number in range(300)]
    found = access.read_many([ByteRange(uri, 5, 3) for uri in uris])
    assert found == [DATA[5:8]] * 300
    assert len(access.store_of(uris[0])._stores) <= 256
