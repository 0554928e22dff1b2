"""The table of figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from figures import Figure

__all__ = ["is_met", "ratio_of", "table_of"]

_HEAD = ("what", "ours", "Lhotse 2.0.0a7", "ratio", "budget", "met?")


def ratio_of(figure: Figure, ours: float, peer: float | None) -> float | None:
    """How many times better ours is than the peer's; None where there is nothing to divide."""
    above, below = (ours, peer) if figure.better == "more" else (peer, ours)
    return above / below if above is not None and below else None


def is_met(figure: Figure, ours: float, ratio: float | None) -> bool | None:
    """Whether the budget is met; None without one, or without the peer that it needs."""
    if figure.bound is not None:
        return ours >= figure.bound if figure.better == "more" else ours <= figure.bound
    if figure.ratio is None or ratio is None:
        return None
    return ratio >= figure.ratio


def table_of(figures: Sequence[Figure], medians: Mapping[str, Mapping[str, float]]) -> str:
    """A Markdown table, which a terminal shows well enough too."""
    rows = [_HEAD, *(_row(figure, medians) for figure in figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in rows
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def _row(figure: Figure, medians: Mapping[str, Mapping[str, float]]) -> tuple[str, ...]:
    ours = medians["ours"].get(f"{figure.bench}.{figure.key}")
    peer_key = figure.peer or ""
    peer = medians["peer"].get(peer_key if "." in peer_key else f"{figure.bench}.{peer_key}")
    if ours is None:
        return figure.what, "failed", _number(peer, figure.unit), "", _budget(figure), "no"
    ratio = ratio_of(figure, ours, peer)
    met = {None: "", True: "yes", False: "NO"}[is_met(figure, ours, ratio)]
    return (
        figure.what,
        _number(ours, figure.unit),
        _number(peer, figure.unit),
        "" if ratio is None else f"{ratio:.3g}x" if ratio < 1000 else f"{ratio:,.0f}x",
        _budget(figure),
        met,
    )


def _budget(figure: Figure) -> str:
    if figure.bound is not None:
        sign = ">=" if figure.better == "more" else "<="
        return f"{sign} {_number(figure.bound, figure.unit)}"
    return "" if figure.ratio is None else f">= {figure.ratio:g}x"


def _number(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    said = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return f"{said} {unit}".rstrip() if unit != "%" else f"{said} %"
