"""Bars with names: the largest, and one for all others."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Any

from playhead.report.page.colours import GRID, OTHERS, SERIES
from playhead.report.page.markup import printable
from playhead.report.page.numbers import number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

__all__ = ["bars_height", "draw_bars", "shortened"]

_MOST_CHARACTERS = 34


def bars_height(bars: int) -> float:
    """Return the height that a plot needs for some bars."""
    return 36.0 * max(1, bars) + 50


def draw_bars(
    axes: Axes,
    names: Sequence[str],
    values: Sequence[float],
    shown: Sequence[str],
    *,
    axis: str,
    others: bool = False,
) -> None:
    """Draw bars to the right, each below its name, so that long names have room.

    Parameters
    ----------
    axes
        Where to.
    names, values, shown
        Of each bar, from top to bottom: its name, its length, and its length in words.
    axis
        What is measured, with its unit.
    others
        Whether the last bar stands for all others.
    """
    places = range(len(values))
    colours = [SERIES[0]] * len(values)
    if others:
        colours[-1] = OTHERS
    most = max(values, default=0.0) or 1.0
    axes.barh(list(places), list(values), height=0.36, color=colours, align="edge")
    for place, name, words in zip(places, names, shown, strict=True):
        style: dict[str, Any] = {"va": "bottom", "clip_on": False}
        axes.text(0, place - 0.04, shortened(name), ha="left", **style)
        axes.text(most, place - 0.04, words, ha="right", **style)
    axes.set_ylim(len(values) - 0.5, -0.6)
    axes.set_xlim(0, most)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_xlabel(axis)
    axes.xaxis.set_major_formatter(lambda value, _: number(value))
    axes.locator_params(axis="x", nbins=5)
    axes.grid(axis="x", color=GRID)


def shortened(name: str) -> str:
    """Return a name that fits into a plot, without its beginning where it is long.

    Those of files differ at their ends.

    Examples
    --------
    >>> shortened("/data/" + "very/" * 20 + "far.json")
    '…very/very/very/very/very/far.json'
    """
    line = " ".join(printable(name).split())
    is_wide = any(unicodedata.east_asian_width(character) in "WF" for character in line)
    most = _MOST_CHARACTERS // 2 if is_wide else _MOST_CHARACTERS
    return line if len(line) <= most else f"…{line[1 - most :]}"
