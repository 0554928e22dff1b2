"""Reports and steps of every input type: each is counted, and each row can be looked up."""

from __future__ import annotations

import json

import pytest

from playhead.report import explain_step, report_figures
from support.corpus import nemo_corpus, tarred_corpus
from support.parquet import speech_columns, write_table
from support.shar import simple_cuts, write_shar
from support.small_blends import loader_of, quiet
from support.talk import FORMS

OTHERS = ("nemo", "nemo_tarred", "lhotse_shar", "parquet")


def entry_of(name, folder):
    if name in FORMS:
        return FORMS[name].write(folder)
    if name == "nemo":
        return {"type": name, "manifest_filepath": str(nemo_corpus(folder, [0.2] * 7))}
    if name == "nemo_tarred":
        manifests, tars = tarred_corpus(folder, [0.1, 0.2, 0.3] * 3, 2)
        return {"type": name, "manifest_filepath": manifests, "tarred_audio_filepaths": tars}
    if name == "lhotse_shar":
        shar = write_shar(
            folder / "shar", simple_cuts(folder / "cuts", list("abcde")), shard_size=2
        )
        return {"type": name, "shar_path": str(shar)}
    return {
        "type": name,
        "manifest_filepath": str(write_table(folder / "t.parquet", speech_columns(8))),
    }


@pytest.mark.parametrize("name", [*OTHERS, *FORMS])
def test_every_input_type_has_figures_and_steps(name, tmp_path, monkeypatch):
    monkeypatch.setenv("PLAYHEAD_CACHE", str(tmp_path / "cache"))
    config = {
        "input_cfg": [{**entry_of(name, tmp_path / "data"), "name": "mine"}],
        "batch_size": 2, "force_finite": True, "shuffle": True, "seed": 1,
        "token_equivalent_duration": 0.08,
    }  # fmt: skip
    figures = quiet(lambda: report_figures(config))
    json.dumps(figures.to_json(), allow_nan=False)
    (part,) = figures.parts
    (leaf,) = part.leaves
    assert leaf.rows > 0
    assert leaf.accepted + sum(leaf.refused.values()) >= leaf.rows
    assert part.samples == leaf.accepted
    for locality in part.localities:
        assert "not known" not in locality.note
        assert locality.requests > 0
    loader = loader_of(config)
    for step, batch in enumerate(loader):
        contents = quiet(lambda step=step: explain_step(config, step, read_ids=True))
        (own,) = contents.batches
        assert [sample.id for sample in own.samples] == batch["ids"]
        assert all(sample.manifest for sample in own.samples)
        assert str(contents)
    assert step + 1 == figures.steps_per_pass
    loader.close()
