"""Every type of text, conversation and duplex speech, on any ranks and workers, after any stop."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

import pytest

import playhead
from support.steps import steps
from support.talk_cuts import FORMS
from support.told import Told, token_section

G = 4
pytestmark = pytest.mark.filterwarnings("ignore:a pass that ends takes every sample once")


def config_of(*entries: dict[str, Any], **options: Any) -> dict[str, Any]:
    """Endless, in batches of tokens; what is not asked anything is asked to listen."""
    endless = {"force_finite": False, "shuffle": True, "batch_size": None, "batch_tokens": 700}
    asked = [
        {**entry, "tags": {"default_context": "listen", **entry.get("tags", {})}}
        for entry in entries
    ]
    return token_section(*asked, **{**endless, "micro_batches_per_step": G, **options})


def talked(config: dict[str, Any], model: str, count: int, **more: Any):
    """Digests of the samples of some steps, and the state then; see `support.steps`."""
    said = itemgetter("digests")
    return steps(config, count, told=said, dataset=Told(), tokenizer=model, **more)


@pytest.mark.parametrize("form", FORMS)
def test_stopped_and_gone_on_with_other_ranks_and_workers(talk, model, form):
    config = config_of(talk[form], talk[form])
    whole, _ = talked(config, model, 6, world=4)
    first, state = talked(config, model, 2, world=2)
    second, state = talked(config, model, 3, world=1, workers=2, state=state)
    third, _ = talked(config, model, 1, world=4, state=state)
    assert first | second | third == whole
    assert len(whole) == 6 * G


def test_a_blend_of_everything_goes_on(talk, model):
    mixed = [{**entry, "weight": 1 + n % 3} for n, entry in enumerate(talk.values())]
    config = config_of(*mixed, batch_tokens=2000)
    whole, _ = talked(config, model, 8, world=2, workers=2)
    first, state = talked(config, model, 3, world=1)
    second, state = talked(config, model, 4, world=4, state=state)
    third, _ = talked(config, model, 1, world=2, workers=2, state=state)
    assert first | second | third == whole


@pytest.mark.parametrize("form", [name for name, form in FORMS.items() if form.num is not None])
def test_ranks_share_a_pass(talk, model, form):
    config = config_of(talk[form], force_finite=True, micro_batches_per_step=4)
    for world in (1, 2, 4):
        seen = []
        for rank in range(world):
            loader = playhead.dataloader(
                config, dataset=Told(), tokenizer=model, rank=rank, world_size=world, info=True
            )
            length = len(loader)
            batches = list(loader)
            assert len(batches) == length
            for batch in batches:
                twice = batch["playhead"].repeated
                seen += [
                    one for one, again in zip(batch["digests"], twice, strict=True) if not again
                ]
        assert len(seen) == FORMS[form].num
        if "questions" not in form:
            assert len(set(seen)) == len(seen)
