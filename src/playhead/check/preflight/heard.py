"""What a worker does with a batch at the least: it decodes all audio, and counts the bytes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from playhead.datasets.spoken_texts import pad_stretches, stretches_of
from playhead.paths import scheme

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from playhead.formats import Example

__all__ = ["Heard"]


class Heard:
    """All audio of a batch, decoded and padded, whatever its samples are.

    Attributes
    ----------
    file_bytes
        Bytes of the plain local files that it has decoded so far: no range was asked for them.
    """

    modalities = frozenset({"audio", "text", "conversation"})
    reads_audio = True

    def __init__(self) -> None:
        self.file_bytes = 0

    def collate(
        self,
        examples: Sequence[Example],
        *,
        sample_rate: int | None,
        sample_keys: NDArray[np.uint64],  # noqa: ARG002 - nothing here is random
    ) -> dict[str, Any]:
        """Make a batch; see `playhead.fetch.ExampleDataset`."""
        stretches = stretches_of(examples)
        audio, lengths = pad_stretches(stretches, sample_rate)
        for stretch in stretches:
            source = None if stretch.audio.audio is None else stretch.audio.audio.source
            if isinstance(source, str) and not scheme(source):
                self.file_bytes += Path(source).stat().st_size
        return {"audio": audio, "audio_lens": lengths, "ids": [one.id for one in examples]}
