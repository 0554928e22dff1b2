"""Tables of a page: numbers to the right, columns of nothing left out, long ones folded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from playhead.report.page.markup import Markup, element, joined
from playhead.report.page.numbers import exact

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Column", "folded", "table"]

# A browser is slow with more, and nobody reads them.
_MOST_ROWS = 2000

Row = TypeVar("Row")


@dataclass(frozen=True, kw_only=True, slots=True)
class Column(Generic[Row]):
    """A column of a table."""

    title: str
    """What is above it."""
    value: Callable[[Row], Any]
    """What a row has there: a number, a text or `Markup`; None is nothing."""
    shown: Callable[[Any], str] | None = None
    """How a number is written; None for a text."""
    about: str | None = None
    """What it means, in a sentence."""
    kind: str | None = None
    """How a text is set: `name` may be long, `prose` is sentences, `term` one word."""


def table(columns: Sequence[Column[Row]], rows: Sequence[Row], *, about: str) -> Markup:
    """Return a table in a box of its own, which scrolls where it is too wide.

    Parameters
    ----------
    columns
        Its columns; one in which no row has anything is left out.
    rows
        Its rows.
    about
        What it shows, for those who cannot see it.
    """
    used = [one for one in columns if any(one.value(row) is not None for row in rows)]
    head = element("tr", *(_head(one) for one in used))
    body = joined(element("tr", *(_cell(one, row) for one in used)) for row in rows)
    made = element("table", element("thead", head), element("tbody", body))
    # A box that scrolls must be reachable by keys.
    box = {"class": "scroll", "tabindex": "0", "role": "region", "aria-label": about}
    return element("div", made, attributes=box)


def folded(
    columns: Sequence[Column[Row]], rows: Sequence[Row], *, what: str, is_open: bool = False
) -> Markup:
    """Return a table that opens when it is asked for; of very many rows the first.

    Parameters
    ----------
    columns, rows
        As of `table`.
    what
        What its rows are, such as `500 sources`.
    is_open
        Whether it is open from the start.
    """
    shown = rows[:_MOST_ROWS]
    left = len(rows) - len(shown)
    more = f"{left:,} more are left out here; `playhead report --json` has all." if left else None
    return element(
        "details",
        element("summary", f"All {what}"),
        table(columns, shown, about=f"All {what}"),
        None if more is None else element("p", more, attributes={"class": "small"}),
        attributes={"open": "" if is_open else None},
    )


def _head(column: Column[Any]) -> Markup:
    kind = column.kind if column.shown is None else "number"
    title = column.title
    said: Markup | str = title
    if column.about is not None:
        said = element("abbr", title, attributes={"title": column.about})
    return element("th", said, attributes={"scope": "col", "class": kind})


def _cell(column: Column[Any], row: Any) -> Markup:
    value = column.value(row)
    if column.shown is None:
        return element("td", value, attributes={"class": column.kind})
    # Exactly, for the order in which a reader wants them, and for programs.
    attributes = {"class": "number", "data-value": exact(value)}
    return element("td", column.shown(value), attributes=attributes)
