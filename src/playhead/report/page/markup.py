"""HTML that is made of elements, so that whatever a config holds is text and nothing more."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Markup", "element", "joined", "printable"]

_EMPTY = frozenset({"br", "col", "meta"})
# What XML knows no way to write, and half a pair of what UTF-16 writes in two.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


@final
class Markup(str):
    """Text that is HTML already; every other text is escaped."""

    __slots__ = ()


def printable(text: str) -> str:
    r"""Return a text without characters that no page can show; a mark stands in for each.

    Examples
    --------
    >>> printable("a\x00b") == "a\N{REPLACEMENT CHARACTER}b"
    True
    """
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def element(
    name: str, *content: str | None, attributes: Mapping[str, str | None] | None = None
) -> Markup:
    """Return an element of HTML.

    Parameters
    ----------
    name
        Its name.
    *content
        What it holds: text is escaped, `Markup` is not, None is nothing.
    attributes
        Its attributes; those that are None are left out.

    Examples
    --------
    >>> element("td", "a < b", attributes={"class": "name", "id": None})
    '<td class="name">a &lt; b</td>'
    """
    said = "".join(
        f' {key}="{html.escape(printable(value))}"'
        for key, value in (attributes or {}).items()
        if value is not None
    )
    if name in _EMPTY:
        return Markup(f"<{name}{said}>")
    return Markup(f"<{name}{said}>{joined(content)}</{name}>")


def joined(content: Iterable[str | None]) -> Markup:
    """Return one piece of HTML for several: text is escaped, `Markup` is not, None is nothing."""
    return Markup(
        "".join(
            part if isinstance(part, Markup) else html.escape(printable(part), quote=False)
            for part in content
            if part is not None
        )
    )
