"""Loaders of the sets that a model is evaluated on: the call that users make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from playhead.blend.sets import read_sets
from playhead.blend.several import Blends
from playhead.datasets import SpeechToText
from playhead.errors import ConfigError, PlanError
from playhead.loader.dataloader import open_loader
from playhead.loader.peer_group import open_peer_group
from playhead.loader.peers import find_peers
from playhead.loader.ranks import find_topology

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from torch.distributed import ProcessGroup
    from torch.distributed.device_mesh import DeviceMesh

    from playhead.blend.read import Blend
    from playhead.loader.loader import Loader

__all__ = ["validation_dataloaders"]


def validation_dataloaders(
    config: str | Path | Mapping[str, Any] | Sequence[Any],
    *,
    dataset: Any = None,
    section: str | None = None,
    rank: int | None = None,
    world_size: int | None = None,
    mesh: DeviceMesh | None = None,
    dp_dims: str | int | Sequence[str | int] | None = None,
    broadcast: bool | ProcessGroup = False,
    tokenizer: Any = None,
    strict: bool = False,
    **overrides: Any,
) -> dict[str, Loader]:
    """Make a loader of each set that a model is evaluated on.

    Every `iter()` of one is the same whole pass: each sample once over all ranks, in declared order
    unless the config shuffles, and as many batches on every rank.

    Parameters
    ----------
    config
        A YAML path, a mapping, a list of entries or an OmegaConf node: a whole training config, or
        one section of it.
    dataset
        As for `dataloader`; or a mapping from the name of each set to its dataset.
    section
        Which section names the sets: those under its `datasets:`, the manifests of its list, or
        itself as one set; `validation_ds` by default.
    rank, world_size, mesh, dp_dims, broadcast, tokenizer, strict
        As for `dataloader`.
    **overrides
        Options that win over those of every set; `data_blend_dir` is what `${data_blend_dir}`
        stands for.

    Returns
    -------
    dict[str, Loader]
        By the names of the sets, in the order of the config.

    Raises
    ------
    PlayheadError
        Of many kinds: what happened, where, and what to do.
    """
    peers = find_peers(mesh, dp_dims, broadcast)
    topology = find_topology(rank, world_size, peers)
    data_blend_dir = overrides.pop("data_blend_dir", None)
    sets = read_sets(
        config,
        section=section,
        strict=strict,
        overrides=overrides,
        data_blend_dir=data_blend_dir,
    )
    datasets = _datasets(dataset, list(sets))
    group = open_peer_group(peers) if broadcast is not False and peers else None

    def opened(name: str, blend: Blend) -> Loader:
        try:
            loader = open_loader(
                Blends(parts={"": _lasting(blend)}, fusion=None, weights=(1,), notes=()),
                config,
                dataset=datasets[name],
                topology=topology,
                tokenizer=tokenizer,
                data_blend_dir=data_blend_dir,
                evaluates=True,
                broadcast=group,
            )
            # A set of which nothing is left is refused now, not in the middle of training.
            len(loader)
        except PlanError as error:
            raise PlanError(f"the set {name}: {error}") from error
        return loader

    return {name: opened(name, blend) for name, blend in sets.items()}


def _datasets(dataset: Any, names: list[str]) -> dict[str, Any]:
    """The dataset of each set."""
    if not isinstance(dataset, Mapping):
        given = SpeechToText() if dataset is None else dataset
        return dict.fromkeys(names, given)
    strange = [str(name) for name in dataset if name not in names]
    missing = [name for name in names if name not in dataset]
    if strange or missing:
        said = f"none for {', '.join(missing)}" if missing else f"some for {', '.join(strange)}"
        raise ConfigError(
            f"there are datasets by name, and {said}",
            fix=f"Give one for each of the sets: {', '.join(names)}",
        )
    return {name: dataset[name] for name in names}


def _lasting(blend: Blend) -> Blend:
    """A blend with a seed that is the same in every run: its results are compared."""
    if isinstance(blend.options.seed, int):
        return blend
    return replace(blend, options=replace(blend.options, seed=0))
