"""What a sample is called in a log: the place where it lies in the data.

Ids of samples repeat in real corpora: two corpora count from 0, a recording is cut into parts that
bear its name, an endless blend gives the same sample again and again. A log of ids could not tell a
sample that came twice from two samples of one id, nor a lost one from one that never was. The place
says which draw of which part of which row of which source it is. No two samples of a run share it,
and it is the same on any ranks, with any workers, and after any stop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from playhead.loader.fusion import FusedPlanning
    from playhead.loader.run import Planning

__all__ = ["leaf_names", "leaf_words", "places_of"]


def leaf_words(planning: Planning | FusedPlanning) -> tuple[str, ...]:
    """What the leaves are called in places: by their keys, those of several parts with the part.

    Parameters
    ----------
    planning
        What is planned; batches count its leaves.
    """
    return tuple(
        f"{name}/{leaf.key}" if name else leaf.key
        for name, part in planning.parts.items()
        for leaf in part.leaves
    )


def leaf_names(planning: Planning | FusedPlanning) -> tuple[str, ...]:
    """What people call the leaves.

    Parameters
    ----------
    planning
        What is planned; batches count its leaves.
    """
    return tuple(leaf.name for leaf in planning.leaves)


def places_of(
    words: Sequence[str],
    leaf: NDArray[np.integer],
    pass_: NDArray[np.integer],
    row: NDArray[np.integer],
    part: NDArray[np.integer],
) -> tuple[str, ...]:
    """Return the places of samples: `leaf:pass:row:part`.

    Parameters
    ----------
    words
        What each leaf is called.
    leaf, pass_, row, part
        Leaf, pass over it, row of it and part of the row of each sample, shape (B,).

    Examples
    --------
    >>> import numpy as np
    >>> of = np.array([1, 0])
    >>> places_of(["a", "b"], of, np.array([0, 2]), np.array([17, 3]), np.array([0, 1]))
    ('b:0:17:0', 'a:2:3:1')
    """
    columns = (leaf.tolist(), pass_.tolist(), row.tolist(), part.tolist())
    return tuple(
        f"{words[number]}:{pass_number}:{row_number}:{part_number}"
        for number, pass_number, row_number, part_number in zip(*columns, strict=True)
    )
