from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import playhead
from support.corpus import nemo_corpus, tarred_corpus

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PLAYHEAD_CACHE", str(tmp_path / "cache"))


class Cuts:
    def __getitem__(self, cuts):
        return {"cuts": list(cuts)}


def cuts_of(config: dict) -> list:
    loader = playhead.dataloader({**config, "batch_size": 3, "metadata_only": True}, dataset=Cuts())
    return [cut for batch in loader for cut in batch["cuts"]]


def test_rows_without_their_audio(tmp_path: Path):
    manifest = nemo_corpus(tmp_path, [0.2, 0.3, 0.4, 0.5])
    for wav in (tmp_path / "wav").iterdir():
        wav.unlink()
    cuts = cuts_of({"manifest_filepath": str(manifest)})
    assert [cut.duration for cut in cuts] == [0.2, 0.3, 0.4, 0.5]
    assert [cut.supervisions[0].text for cut in cuts] == [f"utt {n}" for n in range(4)]
    assert cuts[0].sampling_rate == 16000
    with pytest.raises(Exception, match="dummy"):
        cuts[0].load_audio()


def test_archives_are_not_read_and_a_pass_ends(tmp_path: Path, monkeypatch):
    manifest, tars = tarred_corpus(tmp_path, [0.1] * 7, 2)
    config = {"manifest_filepath": manifest, "tarred_audio_filepaths": tars}
    assert len(cuts_of(config)) == 7
    for tar in tmp_path.rglob("*.tar"):
        tar.write_bytes(bytes(tar.stat().st_size))
        # A changed file would be indexed anew; here only its content is gone.
        monkeypatch.setattr("playhead.index.build.target_is_fresh", lambda *_: True)
    assert len(cuts_of(config)) == 7


def test_joined_rows(tmp_path: Path):
    manifest = nemo_corpus(tmp_path, [0.5, 0.3, 0.4])
    entry = {
        "type": "lhotse_concat",
        "max_duration": 1.0,
        "gap": 0.1,
        "manifest_filepath": str(manifest),
        "tags": {"task": "asr"},
    }
    cuts = cuts_of({"input_cfg": [entry]})
    assert [round(cut.duration, 3) for cut in cuts] == [0.9, 0.4]
    assert [cut.task for cut in cuts] == ["asr", "asr"]
