"""What a checkpoint says of the data, for files: JSON, Markdown and CSV."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from playhead.errors import ConfigError, StorageError
from playhead.index.disk_errors import fix_of
from playhead.inspect.summary import COLUMNS
from playhead.inspect.table import printable
from playhead.storage.atomic import atomic_write

if TYPE_CHECKING:
    from os import PathLike

    from playhead.inspect.summary import Overall, SourceSummary, Summary

__all__ = ["csv_text", "json_text", "markdown", "write_files"]

_UNKNOWN: Final = "n/a"
_HEADS: Final = (
    "idx",
    "dataset",
    "utilization",
    "epochs",
    "desired_w",
    "observed_w",
    "drift",
    "items",
    "total",
    "parts",
    "notes",
)
# Tables take a cell that begins so for a formula.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def write_files(
    summary: Summary,
    *,
    folder: str | PathLike[str] | None = None,
    json_file: str | PathLike[str] | None = None,
    markdown_file: str | PathLike[str] | None = None,
    csv_file: str | PathLike[str] | None = None,
) -> list[Path]:
    """Write a summary, each file whole or not at all.

    Parameters
    ----------
    summary
        The summary.
    folder
        Gets `summary.json`, `summary.md` and `summary.csv`; it is made if it does not exist. None
        writes only the files that are named.
    json_file, markdown_file, csv_file
        Where one of them goes instead.

    Returns
    -------
    list
        The files, in this order.

    Raises
    ------
    StorageError
        When a file cannot be written.
    ConfigError
        When a path is none.
    """
    targets = [
        (json_file, "summary.json", json_text),
        (markdown_file, "summary.md", markdown),
        (csv_file, "summary.csv", csv_text),
    ]
    written: list[Path] = []
    for file, name, text_of in targets:
        if file is None and folder is None:
            continue
        target = Path(folder or "", name) if file is None else Path(file)
        _write(target, text_of(summary))
        written.append(target)
    return written


def json_text(summary: Summary) -> str:
    """Return a summary as JSON: sorted keys, two spaces a level, and a line end.

    Parameters
    ----------
    summary
        The summary.
    """
    content = _named(summary.to_json())
    text = json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False, default=str)
    return "\n".join(map(_escaped, text.split("\n"))) + "\n"


def markdown(summary: Summary) -> str:
    """Return a summary as a Markdown page: what was read, and a table of the sources.

    Parameters
    ----------
    summary
        The summary.
    """
    lines = [
        "# How far the data were read",
        "",
        f"- checkpoint: `{_line(summary.checkpoint_input)}`",
        f"- metadata_loaded: `{_line(summary.checkpoint_metadata_loaded)}`",
        f"- config: `{_line(summary.config_path or _UNKNOWN)}`",
        f"- generated_at: `{summary.generated_at}`",
        "",
        _table_row(_HEADS),
        _table_row(["---:", "---", *["---:"] * (len(_HEADS) - 3), "---"]),
        *(_table_row(_cells(row)) for row in summary.rows),
    ]
    if summary.overall is not None:
        lines += ["", "## The whole", "", *_facts(summary.overall)]
    return "\n".join(lines) + "\n"


def csv_text(summary: Summary) -> str:
    """Return the sources of a summary as CSV, a line for each below the names of the columns.

    Texts have no line ends, and one that a table would take for a formula begins with `'`.

    Parameters
    ----------
    summary
        The summary.
    """
    text = StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(COLUMNS)
    rows.writerows(map(_csv_cell, row.to_row().values()) for row in summary.rows)
    return text.getvalue()


def _write(path: Path, text: str) -> None:
    try:
        with atomic_write(path) as file:
            # Names of files need not be Unicode.
            file.write(text.encode(errors="backslashreplace"))
    except OSError as error:
        what = f"the summary cannot be written: {error.strerror or error}"
        raise StorageError(what, where=str(path), fix=fix_of(error)) from error
    except ValueError as error:
        what = f"the summary cannot be written: {error}"
        raise ConfigError(what, where=repr(str(path)), fix="Correct the path") from error


def _cells(row: SourceSummary) -> list[str]:
    epochs, part = row.completed_epochs, row.current_epoch_pct
    return [
        str(row.source_index),
        row.dataset,
        _UNKNOWN if row.utilization_pct is None else f"{row.utilization_pct:.2f}%",
        _UNKNOWN if epochs is None or part is None else f"{epochs} + {part:.2f}%",
        _number(row.desired_weight),
        _number(row.observed_weight),
        _number(row.drift_abs),
        _number(row.consumed_items),
        _number(row.total_items),
        str(row.partitions_seen),
        "; ".join(row.notes),
    ]


def _facts(overall: Overall) -> list[str]:
    facts = {
        "step": overall.step,
        "window": overall.window,
        "micro_batches_per_step": overall.micro_batches_per_step,
        "finite": str(overall.finite).lower(),
        "pass": overall.pass_,
        "seed": overall.seed,
        "padding": None if overall.padding is None else f"{overall.padding:.2%}",
        "padding_of": overall.padding_of,
        "hours": None if overall.hours is None else f"{overall.hours:.2f}",
        "hours_left": None if overall.hours_left is None else f"{overall.hours_left:.2f}",
        "steps_left": overall.steps_left,
    }
    return [f"- {name}: {value}" for name, value in facts.items() if value is not None]


def _number(value: float | None) -> str:
    match value:
        case None:
            return _UNKNOWN
        case int():
            return str(value)
        case _:
            return f"{value:.6g}"


def _table_row(cells: Sequence[str]) -> str:
    # A backslash before the mark would take the escape for itself.
    escaped = (re.sub(r"(\\*)\|", r"\1\1\\|", _line(cell)) for cell in cells)
    return f"| {' | '.join(escaped)} |"


def _csv_cell(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    line = _line(value)
    return f"'{line}" if value.startswith(_FORMULA) or line.startswith(_FORMULA) else line


def _line(text: str) -> str:
    return printable(" ".join(text.splitlines()))


def _escaped(text: str) -> str:
    """A line of JSON in which what steers a terminal, or is no Unicode, is as its number."""
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() else json.dumps(letter).strip('"') for letter in text
    )


def _named(value: Any) -> Any:
    """A value in which every key of a mapping is a text: others cannot be sorted."""
    if isinstance(value, Mapping):
        mapping = cast("Mapping[Any, Any]", value)
        return {str(key): _named(inner) for key, inner in mapping.items()}
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return [_named(inner) for inner in cast("Sequence[Any]", value)]
    return value
