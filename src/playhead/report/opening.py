"""From a config to the figures of its report: the call that users make."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from playhead.loader.planned import open_planned
from playhead.loader.ranks import Topology
from playhead.loader.seeds import resolve_seed
from playhead.report.making import make_figures

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence
    from pathlib import Path

    from playhead.report.figures import Figures

__all__ = ["report_figures"]


def report_figures(
    config: str | Path | Mapping[str, Any] | Sequence[Any],
    *,
    world_size: int = 1,
    section: str | None = None,
    tokenizer: Any = None,
    seed: int | None = None,
    windows: int | None = None,
    hours_per_hour: float | None = None,
    strict: bool = False,
    data_blend_dir: str | None = None,
    say: Callable[[str], None] = lambda _: None,
    **overrides: Any,
) -> Figures:
    """Say what a config will train on, out of its plan: no audio is read.

    Packs that are missing are built, as training builds them at its first start.

    Parameters
    ----------
    config
        A YAML path, a mapping, a list of entries or an OmegaConf node: what `playhead.dataloader`
        takes.
    world_size
        How many ranks share a step.
    section
        Which section of a training config; its training section by default.
    tokenizer
        What makes tokens of texts, as `playhead.dataloader` takes it.
    seed
        The seed to plan with; that of the config by default.
    windows
        How many windows are planned of each blend; None plans 24 of an endless one, or fewer where
        they have two million samples or there are more than 6,000 leaves, and of a finite one a
        whole pass, or its first 1,000 windows or ten million samples.
    hours_per_hour
        Hours of audio that one GPU trains on in an hour; None estimates no times.
    strict
        Take every unknown key for an error.
    data_blend_dir
        What `${data_blend_dir}` stands for.
    say
        Told what is being done, in a few words.
    **overrides
        Options that win over the config's.

    Raises
    ------
    TopologyError
        When the world size does not divide the step of the config; it names those that do.
    PlayheadError
        Of many kinds: what happened, where, and what to do.
    """
    with _collected() as notes:
        planned = open_planned(
            config,
            world_size=world_size,
            section=section,
            strict=strict,
            overrides=overrides,
            data_blend_dir=data_blend_dir,
            tokenizer=tokenizer,
        )
    asked = planned.options.seed if seed is None else seed
    return make_figures(
        planned,
        config=config if isinstance(config, str) else _named(config),
        section=section,
        seed=resolve_seed(asked, Topology(rank=0, world_size=1)),
        world_size=world_size,
        windows=windows,
        hours_per_hour=hours_per_hour,
        notes=notes,
        say=say,
    )


@contextmanager
def _collected() -> Generator[list[str]]:
    """Collect what training would warn of as sentences; they belong into the report."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield notes
    for one in caught:
        if issubclass(one.category, UserWarning):
            text = str(one.message).rstrip(".")
            notes.append(f"{text[:1].upper()}{text[1:]}.")
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)


def _named(config: Any) -> str:
    """What a config is called that is no string."""
    return str(config) if hasattr(config, "__fspath__") else "a config given as a mapping or list"
