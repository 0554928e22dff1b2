"""Randomness of dataset code that depends on nothing but the key of the batch."""

from __future__ import annotations

import random
import sys
import uuid
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.utils.data import get_worker_info

from playhead.fetch.generators import derive, find_generators, seed_generators

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

__all__ = ["KeyedCalls"]


class KeyedCalls:
    """Calls dataset code so that all it draws at random is a function of a key.

    Before each call Python's, NumPy's and torch's global generators (the CPU's), Lhotse's random
    ids, and the generators that the dataset holds (`find_generators`) are seeded. In the main
    process the global ones are put back afterwards, and torch computes with one thread, as it
    does in workers: the last bits of its sums depend on the number.

    A generator that the call itself brought into the dataset could not be seeded before it: then
    the call is made again, once.

    Parameters
    ----------
    dataset
        Whose generators are seeded.

    Examples
    --------
    >>> calls = KeyedCalls(None)
    >>> calls(7, random.random) == calls(7, random.random)
    True
    """

    def __init__(self, dataset: object) -> None:
        self._dataset = dataset
        self._known: set[str] = set()

    def __call__(self, key: int, call: Callable[[], Any]) -> Any:
        """Return what `call` returns when everything random is seeded from `key`, 64 bits."""
        with _globals_kept():
            self._seed(key)
            result = call()
            if find_generators(self._dataset).keys() - self._known:
                self._seed(key)
                result = call()
        return result

    def _seed(self, key: int) -> None:
        _seed_globals(key)
        found = find_generators(self._dataset)
        for path in found.keys() - self._known:
            if isinstance(found[path], random.SystemRandom):
                warnings.warn(
                    f"the dataset{path} is a random.SystemRandom, which nobody can seed: "
                    "batches cannot be repeated. Use random.Random",
                    stacklevel=2,
                )
        self._known |= found.keys()
        seed_generators(found, key)


def _seed_globals(key: int) -> None:
    random.seed(derive(key, "random"))
    words = derive(key, "numpy").to_bytes(8, "little")
    np.random.seed(np.frombuffer(words, np.uint32))  # noqa: NPY002 - datasets use the global one
    # `torch.manual_seed` would also seed the GPUs, whose generators belong to the training step.
    torch.default_generator.manual_seed(derive(key, "torch"))
    lhotse: Any = sys.modules.get("lhotse.utils")
    if lhotse is not None:
        # Where `lhotse.utils.fix_random_seed` puts the source of ids, too.
        ids = random.Random(derive(key, "uuid"))  # noqa: S311 - ids of cuts, not secrets
        lhotse._lhotse_uuid = lambda: uuid.UUID(int=ids.getrandbits(128), version=4)  # noqa: SLF001


@contextmanager
def _globals_kept() -> Generator[None]:
    if get_worker_info() is not None:
        yield
        return
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002 - as above
    pytorch, threads = torch.default_generator.get_state(), torch.get_num_threads()
    lhotse: Any = sys.modules.get("lhotse.utils")
    ids = getattr(lhotse, "_lhotse_uuid", None)
    torch.set_num_threads(1)
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002 - as above
        torch.default_generator.set_state(pytorch)
        torch.set_num_threads(threads)
        if lhotse is not None:
            lhotse._lhotse_uuid = ids  # noqa: SLF001 - as above
