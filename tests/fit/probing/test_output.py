"""What models write goes to a log, within bounds."""

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st

from playhead.fit.probing.output import HEAD_BYTES, TAIL_BYTES, Output


def logged(*pieces, title="probe 7"):
    log = io.BytesIO()
    output = Output(log, title)
    for piece in pieces:
        output.feed(piece)
    output.finish()
    return log.getvalue(), output


def test_little_is_logged_as_it_is():
    log, output = logged(b"one\ntw", b"o")
    assert log == b"--- probe 7\none\ntwo\n"
    assert output.last_words() == "two"


def test_of_much_the_beginning_and_the_end_are_logged_and_the_rest_is_counted():
    text = b"first\n" + b"x" * (HEAD_BYTES + 3 * TAIL_BYTES) + b"\nlast\n"
    log, output = logged(*(text[at : at + 1000] for at in range(0, len(text), 1000)))
    assert log.startswith(b"--- probe 7\nfirst\n")
    assert log.endswith(b"\nlast\n")
    assert len(log) < HEAD_BYTES + TAIL_BYTES + 100
    missing = len(text) - HEAD_BYTES - TAIL_BYTES
    assert f"--- {missing:,} bytes left out\n".encode() in log
    assert output.last_words() == "last"


@given(st.lists(st.binary(max_size=40_000), max_size=8))
def test_nothing_is_logged_twice_and_nothing_is_lost_unsaid(pieces):
    text = b"".join(pieces)
    log, _ = logged(*pieces)
    head, _, tail = log.partition(b" bytes left out\n")
    if len(text) <= HEAD_BYTES + TAIL_BYTES:
        assert log.removeprefix(b"--- probe 7\n").rstrip(b"\n") == text.rstrip(b"\n")
    else:
        assert head.startswith(b"--- probe 7\n" + text[:HEAD_BYTES])
        assert tail.rstrip(b"\n") == text[-TAIL_BYTES:].rstrip(b"\n")


def test_of_an_interpreter_that_dies_the_place_is_told_after_the_last_words():
    _, output = logged(
        b"a word\n\nFatal Python error: Segmentation fault\n\nCurrent thread 0x0 (most recent):\n"
        b'  File "/data/model.py", line 12 in forward\n'
        b'  File "/data/train.py", line 3 in main\n\nExtension modules: numpy (total: 1)\n'
    )
    assert output.last_words() == "a word; /data/model.py:12 in forward"


def test_silence_is_no_words():
    log, output = logged()
    assert log == b"--- probe 7\n"
    assert output.last_words() == ""
