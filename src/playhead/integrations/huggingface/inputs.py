"""What of a batch a model takes."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from transformers import Trainer

    from playhead.loader import Loader

__all__ = ["ModelInputs", "names_taken"]


def names_taken(trainer: Trainer) -> frozenset[str] | None:
    """Return the names of what `forward` takes and of labels; None where batches stay whole.

    Parameters
    ----------
    trainer
        Whose model it is, and whose `remove_unused_columns` says whether anything is left out.
    """
    if not trainer.args.remove_unused_columns:
        return None
    model: Any = trainer.model
    # An adapter takes anything and hands it on to the model inside.
    inside = model.get_base_model() if hasattr(model, "get_base_model") else model
    taken = inspect.signature(inside.forward).parameters
    return frozenset((*taken, "label", "label_ids", *trainer.label_names))


def only(batch: Any, names: frozenset[str] | None) -> Any:
    """Return a batch with these of its keys; the batch itself where it has none.

    Examples
    --------
    >>> only({"labels": 1, "texts": ["one"]}, frozenset({"labels"}))
    {'labels': 1}
    """
    if names is None or not isinstance(batch, Mapping):
        return batch
    return {name: value for name, value in batch.items() if name in names}


class ModelInputs:
    """The batches of a finite loader, as an evaluation takes them.

    Parameters
    ----------
    loader
        Makes the batches.
    names
        The keys that stay; None keeps all.
    """

    def __init__(self, loader: Loader, names: frozenset[str] | None) -> None:
        self.loader = loader
        self._names = names

    def __iter__(self) -> Iterator[Any]:
        for batch in self.loader:
            yield only(batch, self._names)

    def __len__(self) -> int:
        return len(self.loader)
