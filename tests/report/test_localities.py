"""What a report says that reads cost is what the fetcher then asks for."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import pytest

import playhead
from playhead.report import report_figures
from playhead.storage import local
from support.small_blends import G, quiet


class Bytes:
    """A dataset that has audio read and looks at none of it."""

    reads_audio = True

    def collate(self, examples, *, sample_rate, sample_keys):
        return {"ids": [example.id for example in examples]}


def reads_of(config, monkeypatch):
    """How often, and how much, all batches of a pass read."""
    counted = Counter()
    pread = local._pread

    def counting(descriptor, name, offset, count):
        counted["requests"] += 1
        counted["bytes"] += count
        return pread(descriptor, name, offset, count)

    loader = quiet(
        lambda: playhead.dataloader(config, dataset=Bytes(), rank=0, world_size=1, num_workers=0)
    )
    with monkeypatch.context() as patch:
        patch.setattr(local, "_pread", counting)
        counted["batches"] = sum(1 for _ in loader)
    loader.close()
    return counted


@pytest.mark.parametrize("locality", ["rows", "shards"])
@pytest.mark.parametrize("bucketing", [True, False])
def test_requests_and_bytes_are_those_that_the_fetcher_asks_for(
    corpus, monkeypatch, locality, bucketing
):
    options = {
        "force_finite": True, "batch_size": 3, "locality": locality, "shuffle": True,
        "use_bucketing": bucketing,
    }  # fmt: skip
    config = corpus.blend(["tarred"], [1.0], options)
    figures = quiet(lambda: report_figures(config))
    used = next(one for one in figures.parts[0].localities if one.is_used)
    assert used.locality == locality
    counted = reads_of(config, monkeypatch)
    assert counted["batches"] == figures.steps_per_pass * G == 16
    assert used.requests == pytest.approx(counted["requests"] / 16)
    assert used.bytes == pytest.approx(counted["bytes"] / 16)
    assert used.kept_bytes is None
    assert 1 <= used.shards <= 6


def test_an_order_by_shards_touches_fewer_files(corpus):
    options = {"force_finite": True, "batch_size": 3, "shuffle": True, "window_draws": 12}
    figures = quiet(lambda: report_figures(corpus.blend(["tarred"], [1.0], options)))
    rows, shards = figures.parts[0].localities
    assert (rows.locality, shards.locality) == ("rows", "shards")
    assert (rows.is_used, shards.is_used) == (True, False)
    assert shards.shards < rows.shards


def test_files_of_one_sample_are_counted_and_said(corpus):
    options = {"force_finite": True, "batch_size": 3, "shuffle": True}
    figures = quiet(lambda: report_figures(corpus.blend(["plain"], [1.0], options)))
    (rows, shards) = figures.parts[0].localities
    assert "whose bytes the index does not know" in rows.note
    assert shards.note.startswith("no source has shards")
    # 37 samples in 13 batches that are made 16, each with its row and a file of its own.
    assert rows.requests > 37 / 16
    assert rows.shards == 1


def test_metadata_alone_asks_for_no_archive(corpus):
    options = {"force_finite": True, "batch_size": 3, "metadata_only": True}
    config = corpus.blend(["tarred"], [1.0], options)
    rows = quiet(lambda: report_figures(config)).parts[0].localities[0]
    assert rows.bytes < 5000
    assert rows.shards <= 3


def test_archives_that_are_kept_whole_are_read_once_a_pass(corpus, tmp_path):
    """Compressed archives have no middle: of each there is one request a pass."""
    entry = dict(corpus.entries["tarred"])
    for shard in range(3):
        plain = Path(entry["tarred_audio_filepaths"].replace("_OP_0..2_CL_", str(shard)))
        (tmp_path / f"audio_{shard}.tar.gz").write_bytes(gzip.compress(plain.read_bytes()))
    entry["tarred_audio_filepaths"] = str(tmp_path / "audio__OP_0..2_CL_.tar.gz")
    config = {
        "input_cfg": [entry], "force_finite": True, "batch_size": 3, "shuffle": True,
        "micro_batches_per_step": G, "cache_dir": str(tmp_path / "kept"),
    }  # fmt: skip
    used = next(
        one for one in quiet(lambda: report_figures(config)).parts[0].localities if one.is_used
    )
    assert used.locality == "shards"
    assert used.kept_bytes > 40_000
    assert "read whole once a pass" in used.note
    rows = quiet(lambda: report_figures({**config, "metadata_only": True})).parts[0].localities
    # All but the rows of manifests: three archives in sixteen batches.
    assert used.requests == pytest.approx(rows[1].requests + 3 / 16, abs=0.2)
