"""What samples of each kind of source bring along, and samples that are joined."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import numpy as np
import pytest
import soundfile as sf
from lhotse import CutSet, Recording

import playhead
from support.corpus import tone, wav_bytes, write_jsonl, write_tar
from support.parquet import audio_of, cells, write_table

if TYPE_CHECKING:
    from pathlib import Path


class Cuts:
    """The cuts, and their audio where it can be loaded."""

    def __getitem__(self, cuts: CutSet) -> dict:
        return {"cuts": list(cuts)}


def cuts_of(config: dict, **options) -> list:
    config = {"batch_size": 4, "force_finite": True, **config}
    loader = playhead.dataloader(config, dataset=Cuts(), **options)
    return [cut for batch in loader for cut in batch["cuts"]]


def nemo(folder: Path, rows: list[dict]) -> dict:
    return {"manifest_filepath": str(write_jsonl(folder / "manifest.json", rows))}


@pytest.mark.parametrize("channels", [1, 2])
def test_channels_of_plain_rows(tmp_path, channels):
    (tmp_path / "a.wav").write_bytes(wav_bytes(0.5, channels=channels))
    (cut,) = cuts_of(nemo(tmp_path, [{"audio_filepath": "a.wav", "duration": 0.5, "text": "a"}]))
    assert cut.num_channels == channels
    assert cut.load_audio().shape == (channels, 8000)
    assert type(cut).__name__ == ("MonoCut" if channels == 1 else "MultiCut")


@pytest.mark.parametrize("tarred", [False, True])
def test_offsets_give_ids_of_their_own(tmp_path, tarred):
    data = wav_bytes(1.0)
    (tmp_path / "a.wav").write_bytes(data)
    write_tar(tmp_path / "audio_0.tar", [("a.wav", data)])
    rows = [
        {"audio_filepath": "a.wav", "duration": 0.25, "offset": offset, "text": "a"}
        for offset in (0.0, 0.25, 0.5)
    ]
    config = {"manifest_filepath": str(write_jsonl(tmp_path / "manifest_0.json", rows))}
    if tarred:
        config["tarred_audio_filepaths"] = str(tmp_path / "audio_0.tar")
    cuts = cuts_of(config)
    assert len({cut.id for cut in cuts}) == 3
    whole = tone(1.0)[:, 0].astype(np.float32) / 32768
    for cut, begin in zip(cuts, (0, 4000, 8000), strict=True):
        np.testing.assert_array_equal(cut.load_audio()[0], whole[begin : begin + 4000])


def test_rows_alone(tmp_path):
    """No audio is there, none is missed, and none can be loaded."""
    rows = [{"audio_filepath": f"{n}.wav", "duration": 1.5, "text": f"t {n}"} for n in range(3)]
    cuts = cuts_of({**nemo(tmp_path, rows), "metadata_only": True})
    assert [cut.supervisions[0].text for cut in cuts] == ["t 0", "t 1", "t 2"]
    assert {cut.duration for cut in cuts} == {1.5}
    with pytest.raises(Exception, match=r"(?i)dummy|load|source"):
        cuts[0].load_audio()


@pytest.mark.parametrize("name", ["sampling_rate", "sample_rate"])
@pytest.mark.parametrize("only", [False, True])
def test_two_names_of_a_rate(tmp_path, name, only):
    (tmp_path / "a.wav").write_bytes(wav_bytes(0.5, rate=8000))
    row = {"audio_filepath": "a.wav", "duration": 0.5, "text": "a", name: 8000}
    (cut,) = cuts_of({**nemo(tmp_path, [row]), "metadata_only": only, "sample_rate": 8000})
    assert cut.sampling_rate == 8000
    assert cut.duration == 0.5


def test_parquet_with_names_of_its_own(tmp_path):
    table = {
        "name": [f"n{n}" for n in range(5)],
        "sound": cells([audio_of(n) for n in range(5)], "struct"),
        "transcript": [f"said {n}" for n in range(5)],
        "origin": ["x"] * 5,
    }
    paths = [write_table(tmp_path / f"{n}.parquet", table, rows=2) for n in (0, 1)]
    entry = {
        "type": "parquet",
        "manifest_filepath": str(paths[0]),
        "audio_field": "sound",
        "text_field": "transcript",
        "id_field": "name",
    }
    cuts = cuts_of({"input_cfg": [entry], "sample_rate": 8000})
    assert [cut.id for cut in cuts] == [f"n{n}" for n in range(5)]
    assert [cut.supervisions[0].text for cut in cuts] == [f"said {n}" for n in range(5)]
    assert {cut.origin for cut in cuts} == {"x"}
    for number, cut in enumerate(cuts):
        samples, _ = sf.read(io.BytesIO(audio_of(number)), dtype="float32")
        np.testing.assert_array_equal(cut.load_audio()[0], samples)
    both = cuts_of({"input_cfg": [{**entry, "manifest_filepath": list(map(str, paths))}]})
    assert len(both) == 10


@pytest.fixture
def seconds(tmp_path) -> dict:
    """Ten cuts of a second, with another recording of half the rate in a field."""
    rows = []
    for n in range(10):
        for name, rate in (("source", 16000), ("target", 8000)):
            (tmp_path / f"{name}{n}.wav").write_bytes(wav_bytes(1.0, rate=rate, seed=n))
        cut = Recording.from_file(tmp_path / f"source{n}.wav").to_cut().with_id(f"cut{n}")
        cut.target_audio = Recording.from_file(tmp_path / f"target{n}.wav")
        cut = cut.to_dict()
        cut["supervisions"] = [
            {
                "id": f"sup{n}",
                "recording_id": cut["recording"]["id"],
                "start": 0,
                "duration": 1.0,
                "channel": 0,
                "text": f"said {n}",
            }
        ]
        rows.append(cut)
    return {"cuts_path": str(write_jsonl(tmp_path / "cuts.jsonl", rows))}


def joined(seconds: dict, **options) -> list:
    return cuts_of({"input_cfg": [{"type": "lhotse_concat", **seconds, **options}]})


@pytest.mark.parametrize(
    ("options", "durations"),
    [
        ({"max_duration": 2.5}, [2.0] * 5),
        ({"max_duration": 2.0}, [2.0] * 5),
        ({"max_duration": 1.9}, [1.0] * 10),
        ({"max_duration": 5.0, "gap": 0.5}, [4.0, 4.0, 4.0, 1.0]),
        ({"max_duration": 2.0, "gap": 0.1}, [1.0] * 10),
        ({"max_duration": 0.5}, [1.0] * 10),
        ({"max_duration": 100.0}, [10.0]),
    ],
)
def test_rows_that_are_joined_one_after_another(seconds, options, durations):
    cuts = joined(seconds, **options)
    assert [cut.duration for cut in cuts] == pytest.approx(durations)
    said = [part.text for cut in cuts for part in sorted(cut.supervisions, key=lambda s: s.start)]
    assert said == [f"said {n}" for n in range(10)]
    assert [cut.duration for cut in joined(seconds, **options)] == pytest.approx(durations)


def test_what_joined_rows_sound_like(seconds):
    cut = joined(seconds, max_duration=5.0, gap=0.5)[0]
    audio = cut.load_audio()[0]
    assert audio.shape == (64000,)
    for place, n in enumerate(range(3)):
        begin = 24000 * place
        whole = tone(1.0, seed=n)[:, 0].astype(np.float32) / 32768
        np.testing.assert_allclose(audio[begin : begin + 16000], whole, atol=1e-6)
        assert not audio[begin + 16000 : begin + 24000].any()
    starts = sorted(part.start for part in cut.supervisions)
    assert starts == pytest.approx([0.0, 1.5, 3.0])


def test_fields_of_joined_rows_at_another_rate(seconds):
    cut = joined(seconds, max_duration=5.0, gap=0.5)[0]
    target = cut.load_target_audio()[0]
    assert target.shape == (32000,)
    for place in range(3):
        begin = 12000 * place
        whole = tone(1.0, rate=8000, seed=place)[:, 0].astype(np.float32) / 32768
        np.testing.assert_allclose(target[begin : begin + 8000], whole, atol=1e-6)
    assert not target[8000:12000].any()


def test_prompts_of_samples(tmp_path):
    """Ids of the context, of the answer, and of both; and which of them are to be learnt."""
    from support.token_models import hf_bytes

    (tmp_path / "tokenizer.json").write_bytes(hf_bytes())
    (tmp_path / "a.wav").write_bytes(wav_bytes(0.5))
    row = {"audio_filepath": "a.wav", "duration": 0.5, "text": "the quick brown fox", "lang": "en"}

    class Tokens:
        reads_audio = False

        def collate(self, examples, *, sample_rate, sample_keys):
            return {"tokens": [dict(example.tokens) for example in examples]}

    loader = playhead.dataloader(
        {**nemo(tmp_path, [row]), "batch_size": 1, "prompt_format": "plain"},
        dataset=Tokens(),
        tokenizer=str(tmp_path / "tokenizer.json"),
    )
    (batch,) = loader
    (tokens,) = batch["tokens"]
    context, answer = list(tokens["context_ids"]), list(tokens["answer_ids"])
    assert list(tokens["input_ids"]) == context + answer
    assert list(tokens["mask"]) == [False] * len(context) + [True] * len(answer)
    assert answer
    json.dumps(answer)


@pytest.mark.parametrize("length", [2, 3, 7])
def test_slices_longer_than_their_shard_are_the_shard(tmp_path, length):
    for shard in (0, 1):
        names = [f"s{shard}n{n}.wav" for n in range(5)]
        write_tar(tmp_path / f"audio_{shard}.tar", [(name, wav_bytes(0.2)) for name in names])
        rows = [{"audio_filepath": name, "duration": 0.2, "text": name} for name in names]
        write_jsonl(tmp_path / f"manifest_{shard}.json", rows)
    config = {
        "manifest_filepath": str(tmp_path / "manifest__OP_0..1_CL_.json"),
        "tarred_audio_filepaths": str(tmp_path / "audio__OP_0..1_CL_.tar"),
        "slice_length": length,
    }
    cuts = cuts_of(config)
    assert len(cuts) == 2 * min(length, 5)
    assert len({cut.id for cut in cuts}) == len(cuts)
