"""What batches cost at the storage, for either order of passes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.report.page.canvas import plotted
from playhead.report.page.colours import OTHERS, SERIES
from playhead.report.page.markup import element, joined
from playhead.report.page.numbers import number, volume
from playhead.report.page.section import Section
from playhead.report.page.tables import Column, table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes

    from playhead.report.figures import LocalityFigures, PartFigures
    from playhead.report.page.markup import Markup

__all__ = ["storage"]

_PANELS: tuple[tuple[str, Callable[[LocalityFigures], float], Callable[[float], str]], ...] = (
    ("requests of a micro-batch", lambda one: one.requests, number),
    ("bytes of a micro-batch", lambda one: one.bytes, volume),
    ("shards of a micro-batch", lambda one: one.shards, number),
)


def storage(part: PartFigures, prefix: str) -> Section:
    """Return the section of what a blend's batches cost at the storage."""
    shown = part.localities
    used = next((one.locality for one in shown if one.is_used), None)
    says: str = "What a micro-batch asks of the storage on average, by the order of passes."
    if used is not None:
        says = joined([says, " This config has ", element("code", f"locality: {used}"), "."])
    if not shown:
        says = "There is nothing to see: nothing is known of where samples lie in files."
    return Section(
        name=f"{prefix}storage",
        title="Requests and bytes",
        says=says,
        plots=(_plot(shown, f"{prefix}plot-storage"),) if shown else (),
        numbers=(_table(shown),) if shown else (),
    )


def _name(one: LocalityFigures) -> str:
    return f"{one.locality} (this config)" if one.is_used else one.locality


def _table(shown: Sequence[LocalityFigures]) -> Markup:
    columns: list[Column[LocalityFigures]] = [
        Column(title="Locality", value=_name, kind="term"),
        Column(
            title="Requests",
            value=lambda one: one.requests,
            shown=number,
            about="Reads by micro-batch; those of ranges near each other are one",
        ),
        Column(title="Bytes", value=lambda one: one.bytes, shown=volume),
        Column(
            title="Shards",
            value=lambda one: one.shards,
            shown=number,
            about="Different shards by micro-batch",
        ),
        Column(
            title="Kept",
            value=lambda one: one.kept_bytes,
            shown=volume,
            about="Bytes of whole shards that a machine keeps at a time",
        ),
        Column(title="Note", value=lambda one: one.note or None, kind="prose"),
    ]
    return table(columns, shown, about="Requests, bytes and shards by locality")


def _plot(shown: Sequence[LocalityFigures], name: str) -> Markup:
    def draw(panels: Sequence[Axes]) -> None:
        for axes, (what, value, words) in zip(panels, _PANELS, strict=True):
            values = [value(one) for one in shown]
            most = max(values) or 1.0
            colours = [SERIES[0] if one.is_used else OTHERS for one in shown]
            axes.barh(range(len(shown)), values, height=0.7, color=colours)
            for place, one in enumerate(values):
                axes.text(one + most / 60, place, words(one), va="center", ha="left")
            # Room for the words beside the longest bar.
            axes.set_xlim(0, 1.25 * most)
            axes.set_ylim(len(shown) - 0.4, -0.6)
            axes.set_yticks(range(len(shown)), [one.locality for one in shown])
            axes.set_xticks([])
            axes.spines["bottom"].set_visible(False)
            axes.set_title(what, loc="left", fontsize="medium", fontweight="normal")

    listed = "; ".join(
        f"{one.locality}: {number(one.requests)} requests, {volume(one.bytes)},"
        f" {number(one.shards)} shards"
        for one in shown
    )
    return plotted(
        draw,
        name=name,
        title="How many requests, bytes and shards a micro-batch takes, by locality",
        description=f"Three pairs of bars. {listed}.",
        height=3 * (34 + 24 * len(shown)),
        panels=len(_PANELS),
    )
