"""Commands that do one part of the work: which one, and which others are missing."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.index.part_work import Share

__all__ = ["PartOption", "missing_note", "share_of_option"]

_NAMED_PARTS = 8

PartOption = Annotated[
    str | None,
    typer.Option(
        help="Do the i-th of n parts of the work, on as many machines: the last one puts all "
        "together. `auto` is the part that Slurm says.",
        metavar="I/N|auto",
    ),
]


def share_of_option(part: str | None) -> Share | None:
    """Read `--part`; None where this run is to do everything.

    Raises
    ------
    ConfigError
        If there is no such part.
    """
    if part is None:
        return None
    from playhead.index.part_work import share_of  # noqa: PLC0415  (loads NumPy)

    share = share_of(part, os.environ)
    return None if share.count == 1 else share


def missing_note(missing: Sequence[int], share: Share, arguments: Sequence[str]) -> str:
    """Say which parts of the work are missing, and what does the first of them.

    Parameters
    ----------
    missing
        Their numbers.
    share
        The part that this run did.
    arguments
        Those that this run was started with, behind the program's name.
    """
    named = ", ".join(map(str, missing[:_NAMED_PARTS])) + ", …" * (len(missing) > _NAMED_PARTS)
    command = _with_part(arguments, f"{missing[0]}/{share.count}")
    are = "part is" if len(missing) == 1 else "parts are"
    return (
        f"{len(missing)} of {share.count} {are} missing ({named}): wait until they are done, "
        f"or run `{command}`"
    )


def _with_part(arguments: Sequence[str], part: str) -> str:
    """Write a command line with another part.

    Examples
    --------
    >>> _with_part(["index", "my data.yaml", "--part", "auto"], "4/16")
    "playhead index 'my data.yaml' --part 4/16"
    """
    others = [
        argument
        for before, argument in zip(["", *arguments], arguments, strict=False)
        if before != "--part" and argument != "--part" and not argument.startswith("--part=")
    ]
    return shlex.join(["playhead", *others, "--part", part])
