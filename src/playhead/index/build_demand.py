"""What `indexed: true` demands of a leaf that has no pack."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.errors import IndexMissingError, StaleIndexError
from playhead.formats import format_of
from playhead.index.found import owners, place
from playhead.index.sidecar_run import stale_sidecars
from playhead.storage import access
from playhead.storage.compression import has_middle, is_archive, is_compressed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from playhead.blend.leaf import Leaf
    from playhead.index.build_target import Target
    from playhead.index.sidecars import Kind, Sidecar

__all__ = ["demand_indexes", "sidecars_of"]


def demand_indexes(targets: Sequence[Target], command: str) -> None:
    """Check that the leaves of packs that say `indexed: true` have their `.idx` files.

    Parameters
    ----------
    targets
        The packs that are to be built.
    command
        What builds them.

    Raises
    ------
    ConfigError
        If two files would have the same `.idx`.
    IndexMissingError
        If an `.idx` does not exist.
    StaleIndexError
        If an `.idx` does not belong to its file as it is now.
    """
    members = [member for target in targets for member in target.members]
    leaves = [
        member.leaf
        for member in members
        if member.leaf.options.indexed is True and member.offsets_from is None
    ]
    for leaf in leaves:
        _check_middles(leaf, command)
    named = {sidecar: leaf for leaf in leaves for sidecar in sidecars_of(leaf)}
    owners(named)
    for sidecar in stale_sidecars(list(named)):
        where = f"leaf {named[sidecar].name}, {sidecar.path}"
        if not _exists(sidecar.idx):
            raise IndexMissingError(
                f"the leaf is indexed: true, and there is neither a pack nor {sidecar.idx}",
                where=where,
                fix=f"Run `{command}`",
            )
        raise StaleIndexError(
            f"the leaf is indexed: true, and {sidecar.idx} does not belong to the file as it is "
            "now",
            where=where,
            fix=f"Run `{command}`; `--force` builds what looks up to date too",
        )


def sidecars_of(leaf: Leaf) -> Iterator[Sidecar]:
    """Say where the `.idx` files of a leaf are: that depends on how its paths are written.

    Files that are compressed and pipes have none.
    """
    root = leaf.options.indexes_root
    members: Kind = "wds_tar" if leaf.type == "share_gpt_webdataset" else "nemo_tar"
    for pair in format_of(leaf).sources(leaf):
        if has_middle(pair.manifest):
            yield place(pair.manifest, members if is_archive(pair.manifest) else "jsonl", root)
        for tar in filter(has_middle, pair.tars):
            yield place(tar, "nemo_tar", root)


def _check_middles(leaf: Leaf, command: str) -> None:
    """Refuse what can have no `.idx`, but for compressed rows, which are in the pack."""
    for pair in format_of(leaf).sources(leaf):
        for path in pair.files:
            if has_middle(path) or (is_compressed(path) and not is_archive(path)):
                continue
            raise IndexMissingError(
                "the leaf is indexed: true and has no pack, and an archive that is compressed or "
                "what comes out of a pipe can have no .idx",
                where=f"leaf {leaf.name}, {path}",
                fix=f"Run `{command}`, which builds its pack; or leave `indexed` out",
            )


def _exists(idx: str) -> bool:
    try:
        access.size(idx)
    except FileNotFoundError:
        return False
    return True
