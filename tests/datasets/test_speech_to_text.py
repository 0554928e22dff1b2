from __future__ import annotations

import io

import numpy as np
import pytest
import soundfile as sf
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from lhotse import CutSet, Recording, SupervisionSegment

from playhead.datasets import Ids, SpeechToText
from playhead.errors import AudioError
from playhead.fetch import Fetcher
from playhead.formats import Audio, Example
from playhead.paths import expand
from support.corpus import nemo_corpus, tarred_corpus, wav_bytes, write_jsonl
from support.fetching import PLACE, leaf_of, micro_batch, spec_of


def collate(sounds, rate=16000):
    examples = [
        Example(id=f"u{i}", text=None, language=None, audio=sound, place=PLACE)
        for i, sound in enumerate(sounds)
    ]
    return SpeechToText().collate(
        examples, sample_rate=rate, sample_keys=np.zeros(len(examples), np.uint64)
    )


def test_a_batch(tmp_path):
    manifest, tar = tarred_corpus(tmp_path, [0.3, 0.1, 0.2], 1)
    leaf = leaf_of("nemo_tarred", manifest=expand(manifest), tar=expand(tar))
    spec = spec_of([leaf], tmp_path, sample_rate=16000)
    batch = Fetcher(spec, SpeechToText())(micro_batch([2, 0]))
    assert set(batch) == {"audio", "audio_lens", "texts", "ids", "playhead"}
    assert (batch["audio"].dtype, batch["audio_lens"].dtype) == (torch.float32, torch.int64)
    assert batch["audio"].shape == (2, 4800)
    assert batch["audio_lens"].tolist() == [3200, 4800]
    assert batch["texts"] == ["utt 2", "utt 0"]
    assert batch["ids"] == ["utt00002.wav", "utt00000.wav"]
    for row, length, i, seconds in zip(
        batch["audio"], batch["audio_lens"], [2, 0], [0.2, 0.3], strict=True
    ):
        expected, _ = sf.read(io.BytesIO(wav_bytes(seconds, seed=i)), dtype="float32")
        np.testing.assert_array_equal(row[:length], expected)
        assert not row[length:].any()


@settings(max_examples=15)
@given(
    sounds=st.lists(
        st.tuples(
            st.sampled_from([8000, 16000, 44100]),
            st.sampled_from(["WAV", "FLAC"]),
            st.integers(1, 40),
            st.integers(0, 10),
            st.booleans(),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_every_row_is_what_lhotse_reads_of_it(sounds):
    from playhead.fetch.cuts import to_cut

    audios = [
        Audio(
            source=wav_bytes(0.5, rate, seed=i, format=format_),
            start=start / 100,
            duration=None if whole else length / 100,
        )
        for i, (rate, format_, length, start, whole) in enumerate(sounds)
    ]
    batch = collate(audios)
    for row, length, audio in zip(batch["audio"], batch["audio_lens"], audios, strict=True):
        example = Example(id="a", text=None, language=None, audio=audio, place=PLACE)
        (expected,) = to_cut(example, 16000, {}).load_audio()
        np.testing.assert_array_equal(row[:length], expected)
        assert not row[length:].any()
    assert batch["audio"].shape[1] == batch["audio_lens"].max()


@pytest.fixture
def one_thread():
    """Workers have one, and the last bits of a convolution depend on the number."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.usefixtures("one_thread")
def test_rows_that_only_lhotse_can_load(tmp_path):
    (tmp_path / "a.wav").write_bytes(wav_bytes(0.4, rate=8000))
    cut = Recording.from_file(tmp_path / "a.wav").to_cut()
    cut.supervisions = [SupervisionSegment("s", cut.recording_id, 0, 0.4, text="hello")]
    cuts = CutSet.from_cuts([cut, cut.perturb_speed(1.1), cut.pad(duration=0.6)])
    cuts.to_file(tmp_path / "cuts.jsonl")
    leaf = leaf_of("lhotse", cuts=tmp_path / "cuts.jsonl")
    batch = Fetcher(spec_of([leaf], tmp_path, sample_rate=8000), SpeechToText())(
        micro_batch([0, 1, 2])
    )
    assert batch["texts"] == ["hello"] * 3
    for row, length, cut in zip(batch["audio"], batch["audio_lens"], cuts, strict=True):
        np.testing.assert_array_equal(row[:length], cut.load_audio()[0])


def test_the_end_of_a_row_is_zero_whatever_the_memory_held(monkeypatch):
    monkeypatch.setattr(
        "playhead.fetch.waveforms._empty", lambda rows, length: torch.full((rows, length), 9.0)
    )
    batch = collate([Audio(source=wav_bytes(0.1)), Audio(source=wav_bytes(0.2))])
    assert not batch["audio"][0, 1600:].any()


def test_a_sample_without_a_transcript_has_an_empty_one():
    assert collate([Audio(source=wav_bytes(0.1))])["texts"] == [""]


def test_without_a_rate_the_files_must_agree():
    same = [Audio(source=wav_bytes(0.1, 8000)), Audio(source=wav_bytes(0.2, 8000), duration=0.1)]
    assert collate(same, None)["audio_lens"].tolist() == [800, 800]
    with pytest.raises(AudioError, match=r"8000 Hz and at 16000 Hz.*sample_rate"):
        collate([*same, Audio(source=wav_bytes(0.1))], None)


def test_several_channels_are_an_error_that_says_what_to_do():
    sound = Audio(source=wav_bytes(0.1, channels=2))
    with pytest.raises(AudioError, match=r"2 channels.*row 7.*channel_selector"):
        collate([sound])
    one = collate([Audio(source=wav_bytes(0.1, channels=2), channel=1)])
    expected, _ = sf.read(io.BytesIO(wav_bytes(0.1, channels=2)), dtype="float32")
    np.testing.assert_array_equal(one["audio"][0], expected[:, 1])


def test_a_sample_without_audio_is_an_error():
    with pytest.raises(AudioError, match=r"no audio.*row 7"):
        collate([None])


def test_ids_read_no_audio(tmp_path):
    rows = [{"audio_filepath": f"/nowhere/{i}.wav", "duration": 1.0, "text": ""} for i in range(4)]
    plain = leaf_of("nemo", manifest=write_jsonl(tmp_path / "manifest.json", rows))
    manifest, tar = tarred_corpus(tmp_path, [0.3, 0.1], 1)
    tarred = leaf_of("nemo_tarred", manifest=expand(manifest), tar=expand(tar))
    spec = spec_of([plain, tarred], tmp_path)
    for path in expand(tar):
        (tmp_path / path).unlink()
    batch = Fetcher(spec, Ids())(micro_batch([3, 1, 0], [0, 1, 0], repeated=[0, 0, 1]))
    assert batch["ids"] == ["/nowhere/3.wav", "utt00001.wav", "/nowhere/0.wav"]
    assert batch["playhead"].repeated == [False, False, True]
    assert set(batch) == {"ids", "playhead"}


def test_what_a_sample_costs(tmp_path, monkeypatch):
    """One decode straight into the batch, and no import of Lhotse's data model for it."""
    spec = spec_of(
        [leaf_of("nemo", manifest=nemo_corpus(tmp_path, [0.1] * 8))], tmp_path, sample_rate=16000
    )
    reads, opened = [], []
    real_read, real_open = sf.SoundFile.read, sf.SoundFile.__init__

    def read(self, *arguments, **keywords):
        reads.append(keywords.get("out"))
        return real_read(self, *arguments, **keywords)

    def init(self, *arguments, **keywords):
        opened.append(arguments)
        real_open(self, *arguments, **keywords)

    monkeypatch.setattr(sf.SoundFile, "read", read)
    monkeypatch.setattr(sf.SoundFile, "__init__", init)
    batch = Fetcher(spec, SpeechToText())(micro_batch(range(8)))
    assert len(opened) == len(reads) == 8
    rows = batch["audio"].numpy()
    assert all(np.shares_memory(out, rows[i]) for i, out in enumerate(reads))


def tokenized(tokens):
    data = wav_bytes(0.1)
    examples = [
        Example(
            id=f"u{i}",
            text=None,
            language=None,
            audio=Audio(source=data, duration=0.1),
            place=PLACE,
            tokens=one,
        )
        for i, one in enumerate(tokens)
    ]
    return SpeechToText().collate(
        examples, sample_rate=16000, sample_keys=np.zeros(len(examples), np.uint64)
    )


def test_tokens_are_padded():
    batch = tokenized([{"tokens": [5, 6, 7]}, {"tokens": []}, {"tokens": [8]}])
    assert batch["tokens"].tolist() == [[5, 6, 7], [0, 0, 0], [8, 0, 0]]
    assert batch["token_lens"].tolist() == [3, 0, 1]
    assert batch["tokens"].dtype == batch["token_lens"].dtype == torch.int64
    empty = tokenized([{"tokens": []}] * 2)
    assert empty["tokens"].shape == (2, 0)


def test_what_a_prompt_makes_is_padded():
    prompts = [
        {
            "input_ids": [1, 2, 3],
            "context_ids": [1],
            "answer_ids": [2, 3],
            "mask": [False, True, True],
        },
        {"input_ids": [4, 5], "context_ids": [4, 5], "answer_ids": [], "mask": [False, False]},
    ]
    batch = tokenized(prompts)
    assert batch["input_ids"].tolist() == [[1, 2, 3], [4, 5, 0]]
    assert batch["context_ids"].tolist() == [[1, 0], [4, 5]]
    assert batch["answer_ids"].tolist() == [[2, 3], [0, 0]]
    assert batch["mask"].tolist() == [[False, True, True], [False, False, False]]
    assert batch["mask"].dtype == torch.bool
    assert [batch[f"{name}_lens"].tolist() for name in ("input", "context", "answer")] == [
        [3, 2],
        [1, 2],
        [2, 0],
    ]
    assert "tokens" not in batch
