"""Predictions of a process apart: code of others runs there, and may hang, crash or print."""

from __future__ import annotations

import socket
import subprocess
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from playhead.errors import FitError
from playhead.fit.fake.messages import Foretold, Question, Subject, Understood
from playhead.fit.probing.apart import fate, started_apart
from playhead.fit.probing.messages import Lines

if TYPE_CHECKING:
    from collections.abc import Generator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from playhead.fit.bucket import Bucket
    from playhead.fit.model import ModelSource
    from playhead.fit.training import Training

__all__ = ["Onlooker", "PredictorApart"]

_MODULE: Final = "playhead.fit.fake.serving"
_LEAVE_SECONDS: Final = 5.0


class _GoneError(Exception):
    """The process that predicts has ended, or says nothing any more."""


class Onlooker(Protocol):
    """Somebody who waits for predictions."""

    def waiting(self) -> AbstractContextManager[None]:
        """Wait for one, as long as the block lasts."""
        ...

    def give_up(self, why: str) -> None:
        """Hear why there will be none any more, in one line."""
        ...


class PredictorApart:
    """Foretell the most that tensors hold in a step, in a process of its own.

    The process starts when something is asked for the first time. Use it in a `with` block, which
    ends it, however it is left.

    Parameters
    ----------
    source
        The model.
    training
        How it is trained.
    device
        As `playhead.fit.fake.predictor.predictor` takes it.
    seconds
        How long opening the model may take.
    prediction_seconds
        How long each prediction may take then.
    log
        Where everything goes that the model writes; it is appended to.
    onlooker
        Who waits.

    Attributes
    ----------
    blocked
        Why nothing is predicted any more, in one line; None as long as something is.
    notes
        What people should know of the predictions so far, a line each.
    """

    def __init__(
        self,
        source: ModelSource,
        training: Training,
        device: str,
        *,
        seconds: float,
        prediction_seconds: float,
        log: Path,
        onlooker: Onlooker | None = None,
    ) -> None:
        self.blocked: str | None = None
        self.notes: tuple[str, ...] = ()
        self._subject = Subject(source=source, training=training, device=device)
        self._seconds, self._prediction_seconds, self._log = seconds, prediction_seconds, log
        self._onlooker = onlooker
        self._lines: Lines | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> PredictorApart:  # noqa: PYI034  (Self is of Python 3.11)
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process, and all that it has started."""
        if self._lines is not None:
            self._lines.close()
            self._lines = None
        process, self._process = self._process, None
        if process is not None:
            # It ends its child, which may be in the middle of code of others, and then itself.
            process.terminate()
            try:
                process.wait(_LEAVE_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def open(self) -> Understood:
        """Open the model.

        Raises
        ------
        PlayheadError
            If there is no such model, or its process ends or says nothing for too long.
        """
        try:
            return self._opened()
        except _GoneError as error:
            raise FitError(
                str(error),
                where=str(self._log),
                fix="Read there what it wrote, and correct the model",
            ) from error

    def predict(self, bucket: Bucket, batch_size: int) -> int | None:
        """Return the most that tensors hold in a step (bytes).

        Parameters
        ----------
        bucket
            How long the samples are.
        batch_size
            Samples of each micro-batch.

        Returns
        -------
        int or None
            None where nothing says it; `blocked` says why.

        Raises
        ------
        PlayheadError
            If the model cannot be trained at all.
        """
        if self.blocked is not None:
            return None
        with nullcontext() if self._onlooker is None else self._onlooker.waiting():
            peak = self._foretold(Question(bucket=bucket, batch_size=batch_size))
        if self.blocked is not None and self._onlooker is not None:
            self._onlooker.give_up(self.blocked)
        return peak

    def _foretold(self, question: Question) -> int | None:
        try:
            if self._lines is None:
                self._opened()
            foretold = self._asked(question)
        except (_GoneError, FitError) as error:
            # Probes tell what predictions cannot.
            self.blocked = str(error)
            return None
        if foretold.refusal is not None:
            raise foretold.refusal.error()
        self.blocked, self.notes = foretold.blocked, foretold.notes
        return foretold.peak

    def _opened(self) -> Understood:
        self._log.parent.mkdir(parents=True, exist_ok=True)
        here, there = socket.socketpair()
        self._lines = lines = Lines(here)
        with there:
            self._process = started_apart(_MODULE, there, self._log)
        with self._watched("as it opened the model"):
            lines.send(self._subject)
            understood = lines.receive(Understood, self._seconds)
        if understood.refusal is not None:
            self.close()
            raise understood.refusal.error()
        self.notes = understood.predicting
        return understood

    def _asked(self, question: Question) -> Foretold:
        assert self._lines is not None
        with self._watched("as it predicted"):
            self._lines.send(question)
            try:
                return self._lines.receive(Foretold, self._prediction_seconds)
            except TimeoutError as error:
                raise _GoneError(
                    f"a prediction took more than {self._prediction_seconds:g} s, the limit that"
                    " --prediction-timeout sets"
                ) from error

    @contextmanager
    def _watched(self, when: str) -> Generator[None]:
        """Wait for the process, and end it if anything goes wrong, Ctrl-C included."""
        try:
            yield
        except (EOFError, OSError, msgspec.MsgspecError) as error:
            raise _GoneError(f"the process that predicts {self._fate(error)} {when}") from error
        except BaseException:
            self.close()
            raise

    def _fate(self, error: Exception) -> str:
        """Say what became of the process, and end it."""
        assert self._process is not None
        code = None
        if not isinstance(error, TimeoutError):
            # One that is as good as gone ends by itself, with what it has to tell.
            with suppress(subprocess.TimeoutExpired):
                code = self._process.wait(_LEAVE_SECONDS)
        self.close()
        if code is None:
            return f"said nothing for {self._seconds:g} s"
        return fate(code)
