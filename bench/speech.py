"""A dataset as people write them for Lhotse; runs under both loaders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lhotse.dataset.input_strategies import AudioSamples
from torch.utils.data import Dataset

if TYPE_CHECKING:
    from lhotse import CutSet

__all__ = ["LhotseSpeech"]


class LhotseSpeech(Dataset[dict[str, Any]]):
    """Padded waveforms, their lengths and their transcripts."""

    def __init__(self) -> None:
        self.load = AudioSamples()

    def __getitem__(self, cuts: CutSet) -> dict[str, Any]:
        audio, lengths = self.load(cuts)
        return {
            "audio": audio,
            "audio_lens": lengths,
            "texts": [cut.supervisions[0].text for cut in cuts],
            "ids": [cut.id for cut in cuts],
        }
