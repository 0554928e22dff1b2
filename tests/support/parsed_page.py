"""A page as a parser sees it, which complains of what a browser would forgive."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

__all__ = ["Element", "parsed"]

_EMPTY = {"meta", "br", "col"}


@dataclass(eq=False)
class Element:
    """An element with what is in it."""

    name: str
    attributes: dict[str, str]
    children: list[Element] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All text inside, without that of styles and scripts."""
        return "".join(self.said)

    def all(self, name: str | None = None, **wanted: str) -> list[Element]:
        """Every element inside of a name, with these attributes (`class_` for `class`)."""
        found = []
        for child in self.children:
            fits = all(
                child.attributes.get(key.strip("_").replace("_", "-")) == value
                for key, value in wanted.items()
            )
            if fits and name in {None, child.name}:
                found.append(child)
            found.extend(child.all(name, **wanted))
        return found

    def one(self, name: str | None = None, **wanted: str) -> Element:
        [found] = self.all(name, **wanted)
        return found


class _Parser(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open = [Element("page", {})]

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"<{tag}> has an attribute twice: {names}"
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(element)
        if tag not in _EMPTY:
            self.open.append(element)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in _EMPTY:
            self.open.pop()

    def handle_endtag(self, tag):
        last = self.open.pop()
        assert last.name == tag, f"</{tag}> closes <{last.name}>"

    def handle_data(self, data):
        if self.open[-1].name not in {"style", "script"}:
            for element in self.open:
                element.said.append(data)


def parsed(page: str) -> Element:
    """Parse a page; every element must be closed, in order."""
    parser = _Parser()
    parser.feed(page)
    parser.close()
    [root] = parser.open
    return root
