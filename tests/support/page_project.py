"""The files that pages of the documentation speak of, as a small project."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import torch

import playhead
from playhead.datasets import Ids
from support.command import run_command
from support.corpus import nemo_corpus, tarred_corpus, write_jsonl
from support.nemo_states import indexed, mixture, nemo_sources, per_rank, sampler, workers
from support.token_models import hf_bytes, sentencepiece_bytes

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["write_project"]

_DATASET = '''
class MyDataset:
    """The texts of a batch."""

    def __getitem__(self, cuts):
        return {"texts": [cut.supervisions[0].text for cut in cuts]}
'''


def write_project(folder: Path) -> Path:
    """Write data, configs, tokenizers, checkpoints, packs and a module as the pages call them."""
    _write_configs(folder)
    for name in ("en", "de", "bpe", "spm"):
        language = "de" if name == "de" else "en"
        model = sentencepiece_bytes(language, special=name == "bpe")
        (folder / f"{name}.model").write_bytes(model)
    (folder / "tokenizer.json").write_bytes(hf_bytes())
    (folder / "my_project").mkdir()
    (folder / "my_project/data.py").write_text(_DATASET)
    write_jsonl(folder / "bad_samples.jsonl", [])
    _write_states(folder)
    made = [
        run_command("pack", "-o", "packs/old.idxpack", "train.yaml", cwd=folder),
        run_command("index", "--indexes-root", "lustre/indexes", "train.yaml", cwd=folder),
    ]
    assert not any(ran.returncode for ran in made), made
    return folder


def _write_configs(folder: Path) -> None:
    lengths = [0.3 + 0.02 * n for n in range(60)]
    plain = str(nemo_corpus(folder / "corpora/plain", lengths))
    manifests, tars = tarred_corpus(folder / "corpora/tarred", lengths[:40], 2)
    for path in (folder / "corpora/tarred").glob("*.json"):
        rows = map(json.loads, path.read_text().splitlines())
        write_jsonl(path, [{**row, "lang": "en"} for row in rows])
    tags = {"source_lang": "en", "target_lang": "en"}
    entries = [
        {"type": "nemo", "manifest_filepath": plain, "weight": 0.3, "tags": tags},
        {
            "type": "nemo_tarred",
            "manifest_filepath": manifests,
            "tarred_audio_filepaths": tars,
            "weight": 0.7,
            "tags": tags,
        },
    ]
    section = {"input_cfg": entries, "batch_duration": 8, "shuffle": True, "seed": 1}
    training = {"model": {"train_ds": section, "validation_ds": {"input_cfg": entries[:1]}}}
    # YAML reads JSON.
    (folder / "train.yaml").write_text(json.dumps(training))
    (folder / "blend.yaml").write_text(json.dumps(section))
    (folder / "more_data.yaml").write_text(json.dumps(entries[:1]))
    sources = nemo_sources(folder / "corpora/nemo", [40, 60])
    (folder / "config.yaml").write_text(json.dumps({"train_ds": {"input_cfg": sources}}))


def _write_states(folder: Path) -> None:
    loader = playhead.dataloader(str(folder / "blend.yaml"), dataset=Ids())
    next(iter(loader))
    ours = {"state_dict": {}, "loader": loader.state_dict()}
    states = mixture(indexed(4), indexed(7))
    theirs = per_rank(workers(sampler(states)))
    for name, state in {
        "step=12000.ckpt": ours,
        "runs/exp1/checkpoints/step=12000.ckpt": ours,
        "results/checkpoints/last.ckpt": theirs,
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        torch.save(state, folder / name)
