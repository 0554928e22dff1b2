"""The card on which fake tensors of CUDA seem to be."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch

from playhead.fit.probing.cuda_memory import uuid_of
from playhead.fit.probing.fault import words
from playhead.fit.probing.neighbours import takes_one_process

__all__ = ["current", "unusable"]


def unusable(card: torch.device) -> str | None:
    """Start CUDA on a card, or say in one line why this process cannot.

    Fake tensors take no memory, and yet want a context: attention asks the card which kernels it
    has, and autograd asks it for streams. Nothing but a real tensor makes one for sure.

    Parameters
    ----------
    card
        The card, with its number.
    """
    try:
        if takes_one_process(uuid_of(card)):
            return f"{card} takes one process at a time, and probes are such processes"
        torch.zeros(1, device=card)
    except (RuntimeError, AssertionError) as error:
        return words(error)
    return None


def current(card: torch.device | None) -> AbstractContextManager[object]:
    """Make a card the one that is meant where code says `cuda`; None leaves all as it is."""
    return nullcontext() if card is None else torch.cuda.device(card)
