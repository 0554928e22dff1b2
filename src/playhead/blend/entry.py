"""What may stand in one entry of a blend, by its type."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from playhead.config import STATUS, Status
from playhead.config.keys import nearest, refuse_misspelt
from playhead.config.read import refuse_unbuilt
from playhead.errors import ConfigError, NotSupportedError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["GROUP", "check_entry", "input_specs", "labels_of"]

GROUP = "group"
_COMMON = ("type", "weight", "tags", "name", "input_cfg", "extra_fields")
# Role to key, for each type that works; the first role is the main one.
_INPUTS = {
    "nemo": {"manifest": "manifest_filepath", "tar": "tarred_audio_filepaths"},
    "nemo_tarred": {"manifest": "manifest_filepath", "tar": "tarred_audio_filepaths"},
    "lhotse": {"cuts": "cuts_path"},
}
_UNBUILT = (
    "lhotse_as_conversation",
    "lhotse_concat",
    "lhotse_magpietts_data_as_continuation",
    "lhotse_shar",
    "materialized_sft_messages",
    "multi_speaker_simulator",
    "multimodal_conversation",
    "nemo_sft_jsonl",
    "nemo_tarred_to_duplex",
    "nemotron_text_converation",
    "parquet",
    "s2s_as_conversation",
    "s2s_duplex_overlap_as_s2s_duplex",
    "s2s_duplex_reverse_role",
    "share_gpt",
    "share_gpt_webdataset",
    "sqa_as_conversation",
    "txt",
    "txt_jsonl",
    "txt_pair",
)
# Options of a section that an entry may have too; others have no effect in an entry.
_IN_ENTRIES = frozenset(
    {
        "audio_locator_tag",
        "channel_selector",
        "cuts_path",
        "fault_tolerant_audio_loading",
        "force_finite",
        "force_iterable_dataset",
        "force_map_dataset",
        "index_pack",
        "index_pack_max_open_files",
        "index_pack_root",
        "indexed",
        "indexes_root",
        "input_cfg",
        "input_sampling_rate",
        "lang_field",
        "manifest_filepath",
        "max_open_streams",
        "metadata_only",
        "reweight_temperature",
        "shar_path",
        "shard_seed",
        "shuffle",
        "skip_missing_manifest_entries",
        "slice_length",
        "tarred_audio_filepaths",
        "text_field",
        "token_equivalent_duration",
    }
)


def check_entry(entry: dict[str, Any], where: str, strict: bool, notes: list[str]) -> str:
    """Check the keys of an entry and return its type.

    Raises
    ------
    ConfigError
        When its type is missing or unknown, or a key looks misspelt.
    NotSupportedError
        When its type or an option is not built yet.
    """
    type_ = entry.get("type")
    if type_ is None:
        raise ConfigError("an entry has no type", where=where, fix="Give it one, such as nemo")
    if type_ in _UNBUILT:
        raise NotSupportedError(
            f"the input type {type_!r} is not supported yet",
            where=where,
            fix=f"Use one of {', '.join((*_INPUTS, GROUP))}",
        )
    if type_ != GROUP and type_ not in _INPUTS:
        meant = nearest(str(type_), (*_INPUTS, *_UNBUILT, GROUP))
        hint = f"Did you mean {meant!r}" if meant else f"Use one of {', '.join(_INPUTS)}"
        raise ConfigError(f"the input type {type_!r} is not known", where=where, fix=hint)
    tags = entry.get("tags")
    if tags is not None and not isinstance(tags, dict):
        raise ConfigError("tags are not a mapping", where=where, fix="Write key: value below tags")
    refuse_misspelt(_unknown(entry), (*_COMMON, *STATUS), where, strict=strict)
    refuse_unbuilt({key: value for key, value in entry.items() if key in STATUS}, where)
    if entry.get("extra_fields"):
        raise NotSupportedError(
            "the option 'extra_fields' is not supported yet",
            where=where,
            fix="Put the fields into the manifest",
        )
    misplaced = [key for key in entry if STATUS.get(key) is Status.WORKS and key not in _IN_ENTRIES]
    if misplaced:
        notes.append(f"{where} has {', '.join(misplaced)}, which only works for a whole section")
    return str(type_)


def labels_of(entry: Mapping[str, Any]) -> dict[str, str]:
    """The keys of an entry that are nobody's: what people call their data by."""
    return {
        key: value if isinstance(value, str) else json.dumps(value, default=str)
        for key, value in entry.items()
        if key in _unknown(entry)
    }


def input_specs(type_: str, entry: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Role to the paths that an entry declares, in the form that it has them.

    Raises
    ------
    ConfigError
        When paths are missing.
    """
    roles = _INPUTS[type_]
    specs = {role: entry[key] for role, key in roles.items() if entry.get(key) is not None}
    main, key = next(iter(roles.items()))
    if main not in specs:
        raise ConfigError(f"an entry of type {type_} has no {key}", where=where, fix=f"Add {key}")
    if type_ == "nemo_tarred" and "tar" not in specs:
        raise ConfigError(
            "an entry of type nemo_tarred has no tarred_audio_filepaths",
            where=where,
            fix="Add them, or make it type: nemo",
        )
    return specs


def _unknown(entry: Mapping[str, Any]) -> list[str]:
    return [key for key in entry if key not in STATUS and key not in _COMMON]
