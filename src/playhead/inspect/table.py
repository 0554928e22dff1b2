"""What a checkpoint says of the data, for a terminal: a table that fits its width."""

from __future__ import annotations

import shutil
from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from rich.cells import cell_len, set_cell_size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from playhead.inspect.summary import Overall, SourceSummary, Summary

__all__ = ["printable", "table"]

_GAP: Final = "  "
_WIDE: Final = 160
_SHORTEST_NAME: Final = 20
_LONGEST_NAME: Final = 60
_MOST_NUMBERS: Final = 8
_LABEL: Final = 12


class _Column(NamedTuple):
    head: str
    """What stands above it."""
    rank: int
    """Those of the highest rank are left out first where there is no room."""
    shown: Callable[[SourceSummary], str]
    """What a row has there; empty for what nobody knows."""
    is_text: bool = False
    """Whether it is no number, and stands at the left."""


def table(summary: Summary, *, width: int | None = None) -> str:
    """Return a summary as people read it in a terminal.

    Columns that nothing is known for are not there; those that do not fit are left out, the least
    important first, and named.

    Parameters
    ----------
    summary
        The summary.
    width
        Columns of the terminal; its own if None, and 160 where there is none.

    Returns
    -------
    str
        Lines without a line end after the last.
    """
    room = shutil.get_terminal_size((_WIDE, 24)).columns if width is None else width
    parts = [list(_head(summary))]
    if summary.overall is not None:
        parts.append(list(_overall(summary.overall)))
    parts.append(_rows(summary.rows, room) if summary.rows else ["No source was read."])
    notes = [*summary.notes, *_row_notes(summary.rows)]
    if notes:
        parts.append(["Notes:", *(f"  - {printable(note)}" for note in notes)])
    return "\n\n".join("\n".join(part) for part in parts)


def _head(summary: Summary) -> Iterator[str]:
    yield _labelled("checkpoint", summary.checkpoint_input)
    if summary.checkpoint_metadata_loaded != summary.checkpoint_input:
        yield _labelled("state from", summary.checkpoint_metadata_loaded)
    if summary.config_path is not None:
        yield _labelled("config", summary.config_path)


def _overall(overall: Overall) -> Iterator[str]:
    batches = f"{overall.micro_batches_per_step:,} micro-batches a step"
    yield _labelled(
        "step", f"{overall.step:,}, in window {overall.window:,}, {batches}, seed {overall.seed}"
    )
    if overall.finite:
        left = "" if overall.steps_left is None else f", {overall.steps_left:,} steps left"
        yield _labelled("pass", f"{overall.pass_:,}{left}")
    if overall.padding is not None:
        of = "" if overall.padding_of is None else f" of {overall.padding_of}"
        yield _labelled("padding", f"{overall.padding:.2%}{of}")
    if overall.hours is not None:
        left = "" if overall.hours_left is None else f", {_hours(overall.hours_left)} left"
        yield _labelled("hours", f"{_hours(overall.hours)} read{left}")


def _labelled(label: str, value: str) -> str:
    return f"{label:<{_LABEL}}{printable(value)}"


def _rows(rows: Sequence[SourceSummary], room: int) -> list[str]:
    numbers = ["#", *(str(row.source_index) for row in rows)]
    names = ["dataset", *(printable(row.dataset) for row in rows)]
    columns: list[tuple[_Column, list[str]]] = []
    for column in _COLUMNS:
        cells = [column.shown(row) for row in rows]
        if any(cells):
            columns.append((column, [column.head, *(cell or "-" for cell in cells)]))
    longest = min(_LONGEST_NAME, max(map(cell_len, names)))
    taken = _width(numbers) + len(_GAP) + min(longest, _SHORTEST_NAME)
    left_out: list[str] = []
    while columns and taken + sum(len(_GAP) + _width(cells) for _, cells in columns) > room:
        worst = max(columns, key=lambda column: column[0].rank)
        columns.remove(worst)
        left_out.append(worst[0].head)
    taken = _width(numbers) + sum(len(_GAP) + _width(cells) for _, cells in columns)
    of_name = max(min(longest, _SHORTEST_NAME), min(longest, room - taken - len(_GAP)))
    lines = [
        _GAP.join(cells).rstrip()
        for cells in zip(
            _right(numbers),
            [set_cell_size(_cut(name, of_name), of_name) for name in names],
            *(cells if column.is_text else _right(cells) for column, cells in columns),
            strict=True,
        )
    ]
    if left_out:
        listed = ", ".join(left_out)
        lines += ["", f"No room for {listed}: widen the terminal, or use --json or --output-dir."]
    return lines


def _width(cells: Sequence[str]) -> int:
    return max(map(cell_len, cells))


def _right(cells: Sequence[str]) -> list[str]:
    width = _width(cells)
    return [cell.rjust(width) for cell in cells]


def _cut(text: str, width: int) -> str:
    """A name in so many columns: names differ at either end, so its middle goes."""
    if cell_len(text) <= width:
        return text
    half = (width - 1) // 2
    end = ""
    for letter in reversed(text):
        if cell_len(letter + end) > half:
            break
        end = letter + end
    return f"{set_cell_size(text, width - 1 - cell_len(end))}…{end}"


def _row_notes(rows: Sequence[SourceSummary]) -> Iterator[str]:
    """What is odd about sources, each remark once with the sources that it is of."""
    sources: defaultdict[str, list[int]] = defaultdict(list)
    for row in rows:
        for note in row.notes:
            sources[note].append(row.source_index)
    for note, numbers in sources.items():
        first = ", ".join(f"#{number}" for number in numbers[:_MOST_NUMBERS])
        more = len(numbers) - _MOST_NUMBERS
        yield f"{first}{f' and {more:,} more' if more > 0 else ''}: {note}"


def _epochs(row: SourceSummary) -> str:
    if row.completed_epochs is None:
        return ""
    return f"{row.completed_epochs:,} + {_percent(row.current_epoch_pct, 2)}"


def _drift(row: SourceSummary) -> str:
    return "" if row.drift_abs is None else f"{100 * row.drift_abs:+.2f}%"


def _share(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.4g}%"


def _percent(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}%"


def _count(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _hours(value: float | None) -> str:
    return "" if value is None else f"{value:,.2f}"


def printable(text: str) -> str:
    r"""Return a text so that it cannot break a line or steer a terminal.

    Parameters
    ----------
    text
        The text.

    Examples
    --------
    >>> printable("a\x1b[31mb")
    'a\\x1b[31mb'
    """
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text
    )


_COLUMNS: Final = (
    _Column("utilization", 1, lambda row: _percent(row.utilization_pct, 2)),
    _Column("epochs", 5, _epochs),
    _Column("target", 2, lambda row: _share(row.desired_weight)),
    _Column("observed", 2, lambda row: _share(row.observed_weight)),
    _Column("drift", 3, _drift),
    _Column("items", 1, lambda row: _count(row.consumed_items)),
    _Column("total", 4, lambda row: _count(row.total_items)),
    _Column("hours", 6, lambda row: _hours(row.consumed_hours)),
    _Column("by hours", 8, lambda row: _share(row.observed_weight_hours)),
    _Column("hours left", 9, lambda row: _hours(row.hours_left)),
    _Column("tokens", 7, lambda row: _count(row.consumed_tokens)),
    _Column("by tokens", 8, lambda row: _share(row.observed_weight_tokens)),
    _Column(
        "parts", 10, lambda row: "" if row.partitions_seen == 1 else f"{row.partitions_seen:,}"
    ),
    _Column(
        "state",
        11,
        lambda row: "" if row.state_type == "playhead" else row.state_type,
        is_text=True,
    ),
)
