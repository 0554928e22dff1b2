"""The page of a report: a document of one file, with all that it shows inside."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Final

from playhead.report.page.markup import Markup, element, joined
from playhead.report.page.sections.blend import blend
from playhead.report.page.sections.classes import classes
from playhead.report.page.sections.costs import costs
from playhead.report.page.sections.lengths import lengths
from playhead.report.page.sections.memory import memory
from playhead.report.page.sections.passes import passes
from playhead.report.page.sections.sources import sources
from playhead.report.page.sections.storage import storage
from playhead.report.page.sections.summary import summary

if TYPE_CHECKING:
    from playhead.report.figures import Figures, PartFigures
    from playhead.report.page.section import Section

__all__ = ["MARK", "page_of"]

MARK: Final = '<meta name="generator" content="Playhead report">'
"""What every page has near its beginning, and hardly anything else."""


def page_of(figures: Figures) -> str:
    """Return the page of a report: HTML that needs no other file and no network.

    Parameters
    ----------
    figures
        What it shows.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    several = len(figures.parts) > 1
    blends = [
        (part, f"part-{number}-" if several else "") for number, part in enumerate(figures.parts)
    ]
    first, last = summary(figures), passes(figures)
    middle = [(part, prefix, _sections(figures, part, prefix)) for part, prefix in blends]
    body = [first.to_html(2)]
    links = [(first.name, first.title)]
    for part, prefix, sections in middle:
        if several:
            body.append(element("h2", _title(part), attributes={"id": f"{prefix}blends"}))
            body.append(element("p", "Steps are counted for this blend alone."))
            links.append((f"{prefix}blends", _title(part)))
        else:
            links.extend((section.name, section.title) for section in sections)
        body.extend(section.to_html(3 if several else 2) for section in sections)
    body.append(last.to_html(2))
    links.append((last.name, last.title))
    return _document(figures, _nav(links), joined(body))


def _sections(figures: Figures, part: PartFigures, prefix: str) -> list[Section]:
    return [
        sources(part, prefix),
        *(lengths(distribution, prefix) for distribution in part.distributions),
        classes(part, prefix),
        costs(part, prefix, world_size=figures.world_size),
        blend(part, prefix, finite=figures.finite),
        storage(part, prefix),
        memory(part, prefix, figures=figures),
    ]


def _title(part: PartFigures) -> str:
    return f"Blend {part.name}"


def _nav(links: list[tuple[str, str]]) -> Markup:
    made = (element("a", title, attributes={"href": f"#{name}"}) for name, title in links)
    return element("nav", *made, attributes={"aria-label": "Sections"})


def _document(figures: Figures, nav: Markup, body: Markup) -> str:
    title = f"What {figures.config} will train on"
    footer = element(
        "footer",
        f"Made by Playhead {figures.version} at {figures.generated_at} from the plan alone:"
        " no audio was read. All numbers are in the output of playhead report --json too.",
    )
    head = joined(
        [
            Markup('<meta charset="utf-8">\n'),
            Markup(f"{MARK}\n"),
            Markup('<meta name="viewport" content="width=device-width, initial-scale=1">\n'),
            Markup('<meta name="color-scheme" content="light dark">\n'),
            element("title", title),
            Markup("\n"),
            Markup(f"<style>\n{_asset('page.css')}</style>\n"),
        ]
    )
    main = joined([element("h1", title), nav, element("main", body), footer])
    script = Markup(f"<script>\n{_asset('sorting.js')}</script>\n")
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n{head}</head>\n'
        f"<body>\n{main}\n{script}</body>\n</html>\n"
    )


def _asset(name: str) -> str:
    return files("playhead.report.page").joinpath(name).read_text(encoding="utf-8")
