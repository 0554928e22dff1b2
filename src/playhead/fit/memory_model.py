"""What a model needs by batch size and lengths, learned from what was measured and predicted.

A step holds most at one of a few moments, and what it holds at each is a straight line in the batch
size, so that the peak of a bucket is a maximum of straight lines: convex. Extrapolating it from
small sizes under-predicts; between two sizes near the answer it is exact or a little too large. So
predictions are asked for just below and just above the budget, and what was measured nearest to a
size decides.

From bucket to bucket, what a sample costs is ``c0 + c1*t + c2*t**2 + c3*u + c4*t*u``, with the
lengths `t` and `u` relative to the longest bucket's: padding to one length, activations, attention
without a fused kernel, a decoder, a transducer's joint. No coefficient is negative. This is fitted
where nothing was predicted, and is only where a bucket begins: how far it is off where something
was measured is carried over to the buckets whose lengths are near, and a bucket's own measurements
stand above all.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from playhead.fit.bucket import Bucket
    from playhead.fit.problem import Predict, Problem

__all__ = ["Points", "memory_model"]

Points = dict[int, dict[int, float]]
"""Peaks (bytes) by bucket and batch size."""

# Where predictions are asked for, relative to the budget: the answer lies between.
_BELOW, _ABOVE = 0.88, 1.03
_NEAR = 0.04
_MOST_PREDICTIONS = 8
# What a sample costs, before anything was measured: mostly by its length.
_PRIOR = np.array([0.2, 0.5, 0.1, 0.1, 0.1])
_PRIOR_WEIGHT = 0.01
# Peaks farther apart than this say how steep a line is; nearer ones, how exact the readings are.
_APART = 0.05


@dataclass(frozen=True, slots=True)
class MemoryModel:
    """Peaks of all buckets at any batch size."""

    lines: tuple[tuple[tuple[int, float], ...], ...]
    """Of each bucket: batch sizes, ascending, and peaks (bytes); straight between and beyond."""
    measured: Points
    """What was measured."""
    is_predicted: bool
    """Whether the lines were predicted, not only fitted."""

    def peak(self, bucket: int, batch_size: int) -> float:
        """Most that tensors hold at once (bytes)."""
        return _on_lines(self.lines[bucket], batch_size)

    def largest(self, bucket: int, most: float, *, limit: int) -> int:
        """Largest batch size whose peak is not above `most` (bytes), at most `limit`, or 0."""
        points = self.lines[bucket]
        peaks = [peak for _, peak in points]
        after = min(max(1, bisect_left(peaks, most)), len(points) - 1)
        (size, peak), (size_2, peak_2) = points[after - 1], points[after]
        steep = (peak_2 - peak) / (size_2 - size)
        if steep <= 0:
            return limit if most >= peak_2 else 0
        return min(limit, max(0, int(size + (most - peak) / steep + 1e-9)))

    def is_near(self, bucket: int, batch_size: int, share: float) -> bool:
        """Whether a size not farther away than a share of it was measured."""
        return any(
            abs(size - batch_size) <= share * batch_size for size in self.measured.get(bucket, ())
        )


def memory_model(problem: Problem, measured: Points, predict: Predict) -> MemoryModel | None:
    """Learn what a model needs.

    Parameters
    ----------
    problem
        What is asked.
    measured
        What was measured.
    predict
        What is predicted.

    Returns
    -------
    MemoryModel | None
        None as long as nothing was measured and nothing is predicted.
    """
    lengths = _lengths(problem.buckets)
    predicted = _predictions(problem, lengths, predict)
    if predicted is None:
        if not any(measured.values()):
            return None
        fixed, costs = _fit(lengths, measured)
        base = [((0, fixed), (1, fixed + cost)) for cost in costs]
    else:
        fixed = 0.0
        base = [tuple(sorted(points.items())) for points in predicted]
    ratios = _ratios(base, fixed, measured)
    lines: list[tuple[tuple[int, float], ...]] = []
    for bucket, points in enumerate(base):
        ratio = _near_ratio(lengths, bucket, ratios)
        guess = tuple((size, fixed + (peak - fixed) * ratio) for size, peak in points)
        lines.append(_through(guess, measured.get(bucket, {})))
    return MemoryModel(tuple(lines), measured, is_predicted=predicted is not None)


def _on_lines(points: Sequence[tuple[int, float]], batch_size: float) -> float:
    after = min(max(1, bisect_left(points, (batch_size, 0.0))), len(points) - 1)
    (size, peak), (size_2, peak_2) = points[after - 1], points[after]
    return peak + (peak_2 - peak) * (batch_size - size) / (size_2 - size)


def _lengths(buckets: Sequence[Bucket]) -> NDArray[np.float64]:
    """Both lengths of each bucket, relative to the longest; shape (buckets, 2)."""
    lengths = np.array([(b.input_length, b.output_length) for b in buckets], dtype=np.float64)
    return lengths / lengths.max(axis=0)


def _features(lengths: NDArray[np.float64]) -> NDArray[np.float64]:
    t, u = lengths.T
    return np.stack([np.ones_like(t), t, t**2, u, t * u], axis=1)


def _fit(
    lengths: NDArray[np.float64], measured: Mapping[int, Mapping[int, float]]
) -> tuple[float, NDArray[np.float64]]:
    """Fit the fixed part (bytes) and what a sample costs in each bucket (bytes, shape (buckets,)).

    Least squares of relative errors, of the two largest sizes of each bucket: smaller ones may lie
    on another line.
    """
    features = _features(lengths)
    rows: list[NDArray[np.float64]] = []
    costs: list[float] = []
    for bucket, points in measured.items():
        for size in sorted(points)[-2:]:
            peak = points[size]
            rows.append(np.concatenate([[1.0], size * features[bucket]]) / peak)
            costs.append(peak / size)
    # In units of what a sample of the longest bucket would cost if nothing were fixed.
    unit = max(costs)
    scale = np.concatenate([[max(max(points.values()) for points in measured.values() if points)],
                            np.full(features.shape[1], unit)])  # fmt: skip
    design = np.stack(rows) * scale
    prior = np.concatenate([[0.3], _PRIOR])
    weight = _PRIOR_WEIGHT * np.eye(len(prior))
    found = _not_negative(
        np.concatenate([design, weight]), np.concatenate([np.ones(len(rows)), weight @ prior])
    )
    return float(found[0] * scale[0]), features @ (found[1:] * scale[1:])


def _not_negative(design: NDArray[np.float64], wanted: NDArray[np.float64]) -> NDArray[np.float64]:
    """Least squares without negative coefficients (Lawson and Hanson's active set)."""
    count = design.shape[1]
    found, active = np.zeros(count), np.zeros(count, dtype=bool)
    for _ in range(3 * count):
        pull = design.T @ (wanted - design @ found)
        pull[active] = 0.0
        if pull.max() <= 1e-12:
            break
        active[int(pull.argmax())] = True
        while True:
            trial = np.zeros(count)
            trial[active] = np.linalg.lstsq(design[:, active], wanted, rcond=None)[0]
            below = active & (trial <= 0)
            if not below.any():
                break
            step = (found[below] / np.maximum(found[below] - trial[below], 1e-300)).min()
            found += step * (trial - found)
            active &= found > 1e-15
            if not active.any():
                trial = np.zeros(count)
                break
        found = trial
    return found


def _predictions(
    problem: Problem, lengths: NDArray[np.float64], predict: Predict
) -> list[dict[int, float]] | None:
    """Predict each bucket just below and just above the budget, from the longest on."""
    last = len(problem.buckets) - 1
    predicted: Points = {}
    for bucket in range(last, -1, -1):
        points: dict[int, float] = {}
        for most in (_BELOW * problem.budget, _ABOVE * problem.budget):
            for _ in range(_MOST_PREDICTIONS):
                guess = _size_for(bucket, most, points, lengths, predicted)
                size = problem.start_batch_size if guess is None else guess
                size = min(max(1, size), problem.max_batch_size)
                if size in points:
                    # Between two sizes of few samples, the next one may be on another line.
                    size = max(points) + 1
                    is_open = most > problem.budget > max(points.values())
                    if not is_open or size > problem.max_batch_size:
                        break
                value = predict(bucket, size)
                if value is None:
                    return None
                points[size] = float(value)
                if abs(points[size] / most - 1) <= _NEAR:
                    break
        if len(points) == 1:
            # One size is all that may be an answer: it takes another to have a line.
            (size,) = points
            other = size // 2 or 2
            value = predict(bucket, other)
            if value is None:
                return None
            points[other] = float(value)
        predicted[bucket] = points
    return [predicted[bucket] for bucket in range(last + 1)]


def _size_for(
    bucket: int,
    most: float,
    points: Mapping[int, float],
    lengths: NDArray[np.float64],
    predicted: Points,
) -> int | None:
    """Where a bucket may hold so much: on its own line, or on that of the bucket nearest to it."""
    if len(points) >= 2:
        lines = tuple(sorted(points.items()))
        return MemoryModel((lines,), {}, is_predicted=True).largest(0, most, limit=1 << 40)
    if predicted:
        others = list(predicted)
        away = ((np.log(lengths[others]) - np.log(lengths[bucket])) ** 2).sum(axis=1)
        near = others[int(away.argmin())]
        (size, peak), (size_2, peak_2) = sorted(predicted[near].items())[-2:]
        cost = max((peak_2 - peak) / (size_2 - size), 1.0)
        fixed = max(0.0, peak - cost * size)
        cost *= float(1 + lengths[bucket, 0] / lengths[near, 0]) / 2
    elif points:
        fixed, cost = 0.0, 1.0
    else:
        return None
    if points:
        ((size, peak),) = points.items()
        cost = max((peak - fixed) / size, 1.0)
    return int((most - fixed) / cost)


def _ratios(
    base: Sequence[tuple[tuple[int, float], ...]], fixed: float, measured: Points
) -> dict[int, float]:
    """How far the beginning is off where something was measured, at its largest size."""
    ratios: dict[int, float] = {}
    for bucket, points in measured.items():
        if points:
            size = max(points)
            expected = _on_lines(base[bucket], size) - fixed
            if expected > 0 and points[size] > fixed:
                ratios[bucket] = (points[size] - fixed) / expected
    return ratios


def _near_ratio(lengths: NDArray[np.float64], bucket: int, ratios: Mapping[int, float]) -> float:
    """Mean of what others are off, by how near their lengths are."""
    if bucket in ratios:
        return ratios[bucket]
    if not ratios:
        return 1.0
    others = list(ratios)
    away = np.log(lengths[others]) - np.log(lengths[bucket])
    weights = 1.0 / ((away**2).sum(axis=1) + 1e-4) ** 2
    logs = np.log([ratios[other] for other in others])
    return float(np.exp((weights * logs).sum() / weights.sum()))


def _through(
    guess: tuple[tuple[int, float], ...], points: Mapping[int, float]
) -> tuple[tuple[int, float], ...]:
    """Bend lines so that they go through what was measured."""
    if not points:
        return guess
    # Readings are not exact: between sizes that are nearly the same they tell nothing.
    own: list[tuple[int, float]] = []
    for size, peak in sorted(points.items(), reverse=True):
        if not own or size < own[-1][0] * (1 - _APART):
            own.append((size, peak))
    own.reverse()
    low, high = own[0][0], own[-1][0]
    shift_low = own[0][1] / _on_lines(guess, low)
    shift_high = own[-1][1] / _on_lines(guess, high)
    before = [(s, p * shift_low) for s, p in guess if s < low * (1 - _APART)]
    after = [(s, p * shift_high) for s, p in guess if s > high * (1 + _APART)]
    if not after:
        # Beyond what is known it goes on as steeply as the guess does there, or more.
        steep = (_on_lines(guess, high + 1) - _on_lines(guess, high)) * shift_high
        if len(own) > 1:
            steep = max(steep, (own[-1][1] - own[-2][1]) / (own[-1][0] - own[-2][0]))
        after = [(2 * high + 1, own[-1][1] + steep * (high + 1))]
    return (*before, *own, *after)
