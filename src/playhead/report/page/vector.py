"""A drawing of matplotlib's as a part of a page: alone with its names, in the page's colours."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import Final

from playhead.report.page.colours import VARIABLES
from playhead.report.page.markup import Markup

__all__ = ["embedded"]

_SVG: Final = "{http://www.w3.org/2000/svg}"
_LINK: Final = "{http://www.w3.org/1999/xlink}href"
_COLOUR: Final = re.compile("#fe00[0-9a-f]{2}")
_REFERENCE: Final = re.compile(r"url\(#([^)]+)\)")
# The page has its fonts; sizes stay, without the shorthand that would bring a family back.
_FONT: Final = re.compile(r"font: (?:.*? )?(?P<size>[\d.]+px) [^;]*|font-family: [^;]*;? ?")


def embedded(drawing: str, *, name: str, description: str) -> Markup:
    """Return a drawing for the inside of a page.

    Its size is that of its place, its fonts and colours are the page's, and all names in it begin
    with its own, so that several drawings in one page do not clash.

    Parameters
    ----------
    drawing
        An SVG file of matplotlib's, drawn in the colours of `playhead.report.page.colours`.
    name
        Its name, one of a kind in the page; what has the id NAME-title is its title.
    description
        What one sees, for those who do not.
    """
    root = ET.fromstring(drawing)  # noqa: S314  (matplotlib has just made it)
    for unwanted in ("metadata", "defs/style"):
        _remove(root, unwanted)
    used = _referenced(root)
    for node in root.iter():
        _adapt(node, name, used)
    box = root.attrib["viewBox"]
    root.attrib.clear()
    root.attrib.update(
        {
            "xmlns": _SVG.strip("{}"),
            "class": "plot",
            "viewBox": box,
            "role": "img",
            "aria-labelledby": f"{name}-title",
            "aria-describedby": f"{name}-about",
        }
    )
    about = ET.Element("desc", {"id": f"{name}-about"})
    about.text = description
    root.insert(0, about)
    return Markup(ET.tostring(root, encoding="unicode"))


def _remove(root: ET.Element, path: str) -> None:
    *way, last = path.split("/")
    parents = root.findall("/".join(_SVG + one for one in way)) if way else [root]
    for parent in parents:
        for child in parent.findall(_SVG + last):
            parent.remove(child)


def _referenced(root: ET.Element) -> set[str]:
    """The names that something in the drawing points to."""
    found: set[str] = set()
    for node in root.iter():
        for key, value in node.attrib.items():
            if key == _LINK:
                found.add(value.removeprefix("#"))
            else:
                found.update(_REFERENCE.findall(value))
    return found


def _adapt(node: ET.Element, name: str, used: set[str]) -> None:
    """Give an element the names, the fonts and the colours of the page."""
    node.tag = node.tag.removeprefix(_SVG)
    node.tail = None
    if len(node):
        # Between elements there is nothing but line ends.
        node.text = None
    own = node.attrib.pop("id", None)
    if own in used:
        node.attrib["id"] = f"{name}-{own}"
    link = node.attrib.pop(_LINK, None)
    if link is not None:
        node.attrib["href"] = f"#{name}-{link.removeprefix('#')}"
    for key, value in node.attrib.items():
        node.attrib[key] = _REFERENCE.sub(rf"url(#{name}-\1)", value)
    style = node.attrib.get("style")
    if style is not None:
        style = _FONT.sub(
            lambda found: f"font-size: {found['size']}" if found["size"] else "", style
        )
        node.attrib["style"] = _COLOUR.sub(lambda found: VARIABLES[found[0]], style)
