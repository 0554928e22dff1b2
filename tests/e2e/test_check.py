"""The pre-flight on a blend of real speech: what it says is what training then does."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from math import ceil

import pytest

import playhead
from playhead.datasets import Ids
from support.real_speech import write_blend

pytestmark = pytest.mark.e2e


def check(config, *arguments):
    done = subprocess.run(
        [sys.executable, "-m", "playhead", "check", str(config), "--json", *map(str, arguments)],
        check=False,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert "Traceback" not in done.stderr
    return done.returncode, json.loads(done.stdout)


def test_real_speech_is_ready_and_every_source_of_it_is_fetched(prompts, digits, tmp_path):
    blend = write_blend(tmp_path / "blend.yaml", prompts, digits, num_workers=2, batch_duration=60)
    code, report = check(blend, "--fetch", 24, "--hours-per-hour", 2000)
    assert (code, report["passed"]) == (0, True), report["findings"]
    fetch = report["fetch"]
    assert len(fetch["leaves"]) == report["leaves"] > 5
    for one in fetch["leaves"]:
        assert one["fetched"] == one["asked"] == 24
        assert one["mode"] in ("local", "shards")
        assert one["failures"] == []
        assert one["requests"] == 4
        assert one["hours"] > 0
        assert one["samples_per_second"] == pytest.approx(24 / one["seconds"])
        assert 0 < one["p50_seconds"] <= one["p95_seconds"] < one["seconds"]
    seconds = sum(one["share"] * one["seconds"] / 24 for one in fetch["leaves"])
    hours = sum(one["share"] * one["hours"] / 24 for one in fetch["leaves"])
    assert sum(one["share"] for one in fetch["leaves"]) == pytest.approx(1)
    assert fetch["audio_hours_per_second"] == pytest.approx(hours / seconds)
    assert fetch["workers"] == max(1, ceil(2000 / 3600 * seconds / hours))


def test_what_fails_the_check_fails_training_and_the_changes_mend_it(prompts, digits, tmp_path):
    blend = write_blend(tmp_path / "blend.yaml", prompts, digits, num_workers=1, batch_duration=60)
    good = blend.read_text()
    blend.write_text(good.replace("batch_duration", "batch_duratoin", 1))
    assert blend.read_text() != good
    code, report = check(blend)
    assert code == 1
    with pytest.raises(playhead.ConfigError, match="batch_duratoin"):
        playhead.dataloader(blend, dataset=Ids())
    [change] = [one["change"] for one in report["findings"] if one["rule"] == "misspelt-key"]
    text = blend.read_text()
    _, removed, added = change
    old, new = removed.removeprefix("- "), added.removeprefix("+ ")
    assert text.count(old.partition(":")[0]) == 1
    blend.write_text(text.replace(old.partition(":")[0], new.partition(":")[0]))
    code, report = check(blend)
    assert code == 0, report["findings"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loader = playhead.dataloader(blend, dataset=Ids(), num_workers=0)
        assert next(iter(loader))["ids"]
