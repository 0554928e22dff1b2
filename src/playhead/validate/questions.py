"""What is asked of a baseline: Q1, Q2, Q3 of its samples, and Q5 of its twin."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from playhead.validate.answer import MOST_EXAMPLES, Answer, said
from playhead.validate.differing import Stretch, compare, places

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.validate.answer import QuestionId
    from playhead.validate.differing import Difference
    from playhead.validate.reading import Run
    from playhead.validate.repeats import Repeats

__all__ = ["all_samples", "no_sample_twice", "ranks_disjoint", "same_again"]

_NAMES_WITHOUT_PASSES = (
    "; names that do not hold the pass come again with the next pass, so that the run must end"
    " with its first"
)


def no_sample_twice(again: Repeats) -> Answer:
    """Q1: no sample comes on two ranks, from two workers of a rank, or twice from one worker.

    Parameters
    ----------
    again
        The samples of the baseline that do.
    """
    baseline = again.run
    if not again.samples:
        count = said(len(baseline.samples), "sample")
        return Answer(question="Q1", status="PASS", detail=f"{count}, none of them twice")
    kinds = {
        "partition-rank-leak": (again.on_ranks, "on several ranks"),
        "partition-worker-leak": (again.on_workers, "from several workers of one rank"),
        "duplicate-within-worker": (again.in_worker, "several times from one worker"),
    }
    there = {tag: kind for tag, kind in kinds.items() if len(kind[0])}
    tag, (worst, _) = next(iter(there.items()))
    counts = ", ".join(f"{len(found):,} {where}" for found, where in there.values())
    hint = _NAMES_WITHOUT_PASSES if baseline.meta is None else ""
    return Answer(
        question="Q1",
        status="FAIL",
        tag=tag,
        detail=f"{said(again.samples, 'sample')} came more than once: {counts}{hint}",
        examples=again.examples(worst),
        more={name: len(kind[0]) for name, kind in kinds.items()},
    )


def all_samples(baseline: Run, groundtruth: Run | None) -> Answer:
    """Q2: the samples of a whole pass are those that the data hold, no more and no fewer.

    Parameters
    ----------
    baseline
        The run that was not stopped.
    groundtruth
        All samples of a pass; None where nobody wrote them down.
    """
    runs = [baseline] if groundtruth is None else [baseline, groundtruth]
    if any(run.meta is not None and not run.meta.is_finite for run in runs):
        return _unjudged("Q2", "the data have no end, and are not held against a ground truth")
    if groundtruth is None:
        return _unjudged("Q2", "there is no ground truth; run the phase groundtruth")
    known, seen = np.unique(groundtruth.samples), np.unique(baseline.samples)
    missing = np.setdiff1d(known, seen, assume_unique=True)
    extra = np.setdiff1d(seen, known, assume_unique=True)
    meta = baseline.meta
    numbers = {"missing_count": len(missing), "unexpected_count": len(extra)}
    if len(extra):
        also = f"; {len(missing):,} of its {len(known):,} never came" if len(missing) else ""
        return Answer(
            question="Q2",
            status="FAIL",
            tag="id-collision",
            detail=f"{said(len(extra), 'sample')} came that the ground truth does not have{also}",
            examples=baseline.names(extra[:MOST_EXAMPLES]),
            more=numbers,
        )
    if meta is not None and not meta.is_exhausted:
        return _unjudged(
            "Q2",
            f"the baseline stopped after {said(meta.batches, 'batch', several='batches')} of each"
            f" rank, before the end of its pass, with {len(seen):,} of {len(known):,} samples;"
            " give it --whole-pass or more --steps",
        )
    left_over = 0 if meta is None else meta.dropped.get("drop_last", 0)
    if len(missing) != left_over:
        return Answer(
            question="Q2",
            status="FAIL",
            tag="skip",
            detail=f"{len(missing):,} of {said(len(known), 'sample')} never came"
            + (f", and drop_last leaves out {left_over:,}" if left_over else "")
            + ("; a baseline that stops before the end of its pass lacks some" if not meta else ""),
            examples=groundtruth.names(missing[:MOST_EXAMPLES]),
            more=numbers,
        )
    detail = (
        f"{len(seen):,} of {said(len(known), 'sample')} of the ground truth came, and no others"
    )
    if left_over:
        detail += f"; drop_last leaves out {left_over:,}"
    if baseline.left_out:
        detail += f"; {baseline.left_out:,} of them cannot be read"
    status = "WARN" if baseline.left_out else "PASS"
    return Answer(question="Q2", status=status, detail=detail, more=numbers)


def ranks_disjoint(again: Repeats) -> Answer:
    """Q3: no two ranks share a sample.

    Parameters
    ----------
    again
        The samples of the baseline that come more than once.
    """
    baseline = again.run
    ranks = said(baseline.world_size, "rank")
    shared = len(again.on_ranks)
    if not shared:
        detail = f"{ranks}, no sample on two of them"
        return Answer(question="Q3", status="PASS", detail=detail)
    # Of samples that come once, the sum over ranks is the union.
    union = len(np.unique(baseline.samples))
    total = union + again.ranks_beyond_the_first
    everywhere = total / union >= baseline.world_size - 0.5
    detail = (
        f"FULL BROADCAST: every rank is given nearly all of {said(union, 'sample')}"
        if everywhere
        else f"PARTIAL OVERLAP: {shared:,} of {said(union, 'sample')} are on several of {ranks}"
    )
    return Answer(
        question="Q3",
        status="FAIL",
        tag="partition-rank-leak",
        detail=detail,
        examples=again.examples(again.on_ranks),
        more={"sum_of_ranks": total, "union": union},
    )


def same_again(baselines: Sequence[Run]) -> Answer:
    """Q5: the baseline comes out the same when it is run again.

    Parameters
    ----------
    baselines
        The baseline, and each time that it was run again.
    """
    first, *others = baselines
    if not others:
        return _unjudged("Q5", "there is one baseline; run it again with --run-idx 1")
    expected = _whole(first)
    differences = [compare(expected, _whole(other)) for other in others]
    worst = next((one for one in differences if _differs(one)), None)
    if worst is None:
        runs = ", ".join(run.name for run in others)
        count = said(len(first.batches), "batch", several="batches")
        what = "samples and tensors" if first.digests is not None else "samples"
        detail = f"{runs}: {count} hold the same {what} as in {first.name}, in the same order"
        return Answer(question="Q5", status="PASS", detail=detail)
    changed = worst.other_samples if len(worst.other_samples) else worst.other_content
    counts = [
        (len(worst.missing) + len(worst.extra), "only one of them has"),
        (len(worst.other_samples), "with other samples or in another order"),
        (len(worst.other_content), "with the same samples and other tensors"),
    ]
    what = "; ".join(f"{said(n, 'batch', several='batches')} {how}" for n, how in counts if n)
    where = f"; {worst.first(changed)}" if len(changed) else ""
    return Answer(
        question="Q5",
        status="FAIL",
        tag="non-determinism",
        detail=f"{first.name} and {worst.found.run.name} differ: {what}{where}",
        examples=worst.examples(changed),
        more={"compared": worst.both},
    )


def _unjudged(question: QuestionId, why: str) -> Answer:
    return Answer(question=question, status="SKIP", detail=why)


def _whole(run: Run) -> Stretch:
    return Stretch(run=run, batches=np.arange(len(run.batches)), places=places(run))


def _differs(one: Difference) -> bool:
    return any(map(len, (one.missing, one.extra, one.other_samples, one.other_content)))
