"""The hash that decides everything: fixed for ever, and without patterns in its words."""

from __future__ import annotations

import numpy as np
import pytest

from playhead.plan.keyed import Purpose, derive, key, mix, mix_array, stream, text_word


@pytest.mark.parametrize(
    ("word", "mixed"),
    [
        (0, 0x0),
        (1, 0x5692161D100B05E5),
        (2, 0xDBD238973A2B148A),
        (0x9E3779B97F4A7C15, 0xE220A8397B1DCDAF),
        (2**64 - 1, 0xB4D055FCF2CBBD7B),
    ],
)
def test_mix_gives_its_published_values(word, mixed):
    """SplitMix64 seeded with 0 gives 0xe220a8397b1dcdaf first: the mix of its increment."""
    assert mix(word) == mixed
    assert mix_array(np.array([word], dtype=np.uint64)).tolist() == [mixed]


def test_keys_never_change():
    """Vectors of our own: a change here would send every checkpoint to other batches."""
    assert key(0, Purpose.ROWS) == 0x28C985F8947D8614
    assert key(1, Purpose.ROWS, 2, 3) == 0xFB8CB4E9DF27F9AC
    assert key(-1, Purpose.BATCH, 2**63, 0, 5) == 0x2E22C67BA10A6FC5
    assert text_word("") == 0xE220A8397B1DCDAF
    assert text_word("speech/train_clean_100") == 0x93276F78F17E1DC3
    assert stream(7, np.arange(3)).tolist() == [
        0x63CBE1E459320DD7,
        0x44C3CD7F43C661C,
        0xE6984080BAB12A02,
    ]
    assert [int(purpose) for purpose in Purpose] == list(range(1, 15))


def test_arrays_agree_with_single_keys():
    base = key(5, Purpose.SAMPLE)
    leaf = np.array([1, 2**63, 17], dtype=np.uint64)
    pass_ = np.array([0, 1, 2**40])
    expected = [key(5, Purpose.SAMPLE, int(a), int(b)) for a, b in zip(leaf, pass_, strict=True)]
    assert derive(base, leaf, pass_).tolist() == expected
    counter = [mix(base + (index + 1) * 0x9E3779B97F4A7C15) for index in range(4)]
    assert stream(base, np.arange(4)).tolist() == counter


def test_no_two_keys_collide_where_sums_would():
    """Keys made of seed + index would be shared by neighbours: (seed 1, row 2), (seed 2, row 1)."""
    small = range(12)
    keys = {
        key(seed, purpose, a, b)
        for seed in small
        for purpose in (Purpose.ROWS, Purpose.POOL, Purpose.SAMPLE)
        for a in small
        for b in small
    }
    assert len(keys) == 12 * 3 * 12 * 12
    assert len({key(seed, seed) for seed in range(1000)}) == 1000
    assert key(0, 1) != key(0, 1, 0) != key(0, 1, 0, 0)


def test_texts_of_any_length_have_their_own_word():
    texts = ["", "a", "b", "ab", "ba", "a" * 8, "a" * 9, "a\0", "\0a", "é", "train", "train "]
    assert len({text_word(text) for text in texts}) == len(texts)


def test_bits_are_fair():
    """Each of the 64 bits of a stream is set about half of the time, for the plainest counters."""
    words = stream(key(1, Purpose.POOL), np.arange(20_000))
    bits = np.unpackbits(words.view(np.uint8)).reshape(-1, 64).mean(axis=0)
    assert abs(bits - 0.5).max() < 5 * 0.5 / np.sqrt(20_000)
