"""Blends of audio, texts and conversations measured in tokens, what they must give worked out row
by row in plain Python, and a walk through their plan that checks every batch."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from playhead.audio_tokens import AudioTokens
from playhead.plan import Batching, Shape
from support.shaped import SECOND, Walker, expected_of_row, rich, shapes

__all__ = [
    "LONGEST",
    "Sample",
    "TokenWalker",
    "leaf_in_tokens",
    "leaves_in_tokens",
    "of_cuts",
    "padded_and_packed",
    "refused_by_token_bins",
    "samples_in_tokens",
    "shapes_in_tokens",
    "side_of",
    "token_batchings",
]

LONGEST = 600
"""No sample of these leaves has more tokens."""

padded_and_packed = ("tokens", "quadratic", "size", "packed", "packed_quadratic", "packed_size")
"""Kinds of batching that take every sample."""


@dataclass(frozen=True)
class Sample:
    """What one sample must be; `refused` is the filter that drops it."""

    part: int
    size: int
    input: int
    output: int
    length: int = 0
    speed: int = 1000
    start: int = 0
    span: int = -1
    refused: str | None = None


def side_of(tokens, rng, *, audio=0):
    """The five columns of rows with so many tokens, `audio` of them for stretches of audio."""
    tokens = np.asarray(tokens)
    before = (tokens * rng.random(len(tokens))).astype(np.int64)
    raw = np.maximum(before - audio, 0)
    columns = {
        "tokens": tokens,
        "input": before,
        "output": tokens - before,
        "context": raw,
        "answer": tokens - before,
    }
    return {name: column.astype(np.uint32) for name, column in columns.items()}


def of_cuts(tokens):
    """The five columns of cuts."""
    tokens = np.asarray(tokens).astype(np.uint32)
    nothing = np.zeros_like(tokens)
    return {
        "tokens": tokens,
        "input": nothing,
        "output": tokens,
        "context": nothing,
        "answer": tokens,
    }


def leaf_in_tokens(name, size, seed, weight=1, kind="cut", *, windows=False):
    """A leaf with all columns, those of tokens among them."""
    rng = np.random.default_rng(seed)
    tokens = rng.integers(0, 150, size)
    more = {"kind": kind, "windows": windows}
    if kind == "cut":
        side = of_cuts(tokens)
    else:
        spoken = rng.random(size) < (0.5 if kind == "conversation" else 0.0)
        more["duration_us"] = np.where(spoken, rng.integers(0, 20 * SECOND, size), 0)
        side = side_of(tokens, rng, audio=np.where(spoken, 20, 0))
    plain = rich(name, size, seed, weight, **more)
    fields = plain.side("fld")
    return replace(plain, side={"tok": side, "fld": fields}.get)


@st.composite
def leaves_in_tokens(draw, most=3):
    """A few leaves of any kind."""
    sizes = st.one_of(st.integers(1, 3), st.sampled_from([7, 8, 31, 64]), st.integers(1, 120))
    seed = draw(st.integers(0, 2**32))
    leaves = []
    for number in range(draw(st.integers(1, most))):
        kind = draw(st.sampled_from(["cut", "text", "conversation"]))
        weight, size = draw(st.integers(1, 9)), draw(sizes)
        windows = kind == "text" and draw(st.booleans())
        name = f"leaf{number}"
        leaves.append(leaf_in_tokens(name, size, seed + number, weight, kind, windows=windows))
    return leaves


_RULES = st.one_of(
    st.integers(60_000, 400_000).map(AudioTokens.of_duration),
    st.builds(
        lambda chunk: AudioTokens.of_estimator(
            {
                "preprocessor": {"n_fft": 512, "hop_length": 160, "stft_pad_amount": 256},
                "subsampling": {"kernel_size": 3, "stride": 2, "padding": 1, "repeat": 3},
                "chunk_size_seconds": chunk,
            },
            16_000,
        ),
        st.one_of(st.none(), st.floats(1.0, 30.0)),
    ),
)


@st.composite
def shapes_in_tokens(draw, **fixed):
    """Any combination of what reshapes, measures and filters."""

    def maybe(strategy):
        return draw(st.one_of(st.none(), strategy))

    return replace(
        draw(shapes(**fixed)),
        multimodal=True,
        audio_tokens=draw(_RULES).text,
        total_length=draw(st.booleans()),
        min_tokens=maybe(st.integers(0, 30)),
        max_tokens=maybe(st.integers(60, 200)),
        min_tpt=maybe(st.floats(0.0, 0.5)),
        max_tpt=maybe(st.floats(1.0, 20.0)),
        text_window=maybe(st.integers(10, 120)),
        text_overhead=draw(st.integers(0, 9)),
    )


_BINS_2D = [
    ((40, 30), (40, 160), (150, 60), (150, 99), (600, 99), (600, 160)),
    ((90, 30), (90, 80), (90, 150), (600, 50), (600, 150)),
    ((600, 160),),
    ((20, 150), (80, 20), (80, 60), (500, 40), (500, 99)),
]


@st.composite
def token_batchings(draw, kinds=(*padded_and_packed, "fixed", "packed_fixed", "ratios", "2d")):
    """Any kind of batching by tokens."""
    kind = draw(st.sampled_from(kinds))
    options = {
        "in_tokens": True,
        "micro_batches_per_step": draw(st.sampled_from([1, 2, 3, 4, 8, 16])),
        # Nobody looks at it.
        "batch_duration_us": draw(st.sampled_from([None, 1])),
    }
    if kind in {"tokens", "quadratic"}:
        options["batch_tokens"] = draw(st.integers(50, 4_000))
        options["bucketing"] = draw(st.booleans())
    if kind.startswith("packed"):
        options |= {"packed": True, "batch_tokens": draw(st.integers(LONGEST, 4_000))}
    if kind == "quadratic":
        options["quadratic_tokens"] = draw(st.integers(20, 900))
    if kind == "packed_quadratic":
        options["batch_tokens"] += LONGEST
        options["quadratic_tokens"] = draw(st.integers(LONGEST, 2_000))
    if kind in {"size", "packed_size"}:
        options["batch_size"] = draw(st.integers(1, 9))
    if kind in {"fixed", "ratios", "packed_fixed"}:
        options["bins_length"] = (50, 110, LONGEST - draw(st.sampled_from([0, 450])))
        options["bucket_batch_size"] = draw(st.sampled_from([(9, 5, 2), (3, 3, 1), (1, 1, 1)]))
    if kind == "ratios":
        options["max_tpt_per_bin"] = draw(st.sampled_from([(3.0, 2.0, 1.0), (0.5, 9.0, 99.0)]))
    if kind == "2d":
        bins = draw(st.sampled_from(_BINS_2D))
        options["bins_length"] = tuple(length for length, _ in bins)
        options["bins_tokens"] = tuple(tokens for _, tokens in bins)
        sizes = []
        for number, (_, tokens) in enumerate(bins):
            below = [sizes[i] for i in range(number) if bins[i][1] <= tokens]
            sizes.append(draw(st.integers(1, min(below, default=12))))
        options["bucket_batch_size"] = tuple(sizes)
        options["strict_2d"] = draw(st.booleans())
        if draw(st.booleans()):
            options["max_tpt_per_bin"] = tuple(draw(st.floats(0.2, 20.0)) for _ in sizes)
    return Batching(**options)


def samples_in_tokens(leaf, pass_, row, shape, seed):
    """Every sample of one draw, one after the other, in plain Python; worked out once."""
    known = leaf.cache.setdefault(("model in tokens", shape, seed), {})
    if (pass_, row) not in known:
        known[pass_, row] = _samples(leaf, pass_, row, shape, seed)
    return known[pass_, row]


def _samples(leaf, pass_, row, shape, seed):
    side = {name: int(column[row]) for name, column in leaf.side("tok").items()}
    if leaf.kind == "cut":
        tokens = AudioTokens.parse(shape.audio_tokens)
        samples = []
        for old in expected_of_row(leaf, pass_, row, shape, seed):
            audio = tokens.count_one(old.length)
            samples.append(
                Sample(
                    part=old.part,
                    size=audio + (side["tokens"] if shape.total_length else 0),
                    input=audio,
                    output=side["tokens"],
                    length=old.length,
                    speed=old.speed,
                    start=old.start,
                    span=old.span,
                    refused=old.refused,
                )
            )
        return samples
    length = int(leaf.duration_us[row])
    plain = side["tokens"] - shape.text_overhead
    window = shape.text_window if leaf.windows and shape.text_window is not None else math.inf
    parts = [side["tokens"]]
    if plain > window:
        parts = [shape.text_overhead + min(window, plain - at) for at in range(0, plain, window)]
    samples = []
    for number, tokens in enumerate(parts):
        less = side["tokens"] - tokens
        counted = {}
        for before, answer in (("input", "output"), ("context", "answer")):
            counted[answer] = max(side[answer] - less, 0)
            counted[before] = max(side[before] - max(less - side[answer], 0), 0)
        size = tokens if shape.total_length else counted["input"]
        refused = _refused(leaf, row, size, counted, shape)
        samples.append(
            Sample(
                part=number,
                size=size,
                input=counted["input"],
                output=counted["output"],
                length=length,
                refused=refused,
            )
        )
    return samples


def _refused(leaf, row, size, counted, shape):
    length = int(leaf.duration_us[row])
    low, high = shape.min_duration_us or 0, shape.max_duration_us or math.inf
    tpt = _ratio(counted["answer"], counted["context"])
    asked = Shape(
        keep=shape.keep,
        exclusions=shape.exclusions,
        fields=shape.fields,
        max_cer=shape.max_cer,
        min_similarity=shape.min_similarity,
        excluded_speakers=shape.excluded_speakers,
    )
    of_row = expected_of_row(leaf, 0, row, asked, 0)[0].refused
    speaks = leaf.kind == "conversation" and length > 0
    reasons = [
        ("min_duration", speaks and length < low),
        ("max_duration", speaks and length > high),
        ("min_tokens", shape.min_tokens is not None and size < shape.min_tokens),
        ("max_tokens", shape.max_tokens is not None and size > shape.max_tokens),
        (of_row, of_row is not None),
        ("min_tpt", shape.min_tpt is not None and tpt < shape.min_tpt),
        ("max_tpt", shape.max_tpt is not None and tpt > shape.max_tpt),
    ]
    return next((reason for reason, true in reasons if true), None)


def _ratio(answer, before):
    if before:
        return answer / before
    return math.inf if answer else 0.0


def refused_by_token_bins(sample, batching):
    """Why fixed sizes and 2-D bins refuse a sample; None where they take it."""
    if batching.bucket_batch_size is None:
        return None
    ratio = _ratio(sample.output, sample.input)
    ratios = batching.max_tpt_per_bin
    if batching.bins_tokens is None:
        fits = [i for i, border in enumerate(batching.bins_length) if sample.size <= border]
        if not fits:
            return "above_last_bin"
        return "no_bucket" if ratios and ratio > ratios[fits[0]] else None
    bins = list(zip(batching.bins_length, batching.bins_tokens, strict=True))
    fits = [i for i, (a, b) in enumerate(bins) if a >= sample.input and b >= sample.output]
    if batching.strict_2d:
        first = min((a for a, _ in bins if a >= sample.input), default=None)
        fits = [i for i in fits if bins[i][0] == first]
        if fits and ratios and ratio > ratios[fits[0]]:
            return "no_bucket"
    return None if fits else "no_bucket"


@dataclass
class TokenWalker(Walker):
    """Takes steps from a position on; checks every sample and every batch against the model."""

    @staticmethod
    def samples_of(leaf, pass_, row, shape, seed):
        return samples_in_tokens(leaf, pass_, row, shape, seed)

    @staticmethod
    def refused_by(sample, batching):
        return refused_by_token_bins(sample, batching)

    def _check_limits(self, samples):
        batching, count = self.batching, len(samples)
        sizes = [max(sample.size, 1) for sample in samples]
        if batching.batch_size is not None:
            assert count <= batching.batch_size
        if batching.batch_tokens is not None:
            q = batching.quadratic_tokens
            efforts = [size + (Fraction(size * size, q) if q else 0) for size in sizes]
            if batching.packed:
                assert sum(map(math.ceil, efforts)) <= batching.batch_tokens
            elif count > 1:
                assert count * max(efforts) <= batching.batch_tokens
        if batching.bucket_batch_size is None:
            return
        if batching.bins_tokens is None:
            longest = max(sample.size for sample in samples)
            bins = zip(batching.bins_length, batching.bucket_batch_size, strict=True)
            assert count <= next(most for border, most in bins if longest <= border)
            return
        first = max(sample.input for sample in samples)
        second = max(sample.output for sample in samples)
        bins = zip(
            batching.bins_length, batching.bins_tokens, batching.bucket_batch_size, strict=True
        )
        assert any(a >= first and b >= second and most >= count for a, b, most in bins)
