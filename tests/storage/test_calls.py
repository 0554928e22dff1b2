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


@pytest.fixture
def requests(monkeypatch):
    monkeypatch.setattr(calls, "pause_before", lambda number: 0.001)
    return Requests("the server", lambda error, place: None, str)


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

    with pytest.raises(StorageError, match=r"failed \d+ times in .*: bad luck \(place\)"):
        requests.all([bad], ["place"], Call(10))
    assert len(tries) == limits().tries


def test_a_verdict_ends_it_at_once():
    tries = []

    def bad(call):
        tries.append(call)
        raise OSError("bad luck")

    requests = Requests("the server", lambda error, place: DataError("for good", where=place), str)
    with pytest.raises(DataError, match="For good") as raised:
        requests.all([bad], ["place"], Call(10))
    assert len(tries) == 1
    assert isinstance(raised.value.__cause__, OSError)


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
requests = Requests("the server", lambda error, place: None, str)
asking = [[bad] * 9, ["place"] * 9, Call(600)]
threading.Thread(target=requests.all, args=asking, daemon=True).start()
tried.wait()
"""


def test_a_process_that_ends_tries_nothing_again():
    environment = {**os.environ, "PLAYHEAD_STORAGE_TRIES": "1000"}
    # Nine requests would be tried for ten minutes.
    ended = subprocess.run([sys.executable, "-c", ENDING], env=environment, check=False, timeout=60)
    assert ended.returncode == 0
