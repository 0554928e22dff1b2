"""The servers and the proxy that other tests rely on do what they say."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from http.client import BadStatusLine, IncompleteRead

import pytest

from support import servers
from support.fault_proxy import FaultProxy, Faults

DATA = bytes(range(256)) * 40


@pytest.fixture(scope="module")
def web(tmp_path_factory):
    root = tmp_path_factory.mktemp("www")
    (root / "a.bin").write_bytes(DATA)
    with servers.caddy(root, logs=tmp_path_factory.mktemp("logs")) as server:
        yield server


@pytest.fixture(scope="module")
def proxy(web):
    with FaultProxy(web.port) as proxy:
        yield proxy


def _get(url, seconds=5):
    request = urllib.request.Request(url, headers={"Range": "bytes=10-109"})
    with urllib.request.urlopen(request, timeout=seconds) as answer:
        return answer.status, answer.read()


def _refused(url):
    """The status with which a request is refused; None if it is not."""
    try:
        _get(url)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code
    return None


def test_a_proxy_without_faults_changes_nothing(web, proxy):
    proxy.set(Faults())
    assert _get(f"{proxy.url}/a.bin") == _get(f"{web.url}/a.bin") == (206, DATA[10:110])


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("reset", ConnectionResetError),
        ("reset_inside", (ConnectionResetError, IncompleteRead)),
        ("cut", IncompleteRead),
        ("silence", TimeoutError),
        ("stall", TimeoutError),
        ("garbage", BadStatusLine),
    ],
)
def test_a_fault_is_what_it_is_called(proxy, kind, error):
    proxy.set(Faults(share=1, kinds=(kind,)))
    with pytest.raises(error):
        _get(f"{proxy.url}/a.bin", seconds=0.3)


@pytest.mark.parametrize("kind", ["403", "404", "429", "500", "503"])
def test_a_fault_may_be_a_status(proxy, kind):
    proxy.set(Faults(share=1, kinds=(kind,)))
    assert _refused(f"{proxy.url}/a.bin") == int(kind)


@pytest.mark.parametrize(("kind", "length"), [("short", 50), ("long", 200), ("no_range", 10240)])
def test_a_fault_that_looks_well_has_another_length(proxy, kind, length):
    proxy.set(Faults(share=1, kinds=(kind,)))
    status, data = _get(f"{proxy.url}/a.bin")
    assert (status, len(data)) == (200 if kind == "no_range" else 206, length)


def test_faults_come_as_often_as_wanted_and_to_the_same_requests(proxy):
    faults = Faults(share=0.3, kinds=("503",), seed=5)
    met = []
    for _ in range(2):
        proxy.set(faults)
        proxy.forget()
        for number in range(100):
            _refused(f"{proxy.url}/a.bin?{number}")
        seen = proxy.seen()
        assert seen.requests == 100
        met.append(seen.faults["503"])
    assert met[0] == met[1]
    assert 15 < met[0] < 45


def test_a_fault_that_comes_once_is_gone_at_the_second_try(proxy):
    proxy.set(Faults(share=1, tries=1))
    assert _refused(f"{proxy.url}/a.bin") == 503
    assert _get(f"{proxy.url}/a.bin") == (206, DATA[10:110])


def test_latency_is_waited_for(proxy):
    proxy.set(Faults(latency=0.1))
    begin = time.monotonic()
    _get(f"{proxy.url}/a.bin")
    assert time.monotonic() - begin >= 0.1


def test_rclone_answers_ranges_with_200(tmp_path):
    import obstore

    with servers.rclone_s3(tmp_path / "root", logs=tmp_path / "logs") as server:
        server.put("bucket", "a.bin", DATA)
        assert bytes(obstore.get(server.bucket("bucket"), "a.bin").bytes()) == DATA
        with pytest.raises(Exception, match="non-partial"):
            obstore.get_range(server.bucket("bucket"), "a.bin", start=10, length=20)


def test_seaweedfs_keeps_objects_and_knows_who_asks(seaweed):
    import obstore

    assert seaweed.put("servers", "a/b.bin", DATA) == "s3://servers/a/b.bin"
    got = obstore.get_range(seaweed.bucket("servers"), "a/b.bin", start=10, length=20)
    assert bytes(got) == DATA[10:30]
    assert _refused(f"{seaweed.endpoint}/servers/a/b.bin") == 403
