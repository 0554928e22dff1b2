"""Mixtures of several speakers, made when the index is built (`multi_speaker_simulator`)."""

from __future__ import annotations

import os
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from playhead.errors import ConfigError, ManifestError
from playhead.formats.base import BadRowError, SourcePair, TableBlock
from playhead.formats.cut_rows import cut_columns, cut_example, decode_cut, resolve_paths
from playhead.formats.mixtures import (
    LSMIX,
    MixtureOptions,
    Stretch,
    choose_stretch,
    choose_voices,
)
from playhead.formats.registry import register
from playhead.formats.row_fields import text_of
from playhead.formats.simulator_rows import Headers, manifest_lines, on_line, read_row
from playhead.formats.simulator_sessions import read_session, session_cut
from playhead.formats.simulator_voices import by_speaker, mixed_cut, read_voice

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from playhead.blend.leaf import Leaf
    from playhead.formats.cut_rows import CutRow
    from playhead.formats.example import Example, Part, Place
    from playhead.formats.mixtures import Mixture, Session, Voice

__all__ = ["MultiSpeakerSimulator"]

_BLOCK = 1024


@register("multi_speaker_simulator")
class MultiSpeakerSimulator:
    """Mixtures of several speakers, the n-th of which depends on n and on the manifest alone.

    With ``simulator_type: lsmix`` a row of the manifest is the voice of one speaker: a NeMo row
    with `speaker_id`, or a Lhotse `MonoCut` with `speaker_id` among its custom fields or one
    speaker in all its supervisions. A mixture is `num_speakers` rows of different speakers, each
    beginning after the one before by a delay from `min_delay` to that one's length. It is a Lhotse
    `MixedCut` with a supervision for each speaker.

    With ``simulator_type: mixture_loader`` a row is a recorded conversation: `audio_filepath`,
    `session_id`, and `seglst_filepath`, a JSON list of `{speaker, words, start_time, end_time}`. A
    mixture is a stretch of it, a `MonoCut` that begins and ends when nobody speaks, with a
    supervision for each utterance. Times of supervisions begin with the cut.

    - A pass has `num_mixtures`, by default as many as the manifest has rows but at least 1,000; the
      next pass has the same in another order.
    - No mixture is shorter than `min_duration` or longer than `max_duration`, seconds. One that
      would be is chosen anew; if that does not help it is left out and counted.
    - Rows whose `_skipme` is truthy are left out and counted.
    - The sampling rate is the row's `sampling_rate`, else the leaf's `input_sampling_rate`, else
      what the header of the audio says when the index is built.
    - `sample_rate`, `global_rank`, `world_size` and `is_tarred` mean nothing here and are accepted:
      which mixtures a rank gets is the plan's business, as with any other type.
    """

    def sources(self, leaf: Leaf) -> list[SourcePair]:
        """The one manifest; the options are checked.

        Raises
        ------
        ConfigError
            If there are several manifests, or an option cannot be used.
        """
        MixtureOptions.of(leaf)
        paths = leaf.paths["manifest"]
        if len(paths) != 1:
            raise ConfigError(
                f"a simulator takes one manifest, and manifest_filepath names {len(paths)}",
                where=f"leaf {leaf.name}",
                fix="Write their rows into one file, so that speakers of all of them are mixed",
            )
        return [SourcePair(manifest=paths[0])]

    def scan(
        self, leaf: Leaf, pair: SourcePair, on_bad: Callable[[BadRowError], None] | None
    ) -> Iterator[TableBlock]:
        """Make the mixtures, some at a time; `ScannedFormat.scan`.

        Raises
        ------
        ManifestError
            If no mixture can be made of the manifest.
        """
        options = MixtureOptions.of(leaf)
        where = f"leaf {leaf.name}, {pair.manifest}"
        dropped: Counter[str] = Counter()
        rows = list(_rows(leaf, pair.manifest, options, on_bad, dropped))
        choose = _chooser(rows, options, where)
        headers = Headers(os.path.dirname(pair.manifest))  # noqa: PTH120 - paths are strings
        numbers = iter(range(options.count(len(rows))))
        while block := list(islice(numbers, _BLOCK)):
            chosen = [(number, choose(number)) for number in block]
            if block[0] == 0 and all(isinstance(one, str) for _, one in chosen):
                raise ManifestError(
                    f"no mixture of the first {len(block)} is from {options.min_duration:g} to "
                    f"{options.max_duration:g} s long",
                    where=where,
                    fix="Raise max_duration or lower min_duration, or mix fewer speakers",
                )
            made = list(_made(leaf, chosen, headers, on_bad, dropped))
            yield _table(made, dropped)
            dropped.clear()

    def example(self, leaf: Leaf, place: Place, row: bytes, parts: Sequence[Part]) -> Example:  # noqa: ARG002 - the protocol's
        """Make the sample of one mixture; `Format.example`.

        `parts` are not used: mixtures name their files themselves.
        """
        data = decode_cut(row, place)
        resolve_paths(data, os.path.dirname(place.shard))  # noqa: PTH120 - it may be a URL
        cuts = [track["cut"] for track in data.get("tracks") or ()] or [data]
        for cut in cuts:
            for one in cut["supervisions"]:
                _fill(one, cut.get("custom") or {}, leaf, place)
        return cut_example(leaf, place, data)


def _fill(supervision: dict[str, Any], custom: Mapping[str, Any], leaf: Leaf, place: Place) -> None:
    """Say in a supervision what only the leaf's options tell: which fields hold it."""
    options = leaf.options
    for name, field in (("text", options.text_field), ("language", options.lang_field)):
        if name not in supervision:
            supervision[name] = text_of(custom, field, place)


def _rows(
    leaf: Leaf,
    manifest: str,
    options: MixtureOptions,
    on_bad: Callable[[BadRowError], None] | None,
    dropped: Counter[str],
) -> Iterator[Voice | Session]:
    for number, line in manifest_lines(manifest):
        try:
            row = _row(leaf, manifest, options, number, line)
        except BadRowError as error:  # noqa: PERF203 - each row is judged by itself
            _tell(on_bad, on_line(number, error))
        else:
            if row is None:
                dropped["_skipme"] += 1
            else:
                yield row


def _row(
    leaf: Leaf, manifest: str, options: MixtureOptions, number: int, line: bytes
) -> Voice | Session | None:
    """Return what a row is; None where it is left out on purpose."""
    row = read_row(line)
    if row.is_skipped:
        return None
    if options.simulator_type == LSMIX:
        return read_voice(leaf, row, line, number)
    return read_session(leaf, row, line, number, manifest)


def _tell(on_bad: Callable[[BadRowError], None] | None, error: BadRowError) -> None:
    if on_bad is None:
        raise error from None
    on_bad(error)


def _chooser(
    rows: Sequence[Any], options: MixtureOptions, where: str
) -> Callable[[int], Mixture | Stretch | str]:
    """Return what chooses the mixture of a number, or says why there is none."""
    if not rows:
        raise ManifestError(
            "the manifest has no row that can be used",
            where=where,
            fix="Add rows, or correct manifest_filepath",
        )
    if options.simulator_type == LSMIX:
        speakers = by_speaker(rows, options, where)
        return lambda number: choose_voices(speakers, options, number)
    return lambda number: choose_stretch(rows, options, number)


def _made(
    leaf: Leaf,
    chosen: Sequence[tuple[int, Mixture | Stretch | str]],
    headers: Headers,
    on_bad: Callable[[BadRowError], None] | None,
    dropped: Counter[str],
) -> Iterator[tuple[int, bytes]]:
    """Give the rows of mixtures that can be used, with their numbers."""
    headers.read(name for _, one in chosen for name in _unmeasured(one))
    for number, one in chosen:
        if isinstance(one, str):
            dropped[one] += 1
            continue
        try:
            if isinstance(one, Stretch):
                yield number, session_cut(leaf, one, number, headers)
            else:
                yield number, mixed_cut(leaf, one, number, headers)
        except BadRowError as error:
            _tell(on_bad, error)


def _unmeasured(one: Mixture | Stretch | str) -> Iterable[str]:
    """Name the audio files whose headers have to be read."""
    if isinstance(one, str):
        return []
    rows = [one.session] if isinstance(one, Stretch) else one.voices
    return [row.unmeasured for row in rows if row.unmeasured is not None]


def _table(made: Sequence[tuple[int, bytes]], dropped: Counter[str]) -> TableBlock:
    rows = [row for _, row in made]
    columns = cut_columns(b"\n".join(rows), _check_nothing)
    columns.dropped.update(dropped)
    return TableBlock(
        columns=columns, rows=rows, place=np.array([number for number, _ in made], np.int64)
    )


def _check_nothing(cut: CutRow) -> None:
    """Accept all cuts: they are made here."""
