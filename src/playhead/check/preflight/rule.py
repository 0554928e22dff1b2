"""The rules of the pre-flight: one function each, with an id, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from playhead.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from playhead.check.preflight.finding import Severity
    from playhead.check.preflight.subject import Subject

    Look: TypeAlias = Callable[[Subject], Iterable["Seen"]]

__all__ = ["CannotRun", "Rule", "Seen", "rule", "rules"]


class CannotRun(Exception):  # noqa: N818 - it is no error
    """A rule has nothing to look at, because of something that another rule says."""


class Seen(NamedTuple):
    """What a rule has seen in one place."""

    saw: str
    """What, a sentence without its full stop."""
    where: str | None = None
    """The place."""
    change: tuple[str, ...] = ()
    """What to change in the config, as lines of a diff."""
    advice: str | None = None
    """What to do, a sentence without its full stop."""
    severity: Severity | None = None
    """How bad it is, where that is not the rule's own."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """Something that is looked at before training."""

    id: str
    """What it is called, in kebab-case."""
    severity: Severity
    """How bad it is as a rule."""
    why: str
    """Why it matters, a sentence without its full stop."""
    look: Look
    """Looks, and gives what it sees."""
    numbers: tuple[int, ...] = ()
    """The numbers that it has among the rules for resumable training; none of Playhead's own."""


_RULES: dict[str, Rule] = {}


def rule(id_: str, severity: Severity, why: str, *numbers: int) -> Callable[[Look], Look]:
    """Make a function a rule: a decorator.

    Parameters
    ----------
    id_
        What it is called.
    severity
        How bad what it sees is, where it does not say.
    why
        Why that matters, a sentence without its full stop.
    *numbers
        The numbers that it has among the rules for resumable training.
    """

    def add(look: Look) -> Look:
        assert id_ not in _RULES, id_
        _RULES[id_] = Rule(id=id_, severity=severity, why=why, look=look, numbers=numbers)
        return look

    return add


def rules() -> Iterator[Rule]:
    """All rules, in the order in which they are said."""
    # Each module adds its own when it is imported.
    from playhead.check.preflight import (  # noqa: PLC0415
        fetch_rules,
        first_batch,
        indexes,
        launcher,
        node_rules,
        options,
        reading,
        sources,
        space,
        storage,
        tokens,
        weights,
    )

    groups = (
        reading, sources, weights, options, tokens, indexes, storage, launcher, space,
        first_batch, node_rules, fetch_rules,
    )  # fmt: skip
    for group in groups:
        name = group.__name__
        yield from (one for one in _RULES.values() if one.look.__module__ == name)


def check_ids(ids: Iterable[str]) -> frozenset[str]:
    """Return ids of rules, known to be ids of rules.

    Raises
    ------
    ConfigError
        If one is none; near ones are named.
    """
    from difflib import get_close_matches  # noqa: PLC0415  (for a message alone)

    known = [one.id for one in rules()]
    for id_ in ids:
        if id_ not in known:
            near = get_close_matches(id_, known, 3, 0.4)
            raise ConfigError(
                f"there is no rule {id_!r}",
                where="--ignore",
                fix=f"Use {' or '.join(near)}" if near else "Take an id from the output of check",
            )
    return frozenset(ids)
