"""Fetching some samples of every leaf in the way that training will, with a clock."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field, replace
from math import ceil, inf
from typing import TYPE_CHECKING, Any

import numpy as np

from playhead.check.preflight.files import without_secrets
from playhead.check.preflight.heard import Heard
from playhead.check.preflight.modes import mode_of, passes_by_shards
from playhead.check.preflight.picking import in_batches, in_runs, spread
from playhead.errors import DataError, IndexFileError, PlayheadError
from playhead.fetch import Fetcher
from playhead.fetch.bad import Holes
from playhead.loader.part import open_part
from playhead.plan.keyed import text_word

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from playhead.blend import Blend
    from playhead.check.preflight.modes import Mode
    from playhead.check.preflight.subject import Subject
    from playhead.config import Options
    from playhead.loader.part import Part
    from playhead.plan import MicroBatch

__all__ = ["FetchRequest", "Fetched", "LeafFetch", "fetch_some"]

_SECONDS_AN_HOUR = 3600
_US_AN_HOUR = 3_600_000_000
# As many as a batch request of training has at the most, and a few requests out of few samples.
_MOST_AT_ONCE = 64
_LEAST_REQUESTS = 4
_MOST_NAMED = 20
# Places that a pass from shard to shard is looked at from: each may fetch a whole shard.
_RUNS = 4
# Above so many leaves packs are shared, and are not made one by one.
_MOST_ALONE = 256


@dataclass(frozen=True, kw_only=True, slots=True)
class FetchRequest:
    """What to fetch."""

    samples: int
    """Samples of each leaf."""
    hours_per_hour: float | None = None
    """Hours of audio that one GPU trains on in an hour; None where nobody said."""
    dataset: Any = None
    """What makes batches of them; decoding alone if None."""
    progress: Callable[[str], None] | None = None
    """Told which leaf is fetched."""


@dataclass(kw_only=True, slots=True)
class LeafFetch:
    """What fetching some samples of one leaf took."""

    leaf: str
    """Its name."""
    mode: Mode
    """How they were fetched."""
    asked: int = 0
    """Samples that were asked for."""
    fetched: int = 0
    """Samples that came and could be decoded."""
    bad_audio: int = 0
    """Samples whose audio could not be used."""
    bad_data: int = 0
    """Samples whose rows, archives or indexes could not be used."""
    failed: int = 0
    """Samples that the disk or the store did not give."""
    not_tried: int = 0
    """Samples that were not asked for any more after that."""
    failures: list[str] = field(default_factory=list[str])
    """What was wrong, the first few of each kind."""
    batch: int = 0
    """Samples of a request."""
    first_seconds: float = 0.0
    """Seconds of the first reads, which rates leave out: connections, and whole shards."""
    request_seconds: list[float] = field(default_factory=list[float])
    """Seconds that each request took that gave something."""
    hours: float = 0.0
    """Hours of audio that came, as the index has them."""
    num_bytes: int = 0
    """Bytes that came."""
    share: float = 0.0
    """Its share of the samples of the blend."""

    @property
    def seconds(self) -> float:
        """Seconds of all requests that gave something."""
        return sum(self.request_seconds)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON types, with rates and percentiles."""
        seconds = self.seconds
        facts = asdict(self)
        return {
            **facts,
            "requests": len(self.request_seconds),
            "seconds": seconds,
            "p50_seconds": _percentile(self.request_seconds, 0.5),
            "p95_seconds": _percentile(self.request_seconds, 0.95),
            "samples_per_second": self.fetched / seconds if seconds else None,
            "audio_hours_per_second": self.hours / seconds if seconds else None,
            "megabytes_per_second": self.num_bytes / 1e6 / seconds if seconds else None,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Fetched:
    """What fetching some samples of every leaf took; one worker does it all."""

    leaves: tuple[LeafFetch, ...]
    """Leaf by leaf."""
    hours_per_hour: float | None
    """Hours of audio that one GPU trains on in an hour."""

    @property
    def hours_per_second(self) -> float | None:
        """Hours of audio that one worker gives in a second of a blend with these shares."""
        timed = [one for one in self.leaves if one.fetched and one.share]
        seconds = sum(one.share * one.seconds / one.fetched for one in timed)
        hours = sum(one.share * one.hours / one.fetched for one in timed)
        return hours / seconds if seconds else None

    @property
    def workers(self) -> int | None:
        """How many workers keep a GPU busy; None where that is not known."""
        rate = self.hours_per_second
        if self.hours_per_hour is None or not rate:
            return None
        return max(1, ceil(self.hours_per_hour / (_SECONDS_AN_HOUR * rate)))

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON types."""
        return {
            "leaves": [one.to_json() for one in self.leaves],
            "audio_hours_per_second": self.hours_per_second,
            "hours_per_hour": self.hours_per_hour,
            "workers": self.workers,
        }


def fetch_some(subject: Subject, request: FetchRequest) -> Fetched:
    """Fetch samples of every leaf, and say what it took; what fails is counted and named.

    Parameters
    ----------
    subject
        The config.
    request
        How many, and what for.
    """
    found: list[LeafFetch] = []
    for blend in subject.blends.parts.values():
        bare = replace(blend, options=_bare(blend.options))
        for part, only in _opened(bare, subject, request.samples, found):
            found += _of_part(part, only, request)
    return Fetched(leaves=tuple(found), hours_per_hour=request.hours_per_hour)


def _bare(options: Options) -> Options:
    """The options without those that have every row looked at first: counts and filters."""
    return replace(
        options,
        use_multimodal_sampling=False,
        use_packed_sequence_sampling=False,
        min_tokens=None,
        max_tokens=None,
        min_tpt=-1.0,
        max_tpt=inf,
        min_tps=-1.0,
        max_tps=inf,
        max_cer=inf,
        min_context_speaker_similarity=-1.0,
        excluded_speaker_ids=None,
        batch_duration=None,
        bucket_duration_bins=None,
        bucket_batch_size=None,
        batch_size=1,
        metadata_only=False,
        fault_tolerant_audio_loading=True,
    )


def _opened(
    blend: Blend, subject: Subject, samples: int, found: list[LeafFetch]
) -> Iterator[tuple[Part, Blend]]:
    """Open a blend; if a leaf is in the way, those that can be opened by themselves."""
    try:
        yield _open(blend, subject), blend
    except PlayheadError as error:
        if len(blend.leaves) == 1 or len(blend.leaves) > _MOST_ALONE:
            places = range(len(blend.leaves))
            found += [_unopened(blend, at, error, samples) for at in places]
            return
        for at in range(len(blend.leaves)):
            alone = replace(blend, leaves=(blend.leaves[at],), spots=(blend.spots[at],))
            try:
                yield _open(alone, subject), alone
            except PlayheadError as own:
                found.append(_unopened(blend, at, own, samples))


def _open(blend: Blend, subject: Subject) -> Part:
    return open_part(
        blend,
        subject.config,
        tokenizer=subject.tokenizer,
        world_size=1,
        data_blend_dir=subject.data_blend_dir,
        is_speaker=False,
    )


def _unopened(blend: Blend, at: int, error: PlayheadError, samples: int) -> LeafFetch:
    leaf = blend.leaves[at]
    mode = mode_of(leaf, by_shard=passes_by_shards(blend))
    one = LeafFetch(
        leaf=leaf.name, mode=mode, asked=samples, not_tried=samples - 1, failures=[_said(error)]
    )
    setattr(one, _kind(error), 1)
    return one


def _of_part(part: Part, blend: Blend, request: FetchRequest) -> Iterator[LeafFetch]:
    fetcher = Fetcher(part.spec, Heard() if request.dataset is None else request.dataset)
    planning = part.planning
    lengths = [leaf.duration_us for leaf in planning.leaves]
    by_shard = planning.shape.locality == "shards"
    weights = [
        len(lengths[at]) if blend.finite else leaf.weight for at, leaf in enumerate(blend.leaves)
    ]
    total = sum(weights) or 1
    for number, leaf in enumerate(blend.leaves):
        if request.progress is not None:
            request.progress(leaf.name)
        one = LeafFetch(
            leaf=leaf.name,
            mode=mode_of(leaf, by_shard=by_shard),
            share=weights[number] / total,
        )
        seed = text_word(leaf.key)
        if one.mode == "shards":
            runs = in_runs(len(lengths[number]), request.samples, _RUNS, seed)
        else:
            runs = [spread(len(lengths[number]), request.samples, seed)]
        one.asked = sum(map(len, runs))
        one.batch = max(1, min(_MOST_AT_ONCE, one.asked // _LEAST_REQUESTS))
        for rows in runs:
            batches = in_batches(number, rows, one.batch, by_shard=by_shard)
            first = in_batches(number, rows[:1], 1, by_shard=by_shard)
            _fetch(one, fetcher, [*first, *batches], lengths[number])
        yield one


def _fetch(
    one: LeafFetch, fetcher: Fetcher, batches: list[MicroBatch], lengths: NDArray[np.int64]
) -> None:
    """Fetch batches; the first holds the first sample of the second, and is not counted."""
    if not one.failed and batches:
        begin = time.perf_counter()
        try:
            # What the first of all reads costs (libraries, connections, a whole shard) is no part
            # of any rate.
            fetcher(batches[0])
        except Exception as error:  # noqa: BLE001 - what is wrong with one sample is named below
            if _kind(error) == "failed":
                # A store that does not answer takes minutes to say so: once is enough.
                _name(one, error)
                one.failed = 1
                one.not_tried -= 1
        one.first_seconds += time.perf_counter() - begin
    for batch in batches[1:]:
        if one.failed:
            one.not_tried += len(batch.row)
        else:
            _request(one, fetcher, batch, lengths)


def _request(
    one: LeafFetch, fetcher: Fetcher, batch: MicroBatch, lengths: NDArray[np.int64]
) -> None:
    before = _bytes_of(fetcher)
    begin = time.perf_counter()
    try:
        made = fetcher(batch)
    except Exception as error:  # noqa: BLE001 - the user's dataset may raise anything
        kind = _kind(error)
        if kind == "failed" or len(batch.row) == 1:
            setattr(one, kind, getattr(one, kind) + len(batch.row))
            _name(one, error)
            return
        by_shard = batch.by_shard is not None
        for single in in_batches(int(batch.leaf[0]), batch.row, 1, by_shard=by_shard):
            _request(one, fetcher, single, lengths)
        return
    one.request_seconds.append(time.perf_counter() - begin)
    rows = batch.row
    if isinstance(made, Holes):
        one.bad_audio += len(made.bad)
        for bad in made.bad:
            _name(one, f"bad audio, {bad.reason}: {bad.member or bad.shard}, row {bad.row}")
        rows = np.delete(rows, list(made.places))
    one.fetched += len(rows)
    one.hours += int(np.maximum(lengths[rows], 0).sum()) / _US_AN_HOUR
    one.num_bytes += _bytes_of(fetcher) - before


def _bytes_of(fetcher: Fetcher) -> int:
    own = fetcher.dataset.file_bytes if isinstance(fetcher.dataset, Heard) else 0
    return fetcher.timings.num_bytes + own


def _kind(error: BaseException) -> str:
    """Which count an error belongs to."""
    if isinstance(error, (DataError, IndexFileError)):
        return "bad_data"
    return "failed" if isinstance(error, OSError) else "bad_data"


def _said(error: BaseException | str) -> str:
    if isinstance(error, str):
        return without_secrets(error)
    text = str(error).partition("\n")[0]
    named = text if isinstance(error, PlayheadError) else f"{type(error).__name__}: {text}"
    return without_secrets(named)


def _name(one: LeafFetch, error: BaseException | str) -> None:
    if len(one.failures) < _MOST_NAMED:
        one.failures.append(_said(error))


def _percentile(values: list[float], share: float) -> float | None:
    """The value below which a share of all lies; None of none.

    Examples
    --------
    >>> _percentile([3.0, 1.0, 2.0], 0.5), _percentile([1.0], 0.95)
    (2.0, 1.0)
    """
    return float(np.quantile(values, share)) if values else None
