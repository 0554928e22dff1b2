"""Bars with names: the largest, and one for all others."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Any

from playhead.report.page.canvas import plotted
from playhead.report.page.colours import GRID, OTHERS, SERIES
from playhead.report.page.markup import printable
from playhead.report.page.numbers import number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from playhead.report.page.markup import Markup

__all__ = ["bar_plot"]

_MOST_CHARACTERS = 34


def bar_plot(
    names: Sequence[str],
    values: Sequence[float],
    shown: Sequence[str],
    *,
    name: str,
    title: str,
    axis: str,
    order: str = "the largest first",
    others: bool = False,
) -> Markup:
    """Draw bars to the right, each below its name, so that long names have room.

    Parameters
    ----------
    names, values, shown
        Of each bar, from top to bottom: its name, its length, and its length in words.
    name, title
        As of `plotted`.
    axis
        What is measured, with its unit.
    order
        In which order the bars are, in words.
    others
        Whether the last bar stands for all others.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    listed = "; ".join(f"{one} {words}" for one, words in zip(names, shown, strict=True))

    def draw(panels: Sequence[Axes]) -> None:
        (axes,) = panels
        _draw(axes, names, values, shown, others=others)
        axes.set_xlabel(axis)

    return plotted(
        draw,
        name=name,
        title=title,
        description=f"Bars, {order}: {listed}.",
        height=36.0 * max(1, len(names)) + 50,
    )


def _draw(
    axes: Axes,
    names: Sequence[str],
    values: Sequence[float],
    shown: Sequence[str],
    *,
    others: bool,
) -> None:
    places = range(len(values))
    colours = [SERIES[0]] * len(values)
    if others:
        colours[-1] = OTHERS
    most = max(values, default=0.0) or 1.0
    axes.barh(list(places), list(values), height=0.36, color=colours, align="edge")
    for place, name, words in zip(places, names, shown, strict=True):
        style: dict[str, Any] = {"va": "bottom", "clip_on": False}
        axes.text(0, place - 0.04, _shortened(name), ha="left", **style)
        axes.text(most, place - 0.04, words, ha="right", **style)
    axes.set_ylim(len(values) - 0.5, -0.6)
    axes.set_xlim(0, most)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.xaxis.set_major_formatter(lambda value, _: number(value))
    axes.locator_params(axis="x", nbins=5)
    axes.grid(axis="x", color=GRID)


def _shortened(name: str) -> str:
    """Return a name that fits into a plot, without its beginning where it is long.

    Those of files differ at their ends.

    Examples
    --------
    >>> _shortened("/data/" + "very/" * 20 + "far.json")
    '…very/very/very/very/very/far.json'
    """
    line = " ".join(printable(name).split())
    is_wide = any(unicodedata.east_asian_width(character) in "WF" for character in line)
    most = _MOST_CHARACTERS // 2 if is_wide else _MOST_CHARACTERS
    return line if len(line) <= most else f"…{line[1 - most :]}"
