"""The figures of a report, out of a config whose columns are open."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from playhead.loader.ranks import Topology
from playhead.report.figures import Figures, TimeFigures
from playhead.report.notes import notes_of
from playhead.report.parts import PartSource, part_figures
from playhead.report.turns import positions_of, step_numbers
from playhead.report.units import US_PER_HOUR
from playhead.report.windows import Limit, plan_windows
from playhead.version import own_version

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from playhead.loader.planned import PlannedConfig
    from playhead.loader.run import Planning
    from playhead.report.windows import PlannedWindows

__all__ = ["make_figures"]

# A second or two of planning; a finite pass is worth more, as it is then known exactly.
_SAMPLES, _SAMPLES_OF_A_PASS = 2_000_000, 10_000_000
_WINDOWS, _WINDOWS_OF_A_PASS = 24, 1_000
# Of many leaves a window costs more to begin than to plan.
_LEAVES = 160_000
_SECONDS_PER_HOUR = 3600


def make_figures(
    planned: PlannedConfig,
    *,
    config: str,
    section: str | None,
    seed: int,
    world_size: int,
    windows: int | None = None,
    hours_per_hour: float | None = None,
    notes: Sequence[str] = (),
    say: Callable[[str], None] = lambda _: None,
) -> Figures:
    """Plan some windows of a config and look at every leaf once; no audio is read.

    Parameters
    ----------
    planned
        The config, opened.
    config, section
        What it is called.
    seed
        The seed to plan with.
    world_size
        How many ranks share a step.
    windows
        How many windows are planned of each blend; None plans 24 of an endless one, or fewer where
        they have two million samples or there are more than 6,000 leaves, and of a finite one a
        whole pass, or its first 1,000 windows or ten million samples.
    hours_per_hour
        Hours of audio that one GPU trains on in an hour; None estimates no times.
    notes
        What was said of the config when it was opened, in sentences.
    say
        Told what is being done, in a few words.

    Raises
    ------
    TopologyError
        When the world size does not divide the step.
    PlanError
        When no batches can be made.
    """
    planning: Any = planned.planning
    Topology(rank=0, world_size=world_size).batches_per_step(planning.micro_batches_per_step)
    start = planning.start(seed=seed, pass_=0, step=0)
    positions = positions_of(start)
    found: dict[str, PlannedWindows] = {}
    for name, part in planning.parts.items():
        title = f" of {name}" if name else ""
        limit = _limit(part) if windows is None else Limit(None, windows)

        def told(samples: int, title: str = title) -> None:
            say(f"planning{title}: {samples:,} samples")

        found[name] = plan_windows(part, positions[name], limit, told)
    numbers = step_numbers(planning, start, {name: one.num_steps for name, one in found.items()})
    parts = []
    for name, part in planned.parts.items():
        say(f"counting{f' {name}' if name else ''}")
        seed_of, share = positions[name].seed, planning.shares[name]
        source = PartSource(name=name, part=part, seed=seed_of, share=share, steps=numbers[name])
        parts.append(part_figures(source, found[name], world_size))
    per_step = _weights_of_parts(planned)
    steps = _steps_per_pass(planning, found)
    hours = _per_step(found, per_step, lambda one: float(one.whole.length_us.sum()) / US_PER_HOUR)
    return Figures(
        config=config,
        section=section,
        version=own_version(),
        generated_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        seed=seed,
        world_size=world_size,
        micro_batches_per_step=planning.micro_batches_per_step,
        finite=planning.finite,
        steps_per_pass=steps,
        hours_per_step=hours or None,
        tokens_per_step=_per_step(found, per_step, _tokens) or None,
        parts=tuple(parts),
        time=_time(hours_per_hour, hours, steps, world_size),
        notes=(*notes_of(planned, parts, found), *notes),
    )


def _limit(planning: Planning) -> Limit:
    """How much of a blend is planned where nobody says it."""
    if planning.finite:
        return Limit(_SAMPLES_OF_A_PASS, _WINDOWS_OF_A_PASS)
    most = max(_LEAVES // max(len(planning.leaves), 1), 1)
    return Limit(_SAMPLES, min(_WINDOWS, most))


def _weights_of_parts(planned: PlannedConfig) -> dict[str, float]:
    """How many steps of each part one step of all has."""
    if planned.blends.fusion == "zip":
        return dict.fromkeys(planned.parts, 1.0)
    return dict(planned.planning.shares)


def _per_step(
    found: Mapping[str, PlannedWindows],
    weights: Mapping[str, float],
    amount: Callable[[PlannedWindows], float],
) -> float:
    return sum(
        weights[name] * amount(windows) / max(windows.num_steps, 1)
        for name, windows in found.items()
    )


def _tokens(windows: PlannedWindows) -> float:
    tokens = windows.whole.tokens
    return 0.0 if tokens is None else float(tokens.sum())


def _steps_per_pass(planning: Any, found: Mapping[str, PlannedWindows]) -> int | None:
    """Steps of a pass; where it was not planned whole, about as many."""
    if not planning.finite:
        return None
    steps = [
        one.steps_of_pass if part.finite else None
        for one, part in zip(found.values(), planning.parts.values(), strict=True)
    ]
    return steps[0] if len(steps) == 1 else planning.rule.length(steps)


def _time(
    hours_per_hour: float | None, hours: float, steps: int | None, world_size: int
) -> TimeFigures | None:
    if hours_per_hour is None or not hours:
        return None
    seconds = hours / (hours_per_hour * world_size) * _SECONDS_PER_HOUR
    return TimeFigures(
        hours_per_hour=hours_per_hour,
        seconds_per_step=seconds,
        pass_seconds=None if steps is None else steps * seconds,
    )
