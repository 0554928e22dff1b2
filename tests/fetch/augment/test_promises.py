"""Samples are as long as the plan promised, for anything that the plan may decide."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from lhotse import MonoCut

from playhead.fetch.waveforms import pad_waveforms
from playhead.plan.items import Items
from playhead.plan.reshape import SPEEDS, reshaped
from playhead.plan.settings import Shape
from support.augmenting import audio_of, augmenter, keyed, prepared, sample

SECOND = 1_000_000


def microseconds(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * SECOND)


def promised(lengths_us: list[int], shape: Shape, speeds: list[int], offsets: list[int]) -> Items:
    """What the plan makes of rows: their parts, each with its length."""
    count = len(lengths_us)
    items = Items(
        leaf=np.zeros(count, np.int32),
        pass_=np.zeros(count, np.int64),
        row=np.arange(count),
        length=np.array(lengths_us),
    )
    return reshaped(items, shape, np.array(speeds, np.int16), np.array(offsets, np.uint64))


lengths = st.floats(0.01, 3.0).map(lambda seconds: round(seconds, 4))


@settings(max_examples=40)
@given(
    rows=st.lists(
        st.tuples(st.integers(400, 30_000), st.sampled_from(SPEEDS)), min_size=1, max_size=4
    ),
    rate=st.sampled_from([8000, 16000, 22050, 44100]),
    target=st.sampled_from([8000, 16000, 24000]),
    options=st.fixed_dictionaries(
        {
            "truncate_duration": st.none() | lengths,
            "cut_into_windows_duration": st.none() | st.floats(0.1, 1.0),
            "cut_into_windows_hop": st.none() | st.floats(0.1, 1.0),
            "pad_min_duration": st.none() | lengths,
            "pad_direction": st.sampled_from(["left", "right", "both", "random"]),
        }
    ),
    offset=st.integers(0, 2**64 - 1),
)
def test_no_sample_is_longer_than_promised(rows, rate, target, options, offset):
    made = augmenter(sample_rate=target, perturb_speed=True, **options)
    window = options["cut_into_windows_duration"]
    shape = Shape(
        perturb_speed=True,
        truncate_us=microseconds(options["truncate_duration"]),
        window_us=microseconds(window),
        hop_us=microseconds(options["cut_into_windows_hop"]) if window else None,
        pad_us=microseconds(options["pad_min_duration"]),
    )
    seconds = [count / rate for count, _ in rows]
    items = promised(
        [round(one * SECOND) for one in seconds],
        shape,
        [speed for _, speed in rows],
        [offset] * len(rows),
    )
    batch = keyed(
        np.arange(len(items)),
        part=0 if items.part is None else items.part,
        speed=items.speed,
        start_us=items.start,
        span_us=items.span,
    )
    examples = [sample(seconds[row], f"{row}", rate=rate) for row in items.row]
    cuts = prepared(made, examples, batch)
    limit = items.length * target / SECOND
    for cut, exact in zip(cuts, limit, strict=True):
        # To a sample; halves are rounded up where a row is whole.
        assert exact - 1.01 <= cut.num_samples <= exact + 0.5 + target / SECOND
        assert cut.load_audio().shape == (1, cut.num_samples)


def test_the_last_window_is_all_that_is_left():
    """A row of 16,001 samples: its length in whole microseconds is a little less than that."""
    example = sample(16001 / 16000)
    items = promised([1_000_062], Shape(window_us=500_000), [1000], [0])
    assert items.length.tolist() == [500_000, 500_000]
    items = promised([1_500_062], Shape(window_us=1_000_000), [1000], [0])
    assert items.length.tolist() == [1_000_000, 500_062]
    example = sample(24001 / 16000)
    made = augmenter(cut_into_windows_duration=1.0)
    batch = keyed([1, 2], part=[0, 1], start_us=items.start, span_us=items.span)
    cuts = prepared(made, [example] * 2, batch)
    assert [cut.num_samples for cut in cuts] == [16000, 8001]
    assert all(isinstance(cut, MonoCut) for cut in cuts)
    whole = augmenter(perturb_speed=True)
    (row,) = prepared(whole, [example], keyed([1]))
    joined = np.concatenate([audio_of(cut)[0] for cut in cuts])
    np.testing.assert_array_equal(joined, audio_of(row)[0])
    fast, _ = made.of_examples([example] * 2, batch, [{}] * 2)
    audio, counts = pad_waveforms(fast, 16000)
    assert counts.tolist() == [16000, 8001]
    np.testing.assert_array_equal(audio[1, :8001].numpy(), joined[16000:])
