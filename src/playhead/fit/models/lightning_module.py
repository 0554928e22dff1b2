"""Lightning's modules outside of a fit: a trainer that trains nothing, and no logging."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from playhead.fit.models.quiet import quiet

if TYPE_CHECKING:
    from torch import nn

__all__ = ["give_optimizer", "has_hook", "is_lightning_module", "make_trainer", "settle"]

# Lightning has two names, and classes of one are none of the other.
_LIBRARIES = ("lightning.pytorch", "pytorch_lightning")
# What schedulers are told; they hold no memory.
_STEPS = 1_000


def is_lightning_module(module: Any) -> bool:
    """Return whether this is a LightningModule, of either name of the library."""
    return _library_of(module) is not None


def has_hook(module: Any, hook: str) -> bool:
    """Return whether a module has a method, and not only the empty one of Lightning."""
    method = getattr(module, hook, None)
    library = _library_of(module)
    empty = None if library is None else getattr(library.LightningModule, hook, None)
    return callable(method) and (empty is None or getattr(method, "__func__", None) is not empty)


def settle(module: nn.Module) -> None:
    """Make a LightningModule work outside of `Trainer.fit`.

    It gets a trainer, since steps and optimizers ask it for numbers, and what it logs is dropped.

    Parameters
    ----------
    module
        The module; others inside it are settled too.
    """
    library = _library_of(module)
    assert library is not None
    if getattr(module, "_trainer", None) is None:
        module.trainer = make_trainer(library)
    for part in module.modules():
        if is_lightning_module(part):
            vars(part).update(log=_drop, log_dict=_drop)


def give_optimizer(module: Any, optimizer: Any) -> None:
    """Let the trainer of a LightningModule know its optimizer, as steps that log its rate need it.

    Parameters
    ----------
    module
        Any module; one that is none of Lightning needs nothing.
    optimizer
        One optimizer, or `SeveralOptimizers`.
    """
    if is_lightning_module(module):
        module.trainer.optimizers = list(getattr(optimizer, "optimizers", [optimizer]))


def make_trainer(library: Any) -> Any:
    """Make a trainer that trains nothing.

    Parameters
    ----------
    library
        The module of Lightning that has `Trainer`.
    """
    with quiet():
        trainer = library.Trainer(
            accelerator="cpu", devices=1, max_steps=_STEPS, max_epochs=-1, barebones=True
        )
    # Steps that divide by it to know when they log never do.
    trainer.log_every_n_steps = _STEPS
    return trainer


def _library_of(module: Any) -> Any:
    for name in _LIBRARIES:
        # One that was never imported made no module.
        library = sys.modules.get(name)
        made = getattr(library, "LightningModule", None)
        if made is not None and isinstance(module, made):
            return library
    return None


def _drop(*_: Any, **__: Any) -> None:
    """Log nothing."""
