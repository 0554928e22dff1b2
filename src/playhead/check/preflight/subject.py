"""What the rules look at: a config that was read as far as it can be, and where it will run."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from playhead.blend.read import open_config
from playhead.blend.several import read_blends, section_of
from playhead.blend.types import declared
from playhead.config import Spot
from playhead.errors import PlayheadError
from playhead.index.build_target import LeafSources, leaf_sources
from playhead.paths import scheme

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from playhead.blend import Blend
    from playhead.blend.leaf import Leaf
    from playhead.blend.several import Blends
    from playhead.config import Options
    from playhead.config.faults import Faults

__all__ = ["Named", "Subject", "open_subject"]


class Named(NamedTuple):
    """A leaf and where it is declared."""

    leaf: Leaf
    """The leaf."""
    spot: Spot
    """Its entry."""
    options: Options
    """The options of its section."""

    def place(self, role: str | None = None) -> Spot:
        """The key of its entry that names its files of a role; of the main one if None."""
        kind = declared(self.leaf.type)
        roles = {} if kind is None else kind.inputs
        first = next(iter(roles.values()), None)
        key = roles.get(role or "", first)
        return self.spot if key is None else self.spot.at(key)


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A config, and what is known of the place where it will be trained on."""

    config: str
    """The YAML file."""
    content: Any
    """What it holds, unresolved."""
    section: Spot
    """The section that is checked."""
    section_name: str | None
    """What it is called; None for a blend that stands alone."""
    is_evaluation: bool
    """Whether it is for validation or test."""
    blends: Blends
    """What could be read of it."""
    faults: Faults
    """What could not."""
    environment: Mapping[str, str]
    """The environment variables."""
    tokenizer: Any = None
    """What makes tokens of texts; None where it is not given."""
    data_blend_dir: str | None = None
    """What `${data_blend_dir}` stands for."""
    facts: dict[str, Any] = field(default_factory=dict[str, Any])
    """What rules found out that others want to know."""

    @cached_property
    def leaves(self) -> tuple[Named, ...]:
        """The leaves of all parts that could be read, in declared order."""
        return tuple(
            Named(leaf, spot, blend.options)
            for blend in self.blends.parts.values()
            for leaf, spot in zip(blend.leaves, blend.spots, strict=True)
        )

    @cached_property
    def sources(self) -> tuple[tuple[Named, LeafSources], ...]:
        """The leaves whose files pair, with these."""
        return tuple(self._paired())

    @cached_property
    def unpaired(self) -> list[tuple[Named, PlayheadError]]:
        """The leaves whose files do not pair, and why not."""
        _ = self.sources
        return self.facts.setdefault("unpaired", [])

    @property
    def parts(self) -> Iterator[tuple[str, Options, Blend, Spot]]:
        """Of every part its name, its options, its blend, and where it stands."""
        for name, blend in self.blends.parts.items():
            spot = self.section.at(name) if name else self.section
            yield name, blend.options, blend, spot

    @cached_property
    def schemes(self) -> frozenset[str]:
        """Schemes of all data; empty for local paths."""
        return frozenset(
            scheme(path)
            for named in self.leaves
            for paths in named.leaf.paths.values()
            for path in paths
        )

    @property
    def is_bare(self) -> bool:
        """Whether it is a list of entries, which has no room for options of a loader."""
        return isinstance(self.content, list)

    @property
    def command(self) -> str:
        """The options of commands that mean the same config."""
        folder = "" if self.data_blend_dir is None else f" --data-blend-dir {self.data_blend_dir}"
        return f"{self.config}{folder}"

    def _paired(self) -> Iterator[tuple[Named, LeafSources]]:
        unpaired: list[tuple[Named, PlayheadError]] = self.facts.setdefault("unpaired", [])
        for named in self.leaves:
            try:
                yield named, leaf_sources(named.leaf)
            except PlayheadError as error:  # noqa: PERF203 - one bad leaf hides no other
                unpaired.append((named, error))


def open_subject(
    config: str,
    *,
    section: str | None,
    data_blend_dir: str | None,
    tokenizer: Any,
    environment: Mapping[str, str],
) -> Subject:
    """Read a config as far as it can be.

    Parameters
    ----------
    config
        The YAML file.
    section
        Which section of a training config; its training section if None.
    data_blend_dir
        What `${data_blend_dir}` stands for.
    tokenizer
        What makes tokens of texts; None where nothing does.
    environment
        The environment variables.

    Raises
    ------
    ConfigError
        When it is no config at all, or has no such section.
    SourceNotFoundError
        When there is no such file.
    """
    faults: Faults = []
    blends = read_blends(config, section=section, data_blend_dir=data_blend_dir, faults=faults)
    tree, _ = open_config(config, data_blend_dir)
    found = section_of(tree, section)
    return Subject(
        config=config,
        content=tree.content,
        section=Spot(tree.path, found.keys),
        section_name=found.name,
        is_evaluation=found.is_evaluation,
        blends=blends,
        faults=faults,
        environment=environment,
        tokenizer=tokenizer,
        data_blend_dir=data_blend_dir,
    )
