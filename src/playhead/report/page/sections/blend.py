"""What the blend is from stretch to stretch of training, against what its weights ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from playhead.report.page.canvas import plotted
from playhead.report.page.colours import OTHERS, PAPER, SERIES, swatch
from playhead.report.page.markup import element
from playhead.report.page.numbers import counted, number, share
from playhead.report.page.section import Section
from playhead.report.page.tables import Column, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from playhead.report.figures import PartFigures
    from playhead.report.page.markup import Markup

__all__ = ["blend"]

_MOST: Final = len(SERIES)


def blend(part: PartFigures, prefix: str, *, finite: bool) -> Section:
    """Return the section of how a blend goes in time."""
    leaves, points = part.leaves, part.blend
    steps = sum(point.steps for point in points)
    says = (
        f"Share of the samples from each source in"
        f" {counted(len(points), 'stretch', 'stretches')} of training, {counted(steps, 'step')}. "
    )
    says += (
        "A finite pass takes every sample once, whatever the weights are."
        if finite
        else f"The largest distance from a weight is {share(_drift(part))} of the samples."
    )
    if not points or not leaves:
        says = "There is nothing to see: no stretch of training was planned."
        return Section(name=f"{prefix}blend", title="Blend over time", says=says)
    shares = np.asarray([point.shares for point in points], dtype=np.float64)
    order = sorted(range(len(leaves)), key=lambda one: leaves[one].realised, reverse=True)
    own = order if len(order) <= _MOST else order[:_MOST]
    others = order[len(own) :]
    grouped = [[one] for one in own] + ([others] if others else [])
    colours = [*SERIES[: len(own)], *([OTHERS] if others else [])]
    names = [leaves[one].name for one in own] + ([f"{len(others):,} others"] if others else [])
    series = [shares[:, group].sum(axis=1) for group in grouped]
    return Section(
        name=f"{prefix}blend",
        title="Blend over time",
        says=says,
        plots=(_plot(part, f"{prefix}plot-blend", names, series, colours),),
        numbers=(_table(part, grouped, names, series, colours),),
    )


def _drift(part: PartFigures) -> float:
    return max((abs(leaf.realised - leaf.weight) for leaf in part.leaves), default=0.0)


def _keyed(colour: str, name: str) -> Markup:
    return element("span", swatch(colour), element("span", name), attributes={"class": "key"})


def _plot(
    part: PartFigures,
    name: str,
    names: Sequence[str],
    series: Sequence[NDArray[np.float64]],
    colours: Sequence[str],
) -> Markup:
    last = part.blend[-1]
    edges = [*(point.first_step for point in part.blend), last.first_step + last.steps]

    def draw(panels: Sequence[Axes]) -> None:
        (axes,) = panels
        below = np.zeros(len(part.blend))
        for values, colour in zip(series, colours, strict=True):
            above = below + 100 * values
            axes.stairs(above, edges, baseline=below, fill=True, color=colour)
            axes.stairs(above, edges, baseline=None, color=PAPER, linewidth=1.0)
            below = above
        axes.set_xlim(edges[0], max(edges[-1], edges[0] + 1))
        axes.set_ylim(0, 100)
        axes.set_xlabel("step")
        axes.set_ylabel("share of the samples, %")
        axes.locator_params(axis="x", nbins=6, integer=True)
        axes.xaxis.set_major_formatter(lambda step, _: number(step))

    listed = "; ".join(
        f"{one} {share(float(values.min()))} to {share(float(values.max()))}"
        for one, values in zip(names, series, strict=True)
    )
    return plotted(
        draw,
        name=name,
        title="From which sources the samples are, from the largest share at the bottom to the top",
        description=f"Areas one above the other over the steps: {listed}.",
        height=260,
    )


def _table(
    part: PartFigures,
    grouped: Sequence[Sequence[int]],
    names: Sequence[str],
    series: Sequence[NDArray[np.float64]],
    colours: Sequence[str],
) -> Markup:
    columns: list[Column[int]] = [
        Column(title="Source", value=lambda one: _keyed(colours[one], names[one]), kind="name"),
        Column(
            title="Weight",
            value=lambda one: sum(part.leaves[leaf].weight for leaf in grouped[one]),
            shown=share,
            about="Share of the blend by weight",
        ),
        Column(
            title="Realised",
            value=lambda one: sum(part.leaves[leaf].realised for leaf in grouped[one]),
            shown=share,
            about="Share of all samples that were planned",
        ),
        Column(title="Least", value=lambda one: float(series[one].min()), shown=share),
        Column(title="Most", value=lambda one: float(series[one].max()), shown=share),
    ]
    return table(columns, range(len(names)), about="Shares of the samples by source")
