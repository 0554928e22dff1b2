"""How far a sampler of NeMo or Lhotse has read each of its sources, out of its state.

Such a state is the graph of iterators that makes the samples: mixtures and chains over leaves that
read files. Nothing in it has a name; the leaves are told apart by their order alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

from playhead.inspect.nemo_samplers import is_whole

if TYPE_CHECKING:
    from playhead.inspect.nemo_samplers import SamplerState

__all__ = ["LeafState", "StateType", "buffered_items", "leaves_of"]

StateType: TypeAlias = Literal[
    "indexed", "packed", "sequential packed", "chain", "sequential chain", "streaming", "unknown"
]
"""How a leaf keeps its place: in a file, a pack, files one after another, a stream, or unknown."""

_CHILDREN: Final = ("samplers", "bucket_samplers")
_PACKED: Final = frozenset({"global_position", "global_shard_id", "global_num_shards", "num_iters"})
# Lists of numbers, and tokens of what waits in a buffer: no states of leaves.
_NO_LEAVES: Final = frozenset(
    {"bucketer_state", "buffer", "diagnostics", "range", "rng_state", "transforms_state"}
)
_DEEPEST: Final = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class LeafState:
    """How far one process has read one source."""

    path: str
    """Where it stands below the state of its sampler."""
    state_type: StateType = "unknown"
    """How it keeps its place."""
    epoch: int = 0
    """Passes that were finished."""
    position: int | None = None
    """Items of this pass that were read; of a sequence of files, of the present one."""
    shard_id: int | None = None
    """Which part of the items this process reads; None before its first."""
    num_shards: int | None = None
    """Of how many parts."""
    total_len: int | None = None
    """Items of all parts together, where the state says it."""
    current_shard: int | None = None
    """Of a sequence of files: the place in the order of the one that is being read."""
    shard_order: tuple[int, ...] | None = None
    """Of a sequence of files: their order; None for the declared one."""
    is_read: bool = False
    """Whether all of this pass has been read, whatever the position says."""
    may_have_ended: bool = True
    """Whether a full position may be that of the last pass, which `epoch` counts already."""
    sampler_epoch: int = 0
    """Which epoch the trainer says it is."""


@dataclass(frozen=True, slots=True)
class _Around:
    """What the iterators around a state say of it."""

    repeats: int | None = None
    has_ended: bool | None = None
    depth: int = 0

    def inside(self, has_ended: bool | None = None) -> _Around:
        """Around what an iterator holds; `has_ended` where that iterator says it."""
        ended = self.has_ended if has_ended is None else has_ended
        return _Around(self.repeats, ended, self.depth + 1)


def leaves_of(sampler: SamplerState, *, joined: bool = False) -> list[LeafState]:
    """Return how far a sampler has read each of its sources, in the order of the graph.

    What cannot be read has its place among them, so that names do not shift.

    Parameters
    ----------
    sampler
        The sampler.
    joined
        Take files that follow each other for one source, and not for as many.
    """
    leaves = _Reader(joined=joined).of_sampler(sampler.state, "", 0)
    epoch = sampler.state.get("epoch")
    sampler_epoch = epoch if is_whole(epoch) else 0
    partition = next((leaf for leaf in leaves if leaf.num_shards is not None), None)
    return [_in_process(leaf, partition, sampler_epoch) for leaf in leaves]


def _in_process(leaf: LeafState, partition: LeafState | None, sampler_epoch: int) -> LeafState:
    """A leaf with what holds for all of its process: the part that it reads, and the epoch."""
    if leaf.num_shards is None and partition is not None:
        leaf = replace(leaf, shard_id=partition.shard_id, num_shards=partition.num_shards)
    return replace(leaf, sampler_epoch=sampler_epoch) if sampler_epoch else leaf


def buffered_items(sampler: SamplerState) -> int:
    """Return how many items a sampler has read and not yet handed out.

    Parameters
    ----------
    sampler
        The sampler.
    """
    return _buffered(sampler.state, 0)


def _buffered(node: Any, depth: int) -> int:
    if depth > _DEEPEST:
        return 0
    if isinstance(node, (list, tuple)):
        items = cast("Sequence[Any]", node)
        return sum(_buffered(item, depth + 1) for item in items if isinstance(item, Mapping))
    if not isinstance(node, Mapping):
        return 0
    state = cast("Mapping[str, Any]", node)
    count = 0
    for key, value in state.items():
        match key, value:
            case "bucket_tokens", [*buckets]:
                count += sum(len(bucket) for bucket in buckets if isinstance(bucket, (list, tuple)))
            case (("packing_buffer_tokens" | "buffer"), [*items]):
                count += len(items)
            case (("diagnostics" | "rng_state"), _):
                pass
            case _:
                count += _buffered(value, depth + 1)
    return count


@dataclass(frozen=True, slots=True)
class _Reader:
    joined: bool

    def of_sampler(self, state: Mapping[str, Any], path: str, depth: int) -> list[LeafState]:
        for key in _CHILDREN:
            children = state.get(key)
            if isinstance(children, (list, tuple, Mapping)) and depth < _DEEPEST:
                return [
                    leaf
                    for place, child in _entries(children, _joined_path(path, key))
                    for leaf in self._of_child(child, place, depth)
                ]
        cuts = state.get("cuts_state")
        place = _joined_path(path, "cuts_state")
        if isinstance(cuts, (list, tuple)):
            entries = _entries(cast("Sequence[Any]", cuts), place)
            return [leaf for inner, one in entries for leaf in self._node(one, inner, _Around())]
        return self._node(cuts, place, _Around())

    def _of_child(self, child: Any, place: str, depth: int) -> list[LeafState]:
        if isinstance(child, Mapping):
            return self.of_sampler(cast("Mapping[str, Any]", child), place, depth + 1)
        return [LeafState(path=place)]

    def _node(self, value: Any, path: str, around: _Around) -> list[LeafState]:
        state = _unwrapped(value)
        if state is None or around.depth > _DEEPEST:
            return [LeafState(path=path)]
        if "inner_states" in state:
            return self._several(state, path, around)
        if "source" in state:
            repeats = state.get("current_epoch")
            inner = around.inside()
            if is_whole(repeats):
                inner = _Around(repeats=repeats, has_ended=False, depth=inner.depth)
            return self._node(state["source"], f"{path}.source", inner)
        leaf = _leaf(state, path, around)
        return self._others(state, path, around) if leaf is None else [leaf]

    def _others(self, state: Mapping[str, Any], path: str, around: _Around) -> list[LeafState]:
        """The leaves of an iterator that nobody knows: those of all that it holds."""
        leaves: list[LeafState] = []
        for key, value in state.items():
            if key in _NO_LEAVES:
                continue
            place = f"{path}.{key}"
            if isinstance(value, Mapping) and value:
                leaves += self._node(value, place, around.inside())
            elif isinstance(value, (list, tuple)):
                for inner, one in _entries(cast("Sequence[Any]", value), place):
                    if isinstance(one, Mapping):
                        leaves += self._node(one, inner, around.inside())
        return leaves or [LeafState(path=path)]

    def _several(self, state: Mapping[str, Any], path: str, around: _Around) -> list[LeafState]:
        inner = state["inner_states"]
        if not isinstance(inner, (list, tuple)) or not inner:
            return [LeafState(path=path)]
        entries = list(_entries(cast("Sequence[Any]", inner), f"{path}.inner_states"))
        if "current_iter_idx" in state:
            if state.get("global_seed") is not None:
                leaf = _packed(state, path, around)
                is_known = leaf.state_type != "unknown"
                return [replace(leaf, state_type="chain") if is_known else leaf]
            return self._chain(state, entries, path, around)
        flags: Any = state.get("exhausted")
        ended = list(flags) if isinstance(flags, (list, tuple)) else []
        leaves: list[LeafState] = []
        for number, (place, one) in enumerate(entries):
            has_ended = ended[number] is True if number < len(ended) else None
            leaves += self._node(one, place, around.inside(has_ended))
        return leaves

    def _chain(
        self,
        state: Mapping[str, Any],
        entries: list[tuple[str, Any]],
        path: str,
        around: _Around,
    ) -> list[LeafState]:
        """The leaves of files one after another, of which only the present one's place is true.

        Those before it were read, but lose their places at a resume; those after it keep those of
        the pass before.
        """
        order = _order(state.get("iter_order"), len(entries))
        current = state["current_iter_idx"]
        if not is_whole(current):
            return [LeafState(path=path) for _ in (range(1) if self.joined else entries)]
        inner = around.inside(has_ended=False)
        leaves = [self._node(one, place, inner) for place, one in entries]
        place_of = {number: place for place, number in enumerate(order)}
        if self.joined and all(len(child) == 1 for child in leaves):
            return [_whole_chain([child[0] for child in leaves], order, current, path, around)]
        staged: list[LeafState] = []
        for number, child in enumerate(leaves):
            place = place_of[number]
            staged += (
                child if place == current else [_staged(leaf, place < current) for leaf in child]
            )
        return staged


def _whole_chain(
    files: Sequence[LeafState], order: Sequence[int], current: int, path: str, around: _Around
) -> LeafState:
    """Files that follow each other as one source."""
    now = files[order[current]] if current < len(order) else LeafState(path=path, position=0)
    partition = next((file for file in files if file.num_shards is not None), now)
    return LeafState(
        path=path,
        state_type="sequential chain",
        epoch=around.repeats or 0,
        position=now.position,
        shard_id=partition.shard_id,
        num_shards=partition.num_shards,
        current_shard=current,
        shard_order=None if list(order) == sorted(order) else tuple(order),
        may_have_ended=False,
    )


def _staged(leaf: LeafState, is_read: bool) -> LeafState:
    if leaf.state_type == "unknown":
        return leaf
    return replace(leaf, position=None if is_read else 0, is_read=is_read)


def _leaf(state: Mapping[str, Any], path: str, around: _Around) -> LeafState | None:
    """What a state says that is of a leaf; None where it is of something else."""
    if "position" in state and {"shard_id", "num_shards"} <= state.keys():
        return _indexed(state, path, around)
    if state.keys() >= _PACKED:
        return _packed(state, path, around)
    return _streaming(state, path, around) if is_whole(state.get("position")) else None


def _indexed(state: Mapping[str, Any], path: str, around: _Around) -> LeafState:
    shard, shards = state["shard_id"], state["num_shards"]
    is_part = is_whole(shard) and is_whole(shards) and shard < shards
    if not is_whole(state["position"]) or not (is_part or (shard is None and shards is None)):
        return LeafState(path=path)
    return LeafState(
        path=path,
        state_type="indexed",
        epoch=_epoch(state.get("epoch"), around),
        position=state["position"],
        shard_id=shard,
        num_shards=shards,
        total_len=_total_of(state),
        may_have_ended=around.has_ended is not False,
    )


def _packed(state: Mapping[str, Any], path: str, around: _Around) -> LeafState:
    shard, shards = state.get("global_shard_id"), state.get("global_num_shards")
    is_part = is_whole(shard) and is_whole(shards) and shard < shards
    known = LeafState(
        path=path,
        epoch=_epoch(state.get("num_iters"), around),
        shard_id=shard if is_part else None,
        num_shards=shards if is_part else None,
        total_len=_total_of(state),
        may_have_ended=around.has_ended is not False,
    )
    if state.get("global_seed") is not None:
        position = state.get("global_position")
        if not is_part or not is_whole(position):
            return LeafState(path=path)
        return replace(known, state_type="packed", position=position)
    current, position = state.get("current_iter_idx"), state.get("packed_current_position")
    if not is_whole(current) or not is_whole(position):
        return LeafState(path=path)
    return replace(
        known,
        state_type="sequential packed",
        position=position,
        current_shard=current,
        may_have_ended=False,
    )


def _streaming(state: Mapping[str, Any], path: str, around: _Around) -> LeafState:
    """A stream, which every process reads all of."""
    return LeafState(
        path=path,
        state_type="streaming",
        epoch=_epoch(state.get("epoch"), around),
        position=state["position"],
        shard_id=0,
        num_shards=1,
        total_len=_total_of(state),
        may_have_ended=around.has_ended is not False,
    )


def _epoch(own: Any, around: _Around) -> int:
    """Passes that were finished: a leaf may count them, or what repeats it, or both."""
    return max(own if is_whole(own) else 0, around.repeats or 0)


def _total_of(state: Mapping[str, Any]) -> int | None:
    inner = state.get("range")
    of_range = cast("Mapping[str, Any]", inner).get("n") if isinstance(inner, Mapping) else None
    candidates = (of_range, state.get("total_len"), state.get("_total_len"), state.get("n"))
    return next((value for value in candidates if is_whole(value)), None)


def _order(given: Any, length: int) -> list[int]:
    numbers = list(cast("Iterable[Any]", given)) if isinstance(given, (list, tuple)) else []
    declared = list(range(length))
    return numbers if all(map(is_whole, numbers)) and sorted(numbers) == declared else declared


def _unwrapped(value: Any) -> Mapping[str, Any] | None:
    """The state itself, without the name of its class around it."""
    for _ in range(_DEEPEST):
        if not isinstance(value, Mapping):
            return None
        state = cast("Mapping[str, Any]", value)
        if "_state" not in state:
            return state
        value = state["_state"]
    return None


def _entries(children: Any, path: str) -> Iterable[tuple[str, Any]]:
    if isinstance(children, Mapping):
        mapping = cast("Mapping[str, Any]", children)
        return [(f"{path}.{key}", value) for key, value in mapping.items()]
    return [(f"{path}[{number}]", value) for number, value in enumerate(children)]


def _joined_path(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
