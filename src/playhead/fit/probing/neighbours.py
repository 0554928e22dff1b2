"""What the driver's own tool tells of a card: its version, and who else is on it."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import suppress
from typing import Final

from playhead.fit.probing.messages import Neighbour

__all__ = ["driver_version", "neighbours", "takes_one_process"]

_TOOL: Final = "nvidia-smi"
_SECONDS: Final = 10.0
_MIB: Final = 1 << 20


def neighbours(card: str) -> tuple[Neighbour, ...]:
    """Return the processes that compute on a card; none where the tool is missing or silent.

    In a container it sees no process of others, though their memory is gone all the same.

    Parameters
    ----------
    card
        Its UUID, as the driver writes it (`GPU-…`); an empty one stands for all cards.
    """
    found: list[Neighbour] = []
    for row in _ask("--query-compute-apps=gpu_uuid,pid,process_name,used_gpu_memory"):
        # Nothing is quoted, and a name may hold commas: it is what is left between the others.
        uuid, pid, *name, held = row.split(", ")
        if pid.isdigit() and (not card or uuid == card):
            found.append(
                Neighbour(
                    pid=int(pid),
                    name=", ".join(name),
                    held=int(held) * _MIB if held.isdigit() else None,
                )
            )
    return tuple(found)


def driver_version() -> str | None:
    """Return the version of the driver; None where nothing tells."""
    return next(iter(_ask("--query-gpu=driver_version")), None)


def takes_one_process(card: str) -> bool:
    """Say whether a card is set to let in one process at a time; no where nothing tells.

    Parameters
    ----------
    card
        Its UUID, as the driver writes it (`GPU-…`).
    """
    return f"{card}, Exclusive_Process" in _ask("--query-gpu=uuid,compute_mode")


def _ask(question: str) -> list[str]:
    tool = shutil.which(_TOOL)
    if tool is None:
        return []
    answer = ""
    # A driver in trouble hangs its tool: nothing that it could say is worth more than a moment.
    with suppress(OSError, subprocess.SubprocessError):
        answer = subprocess.run(  # noqa: S603  (a fixed command)
            [tool, question, "--format=csv,noheader,nounits"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=True,
        ).stdout
    return [line for line in answer.splitlines() if line.count(", ") >= question.count(",")]
