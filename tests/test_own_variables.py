"""What one test sets for its process, the next one does not have."""

from __future__ import annotations

import pytest

from playhead.storage.limits import Limits, limits


@pytest.mark.parametrize("tries", [2, None, 5])
def test_limits_are_those_of_the_variables_of_each_test(monkeypatch, tries):
    if tries is not None:
        monkeypatch.setenv("PLAYHEAD_STORAGE_TRIES", str(tries))
    assert limits().tries == (tries or Limits().tries)
