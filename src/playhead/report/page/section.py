"""A section of a page: what it is about, its plots, and its numbers beside them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from playhead.report.page.markup import Markup, element, joined
from playhead.report.page.numbers import exact

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Fact", "Section", "facts"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Fact:
    """A number of which there is one."""

    name: str
    """What it is."""
    shown: str
    """The number with its unit."""
    value: float | None = None
    """Exactly, for programs."""
    about: str | None = None
    """What it means."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    """A section of a page."""

    name: str
    """Its name in links, one of a kind in the page."""
    title: str
    """Its title."""
    says: str | Markup
    """What one sees in it, in a sentence or two."""
    plots: tuple[Markup, ...] = ()
    """Its plots."""
    numbers: tuple[Markup, ...] = ()
    """What stands beside them."""
    below: tuple[Markup, ...] = ()
    """What needs the whole width: wide tables."""

    def to_html(self, level: int) -> Markup:
        """Return its HTML with a title of a level, 2 or 3."""
        pair = None
        if self.plots or self.numbers:
            beside = element("div", joined(self.numbers), attributes={"class": "numbers"})
            drawn = element("div", joined(self.plots), attributes={"class": "plots"})
            kind = "pair" if self.plots and self.numbers else "alone"
            pair = element(
                "div",
                drawn if self.plots else None,
                beside if self.numbers else None,
                attributes={"class": kind},
            )
        return element(
            "section",
            element(f"h{level}", self.title),
            element("p", self.says),
            pair,
            *self.below,
            attributes={"id": self.name},
        )


def facts(shown: Sequence[Fact], *, most: int = 4) -> Markup:
    """Return a list of facts, each with its name.

    Parameters
    ----------
    shown
        The facts.
    most
        How many stand side by side at most; rows have about equal numbers of them.
    """
    rows = -(-len(shown) // most)
    columns = -(-len(shown) // max(rows, 1))
    return element(
        "dl",
        *(
            element(
                "div",
                element("dt", one.name),
                element(
                    "dd",
                    one.shown,
                    attributes={"data-value": exact(one.value)},
                ),
                None
                if one.about is None
                else element("dd", one.about, attributes={"class": "small"}),
            )
            for one in shown
        ),
        attributes={"class": "facts", "style": f"--columns: {columns}"},
    )
