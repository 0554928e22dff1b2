"""Colours of plots: each stands for one of the page's, which knows its light and its dark."""

from __future__ import annotations

from typing import Final

from playhead.report.page.markup import Markup, element

__all__ = ["GRID", "INK", "OTHERS", "PAPER", "SERIES", "VARIABLES", "legend", "swatch"]

INK: Final = "#fe0001"
"""Of text and axes."""
GRID: Final = "#fe0002"
"""Of lines that help to read a height."""
PAPER: Final = "#fe0003"
"""Of what is behind everything."""
OTHERS: Final = "#fe0004"
"""Of what is no series of its own."""
SERIES: Final = tuple(f"#fe001{number}" for number in range(7))
"""Of series, which the colour-blind can tell apart too."""

VARIABLES: Final = {
    INK: "var(--ink)",
    GRID: "var(--grid)",
    PAPER: "var(--paper)",
    OTHERS: "var(--others)",
    **{colour: f"var(--series-{number})" for number, colour in enumerate(SERIES)},
}
"""What a page says for each."""


def swatch(colour: str) -> Markup:
    """Return a small field of a colour."""
    style = f"background: {VARIABLES[colour]}"
    return element("span", attributes={"class": "swatch", "style": style, "aria-hidden": "true"})


def legend(meanings: dict[str, str]) -> Markup:
    """Return what colours mean, by colour; outside of a plot it finds room on every screen."""
    keys = (
        element("span", swatch(colour), meaning, attributes={"class": "key"})
        for colour, meaning in meanings.items()
    )
    return element("span", *keys, attributes={"class": "legend"})
