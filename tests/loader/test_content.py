from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest
import soundfile as sf

import playhead
from playhead.datasets import Ids, SpeechLanguage, SpeechToText
from playhead.errors import PositionError
from support.corpus import write_jsonl, write_tar
from support.talk import tokenizer, voice

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAYHEAD_CACHE", str(tmp_path / "cache"))


def pairs(folder: Path, questions: list[str]) -> dict[str, Any]:
    for name in ("source", "target"):
        (folder / f"{name}.txt").write_text("".join(f"{name} {n}\n" for n in range(40)))
    (folder / "questions.txt").write_text("".join(f"{line}\n" for line in questions))
    entry = {
        "type": "txt_pair",
        "source_paths": str(folder / "source.txt"),
        "target_paths": str(folder / "target.txt"),
        "questions_path": str(folder / "questions.txt"),
    }
    return {"input_cfg": [entry], "seed": 3, "shuffle": True}


def test_a_prompt_with_a_line_that_is_drawn_keeps_within_the_limit(tmp_path):
    long = " ".join(["translate this sentence"] * 12)
    config = pairs(tmp_path, ["what", long, "how so"])
    limited = {"use_multimodal_sampling": True, "batch_tokens": 400, "prompt_format": "plain"}
    loader = playhead.dataloader(
        {**config, **limited}, tokenizer=tokenizer(tmp_path), dataset=SpeechLanguage()
    )
    seen = set()
    for batch in islice(loader, 60):
        rows, longest = batch["input_ids"].shape
        assert rows * longest <= 400 or rows == 1
        seen.update(batch["input_lens"].tolist())
    # Some drew the long line and some did not.
    assert max(seen) > 2 * min(seen)


@pytest.mark.parametrize("changed", [["what", "how so"], ["what", "why so"], ["what", "how", "so"]])
def test_lines_that_changed_are_changed_data(tmp_path, changed):
    config = pairs(tmp_path, ["what", "how so", "and now"])
    loader = playhead.dataloader(config, batch_size=4, dataset=Ids())
    list(islice(loader, 3))
    state = json.loads(json.dumps(loader.state_dict()))
    (tmp_path / "questions.txt").write_text("".join(f"{line}\n" for line in changed))
    again = playhead.dataloader(config, batch_size=4, dataset=Ids())
    with pytest.raises(PositionError, match=r"or the lines of .*questions\.txt have changed"):
        again.load_state_dict(state)


def test_lines_for_rows_that_were_appended_are_no_change(tmp_path):
    def write(count: int) -> dict[str, Any]:
        rows = [{"text": f"number {n}"} for n in range(count)]
        (tmp_path / "more.txt").write_text("".join(f"line {n}\n" for n in range(count)))
        entry = {
            "type": "txt_jsonl",
            "paths": str(write_jsonl(tmp_path / "t.jsonl", rows)),
            "language": "en",
            "name": "mine",
            "extra_fields": [
                {"type": "text_iter", "name": "more", "path": str(tmp_path / "more.txt")}
            ],
        }
        return {"input_cfg": [entry], "seed": 3, "shuffle": True, "window_draws": 24}

    loader = playhead.dataloader(write(40), batch_size=4, dataset=Ids())
    list(islice(loader, 3))
    state = json.loads(json.dumps(loader.state_dict()))
    after = [batch["ids"] for batch in islice(loader, 3)]
    again = playhead.dataloader(write(50), batch_size=4, dataset=Ids())
    again.load_state_dict(state)
    assert [batch["ids"] for batch in islice(again, 3)] == after


@pytest.mark.parametrize("kind", ["nemo", "conversation"])
def test_a_length_that_was_measured_holds_though_the_file_has_grown(tmp_path, kind):
    path = tmp_path / "a.wav"
    path.write_bytes(voice(0.5, 1))
    row: dict[str, Any] = {"audio_filepath": "a.wav", "text": "x"}
    if kind == "conversation":
        turns = [
            {"from": "User", "type": "audio", "value": "a.wav"},
            {"from": "Assistant", "type": "text", "value": "x"},
        ]
        row = {"id": "a", "conversations": turns}
    type_ = "nemo" if kind == "nemo" else "multimodal_conversation"
    entry = {"type": type_, "manifest_filepath": str(write_jsonl(tmp_path / "m.jsonl", [row]))}
    config = {"input_cfg": [entry], "batch_size": 1, "force_finite": True}
    options: dict[str, Any] = {}
    if kind == "conversation":
        config |= {"prompt_format": "plain", "audio_locator_tag": "x"}
        options = {"tokenizer": tokenizer(tmp_path)}
    dataset = SpeechToText() if kind == "nemo" else SpeechLanguage()
    loader = playhead.dataloader(config, dataset=dataset, **options)
    before = next(iter(loader))["audio"]
    assert before.shape == (1, 8000)
    data, rate = sf.read(path)
    sf.write(path, [*data, *data, *data], rate)
    after = next(iter(loader))["audio"]
    assert after.shape == before.shape


@pytest.mark.parametrize("kind", ["txt", "share_gpt_webdataset"])
def test_a_file_that_was_replaced_is_indexed_as_it_is(tmp_path, kind):
    def write(first: int) -> dict[str, Any]:
        rows = [{"id": f"r{n}", "conversations": TALK} for n in range(first, first + 4)]
        (tmp_path / "d").mkdir(exist_ok=True)
        # As rsync and mv do: the same name for another file of the same size.
        if kind == "txt":
            (tmp_path / "new").write_text("".join(f"line {n}\n" for n in range(first, first + 4)))
            (tmp_path / "new").replace(tmp_path / "d/t.txt")
            return {"type": kind, "paths": str(tmp_path / "d/t.txt"), "language": "en"}
        members = [(f"{n}.json", json.dumps(row).encode()) for n, row in enumerate(rows)]
        made = write_tar(tmp_path / "new.tar", [*members])
        made.replace(tmp_path / "d/a.tar")
        return {"type": kind, "data_dir": str(tmp_path / "d"), "wds_sample_index_version": 2}

    def texts(entry: dict[str, Any]) -> list[str]:
        config = {"input_cfg": [entry], "batch_size": 4, "force_finite": True}
        (batch,) = playhead.dataloader(config, dataset=Texts())
        return batch["texts"]

    assert texts(write(0)) != texts(write(4))


TALK = [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "hm"}]


class Texts:
    reads_audio = False

    def collate(self, examples: Any, **_: Any) -> dict[str, Any]:
        return {"texts": [example.text or example.id for example in examples]}
