from __future__ import annotations

import subprocess
import sys
from collections import Counter

import pytest

from playhead.fetch.augment.draws import below, between, happens, pick, unit
from playhead.fetch.generators import derive

KEYS = [derive(5, str(i)) for i in range(4000)]


def test_vectors():
    """What was drawn once is drawn for ever: these are part of what a position means."""
    assert unit(0, "noise") == 0.31078992508230074
    assert below(2**64 - 1, "row", 10**9) == 585585172


def test_another_process_draws_the_same():
    code = "from playhead.fetch.augment.draws import unit; print(repr(unit(123, 'snr')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(done.stdout) == unit(123, "snr")


def test_purposes_do_not_hang_together():
    both = sum((unit(k, "noise") < 0.5) == (unit(k, "reverb") < 0.5) for k in KEYS)
    assert both / len(KEYS) == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize("probability", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_probabilities_hold(probability):
    share = sum(happens(key, "x", probability) for key in KEYS) / len(KEYS)
    assert share == pytest.approx(probability, abs=0 if probability in (0, 1) else 0.03)


def test_intervals_are_filled_evenly():
    drawn = [between(key, "x", (-5.0, 15.0)) for key in KEYS]
    assert -5 <= min(drawn) < -4.9
    assert 14.9 < max(drawn) < 15
    assert sum(drawn) / len(drawn) == pytest.approx(5, abs=0.5)


def test_numbers_are_drawn_evenly():
    drawn = Counter(below(key, "x", 8) for key in KEYS)
    assert sorted(drawn) == list(range(8))
    assert min(drawn.values()) > 400


def test_weights_count():
    drawn = Counter(pick(key, "x", [1, 0, 3]) for key in KEYS)
    assert sorted(drawn) == [0, 2]
    assert drawn[2] / len(KEYS) == pytest.approx(0.75, abs=0.03)
    assert {pick(key, "x", [2**40, 2**40]) for key in KEYS[:50]} == {0, 1}
