"""NeMo's datasets make the same batches of Playhead's samples as of NeMo's own.

NeMo runs in a Python of its own, named by PLAYHEAD_NEMO_PYTHON; `make peer-nemo` makes it.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from lhotse import CutSet
from lhotse.utils import fastcopy

import playhead
from peer.nemo_corpora import build
from peer.nemo_talk import SYSTEM, resolved, talk_config
from support.talk import tokenizer
from support.token_models import sentencepiece_bytes

pytestmark = pytest.mark.slow

CHILD = Path(__file__).with_name("nemo_batches.py")
SECONDS = 280.0
TALKS = (
    "multimodal_conversation",
    "multimodal_conversation, text",
    "share_gpt",
    "lhotse_as_conversation",
    "sqa_as_conversation",
)


def of_speech(root: Path) -> dict[str, dict[str, Any]]:
    """Datasets that transcribe, by the tokenizers of NeMo."""
    first, second = (
        {"manifest_filepath": str(root / f"spoken/{name}.json")} for name in ("spoken", "spoken2")
    )
    english, special = str(root / "spoken/en.model"), str(root / "padded.model")
    both = {"en": english, "de": str(root / "spoken/de.model")}
    several = {"spl_tokens": special, **both}
    tars = {
        "manifest_filepath": str(root / "ten/manifest__OP_0..1_CL_.json"),
        "tarred_audio_filepaths": str(root / "ten/audio__OP_0..1_CL_.tar"),
    }
    targets = {"cuts_path": str(root / "targets.jsonl")}
    cuts = {"cuts_path": str(root / "ten/cuts.jsonl")}
    return {
        "pieces": {"dataset": "bpe", "config": first, "tokenizer": english},
        "pieces, tokenized in the dataset": {
            "dataset": "bpe",
            "config": {**first, "pretokenize": False},
            "tokenizer": english,
        },
        "pieces, with cuts": {"dataset": "bpe with cuts", "config": cuts, "tokenizer": english},
        "pieces, by language": {"dataset": "bpe", "config": first, "tokenizer": both},
        "letters": {"dataset": "letters", "config": first, "tokenizer": None},
        "canary2": {
            "dataset": "canary2",
            "config": {**second, "prompt_format": "canary2"},
            "tokenizer": several,
        },
        "canary2, formatted in the dataset": {
            "dataset": "canary2",
            "config": second,
            "tokenizer": several,
        },
        "targets of audio": {"dataset": "to audio", "config": targets, "tokenizer": None},
        "self-supervised": {"dataset": "noisy", "config": first, "tokenizer": None},
        "pieces, of tars": {"dataset": "bpe", "config": tars, "tokenizer": english},
    }


def of_talk(root: Path) -> dict[str, dict[str, Any]]:
    """Conversations, for the dataset of NeMo's speech language models."""
    pieces, words = str(root / "talk/talk.model"), str(root / "auto")
    made = {}
    for name in TALKS:
        prompt = "llama3" if name in SYSTEM else "plain"
        config = talk_config(name, prompt_format=prompt, batch_size=3)
        made[f"talk, {name}"] = {
            "dataset": "salm",
            "config": resolved(config, root / "talk"),
            "tokenizer": words if name == "share_gpt" else pieces,
        }
    return made


def write_targets(root: Path) -> None:
    """Cuts, each with its own audio as what is to come out."""
    cuts = list(CutSet.from_file(root / "ten/cuts.jsonl"))
    for cut in cuts:
        place = [
            fastcopy(one, source=str(root / "ten" / one.source)) for one in cut.recording.sources
        ]
        cut.recording = cut.target_recording = fastcopy(cut.recording, sources=place)
    CutSet.from_cuts(cuts).to_file(root / "targets.jsonl")


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("nemo")
    build(folder)
    write_targets(folder)
    (folder / "padded.model").write_bytes(sentencepiece_bytes("en", special=True, pad=True))
    tokenizer(folder / "auto", "json")
    special = {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "<unk>"}
    (folder / "auto/tokenizer_config.json").write_text(json.dumps(special))
    return folder


@pytest.fixture(scope="module")
def answers(root) -> dict[str, dict[str, Any]]:
    python = os.environ.get("PLAYHEAD_NEMO_PYTHON", "")
    if not Path(python).is_file():
        pytest.skip("no Python with NeMo: `make peer-nemo`, PLAYHEAD_NEMO_PYTHON")
    cases = {**of_speech(root), **of_talk(root)}
    (root / "batches.json").write_text(
        json.dumps([{"name": name, **case} for name, case in cases.items()])
    )
    source = Path(playhead.__file__).parents[1]
    done = subprocess.run(
        [python, str(CHILD), str(root / "batches.json"), str(root / "batches.jsonl")],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        env={**os.environ, "PYTHONPATH": str(source), "PLAYHEAD_CACHE": str(root / "cache")},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    lines = map(json.loads, (root / "batches.jsonl").read_text().splitlines())
    return {line.pop("case"): line for line in lines}


NAMES = (*of_speech(Path()), *(f"talk, {name}" for name in TALKS))


@pytest.mark.parametrize("name", NAMES)
def test_the_same_batches(name, answers):
    answer = answers[name]
    if "missing" in answer:
        pytest.skip(f"NeMo's dataset cannot be imported: {answer['missing']}")
    assert "error" not in answer, answer["error"]
    assert answer["ours"] == answer["theirs"]
    assert len(answer["ours"]) > 1
