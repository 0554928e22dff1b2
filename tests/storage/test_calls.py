"""Requests side by side: what passes is tried again, what does not is named, all within a time."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import pytest

from playhead.errors import DataError, StorageError
from playhead.storage import calls
from playhead.storage.calls import Call, Requests
from playhead.storage.limits import limits


def server_of(place):
    return f"the server of {place[0]}"


def is_refused(error):
    return isinstance(error, ConnectionRefusedError)


@pytest.fixture
def requests(monkeypatch):
    monkeypatch.setattr(calls, "pause_before", lambda number: 0.001)
    return Requests(server_of, lambda error, place: None, str, is_refused)


def test_results_come_in_the_order_asked_for(requests):
    def slow(call):
        call.pause(0.05)
        return "slow"

    assert requests.all([slow, lambda call: "quick"], ["a", "b"], Call(10)) == ["slow", "quick"]


def test_what_passes_by_itself_is_tried_again(requests):
    tries = []

    def twice_bad(call):
        tries.append(call)
        if len(tries) < 3:
            raise OSError("bad luck")
        return "good"

    assert requests.all([twice_bad], ["a"], Call(10)) == ["good"]


def test_what_does_not_pass_ends_after_the_tries_with_the_place_named(requests):
    tries = []

    def bad(call):
        tries.append(call)
        raise OSError("bad luck")

    said = r"The server of p failed \d+ times in .*: bad luck \(place\)"
    with pytest.raises(StorageError, match=said) as raised:
        requests.all([bad], ["place"], Call(10))
    assert len(tries) == limits().tries
    assert raised.value.__suppress_context__, "the library's own words are printed as well"


def test_a_verdict_ends_it_at_once():
    tries = []

    def bad(call):
        tries.append(call)
        raise OSError("bad luck")

    requests = Requests(server_of, lambda _, place: DataError("for good", where=place), str, bool)
    with pytest.raises(DataError, match="For good") as raised:
        requests.all([bad], ["place"], Call(10))
    assert len(tries) == 1
    assert raised.value.__suppress_context__, "the library's own words are printed as well"


def test_what_never_answers_is_named_at_the_deadline(requests):
    ended = threading.Event()

    class Answer:
        def shutdown(self):
            ended.set()

    def never(call):
        with call.reading(Answer()):
            ended.wait(60)
        raise OSError

    begin = time.monotonic()
    with pytest.raises(StorageError, match=r"did not answer within 0.2 s \(b\)"):
        requests.all([lambda call: 1, never], ["a", "b"], Call(0.2))
    assert time.monotonic() - begin < 30
    assert ended.is_set(), "the answer is still being read"


def test_others_are_given_up_when_one_fails(requests):
    resting = threading.Event()

    def rests(call):
        resting.set()
        return call.pause(60)

    def bad(call):
        resting.wait(60)
        raise DataError("broken")

    call = Call(60)
    with pytest.raises(DataError):
        requests.all([rests, bad], ["a", "b"], call)
    assert not call.pause(60)


ENDING = """
import threading
from playhead.storage.calls import Call, Requests

def bad(call):
    tried.set()
    raise OSError

tried = threading.Event()
requests = Requests(str, lambda error, place: None, str, lambda error: False)
asking = [[bad] * 9, ["place"] * 9, Call(600)]
threading.Thread(target=requests.all, args=asking, daemon=True).start()
tried.wait()
"""


def test_a_process_that_ends_tries_nothing_again():
    environment = {**os.environ, "PLAYHEAD_STORAGE_TRIES": "1000"}
    # Nine requests would be tried for ten minutes.
    ended = subprocess.run([sys.executable, "-c", ENDING], env=environment, check=False, timeout=60)
    assert ended.returncode == 0


class Refusing:
    """A request to a server that nobody can reach, as long as an error is given."""

    def __init__(self):
        self.tries = 0
        self.error = ConnectionRefusedError("nobody listens")

    def __call__(self, call):
        self.tries += 1
        if self.error is not None:
            raise self.error
        return "good"


@pytest.fixture
def impatient(monkeypatch):
    """What commands set."""
    monkeypatch.setenv("PLAYHEAD_STORAGE_UNREACHED_SECONDS", "30")
    limits.cache_clear()
    yield
    limits.cache_clear()


@pytest.mark.usefixtures("impatient")
def test_a_server_that_could_not_be_reached_is_not_waited_for_again(requests):
    act = Refusing()
    with pytest.raises(StorageError, match=r"failed \d+ times"):
        requests.all([act], ["a1"], Call(10))
    act.tries = 0
    for _ in range(3):
        with pytest.raises(StorageError, match=r"nobody listens; it could not .* either \(a2\)"):
            requests.all([act], ["a2"], Call(10))
    assert act.tries == 3
    with pytest.raises(StorageError, match=r"failed \d+ times"):
        requests.all([act], ["b1"], Call(10))
    assert act.tries == 3 + limits().tries


@pytest.mark.parametrize(("error", "tries"), [(ConnectionRefusedError(), 1), (OSError("503"), 16)])
def test_a_server_without_connection_is_waited_for_no_longer_than_that(
    requests, monkeypatch, error, tries
):
    monkeypatch.setenv("PLAYHEAD_STORAGE_UNREACHED_SECONDS", "1e-9")
    limits.cache_clear()
    act = Refusing()
    act.error = error
    which = "UNREACHED_SECONDS says" if tries == 1 else "TRIES say"
    with pytest.raises(StorageError, match=f"failed {tries} times? .*{which}"):
        requests.all([act], ["a"], Call(10))
    limits.cache_clear()
    assert act.tries == tries


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("error", [None, OSError("503")])
def test_a_server_that_is_there_again_is_waited_for_as_ever(requests, error):
    act = Refusing()
    with pytest.raises(StorageError):
        requests.all([act], ["a"], Call(10))
    act.error = None
    if error is None:
        assert requests.all([act], ["a"], Call(10)) == ["good"]
        act.error = ConnectionRefusedError("nobody listens")
    else:
        act.error = error
    act.tries = 0
    with pytest.raises(StorageError, match=r"failed \d+ times"):
        requests.all([act], ["a"], Call(10))
    assert act.tries == limits().tries


@pytest.mark.usefixtures("impatient")
def test_a_server_that_failed_otherwise_is_waited_for_again(requests):
    act = Refusing()
    act.error = OSError("503")
    for _ in range(2):
        act.tries = 0
        with pytest.raises(StorageError):
            requests.all([act], ["a"], Call(10))
        assert act.tries == limits().tries


def test_training_waits_for_a_server_again_and_again(requests):
    act = Refusing()
    for _ in range(2):
        act.tries = 0
        with pytest.raises(StorageError):
            requests.all([act], ["a"], Call(10))
        assert act.tries == limits().tries


def test_who_waits_is_told_for_what(requests, monkeypatch, caplog):
    monkeypatch.setattr(calls, "_PATIENCE", 0.05)
    monkeypatch.setattr(calls, "_PATIENCE_IN_SILENCE", 0.0)

    def refused_then_silent(call):
        if call.failure is None:
            raise ConnectionRefusedError("nobody listens")
        return call.pause(60)

    for _ in range(2):
        with pytest.raises(StorageError, match=r"within 0.5 s; before, nobody listens \(place\)"):
            requests.all([lambda call: 1, refused_then_silent], ["a", "place"], Call(0.5))
    # Two calls, a server, less than ten seconds.
    (told,) = caplog.messages
    assert told.startswith("waiting for the server of p (place): nobody listens, try 1 of 16, 0 s")
    requests.all([lambda call: call.pause(0.2)], ["b"], Call(10))
    assert "waiting for the server of b (b): no answer is complete yet" in caplog.messages[-1]


def test_nothing_is_told_of_what_is_quick_or_goes_on(requests, monkeypatch, caplog):
    monkeypatch.setattr(calls, "_PATIENCE", 0.05)
    assert requests.all([lambda call: call.pause(0.2)] * 3, ["a"] * 3, Call(10)) == [True] * 3
    assert not caplog.messages
