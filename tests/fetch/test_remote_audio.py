"""Audio that rows name by URLs: the samples of a disk, read together; what is missing is a hole."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from lhotse import CutSet, Recording
from lhotse.dataset.collation import collate_audio

from playhead.datasets import SpeechToText
from playhead.errors import SourceNotFoundError, StaleIndexError, StorageError
from playhead.fetch import Fetcher
from playhead.fetch.bad import Holes
from support import servers
from support.corpus import tarred_corpus, wav_bytes, write_jsonl
from support.fault_proxy import FaultProxy, Faults
from support.fetching import leaf_of, micro_batch, spec_of

SECONDS = [0.1 + 0.01 * number for number in range(12)]


class Plain(torch.utils.data.Dataset):
    """A dataset as Lhotse users write them."""

    def __getitem__(self, cuts):
        audio, lengths = collate_audio(cuts)
        return {"audio": audio, "audio_lens": lengths, "ids": [cut.id for cut in cuts]}


@pytest.fixture
def web(tmp_path, monkeypatch):
    """A server of `tmp_path/www`, behind a proxy."""
    servers.use(monkeypatch, {"PLAYHEAD_STORAGE_DEADLINE_SECONDS": "5"})
    root = tmp_path / "www"
    root.mkdir()
    with (
        servers.caddy(root, logs=tmp_path / "logs") as server,
        FaultProxy(server.port) as proxy,
    ):
        yield root, proxy


def nemo_rows(root, url):
    """Manifests of the same audio on a disk and by URLs."""
    paths = []
    for base in (str(root), url):
        rows = []
        for number, seconds in enumerate(SECONDS):
            (root / f"a {number}.wav").write_bytes(wav_bytes(seconds, seed=number))
            name = f"a {number}.wav" if base == str(root) else f"a%20{number}.wav"
            rows.append({"audio_filepath": f"{base}/{name}", "duration": seconds, "text": "x"})
        paths.append(write_jsonl(root.parent / f"manifest{len(paths)}.json", rows))
    return paths


def lhotse_rows(root, url, kind):
    near = []
    for number, seconds in enumerate(SECONDS):
        path = root / f"{number}.wav"
        path.write_bytes(wav_bytes(seconds, seed=number))
        near.append(Recording.from_file(path).to_cut().with_id(f"cut{number}"))
    # One is a mix: Lhotse makes its audio.
    near[3] = near[3].mix(near[4], snr=10).with_id("cut3")
    paths = [root.parent / "near.jsonl", root.parent / "far.jsonl"]
    CutSet.from_cuts(near).to_file(paths[0])
    text = paths[0].read_text().replace(f'"source": "{root}/', f'"source": "{url}/')
    paths[1].write_text(text.replace('"type": "file"', f'"type": "{kind}"'))
    assert url in paths[1].read_text()
    return paths


def same(one, other):
    assert torch.equal(one["audio"], other["audio"])
    assert one["audio"].abs().max() > 0.1
    assert torch.equal(one["audio_lens"], other["audio_lens"])


@pytest.mark.parametrize("dataset", [SpeechToText, Plain])
@pytest.mark.parametrize("type_", ["nemo", "lhotse-file", "lhotse-url"])
def test_audio_by_urls_is_that_of_files(web, tmp_path, type_, dataset):
    root, proxy = web
    kind = type_.partition("-")[2]
    near, far = lhotse_rows(root, proxy.url, kind) if kind else nemo_rows(root, proxy.url)
    role = {"cuts": near} if kind else {"manifest": near}
    batches = []
    for manifest in (near, far):
        leaf = leaf_of("lhotse" if kind else "nemo", **dict.fromkeys(role, manifest))
        fetcher = Fetcher(spec_of([leaf], tmp_path, sample_rate=16000), dataset())
        proxy.forget()
        batches.append(fetcher(micro_batch([3, 0, 7, 3, 11])))
    same(*batches)
    asked = Counter(one.partition(" ")[0] for one in proxy.seen().asked)
    assert asked["GET"] <= 5


def test_a_file_that_is_missing_is_named_or_left_out(web, tmp_path):
    root, proxy = web
    _, far = nemo_rows(root, proxy.url)
    leaf = leaf_of("nemo", manifest=far)
    spec = spec_of([leaf], tmp_path, sample_rate=16000)
    (root / "a 7.wav").unlink()
    batch = micro_batch([3, 7, 0])
    for dataset in (SpeechToText(), Plain()):
        with pytest.raises(SourceNotFoundError, match=r"row 7.*audio http.*/a%207\.wav"):
            Fetcher(spec, dataset)(batch)
        tolerant = spec_of([leaf], tmp_path, sample_rate=16000, fault_tolerant=True)
        made = Fetcher(tolerant, dataset)(batch)
        assert isinstance(made, Holes)
        assert [one.row for one in made.bad] == [7]
        assert made.bad[0].member.endswith("/a%207.wav")
        assert len(made.batch["audio_lens"]) == 2


def test_a_store_that_fails_is_never_bad_audio(web, tmp_path):
    root, proxy = web
    _, far = nemo_rows(root, proxy.url)
    spec = spec_of(
        [leaf_of("nemo", manifest=far)], tmp_path, sample_rate=16000, fault_tolerant=True
    )
    proxy.set(Faults(share=1, kinds=("503",)))
    proxy.forget()
    with pytest.raises(StorageError, match="503"):
        Fetcher(spec, SpeechToText())(micro_batch([3, 7, 0]))
    # What gave up once is not asked again by those around it.
    assert proxy.seen().requests <= 3 * 6


def test_members_and_rows_of_all_shards_are_read_together(web, tmp_path):
    root, proxy = web
    tarred_corpus(root, SECONDS, shards=4)
    near, far = (
        leaf_of(
            "nemo_tarred",
            manifest=[f"{base}/manifest_{shard}.json" for shard in range(4)],
            tar=[f"{base}/audio_{shard}.tar" for shard in range(4)],
        )
        for base in (root, proxy.url)
    )
    batch = micro_batch([0, 4, 8, 11, 2])
    expected = Fetcher(spec_of([near], tmp_path, sample_rate=16000), SpeechToText())(batch)
    fetcher = Fetcher(spec_of([far], tmp_path, sample_rate=16000), SpeechToText())
    proxy.set(Faults(latency=0.1))
    proxy.forget()
    same(fetcher(batch), expected)
    seen = proxy.seen()
    asked = Counter(one.partition(" ")[0] for one in seen.asked)
    # Eight files are looked at, once; a member comes with its header.
    assert asked["HEAD"] == 8
    assert asked["GET"] <= 8
    assert seen.at_once >= 6
    proxy.forget()
    fetcher(batch)
    assert Counter(one.partition(" ")[0] for one in proxy.seen().asked)["HEAD"] == 0


def test_an_archive_that_was_replaced_is_stale(web, tmp_path):
    root, proxy = web
    manifest, tar = tarred_corpus(root, SECONDS, shards=1)
    manifest, tar = (f"{proxy.url}/{name}" for name in ("manifest_0.json", "audio_0.tar"))
    leaf = leaf_of("nemo_tarred", manifest=manifest, tar=tar)
    spec = spec_of([leaf], tmp_path, sample_rate=16000)
    with (root / "audio_0.tar").open("ab") as file:
        file.write(b"\0" * 512)
    with pytest.raises(StaleIndexError, match=r"audio_0\.tar"):
        Fetcher(spec, SpeechToText())(micro_batch([0]))
