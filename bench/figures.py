"""The figures of the table: where each comes from, and what it should be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["FIGURES", "Figure"]


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One line of the table."""

    bench: str
    """The measurement: the script of that name in `ours/`, and in `peer/` if it is there."""
    key: str
    """What the script calls it; also its key in the results."""
    what: str
    """What people read."""
    unit: str = ""
    """Unit of both values."""
    peer: str | None = None
    """What the peer's script calls the figure to compare with; of another script, `NAME.KEY`."""
    better: Literal["more", "less"] = "more"
    """Which way is good."""
    ratio: float | None = None
    """How many times better than the peer it should be."""
    bound: float | None = None
    """What it should be at least, or at most."""


def _streams() -> list[Figure]:
    figures: list[Figure] = []
    for kind, dataset, cpu_ratio in (
        ("", "SpeechToText", 1.5),
        ("lhotse_", "a Lhotse dataset", 1.2),
    ):
        for source, told in (("tarred", "FLAC in archives"), ("files", "plain WAV")):
            for workers in (0, 2):
                for clock, ratio in (("cpu", cpu_ratio), ("wall", 1.2 if workers else None)):
                    key = f"{source}_{workers}_{clock}"
                    what = f"{dataset}, {told}, {workers} workers: audio per {clock} second"
                    figures.append(
                        Figure(
                            bench="end_to_end",
                            key=f"{kind}{key}",
                            what=what,
                            unit="h/s",
                            peer=key,
                            ratio=ratio,
                        )
                    )
    return figures


def _shar() -> list[Figure]:
    figures: list[Figure] = []
    for kind, dataset in (("", "SpeechToText"), ("lhotse_", "a Lhotse dataset")):
        for workers in (0, 2):
            for clock in ("cpu", "wall"):
                key = f"shar_{workers}_{clock}"
                figures.append(
                    Figure(
                        bench="shar",
                        key=f"{kind}{key}",
                        what=f"{dataset}, Shar, {workers} workers: audio per {clock} second "
                        "(the peer's: indexed)",
                        unit="h/s",
                        peer=key,
                        ratio=1.2 if clock == "cpu" or workers else None,
                    )
                )
    return figures


def _evenness() -> list[Figure]:
    lines = (
        ("padding_pct", "padding", "%", 2.0),
        ("over_limit_pct", "batches above the limit", "%", 0.0),
        ("worst_over_limit_pct", "the worst batch, above the limit by", "%", 0.0),
        ("imbalance_own", "slowest of 64 ranks / mean, own cost", "", 1.01),
        ("imbalance_linear", "slowest of 64 ranks / mean, linear cost", "", 1.02),
        ("imbalance_quadratic", "slowest of 64 ranks / mean, more quadratic cost", "", 1.02),
    )
    return [
        Figure(
            bench="evenness", key=key, what=what, unit=unit, peer=key, better="less", bound=bound
        )
        for key, what, unit, bound in lines
    ]


def _state() -> list[Figure]:
    steps = (10, 1_000, 100_000, 1_000_000)
    return [
        Figure(
            bench="state",
            key="state_bytes",
            what="state of four leaves (the peer's: 10k batches, indexed)",
            unit="B",
            peer="state_bytes",
            better="less",
            bound=1_280,
        ),
        *(
            Figure(
                bench="state",
                key=f"restore_{step}_s",
                what=f"restore at step {step:,}, 64 ranks (the peer's: 10k batches, indexed)",
                unit="CPU-s",
                peer="restore_indexed_s",
                better="less",
                bound=0.1,
            )
            for step in steps
        ),
        Figure(
            bench="state",
            key="restore_wide_s",
            what="restore at step 1,000,000, 64 ranks, batches of 600 s",
            unit="CPU-s",
            better="less",
            bound=0.1,
        ),
        *(
            Figure(
                bench="state",
                key=f"restore_{step}_{key}",
                what=f"bytes {how} to restore at step {step:,} and make a batch of ids",
                unit="B",
                better="less",
            )
            for key, how in (("bytes", "read"), ("mapped_bytes", "of mapped columns touched"))
            for step in steps
        ),
        Figure(
            bench="state",
            key="restore_late_over_early",
            what="restore at step 1,000,000 / at step 10",
            better="less",
            bound=1.5,
        ),
        Figure(
            bench="state",
            key="restore_1000000_replay_s",
            what="restore at step 1,000,000 (the peer's: 10k batches, replayed)",
            unit="CPU-s",
            peer="restore_replayed_s",
            better="less",
        ),
    ]


def _token_batches() -> list[Figure]:
    figures: list[Figure] = []
    for name, told, full in (("padded", "", None), ("packed", ", packed", 98.0)):
        figures += [
            Figure(
                bench="token_batches",
                key=f"{name}_samples_per_s",
                what=f"planning texts, conversations and speech by tokens{told}, 64 ranks",
                unit="/CPU-s",
                peer="samples_per_s",
                bound=1_000_000,
            ),
            Figure(
                bench="token_batches",
                key=f"{name}_full_pct",
                what=f"tokens of these batches that are no padding{told}",
                unit="%",
                peer="full_pct",
                bound=full,
            ),
            Figure(
                bench="token_batches",
                key=f"{name}_over_limit",
                what=f"of these batches, those above the limit{told}",
                unit="batches",
                better="less",
                peer="over_limit",
                bound=0,
            ),
        ]
    return figures


def _locality() -> list[Figure]:
    lines = (
        ("samples_per_batch", "samples of a batch", ""),
        ("requests_per_batch", "requests of a batch, near ones merged (each a seek)", ""),
        ("archives_per_batch", "archives that a batch touches", ""),
        ("mb_per_batch", "read for a batch", "MB"),
        ("archives_per_window", "archives of 1,000 that a window touches", ""),
    )
    return [
        Figure(
            bench="locality",
            key=f"{locality}_{key}",
            what=f"locality {locality}: {what}",
            unit=unit,
            better="less",
        )
        for locality in ("rows", "shards")
        for key, what, unit in lines
    ]


def _objects() -> list[Figure]:
    batch = "32 ranges of 40 kB from a store 20 ms away"
    return [
        Figure(bench="objects", key="batch_ms", what=f"{batch}: a batch", unit="ms", better="less"),
        Figure(
            bench="objects",
            key="over_one_by_one",
            what=f"{batch}: one request at a time / all at once",
            bound=10.0,
        ),
        Figure(
            bench="objects",
            key="over_alone",
            what=f"{batch}: what `obstore` alone takes / ours",
            bound=0.8,
        ),
    ]


def _tokens() -> list[Figure]:
    figures: list[Figure] = []
    for library in ("sentencepiece", "tokenizers"):
        figures += [
            Figure(
                bench="tokens",
                key=f"{library}_rows_per_s",
                what=f"counting the tokens of a manifest by `{library}`, two cores",
                unit="rows/s",
            ),
            Figure(
                bench="tokens",
                key=f"{library}_share",
                what=f"the same / what `{library}` alone reaches with texts in memory",
                bound=0.8,
            ),
        ]
    return figures


def _bins() -> list[Figure]:
    lines = (
        ("one", "30 bins of 10M rows", 3.0, 200.0),
        ("optimized", "the same with least padding", 3.0, 200.0),
        ("two", "the same split by tokens", 3.0, 200.0),
    )
    figures = [
        Figure(
            bench="bins",
            key="rows_per_s",
            what="30 bins from lengths",
            unit="rows/s",
            peer="rows_per_s",
            ratio=3.0,
        )
    ]
    for name, what, seconds, megabytes in lines:
        figures += [
            Figure(
                bench="bins",
                key=f"{name}_cpu_s",
                what=what,
                unit="CPU-s",
                better="less",
                bound=seconds,
            ),
            Figure(
                bench="bins",
                key=f"{name}_mb",
                what=f"{what}: memory, pages of files left out",
                unit="MB",
                better="less",
                bound=megabytes,
            ),
        ]
    return figures


def _get_batch() -> list[Figure]:
    lines = (
        ("batch", "one batch request"),
        ("individual", "one request each, side by side"),
        ("sdk", "one request each by the official client, one after the other"),
    )
    return [
        *(
            Figure(
                bench="get_batch",
                key=f"{key}_samples_per_s",
                what=f"32 members of 40 kB from AIStore (emulated): {what}",
                unit="/s",
            )
            for key, what in lines
        ),
        Figure(
            bench="get_batch",
            key="batch_over_sdk",
            what="the batch request / the official client",
            bound=5.0,
        ),
    ]


def _broadcast() -> list[Figure]:
    ways = (("each", "each reads"), ("one", "one reads and sends"))
    clocks = (("cpu", "CPU-s of both"), ("wall", "s"))
    return [
        *(
            Figure(
                bench="broadcast",
                key=f"{way}_{clock}_s",
                what=f"600 s of audio for two tensor-parallel ranks: {told}",
                unit=unit,
                better="less",
            )
            for clock, unit in clocks
            for way, told in ways
        ),
        Figure(
            bench="broadcast",
            key="send_s",
            what="sending a batch of 600 s (38 MB) to a process of this machine",
            unit="s",
            better="less",
        ),
        Figure(
            bench="broadcast",
            key="cpu_ratio",
            what="CPU time where each of the two reads / where one does",
            bound=1.3,
        ),
        Figure(
            bench="broadcast",
            key="wall_ratio",
            what="wall time where each of the two reads / where one does",
        ),
    ]


def _looking() -> list[Figure]:
    leaves = "80,000 manifests with 10M rows"
    report = (
        ("figures_s", f"figures of a report of {leaves}", "CPU-s"),
        ("page_s", "the page of them", "CPU-s"),
        ("page_mb", "size of that page", "MB"),
    )
    checkpoint = (
        ("with_config_s", f"inspecting a position in {leaves}, exactly", "CPU-s"),
        ("alone_s", "inspecting it without its config", "CPU-s"),
        ("five_gb_s", "the same in a checkpoint of 5 GB, without its config", "CPU-s"),
    )
    return [
        Figure(bench=bench, key=key, what=what, unit=unit, better="less")
        for bench, lines in (("config_report", report), ("checkpoint", checkpoint))
        for key, what, unit in lines
    ]


def _logging() -> list[Figure]:
    return [
        Figure(
            bench="logging_figures", key=key, what=what, unit="CPU-ms", better="less", bound=bound
        )
        for key, what, bound in (
            ("count_ms_per_step", "counting a step of 64 ranks, 10,000 sources", 2.0),
            ("measures_ms", "asking for what was counted", 1.0),
            ("figures_ms", "making a dict of it for a logger", 2.0),
        )
    ]


FIGURES: list[Figure] = [
    *_streams(),
    *_shar(),
    Figure(
        bench="jsonl_index",
        key="jsonl_index_rows_per_s",
        what=".idx of a JSONL, API",
        unit="rows/CPU-s",
        peer="jsonl_index_rows_per_s",
        ratio=1.0,
    ),
    Figure(
        bench="jsonl_index",
        key="jsonl_index_cli_rows_per_s",
        what=".idx of a JSONL, command with its start-up",
        unit="rows/CPU-s",
        peer="jsonl_index_cli_rows_per_s",
        ratio=5.0,
    ),
    Figure(
        bench="tar_index",
        key="shar_index_members_per_s",
        what=".idx of Shar archives",
        unit="members/CPU-s",
        peer="tar_index_members_per_s",
        ratio=10.0,
    ),
    Figure(
        bench="tar_index",
        key="tarred_index_members_per_s",
        what=".idx of NeMo archives",
        unit="members/CPU-s",
    ),
    Figure(
        bench="remote_tar_index",
        key="remote_tar_index_times",
        what="as fast as a request for each header, archives of 40 KB members, 20 ms away",
        unit="times",
        bound=20.0,
    ),
    Figure(
        bench="remote_tar_index",
        key="remote_tar_index_requests",
        what="requests for such an archive of 400 members",
        unit="",
        better="less",
    ),
    Figure(
        bench="remote_tar_index",
        key="remote_tar_index_percent_read",
        what="read of an archive of 50 MB members to index it",
        unit="%",
        better="less",
        bound=5.0,
    ),
    Figure(
        bench="pack",
        key="pack_rows_per_s",
        what="pack of a warm manifest",
        unit="rows/CPU-s",
        bound=600_000,
    ),
    Figure(
        bench="many_shards",
        key="open_ms",
        what="opening a pack of 100,000 shards",
        unit="CPU-ms",
        better="less",
        bound=10,
    ),
    Figure(
        bench="plan",
        key="plan_64_samples_per_s",
        what="planning at 64 ranks, samples of all ranks (the peer's: indexed)",
        unit="/CPU-s",
        peer="plan_indexed_samples_per_s",
        bound=2_000_000,
    ),
    Figure(
        bench="plan",
        key="plan_64_own_samples_per_s",
        what="planning at 64 ranks, samples of this rank alone (the peer's: lazy)",
        unit="/CPU-s",
        peer="plan_lazy_samples_per_s",
    ),
    Figure(
        bench="plan",
        key="plan_1_samples_per_s",
        what="planning at 1 rank, batches of 120 s (the peer's: lazy)",
        unit="/CPU-s",
        peer="plan_lazy_samples_per_s",
    ),
    Figure(
        bench="plan",
        key="plan_1024_s_per_window",
        what="a window of 1,024 ranks out of 10M rows",
        unit="CPU-s",
        better="less",
        bound=0.4,
    ),
    Figure(
        bench="plan",
        key="plan_1024_own_samples_per_s",
        what="planning at 1,024 ranks, samples of this rank alone (the peer's: lazy)",
        unit="/CPU-s",
        peer="plan_lazy_samples_per_s",
    ),
    Figure(
        bench="first_batch",
        key="first_batch_indexed_s",
        what="first batch of ids of 1M rows (the peer's: batch of 200k indexed cuts)",
        unit="CPU-s",
        peer="plan.first_batch_indexed_s",
        better="less",
        bound=0.5,
    ),
    *_state(),
    *_tokens(),
    *_evenness(),
    *_locality(),
    *_objects(),
    *_token_batches(),
    *_get_batch(),
    *_broadcast(),
    Figure(
        bench="memory",
        key="memory_1m_mb",
        what="memory that planning 1M rows takes, pages of files left out",
        unit="MB",
        better="less",
    ),
    Figure(
        bench="memory",
        key="memory_10m_mb",
        what="memory that planning 10M rows takes, pages of files left out",
        unit="MB",
        better="less",
    ),
    Figure(
        bench="memory",
        key="memory_ratio",
        what="memory of 10M rows / of 1M rows",
        better="less",
        bound=1.2,
    ),
    *_bins(),
    *_looking(),
    *_logging(),
    Figure(
        bench="startup",
        key="help_s",
        what="--help of the command",
        unit="CPU-s",
        peer="help_s",
        better="less",
        bound=0.3,
    ),
    Figure(
        bench="startup",
        key="import_s",
        what="import",
        unit="CPU-s",
        peer="import_s",
        better="less",
        bound=0.3,
    ),
]
