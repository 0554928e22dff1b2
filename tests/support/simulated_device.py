"""A device whose memory is computed, for searches of batch sizes.

What a model needs in a step is made of these parts, in bytes; `b` is a bucket and `B` a batch size.

- *Peak of tensors*: ``max over k of fixed[k] + B * slope[k, b]``, one line for each moment of a
  step. Slopes are functions of the lengths `t` (input) and `u` (output) of a bucket, both relative
  to the longest: Whisper-like (an encoder that pads all to one length, a decoder by `u`, a moment
  of the vocabulary's gradient), wav2vec2-like (linear in `t`), attention (with ``t**2``),
  transducer (``t * u``), fixed (nearly all memory is weights and optimizer) and tiny (the largest
  size that may be an answer fits).
- *Workspace* that predictions do not see: a fixed part up to 1.5 % of the budget, uneven from
  bucket to bucket by half of it, and up to 5 % of the slope, uneven by a tenth.
- *Waste* of the allocator, a share of peak and workspace. Alone in a process: up to 1.5 %, tilted
  by 0.3 % from shortest to longest. In a mix besides: 0.2 to 5 %, tilted by 0.5 %, reached
  gradually over 5 to 100 steps, plus up to 0.3 % of the largest step of another bucket before.
  Both differ from bucket to bucket at random: not at all (30 % of the models), by up to
  0.25 % (40 %), or by up to 0.75 % (30 %). From one size to the next all this is uneven by 0.03 %.
- *Rounding*: segments of 2 MiB.

A step runs out of memory if this is above the budget. What a run reports as allocated is peak and
workspace, off by up to 0.05 %; as reserved, what was needed and up to 12 % of cache, at most the
budget. A mix goes round and round over its buckets, each round in another order of its seed.
Predictions are exact (there is no workspace), blind to the workspace, or missing, for a third of
the models each. Runs may fail for no reason of memory: lost (a crash, a hang), or a spurious OOM.

Everything is a function of the model's seed and of how many runs there were before, so that a
search that goes on with a new device meets what it would have met.

The largest size of a bucket is the largest that survives 200 steps of a mix in which all other
buckets have the sizes of the answer. Since waste has settled by then, the order of the mix does
not matter; `restless` makes it matter, for a measurement of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from playhead.fit.bucket import Bucket
from playhead.fit.record import MixRecord, ProbeRecord

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

FAMILIES = ("whisper", "wav2vec2", "attention", "transducer", "fixed", "tiny")
PREDICTIONS = ("exact", "blind", "missing")

_MIB = 1 << 20
_SEGMENT = 2 * _MIB
_WOBBLE = 0.0003
_READING = 0.0005
_ALONE_STEPS = 3
_START_SECONDS, _STEP_SECONDS = 3.0, 0.5


@dataclass(frozen=True, kw_only=True)
class SimulatedModel:
    """A model, a list of buckets and a budget."""

    seed: int
    family: str
    predictions: str
    buckets: tuple[Bucket, ...]
    budget: int
    fixed: NDArray[np.float64]
    slope: NDArray[np.float64]
    workspace: NDArray[np.float64]
    workspace_slope: NDArray[np.float64]
    alone: NDArray[np.float64]
    mixed: NDArray[np.float64]
    settle: int
    left_over: float
    max_batch_size: int = 4096
    restless: float = 0.0
    planted: Mapping[int, str] = field(default_factory=dict)

    def tensors(self, bucket: int, size):
        """What predictions see, shape of `size`."""
        lines = self.fixed[:, None] + np.multiply.outer(self.slope[:, bucket], np.asarray(size))
        return lines.max(axis=0)

    def peak(self, bucket: int, size):
        """Tensors and workspace, shape of `size`."""
        size = np.asarray(size, dtype=np.float64)
        more = self.workspace[bucket] + self.workspace_slope[bucket] * size
        return self.tensors(bucket, np.atleast_1d(size)) + more

    def need(self, bucket: int, size, *, settled: float, others: float):
        """What the allocator needs, shape of `size`; `settled` is 0 alone and 1 late in a mix."""
        peak = self.peak(bucket, size)
        waste = self.alone[bucket] + self._wobble(bucket, size) + self.mixed[bucket] * settled
        need = peak * (1 + waste) + self.left_over * others * (settled > 0)
        return np.ceil(need / _SEGMENT) * _SEGMENT

    def survives_alone(self, bucket: int, size: int) -> bool:
        """Whether a size fits in a process of its own."""
        return bool(self.need(bucket, size, settled=0, others=0)[0] <= self.budget)

    def largest_alone(self, bucket: int) -> int:
        """Largest size that fits in a process of its own."""
        sizes = np.arange(1, self.max_batch_size + 1)
        fits = self.need(bucket, sizes, settled=0, others=0) <= self.budget
        return int(sizes[fits].max(initial=0))

    def largest_in_mix(self, answer: Sequence[int], bucket: int) -> int:
        """Largest size that survives a long mix where other buckets have the answer's sizes."""
        peaks = [
            self.peak(other, size)[0] if size and other != bucket else 0.0
            for other, size in enumerate(answer)
        ]
        sizes = np.arange(1, self.max_batch_size + 1)
        fits = self.need(bucket, sizes, settled=1, others=max(peaks)) <= self.budget
        # And the others stand what it leaves behind.
        own = self.peak(bucket, sizes)
        for other, size in enumerate(answer):
            if size and other != bucket:
                rest = max([0.0, *peaks[:other], *peaks[other + 1 :]])
                room = self.need(other, size, settled=1, others=np.maximum(own, rest))
                fits &= room <= self.budget
        return int(sizes[fits].max(initial=0))

    def _wobble(self, bucket: int, size):
        value = np.asarray(size).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        value ^= np.uint64((self.seed * 1_000_003 + bucket * 7919 + 12345) & ((1 << 63) - 1))
        with np.errstate(over="ignore"):
            for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
                value = (value ^ (value >> np.uint64(shift))) * np.uint64(factor)
        value ^= value >> np.uint64(31)
        return (np.atleast_1d(value) / 2.0**63 - 1) * _WOBBLE


def simulated_model(seed: int, **changes) -> SimulatedModel:
    """Make the model of a seed."""
    rng = np.random.default_rng([20261130, seed])
    family = FAMILIES[seed % len(FAMILIES)]
    predictions = PREDICTIONS[seed // len(FAMILIES) % len(PREDICTIONS)]
    pairs = family in {"whisper", "attention", "transducer"} and rng.random() < 0.5
    buckets = _pairs(rng) if pairs else _durations(rng)
    lengths = np.array([(b.input_length, b.output_length) for b in buckets], dtype=np.float64)
    t, u = (lengths / lengths.max(axis=0)).T
    budget = int(rng.uniform(8, 80) * 2**30)
    fixed, slope = _lines(family, t, u, budget, rng)
    count = len(buckets)
    visible = predictions == "exact"
    uneven = rng.choice([0.0, 0.0025, 0.0075], p=[0.3, 0.4, 0.3])
    position = np.linspace(-1, 1, count)
    alone = rng.uniform(0, 0.015) + rng.uniform(-0.003, 0.003) * position
    mixed = rng.uniform(0.002, 0.05) + rng.uniform(-0.005, 0.005) * position
    planted = {}
    if rng.random() < 0.3:
        planted.update(dict.fromkeys(rng.integers(0, 40, size=2).tolist(), "lost"))
    if rng.random() < 0.1:
        planted[int(rng.integers(0, 40))] = "oom"
    model = SimulatedModel(
        seed=seed,
        family=family,
        predictions=predictions,
        buckets=buckets,
        budget=budget,
        fixed=fixed,
        slope=slope,
        workspace=0.0
        if visible
        else rng.uniform(0, 0.015) * budget * rng.uniform(0.5, 1.5, size=count),
        workspace_slope=0.0
        if visible
        else rng.uniform(0, 0.05) * slope[0] * rng.uniform(0.9, 1.1, size=count),
        alone=np.maximum(0, alone + uneven / 2 * rng.uniform(-1, 1, size=count)),
        mixed=np.maximum(0, mixed + uneven * rng.uniform(-1, 1, size=count)),
        settle=int(rng.integers(5, 101)),
        left_over=rng.uniform(0, 0.003),
        planted=planted,
    )
    zeros = np.zeros(count)
    model = replace(
        model,
        workspace=model.workspace + zeros,
        workspace_slope=model.workspace_slope + zeros,
    )
    return replace(model, **changes)


def _durations(rng) -> tuple[Bucket, ...]:
    """Buckets of one length: quantiles of durations, as the estimators of bins give them."""
    count = 30 if rng.random() < 0.6 else int(rng.integers(8, 30))
    longest, middle, spread = rng.uniform(15, 40), rng.uniform(4, 14), rng.uniform(0.3, 0.7)
    drawn = np.minimum(np.exp(rng.normal(np.log(middle), spread, size=4000)), longest)
    edges = np.unique(np.quantile(drawn, np.linspace(0, 1, count + 1)[1:]).round(3))
    ratio = rng.uniform(3, 12)
    return tuple(
        Bucket(
            bound=float(edge), input_length=int(edge * 16000), output_length=int(edge * ratio) + 1
        )
        for edge in edges
    )


def _pairs(rng) -> tuple[Bucket, ...]:
    """Buckets of two lengths: six durations, five numbers of tokens each."""
    edges = np.sort(rng.uniform(2, 40, size=6)).round(2)
    rate = rng.uniform(2, 8)
    return tuple(
        Bucket(bound=(edge, tokens), input_length=int(edge * 16000), output_length=tokens)
        for edge in edges.tolist()
        for tokens in sorted(
            {int(edge * rate * part) + 2 + i for i, part in enumerate((0.5, 0.8, 1.0, 1.3, 2.5))}
        )
    )


def _lines(family: str, t, u, budget: int, rng):
    """Fixed parts, shape (K,), and slopes, shape (K, buckets)."""
    share = rng.uniform(0.8, 0.95) if family == "fixed" else rng.uniform(0.05, 0.5)
    base = share * budget
    if family == "whisper":
        encoder = rng.uniform(0.3, 0.8)
        forms = [encoder + (1 - encoder) * u, rng.uniform(0.3, 0.8) * (encoder + 0 * u)]
    elif family == "attention":
        part = rng.uniform(0.2, 0.8)
        forms = [(1 - part) * t + part * t**2 + rng.uniform(0, 0.2) * u, 0.9 * t]
    elif family == "transducer":
        joint = rng.uniform(0.4, 3)
        forms = [0.6 * t + joint * t * u, rng.uniform(0.6, 1.2) * t]
    else:
        forms = [rng.uniform(0, 0.05) + t, rng.uniform(0.3, 0.9) * t]
    largest = np.exp(rng.uniform(np.log(0.7), np.log(150)))
    if family == "tiny":
        largest = rng.uniform(1000, 20000)
    scale = (budget - base) / largest / max(form[-1] for form in forms)
    extra = np.array([0.0, rng.uniform(0, 0.25) * (budget - base)])
    return base + extra[: len(forms)], scale * np.stack(forms)


class SimulatedDevice:
    """A prober of a simulated model.

    Parameters
    ----------
    model
        The model.
    runs
        How many runs there were before.
    budget
        Most that the allocator may hold (bytes), if not what the model says.
    """

    def __init__(self, model: SimulatedModel, *, runs: int = 0, budget: int | None = None) -> None:
        self.model = model if budget is None else replace(model, budget=budget)
        self.runs = runs
        self.predictions = 0
        self.steps = 0

    @property
    def budget(self) -> int:
        return self.model.budget

    def predict(self, bucket: int, batch_size: int) -> int | None:
        self.predictions += 1
        if self.model.predictions == "missing":
            return None
        return int(self.model.tensors(bucket, np.array([batch_size]))[0])

    def probe(self, bucket: int, batch_size: int) -> ProbeRecord:
        model, planted, rng = self._run()
        need = float(model.need(bucket, batch_size, settled=0, others=0)[0])
        status = planted or ("ok" if need <= model.budget else "oom")
        self.steps += _ALONE_STEPS
        peak = float(model.peak(bucket, batch_size)[0])
        return ProbeRecord(
            bucket=bucket,
            batch_size=batch_size,
            budget=model.budget,
            status=status,
            allocated=_reading(peak, rng) if status == "ok" else None,
            reserved=_reserved(need, model.budget, rng) if status == "ok" else None,
            seconds=_START_SECONDS + _STEP_SECONDS * _ALONE_STEPS,
            reason=None if status == "ok" else f"planted {planted}" if planted else "out of memory",
        )

    def mix(self, sizes: Sequence[int], steps: int, seed: int) -> MixRecord:
        model, planted, rng = self._run()
        buckets = np.flatnonzero(sizes)
        peaks = {int(b): float(model.peak(b, sizes[b])[0]) for b in buckets}
        order = np.random.default_rng([model.seed, seed])
        stop_at = int(rng.integers(0, steps)) if planted else None
        seen: list[int] = []
        status, failed, done, need = "ok", None, 0, 0.0
        turns = [b for _ in range(-(-steps // len(buckets))) for b in order.permutation(buckets)]
        for done, turn in enumerate(turns[:steps]):
            bucket = int(turn)
            others = max([peaks[other] for other in set(seen) if other != bucket], default=0.0)
            settled = min(1.0, done / model.settle)
            need = float(model.need(bucket, sizes[bucket], settled=settled, others=others)[0])
            need += model.restless * order.random() * peaks[bucket]
            if done == stop_at or need > model.budget:
                status = planted if done == stop_at else "oom"
                failed = bucket if status == "oom" else None
                break
            seen.append(bucket)
        else:
            done = steps
        self.steps += done + (status != "ok")
        return MixRecord(
            sizes=tuple(sizes),
            steps=steps,
            budget=model.budget,
            status=status,
            done=done,
            failed=failed,
            allocated=None
            if status == "lost"
            else tuple(_reading(peaks[b], rng) if b in set(seen) else 0 for b in range(len(sizes))),
            reserved=_reserved(need, model.budget, rng) if status == "ok" else None,
            seconds=_START_SECONDS + _STEP_SECONDS * done,
            reason=None if status == "ok" else f"planted {planted}" if planted else "out of memory",
        )

    def _run(self):
        """Count a run; return the model, what was planted in it, and its random numbers."""
        number, self.runs = self.runs, self.runs + 1
        return (
            self.model,
            self.model.planted.get(number),
            np.random.default_rng([self.model.seed, 77, number]),
        )


def _reading(value: float, rng) -> int:
    return int(value * (1 + _READING * rng.uniform(-1, 1)))


def _reserved(need: float, budget: int, rng) -> int:
    return min(budget, int(np.ceil(need * (1 + rng.uniform(0, 0.12)) / _SEGMENT) * _SEGMENT))
