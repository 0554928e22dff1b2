"""Audio that exists nowhere on AIStore is a hole, as bad audio is; what only fails is an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from playhead.datasets import SpeechToText
from playhead.errors import SourceNotFoundError, StorageError
from playhead.fetch import Fetcher
from playhead.fetch.access_mode import AccessMode
from playhead.fetch.bad import Holes
from playhead.paths import expand
from support.conversation_leaves import talk_leaf
from support.corpus import tarred_corpus, wav_bytes, write_jsonl, write_tar
from support.fetching import leaf_of, micro_batch, spec_of

pytest.importorskip("aistore")

SECONDS = [0.1 + 0.01 * number for number in range(8)]
BOTH = pytest.mark.parametrize("access", [AccessMode.BATCH, AccessMode.INDIVIDUAL])


class Sounds:
    """A dataset of samples: what each is called, and the bytes of its audio."""

    reads_audio = True

    def collate(self, examples, *, sample_rate, sample_keys):
        sounds = {}
        for one in examples:
            parts = [turn.audio for turn in one.turns if turn.audio is not None] or [one]
            sounds[one.id] = [part.audio.source for part in parts]
        return {"sounds": sounds, "keys": sample_keys.tolist()}


@pytest.fixture(autouse=True)
def _batches(ais, monkeypatch):
    monkeypatch.setenv("USE_AIS_GET_BATCH", "true")


def nemo(ais, folder, bucket, access, tmp_path, **options):
    """What a fetcher needs of two archives, the second of which then loses its second member."""
    manifest, tar = tarred_corpus(folder, SECONDS, 2)
    ais.load(bucket, folder)
    tars = [f"ais://{bucket}/{Path(path).name}" for path in expand(tar)]
    leaf = leaf_of("nemo_tarred", manifest=expand(manifest), tar=tars)
    spec = spec_of([leaf], tmp_path, access=access, sample_rate=16000, **options)
    batch = micro_batch([0, 4, 5, 7, 1])
    expected = Fetcher(spec, Sounds())(batch)
    left = [(f"utt{one:05}.wav", wav_bytes(SECONDS[one], seed=one)) for one in (1, 5, 7)]
    write_tar(folder / "audio_1.tar", left)
    ais.load(bucket, folder)
    ais.heal()
    return spec, batch, expected


@BOTH
def test_a_member_that_exists_nowhere_is_a_hole_and_nothing_moves(ais, tmp_path, access):
    spec, batch, expected = nemo(ais, tmp_path, "hole", access, tmp_path, fault_tolerant=True)
    made = Fetcher(spec, Sounds())(batch)
    assert isinstance(made, Holes)
    (bad,) = made.bad
    assert (made.places, bad.row, bad.id) == ((2,), 5, "utt00003.wav")
    assert bad.member == "ais://hole/audio_1.tar/utt00003.wav"
    assert bad.reason == "the audio file does not exist"
    sounds, keys = expected["sounds"], expected["keys"]
    del sounds["utt00003.wav"], keys[2]
    assert made.batch["sounds"] == sounds
    assert list(made.batch["sounds"]) == list(sounds)
    assert made.batch["keys"] == keys
    # A dataset that decodes gets the same hole.
    made = Fetcher(spec, SpeechToText())(batch)
    assert (made.places, len(made.batch["audio_lens"])) == ((2,), 4)


@BOTH
def test_without_tolerance_it_is_an_error_with_sample_and_member(ais, tmp_path, access):
    spec, batch, _ = nemo(ais, tmp_path, "named", access, tmp_path)
    where = r"leaf .*row 5 counted from 0, audio ais://named/audio_1\.tar/utt00003\.wav"
    for dataset in (Sounds(), SpeechToText()):
        with pytest.raises(SourceNotFoundError, match=where):
            Fetcher(spec, dataset)(batch)


@BOTH
def test_a_whole_archive_that_exists_nowhere_is_never_a_hole(ais, tmp_path, access):
    spec, batch, _ = nemo(ais, tmp_path, "archive", access, tmp_path, fault_tolerant=True)
    ais.forget("archive", "audio_1.tar")
    for dataset in (Sounds(), SpeechToText()):
        with pytest.raises(SourceNotFoundError, match=r"ais://archive/audio_1\.tar"):
            Fetcher(spec, dataset)(batch)


@BOTH
@pytest.mark.parametrize(
    "fault", [{"what": "status", "status": 503}, {"what": "delay", "seconds": 1.0}]
)
def test_what_only_fails_is_never_a_hole(ais, tmp_path, access, fault):
    spec, batch, _ = nemo(ais, tmp_path, "fails", access, tmp_path, fault_tolerant=True)
    ais.fault(on="get", name="audio_1", **fault)
    with pytest.raises(StorageError, match=r"AIStore at .*ais://fails/audio_1\.tar"):
        Fetcher(spec, Sounds())(batch)


def test_a_bucket_that_is_gone_is_never_a_hole(ais, tmp_path):
    access = AccessMode.INDIVIDUAL
    spec, batch, _ = nemo(ais, tmp_path, "bucket", access, tmp_path, fault_tolerant=True)
    ais.forget_bucket("bucket")
    with pytest.raises(StorageError, match="no such bucket"):
        Fetcher(spec, Sounds())(batch)


@BOTH
def test_a_conversation_that_lacks_a_turn_is_left_out_whole(ais, tmp_path, access):
    sounds = [(f"d/{number}.wav", wav_bytes(0.3, seed=number)) for number in range(6)]
    rows = [
        {
            "id": f"talk{number}",
            "conversations": [
                *(
                    {"from": "user", "type": "audio", "value": name, "duration": 0.3}
                    for name, _ in sounds[2 * number : 2 * number + 2]
                ),
                {"from": "assistant", "type": "text", "value": "yes"},
            ],
        }
        for number in range(3)
    ]
    manifest = write_jsonl(tmp_path / "talk.jsonl", rows)
    write_tar(tmp_path / "talk.tar", sounds)
    ais.load("talks", tmp_path)
    leaf = talk_leaf("multimodal_conversation", manifest=[manifest], tar=["ais://talks/talk.tar"])
    spec = spec_of([leaf], tmp_path, access=access, sample_rate=16000, fault_tolerant=True)
    write_tar(tmp_path / "talk.tar", [one for one in sounds if one[0] != "d/3.wav"])
    ais.load("talks", tmp_path)
    made = Fetcher(spec, Sounds())(micro_batch([2, 1, 0]))
    (bad,) = made.bad
    assert (made.places, bad.row, bad.id) == ((1,), 1, "talk1")
    assert bad.member == "ais://talks/talk.tar/d/3.wav"
    data = [content for _, content in sounds]
    assert made.batch["sounds"] == {"talk2": data[4:6], "talk0": data[0:2]}


def test_a_plain_file_on_aistore_that_exists_nowhere_is_a_hole(ais, tmp_path):
    rows = []
    for number, seconds in enumerate(SECONDS):
        uri = ais.put("plain", f"{number}.wav", wav_bytes(seconds, seed=number))
        rows.append({"audio_filepath": uri, "duration": seconds, "text": "x"})
    leaf = leaf_of("nemo", manifest=write_jsonl(tmp_path / "m.json", rows))
    spec = spec_of([leaf], tmp_path, sample_rate=16000, fault_tolerant=True)
    ais.forget("plain", "3.wav")
    made = Fetcher(spec, Sounds())(micro_batch([2, 3, 4]))
    assert (made.places, made.bad[0].member) == ((1,), "ais://plain/3.wav")
    assert list(made.batch["sounds"]) == ["ais://plain/2.wav", "ais://plain/4.wav"]
    ais.fault(on="get", what="status", status=503, name="3.wav")
    with pytest.raises(StorageError, match="503"):
        Fetcher(spec, Sounds())(micro_batch([2, 3, 4]))
