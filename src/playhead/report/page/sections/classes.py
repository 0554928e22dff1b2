"""How full the batches of each length class or bucket are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from playhead.report.page.canvas import plotted
from playhead.report.page.colours import GRID, SERIES
from playhead.report.page.numbers import count, counted, length, number, precise, share
from playhead.report.page.section import Fact, Section, facts
from playhead.report.page.tables import Column, folded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from playhead.report.figures import BucketFigures, PartFigures
    from playhead.report.page.markup import Markup

__all__ = ["classes"]

_MOST_OPEN: Final = 12
_MOST_TICKS: Final = 6


def classes(part: PartFigures, prefix: str) -> Section:
    """Return the section of a blend's classes or buckets."""
    kind = _kind(part)
    looks = f"{counted(part.steps, 'step')} and {counted(part.samples, 'sample')}"
    says = (
        f"What the batches of {counted(part.windows, 'planned window')} look like, {looks}. A batch"
        f" counts for the {'bucket' if part.fixed_sizes else 'class'} of its longest sample."
        f" Limit: {part.limit}."
    )
    shown = bool(part.buckets)
    return Section(
        name=f"{prefix}{kind}",
        title="Buckets" if part.fixed_sizes else "Length classes",
        says=says,
        plots=(_plot(part, f"{prefix}plot-{kind}"),) if shown else (),
        numbers=(facts(_facts(part)), *((_table(part),) if shown else ())),
    )


def _kind(part: PartFigures) -> str:
    return "buckets" if part.fixed_sizes else "classes"


def _facts(part: PartFigures) -> list[Fact]:
    dropped = sum(part.dropped.values())
    why = ", ".join(f"{reason}: {many:,}" for reason, many in part.dropped.items() if many)
    return [
        Fact(
            name="Padding",
            shown=share(part.padding),
            value=part.padding,
            about="of what is padded",
        ),
        Fact(
            name="Limit left unused",
            shown=share(part.unused_budget),
            value=part.unused_budget,
            about="on average",
        ),
        Fact(
            name="Small batches",
            shown=share(part.small_batches),
            value=part.small_batches,
            about="have less than half of what they could",
        ),
        Fact(
            name="Most copies of a row",
            shown=count(part.most_copies),
            value=part.most_copies,
            about="in one micro-batch",
        ),
        Fact(name="Draws dropped", shown=count(dropped), value=dropped, about=why or None),
    ]


def _table(part: PartFigures) -> Markup:
    columns: list[Column[BucketFigures]] = [
        Column(
            title=f"Up to, {part.unit}",
            value=lambda bucket: " \N{MULTIPLICATION SIGN} ".join(map(precise, bucket.bound)),
            kind="term",
        ),
        Column(title="Batches", value=lambda bucket: bucket.batches, shown=count),
        Column(title="Samples", value=lambda bucket: bucket.samples, shown=count),
        Column(title="Size", value=lambda bucket: bucket.size, shown=count),
        Column(title="Mean size", value=lambda bucket: bucket.mean_size, shown=number),
        Column(
            title="Fill",
            value=lambda bucket: bucket.fill,
            shown=share,
            about="Share of what a batch may hold that is used",
        ),
        Column(
            title="Padding",
            value=lambda bucket: bucket.padding,
            shown=share,
            about="Share of what is padded that is padding",
        ),
    ]
    many = len(part.buckets)
    what = f"{many} {_kind(part)}" if many != 1 else _kind(part)
    return folded(columns, part.buckets, what=what, is_open=many <= _MOST_OPEN)


def _plot(part: PartFigures, name: str) -> Markup:
    buckets = part.buckets
    places = range(len(buckets))
    # As many as have room: a bound of a length and tokens is twice as long.
    steps = _MOST_TICKS // max((len(one.bound) for one in buckets), default=1) - 1
    ticks = sorted({round(step * (len(buckets) - 1) / steps) for step in range(steps + 1)})
    bounds = [
        " \N{MULTIPLICATION SIGN} ".join(map(number, buckets[place].bound)) for place in ticks
    ]

    def draw(panels: Sequence[Axes]) -> None:
        batches, fill, padding = panels
        batches.bar(places, [one.batches for one in buckets], width=0.9, color=SERIES[0])
        batches.set_ylabel("batches")
        batches.yaxis.set_major_formatter(lambda value, _: number(value))
        fill.bar(places, [100 * (one.fill or 0) for one in buckets], width=0.9, color=SERIES[2])
        fill.set_ylabel("fill, %")
        fill.set_ylim(0, 100)
        padding.bar(places, [100 * one.padding for one in buckets], width=0.9, color=SERIES[4])
        padding.set_ylabel("padding, %")
        for axes in panels:
            axes.set_xlim(-0.6, len(buckets) - 0.4)
            axes.set_xticks(ticks, [""] * len(ticks))
            axes.grid(axis="y", color=GRID)
        padding.set_xticks(ticks, bounds)
        padding.set_xlabel(f"upper bound, {part.unit}")

    used = [one for one in buckets if one.batches]
    worst = max(used, key=lambda one: one.padding, default=None)
    said = (
        ""
        if worst is None
        else f" Most padding: {share(worst.padding)} up to {_up_to(worst, part)}."
    )
    what = "bucket" if part.fixed_sizes else "length class"
    return plotted(
        draw,
        name=name,
        title=f"How many batches each {what} has, how full they are, and how much of them is"
        " padding",
        description=f"Three rows of bars over {len(buckets)} {_kind(part)}.{said}",
        height=380,
        panels=3,
    )


def _up_to(bucket: BucketFigures, part: PartFigures) -> str:
    return length(bucket.bound[0], part.unit)
