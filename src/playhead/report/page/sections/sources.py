"""The sources of a blend: how much each has, and how much of that is trained on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from playhead.report.page.bars import bar_plot
from playhead.report.page.numbers import count, counted, hours, number, precise, share
from playhead.report.page.section import Fact, Section, facts
from playhead.report.page.tables import Column, folded, table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from playhead.report.figures import LeafFigures, PartFigures
    from playhead.report.page.markup import Markup

__all__ = ["sources"]

_MOST_BARS: Final = 12

_COLUMNS: Final[tuple[Column[LeafFigures], ...]] = (
    Column(title="Source", value=lambda leaf: leaf.name, kind="name"),
    Column(title="Type", value=lambda leaf: leaf.type, kind="term"),
    Column(title="Rows", value=lambda leaf: leaf.rows, shown=count),
    Column(
        title="Samples",
        value=lambda leaf: leaf.accepted,
        shown=count,
        about="Samples that a pass trains on, after filters, windows and limits",
    ),
    Column(
        title="Left out",
        value=lambda leaf: sum(leaf.refused.values()),
        shown=count,
        about="Samples that a pass leaves out",
    ),
    Column(
        title="Hours",
        value=lambda leaf: leaf.hours,
        shown=hours,
        about="Hours of audio of all rows",
    ),
    Column(
        title="Hours of a pass",
        value=lambda leaf: leaf.accepted_hours,
        shown=hours,
        about="Hours of audio that a pass trains on",
    ),
    Column(title="Tokens of a pass", value=lambda leaf: leaf.tokens, shown=count),
    Column(title="Shortest", value=lambda leaf: leaf.shortest, shown=precise),
    Column(title="Median", value=lambda leaf: leaf.median, shown=precise),
    Column(title="Longest", value=lambda leaf: leaf.longest, shown=precise),
    Column(
        title="Weight",
        value=lambda leaf: leaf.weight,
        shown=share,
        about="Its share of the blend by weight",
    ),
    Column(
        title="Realised",
        value=lambda leaf: leaf.realised,
        shown=share,
        about="Its share of the samples that were planned",
    ),
    Column(
        title="Realised hours",
        value=lambda leaf: leaf.realised_hours,
        shown=share,
        about="Its share of the hours that were planned",
    ),
    Column(
        title="Steps of a pass",
        value=lambda leaf: leaf.steps_per_pass,
        shown=number,
        about="Steps in which each of its samples comes once",
    ),
    Column(title="Why left out", value=lambda leaf: _reasons(leaf.refused), kind="prose"),
    Column(title="Key", value=lambda leaf: leaf.key, kind="term"),
)


def sources(part: PartFigures, prefix: str) -> Section:
    """Return the section of a blend's sources."""
    leaves = part.leaves
    says = (
        f"{counted(len(leaves), 'source')}. Lengths are in"
        f" {part.unit}; what filters, windows and limits refuse is left out of a pass."
    )
    return Section(
        name=f"{prefix}sources",
        title="Sources",
        says=says,
        plots=(_plot(leaves, f"{prefix}plot-sources"),) if leaves else (),
        numbers=(facts(_facts(leaves)),),
        below=_tables(leaves),
    )


def _facts(leaves: Sequence[LeafFigures]) -> list[Fact]:
    rows, accepted = sum(leaf.rows for leaf in leaves), sum(leaf.accepted for leaf in leaves)
    left_out = sum(sum(leaf.refused.values()) for leaf in leaves)
    made = [
        Fact(name="Rows", shown=count(rows), value=rows),
        Fact(name="Samples of a pass", shown=count(accepted), value=accepted),
        Fact(name="Left out of a pass", shown=count(left_out), value=left_out),
    ]
    for name, known in (
        ("Audio of all rows", [leaf.hours for leaf in leaves if leaf.hours is not None]),
        (
            "Audio of a pass",
            [one.accepted_hours for one in leaves if one.accepted_hours is not None],
        ),
    ):
        if known:
            made.append(Fact(name=name, shown=hours(sum(known)), value=sum(known)))
    tokens = [leaf.tokens for leaf in leaves if leaf.tokens is not None]
    if tokens:
        made.append(Fact(name="Tokens of a pass", shown=count(sum(tokens)), value=sum(tokens)))
    return made


def _tables(leaves: Sequence[LeafFigures]) -> tuple[Markup, ...]:
    if len(leaves) <= _MOST_BARS:
        return (table(_COLUMNS, leaves, about="Sources"),)
    _, amounts, _ = _measure(leaves)
    order = sorted(range(len(leaves)), key=amounts.__getitem__, reverse=True)
    largest = [leaves[one] for one in order[:_MOST_BARS]]
    what = f"{len(leaves):,} sources, in the order of the config"
    return (
        table(_COLUMNS, largest, about=f"The {_MOST_BARS} largest sources"),
        folded(_COLUMNS, leaves, what=what),
    )


def _plot(leaves: Sequence[LeafFigures], name: str) -> Markup:
    what, amounts, written = _measure(leaves)
    order = sorted(range(len(leaves)), key=amounts.__getitem__, reverse=True)
    # One bar for the others pays from two on.
    shown = order if len(order) <= _MOST_BARS else order[: _MOST_BARS - 1]
    others = order[len(shown) :]
    names, values = [leaves[one].name for one in shown], [amounts[one] for one in shown]
    if others:
        names.append(f"{len(others):,} others")
        values.append(sum(amounts[one] for one in others))
    words = [written(value) for value in values]
    return bar_plot(
        names,
        values,
        words,
        name=name,
        title=f"How many {what} a pass has from each source",
        axis=f"{what} of a pass",
        others=bool(others),
    )


def _measure(
    leaves: Sequence[LeafFigures],
) -> tuple[str, list[float], Callable[[float], str]]:
    """What sources are compared by, so that each has it: hours, else tokens, else samples."""
    by_hours = [_known(leaf, leaf.accepted_hours) for leaf in leaves]
    by_tokens = [_known(leaf, leaf.tokens) for leaf in leaves]
    for what, known, written in (
        ("hours of audio", by_hours, hours),
        ("tokens", by_tokens, number),
    ):
        amounts = [amount for amount in known if amount is not None]
        if len(amounts) == len(leaves) and any(amounts):
            return what, amounts, written
    return "samples", [float(leaf.accepted) for leaf in leaves], lambda value: count(int(value))


def _known(leaf: LeafFigures, amount: float | None) -> float | None:
    return amount if leaf.accepted else 0.0


def _reasons(refused: dict[str, int]) -> str | None:
    said = ", ".join(f"{reason}: {many:,}" for reason, many in refused.items() if many)
    return said or None
