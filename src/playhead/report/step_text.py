"""What a step trains on, as people read it in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from playhead.report.step import StepBatch, StepContents, StepSample, StepWindow

__all__ = ["step_text"]

_ORDERS = {
    "rows": "passes are keyed permutations of rows",
    "shards": "passes go from shard to shard, in keyed order",
    "declared": "passes are in declared order",
}


def step_text(contents: StepContents) -> str:
    """Return lines that say what a step trains on and why.

    Parameters
    ----------
    contents
        The step.
    """
    whose = f"rank {contents.rank} of {contents.world_size}"
    if contents.rank is None:
        whose = f"all {contents.world_size} ranks" if contents.world_size > 1 else "one rank"
    title = (
        f"step {contents.step:,} of seed {contents.seed}, pass {contents.pass_number}:"
        f" {_counted(contents.micro_batches_per_step, 'micro-batch', 'micro-batches')} a step;"
        f" those of {whose}"
    )
    lines = [title, *map(_window, contents.windows), ""]
    lines += _table(
        ["source", "weight", "draws of the window", "samples here"],
        [
            [
                leaf.name,
                f"{leaf.weight:.2%}",
                f"{leaf.quota:,} of {leaf.draws_of_window:,}",
                f"{leaf.samples:,}",
            ]
            for leaf in contents.leaves
        ],
    )
    for batch in contents.batches:
        lines += ["", *_batch(batch)]
    return "\n".join(lines)


def _counted(number: int, one: str, several: str) -> str:
    return f"{number:,} {one if number == 1 else several}"


def _of(part: str) -> str:
    return f"{part}: " if part else ""


def _window(window: StepWindow) -> str:
    dealt = "steps and slots in keyed order" if window.shuffle else "steps in declared order"
    return (
        f"{_of(window.part)}window {window.number:,} of seed {window.seed}, its step"
        f" {window.step + 1:,} of {window.steps:,}; {_ORDERS[window.order]}; {dealt}"
    )


def _batch(batch: StepBatch) -> list[str]:
    unit = " s" if batch.unit == "seconds" else " tokens"
    count = _counted(len(batch.samples), "sample", "samples")
    said = [f"{_of(batch.part)}slot {batch.slot}, rank {batch.rank}: {count}"]
    if batch.bucket is not None:
        bound = " and ".join(
            f"{value:g}{unit if not number else ' tokens'}"
            for number, value in enumerate(batch.bucket)
        )
        size = "" if batch.size is None else f", {_counted(batch.size, 'sample', 'samples')}"
        said.append(f"bucket up to {bound}{size}")
    said.append(batch.limit)
    said.append(f"{batch.fill:.1%} full")
    said.append(f"{batch.padding:.1%} padding")
    said.append(f"longest {batch.longest:g}{unit}")
    said.append(f"batch {batch.cut_number + 1:,} of {batch.batches_of_window:,} as they were cut")
    return ["; ".join(said), *_samples(batch)]


def _samples(batch: StepBatch) -> list[str]:
    samples = batch.samples
    header = ["source", "pass", "draw", "row", "length"]
    # Most often it is the length once more.
    costs = any(sample.cost != sample.seconds for sample in samples)
    ids = any(sample.id is not None for sample in samples)
    tokens = any(sample.tokens is not None for sample in samples)
    changed = [_changes(sample) for sample in samples]
    header += (
        ["counts"] * costs
        + ["tokens"] * tokens
        + ["id"] * ids
        + ["changed"] * any(changed)
        + ["where"]
    )
    rows: list[list[str]] = []
    for sample, changes in zip(samples, changed, strict=True):
        rows.append(
            [
                sample.leaf,
                f"{sample.pass_number:,}",
                f"{sample.place + 1:,} of {sample.rows_of_pass:,}",
                f"{sample.row:,}",
                "" if sample.seconds is None else f"{sample.seconds:g} s",
                *([f"{sample.cost:,.6g}"] * costs),
                *(["" if sample.tokens is None else f"{sample.tokens:,}"] * tokens),
                *([sample.id or ""] * ids),
                *([changes] * any(changed)),
                _where(sample),
            ]
        )
    return _table(header, rows)


def _changes(sample: StepSample) -> str:
    said = ["repeated"] * sample.repeated
    if sample.speed != 1:
        said.append(f"speed {sample.speed:g}")
    if sample.window is not None or sample.start:
        length = "" if sample.window is None else f", {sample.window:g} s long"
        said.append(f"from {sample.start:g} s{length}")
    if sample.text_window is not None:
        said.append(f"window {sample.part + 1} of {sample.text_window:,} tokens")
    elif sample.part:
        said.append(f"part {sample.part + 1}")
    return ", ".join(said)


def _where(sample: StepSample) -> str:
    said: list[str] = []
    for path, byte in (
        (sample.manifest, sample.manifest_byte),
        (sample.archive, sample.archive_byte),
    ):
        if path is not None:
            said.append(path if byte is None else f"{path} at {byte:,}")
    return "; audio ".join(said)


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    cells = [list(header), *map(list, rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    return [
        "  "
        + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]
