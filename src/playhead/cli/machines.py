"""What does the work of a command: processes of this machine, or a Ray cluster."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Final

import typer

if TYPE_CHECKING:
    from collections.abc import Generator

    from playhead.index.pool import Workers

__all__ = ["RayAddress", "WorkerCount", "machines"]

_PROCESSES: Final = 4

WorkerCount = Annotated[
    int | None,
    typer.Option(
        help="Processes, 4 by default; on a Ray cluster the most tasks at a time.", metavar="N"
    ),
]
RayAddress = Annotated[
    str | None,
    typer.Option(
        "--ray",
        help="Work on a Ray cluster: auto, local, or its address, such as ray://head:10001.",
        metavar="ADDRESS",
    ),
]


@contextmanager
def machines(address: str | None, count: int | None) -> Generator[Workers]:
    """Say what does the work while the block lasts.

    Parameters
    ----------
    address
        What `--ray` says.
    count
        What `--workers` says.

    Raises
    ------
    ConfigError
        If there is no such cluster.
    MissingExtraError
        If Ray is not installed.
    """
    if address is None:
        yield max(1, _PROCESSES if count is None else count)
        return
    if not address:
        raise typer.BadParameter("--ray needs an address: auto, local, or ray://…")
    from playhead.index.ray_pool import ray_cluster  # noqa: PLC0415  (loads NumPy)

    with ray_cluster(address, None if count is None else max(1, count)) as cluster:
        yield cluster
