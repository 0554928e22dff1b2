"""The top level of a config with `multi_config`: what it decides, and which keys are its parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING as NO_DEFAULT
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from playhead.blend.read import read_section
from playhead.blend.section import INPUTS, Section
from playhead.blend.weights import shares, whole_weight
from playhead.config import Options, Spot
from playhead.config.faults import collected
from playhead.config.keys import refuse_misspelt
from playhead.config.read import convert_option, without_missing
from playhead.errors import ConfigError

if TYPE_CHECKING:
    from playhead.blend.read import Blend
    from playhead.blend.yaml_tree import YamlTree
    from playhead.config.faults import Faults

__all__ = ["OPTION_NAMES", "Top", "at_keys"]

_FUSION = ("multi_config", "sampler_fusion", "sampler_weights")
# What the top level decides for all of its parts, with its default where it does not say.
_DECIDED = ("seed", "num_workers", "pin_memory", "shuffle", "metadata_only", "force_finite")
# What it decides where it says something.
_HANDED_DOWN = (
    "auto_index",
    "bad_samples",
    "cache_dir",
    "fault_tolerant_audio_loading",
    "indexed",
    "indexes_root",
    "index_pack_root",
    "info",
    "micro_batches_per_step",
    "multiprocessing_context",
    "on_change",
    "prefetch_factor",
)
# What a loader has but one of, whoever says it.
_ONE = ("bad_samples", "micro_batches_per_step", "multiprocessing_context", "on_change",
        "prefetch_factor")  # fmt: skip
_REQUIRED = ("seed", "shuffle")
# Given at the top level because others ask for them there; nothing follows from them.
_SILENT = frozenset(
    {"data_blend_dir", "datasets", "defaults", "index_pack_max_open_files", "shard_seed",
     "use_lhotse", "use_stateful_dataloader"}
)  # fmt: skip
OPTION_NAMES = frozenset(Options.__dataclass_fields__)
"""Names of all options: a key of such a name is no part, whatever it holds."""


class Top:
    """A section with `multi_config`.

    Parameters
    ----------
    tree, found
        The config, and which part of it the section is.
    overrides
        Options that win over all others.
    strict
        Take every unknown key for an error.

    Attributes
    ----------
    notes
        What people should be told once; it grows while parts are read.
    """

    def __init__(
        self, tree: YamlTree, found: Section, overrides: Mapping[str, Any], *, strict: bool
    ) -> None:
        self._tree = tree
        self._found = found
        self._where = Spot(tree.path, found.keys)
        self._overrides = overrides
        self._strict = strict
        self.notes: list[str] = []
        self._node: Mapping[str, Any] = at_keys(tree.content, found.keys)
        # The data of the parts stay as they stand there.
        self._given = without_missing(
            {
                name: tree.resolve(value, (*found.keys, name))
                for name, value in self._node.items()
                if name in OPTION_NAMES or not isinstance(value, (dict, list))
            }
        )
        self._options = {**self._given, **overrides}

    def read(self, faults: Faults | None = None) -> dict[str, Blend]:
        """Read its parts, by name, in the order of names.

        Parameters
        ----------
        faults
            Gets what is refused, and the rest is read all the same; None raises the first.

        Raises
        ------
        ConfigError
            When the section or one of its parts cannot be used.
        """
        with collected(faults):
            self._check()
        names = self.names()
        decided = self.handed_down()
        parts: dict[str, Blend] = {}
        for name in sorted(names):
            self._note_overridden(name, decided)
            blend = read_section(
                self._tree,
                Section((*self._found.keys, name), self._found.name),
                strict=self._strict,
                overrides={**decided, **self._overrides, "multi_config": False},
                faults=faults,
            )
            parts[name] = replace(
                blend,
                leaves=tuple(replace(leaf, name=f"{name}/{leaf.name}") for leaf in blend.leaves),
                notes=tuple(f"part {name}: {note}" for note in blend.notes),
            )
        with collected(faults):
            self._check_one(parts)
        self._note_unreached(list(parts))
        return parts

    def fusion(self) -> str:
        """How the parts take turns."""
        given = self._options.get("sampler_fusion", "round_robin")
        return convert_option("sampler_fusion", given, self._where)

    def handed_down(self) -> dict[str, Any]:
        """What every part gets from the top level."""
        decided = {name: self._options.get(name, _default(name)) for name in _DECIDED}
        handed = {name: self._options[name] for name in _HANDED_DOWN if name in self._options}
        if self._found.is_evaluation:
            decided["force_finite"] = True
        # Fusion is the top level's own matter; a part that repeats it says nothing.
        return {**decided, **handed, "sampler_fusion": "round_robin", "sampler_weights": None}

    def _check(self) -> None:
        beside = [name for name in INPUTS if self._given.get(name) is not None]
        if beside:
            raise ConfigError(
                f"the section has multi_config and names data itself: {', '.join(beside)}",
                where=str(self._where),
                fix="Move them into a sub-config of their own, or switch multi_config off",
            )
        missing = [name for name in _REQUIRED if self._options.get(name) is None]
        if missing:
            raise ConfigError(
                f"the section has multi_config and no {' and no '.join(missing)} of its own, which"
                f" {'hold' if len(missing) > 1 else 'holds'} for all parts",
                where=str(self._where),
                fix=f"Set {' and '.join(missing)} beside multi_config",
            )
        unknown = [
            name
            for name in self._node
            if name not in OPTION_NAMES
            and name not in _SILENT
            and not isinstance(self._node[name], dict)
        ]
        refuse_misspelt(unknown, OPTION_NAMES, self._where, strict=self._strict)
        hidden = [name for name in unknown if isinstance(self._given.get(name), dict)]
        if hidden:
            raise ConfigError(
                f"`{hidden[0]}` refers to a mapping that stands elsewhere",
                where=str(self._where.at(hidden[0])),
                fix="Write the sub-config out where it is used",
            )
        if unknown:
            self.notes.append(f"keys of {self._where} that mean nothing here: {', '.join(unknown)}")

    def names(self) -> list[str]:
        """The keys that hold sub-configs."""
        names: list[str] = []
        for name, value in self._node.items():
            if not isinstance(value, dict) or name in OPTION_NAMES or name in _SILENT:
                continue
            if any(value.get(key) not in (None, "", "???") for key in INPUTS):
                names.append(name)
                continue
            said = f"`{name}` is a mapping, which multi_config takes for a sub-config"
            if self._strict or not OPTION_NAMES.isdisjoint(value) or not value:
                raise ConfigError(
                    f"{said}, and it names no data",
                    where=str(self._where.at(name)),
                    fix=f"Give it {', '.join(INPUTS[:3])} or {INPUTS[3]}, or move it out of here",
                )
            self.notes.append(f"{said}; it names no data and no option, and is passed over")
        if not names:
            raise ConfigError(
                "the section has multi_config and no sub-config",
                where=str(self._where),
                fix="Give it keys that hold a mapping with data each, or switch multi_config off",
            )
        return names

    def _note_overridden(self, name: str, decided: Mapping[str, Any]) -> None:
        own = self._node[name]
        idle = [
            key
            for key in own
            if key in decided and key not in _FUSION and own[key] not in ("???", decided[key])
        ]
        if idle:
            at = self._where.at(name)
            self.notes.append(f"options of {at} that the top level decides: {', '.join(idle)}")

    def _note_unreached(self, names: list[str]) -> None:
        reaching = {*_FUSION, *_DECIDED, *_HANDED_DOWN, *_SILENT, *INPUTS}
        unreached: list[str] = []
        for key, value in self._given.items():
            if key not in OPTION_NAMES or key in reaching or value is None:
                continue
            without = [name for name in names if key not in self._node[name]]
            if key not in self._overrides and without and value != _default(key):
                unreached.append(f"{key} (not in {', '.join(without)})")
        if unreached:
            self.notes.append(
                f"options at the top level of {self._where} reach no sub-config, which have their"
                f" defaults unless they say so themselves: {', '.join(unreached)}"
            )

    def _check_one(self, parts: Mapping[str, Blend]) -> None:
        for key in _ONE:
            values = {name: getattr(blend.options, key) for name, blend in parts.items()}
            if len(set(values.values())) > 1:
                shown = ", ".join(f"{value} in {name}" for name, value in values.items())
                raise ConfigError(
                    f"`{key}` is {shown}, and a loader has but one",
                    where=str(self._where),
                    fix=f"Set {key} once, beside multi_config",
                )

    def weights(self, names: list[str], fusion: str) -> tuple[int, ...]:
        """The weight of each part where turns are drawn at random, as whole numbers."""
        given = self._options.get("sampler_weights")
        where = self._where.at("sampler_weights")
        if given is None:
            return (1,) * len(names)
        if fusion != "randomized_round_robin":
            self.notes.append(f"sampler_weights has no effect with sampler_fusion: {fusion}")
            return (1,) * len(names)
        if not isinstance(given, Mapping):
            raise ConfigError(
                f"`sampler_weights` is a {type(given).__name__}, and has to be a mapping",
                where=str(where),
                fix=f"Give each part its weight: {{{', '.join(f'{name}: 1' for name in names)}}}",
            )
        missing = [name for name in names if given.get(name) is None]
        strangers = [str(name) for name in given if name not in names]
        if missing or strangers:
            said = [f"no weight for {', '.join(missing)}"] if missing else []
            said += [f"one for {', '.join(strangers)}, which is no part"] if strangers else []
            raise ConfigError(
                f"`sampler_weights` has {' and '.join(said)}",
                where=str(where),
                fix=f"Give a weight to each of {', '.join(names)}",
            )
        found = shares([given[name] for name in names], 1.0, where)
        return tuple(whole_weight(share) for share in found)


def _default(name: str) -> Any:
    default = Options.__dataclass_fields__[name].default
    return None if default is NO_DEFAULT else default


def at_keys(node: Any, keys: tuple[str, ...]) -> Any:
    """What stands at the end of a way through nested mappings."""
    for key in keys:
        node = node[key]
    return node
