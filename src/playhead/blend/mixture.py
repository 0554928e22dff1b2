"""The tree of a blend, and the share of the whole that each of its leaves has."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

from playhead.blend.weights import shares, temperatures
from playhead.config.faults import collected

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from playhead.blend.leaf import Concatenation, ExtraField, Transform
    from playhead.blend.sources import Source
    from playhead.config import Spot
    from playhead.config.faults import Faults

__all__ = ["Branch", "Mixture", "Twig", "spread"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Branch:
    """What an entry has of its own and of the groups around it; the inner wins."""

    options: Mapping[str, Any]
    """Cascaded options."""
    tags: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Attributes of its examples."""
    outer_tags: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Tags of the groups around what makes turns of tags, or around its files."""
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    """What people call its data by."""
    names: tuple[str, ...] = ()
    """Names of the groups, the outermost first."""
    concatenation: Concatenation | None = None
    """How rows are joined into samples; None where they are not."""
    transforms: tuple[Transform, ...] = ()
    """What makes other samples of them, the innermost first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Twig:
    """A leaf that has no key and no share yet."""

    weight: Any
    """Its declared weight among its siblings."""
    type: str
    """Its input type."""
    source: Source
    """Its files."""
    branch: Branch
    """What it has of its own and inherited."""
    name: str | None
    """The name that its entry gives it."""
    where: Spot
    """Its entry."""
    own: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The options that only its type has."""
    extra_fields: tuple[ExtraField, ...] = ()
    """Fields that text files add to its rows."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Mixture:
    """Siblings that are drawn from by weight."""

    weight: Any
    """Its declared weight among its own siblings."""
    children: Sequence[Node]
    """What is mixed."""
    where: Spot
    """The list of entries."""
    is_level: bool
    """Whether it is an `input_cfg`, which has a temperature, and not one entry's weighted paths."""
    temperature: float | tuple[float, ...] | None = None
    """The group's own temperature; None inherits."""

    @property
    def depth(self) -> int:
        """How deep `input_cfg` is nested, this one included."""
        below = (child.depth for child in self.children if isinstance(child, Mixture))
        return self.is_level + max(below, default=0)


Node: TypeAlias = "Mixture | Twig"


def spread(
    mixture: Mixture,
    exponents: Sequence[float],
    share: Fraction = Fraction(1),
    faults: Faults | None = None,
) -> Iterator[tuple[Twig, Fraction]]:
    """Every leaf of a tree with its share of the whole, in declared order.

    Parameters
    ----------
    mixture
        The tree.
    exponents
        Temperatures of its levels, from the top.
    share
        The share of the whole that the tree has.
    faults
        Gets impossible weights, for which siblings are taken for equal; None raises the first.

    Raises
    ------
    ConfigError
        When weights or temperatures are impossible.
    """
    if not mixture.children:
        return
    if mixture.temperature is not None:
        with collected(faults):
            exponents = temperatures(mixture.temperature, mixture.depth, mixture.where)
    exponent, rest = (exponents[0], exponents[1:]) if mixture.is_level else (1.0, exponents)
    weights = [child.weight for child in mixture.children]
    parts = [Fraction(1, len(weights))] * len(weights)
    with collected(faults):
        parts = shares(weights, exponent, mixture.where)
    for child, part in zip(mixture.children, parts, strict=True):
        if isinstance(child, Mixture):
            yield from spread(child, rest, share * part, faults)
        else:
            yield child, share * part
