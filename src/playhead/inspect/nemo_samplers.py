"""Where the states of NeMo's and Lhotse's samplers stand in what a checkpoint holds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeGuard, cast

from playhead.inspect.nemo_ranks import RankFiles

if TYPE_CHECKING:
    from playhead.inspect.nemo_ranks import RankFile

__all__ = ["Found", "SamplerState", "find_samplers", "is_whole"]

_PER_RANK: Final = "train_dataloader_per_rank"
_WORKER: Final = re.compile(r"worker_(\d+)|worker_states\[(\d+)\]")
# What lies deeper is no state of a loader; a circle of containers ends there too.
_DEEPEST: Final = 60
# Very many numbers, and no state in them.
_NO_STATES: Final = frozenset({"bucketer_state", "cuts_state", "diagnostics", "rng_state"})


@dataclass(frozen=True, kw_only=True, slots=True)
class SamplerState:
    """The state of one sampler: of one process that reads data."""

    state: Mapping[str, Any]
    """What it saved."""
    path: str
    """Where it stands."""
    rank: int | None
    """Whose it is; None where nothing says it."""
    worker: int | None
    """Which worker of the rank; None for the rank's own process."""

    @property
    def readers(self) -> int:
        """How many ranks read all of the data, and keep a share of the batches each."""
        size = self.state.get("world_size")
        return size if is_whole(size) and size > 1 else 1


@dataclass(kw_only=True, slots=True)
class Found:
    """The samplers of a checkpoint."""

    samplers: list[SamplerState] = field(default_factory=list[SamplerState])
    """Their states, rank by rank and worker by worker."""
    notes: list[str] = field(default_factory=list[str])
    """What people should know."""
    place: str | None = None
    """Where the states of all ranks stand; None where Lhotse alone wrote them."""
    ranks: set[int] = field(default_factory=set[int])
    """Ranks of which there is a state."""
    sizes: set[int] = field(default_factory=set[int])
    """How many ranks there are, as each of them says it."""


def find_samplers(content: Any) -> Found:
    """Find the states of samplers anywhere in what a checkpoint holds.

    Those below `train_dataloader_per_rank` are taken, as NeMo gathers them from all ranks; where
    there is no such list, all there are.

    Parameters
    ----------
    content
        Plain containers, numbers and texts; or what the files of several ranks hold.
    """
    found = Found()
    if isinstance(content, RankFiles):
        for file in content.files:
            _take_file(file, found)
        first, last = content.files[0], content.files[-1]
        found.sizes.add(last.rank + 1)
        found.notes.append(
            f"{len(content.files):,} ranks have a file each, from {first.name} to {last.name}:"
            " what they read is added up"
        )
    else:
        _take(content, found)
    missing = sorted(set(range(max(found.sizes, default=0))) - found.ranks)
    if missing:
        listed = ", ".join(map(str, missing[:8]))
        more = f" and {len(missing) - 8} more" if len(missing) > 8 else ""
        found.notes.append(f"there is no state of rank {listed}{more}: what they read is missing")
    return found


def _take_file(file: RankFile, found: Found) -> None:
    """Take what the file of a rank holds, which may be its own state, or that of all."""
    own = Found()
    _take(file.content, own)
    found.place = found.place or own.place
    found.sizes |= own.sizes
    found.ranks |= own.ranks
    found.notes += [f"{file.name}: {note}" for note in own.notes]
    for one in own.samplers:
        rank = file.rank if one.rank is None else one.rank
        found.ranks.add(rank)
        found.samplers.append(replace(one, path=f"{file.name}: {one.path}", rank=rank))


def _take(content: Any, found: Found) -> None:
    for path, entries in _lists_of_ranks(content, "", 0, set()):
        found.place = found.place or path
        _take_ranks(entries, path, found)
    if found.place is None:
        rank_of = _rank_of(content)
        for path, state in _states(content, "", 0, set()):
            found.samplers.append(_sampler(state, path, rank_of))


def is_whole(value: Any) -> TypeGuard[int]:
    """Whether a value is a whole number of at least 0.

    Examples
    --------
    >>> is_whole(3), is_whole(True), is_whole(-1), is_whole(None)
    (True, False, False, False)
    """
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _take_ranks(entries: Sequence[Any], path: str, found: Found) -> None:
    for number, entry in enumerate(entries):
        facts = cast("Mapping[str, Any]", entry) if isinstance(entry, Mapping) else {}
        if "state" not in facts:
            found.notes.append(f"{path}[{number}] holds no state of a rank, and is left out")
            continue
        rank = facts.get("dp_rank")
        if is_whole(rank):
            found.ranks.add(rank)
        size = facts.get("dp_world_size")
        if is_whole(size):
            found.sizes.add(size)
        for inner, state in _states(facts["state"], f"{path}[{number}].state", 0, set()):
            found.samplers.append(_sampler(state, inner, rank if is_whole(rank) else None))


def _sampler(state: Mapping[str, Any], path: str, rank: int | None) -> SamplerState:
    workers = _WORKER.findall(path)
    worker = None if not workers else int("".join(workers[-1]))
    sampler = SamplerState(state=state, path=path, rank=rank, worker=worker)
    own = state.get("rank")
    # A sampler that stands in the rank's own process knows its rank.
    is_known = rank is None and sampler.readers > 1 and is_whole(own)
    return replace(sampler, rank=own) if is_known else sampler


def _rank_of(content: Any) -> int | None:
    """The rank that Lhotse's own checkpoint of a loader says it is of."""
    if not isinstance(content, Mapping):
        return None
    facts = cast("Mapping[str, Any]", content)
    of_lhotse = "worker_states" in facts or "sampler_state" in facts
    rank = facts.get("rank")
    return rank if of_lhotse and is_whole(rank) else None


def _lists_of_ranks(
    node: Any, path: str, depth: int, seen: set[int]
) -> Iterator[tuple[str, Sequence[Any]]]:
    for inner, key, value in _below(node, path, depth, seen):
        if key == _PER_RANK and isinstance(value, (list, tuple)):
            yield inner, cast("Sequence[Any]", value)
        else:
            yield from _lists_of_ranks(value, inner, depth + 1, seen)


def _states(
    node: Any, path: str, depth: int, seen: set[int]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if isinstance(node, Mapping) and _is_sampler(cast("Mapping[str, Any]", node)):
        yield path, cast("Mapping[str, Any]", node)
        return
    for inner, key, value in _below(node, path, depth, seen):
        if key == "sampler_state" and isinstance(value, Mapping) and value:
            yield inner, cast("Mapping[str, Any]", value)
        else:
            yield from _states(value, inner, depth + 1, seen)


def _is_sampler(node: Mapping[str, Any]) -> bool:
    return "diagnostics" in node and bool(node.keys() & {"cuts_state", "samplers"})


def _below(
    node: Any, path: str, depth: int, seen: set[int]
) -> Iterator[tuple[str, str | None, Any]]:
    """What a container holds that may hold more; each container once."""
    if depth > _DEEPEST or id(node) in seen:
        return
    if isinstance(node, Mapping):
        seen.add(id(node))
        for key, value in cast("Mapping[Any, Any]", node).items():
            if isinstance(value, (Mapping, list, tuple)) and key not in _NO_STATES:
                yield f"{path}.{key}" if path else str(key), str(key), value
    elif isinstance(node, (list, tuple)):
        seen.add(id(node))
        for number, value in enumerate(cast("Sequence[Any]", node)):
            if isinstance(value, (Mapping, list, tuple)):
                yield f"{path}[{number}]", None, value
