"""Which of the packs that are wanted have to be built, and from what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.errors import PlayheadError
from playhead.index.build_pack import plan_pack
from playhead.index.build_result import is_done, named_os_errors, readable_pack, result_of
from playhead.index.partials import remove_partials

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from playhead.index.build_pack import PackPlan, PackSettings
    from playhead.index.build_result import PackResult
    from playhead.index.build_target import Target

__all__ = ["plans_of"]


def plans_of(
    todo: Sequence[Target], settings: PackSettings, *, force: bool
) -> tuple[dict[Path, PackResult], list[PackPlan]]:
    """Look at what is there of packs, and plan the others.

    Parameters
    ----------
    todo
        The packs.
    settings
        How they are made.
    force
        Plan what is up to date too, and read all of it.

    Returns
    -------
    tuple[dict[Path, PackResult], list[PackPlan]]
        What became of those that are up to date or cannot be planned, by their file; and the plans
        of all others, in order.
    """
    results: dict[Path, PackResult] = {}
    plans: list[PackPlan] = []
    for target in todo:
        try:
            with named_os_errors(target):
                target.path.parent.mkdir(parents=True, exist_ok=True)
                old = None if force else readable_pack(target.path)
                if old is not None and is_done(target, old, settings):
                    results[target.path] = result_of(target, "fresh", old)
                    remove_partials(target.path)
                else:
                    plans.append(plan_pack(target, old, settings))
        except PlayheadError as error:  # noqa: PERF203 - each pack may fail by itself
            results[target.path] = result_of(target, "failed", error=error)
    return results, plans
