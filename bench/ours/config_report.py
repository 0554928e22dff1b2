"""Playhead: the report of a blend of very many manifests whose indexes are there."""

from __future__ import annotations

from many_manifests import RANKS, blend_of

from meter import Settings, cpu_seconds, main
from playhead.report import report_figures
from playhead.report.page.document import page_of


def measure(settings: Settings) -> dict[str, float]:
    config = blend_of(settings.data, 800 if settings.quick else 80_000)
    begin = cpu_seconds()
    figures = report_figures(config, world_size=RANKS)
    planned = cpu_seconds()
    page = page_of(figures)
    return {
        "figures_s": planned - begin,
        "page_s": cpu_seconds() - planned,
        "page_mb": len(page.encode()) / 1e6,
    }


if __name__ == "__main__":
    main(measure)
