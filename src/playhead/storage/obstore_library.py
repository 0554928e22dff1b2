"""The library that speaks to object stores, usable in processes that were forked too."""

from __future__ import annotations

import importlib
import os
import shutil
import sys
import tempfile
from contextlib import contextmanager
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from playhead.errors import MissingExtraError, StorageError

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from types import ModuleType

__all__ = ["obstore"]

_NATIVE: Final = "obstore._obstore"
# What a parent had in hand: letting go of it would ask threads that are gone.
_left_behind: list[ModuleType] = []


def obstore() -> Any:
    """Return the `obstore` of this process.

    Its requests are served by threads of its own, which a fork does not copy: in a process that
    was forked from one that used the library, every call would wait for them for ever. So such a
    process loads the library once more, from a copy that the system takes for another one; that
    takes some 15 ms and 6 MB.

    Raises
    ------
    MissingExtraError
        If it is not installed.
    StorageError
        If this process was forked from one that has it, and cannot load it again.
    """
    try:
        return importlib.import_module("obstore")
    except ImportError as error:
        if _left_behind:
            raise StorageError(
                f"this process was forked and cannot load `obstore` again: {error}",
                fix="Start workers with multiprocessing_context: forkserver",
            ) from error
        raise MissingExtraError(
            "s3, gs, az and http need the package `obstore`, which is not installed",
            fix='Run: pip install "playhead[s3]"',
        ) from error


def _leave_behind() -> None:
    """Forget, in a forked process, the library of its parent."""
    native = sys.modules.get(_NATIVE)
    if native is None:
        return
    names = [name for name in sys.modules if name.partition(".")[0] == "obstore"]
    _left_behind.extend(map(sys.modules.pop, names))
    if not any(isinstance(finder, _Again) for finder in sys.meta_path):
        assert native.__spec__ is not None
        sys.meta_path.insert(0, _Again(str(native.__spec__.origin)))


class _Again:
    """Finds the native part of the library where it was first found; loads it from a copy."""

    def __init__(self, origin: str) -> None:
        self._origin = origin

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        return ModuleSpec(name, _CopyLoader(name, self._origin)) if name == _NATIVE else None


class _CopyLoader(ExtensionFileLoader):
    def create_module(self, spec: ModuleSpec) -> ModuleType:
        try:
            # A library that is open already is known by its file, so that file will not do.
            with _copied(self.path) as spec.origin:
                return super().create_module(spec)
        except OSError as error:
            raise ImportError(str(error)) from error


@contextmanager
def _copied(path: str) -> Generator[str]:
    """Give the path of a copy that is gone afterwards."""
    if not hasattr(os, "memfd_create"):
        with tempfile.NamedTemporaryFile(suffix=Path(path).name) as file:
            shutil.copyfile(path, file.name)
            yield file.name
        return
    descriptor = os.memfd_create("obstore")
    with open(descriptor, "wb") as copy, Path(path).open("rb") as original:  # noqa: PTH123 - no path
        shutil.copyfileobj(original, copy, 1 << 20)
        copy.flush()
        # With the process in its name: a copy of the parent's had another.
        yield f"/proc/{os.getpid()}/fd/{descriptor}"


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_behind)
