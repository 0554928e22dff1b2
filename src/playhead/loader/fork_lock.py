"""A lock that threads of the loader hold while they compute, so that nobody forks meanwhile.

A worker that is forked while another thread is inside of NumPy, imports a module or fills in a
cached property would find a lock that nobody will ever give back.
"""

from __future__ import annotations

import os
import threading

__all__ = ["fork_lock"]

fork_lock = threading.Lock()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=fork_lock.acquire,
        after_in_parent=fork_lock.release,
        after_in_child=fork_lock.release,
    )
