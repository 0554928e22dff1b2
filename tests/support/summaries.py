"""Summaries of checkpoints, made by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from playhead.inspect.summary import Overall, SourceSummary, Summary

__all__ = ["overall", "source", "summary"]


def source(index: int = 0, dataset: str = "train", **facts: Any) -> SourceSummary:
    """A source of which nothing is known but what is given."""
    row = SourceSummary(source_index=index, dataset=dataset, state_type="playhead")
    return replace(row, **facts)


def overall(**facts: Any) -> Overall:
    """Where training stands, in its third window."""
    known: dict[str, Any] = {
        "step": 1234,
        "window": 3,
        "micro_batches_per_step": 8,
        "finite": False,
        "pass_": 0,
        "seed": 42,
    }
    return Overall(**{**known, **facts})


def summary(*rows: SourceSummary, **facts: Any) -> Summary:
    """A summary of these sources."""
    known: dict[str, Any] = {
        "checkpoint_input": "step=10.ckpt",
        "checkpoint_metadata_loaded": "step=10.ckpt",
        "config_path": None,
        "generated_at": "2026-01-02T03:04:05+00:00",
        "leaf_progress": (),
    }
    return Summary(rows=rows, **{**known, **facts})
