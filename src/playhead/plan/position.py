"""The whole checkpoint: a position in the plan, small and made of JSON types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from playhead.errors import PlayheadError, PositionError
from playhead.plan.batching import Batching
from playhead.plan.progress import LeafProgress, PassOrder
from playhead.plan.settings import Shape
from playhead.plan.values import changed_fields

__all__ = ["PLAN_VERSION", "POSITION_VERSION", "TOO_LARGE", "Link", "Position", "order_of_passes"]

POSITION_VERSION = 1
"""Version of the layout of a position."""
PLAN_VERSION = 1
"""Version of the algorithm: the same position under another one is another plan."""

_DEFAULT_SHAPE = Shape()
_DEFAULT_BATCHING = Batching(batch_size=1)
_KEYS = {
    "version", "plan", "seed", "next_seed", "W", "step", "window", "leaves", "shape", "weights",
    "order", "read", "moved", "chain",
}  # fmt: skip
# What a run could never reach, and arrays of 64 bits cannot hold together.
TOO_LARGE = 1 << 60
_REQUIRED = ("version", "plan", "seed", "W", "step", "window", "leaves", "chain")


@dataclass(frozen=True, kw_only=True, slots=True)
class Link:
    """A stretch of a window that was cut in one way."""

    batching: Batching
    """What it was cut with."""
    add: int
    """Windows that were added to what the link before had left."""
    steps: int
    """Steps of it that were handed out."""
    further: int = 0
    """Draws beyond the windows that filled up its last step; 0 until a step is handed out."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Position:
    """Everything that decides what comes next, beside the data and the settings.

    Examples
    --------
    >>> Position.from_json({"epoch": 3})
    Traceback (most recent call last):
    ...
    playhead.errors.PositionError: This state is not a position of Playhead: it has no 'version'. \
Load the state that Playhead's loader saved.
    """

    seed: int
    """The seed of the running window."""
    next_seed: int | None = None
    """The seed from the next window on, where it is to change."""
    window_draws: int
    """Draws per window, W."""
    step: int
    """Optimizer steps handed out since the start of training."""
    window: int
    """Number of the first window of the chain."""
    leaves: Mapping[str, LeafProgress]
    """Where each leaf stood at the start of that window, in the order of their keys."""
    shape: Shape
    """What the window is drawn with."""
    weights: tuple[int, ...]
    """Weight of each of `leaves` in this window; in a finite pass 1, or 0 where one is absent."""
    order: tuple[int, ...] | None = None
    """Declared order of `leaves` (their numbers) where it matters and is not that of their keys."""
    read: tuple[int, ...] | None = None
    """Samples of each of `leaves` handed out since the start of that window; None for none."""
    moved: Mapping[str, str] = field(default_factory=dict)
    """Present key of a leaf that was moved, to the key that its progress is kept under."""
    chain: tuple[Link, ...]
    """How the window was cut, link by link."""

    @property
    def micro_batches_per_step(self) -> int:
        """Micro-batches of a global step, G, as the running link has it."""
        return self.chain[-1].batching.micro_batches_per_step

    @property
    def latest_seed(self) -> int:
        """The seed that was asked for last: the one to compare a config with."""
        return self.seed if self.next_seed is None else self.next_seed

    @property
    def pass_(self) -> int:
        """Number of the pass, where the plan is finite."""
        return next(iter(self.leaves.values())).pass_

    @property
    def order_of_passes(self) -> PassOrder:
        """How passes that begin in this window are ordered."""
        return order_of_passes(self.shape)

    @property
    def is_window_start(self) -> bool:
        """Whether nothing of the window was handed out."""
        return not any(link.steps for link in self.chain)

    def to_json(self) -> dict[str, Any]:
        """Return the position as JSON types; at most 1 KB and 70 bytes a leaf."""
        base_order = order_of_passes(self.shape)
        state: dict[str, Any] = {
            "version": POSITION_VERSION,
            "plan": PLAN_VERSION,
            "seed": self.seed,
            "W": self.window_draws,
            "step": self.step,
            "window": self.window,
            "leaves": {
                key: _progress_to_json(leaf, self.seed, base_order, self.shape.slice_length)
                for key, leaf in self.leaves.items()
            },
            "shape": changed_fields(self.shape, _DEFAULT_SHAPE),
            "chain": _chain_to_json(self.chain),
        }
        if any(weight != 1 for weight in self.weights):
            state["weights"] = list(self.weights)
        for name, value in (("order", self.order), ("read", self.read)):
            if value is not None:
                state[name] = list(value)
        if self.moved:
            state["moved"] = dict(self.moved)
        if self.next_seed is not None:
            state["next_seed"] = self.next_seed
        return state

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> Position:
        """Return the position that `to_json` made.

        Raises
        ------
        PositionError
            When the state is not a position, or one of another version.
        """
        _check_versions(state)
        try:
            position = _parsed(state)
        except (PlayheadError, AttributeError, KeyError, TypeError, ValueError) as error:
            raise PositionError(
                f"this state is a damaged position of Playhead: {error}",
                fix="Load the state as it was saved",
            ) from error
        if position.read is None and not position.is_window_start:
            raise PositionError(
                "this state is a part of a position of Playhead: it does not say how many samples"
                " of each source were handed out",
                fix="Load all of it. With torch.distributed.checkpoint, save it as one object:"
                " playhead.integrations.dcp.LoaderPosition(loader)",
            )
        return position


def _check_versions(state: Mapping[str, Any]) -> None:
    fix = "Load the state that Playhead's loader saved"
    if not isinstance(state, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]  # a state comes from anywhere
        raise PositionError(
            f"this state is not a position of Playhead: it is a {type(state).__name__}", fix=fix
        )
    for name in _REQUIRED:
        if name not in state:
            raise PositionError(
                f"this state is not a position of Playhead: it has no {name!r}", fix=fix
            )
    for name, what, mine in (
        ("version", "layout", POSITION_VERSION),
        ("plan", "algorithm", PLAN_VERSION),
    ):
        if state[name] != mine or isinstance(state[name], bool):
            raise PositionError(
                f"this state has version {state[name]!r} of the {what}, and this Playhead has"
                f" version {mine}",
                fix="Resume with the version of Playhead that saved it, or start anew",
            )
    unknown = sorted(set(map(str, state)) - _KEYS)
    if unknown:
        raise PositionError(
            f"this state is not a position of Playhead: it has {', '.join(unknown)}", fix=fix
        )


def _parsed(state: Mapping[str, Any]) -> Position:
    seed = _whole(state["seed"])
    shape = replace(_DEFAULT_SHAPE, **state.get("shape", {}))
    leaves = {
        str(key): _progress_from_json(entry, seed, order_of_passes(shape), shape.slice_length)
        for key, entry in sorted(state["leaves"].items())
    }
    if not leaves:
        raise ValueError("it has no leaves")
    columns = {
        name: None if state.get(name) is None else tuple(_whole(v, least=0) for v in state[name])
        for name in ("weights", "order", "read")
    }
    for name, values in columns.items():
        if values is not None and len(values) != len(leaves):
            raise ValueError(f"{name} has {len(values)} numbers for {len(leaves)} leaves")
    next_seed = state.get("next_seed")
    return Position(
        seed=seed,
        next_seed=None if next_seed is None else _whole(next_seed),
        window_draws=_whole(state["W"], least=1),
        step=_whole(state["step"], least=0),
        window=_whole(state["window"], least=0),
        leaves=leaves,
        shape=shape,
        weights=columns["weights"] or (1,) * len(leaves),
        order=columns["order"],
        read=columns["read"],
        moved={str(key): str(value) for key, value in state.get("moved", {}).items()},
        chain=_chain_from_json(state["chain"]),
    )


def _whole(value: Any, least: int | None = None) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{value!r} is not a whole number")
    if least is not None and not least <= value < TOO_LARGE:
        raise ValueError(f"{value} is below {least}, or absurdly large")
    return value


def order_of_passes(shape: Shape) -> PassOrder:
    """How passes that begin in a window of that shape are ordered."""
    return shape.locality if shape.shuffle else "declared"


def _progress_to_json(
    leaf: LeafProgress, seed: int, order: PassOrder, slice_length: int | None
) -> list[Any]:
    entry: list[Any] = [leaf.pass_, leaf.done, leaf.rows, leaf.fingerprint]
    extra: dict[str, Any] = {}
    if (leaf.next_rows, leaf.next_fingerprint) != (leaf.rows, leaf.fingerprint):
        extra["next"] = [leaf.next_rows, leaf.next_fingerprint]
    if leaf.seed != seed:
        extra["seed"] = leaf.seed
    if leaf.order != order:
        extra["order"] = leaf.order
    slices = (leaf.slice_length, leaf.next_slice_length)
    if slices != (slice_length, slice_length):
        extra["slices"] = list(slices)
    return [*entry, extra] if extra else entry


def _progress_from_json(
    entry: Any, seed: int, order: PassOrder, slice_length: int | None
) -> LeafProgress:
    pass_, done, rows, fingerprint, *rest = entry
    extra = rest[0] if rest else {}
    next_rows, next_fingerprint = extra.get("next", (rows, fingerprint))
    if extra.get("order", order) not in ("declared", "rows", "shards"):
        raise ValueError(f"{extra['order']!r} is no order")
    now, later = (
        None if length is None else _whole(length, least=1)
        for length in extra.get("slices", (slice_length, slice_length))
    )
    return LeafProgress(
        pass_=_whole(pass_, least=0),
        done=_whole(done, least=0),
        rows=_whole(rows, least=done),
        fingerprint=str(fingerprint),
        seed=_whole(extra.get("seed", seed)),
        order=extra.get("order", order),
        slice_length=now,
        next_rows=_whole(next_rows, least=0),
        next_fingerprint=str(next_fingerprint),
        next_slice_length=later,
    )


def _chain_to_json(chain: tuple[Link, ...]) -> list[list[Any]]:
    """Return a link holds what changed since the one before, so that bins are written once."""
    state: list[list[Any]] = []
    base = _DEFAULT_BATCHING
    for link in chain:
        entry = [changed_fields(link.batching, base), link.add, link.steps]
        state.append([*entry, link.further] if link.further else entry)
        base = link.batching
    return state


def _chain_from_json(state: Any) -> tuple[Link, ...]:
    chain: list[Link] = []
    batching = _DEFAULT_BATCHING
    for changed, add, steps, *further in state:
        batching = replace(batching, **changed)
        chain.append(
            Link(
                batching=batching,
                add=_whole(add, least=0),
                steps=_whole(steps, least=0),
                further=_whole(further[0], least=1) if further else 0,
            )
        )
    if not chain or chain[0].add < 1:
        raise ValueError("its chain of links does not begin with a window")
    return tuple(chain)
