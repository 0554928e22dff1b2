"""The rule that makes a plan as training would, where the packs that it is made from are there."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING

from playhead.check.preflight.options import is_limited
from playhead.check.preflight.packs import pack_states
from playhead.check.preflight.rule import CannotRun, Seen, rule
from playhead.errors import ConfigError, PlanError, PlayheadError
from playhead.loader.part import open_part
from playhead.loader.settings import needs_tokens
from playhead.tokens.fields import FieldFilter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.blend import Blend
    from playhead.check.preflight.subject import Subject

__all__: list[str] = []


@rule("no-batch", "fail", "Training ends before its first batch")
def no_batch(subject: Subject) -> Iterator[Seen]:
    """Blends from whose packs the loader plans nothing."""
    if subject.faults or subject.unpaired:
        raise CannotRun("the config cannot be read")
    if any(state.state != "fresh" for state in pack_states(subject)):
        raise CannotRun("not all packs are there and up to date")
    for _, options, blend, spot in subject.parts:
        if needs_tokens(options) or FieldFilter.from_options(options) is not None:
            raise CannotRun("what rows say is counted at the start of training")
        try:
            _plan(blend, subject)
        except (ConfigError, PlanError) as error:
            what = str(error).removesuffix(f" {error.advice}.").removesuffix(".")
            yield Seen(f"no batch can be made: {what}", str(spot), advice=error.advice)
        except PlayheadError as error:
            # A pack that cannot be used, or a store: other rules say so.
            raise CannotRun(f"the packs cannot be opened: {error}") from None


def _plan(blend: Blend, subject: Subject) -> None:
    """Plan the first window of a pass.

    Noise and prompts are no part of a plan. Other rules say what they lack, or a limit of batches.
    """
    options = replace(blend.options, noise_path=None, prompt_format=None)
    if not is_limited(options):
        options = replace(options, batch_size=1)
    bare = replace(blend, options=options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        part = open_part(
            bare,
            subject.config,
            tokenizer=None,
            world_size=1,
            data_blend_dir=subject.data_blend_dir,
            is_speaker=False,
        )
    planning = part.planning
    planning.window(planning.start(seed=0, pass_=0, step=0))
