"""The process that predicts: it opens a model on fake tensors, and answers questions."""

from __future__ import annotations

import os
import signal
import socket
import sys
import traceback
from typing import TYPE_CHECKING

from playhead.errors import PlayheadError
from playhead.fit.fake.messages import Foretold, Question, Subject, Understood
from playhead.fit.probing.fault import opening, words
from playhead.fit.probing.messages import Lines, Refusal
from playhead.fit.probing.orphans import adopt_orphans, die_with, end_children

if TYPE_CHECKING:
    from playhead.fit.fake.predictor import Predictor

__all__ = ["main"]


def main() -> None:
    """Serve one search: the arguments are a socket, the id of the parent and the log.

    Code of others runs in a child, so that whatever it starts, and however it ends, this process
    is there to end the rest.
    """
    connection, parent = int(sys.argv[1]), int(sys.argv[2])
    # Code of others may look for arguments of its own.
    del sys.argv[1:]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    die_with(parent, signal.SIGTERM)
    adopt_orphans()
    os.set_inheritable(connection, False)  # noqa: FBT003  (positional only)
    here = os.getpid()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        die_with(here, signal.SIGKILL)
        _serve(Lines(socket.socket(fileno=connection)))
        os._exit(0)
    os.close(connection)
    try:
        _, status = os.waitpid(child, 0)
    finally:
        end_children(frozenset())
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        # Whoever started this process is to see what became of the other.
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(here, -code)
    sys.exit(code)


def _serve(lines: Lines) -> None:
    subject = lines.receive(Subject)
    try:
        predictor = _opened(subject)
    except PlayheadError as error:
        lines.send(Understood(refusal=Refusal.of(error)))
        return
    import torch  # noqa: PLC0415  (slow: a parent that has died is noticed before)

    model = predictor.model
    lines.send(
        Understood(
            model=model.name,
            rule=model.rule,
            notes=tuple(model.notes),
            predicting=predictor.notes,
            torch=str(torch.__version__),
        )
    )
    while True:
        try:
            question = lines.receive(Question)
        except EOFError:
            return
        lines.send(_foretold(predictor, question))


def _opened(subject: Subject) -> Predictor:
    from playhead.fit.fake.predictor import predictor  # noqa: PLC0415  (imports torch)

    with opening(subject.source.name):
        return predictor(subject.source, subject.training, subject.device)


def _foretold(predictor: Predictor, question: Question) -> Foretold:
    try:
        peak = predictor.predict(question.bucket, question.batch_size)
    except PlayheadError as error:
        return Foretold(refusal=Refusal.of(error))
    except BaseException as error:  # noqa: BLE001  (code of others: SystemExit and all)
        traceback.print_exc()
        return Foretold(blocked=words(error))
    blocked = predictor.blocked
    return Foretold(peak=peak, blocked=blocked, notes=() if blocked else predictor.notes)
