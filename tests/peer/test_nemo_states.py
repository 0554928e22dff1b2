"""What is said of a state of NeMo's own sampler and sources is what its loader handed out.

NeMo runs in a Python of its own, named by PLAYHEAD_NEMO_PYTHON; `make peer-nemo` makes it.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from playhead.inspect.nemo_samplers import find_samplers
from playhead.inspect.nemo_sources import gather
from playhead.inspect.nemo_summary import summarise_nemo

pytestmark = pytest.mark.slow

CHILD = Path(__file__).with_name("nemo_states.py")
SECONDS = 280.0


@pytest.fixture(scope="module")
def cases(tmp_path_factory) -> dict[str, dict[str, Any]]:
    python = os.environ.get("PLAYHEAD_NEMO_PYTHON", "")
    if not Path(python).is_file():
        pytest.skip("no Python with NeMo: `make peer-nemo`, PLAYHEAD_NEMO_PYTHON")
    folder = tmp_path_factory.mktemp("nemo")
    done = subprocess.run(
        [python, str(CHILD), str(folder)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads((folder / "nemo.json").read_text())


@pytest.mark.parametrize("name", ["plain", "buckets"])
def test_items_are_those_that_were_handed_out(name, cases, tmp_path, monkeypatch):
    monkeypatch.setenv("PLAYHEAD_CACHE", str(tmp_path))
    case = cases[name]

    summary = summarise_nemo(case["state"], file="state", config=case["config"])

    assert summary is not None
    assert [row.dataset for row in summary.rows] == ["a", "b", "c"]
    assert [row.total_items for row in summary.rows] == [100, 37, 11]
    assert [row.partitions_seen for row in summary.rows] == [4, 4, 4]
    # Square roots of 0.4 and 0.6, and half of the blend.
    assert [row.desired_weight for row in summary.rows] == pytest.approx(
        [0.5, 0.2247, 0.2753], 1e-3
    )
    consumed = [row.consumed_items for row in summary.rows]
    buffered = gather(find_samplers(case["state"]).samplers, None).buffered
    assert sum(consumed) - buffered == sum(case["read"])
    if name == "plain":
        assert buffered == 0
        assert consumed == case["read"]
