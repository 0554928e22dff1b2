"""What one entry of a blend says, by its type."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from playhead.blend.leaf import Concatenation, ExtraField, Transform
from playhead.blend.section import INPUTS
from playhead.blend.transforms import TRANSFORMS
from playhead.blend.types import InputType, declared, type_names
from playhead.config import STATUS
from playhead.config.keys import nearest, refuse_misspelt
from playhead.config.read import convert_option, without_missing
from playhead.config.values import MISSING, convert
from playhead.errors import ConfigError

if TYPE_CHECKING:
    from playhead.config import Spot

__all__ = ["CASCADED", "CONCATENATED", "GROUP", "Entry", "Remarks", "read_entry"]

GROUP = "group"
"""The type of entries that hold entries."""
CONCATENATED = "lhotse_concat"
"""The type of entries whose rows are joined into longer samples."""
CASCADED = (
    "audio_locator_tag",
    "channel_selector",
    "fault_tolerant_audio_loading",
    "force_finite",
    "index_pack",
    "index_pack_root",
    "indexed",
    "indexes_root",
    "input_sampling_rate",
    "lang_field",
    "slice_length",
    "text_field",
    "token_equivalent_duration",
)
"""The options of a section that its entries inherit and may override."""
_COMMON = ("extra_fields", "name", "tags", "type", "weight")
# Further options that say something of one entry, though nothing here depends on them yet.
_UNUSED = (
    "index_pack_max_open_files",
    "max_open_streams",
    "metadata_only",
    "skip_missing_manifest_entries",
)
_KNOWN = frozenset({*_COMMON, *CASCADED, *INPUTS, *_UNUSED, "reweight_temperature"})
_ROW_KEYS = frozenset(
    {
        "_skipme",
        "audio",
        "audio_filepath",
        "duration",
        "id",
        "lang",
        "offset",
        "sampling_rate",
        "text",
    }
)
# Conversations and prompts look for them among the tags.
_OF_TAGS = ("context", "override_system_prompt", "system_prompt")
_NO_TYPE = InputType(name=GROUP, inputs={})


@dataclass(slots=True)
class Remarks:
    """What was noticed in the entries of a blend, said once for all of them."""

    strict: bool = False
    """Whether unknown keys are errors."""
    misplaced: dict[str, None] = field(default_factory=dict[str, None])
    """Options that only work for a whole section."""
    untagged: dict[str, None] = field(default_factory=dict[str, None])
    """Keys that mean something below `tags` alone."""

    def notes(self) -> list[str]:
        """One sentence each."""
        said: list[str] = []
        if self.misplaced:
            listed = ", ".join(self.misplaced)
            said.append(f"options that have no effect in an entry, but in its section: {listed}")
        if self.untagged:
            listed = ", ".join(self.untagged)
            said.append(f"keys of entries that have no effect but below `tags`: {listed}")
        return said


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """An entry, checked."""

    type: str
    """Its input type, `group`, or `nemo_tarred` for a `nemo` with tars."""
    name: str | None
    """The name that it gives itself."""
    weight: Any
    """Its weight as declared."""
    tags: dict[str, Any]
    """Its tags."""
    labels: dict[str, str]
    """The keys that are nobody's: what people call their data by."""
    options: dict[str, Any]
    """The cascaded options that it sets."""
    temperature: float | tuple[float, ...] | None
    """The temperature of its own levels."""
    children: Any
    """The entries inside it; None where it names files itself."""
    specs: dict[str, Any]
    """Role to the paths that it declares, in the form that it has them."""
    own: dict[str, Any]
    """The options that only its type has."""
    extra_fields: tuple[ExtraField, ...]
    """Fields that text files add to its rows."""
    concatenation: Concatenation | None
    """How its rows are joined; None where they are not."""
    transform: Transform | None
    """What it makes of the samples of the entries inside it; None where nothing."""


def read_entry(given: Any, where: Spot, remarks: Remarks) -> Entry:
    """Check an entry.

    Parameters
    ----------
    given
        What the config has.
    where
        Its place.
    remarks
        Gets what people should be told once.

    Raises
    ------
    ConfigError
        When something is missing or impossible, or a key looks misspelt.
    """
    if not isinstance(given, dict):
        raise ConfigError(
            f"an entry of a blend is {_shown(given)}, and has to be a mapping",
            where=str(where),
            fix="Give it a type and its paths; a YAML file goes below `input_cfg` of a group",
        )
    entry = without_missing(cast("dict[str, Any]", given))
    type_ = _type_of(entry, where)
    kind = declared(type_) or _NO_TYPE
    transform = TRANSFORMS.get(type_)
    defaults = kind.own if transform is None else transform.own
    own = {key: entry.pop(key, default) for key, default in defaults.items()}
    own = {key: value for key, value in own.items() if key not in kind.idle}
    joined = _concatenation(entry, where) if type_ == CONCATENATED else None
    known = _KNOWN.union(kind.inputs.values(), defaults)
    unknown = [key for key in entry if key not in STATUS and key not in known]
    refuse_misspelt(unknown, known, where, strict=remarks.strict)
    options = {
        key: convert_option(key, value, where) for key, value in entry.items() if key in STATUS
    }
    remarks.untagged |= dict.fromkeys(key for key in unknown if key in _OF_TAGS)
    remarks.misplaced |= dict.fromkeys(key for key in options if key not in known)
    children = None
    if kind is _NO_TYPE:
        children = options.pop("input_cfg", None)
        if children is None and type_ != GROUP:
            children = _inner(options, type_, where)
    given_paths = {**{key: entry[key] for key in entry if key not in STATUS}, **options}
    specs = _roles(kind, type_, given_paths, where)
    return Entry(
        type="nemo_tarred" if type_ == "nemo" and "tar" in specs else type_,
        name=_name(entry, where),
        weight=entry.get("weight"),
        tags=_tags(entry, where),
        labels={key: _text(entry[key]) for key in unknown if entry[key] is not None},
        options={key: options[key] for key in CASCADED if key in options},
        temperature=options.get("reweight_temperature"),
        children=children,
        specs=specs,
        own=own if transform is None else {},
        extra_fields=_extra_fields(entry, type_, where),
        concatenation=joined,
        transform=None if transform is None else Transform(type_, own),
    )


def _type_of(entry: dict[str, Any], where: Spot) -> str:
    type_ = entry.get("type")
    types = type_names() | {GROUP, CONCATENATED, *TRANSFORMS}
    if isinstance(type_, str) and type_ in types:
        return type_
    if type_ is None:
        typed = nearest("type", frozenset(entry)) if entry else None
        hint = f"Write `type` for `{typed}`" if typed else "Give it one, such as `nemo`"
        raise ConfigError("an entry of a blend has no type", where=str(where), fix=hint)
    meant = nearest(str(type_), types)
    raise ConfigError(
        f"the input type {type_!r} is not known",
        where=str(where.at("type")),
        fix=f"Write `{meant}`" if meant else f"Use one of {', '.join(sorted(types))}",
    )


def _roles(kind: InputType, type_: str, entry: dict[str, Any], where: Spot) -> dict[str, Any]:
    roles = kind.inputs
    keys = dict.fromkeys((*INPUTS, *roles.values()))
    specs = {key: entry[key] for key in keys if entry.get(key) not in (None, MISSING)}
    foreign = [key for key in specs if key not in roles.values()]
    if foreign:
        raise ConfigError(
            f"`{foreign[0]}` does not belong to an entry of type `{type_}`",
            where=str(where.at(foreign[0])),
            fix="Correct the type, or remove the key",
        )
    for role, key in roles.items():
        if role not in kind.optional and key not in specs:
            raise ConfigError(
                f"an entry of type `{type_}` has no `{key}`", where=str(where), fix=f"Add `{key}`"
            )
    found = {role: specs[key] for role, key in roles.items() if key in specs}
    return _by_field(found["shar"], where) if isinstance(found.get("shar"), dict) else found


def _by_field(shards: dict[str, Any], where: Spot) -> dict[str, Any]:
    """The roles of `{field: shards}`, the cuts first."""
    if "cuts" not in shards:
        raise ConfigError(
            f"`shar_path` names {', '.join(map(str, shards)) or 'no field'} and not the cuts",
            where=str(where.at("shar_path")),
            fix="Add `cuts`, the manifests that the other fields belong to",
        )
    return {"cuts": shards["cuts"], **shards}


def _concatenation(entry: dict[str, Any], where: Spot) -> Concatenation:
    values: dict[str, float] = {}
    for key, least in (("max_duration", 0.001), ("gap", 0.0)):
        value = entry.pop(key, None)
        if value is None and key == "gap":
            continue
        number = _seconds(value)
        if not isinstance(number, float) or not least <= number < float("inf"):
            raise ConfigError(
                f"`{key}` of `{CONCATENATED}` is {_shown(value)}, and has to be a number of seconds"
                f" of at least {least:g}",
                where=str(where.at(key)),
                fix="Give the longest joined sample as max_duration, the silence between as gap",
            )
        values[key] = number
    return Concatenation(**values)


def _seconds(value: Any) -> float | None:
    try:
        return convert(value, float)
    except ValueError:
        return None


def _inner(options: dict[str, Any], type_: str, where: Spot) -> list[dict[str, Any]]:
    """The one entry inside an entry that names the files of that one itself."""
    for inner, key in (
        ("lhotse_shar", "shar_path"),
        ("lhotse", "cuts_path"),
        ("nemo", "manifest_filepath"),
    ):
        if options.get(key) is not None:
            keys = (key, "tarred_audio_filepaths") if inner == "nemo" else (key,)
            return [{"type": inner, **{name: options.pop(name, None) for name in keys}}]
    raise ConfigError(
        f"an entry of type `{type_}` names no data",
        where=str(where),
        fix="Add `input_cfg`, `cuts_path`, `shar_path` or `manifest_filepath`",
    )


def _extra_fields(entry: dict[str, Any], type_: str, where: Spot) -> tuple[ExtraField, ...]:
    given = entry.get("extra_fields")
    if not given:
        return ()
    if declared(type_) is None:
        raise ConfigError(
            f"`extra_fields` does not belong to an entry of type `{type_}`",
            where=str(where.at("extra_fields")),
            fix="Give them to the entries inside it",
        )
    try:
        fields = tuple(ExtraField(**item) for item in given)
        texts: list[Any] = [text for item in fields for text in (item.name, item.path)]
        good = all(isinstance(text, str) and text for text in texts) and all(
            item.type in ("text_iter", "text_sample") for item in fields
        )
        names = [item.name for item in fields]
        good = good and len(set(names)) == len(names) and _ROW_KEYS.isdisjoint(names)
    except TypeError:
        fields, good = (), False
    if not good:
        raise ConfigError(
            f"the extra fields {_shown(given)} have no known form",
            where=str(where.at("extra_fields")),
            fix="List {type: text_iter, name: …, path: …}, or text_sample; each name comes once,"
            " and is none that rows have anyway, such as text or duration",
        )
    return fields


def _name(entry: dict[str, Any], where: Spot) -> str | None:
    name = entry.get("name")
    if name is None or (isinstance(name, str) and name.strip()):
        return name
    raise ConfigError(
        f"the name {_shown(name)} is not a text",
        where=str(where.at("name")),
        fix="Write it in quotes, or leave it out",
    )


def _tags(entry: dict[str, Any], where: Spot) -> dict[str, Any]:
    tags = entry.get("tags")
    if tags is None:
        return {}
    if isinstance(tags, dict) and all(isinstance(key, str) for key in cast("dict[Any, Any]", tags)):
        return cast("dict[str, Any]", tags)
    raise ConfigError(
        f"the tags are {_shown(tags)}, and have to be a mapping",
        where=str(where.at("tags")),
        fix="Write `name: value` below `tags`",
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _shown(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else text[:57] + "…"
