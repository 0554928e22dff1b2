"""What people check first: shapes, sizes, ids and audio of ten cuts in all their forms."""

from __future__ import annotations

import json
import math
from collections import Counter
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import soundfile as sf
from lhotse import AudioSource, CutSet, MonoCut, MultiCut, Recording
from lhotse.cut import MixedCut

import playhead
from support.corpus import tone, wav_bytes, write_jsonl, write_tar
from support.ten_cuts import make

FORMS = ["cuts", "nemo", "tarred", "aggregate", "shar"]
STREAMED = ["tarred", "aggregate", "shar"]


class Cuts:
    """The cuts themselves, and their audio."""

    def __getitem__(self, cuts: CutSet) -> dict:
        cuts = cuts.to_eager()
        return {"cuts": list(cuts), "audio": [cut.load_audio() for cut in cuts]}


def loader(config: dict, dataset=None, **options):
    return playhead.dataloader({"shuffle": True, "seed": 1, **config}, dataset=dataset, **options)


def batches(config: dict, count: int | None = None, dataset=None, **options) -> list:
    return list(islice(loader(config, dataset, **options), count))


def all_cuts(config: dict, count: int | None = None, **options) -> list:
    return [cut for batch in batches(config, count, Cuts(), **options) for cut in batch["cuts"]]


BUCKETS = {"use_bucketing": True, "num_buckets": 2, "batch_duration": 4, "quadratic_duration": 15}


@pytest.mark.parametrize("form", FORMS)
def test_ten_cuts_in_batches_of_three(corpus, form):
    """A second costs 1 + 1/15: three cost 3.2 and four would cost 4.27."""
    found = batches({**corpus.flat(form), **BUCKETS}, force_finite=True)
    sizes = [len(batch["ids"]) for batch in found]
    assert sum(sizes) == 10
    assert len(sizes) == 4
    assert max(sizes) == 3
    assert all(batch["audio"].shape[1] == 16000 for batch in found)
    assert len({name for batch in found for name in batch["ids"]}) == 10


@pytest.mark.parametrize("form", STREAMED)
def test_what_lies_in_shards_has_no_end(corpus, form):
    ids = [name for batch in batches({**corpus.flat(form), **BUCKETS}, 40) for name in batch["ids"]]
    counts = Counter(ids)
    assert len(counts) == 10
    # In the middle of a window some rows have come more often.
    assert max(counts.values()) - min(counts.values()) <= 4


def test_truncation(corpus):
    config = {**corpus.flat("cuts"), "batch_size": 4, "truncate_duration": 0.5}
    shapes = [tuple(batch["audio"].shape) for batch in batches(config)]
    assert sorted(shapes, reverse=True) == [(4, 8000), (4, 8000), (2, 8000)]


def test_windows(corpus):
    config = {**corpus.flat("cuts"), "batch_size": 4, "cut_into_windows_duration": 0.5}
    assert [tuple(batch["audio"].shape) for batch in batches(config)] == [(4, 8000)] * 5


def test_padding_on_the_left(corpus):
    config = {
        **corpus.flat("cuts"),
        "batch_size": 5,
        "pad_min_duration": 21,
        "pad_direction": "left",
    }
    for cut in all_cuts(config):
        assert isinstance(cut, MixedCut)
        assert cut.duration == 21
        assert type(cut.tracks[0].cut).__name__ == "PaddingCut"


@pytest.mark.parametrize("form", FORMS)
def test_a_channel_is_chosen(tmp_path, form):
    two = make(tmp_path, channels=2)
    config = {**two.flat(form), "batch_size": 10, "force_finite": True, "shuffle": False}
    (whole,) = batches(config, dataset=Cuts())
    for channel in (0, 1):
        (chosen,) = batches({**config, "channel_selector": channel}, dataset=Cuts())
        for all_of_it, one in zip(whole["audio"], chosen["audio"], strict=True):
            np.testing.assert_array_equal(all_of_it[channel : channel + 1], one)


def test_shar_by_fields_with_one_more(corpus, tmp_path):
    ids = [f"cut-{n:04d}" for n in range(10)]
    for shard in (0, 1):
        write_jsonl(
            tmp_path / f"wer.{shard}.jsonl",
            [{"cut_id": name, "wer": n / 10} for n, name in enumerate(ids)][
                5 * shard : 5 * shard + 5
            ],
        )
    shar = corpus.shar
    fields = {
        "cuts": str(shar / "cuts._OP_000000..000001_CL_.jsonl.gz"),
        "recording": str(shar / "recording._OP_000000..000001_CL_.tar"),
        "wer": str(tmp_path / "wer._OP_0..1_CL_.jsonl"),
    }
    (batch,) = batches({"shar_path": fields, "batch_size": 10}, dataset=Cuts(), force_finite=True)
    assert {cut.id: cut.wer for cut in batch["cuts"]} == {
        name: n / 10 for n, name in enumerate(ids)
    }
    assert all(audio.shape == (1, 16000) for audio in batch["audio"])


def test_other_keys_of_a_row_are_custom_and_fields_are_chosen(tmp_path):
    wav = tmp_path / "sub" / "a.wav"
    wav.parent.mkdir()
    wav.write_bytes(wav_bytes(1.0))
    manifest = write_jsonl(
        tmp_path / "m.json",
        [
            {
                "audio_filepath": "sub/a.wav",
                "duration": 1.0,
                "answer": "yes",
                "target_lang": "fr",
                "x": [1],
            }
        ],
    )
    config = {
        "manifest_filepath": str(manifest),
        "batch_size": 1,
        "text_field": "answer",
        "lang_field": "target_lang",
    }
    (cut,) = all_cuts(config)
    assert cut.supervisions[0].text == "yes"
    assert cut.supervisions[0].language == "fr"
    assert cut.custom["x"] == [1]


def test_relative_paths_of_cuts_are_beside_their_manifest(tmp_path):
    for name, rate in (("a", 16000), ("t", 8000)):
        (tmp_path / f"{name}.wav").write_bytes(wav_bytes(1.0, rate, seed=len(name)))
    cut = Recording.from_file(tmp_path / "a.wav").to_cut()
    cut.target_audio = Recording.from_file(tmp_path / "t.wav")
    row = json.loads(json.dumps(cut.to_dict()).replace(f"{tmp_path}/", ""))
    manifest = write_jsonl(tmp_path / "cuts.jsonl", [row])
    (batch,) = batches({"cuts_path": str(manifest), "batch_size": 1}, dataset=Cuts())
    np.testing.assert_array_equal(
        batch["audio"][0], sf.read(tmp_path / "a.wav", dtype="float32")[0][None]
    )
    assert batch["cuts"][0].load_target_audio().shape == (1, 8000)


def test_offsets_of_plain_rows_and_of_members(tmp_path):
    whole = tone(3.0, seed=4)[:, 0].astype(np.float32) / 32768
    data = wav_bytes(3.0, seed=4)
    (tmp_path / "a.wav").write_bytes(data)
    row = {"duration": 1.0, "offset": 0.5, "sampling_rate": 16000}
    plain = write_jsonl(tmp_path / "m.json", [{"audio_filepath": "a.wav", **row}])
    (cut,) = all_cuts({"manifest_filepath": str(plain), "batch_size": 1})
    assert (cut.start, cut.duration) == (0.5, 1.0)
    np.testing.assert_allclose(cut.load_audio()[0], whole[8000:24000], atol=1e-6)
    parts = [
        {"audio_filepath": f"a-sub{n}.wav", "duration": 1.0, "offset": 1.0 * n} for n in range(3)
    ]
    tarred = write_jsonl(tmp_path / "manifest_0.json", parts)
    write_tar(tmp_path / "audio_0.tar", [("a.wav", data)])
    config = {
        "manifest_filepath": str(tarred),
        "tarred_audio_filepaths": str(tmp_path / "audio_0.tar"),
    }
    found = batches(
        {**config, "batch_size": 3, "shuffle": False}, dataset=Cuts(), force_finite=True
    )
    for n, audio in enumerate(found[0]["audio"]):
        np.testing.assert_allclose(audio[0], whole[16000 * n : 16000 * (n + 1)], atol=1e-6)


def test_weighted_lists_and_one_open_stream(corpus, varied):
    config = {
        "shar_path": [[str(corpus.shar), 3], [str(varied.shar), 1]],
        "batch_size": 8,
        "max_open_streams": 1,
    }
    with pytest.warns(UserWarning, match="no meaning here: max_open_streams"):
        found = batches(config, 50)
    lengths = [n for batch in found for n in batch["audio_lens"].tolist()]
    # A tenth of the others is a second long, too.
    assert lengths.count(16000) == pytest.approx(400 * (0.75 + 0.025), abs=4)


@pytest.mark.parametrize("weighted", [False, True])
def test_shar_mixtures(corpus, varied, weighted):
    paths = [str(corpus.shar), str(varied.shar)]
    spec = [[path, 1] for path in paths] if weighted else paths
    assert len(batches({"shar_path": spec, "batch_size": 5}, 6)) == 6


def test_joined_samples_of_a_batch(corpus):
    config = {
        **corpus.flat("cuts"),
        "batch_size": 5,
        "concatenate_samples": True,
        "concatenate_duration_factor": 3.0,
        "concatenate_gap_seconds": 0.1,
        "db_norm": None,
    }
    found = batches(config, dataset=Cuts())
    # Two seconds and a gap fit into three, and three do not: two, two and one.
    for batch in found:
        assert sorted(round(cut.duration, 3) for cut in batch["cuts"]) == [1.0, 2.1, 2.1]


def test_tags_weights_and_yaml_files(corpus, varied, tmp_path):
    inner = [
        corpus.entry("tarred", weight=0.5, tags={"origin": "a"}),
        varied.entry("shar", weight=0.5),
    ]
    group = {"type": "group", "weight": 0.8, "input_cfg": inner, "tags": {"task": "asr"}}
    cfg = [group, corpus.entry("shar", weight=0.2, tags={"origin": "c"})]
    config = {"batch_size": 32}
    inline = all_cuts({**config, "input_cfg": cfg}, 100)
    shares = Counter(getattr(cut, "origin", "b") for cut in inline)
    for name, share in (("a", 0.4), ("b", 0.4), ("c", 0.2)):
        assert shares[name] / 3200 == pytest.approx(share, abs=0.02)
    assert sum(getattr(cut, "task", None) == "asr" for cut in inline) == shares["a"] + shares["b"]
    path = tmp_path / "blend.yaml"
    path.write_text(json.dumps(cfg))
    named = all_cuts({**config, "input_cfg": str(path)}, 5)
    assert [cut.id for cut in named] == [cut.id for cut in inline[: len(named)]]


NOISY = {"noise_mix_prob": 1.0, "noise_snr": [10.0, 20.0]}


@pytest.mark.parametrize("form", ["nemo", "cuts", "tarred"])
def test_noise_in_every_cut(corpus, varied, form):
    path = varied.flat(form)
    noise = path if form == "tarred" else next(iter(path.values()))
    for cut in all_cuts({**corpus.flat("cuts"), "batch_size": 5, "noise_path": noise, **NOISY}):
        assert isinstance(cut, MixedCut)
        snrs = [track.snr for track in cut.tracks if track.snr is not None]
        assert snrs
        assert all(10 <= snr <= 20 for snr in snrs)
        assert cut.duration == 1.0
        assert np.isfinite(cut.load_audio()).all()


ON = {
    "rir": {"rir_enabled": True, "rir_prob": 1.0},
    "lowpass": {
        "lowpass_enabled": True,
        "lowpass_prob": 1.0,
        "lowpass_frequencies_interval": [3500.0, 8000.0],
    },
    "clipping": {"clipping_enabled": True, "clipping_prob": 1.0, "clipping_gain_db": [6.0, 24.0]},
    "unsampled clipping": {
        "clipping_enabled": True,
        "clipping_prob": 1.0,
        "clipping_oversampling": None,
    },
    **{
        codec: {"compression_enabled": True, "compression_prob": 1.0, "compression_codecs": [codec]}
        for codec in ("opus", "mp3", "vorbis", "gsm")
    },
}


@pytest.mark.parametrize("name", ON)
def test_augmentation_changes_audio_and_keeps_its_length(corpus, name):
    config = {**corpus.flat("nemo"), "batch_size": 10, "shuffle": False}
    (plain,), (changed,) = (
        batches(each, dataset=Cuts()) for each in (config, {**config, **ON[name]})
    )
    for before, after in zip(plain["audio"], changed["audio"], strict=True):
        assert before.shape == after.shape
        assert np.isfinite(after).all()
        assert not np.array_equal(before, after)
    # And the ready-made dataset hears the same.
    (ours,) = batches({**config, **ON[name]})
    for row, audio in zip(ours["audio"].numpy(), changed["audio"], strict=True):
        np.testing.assert_array_equal(row, audio[0])


def test_all_of_it_together(corpus, varied):
    everything = {key: value for options in list(ON.values())[:3] for key, value in options.items()}
    everything |= {**ON["opus"], **NOISY, "noise_path": str(varied.manifest), "perturb_speed": True}
    (batch,) = batches({**corpus.flat("cuts"), "batch_size": 10, **everything})
    assert batch["audio"].isfinite().all()
    assert set(batch["audio_lens"].tolist()) <= {
        16000,
        math.ceil(16000 / 0.9),
        math.ceil(16000 / 1.1),
        14545,
        17778,
    }


class Letters:
    digest = "letters"

    def encode(self, text: str) -> list[int]:
        return list(text.encode())


def test_fixed_sizes(varied):
    config = {
        **varied.flat("tarred"),
        "bucket_duration_bins": [1.0, 2.0],
        "bucket_batch_size": [2, 2],
        "max_duration": 2,
    }
    assert {len(batch["ids"]) for batch in batches(config, 20)} == {2}


def test_two_dimensional_bins(varied):
    config = {
        **varied.flat("tarred"),
        "bucket_duration_bins": [[1.0, 10], [2.0, 10]],
        "bucket_batch_size": [4, 3],
        "max_duration": 2,
    }
    for batch in batches(config, 20, tokenizer=Letters()):
        longest = batch["audio_lens"].max().item() / 16000
        assert len(batch["ids"]) <= (4 if longest <= 1.0 else 3)


@pytest.mark.parametrize("form", ["nemo", "tarred"])
def test_lines_of_texts(corpus, tmp_path, form):
    lines = tmp_path / "lines.txt"
    lines.write_text("".join(f"line {n}\n" for n in range(10)))
    extra = [
        {"type": "text_iter", "name": "one", "path": str(lines)},
        {"type": "text_sample", "name": "any", "path": str(lines)},
    ]
    config = {"input_cfg": [corpus.entry(form, extra_fields=extra)], "batch_size": 4}
    cuts = all_cuts(config, force_finite=True)
    assert all(cut.one.split()[1] == cut.supervisions[0].text.split()[1] for cut in cuts)
    assert len({cut.any for cut in cuts}) > 3


def test_rows_to_be_skipped(tmp_path):
    rows, members = [], []
    for n in range(10):
        name = f"{n}.wav"
        data = wav_bytes(1.0, seed=n)
        (tmp_path / name).write_bytes(data)
        members.append((name, data))
        skip = (
            {"_skipme": "noisy" if n == 2 else True} if n in (2, 7) else {"_skipme": "" if n else 0}
        )
        rows.append({"audio_filepath": name, "duration": 1.0, **skip})
    write_jsonl(tmp_path / "manifest_0.json", rows)
    write_tar(tmp_path / "audio_0.tar", members)
    plain = {"type": "nemo", "manifest_filepath": str(tmp_path / "manifest_0.json")}
    tarred = {
        **plain,
        "type": "nemo_tarred",
        "tarred_audio_filepaths": str(tmp_path / "audio_0.tar"),
    }
    for entries in ([plain], [tarred], [plain, tarred]):
        cuts = all_cuts({"input_cfg": entries, "batch_size": 4}, force_finite=True)
        assert len(cuts) == 8 * len(entries)
        assert {Path(cut.id).name for cut in cuts}.isdisjoint({"2.wav", "7.wav"})


def test_manifests_of_a_part_of_a_tar(corpus, tmp_path):
    rows = [json.loads(line) for line in corpus.aggregate.read_text().splitlines()][::3]
    manifest = write_jsonl(tmp_path / "tarred_audio_manifest.json", rows)
    config = {
        "manifest_filepath": str(manifest),
        "tarred_audio_filepaths": corpus.tars,
        "batch_size": 4,
    }
    with pytest.warns(UserWarning, match="tarred_random_access"):
        found = batches({**config, "tarred_random_access": True}, force_finite=True)
    assert sorted(n for batch in found for n in batch["ids"]) == [
        row["audio_filepath"] for row in rows
    ]


@pytest.mark.parametrize("form", ["tarred", "shar"])
def test_slices(corpus, form):
    config = {**corpus.flat(form), "slice_length": 2, "batch_size": 4, "shuffle": False}
    seen = set()
    for epoch in range(12):
        data = loader(config, force_finite=True)
        data.set_epoch(epoch)
        (batch,) = data
        numbers = [int(text.split()[1]) for text in batch["texts"]]
        assert numbers[1] == numbers[0] + 1 < 5
        assert numbers[3] == numbers[2] + 1 >= 6
        seen.add(tuple(numbers))
    assert len(seen) > 3


def test_two_workers_give_a_finite_set_once(corpus):
    with pytest.warns(UserWarning, match="no meaning here: force_iterable_dataset"):
        found = batches(
            {**corpus.flat("cuts"), "batch_size": 4, "force_iterable_dataset": True}, num_workers=2
        )
    assert (
        len({n for batch in found for n in batch["ids"]}) == sum(len(b["ids"]) for b in found) == 10
    )


def test_a_cut_is_a_mono_cut(corpus):
    for form in FORMS:
        (cut, *_) = all_cuts({**corpus.flat(form), "batch_size": 2}, 1)
        assert isinstance(cut, MonoCut)
        assert cut.sampling_rate == 16000


@pytest.mark.parametrize("mixed", [False, True])
def test_a_channel_of_a_cut_of_several_files_is_chosen(tmp_path, mixed):
    """The ready-made dataset chooses it as Lhotse's cuts do, whatever the cut is made of."""
    sources = []
    for channel in (0, 1):
        path = tmp_path / f"{channel}.wav"
        path.write_bytes(wav_bytes(1.0, seed=channel))
        sources.append(AudioSource(type="file", channels=[channel], source=str(path)))
    recording = Recording("two", sources, sampling_rate=16000, num_samples=16000, duration=1.0)
    cut = MultiCut("two", 0, 1.0, channel=[0, 1], recording=recording)
    if mixed:
        cut = cut.pad(duration=1.5)
    manifest = write_jsonl(tmp_path / "cuts.jsonl", [cut.to_dict()])
    for channel in (0, 1):
        config = {"cuts_path": str(manifest), "batch_size": 1, "channel_selector": channel}
        (ours,) = batches(config)
        (theirs,) = batches(config, dataset=Cuts())
        np.testing.assert_array_equal(ours["audio"].numpy(), theirs["audio"][0])
        expected = tone(1.0, seed=channel)[:, 0].astype(np.float32) / 32768
        np.testing.assert_allclose(ours["audio"][0, :16000], expected, atol=1e-6)
