"""The fields of a Lhotse Shar put into the cuts that they belong to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playhead.errors import ManifestError
from playhead.formats.cut_rows import main_cut

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.formats.shar_record import SharRecord

__all__ = ["TAKEN", "fill_memory", "in_memory_manifest", "set_field"]

TAKEN = frozenset(("id", "type", "start", "duration", "channel", "custom", "tracks", "transforms"))
"""What a cut says itself: no field can be called so."""

_OF_CUTS = ("recording", "features", "supervisions")
_ARRAYS = {"llc": "memory_lilcom", "npy": "memory_npy"}
_FIX = "Write the shard again with SharWriter"


def set_field(data: dict[str, Any], field: str, value: Any) -> None:
    """Give a cut a field, as Lhotse does: of a mixed cut, the first cut with sound gets it.

    Parameters
    ----------
    data
        The cut; is changed.
    field
        `recording`, `features` or `supervisions`, or what is custom.
    value
        What the field is; None takes a custom one away.
    """
    cut = main_cut(data)
    if field in _OF_CUTS:
        cut[field] = value
        return
    custom = dict(cut.get("custom") or {})
    if value is None:
        custom.pop(field, None)
    else:
        custom[field] = value
    cut["custom"] = custom


def in_memory_manifest(
    manifest: Any, record: SharRecord, field: str, marker: str, where: object
) -> dict[str, Any]:
    """Make a manifest's placeholder one of bytes in memory, as Lhotse does.

    Parameters
    ----------
    manifest
        What the record says of its data, decoded; is changed.
    record
        The record.
    field
        Its field.
    marker
        Stands for the bytes until `fill_memory`.
    where
        For messages.

    Raises
    ------
    ManifestError
        If it is no recording, features or array, or one that is encoded in an unknown way.
    """
    if isinstance(manifest, dict):
        if "array" in manifest or "shape" in manifest or "num_features" in manifest:
            if "num_features" in manifest and field != "features":
                raise ManifestError(
                    f"the field {field!r} holds features, which a cut has one of: `features`",
                    where=str(where),
                    fix="Write them as an array",
                )
            array = manifest.get("array", manifest)
            if record.suffix in _ARRAYS and isinstance(array, dict):
                array["storage_type"] = _ARRAYS[record.suffix]
                array["storage_key"] = marker
                return manifest
            raise ManifestError(
                f"the array is encoded as {record.suffix!r}, which Lhotse does not know",
                where=str(where),
                fix=_FIX,
            )
        sources = manifest.get("sources")
        if isinstance(sources, list) and len(sources) == 1 and isinstance(sources[0], dict):
            sources[0]["type"] = "memory"
            sources[0]["source"] = marker
            return manifest
    raise ManifestError(
        f"the archive's JSON for the field {field!r} describes no recording, features or array",
        where=str(where),
        fix=_FIX,
    )


def fill_memory(data: dict[str, Any], in_memory: Mapping[str, bytes]) -> dict[str, Any]:
    """Put bytes in the place of their markers.

    Parameters
    ----------
    data
        A serialised cut; is changed.
    in_memory
        Bytes by marker; see `Example.in_memory`.

    Returns
    -------
    dict
        `data`.

    Examples
    --------
    >>> fill_memory({"recording": {"sources": [{"type": "memory", "source": "a"}]}}, {"a": b"RIFF"})
    {'recording': {'sources': [{'type': 'memory', 'source': b'RIFF'}]}}
    """
    if in_memory:
        _fill(data, in_memory)
    return data


def _fill(value: dict[str, Any], in_memory: Mapping[str, bytes]) -> None:
    if value.get("type") == "memory":
        value["source"] = in_memory.get(value["source"], value["source"])
    elif str(value.get("storage_type")).startswith("memory"):
        value["storage_key"] = in_memory.get(value["storage_key"], value["storage_key"])
    for key, inner in value.items():
        if isinstance(inner, dict):
            _fill(inner, in_memory)
        # Supervisions may hold an alignment of every word, and never data.
        elif isinstance(inner, list) and key != "supervisions":
            for item in inner:
                if isinstance(item, dict):
                    _fill(item, in_memory)
