"""Ranks that must have the same batch all make it: nobody sends it to them."""

from __future__ import annotations

import sys
from typing import Any

from playhead.errors import ConfigError
from playhead.loader.loader import Loader

__all__ = ["give_back_broadcasts", "take_broadcasts"]

_HOME = "nemo.collections.common.data.lhotse.broadcasting"
_DATA_MODULE = "nemo.collections.speechlm2.data.datamodule"
_ASKED = "is_dp_source_rank"


def take_broadcasts() -> None:
    """Let every rank of NeMo's `DataModule` have a loader, rather than get batches from another.

    Ranks of one data-parallel slot plan the same and read the same, so that their batches are the
    same without a word between them. `BroadcastingDataLoader` of a loader is the loader itself
    from now on; of anything else it is what it was.
    """
    home, user = sys.modules.get(_HOME), sys.modules.get(_DATA_MODULE)
    if home is not None:
        home.BroadcastingDataLoader.__new__ = _loader_or_broadcast
    if user is not None:
        setattr(user, _ASKED, _every_rank)


def give_back_broadcasts() -> None:
    """Leave NeMo's `DataModule` as it was."""
    home, user = sys.modules.get(_HOME), sys.modules.get(_DATA_MODULE)
    if home is not None and home.BroadcastingDataLoader.__new__ is _loader_or_broadcast:
        # Python keeps a class whose __new__ was deleted from taking arguments.
        home.BroadcastingDataLoader.__new__ = _broadcast
    if home is not None and user is not None and vars(user).get(_ASKED) is _every_rank:
        setattr(user, _ASKED, getattr(home, _ASKED))


def _every_rank(*_: Any, **__: Any) -> bool:
    return True


def _broadcast(kind: type, *_: Any, **__: Any) -> Any:
    return object.__new__(kind)


def _loader_or_broadcast(kind: type, source: Any, *_: Any, **__: Any) -> Any:
    if isinstance(source, Loader):
        return source
    user = sys.modules.get(_DATA_MODULE)
    if source is None and user is not None and vars(user).get(_ASKED) is not _every_rank:
        # It was imported after install(): some ranks have a loader and wait for those without.
        raise ConfigError(
            "this rank has no loader of its own, and nobody would send it batches",
            where=_DATA_MODULE,
            fix="Call playhead.integrations.nemo.install() after NeMo's DataModule is imported",
        )
    return object.__new__(kind)
