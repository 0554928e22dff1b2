"""What a changed option makes of a pass that is half done: nothing lost, nothing repeated."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

import playhead
from playhead.datasets import SpeechLanguage
from playhead.tokens.tokenizer import load_tokenizer
from support.corpus import nemo_corpus, write_jsonl
from support.talk import tokenizer

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAYHEAD_CACHE", str(tmp_path / "cache"))


class Words(SpeechLanguage):
    """The tokens of every sample, by its row."""

    reads_audio = False

    def collate(self, examples: Any, **_: Any) -> dict[str, Any]:
        found = [one.tokens.get("input_ids", one.tokens.get("tokens")) for one in examples]
        rows = [(one.place.leaf, one.place.row) for one in examples]
        return {"rows": rows, "tokens": found, "ids": [one.id for one in examples]}


def entries(folder: Path) -> list[dict[str, Any]]:
    lines = [" ".join(["word"] * (1 + n % 37)) + f" {n}" for n in range(60)]
    (folder / "a.txt").write_text("".join(f"{line}\n" for line in lines))
    for name in ("source", "target"):
        (folder / f"{name}.txt").write_text("".join(f"{name} {n}\n" for n in range(40)))
    turns = [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "hm"}]
    rows = [{"id": f"t{n}", "conversations": turns} for n in range(30)]
    return [
        {"type": "txt", "paths": str(folder / "a.txt"), "language": "en"},
        {
            "type": "txt_pair",
            "source_paths": str(folder / "source.txt"),
            "target_paths": str(folder / "target.txt"),
        },
        {"type": "share_gpt", "manifest_filepath": str(write_jsonl(folder / "m.jsonl", rows))},
    ]


def batches(loader: Any, count: int | None = None) -> list[dict[str, Any]]:
    found = []
    for batch in loader:
        found.append(batch)
        if len(found) == count:
            break
    return found


def rows_of(*parts: list[dict[str, Any]]) -> Counter[Any]:
    return Counter(
        row
        for part in parts
        for batch in part
        for row, repeated in zip(batch["rows"], batch["playhead"].repeated, strict=True)
        if not repeated
    )


@pytest.mark.parametrize("draws", [25, 200])
@pytest.mark.parametrize(
    ("before", "after"), [("shards", "rows"), ("rows", "shards"), ("shards", None)]
)
def test_another_locality_in_mid_pass(tmp_path, before, after, draws):
    config = {
        "input_cfg": entries(tmp_path),
        "batch_size": 4,
        "force_finite": True,
        "shuffle": True,
        "seed": 1,
        "window_draws": draws,
        "micro_batches_per_step": 2,
    }
    first = playhead.dataloader({**config, "locality": before}, dataset=Words())
    begun = batches(first, 6)
    second = playhead.dataloader({**config, "locality": after}, dataset=Words())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    assert rows_of(begun, batches(second)) == Counter(
        {
            row: 1
            for part in (batches(playhead.dataloader(config, dataset=Words())),)
            for batch in part
            for row in batch["rows"]
        }
    )


@pytest.mark.parametrize(("before", "after"), [(8, None), (None, 8), (8, 20)])
def test_other_windows_of_text_in_mid_pass(tmp_path, before, after):
    model = tokenizer(tmp_path)
    config = {
        "input_cfg": entries(tmp_path)[:1],
        "use_multimodal_sampling": True,
        "batch_tokens": 90,
        "force_finite": True,
        "shuffle": True,
        "seed": 1,
        "micro_batches_per_step": 2,
        "window_draws": 200,
    }

    def loader(window: int | None) -> Any:
        given = {**config, "cut_text_into_windows_tokens": window}
        return playhead.dataloader(given, dataset=Words(), tokenizer=model)

    first = loader(before)
    begun = batches(first, 6)
    second = loader(after)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    rest = batches(second)
    for batch in (*begun, *rest):
        longest = max(map(len, batch["tokens"]))
        assert longest * len(batch["tokens"]) <= 90 or len(batch["tokens"]) == 1
    # All of it is one window, which is cut as it was drawn: every token of every text comes once.
    found: dict[Any, list[tuple[int, list[int]]]] = {}
    for batch in (*begun, *rest):
        facts = zip(batch["rows"], batch["ids"], batch["tokens"], strict=True)
        for number, (row, name, tokens) in enumerate(facts):
            if not batch["playhead"].repeated[number]:
                part = 0 if before is None else int(name.rpartition("-")[2])
                found.setdefault(row, []).append((part, tokens))
    encoder = load_tokenizer(model)
    lines = (tmp_path / "a.txt").read_text().splitlines()
    assert len(found) == len(lines)
    for (_, row), parts in found.items():
        whole = [token for _, tokens in sorted(parts) for token in tokens]
        assert whole == encoder.encode(f"{lines[row]}\n")


def test_another_prompt_in_mid_window_is_told(tmp_path):
    config = {
        "input_cfg": entries(tmp_path),
        "use_multimodal_sampling": True,
        "batch_tokens": 120,
        "token_equivalent_duration": 0.1,
        "seed": 1,
        "shuffle": True,
    }
    model = tokenizer(tmp_path)

    def loader(prompt: str) -> Any:
        given = {**config, "prompt_format": prompt}
        return playhead.dataloader(given, dataset=Words(), tokenizer=model)

    first = loader("plain")
    batches(first, 2)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        loader("mistral").load_state_dict(first.state_dict())
    said = [str(one.message) for one in told]
    assert any(one.startswith("texts have other tokens than the running window") for one in said)


def test_what_is_no_speech_passes_the_filter_of_statuses(tmp_path):
    manifest = nemo_corpus(tmp_path / "speech", [0.3] * 6)
    rows = [json.loads(line) for line in manifest.read_text().splitlines()]
    write_jsonl(manifest, [{**row, "validation_status": "fail"} for row in rows])
    made = {"type": "lhotse_as_conversation", "manifest_filepath": str(manifest)}
    config = {"input_cfg": [made], "batch_size": 6, "force_finite": True}
    (batch,) = batches(playhead.dataloader(config, dataset=Words()))
    assert len(batch["ids"]) == 6


def test_limits_of_tokens_beside_bins_of_seconds_and_tokens(tmp_path):
    manifest = nemo_corpus(tmp_path / "speech", [0.2 + 0.05 * n for n in range(20)])
    config = {
        "input_cfg": [{"type": "nemo", "manifest_filepath": str(manifest)}],
        "min_tokens": 1,
        "prompt_format": "plain",
        "token_equivalent_duration": 0.1,
        "bucket_duration_bins": [[0.5, 50], [2.0, 90]],
        "max_duration": 2.0,
        "bucket_batch_size": [3, 2],
        "force_finite": True,
    }
    loader = playhead.dataloader(config, dataset=Words(), tokenizer=tokenizer(tmp_path))
    assert sum(len(batch["ids"]) for batch in batches(loader)) >= 20
