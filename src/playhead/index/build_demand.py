"""What `indexed: true` demands of a leaf that has no pack."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.errors import IndexMissingError, StaleIndexError
from playhead.formats import format_of
from playhead.index.sidecars import Sidecar, is_fresh
from playhead.paths import index_path
from playhead.storage.compression import is_compressed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.blend.leaf import Leaf
    from playhead.index.build_target import Target

__all__ = ["demand_indexes", "sidecars_of"]


def demand_indexes(target: Target, command: str) -> None:
    """Check that the leaves of a pack that say `indexed: true` have their `.idx` files.

    Parameters
    ----------
    target
        The pack that is to be built.
    command
        What builds them.

    Raises
    ------
    IndexMissingError
        If an `.idx` does not exist.
    StaleIndexError
        If an `.idx` does not belong to its file as it is now.
    """
    for member in target.members:
        if member.leaf.options.indexed is not True or member.offsets_from is not None:
            continue
        for sidecar in sidecars_of(member.leaf):
            if is_fresh(sidecar):
                continue
            where = f"leaf {member.leaf.name}, {sidecar.path}"
            try:
                with open(sidecar.idx, "rb"):  # noqa: PTH123 - its path may be of any kind
                    pass
            except OSError:
                raise IndexMissingError(
                    f"the leaf is indexed: true, and there is neither a pack nor {sidecar.idx}",
                    where=where,
                    fix=f"Run `{command}`",
                ) from None
            raise StaleIndexError(
                f"the leaf is indexed: true, and {sidecar.idx} does not belong to the file as it "
                "is now",
                where=where,
                fix=f"Run `{command}`",
            )


def sidecars_of(leaf: Leaf) -> Iterator[Sidecar]:
    """Say where the `.idx` files of a leaf are: that depends on how its paths are written."""
    root = leaf.options.indexes_root
    for pair in format_of(leaf).sources(leaf):
        if not is_compressed(pair.manifest):
            yield Sidecar(path=pair.manifest, kind="jsonl", idx=index_path(pair.manifest, root))
        for tar in pair.tars:
            yield Sidecar(path=tar, kind="nemo_tar", idx=index_path(tar, root))
