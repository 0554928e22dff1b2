"""What is to be done when the process ends, before anybody waits for its threads."""

from __future__ import annotations

import os
import threading
import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["call_at_exit"]


def call_at_exit(method: Callable[[], object]) -> None:
    """Have a method called when the process ends, if its object is still there by then.

    What `atexit` calls comes after the threads of pools were waited for, and so too late for what
    has to tell those threads that nobody needs them any more.

    Parameters
    ----------
    method
        A bound method without arguments. It is not called in processes that are forked from this.
    """
    reference: weakref.WeakMethod[Any] = weakref.WeakMethod(method)
    process = os.getpid()

    def call() -> None:
        found = reference()
        if found is not None and process == os.getpid():
            found()

    # Python has it for its own pools, and no other way to come before them.
    register = getattr(threading, "_register_atexit", None)
    if register is not None:
        register(call)
