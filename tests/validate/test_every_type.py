"""Every input type is validated, and every sample of it comes once, whatever is resumed where."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import soundfile as sf

from support.talk import section, tokenizer
from support.talk_cuts import FORMS
from support.ten_cuts import Corpus, make
from support.told import token_section
from support.validations import failed, validated

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.filterwarnings("ignore:a pass that ends takes every sample once"),
    pytest.mark.filterwarnings("ignore:samples longer than the last of bucket_duration_bins"),
]

SPEECH = ("cuts", "nemo", "tarred", "aggregate", "shar", "parquet", "concat")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAYHEAD_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return make(tmp_path_factory.mktemp("ten"), [0.2 * (n + 1) for n in range(10)])


def speech_entry(corpus: Corpus, form: str, folder: Path) -> dict[str, Any]:
    if form == "concat":
        return {"type": "lhotse_concat", "max_duration": 1.5, "gap": 0.1, **corpus.flat("cuts")}
    if form != "parquet":
        return corpus.entry(form)
    rows = []
    for number in range(10):
        audio = (corpus.folder / f"cut-{number:04d}.wav").read_bytes()
        seconds = sf.info(io.BytesIO(audio)).duration
        rows.append({"id": f"row-{number}", "audio": {"bytes": audio}, "duration": seconds})
    pq.write_table(pa.Table.from_pylist(rows), folder / "rows.parquet", row_group_size=3)
    return {"type": "parquet", "manifest_filepath": str(folder / "rows.parquet")}


def statuses(verdict: Any) -> dict[str, str]:
    return {answer.question: answer.status for answer in verdict.answers}


@pytest.mark.parametrize(
    "form",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name in ("aggregate", "cuts")))
        for name in SPEECH
    ],
)
def test_speech_of_every_type_passes_with_every_bit_of_its_tensors(
    corpus: Corpus, form: str, tmp_path: Path
) -> None:
    entry = speech_entry(corpus, form, tmp_path)
    config = {"input_cfg": [entry], "batch_size": 2, "shuffle": True, "seed": 3}
    verdict = validated(tmp_path, config, mode="full", resume=((2, 0), (1, 0), (1, 2)))
    assert statuses(verdict) == dict.fromkeys(("Q1", "Q2", "Q3", "Q4", "Q5"), "PASS")


# Variants of a type differ in how files lie, which the loader's own tests go through.
@pytest.mark.parametrize(
    "form",
    [pytest.param(name, marks=[pytest.mark.slow] * ("," in name)) for name in FORMS],
)
def test_texts_and_conversations_of_every_type_pass(form: str, tmp_path: Path) -> None:
    config = section(FORMS[form].write(tmp_path), batch_size=2, shuffle=True, seed=3)
    if FORMS[form].num is None:
        verdict = validated(tmp_path, config, force_finite=False, steps=6)
        assert statuses(verdict)["Q2"] == "SKIP"
    else:
        verdict = validated(tmp_path, config)
        assert statuses(verdict)["Q2"] == "PASS"
    assert failed(verdict) == []
    assert statuses(verdict)["Q4"] == statuses(verdict)["Q5"] == "PASS"


@pytest.mark.parametrize(
    "form",
    [
        "multimodal_conversation",
        pytest.param("txt_pair", marks=pytest.mark.slow),
        pytest.param("share_gpt, tars", marks=pytest.mark.slow),
    ],
)
def test_tokens_and_audio_of_conversations_pass_bit_for_bit(form: str, tmp_path: Path) -> None:
    model = tokenizer(tmp_path, "json")
    options = {"batch_tokens": 150, "batch_size": None, "shuffle": True, "seed": 3}
    config = token_section(FORMS[form].write(tmp_path), **options)
    verdict = validated(tmp_path, config, mode="full", tokenizer=model)
    assert statuses(verdict) == dict.fromkeys(("Q1", "Q2", "Q3", "Q4", "Q5"), "PASS")


@pytest.mark.parametrize("fusion", ["round_robin", "randomized_round_robin", "zip"])
def test_several_configs_in_turn_pass(corpus: Corpus, fusion: str, tmp_path: Path) -> None:
    part = {"batch_size": 2}
    config = {
        "multi_config": True,
        "sampler_fusion": fusion,
        "seed": 3,
        "shuffle": True,
        "one": {"input_cfg": [corpus.entry("nemo")], **part},
        "two": {"input_cfg": [corpus.entry("shar")], **part},
    }
    if fusion == "randomized_round_robin":
        config["sampler_weights"] = {"one": 0.3, "two": 0.7}
    if fusion != "zip":
        verdict = validated(tmp_path, config)
        assert statuses(verdict) == dict.fromkeys(("Q1", "Q2", "Q3", "Q4", "Q5"), "PASS")
        return
    with pytest.raises(ValueError, match="zipped end together"):
        validated(tmp_path, config)


@pytest.mark.parametrize(
    "options",
    [
        {"min_duration": 0.5, "max_duration": 1.7},
        {"cut_into_windows_duration": 0.5},
        {"cut_into_windows_duration": 0.5, "perturb_speed": True, "truncate_duration": 1.2},
        {"use_bucketing": True, "bucket_duration_bins": [0.5, 1.5], "bucket_batch_size": [4, 2]},
        {"batch_duration": 1.5, "batch_size": None, "oversize": "drop"},
        {"shuffle": False},
        {"slice_length": 2},
        {"micro_batches_per_step": 4},
    ],
    ids=str,
)
def test_what_options_leave_out_or_cut_up_belongs_to_no_pass(
    corpus: Corpus, options: dict[str, Any], tmp_path: Path
) -> None:
    form = "tarred" if "slice_length" in options else "nemo"
    entries = [corpus.entry(form), {**corpus.entry("shar")}]
    config = {"input_cfg": entries, "batch_size": 2, "shuffle": True, "seed": 3, **options}
    verdict = validated(tmp_path, config)
    assert statuses(verdict) == dict.fromkeys(("Q1", "Q2", "Q3", "Q4", "Q5"), "PASS")


def test_ranks_that_cannot_share_the_step_are_given_what_is_left(
    corpus: Corpus, tmp_path: Path
) -> None:
    entries = [corpus.entry("nemo"), corpus.entry("shar")]
    config = {"input_cfg": entries, "batch_size": 2, "shuffle": True, "seed": 3}
    with pytest.warns(UserWarning, match="cannot share|dealt out anew"):
        verdict = validated(tmp_path, config, resume=((3, 0),))
    assert statuses(verdict) == dict.fromkeys(("Q1", "Q2", "Q3", "Q4", "Q5"), "PASS")
