"""Every type, on any ranks and workers: each sample once a pass, and exact after any stop."""

from __future__ import annotations

import gzip
import io
from itertools import islice

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import soundfile as sf

import playhead
from playhead.fetch import pad_waveforms
from support.steps import heard, steps

FORMS = [
    "cuts",
    "cuts.gz",
    "cuts.zst",
    "nemo",
    "tarred",
    "aggregate",
    "shar",
    "parquet",
    "concat",
    "blend",
]
G = 4


@pytest.fixture(scope="session")
def entries(varied, tmp_path_factory) -> dict[str, list[dict]]:
    folder = tmp_path_factory.mktemp("more")
    text = varied.cuts.read_bytes()
    (folder / "cuts.jsonl.gz").write_bytes(gzip.compress(text))
    with pa.output_stream(folder / "cuts.jsonl.zst", compression="zstd") as out:
        out.write(text)
    rows = []
    for n in range(10):
        audio = (varied.folder / f"cut-{n:04d}.wav").read_bytes()
        seconds = sf.info(io.BytesIO(audio)).duration
        rows.append(
            {"id": f"row-{n}", "audio": {"bytes": audio}, "duration": seconds, "text": f"{n}"}
        )
    pq.write_table(pa.Table.from_pylist(rows[:7]), folder / "a.parquet", row_group_size=3)
    pq.write_table(pa.Table.from_pylist(rows[7:]), folder / "b.parquet", row_group_size=3)
    parquet = {
        "type": "parquet",
        "manifest_filepath": [str(folder / "a.parquet"), str(folder / "b.parquet")],
    }
    concat = {"type": "lhotse_concat", "max_duration": 2.5, "gap": 0.1, **varied.flat("cuts")}
    found = {form: [varied.entry(form)] for form in ("cuts", "nemo", "tarred", "aggregate", "shar")}
    for suffix in ("gz", "zst"):
        found[f"cuts.{suffix}"] = [
            {"type": "lhotse", "cuts_path": str(folder / f"cuts.jsonl.{suffix}")}
        ]
    found |= {"parquet": [parquet], "concat": [concat]}
    found["blend"] = [
        {**found[form][0], "weight": weight}
        for form, weight in (
            ("cuts.gz", 1),
            ("tarred", 2),
            ("shar", 3),
            ("parquet", 1),
            ("concat", 1),
        )
    ]
    return found


PLAIN = {"batch_duration": 5, "shuffle": True, "seed": 5, "micro_batches_per_step": G}


def augmented(varied) -> dict:
    return {
        "noise_path": str(varied.manifest),
        "perturb_speed": True,
        "truncate_duration": 1.5,
        "cut_into_windows_duration": 0.8,
        "pad_min_duration": 0.5,
        "pad_direction": "random",
        "rir_enabled": True,
        "clipping_enabled": True,
        "compression_enabled": True,
    }


@pytest.mark.parametrize("form", FORMS)
def test_stopped_and_gone_on_with_other_ranks_and_workers(entries, form):
    # Twice, for what ends where it stands alone.
    config = {**PLAIN, "input_cfg": entries[form] * 2}
    whole, _ = steps(config, 6, world=4, told=heard)
    first, state = steps(config, 2, world=2, told=heard)
    second, state = steps(config, 3, world=1, workers=2, state=state, told=heard)
    third, _ = steps(config, 1, world=4, state=state, told=heard)
    assert first | second | third == whole
    assert len(whole) == 6 * G


@pytest.mark.parametrize("form", ["blend", "aggregate"])
def test_the_same_with_everything_switched_on(entries, varied, form):
    config = {**PLAIN, "input_cfg": entries[form], **augmented(varied)}
    whole, _ = steps(config, 4, world=2, told=heard)
    first, state = steps(config, 1, world=4, told=heard)
    second, state = steps(config, 2, world=1, workers=2, state=state, told=heard)
    third, _ = steps(config, 1, world=2, state=state, told=heard)
    assert first | second | third == whole
    # And a sample sounds the same in another batch: other limits, the same window.
    sounds = single_samples(config)
    again = single_samples({**config, "batch_duration": 2, "micro_batches_per_step": 1})
    shared = sounds.keys() & again.keys()
    assert len(shared) > 5
    assert all(sounds[key] == again[key] for key in shared)


class Keyed:
    """What each sample sounds like, by its key."""

    reads_audio = True

    def collate(self, examples, *, sample_rate, sample_keys):
        audio, lengths = pad_waveforms(examples, sample_rate)
        facts = zip(sample_keys.tolist(), audio.numpy(), lengths.tolist(), strict=True)
        return {"sounds": {key: row[:length].tobytes() for key, row, length in facts}}


def single_samples(config: dict) -> dict:
    """Audio of the samples of the first window, by their keys."""
    loader = playhead.dataloader({**config, "window_draws": 30}, dataset=Keyed())
    found: dict = {}
    for batch in islice(loader, 8):
        found |= batch["sounds"]
    return found


@pytest.mark.parametrize("form", FORMS[:-1])
@pytest.mark.parametrize("world", [1, 2, 4])
def test_ranks_share_a_pass(entries, form, world):
    config = {**PLAIN, "input_cfg": entries[form], "force_finite": True, "batch_duration": 2.5}
    seen = []
    for rank in range(world):
        loader = playhead.dataloader(config, rank=rank, world_size=world)
        length = len(loader)
        batches = list(loader)
        assert len(batches) == length
        for batch in batches:
            repeated = batch["playhead"].repeated
            seen += [n for n, twice in zip(batch["ids"], repeated, strict=True) if not twice]
    assert len(seen) == len(set(seen))
    joined = sum(name.count("+") + 1 for name in seen)
    assert joined == 10
