"""`playhead bins` as people run it: a process of its own, on data of several kinds."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import yaml

import playhead
from playhead.datasets import Ids
from support.corpus import nemo_corpus, tarred_corpus

pytestmark = pytest.mark.e2e


def test_bins_of_a_blend_train_as_they_are_written(tmp_path, monkeypatch):
    monkeypatch.setenv("PLAYHEAD_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    lengths = [0.1 + 0.013 * number for number in range(60)]
    loose = nemo_corpus(tmp_path / "loose", lengths)
    manifests, tars = tarred_corpus(tmp_path / "tarred", lengths[::-1], shards=3)
    entries = [
        {"type": "nemo", "manifest_filepath": str(loose), "weight": 3},
        {
            "type": "nemo_tarred",
            "manifest_filepath": manifests,
            "tarred_audio_filepaths": tars,
            "weight": 1,
        },
    ]
    (tmp_path / "blend.yaml").write_text(yaml.safe_dump({"input_cfg": entries}))
    ran = subprocess.run(
        [sys.executable, "-m", "playhead", "bins", "blend.yaml", "-b", "6", "-o", "bins.yaml"],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env=os.environ,
    )
    assert ran.stdout.startswith("Used 120 examples.\n")
    assert ran.stderr == "Wrote bins.yaml.\n"
    options = yaml.safe_load((tmp_path / "bins.yaml").read_text())
    assert f"\tnum_buckets={options['num_buckets']}\n" in ran.stdout
    # A pass that ends knows no weights.
    unweighted = [{key: entry[key] for key in entry if key != "weight"} for entry in entries]
    config = {**options, "input_cfg": unweighted, "force_finite": True}
    config["bucket_batch_size"] = [1] * options["num_buckets"]
    loader = playhead.dataloader(config, dataset=Ids())
    assert sum(len(batch["ids"]) for batch in loader) == 120
