"""How many requests a micro-batch costs: with batch requests one for what is known by its name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from playhead.fetch import Fetcher
from playhead.fetch.access_mode import AccessMode
from playhead.paths import expand
from support.conversation_leaves import talk_leaf
from support.corpus import tarred_corpus, wav_bytes, write_jsonl, write_tar
from support.fetching import leaf_of, micro_batch, spec_of
from support.impatience import be_impatient
from support.shar import shar_leaf, simple_cuts, write_shar

pytest.importorskip("aistore")

SECONDS = [0.1 + 0.01 * number for number in range(8)]


class Sounds:
    """A dataset of samples: what each is called, and its bytes."""

    reads_audio = True

    def collate(self, examples, *, sample_rate, sample_keys):
        return {"sounds": [(one.id.rpartition("/")[2], *_bytes_of(one)) for one in examples]}


def _bytes_of(example):
    parts = [turn.audio for turn in example.turns if turn.audio is not None] or [example]
    sources = [part.audio.source if part.audio else dict(part.in_memory) for part in parts]
    return [Path(one).read_bytes() if isinstance(one, str) else one for one in sources]


@pytest.fixture
def corpus(tmp_path):
    folder = tmp_path / "corpus"
    tarred_corpus(folder, SECONDS, 2)
    for number in range(4):
        (folder / f"{number}.wav").write_bytes(wav_bytes(0.2, seed=20 + number))
    members = [(f"d/{number}.wav", wav_bytes(0.3, seed=number)) for number in range(4)]
    write_tar(folder / "talk.tar", members)
    cuts = simple_cuts(tmp_path / "wav", [f"cut{one}" for one in range(6)])
    write_shar(folder / "shar", cuts, suffix="")
    return folder


def named(folder: Path, where: str):
    """Leaves whose rows lie here, and their audio where somebody says."""
    manifest, tar = tarred_corpus(folder, SECONDS, 2)
    tars = [f"{where}/{Path(path).name}" for path in expand(tar)]
    plain = [
        {"audio_filepath": f"{where}/{number}.wav", "duration": 0.2, "text": "x"}
        for number in range(4)
    ]
    said = [
        {
            "id": f"talk{number}",
            "conversations": [
                {"from": "user", "type": "audio", "value": f"d/{number}.wav", "duration": 0.3},
                {"from": "user", "type": "audio", "value": f"d/{number + 1}.wav", "duration": 0.3},
            ],
        }
        for number in range(3)
    ]
    return [
        leaf_of("nemo_tarred", manifest=expand(manifest), tar=tars),
        leaf_of(
            "nemo", manifest=write_jsonl(folder.parent / f"{where[:3].strip(chr(47))}.jsonl", plain)
        ),
        talk_leaf(
            "multimodal_conversation",
            manifest=[write_jsonl(folder.parent / "talk.jsonl", said)],
            tar=[f"{where}/talk.tar"],
        ),
    ]


def placed(folder: Path, where: str):
    """Leaves all of whose files are where somebody says, and are known by their places."""
    manifest, tar = tarred_corpus(folder, SECONDS, 2)
    manifests, tars = (
        [f"{where}/{Path(path).name}" for path in expand(pattern)] for pattern in (manifest, tar)
    )
    fields = {
        field: [
            f"{where}/shar/{path.name}"
            for path in sorted((folder / "shar").glob(f"{field}.*"))
            # Lhotse 2 writes indexes beside them.
            if path.suffix != ".idx"
        ]
        for field in ("cuts", "recording")
    }
    return [leaf_of("nemo_tarred", manifest=manifests, tar=tars), shar_leaf(fields=fields)]


ROWS = {
    named: ([0, 1, 2, 7, 5, 2, 3], [0, 1, 2, 0, 0, 1, 1]),
    placed: ([0, 5, 3, 0, 4], [0, 1, 0, 1, 1]),
}


def read(leaves, corpus, where, access):
    """The sounds of a batch, by a fetcher that has looked at every file already."""
    described = [
        replace(leaf, key=f"{leaf.type}-{'near' if where == str(corpus) else 'far'}")
        for leaf in leaves(corpus, where)
    ]
    spec = spec_of(described, corpus.parent, access=access, sample_rate=16000)
    fetcher, batch = Fetcher(spec, Sounds()), micro_batch(*ROWS[leaves])
    return lambda: fetcher(batch)["sounds"]


@pytest.mark.parametrize("leaves", [named, placed])
@pytest.mark.parametrize("version", ["ais_server", "old_ais_server"])
def test_a_micro_batch_is_one_request_where_the_server_can(
    corpus, monkeypatch, request, leaves, version
):
    server = request.getfixturevalue(version)
    server.heal()
    far = server.load("all", corpus)
    be_impatient(monkeypatch, server, USE_AIS_GET_BATCH="true")
    expected = read(leaves, corpus, str(corpus), AccessMode.RANGES)()
    again = read(leaves, corpus, far, AccessMode.BATCH)
    assert again() == expected
    server.heal()
    assert again() == expected
    counts = server.counts()
    assert counts.get("head", 0) == 0
    if leaves is named:
        assert (counts["batch"], counts.get("get", 0)) == (1, 0)
    elif version == "ais_server":
        # What members are called, their rows say: those come before.
        assert (counts["batch"], counts.get("get", 0)) == (2, 0)
    else:
        assert counts["batch"] == 1
        assert counts["get"] > 2


def test_each_by_itself_needs_no_batch(corpus, ais, monkeypatch):
    monkeypatch.setenv("USE_AIS_GET_BATCH", "true")
    far = ais.load("each", corpus)
    expected = read(named, corpus, str(corpus), AccessMode.RANGES)()
    ais.heal()
    assert read(named, corpus, far, AccessMode.INDIVIDUAL)() == expected
    assert ais.counts().get("batch", 0) == 0
