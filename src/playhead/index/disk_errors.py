"""What helps against an error of a disk."""

from __future__ import annotations

import errno
from typing import Final

__all__ = ["fix_of"]

_FIXES: Final = {
    errno.ENOSPC: "Make room, and start again",
    errno.EDQUOT: "Make room in your quota, and start again",
    errno.EACCES: "Give the right to read or write it, and start again",
    errno.EPERM: "Give the right to read or write it, and start again",
    errno.EROFS: "Keep packs elsewhere (indexes_root), for this cannot be written to",
    errno.EISDIR: "Correct the path: a file is wanted here",
    errno.EEXIST: "Correct the path: a folder is wanted here",
    errno.ENOTDIR: "Correct the path: a folder is wanted here",
    errno.ENAMETOOLONG: "Correct the path",
    errno.ELOOP: "Correct the path: its symbolic links lead to themselves",
    errno.EMFILE: "Raise the limit of open files (ulimit -n), and start again",
}


def fix_of(error: OSError) -> str:
    """Return what to do about an error of the system.

    Examples
    --------
    >>> fix_of(OSError(errno.ENOSPC, "No space left on device"))
    'Make room, and start again'
    """
    return _FIXES.get(error.errno or 0, "Look after the disk, and start again")
