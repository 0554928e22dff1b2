"""Training with Hugging Face's Trainer and with accelerate."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from playhead.errors import MissingExtraError

if TYPE_CHECKING:
    from playhead.integrations.huggingface.accelerated import prepare_loader
    from playhead.integrations.huggingface.callback import PlayheadCallback
    from playhead.integrations.huggingface.checkpoints import last_checkpoint
    from playhead.integrations.huggingface.trainer import PlayheadTrainerMixin, training_batches

__all__ = [
    "PlayheadCallback",
    "PlayheadTrainerMixin",
    "last_checkpoint",
    "prepare_loader",
    "training_batches",
]

_MODULES = {
    "PlayheadCallback": "callback",
    "PlayheadTrainerMixin": "trainer",
    "last_checkpoint": "checkpoints",
    "prepare_loader": "accelerated",
    "training_batches": "trainer",
}


def __getattr__(name: str) -> Any:
    # Whoever trains with accelerate alone needs no transformers, and does not wait for them.
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = importlib.import_module(f"{__name__}.{_MODULES[name]}")
    except ModuleNotFoundError as error:
        if error.name not in {"accelerate", "transformers"}:
            raise
        raise MissingExtraError(
            f"{name} needs {error.name}, which is not installed",
            fix="Run `pip install 'playhead[hf]'`",
        ) from None
    return getattr(module, name)
