from __future__ import annotations

import hashlib
import json

import pytest
import soundfile as sf

import playhead
from playhead.datasets import Ids
from playhead.demo.corpus import corpus_of_manifest, make_corpus
from playhead.errors import ManifestError, SourceNotFoundError


def digest_of(folder):
    # The config names its folder, so it differs by design.
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != "blend.yaml":
            digest.update(path.relative_to(folder).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()


def test_a_seed_makes_the_same_bytes_again_and_another_seed_others(tmp_path):
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        make_corpus(tmp_path / name, utterances=12, seed=seed)
    assert digest_of(tmp_path / "a") == digest_of(tmp_path / "b") != digest_of(tmp_path / "c")


def test_rows_say_what_the_audio_is(tmp_path):
    corpus = make_corpus(tmp_path, utterances=12, seed=0)
    rows = [json.loads(line) for line in (tmp_path / "manifest.json").read_text().splitlines()]
    assert len(rows) == 6
    for row in rows:
        info = sf.info(tmp_path / row["audio_filepath"])
        assert info.frames / info.samplerate == row["duration"]
        assert 0.3 <= row["duration"] <= 2.5
        assert 1 <= len(row["text"]) <= 4
        assert set(row["text"]) <= set(corpus.alphabet)


def test_a_pass_is_every_utterance_once(tmp_path, monkeypatch):
    monkeypatch.setenv("PLAYHEAD_CACHE", str(tmp_path / "cache"))
    corpus = make_corpus(tmp_path / "corpus", utterances=30, seed=0)
    loader = playhead.dataloader(corpus.blend, dataset=Ids(), rank=0, world_size=1, num_workers=0)
    ids = [
        name
        for batch in loader
        for name, repeated in zip(batch["ids"], batch["playhead"].repeated, strict=True)
        if not repeated
    ]
    assert len(ids) == len(set(ids)) == corpus.num_samples == 30


def write(path, *rows):
    path.write_bytes(b"".join(row + b"\n" for row in rows))
    return path


GOOD = b'{"audio_filepath": "a.wav", "duration": 2.0, "text": "ba"}'


@pytest.mark.parametrize(
    ("row", "what"),
    [
        (b"{", "not a JSON object"),
        (b"[1]", "not a JSON object"),
        (b'{"text": "\xff"}', "not a JSON object"),
        (b'{"text": 5}', "text of a row is 5"),
    ],
)
def test_a_bad_row_is_named_by_its_line(tmp_path, row, what):
    manifest = write(tmp_path / "m.json", GOOD, b"", row)
    with pytest.raises(ManifestError, match=what) as caught:
        corpus_of_manifest(manifest, tmp_path / "out")
    assert f"{manifest}:3" in str(caught.value)


def test_a_manifest_needs_to_exist_and_to_have_transcripts(tmp_path):
    with pytest.raises(SourceNotFoundError):
        corpus_of_manifest(tmp_path / "none.json", tmp_path / "out")
    with pytest.raises(ManifestError, match="No row has a text"):
        corpus_of_manifest(write(tmp_path / "m.json", b'{"text": null}'), tmp_path / "out")


def test_a_users_manifest_gives_its_alphabet_and_batches_that_fit_it(tmp_path):
    few = corpus_of_manifest(write(tmp_path / "few.json", GOOD, GOOD), tmp_path / "few")
    assert (few.alphabet, few.num_samples) == ("ab", 2)
    assert json.loads(few.blend.read_text())["batch_duration"] == 1.0
    many = corpus_of_manifest(write(tmp_path / "many.json", *[GOOD] * 420), tmp_path / "many")
    assert json.loads(many.blend.read_text())["batch_duration"] == 10.0
    lots = corpus_of_manifest(write(tmp_path / "lots.json", *[GOOD] * 2000), tmp_path / "lots")
    assert json.loads(lots.blend.read_text())["batch_duration"] == 16.0
