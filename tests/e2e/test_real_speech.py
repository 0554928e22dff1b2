"""Every layout of real speech gives what Lhotse itself reads from the same files."""

from __future__ import annotations

import hashlib
from collections import Counter
from importlib.util import find_spec
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from lhotse import CutSet, Recording

import playhead
from support.lhotse_reading import read_leaf, read_nemo
from support.real_speech import RATE, leaves, rows_of, write_blend

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from support.lhotse_reading import Heard

pytestmark = pytest.mark.e2e

LEAVES = [
    "nemo",
    "nemo_segments",
    "tarred",
    "tarred_by_shard_id",
    "tarred_segments",
    "buckets",
    "cuts",
    "cuts_segments",
    "cuts_mixed",
]


class Cuts(torch.utils.data.Dataset):
    """Hands the cuts themselves over."""

    def __getitem__(self, cuts: CutSet) -> dict[str, Any]:
        return {"cuts": list(cuts)}


def one_pass(entries: list[dict], **options: Any) -> playhead.Loader:
    """A finite pass in declared order, one batch a step."""
    chosen = {"sample_rate": RATE, "batch_size": 32, "force_finite": True, "shuffle": False}
    return playhead.dataloader(
        {"input_cfg": entries, "num_workers": 0, **chosen, **options}, rank=0, world_size=1
    )


def heard_in(batches: Iterable[dict[str, Any]]) -> list[Heard]:
    """Text and unpadded samples of everything in some batches."""
    heard = []
    for batch in batches:
        assert batch["audio"].dtype == torch.float32
        assert batch["audio_lens"].dtype == torch.int64
        assert batch["audio"].shape == (len(batch["texts"]), int(batch["audio_lens"].max()))
        assert len(batch["ids"]) == len(batch["texts"]) == len(batch["playhead"].repeated)
        for samples, length, text in zip(
            batch["audio"].numpy(), batch["audio_lens"].tolist(), batch["texts"], strict=True
        ):
            assert not samples[length:].any(), "padding is silence"
            heard.append((text, samples[:length]))
    return heard


def summary(heard: list[Heard]) -> Counter[tuple[str, str]]:
    return Counter((text, hashlib.sha256(samples.tobytes()).hexdigest()) for text, samples in heard)


@pytest.mark.parametrize("name", LEAVES)
def test_a_leaf_holds_what_lhotse_reads(prompts: Path, name: str) -> None:
    expected = read_leaf(name, prompts)
    loader = one_pass([leaves(prompts)[name]])
    assert len(loader) == -(-len(expected) // 32)
    heard = heard_in(loader)
    assert [text for text, _ in heard] == [text for text, _ in expected]
    for (text, samples), (_, wanted) in zip(heard, expected, strict=True):
        assert samples.shape == wanted.shape, text
        np.testing.assert_array_equal(samples, wanted, err_msg=text)


def test_digits_hold_what_lhotse_reads(digits: Path) -> None:
    entry = {"type": "nemo", "manifest_filepath": str(digits / "manifest.json")}
    expected = read_nemo(digits / "manifest.json")
    assert len(expected) == 3000
    shuffled = heard_in(one_pass([entry], shuffle=True, seed=3, batch_duration=60, num_workers=2))
    assert summary(shuffled) == summary(expected)


def test_a_shuffled_pass_of_the_whole_blend_is_every_sample_once(
    prompts: Path, digits: Path, tmp_path: Path
) -> None:
    expected = read_nemo(digits / "manifest.json")
    for name in LEAVES:
        expected += read_leaf(name, prompts)
    blend = write_blend(tmp_path / "blend.yaml", prompts, digits)
    with (
        pytest.warns(UserWarning, match="shard_seed"),
        pytest.warns(UserWarning, match="weights mean nothing"),
    ):
        loader = playhead.dataloader(
            blend,
            rank=0,
            world_size=1,
            force_finite=True,
            batch_duration=120,
            micro_batches_per_step=4,
        )
    assert summary(heard_in(loader)) == summary(expected)


@pytest.mark.parametrize("name", ["nemo_segments", "cuts_mixed"])
def test_audio_is_resampled_as_lhotse_does(
    prompts: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not find_spec("torchaudio") and not find_spec("scipy"):
        # Lhotse's own kernel needs torchaudio no more, but Lhotse still asks for it.
        monkeypatch.setattr("lhotse.augmentation.torchaudio.is_torchaudio_available", lambda: True)
    loader = one_pass([leaves(prompts)[name]], sample_rate=16000, batch_size=16)
    heard = heard_in(islice(loader, 5))
    if name == "cuts_mixed":
        cuts = CutSet.from_file(prompts / "cuts_mixed.jsonl").with_recording_path_prefix(prompts)
    else:
        rows = rows_of(prompts / "nemo_segments.json")
        cuts = [
            Recording.from_file(prompts / row["audio_filepath"])
            .to_cut()
            .truncate(offset=row["offset"], duration=row["duration"])
            for row in rows[:80]
        ]
    for (text, samples), cut in zip(heard, cuts, strict=True):
        wanted = cut.resample(16000).load_audio()[0]
        assert samples.shape == wanted.shape, text
        np.testing.assert_allclose(samples, wanted, atol=2e-4, err_msg=text)


def test_cuts_carry_fields_tags_and_languages(prompts: Path, digits: Path) -> None:
    entry = leaves(prompts)
    entries = [
        {**entry["nemo"], "tags": {"domain": "prompts", "key": "the tag wins"}},
        {**entry["nemo_segments"], "tags": {"domain": "segments"}},
        entry["cuts"],
        {"type": "nemo", "manifest_filepath": str(digits / "manifest.json")},
    ]
    loader = playhead.dataloader(
        {"input_cfg": entries, "sample_rate": RATE, "batch_size": 64, "force_finite": True},
        dataset=Cuts(),
        rank=0,
        world_size=1,
    )
    cuts = [cut for batch in loader for cut in batch["cuts"]]
    assert len(cuts) == 553 + 552 + 553 + 3000
    by_domain: dict[str | None, list] = {}
    for cut in cuts:
        assert len(cut.supervisions) == 1
        assert cut.supervisions[0].start == 0
        assert cut.supervisions[0].duration == pytest.approx(cut.duration)
        by_domain.setdefault((cut.custom or {}).get("domain"), []).append(cut)
    for cut in by_domain["prompts"]:
        assert cut.custom["num_words"] == len(cut.supervisions[0].text.split())
        assert cut.custom["key"] == "the tag wins"
        assert cut.supervisions[0].language == "en"
    assert {cut.supervisions[0].language for cut in by_domain["segments"]} == {"en-US"}
    from_lhotse = [cut for cut in by_domain[None] if "score" in (cut.custom or {})]
    assert {cut.id for cut in from_lhotse} == {f"cut-{cut.custom['key']}" for cut in from_lhotse}
    assert {cut.supervisions[0].speaker for cut in from_lhotse} == {"allison"}
    spoken = [cut for cut in by_domain[None] if "take" in (cut.custom or {})]
    assert {cut.custom["speaker"] for cut in spoken} == {f"s{i}" for i in range(6)}


def test_ids_tell_samples_apart(prompts: Path) -> None:
    for name in LEAVES:
        ids = [
            i for batch in one_pass([leaves(prompts)[name]], batch_size=100) for i in batch["ids"]
        ]
        assert len(set(ids)) == len(ids), name


def test_weights_and_temperatures_are_the_shares_of_the_blend(
    prompts: Path, digits: Path, tmp_path: Path
) -> None:
    blend = write_blend(tmp_path / "blend.yaml", prompts, digits)
    with pytest.warns(UserWarning, match="shard_seed"):
        loader = playhead.dataloader(
            blend, dataset=Cuts(), rank=0, world_size=1, batch_size=50, window_draws=3000
        )
    drawn: Counter[str] = Counter()
    while sum(drawn.values()) < 3000:
        for cut in next(iter(loader))["cuts"]:
            drawn[(cut.custom or {}).get("domain", "cuts")] += 1
    powers = {"prompts": 0.5**0.8, "cuts": 0.2**0.8, "digits": 0.3**0.8}
    for domain, power in powers.items():
        assert drawn[domain] / 3000 == pytest.approx(power / sum(powers.values()), abs=0.01), domain
