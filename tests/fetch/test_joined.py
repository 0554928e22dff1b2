from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from lhotse import Recording, SupervisionSegment

from playhead.blend.leaf import Concatenation
from playhead.fetch.cuts import to_cut
from playhead.fetch.reader import Reader
from playhead.fetch.timings import Timings
from playhead.fetch.waveforms import pad_waveforms
from support.corpus import nemo_corpus, tone, wav_bytes, write_jsonl
from support.fetching import micro_batch
from support.leaves import make_leaf, open_one

if TYPE_CHECKING:
    from pathlib import Path

RATE = 16000


def read(leaf, pack, samples, **options):
    reader = Reader((leaf,), (pack.ref,), Timings())
    return reader.read(micro_batch(samples), with_audio=True, **options)


@pytest.fixture
def joined(tmp_path: Path):
    """Rows of 0.5, 0.3, 0.4 and 1.0 s, joined to at most 1.3 s: three, then one."""
    manifest = nemo_corpus(tmp_path, [0.5, 0.3, 0.4, 1.0])
    how = Concatenation(max_duration=1.3, gap=0.05)
    leaf = replace(make_leaf("nemo", manifest=[manifest]), concatenation=how)
    return leaf, open_one(leaf, tmp_path / "packs")


def samples_of(number: int, seconds: float) -> np.ndarray:
    return tone(seconds, seed=number)[:, 0] / 32768


def test_audio_with_silence_between(joined):
    three, one = read(*joined, [0, 1])
    assert three.id == "wav/utt00000.wav+wav/utt00001.wav+wav/utt00002.wav"
    assert three.text == "utt 0 utt 1 utt 2"
    assert (one.id, one.text, one.members) == ("wav/utt00003.wav", "utt 3", ())
    audio, lengths = pad_waveforms([three, one], RATE)
    assert lengths.tolist() == [round(1.3 * RATE), RATE]
    gap = np.zeros(round(0.05 * RATE))
    parts = [samples_of(0, 0.5), gap, samples_of(1, 0.3), gap, samples_of(2, 0.4)]
    np.testing.assert_allclose(audio[0].numpy(), np.concatenate(parts), atol=1e-6)


def test_any_order_of_samples_and_other_leaves(joined, tmp_path: Path):
    leaf, pack = joined
    plain = make_leaf("nemo", manifest=[nemo_corpus(tmp_path / "p", [0.2, 0.3])], key="plain")
    other = open_one(plain, tmp_path / "packs")
    reader = Reader((plain, leaf), (other.ref, pack.ref), Timings())
    order = [(1, 1), (0, 1), (1, 0), (0, 0), (1, 1)]
    examples = reader.read(
        micro_batch([row for _, row in order], [leaf for leaf, _ in order]), with_audio=True
    )
    assert [len(example.members) for example in examples] == [0, 0, 3, 0, 0]
    assert [example.text for example in examples] == [
        "utt 3",
        "utt 1",
        "utt 0 utt 1 utt 2",
        "utt 0",
        "utt 3",
    ]


def test_a_cut_keeps_supervisions_and_other_recordings(tmp_path: Path):
    """The other recording has another rate; where one cut ends, both are silent for the gap."""
    rows = []
    for number, seconds in enumerate((0.5, 0.25)):
        for name, rate in (("a", RATE), ("t", 24000)):
            path = tmp_path / f"{name}{number}.wav"
            path.write_bytes(wav_bytes(seconds, rate, seed=number))
        cut = Recording.from_file(tmp_path / f"a{number}.wav").to_cut()
        cut.supervisions = [SupervisionSegment(f"s{number}", cut.recording_id, 0.1, 0.1)]
        cut.target_audio = Recording.from_file(tmp_path / f"t{number}.wav")
        rows.append(cut.to_dict())
    manifest = write_jsonl(tmp_path / "cuts.jsonl", json.loads(json.dumps(rows)))
    how = Concatenation(max_duration=2.0, gap=0.25)
    leaf = replace(make_leaf("lhotse", cuts=[manifest]), concatenation=how)
    (example,) = read(leaf, open_one(leaf, tmp_path / "packs"), [0])
    cut = to_cut(example, None, {"task": "asr"})
    assert cut.duration == 1.0
    assert [round(s.start, 3) for s in cut.supervisions] == [0.1, 0.85]
    assert cut.task == "asr"
    audio, target = cut.load_audio(), cut.load_target_audio()
    assert (audio.shape, target.shape) == ((1, RATE), (1, 24000))
    assert not audio[:, RATE // 2 : 3 * RATE // 4].any()
    assert not target[:, 12000:18000].any()
    np.testing.assert_allclose(
        target[0, 18000:], tone(0.25, 24000, seed=1)[:, 0] / 32768, atol=1e-6
    )
    # With a rate of the loader's own, the main recording alone has it.
    assert to_cut(example, 8000, {}).load_audio().shape == (1, 8000)
