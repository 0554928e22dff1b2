"""Small ready-made datasets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playhead.fetch.waveforms import pad_waveforms

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from playhead.formats import Example

__all__ = ["Ids", "SpeechToText"]


class SpeechToText:
    """Waveforms and transcripts; what a loader uses when it is given no dataset.

    A batch is a dict of

    - ``audio``: float32 tensor of shape (B, T), from -1 to 1, padded with zeros at the end;
    - ``audio_lens``: int64 tensor of shape (B,), samples;
    - ``texts``, ``ids``: lists of str; a sample without a transcript has an empty one;
    - ``playhead``: a `BatchInfo`, which the loader adds.

    Audio of several channels is an error: ``channel_selector`` chooses one.
    """

    reads_audio = True

    def collate(
        self,
        examples: Sequence[Example],
        *,
        sample_rate: int | None,
        sample_keys: NDArray[np.uint64],  # noqa: ARG002 - nothing here is random
    ) -> dict[str, Any]:
        """Make a batch; see `playhead.fetch.ExampleDataset`."""
        audio, lengths = pad_waveforms(examples, sample_rate)
        return {
            "audio": audio,
            "audio_lens": lengths,
            "texts": [example.text or "" for example in examples],
            "ids": [example.id for example in examples],
        }


class Ids:
    """Ids alone: reads rows and no audio, to look at what would be trained on.

    A batch is a dict of ``ids``, a list of str, and ``playhead``, a `BatchInfo`.
    """

    reads_audio = False

    def collate(
        self,
        examples: Sequence[Example],
        *,
        sample_rate: int | None,  # noqa: ARG002 - no audio is read
        sample_keys: NDArray[np.uint64],  # noqa: ARG002 - nothing here is random
    ) -> dict[str, Any]:
        """Make a batch; see `playhead.fetch.ExampleDataset`."""
        return {"ids": [example.id for example in examples]}
