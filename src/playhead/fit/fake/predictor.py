"""What the tensors of a training step will hold, found on tensors that have no bytes."""

from __future__ import annotations

import gc
import sys
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from unittest.mock import patch

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.nn import functional

from playhead.errors import PlayheadError
from playhead.fit.fake.attention import Attention
from playhead.fit.fake.blocked import reason
from playhead.fit.fake.card import current, unusable
from playhead.fit.fake.ctc import ctc_loss
from playhead.fit.fake.cuda_rules import cuda_rules
from playhead.fit.fake.norms import RealNorms
from playhead.fit.fake.opening import opened_fake, quietly, real_copies
from playhead.fit.fake.recurrent import (
    RecurrentLayers,
    RecurrentTooLongError,
    refusing_long,
    whole_layers,
)
from playhead.fit.fake.stand_ins import StandIns
from playhead.fit.fake.values import SmallValues
from playhead.fit.live_tensors import LiveTensors
from playhead.fit.probing.fault import words
from playhead.fit.steps import prepare, train_step

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from playhead.fit.bucket import Bucket
    from playhead.fit.fake.attention import Kernel
    from playhead.fit.model import FitModel, ModelSource
    from playhead.fit.training import Training

__all__ = ["Method", "Predictor", "predictor"]

Method: TypeAlias = Literal["cpu", "cuda", "estimate"]
"""Tensors of a CPU, for training on one; of CUDA; or of a CPU with the rules of CUDA."""


class Predictor:
    """Foretell the most that tensors hold in a step, for any batch.

    A step on fake tensors costs the same for any number of samples. The first one makes what the
    optimizer holds; those after it are judged.

    Parameters
    ----------
    open_on
        Opens the model on the device of that name.
    training
        How it is trained.
    method
        On what the steps are done.
    attention
        The best attention kernel of the GPU, with `estimate`.
    card
        The GPU, with `cuda`.

    Attributes
    ----------
    method
        On what the steps are done; `estimate` once fake tensors of CUDA have failed, or where no
        more than one process may be on the card.
    blocked
        Why the model cannot run on fake tensors, in one line; None as long as it can.

    Raises
    ------
    Exception
        Whatever opening the model raises.
    """

    def __init__(
        self,
        open_on: Callable[[str], FitModel],
        training: Training,
        *,
        method: Method = "estimate",
        attention: Kernel = "flash",
        card: torch.device | None = None,
    ) -> None:
        self.method: Method = method
        self.blocked: str | None = None
        self._given_up: str | None = None
        self._peaks: dict[tuple[int, int, int], int] = {}
        self._new_steps = lambda: _FakeSteps(open_on, training, self.method, attention, card)
        why = None if card is None or method != "cuda" else unusable(card)
        if why is None:
            self._steps = self._opened()
        else:
            self._estimate(why)

    @property
    def model(self) -> FitModel:
        """The model, made of fake tensors."""
        return self._steps.model

    @property
    def notes(self) -> tuple[str, ...]:
        """What people should know of the predictions, a line each."""
        given_up = () if self._given_up is None else (self._given_up,)
        return (*given_up, *self._steps.notes())

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
            None where the model cannot run on fake tensors; `blocked` says why.

        Raises
        ------
        PlayheadError
            If the model cannot be trained at all.
        """
        asked = (bucket.input_length, bucket.output_length, batch_size)
        if asked not in self._peaks and self.blocked is None:
            peak = self._tried(bucket, batch_size)
            if peak is None and self.blocked is None:
                peak = self._tried(bucket, batch_size)
            if peak is not None:
                self._peaks[asked] = peak
        return self._peaks.get(asked)

    def _tried(self, bucket: Bucket, batch_size: int) -> int | None:
        try:
            return self._steps.peak(bucket, batch_size)
        except PlayheadError:
            raise
        except RecurrentTooLongError as error:
            self.blocked = str(error)
            return None
        except Exception as error:  # noqa: BLE001  (any code of people may fail in any way)
            self._fail(reason(error, self._steps.module))
            return None

    def _opened(self) -> _FakeSteps:
        try:
            return self._new_steps()
        except PlayheadError:
            raise
        except Exception as error:
            if self.method != "cuda":
                raise
            self._estimate(words(error))
            return self._steps

    def _fail(self, why: str) -> None:
        if self.method == "cuda":
            self._estimate(why)
        else:
            self.blocked = why

    def _estimate(self, why: str) -> None:
        """Go on without fake tensors of CUDA."""
        self._given_up = f"there are no fake tensors of CUDA, so this is an estimate: {why}"
        self.method = "estimate"
        self._steps = self._new_steps()


def predictor(
    source: ModelSource, training: Training, device: str, *, attention: Kernel = "flash"
) -> Predictor:
    """Return what foretells the memory of a model.

    With `cuda` and a GPU at hand, tensors are fake ones of CUDA, and this process holds a context
    on that GPU from now on. Without, what comes out is an estimate.

    Parameters
    ----------
    source
        Where the model comes from.
    training
        How it is trained.
    device
        `cpu` for training on one; `fake` or `cuda` (with a number or without) for a GPU.
    attention
        The best attention kernel of the GPU, for an estimate.

    Raises
    ------
    ConfigError
        If there is no such model, or it lacks what a search needs.
    FitError
        If batches cannot be made for a model of this class.
    MissingExtraError
        If the library that it is made with is not installed.
    """
    from playhead.fit.models import open_model  # noqa: PLC0415  (its libraries are slow)

    method: Method = "estimate"
    card = None
    asked = torch.device(device if device != "fake" else "meta")
    if asked.type == "cpu":
        method = "cpu"
    elif device != "fake" and torch.cuda.is_available():
        method, card = "cuda", torch.device("cuda", asked.index or 0)
    return Predictor(
        lambda name: open_model(source, name, training),
        training,
        method=method,
        attention=attention,
        card=card,
    )


class _FakeSteps:
    """A model of fake tensors, and what its steps hold."""

    def __init__(
        self,
        open_on: Callable[[str], FitModel],
        training: Training,
        method: Method,
        attention: Kernel,
        card: torch.device | None,
    ) -> None:
        self._card = card if method == "cuda" else None
        self._fake = FakeTensorMode(allow_non_fake_inputs=True)
        self._training = training
        self._method = method
        self._values = SmallValues(self._fake)
        self._recurrent = RecurrentLayers()
        # The later, the nearer to the model.
        self._modes = (self._fake, RealNorms(), self._recurrent, self._values)
        self._attention = Attention(attention)
        self._losses = 0
        self._recurrences = 0
        self._tensors = LiveTensors(device="cuda" if method == "cuda" else None)
        with current(self._card):
            self.model = opened_fake(open_on, "cuda" if method == "cuda" else "cpu", self._fake)
        self._prepared: Any = None

    @property
    def module(self) -> torch.nn.Module:
        return self.model.module

    def peak(self, bucket: Bucket, batch_size: int) -> int:
        with self._entered():
            if self._prepared is None:
                self._tensors.watch(self.module.parameters())
                self._tensors.watch(self.module.buffers())
                self._prepared = prepare(self.model, self._training)
                train_step(self._prepared, bucket, batch_size)
                # What hangs in cycles is not what a step needs.
                gc.collect()
            self._tensors.reset_peak()
            train_step(self._prepared, bucket, batch_size)
        return self._tensors.peak

    def notes(self) -> tuple[str, ...]:
        notes = []
        if self._method == "estimate":
            notes.append(
                "an estimate: tensors of a CPU with the rules of CUDA, without workspaces of "
                "kernels"
            )
            notes.extend(
                f"attention: {kernel}, assumed in {calls} calls"
                for kernel, calls in self._attention.calls.most_common()
            )
        if self._losses:
            notes.append(f"CTC's loss: what it holds, in {self._losses} calls")
        if calls := self._recurrent.calls + self._recurrences:
            notes.append(f"recurrent layers: what they keep is roughly known, in {calls} calls")
        if looked := self._values.looked.total():
            notes.append(
                f"Python looked into small tensors {looked} times; numbers drawn evenly were a half"
            )
        return tuple(notes)

    def _count_recurrence(self) -> None:
        self._recurrences += 1

    def _ctc_loss(self, *args: Any, **kwargs: Any) -> Any:
        self._losses += 1
        return ctc_loss(*args, **kwargs)

    @contextmanager
    def _entered(self) -> Generator[None]:
        table: dict[Any, Callable[..., Any]] = {
            functional.ctc_loss: self._ctc_loss,
            torch.ctc_loss: self._ctc_loss,
        }
        if self._method == "cpu":
            table.update(refusing_long())
        else:
            table.update(whole_layers(self._count_recurrence))
        if self._method == "estimate":
            table.update(cuda_rules(self._attention))
        with ExitStack() as stack:
            stack.enter_context(current(self._card))
            stack.enter_context(quietly())
            stack.enter_context(real_copies())
            stack.enter_context(_taken_for_real())
            if self._method != "cpu":
                stack.enter_context(_optimizers_as_on_cuda())
            if self._method != "cuda":
                stack.enter_context(_nothing_captured())
            if self._method == "estimate":
                stack.enter_context(_autocast_of_cuda_on_cpu())
            for mode in (*self._modes, self._tensors, StandIns(table)):
                stack.enter_context(mode)
            yield


def _taken_for_real() -> AbstractContextManager[Any]:
    """Let Transformers do what it does in training, where it asks whether tensors are fake."""
    asking = sys.modules.get("transformers.utils.import_utils")
    if asking is None or not hasattr(asking, "is_fake_tensor"):
        return nullcontext()
    return patch.object(asking, "is_fake_tensor", lambda _: False)


def _optimizers_as_on_cuda() -> AbstractContextManager[Any]:
    """Let optimizers work on all weights at once, as they do on CUDA unless told otherwise."""
    return patch.multiple(
        import_module("torch.optim.optimizer"),  # torch.optim hides it
        _foreach_supported_types=[torch.Tensor, torch.nn.Parameter, FakeTensor],
        _get_foreach_kernels_supported_devices=lambda: ["cpu", "cuda"],
    )


def _nothing_captured() -> AbstractContextManager[Any]:
    """Keep optimizers from asking whether a graph is captured: that would start CUDA on a GPU."""
    names = ("_accelerator_graph_capture_health_check", "_cuda_graph_capture_health_check")
    there: dict[str, Any] = {
        name: lambda _: None for name in names if hasattr(torch.optim.Optimizer, name)
    }
    return patch.multiple(torch.optim.Optimizer, **there)


def _autocast_of_cuda_on_cpu() -> AbstractContextManager[Any]:
    """Let code that asks for autocast on CUDA, or for none there, have it on the CPU."""
    original = torch.autocast.__init__

    def init(self: torch.autocast, device_type: str, *args: Any, **kwargs: Any) -> None:
        original(self, "cpu" if device_type == "cuda" else device_type, *args, **kwargs)

    return patch.object(torch.autocast, "__init__", init)
