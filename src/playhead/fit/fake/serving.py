"""The process that predicts: it opens a model on fake tensors, and answers questions."""

from __future__ import annotations

import os
import signal
import socket
import sys
import traceback
from typing import TYPE_CHECKING

from playhead.errors import FitError, PlayheadError
from playhead.fit.fake.messages import Foretold, Question, Subject, Understood
from playhead.fit.probing.fault import place, words
from playhead.fit.probing.messages import Lines, Refusal
from playhead.fit.probing.orphans import die_with

if TYPE_CHECKING:
    from playhead.fit.fake.predictor import Predictor

__all__ = ["main"]


def main() -> None:
    """Serve one search: the arguments are a socket, the id of the parent and the log."""
    connection, parent = int(sys.argv[1]), int(sys.argv[2])
    # Code of others may look for arguments of its own.
    del sys.argv[1:]
    die_with(parent, signal.SIGKILL)
    os.set_inheritable(connection, False)  # noqa: FBT003  (positional only)
    lines = Lines(socket.socket(fileno=connection))
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

    try:
        return predictor(subject.source, subject.training, subject.device)
    except PlayheadError:
        raise
    except BaseException as error:
        traceback.print_exc()
        raise FitError(
            f"opening {subject.source.name} failed: {words(error)}",
            where=place(error),
            fix="Correct the model",
        ) from error


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
