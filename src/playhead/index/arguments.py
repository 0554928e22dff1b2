"""What the arguments of `playhead index` name: configs, data files, folders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.errors import ArchiveError, ConfigError, SourceNotFoundError, StorageError
from playhead.index.found import Discovery, merge, place
from playhead.index.tar import Layout, guess_layout
from playhead.paths import exists, expand
from playhead.storage import access
from playhead.storage.compression import has_middle, is_archive, plain_name
from playhead.storage.folders import is_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.index.sidecars import Kind

__all__ = ["discover", "is_config"]

_KINDS: dict[Layout, Kind] = {"nemo": "nemo_tar", "shar": "wds_tar"}


def is_config(argument: str) -> bool:
    """Whether an argument is a blend's YAML file, by its suffix."""
    return argument.endswith((".yaml", ".yml"))


def discover(
    arguments: Sequence[str],
    *,
    indexes_root: str | None = None,
    layout: Layout | None = None,
    data_blend_dir: str | None = None,
    section: str | None = None,
) -> Discovery:
    """Find the data files of several arguments, each file once.

    Parameters
    ----------
    arguments
        Configs (`.yaml`, `.yml`), data files (`.jsonl`, `.json`, `.tar`; braces and `_OP_…_CL_`
        are expanded) and folders; data may be on stores.
    indexes_root
        Where the `.idx` belong where a config does not say; beside the data if None.
    layout
        What a sample is in the tars and folders among the arguments. None: a tar's first members
        tell, and folders are Shar.
    data_blend_dir
        What `${data_blend_dir}` stands for in the configs.
    section
        The part of the configs to look at; everything if None.

    Raises
    ------
    SourceNotFoundError
        An argument does not exist.
    ConfigError
        An argument or a config cannot be used, or two data files would share an `.idx`.
    """
    # A data file by itself needs neither YAML nor the options of blends, which are slow to load.
    found: list[Discovery] = []
    for argument in arguments:
        if is_config(argument):
            from playhead.index.discover import discover_config  # noqa: PLC0415

            found.append(
                discover_config(
                    argument,
                    indexes_root=indexes_root,
                    data_blend_dir=data_blend_dir,
                    section=section,
                )
            )
        else:
            found += [_file_or_folder(path, layout, indexes_root) for path in expand(argument)]
    return merge(found)


def _file_or_folder(path: str, layout: Layout | None, indexes_root: str | None) -> Discovery:
    is_remote = access.is_remote(path)
    if not is_remote and not exists(path):
        raise SourceNotFoundError(
            "there is no such file or folder", where=path, fix="Correct the path"
        )
    if is_folder(path):
        from playhead.index.discover import discover_folder  # noqa: PLC0415

        return discover_folder(path, kind=_KINDS[layout or "shar"], indexes_root=indexes_root)
    if not has_middle(path):
        raise ConfigError(
            "a compressed file or a pipe has no byte offsets", where=path, fix="Decompress it"
        )
    if is_remote:
        # A typing error is said at once, and by itself.
        access.stats([path])
    if is_archive(path):
        kind = _KINDS[layout or _guess(path)]
    elif plain_name(path).endswith((".jsonl", ".json")):
        kind = "jsonl"
    else:
        raise ConfigError(
            "this is neither a config nor data",
            where=path,
            fix="Give a .yaml, .jsonl, .json or .tar file, or a Shar folder",
        )
    return Discovery(sidecars=(place(path, kind, indexes_root),))


def _guess(path: str) -> Layout:
    try:
        return guess_layout(path)
    except StorageError:
        raise
    except (ArchiveError, OSError):
        # It fails again, by name, when it is built.
        return "nemo"
