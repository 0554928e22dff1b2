"""Names of samples, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from playhead.formats import Example

__all__ = ["Ids"]


class Ids:
    """Ids alone: reads rows and no audio, to look at what would be trained on.

    A batch is a dict of ``ids``, a list of str, and ``playhead``, a `BatchInfo`.
    """

    modalities = frozenset({"audio", "text", "conversation"})
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
