"""What kind of pack a file is, by its first bytes."""

from __future__ import annotations

from pathlib import Path
from stat import S_ISREG
from typing import Final, Literal

import pyarrow as pa

from playhead.index.pack_table import VERSION_KEY

__all__ = ["ARROW_MAGIC", "NEMO_MAGIC", "PACK_SUFFIX", "first_bytes", "kind_of_pack"]

PACK_SUFFIX: Final = ".idxpack"
"""What the names of packs end with."""

ARROW_MAGIC: Final = b"ARROW1"
"""What packs of Playhead begin with, as all files of Arrow."""

NEMO_MAGIC: Final = b"IDXPACK"
"""What packs of NeMo begin with."""


def first_bytes(path: str | Path) -> bytes:
    """Read the first bytes of a pack; none of what is no file.

    Raises
    ------
    OSError
        If it cannot be read.
    """
    # A pipe that nobody writes to would be waited for, maybe for ever.
    if not S_ISREG(Path(path).stat().st_mode):
        return b""
    with Path(path).open("rb") as file:
        return file.read(8)


def kind_of_pack(path: str | Path) -> Literal["playhead", "nemo", "other"]:
    """Say who made a pack, whatever its version; `other` for what is no pack, nor a file.

    An Arrow file that cannot be read is a damaged pack if it is called as packs are.

    Raises
    ------
    OSError
        If the file cannot be read.
    """
    magic = first_bytes(path)
    if magic.startswith(NEMO_MAGIC):
        return "nemo"
    if not magic.startswith(ARROW_MAGIC):
        return "other"
    try:
        with pa.memory_map(str(path)) as mapped:
            is_ours = VERSION_KEY in (pa.ipc.open_file(mapped).schema.metadata or {})
    except (pa.ArrowException, OSError):
        is_ours = str(path).endswith(PACK_SUFFIX)
    return "playhead" if is_ours else "other"
