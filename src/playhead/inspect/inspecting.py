"""A checkpoint looked at, whoever wrote it: the one entry of `playhead inspect`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from playhead.errors import PlayheadError
from playhead.inspect.config_files import Asked, configs_beside
from playhead.inspect.containers import MOST_BYTES
from playhead.inspect.finding import nothing_found
from playhead.inspect.loading import chosen, load_checkpoint
from playhead.inspect.nemo_ranks import with_ranks_joined
from playhead.inspect.nemo_summary import summarise_nemo
from playhead.inspect.own import summarise_own
from playhead.inspect.replay import MOST_REPLAYED

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.inspect.containers import Payload
    from playhead.inspect.loading import Loaded
    from playhead.inspect.summary import Summary

__all__ = ["Limits", "inspect_checkpoint", "inspect_loaders"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """How far one goes to look at a checkpoint."""

    allow_full_load: bool = False
    """Let `torch.load` run what stands in a file where it cannot be read otherwise."""
    most_full_load_bytes: int = MOST_BYTES
    """A file that holds more beside its tensors is refused."""
    most_replayed: int = MOST_REPLAYED
    """Draws that are planned again at most, for the padding of all steps and the steps left."""


_DEFAULT = Asked()
_LIMITS = Limits()


def inspect_checkpoint(
    path: str | Path,
    config: str | Path | None = None,
    *,
    asked: Asked = _DEFAULT,
    limits: Limits = _LIMITS,
    loader: str | None = None,
) -> Summary:
    """Say how far every source of a checkpoint has been read; nothing is run or changed.

    Parameters
    ----------
    path
        A file, a folder, or an `eval-step-N` folder.
    config
        The config that it was trained with; None looks beside the checkpoint.
    asked
        How the config is read.
    limits
        How far one goes.
    loader
        Where the position stands in the checkpoint, or the end of that, where there are several;
        None takes that of training.

    Raises
    ------
    SourceNotFoundError
        When there is nothing of that name.
    ConfigError
        When there is no position, or the config cannot be used.
    DataError
        When a file is damaged.
    """
    loaded = _loaded(path, limits)
    found = chosen(loaded, loader)
    if found is None:
        return _of_others(loaded, path, config, asked)
    hidden = [one.path or one.file for one in loaded.positions if one is not found]
    notes = [*loaded.notes, *_refused(loaded)]
    if hidden:
        notes.append(f"there are positions of other loaders: {', '.join(hidden)}")
    return summarise_own(
        found,
        checkpoint=path,
        config=config,
        asked=asked,
        most_replayed=limits.most_replayed,
        notes=notes,
    )


def inspect_loaders(
    path: str | Path,
    config: str | Path | None = None,
    *,
    asked: Asked = _DEFAULT,
    limits: Limits = _LIMITS,
) -> list[Summary]:
    """Say the same of every loader in a checkpoint, that of training first.

    Parameters
    ----------
    path, config, asked, limits
        As for `inspect_checkpoint`, which raises the same.
    """
    loaded = _loaded(path, limits)
    if not loaded.positions:
        return [_of_others(loaded, path, config, asked)]
    notes = [*loaded.notes, *_refused(loaded)]
    return [
        summarise_own(
            found,
            checkpoint=path,
            config=config,
            asked=asked,
            most_replayed=limits.most_replayed,
            notes=() if number else notes,
        )
        for number, found in enumerate(loaded.positions)
    ]


def _loaded(path: str | Path, limits: Limits) -> Loaded:
    return load_checkpoint(
        path,
        allow_full_load=limits.allow_full_load,
        most_full_load_bytes=limits.most_full_load_bytes,
    )


def _refused(loaded: Loaded) -> list[str]:
    if not loaded.refused:
        return []
    count = len(loaded.refused)
    which = f", the first of {count:,}" if count > 1 else ""
    return [f"passed over{which}: {loaded.refused[0]}"]


def _of_others(
    loaded: Loaded, path: str | Path, config: str | Path | None, asked: Asked
) -> Summary:
    """The first state of NeMo or Lhotse 2."""
    notes = [*loaded.notes, *_refused(loaded)]
    configs = configs_beside(path) if config is None else [config]
    for payload in with_ranks_joined(loaded.others):
        for one in configs:
            try:
                summary = _summarised(payload, path, one, asked)
            except PlayheadError as error:
                if config is not None:
                    raise
                notes.append(str(error))
                continue
            if summary is not None:
                return replace(summary, notes=(*notes, *summary.notes))
        summary = _summarised(payload, path, None, asked)
        if summary is not None:
            return replace(summary, notes=(*notes, *summary.notes))
    raise nothing_found(path, loaded.refused, files=len(loaded.others))


def _summarised(
    payload: Payload, path: str | Path, config: str | Path | None, asked: Asked
) -> Summary | None:
    return summarise_nemo(
        payload.content,
        file=payload.file,
        checkpoint=str(path),
        config=None if config is None else str(config),
        section=asked.section,
        data_blend_dir=asked.data_blend_dir,
        indexes_root=asked.indexes_root,
        index_pack_root=asked.index_pack_root,
        default_index_pack_root=asked.default_index_pack_root,
    )
