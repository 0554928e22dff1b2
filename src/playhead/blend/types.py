"""The input types that a blend may name, and the keys that each of them has."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from playhead.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.blend.leaf import Kind

__all__ = ["InputType", "declare", "declared", "has_texts", "has_turns", "type_names"]


@dataclass(frozen=True, kw_only=True, slots=True)
class InputType:
    """An input type as an entry of a blend names it."""

    name: str
    """What `type` says."""
    inputs: Mapping[str, str]
    """Role of the files to the entry's key that holds their paths; the first role is the main."""
    optional: frozenset[str] = frozenset()
    """Roles that an entry may leave out."""
    own: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The options that only this type has, with their defaults."""
    is_stream: bool = False
    """Whether it repeats even where it stands alone, as tars do; a file of rows ends by itself."""
    kind: Kind = "cut"
    """What its samples are."""
    idle: frozenset[str] = frozenset()
    """Own options that are accepted and mean nothing here."""
    lines: Mapping[str, str] = field(default_factory=dict)
    """Own options that name text files, to the field that a line of them is of each sample."""


_TYPES: dict[str, InputType] = {}


def declare(input_type: InputType) -> None:
    """Make an input type known to blends; declaring the same again changes nothing.

    Raises
    ------
    ConfigError
        If the name is taken by another type, or no role is given.
    """
    known = _TYPES.get(input_type.name)
    if known is not None and known != input_type:
        raise ConfigError(
            f"the input type `{input_type.name}` is declared twice",
            fix="Give one of them another name",
        )
    if not input_type.inputs:
        raise ConfigError(
            f"the input type `{input_type.name}` names no files",
            fix="Give it at least one role, such as manifest: manifest_filepath",
        )
    _TYPES[input_type.name] = input_type


def declared(name: str) -> InputType | None:
    """Return an input type by its name; None where there is none."""
    return _TYPES.get(name)


def type_names() -> frozenset[str]:
    """Names of the input types that may be used.

    Examples
    --------
    >>> "nemo_tarred" in type_names()
    True
    """
    return frozenset(_TYPES)


def has_turns(name: str) -> bool:
    """Whether the rows of an input type are conversations, which have any number of audio turns.

    Examples
    --------
    >>> has_turns("share_gpt"), has_turns("nemo")
    (True, False)
    """
    of_name = declared(name)
    return of_name is not None and of_name.kind == "conversation"


def has_texts(name: str) -> bool:
    """Whether the rows of an input type are texts, which those without one are left out of.

    Examples
    --------
    >>> has_texts("txt_jsonl"), has_texts("nemo")
    (True, False)
    """
    of_name = declared(name)
    return of_name is not None and of_name.kind == "text"


_NEMO = {"manifest": "manifest_filepath", "tar": "tarred_audio_filepaths"}
_TEXT = {"text": "paths"}
_TAR = frozenset({"tar"})
for _type in (
    InputType(name="nemo", inputs=_NEMO, optional=_TAR),
    InputType(name="nemo_tarred", inputs=_NEMO),
    InputType(name="lhotse", inputs={"cuts": "cuts_path"}),
    InputType(name="lhotse_shar", inputs={"shar": "shar_path"}, is_stream=True),
    InputType(
        name="parquet",
        inputs={"parquet": "manifest_filepath"},
        own={
            "audio_field": "audio",
            "duration_field": "duration",
            "id_field": "id",
            "sampling_rate": None,
        },
        is_stream=True,
    ),
    InputType(name="txt", inputs=_TEXT, own={"language": None}, is_stream=True, kind="text"),
    InputType(name="txt_jsonl", inputs=_TEXT, own={"language": None}, is_stream=True, kind="text"),
    InputType(
        name="txt_pair",
        inputs={"source": "source_paths", "target": "target_paths"},
        own={
            "source_language": None,
            "target_language": None,
            "questions_path": None,
            "questions_language": None,
        },
        is_stream=True,
        kind="pair",
        lines={"questions_path": "question"},
    ),
    InputType(
        name="nemo_sft_jsonl", inputs=_TEXT, own={"language": None}, is_stream=True, kind="sft"
    ),
    # Its users write it so.
    InputType(name="nemotron_text_converation", inputs=_TEXT, is_stream=True, kind="conversation"),
    InputType(
        name="materialized_sft_messages",
        inputs=_TEXT,
        own={"validate_chunk_tokenization": True},
        is_stream=True,
        kind="messages",
    ),
    InputType(
        name="multimodal_conversation",
        inputs=_NEMO,
        optional=_TAR,
        is_stream=True,
        kind="conversation",
    ),
    InputType(
        name="share_gpt",
        inputs=_NEMO,
        optional=_TAR,
        own={
            "approved_exclusion_audit_sha256": None,
            "audio_path_prefix_map": None,
            "audio_placeholders": None,
            "audio_root": None,
            "excluded_manifest_lines": None,
            "excluded_manifest_lines_sha256": None,
            "tar_lookup_mode": None,
            "tar_routing_filepath": None,
            "tar_routing_index": None,
        },
        is_stream=True,
        kind="conversation",
    ),
    InputType(
        name="share_gpt_webdataset",
        inputs={"data_dir": "data_dir"},
        own={"audio_placeholders": None, "wds_sample_index_version": 1},
        is_stream=True,
        kind="conversation",
    ),
    InputType(
        name="multi_speaker_simulator",
        inputs={"manifest": "manifest_filepath"},
        own={
            "global_rank": None,
            "is_tarred": False,
            "max_duration": 60.0,
            "min_delay": 0.5,
            "min_duration": 0.1,
            "num_mixtures": None,
            "num_speakers": 2,
            "sample_rate": 16000,
            "simulator_type": "lsmix",
            "world_size": None,
        },
        idle=frozenset({"global_rank", "is_tarred", "sample_rate", "world_size"}),
        is_stream=True,
    ),
):
    declare(_type)
