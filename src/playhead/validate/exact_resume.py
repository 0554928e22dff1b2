"""Q4: a run that was stopped and resumed goes on exactly where the one that was not does."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from playhead.validate.answer import MOST_EXAMPLES, Answer, said
from playhead.validate.differing import Stretch, compare, places

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.validate.differing import Difference
    from playhead.validate.reading import Run

__all__ = ["exact_resume"]

_ORDER = "resume-rng-divergence"
_CONTENT = "resume-content-divergence"
_LENGTH = "resume-length-mismatch"
_BADNESS = {"PASS": 0, "WARN": 1, "SKIP": 2, "FAIL": 3}


def exact_resume(baseline: Run, resumed: Sequence[Run], checkpoint_at: int | None) -> Answer:
    """Q4: resumed runs hold what the baseline holds after its checkpoint.

    On the same number of ranks, batches are compared by rank and step; on another one that divides
    the optimizer step, by their place in that step; where the step itself is another one, what is
    left of the pass has to come exactly once, in any order. A batch that comes out of its turn is
    wrong in any run: a state says how many steps were handed out, and not which.

    Parameters
    ----------
    baseline
        The run that was not stopped.
    resumed
        Those that were; each is judged, and the worst is the answer.
    checkpoint_at
        The batch of every rank, from 0, after which the state was saved; None if none was.
    """
    if disordered := [run for run in (baseline, *resumed) if len(run.out_of_turn)]:
        return _disordered(disordered)
    if not resumed:
        why = "there is no resumed run; run the phase resumed"
        return Answer(question="Q4", status="SKIP", detail=why)
    if checkpoint_at is None:
        why = "no state was saved in the baseline; run it with --checkpoint-at"
        return Answer(question="Q4", status="SKIP", detail=why)
    answers = [_judge(baseline, run, checkpoint_at) for run in resumed]
    worst = max(answers, key=lambda answer: _BADNESS[answer.status])
    runs = {
        run.name: {"status": answer.status, "tag": answer.tag, "detail": answer.detail}
        for run, answer in zip(resumed, answers, strict=True)
    }
    # Where something is wrong, what is right is not told.
    told: dict[str, list[str]] = {}
    for run, answer in zip(resumed, answers, strict=True):
        if answer.status == worst.status:
            told.setdefault(answer.detail, []).append(f"{run.name} ({_how(baseline, run)})")
    named = [f"{', '.join(names)}: {detail}" for detail, names in told.items()]
    return replace(worst, detail="; ".join(named), more={**worst.more, "runs": runs})


def _disordered(runs: Sequence[Run]) -> Answer:
    """What a state counts are steps: of batches in another order it says nothing."""
    told: list[str] = []
    for run in runs:
        place = run.place_of(int(run.out_of_turn[0]))
        told.append(
            f"{run.name}: {len(run.out_of_turn):,} of"
            f" {said(len(run.batches), 'batch', several='batches')} came out of their turn; the"
            f" first is step {place['step']} of rank {place['rank']}"
        )
    first = runs[0]
    some = first.out_of_turn[:MOST_EXAMPLES].tolist()
    return Answer(
        question="Q4",
        status="FAIL",
        tag=_ORDER,
        detail="; ".join(told),
        examples=[{"run": first.name, **first.place_of(batch)} for batch in some],
        more={"out_of_turn": {run.name: len(run.out_of_turn) for run in runs}},
    )


def _how(baseline: Run, run: Run) -> str:
    """On what it was resumed."""
    ranks = said(run.world_size, "rank")
    if run.world_size != baseline.world_size:
        ranks += f" after {baseline.world_size}"
    if run.meta is None:
        return ranks
    return f"{ranks}, {said(run.meta.num_workers, 'worker')} each"


def _judge(baseline: Run, run: Run, checkpoint_at: int) -> Answer:
    own, other = baseline.meta, run.meta
    after = _after(baseline, checkpoint_at)
    if own and other and own.micro_batches_per_step != other.micro_batches_per_step:
        return _judge_left(baseline, run, after)
    found = Stretch(run=run, batches=np.arange(len(run.batches)), places=places(run))
    if own is None:
        # Steps of NeMo's logs are counted from the beginning of each run.
        found = replace(found, places=found.places + checkpoint_at + 1)
    return _judge_batches(compare(after, found))


def _after(baseline: Run, checkpoint_at: int) -> Stretch:
    """What the baseline holds after its checkpoint."""
    batches = np.flatnonzero(baseline.step > checkpoint_at)
    return Stretch(run=baseline, batches=batches, places=places(baseline)[batches])


def _judge_batches(one: Difference) -> Answer:
    """Compare batch by batch."""
    checked = {"compared": one.both}
    for pairs, tag, what in (
        (one.other_samples, _ORDER, "other samples than the baseline, or another order"),
        (one.other_content, _CONTENT, "the same samples and other tensors"),
    ):
        if len(pairs):
            count = said(len(pairs), "batch", several="batches")
            holds = "holds" if len(pairs) == 1 else "hold"
            return Answer(
                question="Q4",
                status="FAIL",
                tag=tag,
                detail=f"{count} of {one.both:,} {holds} {what}; {one.first(pairs)}",
                examples=one.examples(pairs),
                more=checked,
            )
    missing, extra = _beyond_shared_steps(one)
    if missing or extra:
        counts = [
            f"{said(n, 'batch', several='batches')} {what}"
            for n, what in ((missing, "never came"), (extra, "are beyond the end of the baseline"))
            if n
        ]
        wanted = len(one.expected.batches) // one.found.run.world_size
        return Answer(
            question="Q4",
            status="FAIL",
            tag=_LENGTH,
            detail=f"{' and '.join(counts)}: each rank is to be given {wanted:,}",
            more={**checked, "missing": missing, "extra": extra},
        )
    what = "samples and tensors" if one.found.run.digests is not None else "samples"
    count = said(one.both, "batch", several="batches")
    return Answer(
        question="Q4",
        status="PASS",
        detail=f"{count} after the checkpoint hold the same {what} in the same order",
        more=checked,
    )


def _beyond_shared_steps(one: Difference) -> tuple[int, int]:
    """How many batches are missing and extra, but for a last step that is not whole in both.

    Runs on different numbers of ranks cannot all end in the middle of the same step.
    """
    missing, extra = one.expected.places[one.missing], one.found.places[one.extra]
    own, other = one.expected.run, one.found.run
    if own.meta is None or own.world_size == other.world_size:
        return len(missing), len(extra)
    slots = own.meta.micro_batches_per_step
    batches = len(one.expected.batches)
    end = int(one.expected.places.max()) // slots
    if batches % slots == 0:
        return len(missing), len(extra)
    return int(np.sum(missing // slots != end)), int(np.sum(extra // slots != end))


def _judge_left(baseline: Run, run: Run, after: Stretch) -> Answer:
    """Compare what is left of a pass, where steps are made of another number of micro-batches."""
    is_after = np.zeros(len(baseline.batches), bool)
    is_after[after.batches] = True
    is_left = np.repeat(is_after, baseline.sizes)
    before, left = np.unique(baseline.samples[~is_left]), np.unique(baseline.samples[is_left])
    came, times = np.unique(run.samples, return_counts=True)
    again = came[(times > 1) | np.isin(came, before)]
    own, other = _left_over(baseline), _left_over(run)
    strange = missing = again[:0]
    if own is not None and other is not None:
        strange = np.setdiff1d(came, np.union1d(left, before), assume_unique=True)
        missing = np.setdiff1d(left, came, assume_unique=True)
        # What drop_last leaves out of one run may be in the other.
        strange = strange if len(strange) > own else again[:0]
        missing = missing if len(missing) > other else again[:0]
    slots = "steps are of another number of micro-batches, so that the order differs"
    checked = {"compared": len(came)}
    wrong = (
        (len(again), "a second time"),
        (len(strange), "that the baseline does not have"),
    )
    if len(again) or len(strange):
        return Answer(
            question="Q4",
            status="FAIL",
            tag=_ORDER,
            detail=" and ".join(f"{said(n, 'sample')} came {how}" for n, how in wrong if n)
            + f"; {slots}",
            examples=run.names(np.r_[again, strange][:MOST_EXAMPLES]),
            more=checked,
        )
    if len(missing):
        return Answer(
            question="Q4",
            status="FAIL",
            tag=_LENGTH,
            detail=f"{len(missing):,} of {said(len(left), 'sample')} that were left never came;"
            f" {slots}",
            examples=baseline.names(missing[:MOST_EXAMPLES]),
            more={**checked, "missing": len(missing)},
        )
    if own is None or other is None:
        return Answer(
            question="Q4",
            status="WARN",
            detail=f"none of {said(len(came), 'sample')} came a second time; {slots}, and whether"
            " all come is seen at the end of a pass, which both runs have to reach",
            more=checked,
        )
    return Answer(
        question="Q4",
        status="PASS",
        detail=f"{said(len(came), 'sample')}, all that were left, came exactly once"
        + (", but for what drop_last leaves out" if own or other else "")
        + f"; {slots}",
        more=checked,
    )


def _left_over(run: Run) -> int | None:
    """Samples that a whole pass leaves out with `drop_last`; None of a run that made none."""
    meta = run.meta
    return meta.dropped.get("drop_last", 0) if meta is not None and meta.is_exhausted else None
