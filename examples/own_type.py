"""An input type of one's own: a list of `path<TAB>duration<TAB>text` lines.

python examples/own_type.py corpus.tsv
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import playhead
from playhead.formats import Audio, BadRowError, Example, RowColumns, SourcePair
from playhead.formats.columns import microseconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.blend.leaf import Leaf
    from playhead.formats import Part, Place


# An entry of a blend then says `{type: tsv, list_path: corpus.tsv, root: /data}`.
@playhead.register_type("tsv", inputs={"list": "list_path"}, own={"root": None})
class TsvList:
    """Lines of an audio path, its seconds and its transcript, with tabs between them.

    Playhead finds the lines, keeps the columns in an index, shuffles, resumes and reads; a type
    only says which files there are, how long a line's sample is, and what sample it is.
    """

    lines_are_json = False

    def sources(self, leaf: Leaf) -> list[SourcePair]:
        """Name the files: here each list is one, without archives."""
        return [SourcePair(manifest=path) for path in leaf.paths["list"]]

    def columns(self, leaf: Leaf, pair: SourcePair, block: bytes) -> RowColumns:  # noqa: ARG002 - the protocol's
        """Say of each line of a block how long its sample is; this runs once, for the index."""
        rows = [_fields(line) for line in block.splitlines()]
        nothing = np.zeros(len(rows), np.int64)
        return RowColumns(
            num_rows=len(rows),
            kept=np.arange(len(rows)),
            duration_us=microseconds([seconds for _, seconds, _ in rows]),
            num_samples=nothing,
            rate=nothing.astype(np.int32),
            channels=nothing.astype(np.int16),
            tar=np.full(len(rows), -1, np.int32),
        )

    def example(self, leaf: Leaf, place: Place, row: bytes, parts: Sequence[Part]) -> Example:  # noqa: ARG002 - the protocol's
        """Make the sample of one line; this runs in the workers, for each sample."""
        name, seconds, text = _fields(row)
        root = Path(leaf.own["root"] or Path(place.shard).parent)
        return Example(
            id=name,
            text=text,
            language=None,
            audio=Audio(source=str(root / name), duration=seconds),
            place=place,
            custom={**leaf.tags},
        )


def _fields(line: bytes) -> tuple[str, float, str]:
    try:
        name, seconds, text = line.decode().split("\t")
        return name, float(seconds), text
    except ValueError as error:
        raise BadRowError(
            f"the line is not path, seconds and text: {error}", fix="Put tabs between the three"
        ) from None


def main() -> None:
    """Print the first batches of a list, then those after a resume."""
    parser = argparse.ArgumentParser(description="Read a list of one's own, stop and go on.")
    parser.add_argument("list")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--start", choices=("fork", "spawn", "forkserver"), default="fork")
    args = parser.parse_args()
    blend = {
        "input_cfg": [{"type": "tsv", "list_path": args.list}],
        "batch_duration": 5,
        "shuffle": True,
        "seed": 1,
        "force_finite": True,
        "num_workers": args.workers,
        "multiprocessing_context": args.start if args.workers else None,
    }
    loader = playhead.dataloader(blend)
    batches = iter(loader)
    for _ in range(2):
        print("first", *next(batches)["ids"])
    state = loader.state_dict()
    loader.close()

    resumed = playhead.dataloader(blend)
    resumed.load_state_dict(state)
    for batch in resumed:
        print("then", *batch["ids"])
    resumed.close()


if __name__ == "__main__":
    main()
