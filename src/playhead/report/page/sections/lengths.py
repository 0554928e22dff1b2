"""How long the samples are, in seconds and in tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from playhead.report.page.canvas import plotted
from playhead.report.page.colours import GRID, SERIES, legend
from playhead.report.page.numbers import count, hours, length, number, precise, share
from playhead.report.page.section import Fact, Section, facts
from playhead.report.page.tables import Column, folded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from playhead.report.figures import Distribution
    from playhead.report.page.markup import Markup

__all__ = ["lengths"]


def lengths(distribution: Distribution, prefix: str) -> Section:
    """Return the section of a distribution of lengths.

    Parameters
    ----------
    distribution
        Lengths of a pass.
    prefix
        What the names of its blend begin with.
    """
    unit, amount = distribution.unit, _amount(distribution.unit)
    total = sum(distribution.samples)
    says = (
        f"Each bar is the share of the samples of a pass that are so many {unit} long; the line is"
        f" the share of {amount} that they hold."
    )
    shown: tuple[Markup, ...] = ()
    if total:
        name = f"{prefix}plot-lengths-{unit}"
        shown = (_plot(distribution, name),)
    return Section(
        name=f"{prefix}lengths-{unit}",
        title=f"Lengths in {unit}",
        says=says if total else "There is nothing to measure.",
        plots=shown,
        numbers=(facts(_facts(distribution)), _bars(distribution)) if total else (),
    )


def _facts(distribution: Distribution) -> list[Fact]:
    unit, half, most = distribution.unit, distribution.half, distribution.most
    total, amount = sum(distribution.samples), sum(distribution.amount)
    heavy = distribution.half_amount if amount else None
    return [
        Fact(name="Samples of a pass", shown=count(total), value=total),
        Fact(
            name=f"{_amount(unit).capitalize()} of a pass",
            shown=hours(amount) if unit == "seconds" else f"{number(amount)} k",
            value=amount,
        ),
        Fact(name="Half of the samples are below", shown=length(half, unit), value=half),
        Fact(name="95 % of the samples are below", shown=length(most, unit), value=most),
        Fact(
            name=f"Half of the {_amount(unit)} are in samples above",
            shown=length(heavy, unit),
            value=heavy,
        ),
    ]


def _plot(distribution: Distribution, name: str) -> Markup:
    unit, amount = distribution.unit, _amount(distribution.unit)
    edges = np.asarray(distribution.edges, dtype=np.float64)
    samples, held = (
        100 * np.asarray(bars, dtype=np.float64) / (sum(bars) or 1)
        for bars in (distribution.samples, distribution.amount)
    )

    def draw(panels: Sequence[Axes]) -> None:
        (axes,) = panels
        axes.bar(edges[:-1], samples, np.diff(edges), align="edge", color=SERIES[0])
        axes.stairs(held, edges, color=SERIES[4], linewidth=1.8)
        axes.set_xlabel(f"length, {unit}")
        axes.set_ylabel("share of a pass, %")
        axes.set_xlim(edges[0], edges[-1])
        axes.locator_params(axis="x", nbins=6)
        axes.xaxis.set_major_formatter(lambda value, _: number(value))
        axes.grid(axis="y", color=GRID)

    half, most = length(distribution.half, unit), length(distribution.most, unit)
    return plotted(
        draw,
        name=name,
        title=f"How the samples of a pass are distributed by {unit}",
        description=f"Bars by length. Half of the samples are below {half}, 95 % below {most}.",
        key=legend({SERIES[0]: "samples", SERIES[4]: amount}),
    )


def _bars(distribution: Distribution) -> Markup:
    unit = distribution.unit
    rows = [
        (low, high, samples, amount)
        for low, high, samples, amount in zip(
            distribution.edges[:-1],
            distribution.edges[1:],
            distribution.samples,
            distribution.amount,
            strict=True,
        )
    ]
    total = sum(distribution.samples)
    columns: list[Column[tuple[float, float, int, float]]] = [
        Column(title=f"From, {unit}", value=lambda row: row[0], shown=precise),
        Column(title="To", value=lambda row: row[1], shown=precise),
        Column(title="Samples", value=lambda row: row[2], shown=count),
        Column(title="Share", value=lambda row: row[2] / total, shown=share),
        Column(
            title="Hours" if unit == "seconds" else "Thousands of tokens",
            value=lambda row: row[3],
            shown=number,
        ),
    ]
    return folded(columns, rows, what=f"{len(rows)} bars")


def _amount(unit: str) -> str:
    return "hours" if unit == "seconds" else "tokens"
