"""Indexing a config with `multi_config`: every sub-config, with what the top level decides."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import playhead.cli.index  # noqa: F401  (registers the command)
from playhead.cli import app
from support.corpus import nemo_corpus, tarred_corpus


@pytest.mark.parametrize("section", [None, "model.train_ds"])
def test_every_sub_config_is_indexed_where_the_top_level_says(tmp_path, section):
    manifest = nemo_corpus(tmp_path / "plain", [0.2] * 5)
    pattern, tars = tarred_corpus(tmp_path / "tarred", [0.2] * 6, 2)
    train = {
        "multi_config": True, "seed": 1, "shard_seed": 1, "shuffle": True,
        "indexes_root": str(tmp_path / "idx"),
        "a": {"manifest_filepath": str(manifest), "batch_size": 2},
        "b": {
            "input_cfg": [
                {
                    "type": "nemo_tarred", "manifest_filepath": pattern,
                    "tarred_audio_filepaths": tars,
                }
            ],
            "batch_size": 2,
        },
    }  # fmt: skip
    whole = {"model": {"train_ds": train}} if section else train
    (tmp_path / "train.yaml").write_text(json.dumps(whole))
    arguments = ["index", str(tmp_path / "train.yaml"), "--json"]
    if section:
        arguments += ["--section", section]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    packs = [path.name for path in (tmp_path / "idx").rglob("*.idxpack")]
    assert len(packs) == 2
    assert len(list((tmp_path / "idx").rglob("*.idx"))) == 5
    again = CliRunner().invoke(app, arguments)
    assert again.exit_code == 0
    assert [path.name for path in (tmp_path / "idx").rglob("*.idxpack")] == packs
