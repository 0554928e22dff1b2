"""Lhotse cuts, one JSON object a line (`lhotse`)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from playhead.formats.base import BadRowError, SourcePair
from playhead.formats.cut_rows import cut_columns, cut_example, decode_cut, resolve_paths
from playhead.formats.registry import register

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.blend.leaf import Leaf
    from playhead.formats.base import RowColumns
    from playhead.formats.cut_rows import CutRow
    from playhead.formats.example import Example, Part, Place

__all__ = ["LhotseCuts"]


@register("lhotse")
class LhotseCuts:
    """MonoCut, MultiCut and MixedCut rows, as `CutSet.to_file` writes them.

    - Relative paths of recordings, features, arrays and images, also inside mixed cuts and custom
      fields, are looked for beside the manifest first.
    - A MonoCut of one plain file without transforms also gives `audio`, which decodes faster; for
      all others `audio` is None and `cut_data` says everything.
    - `text` joins the supervisions' texts by a space; `language` is the first one's.
    """

    def sources(self, leaf: Leaf) -> list[SourcePair]:
        """One source a manifest, in declared order."""
        return [SourcePair(manifest=path) for path in leaf.paths["cuts"]]

    def columns(self, leaf: Leaf, pair: SourcePair, block: bytes) -> RowColumns:  # noqa: ARG002 - the protocol's
        """Read a block of rows; `Format.columns`."""
        return cut_columns(block, _check_data)

    def example(self, leaf: Leaf, place: Place, row: bytes, parts: Sequence[Part]) -> Example:  # noqa: ARG002 - the protocol's
        """Make the sample of one row; `Format.example`.

        `parts` are not used: cuts name their files themselves.
        """
        data = decode_cut(row, place)
        resolve_paths(data, os.path.dirname(place.shard))  # noqa: PTH120 - it may be a URL
        return cut_example(leaf, place, data)


def _check_data(cut: CutRow) -> None:
    """Refuse a cut that has no data, or whose data are somewhere else."""
    recording = cut.recording
    if recording is not None and any(source.type == "shar" for source in recording.sources):
        raise BadRowError(
            "the cut's audio lies in a Lhotse Shar", fix="Use the type lhotse_shar for it"
        )
    if recording is None and cut.features is None:
        raise BadRowError(
            "the cut has neither a recording nor features", fix="Attach its recording to the cut"
        )
