"""The configs that all measurements train with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["four_leaves", "large", "plain", "shar", "tarred"]


def tarred(data: Path) -> dict[str, Any]:
    """Audio in archives."""
    shards = len(list((data / "tarred").glob("*.tar")))
    span = f"_OP_0..{shards - 1}_CL_"
    return _config(
        data,
        {
            "type": "nemo_tarred",
            "manifest_filepath": f"{data}/tarred/manifest_{span}.json",
            "tarred_audio_filepaths": f"{data}/tarred/audio_{span}.tar",
        },
    )


def shar(data: Path) -> dict[str, Any]:
    """Audio in a Lhotse Shar."""
    return _config(data, {"type": "lhotse_shar", "shar_path": str(data / "shar")})


def plain(data: Path) -> dict[str, Any]:
    """Audio in plain files."""
    return _config(data, _nemo(data / "wav/manifest.json"))


def large(data: Path) -> dict[str, Any]:
    """A large manifest without audio."""
    return _config(data, _nemo(data / "nemo/manifest.json"))


def four_leaves(data: Path) -> dict[str, Any]:
    """The same in four leaves."""
    return _config(data, *(_nemo(data / f"nemo/part_{part}.json") for part in range(4)))


def _nemo(manifest: Path) -> dict[str, Any]:
    return {"type": "nemo", "manifest_filepath": str(manifest)}


def _config(data: Path, *entries: dict[str, Any]) -> dict[str, Any]:
    return {
        "input_cfg": list(entries),
        "batch_duration": 120,
        "use_bucketing": True,
        "shuffle": True,
        "seed": 1,
        "sample_rate": 16_000,
        "auto_index": True,
        "indexes_root": str(data / "indexes"),
    }
