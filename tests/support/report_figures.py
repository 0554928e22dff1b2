"""Figures of reports, made by hand: a page needs no plan to be looked at."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from playhead.report.figures import (
    BlendPoint,
    BucketFigures,
    Distribution,
    Figures,
    LeafFigures,
    LocalityFigures,
    PartFigures,
    StepFigures,
    TimeFigures,
    WorstBatch,
)

__all__ = ["empty", "large", "named", "several_blends", "small", "texts"]


def leaf(name: str, hours: float | None, weight: float, **changes) -> LeafFigures:
    rows = 1000 if hours is None else int(600 * hours)
    given = {
        "name": name,
        "key": f"key-of-{name}",
        "type": "txt_jsonl" if hours is None else "nemo_tarred",
        "rows": rows,
        "accepted": rows - 3,
        "refused": {"longer than max_duration": 3},
        "hours": hours,
        "accepted_hours": None if hours is None else hours - 0.01,
        "tokens": 31 * rows if hours is None else None,
        "shortest": 0.61,
        "median": 6.702,
        "longest": 29.97,
        "weight": weight,
        "realised": weight,
        "realised_hours": None if hours is None else weight,
        "steps_per_pass": rows / 400 / weight if weight else None,
    }
    return LeafFigures(**{**given, **changes})


def distribution(unit: str, samples: int) -> Distribution:
    edges = np.linspace(0, 30 if unit == "seconds" else 600, 31)
    middle = (edges[:-1] + edges[1:]) / 2
    shape = np.exp(-((np.log(middle / middle[6])) ** 2) / 0.72) / middle
    counts = np.round(samples * shape / shape.sum())
    amount = counts * middle / (3600 if unit == "seconds" else 1000)
    return Distribution(
        unit=unit,
        edges=tuple(map(float, edges)),
        samples=tuple(map(int, counts)),
        amount=tuple(map(float, amount)),
        half=float(edges[9]),
        most=float(edges[22]),
        half_amount=float(edges[13]),
    )


def buckets(many: int, *, sizes: bool = False) -> tuple[BucketFigures, ...]:
    return tuple(
        BucketFigures(
            bound=(30.0 * (number + 1) / many,)
            if not sizes
            else (30.0 * (number + 1) / many, 60.0),
            batches=40 + number % 7,
            samples=(40 + number % 7) * (many - number) * 4,
            size=4 * (many - number) if sizes else None,
            mean_size=4.0 * (many - number) - 0.37,
            fill=0.99 - 0.002 * (number % 11),
            padding=0.004 + 0.001 * (number % 5),
        )
        for number in range(many)
    )


def step_costs(many: int) -> StepFigures:
    wave = [1 + 0.04 * float(np.sin(step / 3)) for step in range(many)]
    return StepFigures(
        number=tuple(range(0, 5 * many, 5)),
        mean=tuple(wave),
        least=tuple(0.996 * one for one in wave),
        most=tuple((1.004 + 0.001 * (step % 4)) * one for step, one in enumerate(wave)),
    )


def worst_batches(leaves: tuple[LeafFigures, ...]) -> tuple[WorstBatch, ...]:
    return tuple(
        WorstBatch(
            step=7 * number + 3,
            slot=number,
            rank=number % 4,
            samples=20 + number,
            longest=29.97 - number,
            total=(20 + number) * (29.97 - number),
            tokens=120 - number,
            cost=0.999 - 0.001 * number,
            leaves=tuple(one.name for one in leaves[:2]),
        )
        for number in range(10)
    )


def part(leaves: tuple[LeafFigures, ...], **changes) -> PartFigures:
    random = np.random.default_rng(1)
    weights = np.array([one.weight for one in leaves])
    points = []
    for number in range(10):
        shares = weights * (1 + 0.1 * random.standard_normal(len(leaves)))
        shares = shares / (shares.sum() or 1)
        points.append(
            BlendPoint(first_step=100 * number, steps=100, shares=tuple(map(float, shares)))
        )
    given = {
        "name": "",
        "unit": "seconds",
        "share": 1.0,
        "leaves": leaves,
        "distributions": (distribution("seconds", 60_000),),
        "buckets": buckets(30),
        "fixed_sizes": False,
        "limit": "batch_duration 600 s",
        "windows": 10,
        "steps": 1000,
        "samples": 412_345,
        "dropped": {"longer than the limit": 2},
        "padding": 0.0123,
        "unused_budget": 0.0211,
        "small_batches": 0.0004,
        "imbalance": 1.00349,
        "imbalance_linear": 1.0101,
        "imbalance_quadratic": 1.0207,
        "most_copies": 2,
        "step_costs": step_costs(200),
        "blend": tuple(points),
        "localities": (
            LocalityFigures(
                locality="rows",
                is_used=True,
                requests=56.2,
                bytes=23_456_789.0,
                shards=41.3,
                kept_bytes=None,
            ),
            LocalityFigures(
                locality="shards",
                is_used=False,
                requests=1.7,
                bytes=25_456_789.0,
                shards=3.1,
                kept_bytes=53_000_000_000,
                note="each shard is read once a pass",
            ),
        ),
        "worst": worst_batches(leaves),
    }
    return PartFigures(**{**given, **changes})


def small(**changes) -> Figures:
    """A blend of three sources of speech."""
    leaves = (
        leaf("read speech", 960.5, 0.5),
        leaf("/data/telephone/calls/of/many/people/manifest_0..511.json", 2311.25, 0.3),
        leaf("meetings", 77.125, 0.2),
    )
    given = {
        "config": "train.yaml",
        "section": "model.train_ds",
        "version": "0.1.0",
        "generated_at": "2026-11-30T07:00:00Z",
        "seed": 42,
        "world_size": 64,
        "micro_batches_per_step": 128,
        "finite": False,
        "steps_per_pass": None,
        "hours_per_step": 21.3,
        "tokens_per_step": None,
        "parts": (part(leaves),),
        "time": TimeFigures(hours_per_hour=500.0, seconds_per_step=2.4, pass_seconds=376_000.0),
        "notes": (
            "meetings comes 12 times while read speech comes once",
            "3 samples are longer than max_duration and are left out",
        ),
    }
    return Figures(**{**given, **changes})


def named(*names: str) -> Figures:
    """A blend whose sources have these names."""
    leaves = tuple(leaf(name, 10.0, 1 / len(names)) for name in names)
    return small(parts=(part(leaves),), config=names[0], section=names[0], notes=names)


def large(many: int = 500) -> Figures:
    """A blend of very many sources."""
    leaves = tuple(
        leaf(f"source-{number:03d}", 2000.0 / (number + 1), 1 / many) for number in range(many)
    )
    return small(parts=(part(leaves, buckets=buckets(100)),), world_size=1024, notes=())


def several_blends() -> Figures:
    """A `multi_config` of speech and text; the speech with buckets of fixed sizes."""
    speech = part(
        (leaf("speech", 100.0, 0.75), leaf("more speech", 20.0, 0.25)),
        name="audio",
        share=0.6,
        buckets=buckets(8, sizes=True),
        fixed_sizes=True,
        limit="bucket_batch_size",
        distributions=(distribution("seconds", 60_000), distribution("tokens", 60_000)),
    )
    return small(parts=(speech, replace(texts().parts[0], name="text", share=0.4)), time=None)


def texts() -> Figures:
    """A blend of texts alone: nothing has seconds."""
    leaves = (leaf("web", None, 0.9), leaf("books", None, 0.1))
    only = part(
        leaves,
        unit="tokens",
        limit="batch_tokens 20000",
        distributions=(distribution("tokens", 100_000),),
        localities=(),
    )
    return small(
        parts=(only,), hours_per_step=None, tokens_per_step=1_234_567.0, time=None, notes=()
    )


def empty() -> Figures:
    """A blend of which next to nothing is known: one source without a sample, nothing planned."""
    nothing = leaf(
        "nothing",
        None,
        0.0,
        rows=0,
        accepted=0,
        refused={},
        tokens=None,
        shortest=None,
        median=None,
        longest=None,
    )
    only = part(
        (nothing,),
        distributions=(
            Distribution(
                unit="seconds",
                edges=(0.0, 1.0),
                samples=(0,),
                amount=(0.0,),
                half=0.0,
                most=0.0,
                half_amount=0.0,
            ),
        ),
        buckets=(),
        windows=0,
        steps=0,
        samples=0,
        dropped={},
        padding=0.0,
        unused_budget=0.0,
        small_batches=0.0,
        imbalance=1.0,
        imbalance_linear=1.0,
        imbalance_quadratic=1.0,
        most_copies=0,
        step_costs=StepFigures(number=(), mean=(), least=(), most=()),
        blend=(),
        localities=(),
        worst=(),
    )
    return small(
        section=None,
        world_size=1,
        micro_batches_per_step=1,
        finite=True,
        steps_per_pass=0,
        hours_per_step=None,
        parts=(only,),
        time=None,
        notes=(),
    )
