"""Recorded prompts as conversations and as duplex speech."""

from __future__ import annotations

import numpy as np
import pytest

from support.fetching import leaf_of
from support.real_speech import asterisk_prompts, write_tarred
from support.transforming import cut_of, index, read, turns, with_transforms


@pytest.fixture(scope="module")
def prompts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prompts")
    some = asterisk_prompts()[:40]
    write_tarred(folder, some)
    return folder, some


def test_what_was_said_and_the_silence_of_who_listens(prompts, tmp_path):
    folder, _ = prompts
    manifests = sorted(folder.rglob("manifest_*.json*"))
    leaf = leaf_of("nemo_tarred", manifest=manifests, tar=sorted(folder.rglob("audio_*.tar")))
    talks = read(
        as_talk := with_transforms(leaf, "lhotse_as_conversation"), index(as_talk, tmp_path)
    )
    duplex = with_transforms(leaf, ("nemo_tarred_to_duplex", {"agent_silence_duration": 2.0}))
    pack = index(duplex, tmp_path / "duplex")
    samples = read(duplex, pack)
    assert len(talks) == len(samples) == 40
    for talk, sample, length in zip(talks, samples, pack.duration_us.tolist(), strict=True):
        (_, text, name, seconds), (_, answer, _, _) = turns(talk)
        assert text == answer
        audio = talk.turns[0].audio
        assert audio is not None
        heard = cut_of(audio).load_audio()
        longer = cut_of(sample)
        assert (sample.id, [one.text for one in longer.supervisions]) == (name, [text, ""])
        assert longer.duration == pytest.approx(length / 1e6, abs=1e-6)
        assert longer.duration == pytest.approx((seconds or 0) + 2.0, abs=1e-3)
        assert np.array_equal(longer.load_audio()[:, : heard.shape[1]], heard)
        assert np.abs(heard).max() > 0.01
