"""One blend, opened: what it needs, what it refuses, and what it hands out."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest

import playhead
from playhead.blend import read_blend
from playhead.datasets import Ids, SpeechLanguage
from playhead.errors import ConfigError
from playhead.formats import Example, RowColumns, SourcePair, register_type
from playhead.formats.txt_rows import text_columns
from playhead.loader.part import open_part
from playhead.tokens.tokenizer import load_tokenizer
from support.corpus import nemo_corpus, wav_bytes, write_jsonl
from support.talk import (
    SECONDS_PER_TOKEN,
    section,
    tokenizer,
)
from support.told import (
    SPEECH_SECONDS,
    Samples,
    Words,
    conversations,
    ids_of_pass,
    one_of_each,
    said,
    spoken,
    token_section,
)

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.blend.leaf import Leaf
    from playhead.formats import Part, Place


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAYHEAD_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tokenizer(tmp_path_factory.mktemp("model"), "json")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    return one_of_each(tmp_path_factory.mktemp)


# What is refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["talk", "written", "text", "rows", "pairs"])
@pytest.mark.parametrize(
    "options",
    [
        {"batch_size": None, "batch_duration": 10},
        {"bucket_duration_bins": [1, 2], "use_bucketing": True},
    ],
)
def test_texts_are_not_measured_in_seconds(
    corpus: dict[str, dict[str, Any]], name: str, options: dict[str, Any]
):
    option = "batch_duration" if "batch_duration" in options else "bucket_duration_bins"
    with pytest.raises(ConfigError, match=f"(?i){option} measures .*{corpus[name]['type']}.*text"):
        ids_of_pass(section(corpus["speech"], corpus[name], **options))


@pytest.mark.parametrize("limits", [{"max_tokens": 30}, {"use_multimodal_sampling": True}])
def test_what_is_measured_in_tokens_needs_a_tokenizer(
    corpus: dict[str, dict[str, Any]], limits: dict[str, Any]
):
    with pytest.raises(ConfigError, match=r"(?i)samples are measured in tokens and there is no"):
        ids_of_pass(section(corpus["text"], **limits))
    with pytest.raises(ConfigError, match="measured in tokens and pretokenize is false"):
        ids_of_pass(section(corpus["text"], **limits, pretokenize=False), Words())


def test_seconds_of_a_token_are_needed_where_there_is_audio(corpus: dict[str, dict[str, Any]]):
    silent = {"token_equivalent_duration": None}
    for name in ("speech", "talk"):
        with pytest.raises(ConfigError, match=r"(?i)has audio, and nothing says how many tokens"):
            ids_of_pass(token_section(corpus[name], **silent), Words())
        entry = {**corpus[name], "token_equivalent_duration": 0.1}
        assert ids_of_pass(token_section(entry, corpus["text"], **silent), Words())
    for name in ("text", "pairs", "written", "rows"):
        assert ids_of_pass(token_section(corpus[name], **silent), Words())


# Filters and bins in tokens without batches in tokens ---------------------------------------------


def test_limits_of_tokens_choose_where_batches_are_of_seconds_or_samples(
    corpus: dict[str, dict[str, Any]],
):
    """They look at what is no cut; batches are made as without them."""
    plain = section(corpus["text"], corpus["speech"], prompt_format="llama3")
    every = ids_of_pass(plain, Words())
    assert len(every) == 16
    lengths = {}
    for batch in playhead.dataloader(plain, dataset=Samples(), tokenizer=Words()):
        lengths |= {one.id: len(one.tokens["input_ids"]) for one in batch["samples"]}
    least = sorted(length for name, length in lengths.items() if "utt" not in name)[5]
    kept = ids_of_pass({**plain, "min_tokens": least}, Words())
    assert kept == [name for name in every if "utt" in name or lengths[name] >= least]
    assert 6 < len(kept) < 16


def test_limits_of_tokens_beside_batches_of_seconds(corpus: dict[str, dict[str, Any]]):
    options = {"batch_size": None, "batch_duration": 1.5, "prompt_format": "llama3"}
    plain = section(corpus["speech"], **options)
    assert ids_of_pass({**plain, "min_tokens": 1000}, Words()) == ids_of_pass(plain, Words())


# Types of one's own -------------------------------------------------------------------------------


@register_type("test_part_lists", inputs={"list": "list_path"}, own={"seconds": 0.25})
class Lists:
    """A name a line, of a file beside the list."""

    lines_are_json = False

    def sources(self, leaf: Leaf) -> list[SourcePair]:
        return [SourcePair(manifest=path) for path in leaf.paths["list"]]

    def columns(self, leaf: Leaf, pair: SourcePair, block: bytes) -> RowColumns:
        from dataclasses import replace

        lines = block.split(b"\n")
        blank = [at for at, line in enumerate(lines) if not line.strip()]
        found = text_columns(len(lines), {"blank line": blank})
        length = round(leaf.own["seconds"] * 1e6)
        return replace(found, duration_us=found.duration_us + length)

    def example(self, leaf: Leaf, place: Place, row: bytes, parts: list[Part]) -> Example:
        from pathlib import Path

        from playhead.formats import Audio

        name = row.decode().strip()
        path = str(Path(place.shard).parent / name)
        return Example(
            id=name,
            text=f"of {name}",
            language=None,
            audio=Audio(source=path, duration=leaf.own["seconds"]),
            place=place,
            custom={"context": "what is said"},
        )


def test_a_type_of_ones_own_among_texts_and_conversations(
    tmp_path: Path, corpus: dict[str, dict[str, Any]], model: str
):
    for number in range(3):
        (tmp_path / f"{number}.wav").write_bytes(wav_bytes(0.25, seed=number))
    (tmp_path / "list").write_text("0.wav\n\n1.wav\n2.wav\n")
    own = {"type": "test_part_lists", "list_path": str(tmp_path / "list")}
    made = {"type": "lhotse_as_conversation", "input_cfg": [own]}
    options = {"batch_tokens": 200, "batch_size": None, "shuffle": True, "oversize": "drop"}
    config = token_section(own, made, corpus["talk"], corpus["text"], **options)
    kinds = defaultdict(list)
    for batch in playhead.dataloader(config, dataset=SpeechLanguage(), tokenizer=model):
        for row, length in zip(
            batch["audio_row"].tolist(), batch["audio_lens"].tolist(), strict=False
        ):
            if batch["ids"][row] in {"0.wav", "1.wav", "2.wav"}:
                assert length == 4000
        for name, kind in zip(batch["ids"], batch["kinds"], strict=True):
            kinds[kind].append(name)
    assert sorted(kinds["cut"]) == ["0.wav", "1.wav", "2.wav"]
    assert set(kinds["cut"]) < set(kinds["conversation"])
    assert len(kinds["text"]) == 10


# What else a part says ----------------------------------------------------------------------------


def test_what_the_index_left_out_is_told_by_leaf(corpus: dict[str, dict[str, Any]]):
    blend = read_blend(section(corpus["talk"], corpus["rows"]))
    part = open_part(blend, None, tokenizer=None, world_size=1)
    assert part.dropped[0] == {"_skipme": 1, "tar member without a row": 2}
    assert sum(part.dropped[1].values()) == 1
    assert [leaf.kind for leaf in part.planning.leaves] == ["conversation", "text"]
    assert [leaf.windows for leaf in part.planning.leaves] == [False, True]


def test_rows_of_archives_keep_together(corpus: dict[str, dict[str, Any]]):
    """Slices and passes by shard are of manifests with their archives."""
    found = [
        int(name.removeprefix("talk-"))
        for name in ids_of_pass(section(corpus["talk"], slice_length=2))
    ]
    first, _, second, _ = found
    assert found == [first, first + 1, second, second + 1]
    assert first + 1 < 6 <= second
    for name in ("talk", "pairs", "written", "text"):
        order = ids_of_pass(section(corpus[name], locality="shards", shuffle=True))
        assert len(set(order)) == 10
    blend = read_blend(section(corpus["talk"], locality="shards"))
    (leaf,) = open_part(blend, None, tokenizer=None, world_size=1).planning.leaves
    assert leaf.shard is not None
    assert set(leaf.shard.tolist()) == {0, 1}


def test_conversations_that_are_left_out_for_good(tmp_path: Path):
    """What a run found to be bad is excluded by its list, and the next run does not draw it."""
    from typer.testing import CliRunner

    from playhead.cli import app, index  # noqa: F401  (it registers its command)

    rows = []
    for number in range(4):
        (tmp_path / f"v{number}.wav").write_bytes(wav_bytes(0.1, seed=number))
        turns = [spoken(f"v{number}.wav", 0.1), said("yes", "Assistant")]
        rows.append({"id": f"c{number}", "conversations": turns})
    (tmp_path / "v2.wav").write_bytes(b"no audio")
    bad = tmp_path / "bad.jsonl"
    tolerant = {"fault_tolerant_audio_loading": True, "bad_samples": str(bad)}
    config = section(conversations(tmp_path, rows), prompt_format="plain", **tolerant)
    loader = playhead.dataloader(config, dataset=SpeechLanguage(), tokenizer=Words())
    assert [name for batch in loader for name in batch["ids"]] == ["c0", "c1", "c3"]
    path = tmp_path / "config.yaml"
    path.write_text(json.dumps(config))
    done = CliRunner().invoke(app, ["index", str(path), "--exclude", str(bad)])
    assert done.exit_code == 0, done.output
    bad.unlink()
    loader = playhead.dataloader(config, dataset=SpeechLanguage(), tokenizer=Words())
    assert len(loader) == 1
    assert [name for batch in loader for name in batch["ids"]] == ["c0", "c1", "c3"]
    assert not bad.exists()


@pytest.mark.parametrize("fusion", ["zip", "round_robin", "randomized_round_robin"])
def test_several_blends_from_the_index_to_batches(
    tmp_path: Path, corpus: dict[str, dict[str, Any]], model: str, fusion: str
):
    from typer.testing import CliRunner

    from playhead.cli import app, index  # noqa: F401  (it registers its command)

    options = {"audio_locator_tag": "<audio>", "token_equivalent_duration": SECONDS_PER_TOKEN}
    options |= {"use_multimodal_sampling": True, "prompt_format": "llama3", "batch_tokens": 200}
    options |= {"oversize": "drop"}
    config: dict[str, Any] = {
        "multi_config": True,
        "sampler_fusion": fusion,
        "seed": 3,
        "shard_seed": 1,
        "shuffle": True,
        "micro_batches_per_step": 1,
        "words": {"input_cfg": [corpus["text"], corpus["pairs"]], **options},
        "voices": {"input_cfg": [corpus["speech"], corpus["talk"]], **options},
    }
    if fusion == "randomized_round_robin":
        config["sampler_weights"] = {"words": 0.5, "voices": 0.5}
    path = tmp_path / "config.yaml"
    path.write_text(json.dumps(config))
    done = CliRunner().invoke(app, ["index", str(path)])
    assert done.exit_code == 0, done.output

    def loader() -> Any:
        return playhead.dataloader(
            str(path), dataset=SpeechLanguage(), tokenizer=model, rank=0, world_size=1
        )

    first = loader()
    batches = list(islice(iter(first), 4))
    kinds = [set(batch["kinds"]) for batch in batches]
    words, voices = {"text", "pair"}, {"cut", "conversation"}
    if fusion == "zip":
        assert all(one & words and one & voices for one in kinds)
    else:
        assert all(one <= words or one <= voices for one in kinds)
    second = loader()
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    expected = [batch["ids"] for batch in islice(loader(), 7)][4:]
    assert [batch["ids"] for batch in islice(iter(second), 3)] == expected


def test_a_leaf_of_which_nothing_is_left_says_why(tmp_path):
    said = {"start": 0.0, "duration": 0.4, "speaker": "nobody", "text": "x", "id": "a"}
    cut = {
        "id": "a", "start": 0, "duration": 0.4, "channel": 0, "type": "MonoCut",
        "supervisions": [{**said, "recording_id": "a", "channel": 0}],
        "recording": {
            "id": "a", "sources": [{"type": "file", "channels": [0], "source": "a.wav"}],
            "sampling_rate": 16000, "num_samples": 6400, "duration": 0.4, "channel_ids": [0],
        },
    }  # fmt: skip
    path = write_jsonl(tmp_path / "c.jsonl", [cut])
    entry = {"type": "s2s_as_conversation", "cuts_path": str(path), "name": "talk"}
    with pytest.raises(ConfigError, match=r"(?i)no row of leaf .* is left: speaker of no role: 1"):
        playhead.dataloader([entry], batch_size=1, dataset=Ids())


def test_a_locator_that_is_not_that_of_the_tag(tmp_path):
    turns = [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "hm"}]
    path = write_jsonl(tmp_path / "m.jsonl", [{"id": "a", "conversations": turns}])
    entry = {"type": "share_gpt", "manifest_filepath": str(path), "audio_locator_tag": "<audio>"}
    options = {"batch_size": 1, "prompt_format": "plain", "tokenizer": tokenizer(tmp_path)}
    right = load_tokenizer(options["tokenizer"]).token_id("<audio>")
    assert right is not None
    playhead.dataloader([entry], dataset=SpeechLanguage(audio_locator=right), **options)
    said = rf"at the token {right + 1}, .*'<audio>' is the token {right}.*audio_locator={right}"
    with pytest.raises(ConfigError, match=said):
        playhead.dataloader([entry], dataset=SpeechLanguage(audio_locator=right + 1), **options)


def test_keys_that_belong_below_tags_are_told(tmp_path):
    turns = [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "hm"}]
    path = write_jsonl(tmp_path / "m.jsonl", [{"id": "a", "conversations": turns}])
    entry = {"type": "share_gpt", "manifest_filepath": str(path), "system_prompt": "be brief"}
    with pytest.warns(UserWarning, match="no effect but below `tags`: system_prompt"):
        playhead.dataloader([entry], batch_size=1, dataset=Ids())


@pytest.mark.parametrize("rank", [0, 1])
def test_rows_that_training_leaves_out_stop_no_rank(tmp_path: Path, rank: int):
    """What looks for misspelt fields reads rows that filters keep from training."""
    manifest = nemo_corpus(tmp_path, list(SPEECH_SECONDS))
    rows = [json.loads(line) for line in manifest.read_text().splitlines()]
    bad = {**rows[0], "duration": 50.0, "said": ["x"]}
    write_jsonl(manifest, [bad, *({**row, "said": "a"} for row in rows[1:])])
    config = {
        "input_cfg": [{"type": "nemo", "manifest_filepath": str(manifest)}],
        "text_field": "said",
        "max_duration": 10,
        "batch_size": 1,
        "micro_batches_per_step": 2,
        "shuffle": True,
    }
    loader = playhead.dataloader(config, dataset=Samples(), rank=rank, world_size=2)
    assert [one.text for batch in islice(loader, 3) for one in batch["samples"]] == ["a"] * 3
