"""What is said of states that Lhotse 2 writes is what its loaders handed out.

Lhotse 2 runs in a Python of its own, named by PLAYHEAD_PEER_PYTHON; `make peer` makes it.
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

CHILD = Path(__file__).with_name("lhotse_states.py")
SECONDS = 200.0
NAMES = (
    "a file, two workers",
    "a file several times over",
    "a mixture, two ranks with two workers",
    "buckets",
    "a buffer that is shuffled",
    *(
        f"{name} {steps}{' steps' if name.endswith(',') else ''}"
        for steps in (10, 45, 70, 130)
        for name in ("files one after another,", "the same, resumed after")
    ),
    "files one after another as one source",
    "files shuffled together",
    "files shuffled together, to the end",
    "a mixture to its end",
    *(
        f"a pack, {order}, {steps} steps"
        for order in ("in order", "shuffled")
        for steps in (10, 60, 150)
    ),
    "streams",
    "samplers that take turns",
    "an order of their own, two ranks",
)


@pytest.fixture(scope="module")
def cases(tmp_path_factory) -> dict[str, dict[str, Any]]:
    """States of Lhotse's loaders, and what was read, by name."""
    python = os.environ.get("PLAYHEAD_PEER_PYTHON", "")
    if not Path(python).is_file():
        pytest.skip("no Python with Lhotse 2: `make peer`, PLAYHEAD_PEER_PYTHON")
    folder = tmp_path_factory.mktemp("lhotse")
    done = subprocess.run(
        [python, str(CHILD), str(folder)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    made = json.loads((folder / "cases.json").read_text())
    return {case["name"]: case for case in made}


def test_every_case_is_looked_at(cases):
    assert tuple(cases) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_items_are_those_that_were_handed_out(name, cases, tmp_path, monkeypatch):
    monkeypatch.setenv("PLAYHEAD_CACHE", str(tmp_path))
    case = cases[name]
    read = case["read"]
    expected = [read.get(Path(entry.get("cuts_path", "")).stem, 0) for entry in case["config"]]
    if case.get("is_one"):
        expected = [sum(read.values())]

    summary = summarise_nemo(case["state"], file="state", config=case["config"])

    assert summary is not None
    consumed = [row.consumed_items for row in summary.rows]
    buffered = gather(find_samplers(case["state"]).samplers, None).buffered
    assert sum(expected) > 0
    if case.get("has_buffers"):
        assert buffered > 0
        assert sum(consumed) - buffered == sum(expected)
    else:
        assert buffered == 0
        assert consumed == expected
    assert all(row.total_items for row in summary.rows)
    if "matched" in case:
        (spec,) = summary.dataset_specs
        assert spec.matched_index_pack_collection_key == case["matched"]
        assert spec.packed_shard_lengths == (100, 37, 11)
