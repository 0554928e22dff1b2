"""CUDA's rules without CUDA: what torch calls of its C library is imitated, and written down.

Python imports this by its name when it starts, wherever this folder is on its path. It knows which
process has started CUDA, and refuses whatever a process forked from that one asks.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import torch

MIB = 1 << 20
TOTAL, CONTEXT = 8192 * MIB, 512 * MIB
_STATE = {"started": None, "current": 0, "contexts": set()}


def _write(name, *args):
    with Path(os.environ["IMITATED_CUDA_LOG"]).open("a") as log:
        log.write(f"{os.getpid()} {os.getppid()} {' '.join(map(str, (name, *args)))}\n")


def _is_in_bad_fork():
    return _STATE["started"] not in {None, os.getpid()}


def _lazy_init():
    if _is_in_bad_fork():
        raise RuntimeError("Cannot re-initialize CUDA in forked subprocess")
    if _STATE["started"] is None:
        _write("init")
    _STATE["started"] = os.getpid()
    torch.cuda._initialized = True


def _on_card(name, *, needs_init):
    """A function of the C library whose last argument is a card, on which it makes a context."""

    def call(*args):
        if needs_init and not torch.cuda._initialized:
            raise RuntimeError(f"Invalid device argument {args[-1]}: did you call init?")
        _lazy_init()
        _STATE["contexts"].add(args[-1])
        _write(name, *args)
        return {"memory": _statistics()}.get(name)

    return call


def _statistics():
    return {
        "allocated_bytes": {"all": {"peak": 3 * MIB}},
        "reserved_bytes": {"all": {"peak": 4 * MIB}},
    }


def _choose(card):
    before, _STATE["current"] = _STATE["current"], card
    _on_card("choose", needs_init=False)(card)
    return before


def _current():
    _lazy_init()
    _write("current", _STATE["current"])
    return _STATE["current"]


def _free(card):
    _on_card("free", needs_init=False)(card)
    return TOTAL - CONTEXT * len(_STATE["contexts"]), TOTAL


def _moved(self, device=None, *_, **__):
    if torch.device(device).type == "cuda":
        _on_card("move", needs_init=False)(torch.device(device).index or 0)
    return self


torch._C._cuda_getDeviceCount = lambda: _write("count of the driver") or 2
torch._C._cuda_init = _lazy_init
torch._C._cuda_setDevice = _choose
torch.cuda._exchange_device = _choose
torch.cuda._maybe_exchange_device = _choose
torch._C._cuda_getDevice = _current
torch._C._cuda_setMemoryFraction = _on_card("fraction", needs_init=True)
torch._C._cuda_resetPeakMemoryStats = _on_card("reset", needs_init=True)
torch._C._cuda_memoryStats = _on_card("memory", needs_init=True)
torch._C._cuda_synchronize = lambda: _write("synchronize", _STATE["current"])
torch._C._cuda_getCurrentRawStream = lambda _: 0
torch.cuda._device_count_nvml = lambda: 2
torch.cuda._is_in_bad_fork = _is_in_bad_fork
torch.cuda._lazy_init = _lazy_init
torch.cuda._get_device_properties = lambda card: SimpleNamespace(name=f"Card {card}", uuid="abc")
torch.cuda.cudart = lambda: SimpleNamespace(cudaMemGetInfo=_free)
torch.version.cuda = "13.0"
torch.nn.Module.to = _moved
