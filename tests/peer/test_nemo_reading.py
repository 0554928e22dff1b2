"""What Playhead reads is what NeMo reads, for the differences that the documentation lists.

NeMo runs in a Python of its own, named by PLAYHEAD_NEMO_PYTHON; `make peer-nemo` makes it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import playhead
from peer.nemo_cases import CASES, Case
from peer.nemo_corpora import build
from peer.nemo_reading import Cuts, facts_of_any
from peer.nemo_rules import NEW, ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:a pass that ends takes every sample once"),
    pytest.mark.filterwarnings("ignore:samples longer than the last of bucket_duration_bins"),
    pytest.mark.filterwarnings("ignore:options of config that have no meaning here"),
]

CHILD = Path(__file__).with_name("nemo_reading.py")
SECONDS = 280.0
UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("nemo")
    build(folder)
    return folder


@pytest.fixture(scope="module")
def theirs(root) -> dict[str, list[dict[str, Any]]]:
    """What NeMo reads of all configs, by name."""
    python = os.environ.get("PLAYHEAD_NEMO_PYTHON", "")
    if not Path(python).is_file():
        pytest.skip("no Python with NeMo: `make peer-nemo`, PLAYHEAD_NEMO_PYTHON")
    cases = [{"name": name, **case.below(root)} for name, case in CASES.items()]
    (root / "cases.json").write_text(json.dumps(cases))
    done = subprocess.run(
        [python, str(CHILD), str(root / "cases.json"), str(root / "read.jsonl")],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    (root / "log").write_text(done.stdout + done.stderr)
    assert done.returncode == 0, done.stderr[-4000:]
    found = defaultdict(list)
    for line in (root / "read.jsonl").read_text().splitlines():
        answer = json.loads(line)
        found[answer["case"]].append(answer)
    return found


def ours(case: dict[str, Any]) -> list[dict[str, Any]]:
    settings = {
        "force_finite": True,
        "shuffle": False,
        "batch_size": 4,
        **(case["ours"] or case["config"]),
    }
    loader = playhead.dataloader(settings, dataset=Cuts(), tokenizer=case["tokenizer"])
    facts = [facts_of_any(one) for batch in loader for one in batch]
    return json.loads(json.dumps(facts))


def in_order(samples: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(facts, sort_keys=True, ensure_ascii=False) for facts in samples)


def told(facts: dict[str, Any], case: Case) -> dict[str, Any]:
    """What NeMo says, without what it says of where the cut is from and without drawn ids."""
    # Which process read a batch; not every window of a cut has it.
    facts["custom"].pop("dataloading_info", None)
    for added in case.provenance:
        del facts["custom"][added]
    if "id" in facts:
        facts["id"] = UUID.sub(NEW, facts["id"])
    for turn in facts.get("turns", ()):
        if "cut" in turn:
            turn["cut"] = UUID.sub(NEW, turn["cut"])
    return facts


@pytest.mark.parametrize("name", CASES)
def test_the_same_samples(name, root, theirs, tmp_path, monkeypatch):
    monkeypatch.setenv("PLAYHEAD_CACHE", str(tmp_path))
    case = CASES[name]
    answers = theirs[name]
    errors = [answer["error"] for answer in answers if "error" in answer]
    if case.refusal is not None:
        assert [case.refusal in error for error in errors] == [True]
        assert ours(case.below(root))
        return
    assert errors == []
    read = [told(answer["cut"], case) for answer in answers if answer["cut"] is not None]
    expected = [facts for sample in ours(case.below(root)) for facts in case.expected(sample)]
    assert expected
    expected = json.loads(json.dumps(expected).replace(ROOT, str(root)))
    assert in_order(expected) == in_order(read)
