"""What filters ask of rows beside their lengths: error rates, similarities, held-out speakers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from playhead.blend.yaml_loader import parse_yaml
from playhead.errors import ConfigError, SourceNotFoundError
from playhead.formats import format_of
from playhead.formats.lhotse_cuts import LhotseCuts
from playhead.formats.lhotse_shar import LhotseShar
from playhead.formats.nemo import Nemo
from playhead.formats.rows import decode_row
from playhead.index.build import WAIT_SECONDS
from playhead.tokens.base import digest_of
from playhead.tokens.rows import examples, place_of, read_rows
from playhead.tokens.side_columns import find_columns, open_columns
from playhead.tokens.texts import supervisions_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from playhead.blend.leaf import Leaf
    from playhead.config import Options
    from playhead.index.build_pace import Progress
    from playhead.index.pack import LeafPack
    from playhead.tokens.jobs import Stretch

__all__ = ["FieldFilter", "RowFacts", "find_field_columns", "open_field_columns"]

_KIND = "fields"
_VERSION = b"1"
_OPTION = "excluded_speaker_ids"
_SPEAKER = re.compile(r"Speaker:\s*([^|]*)")
_MONO = ("MonoCut", "Cut")


@dataclass(frozen=True, kw_only=True)
class FieldFilter:
    """Which facts of rows filters look at."""

    excluded_speaker_ids: tuple[str, ...] = ()
    """Speakers that are held out, in any order."""
    speaker_filter_fields: tuple[str, ...] = ()
    """Fields of supervisions, or of rows of NeMo manifests, that may name a speaker."""

    @staticmethod
    def from_options(options: Options) -> FieldFilter | None:
        """Return what a section asks for; None where no filter looks at fields.

        Raises
        ------
        ConfigError
            If `excluded_speaker_ids` is neither a list nor the path of a YAML file that holds one,
            or `speaker_filter_fields` is missing beside it.
        SourceNotFoundError
            If the file does not exist.
        """
        ids = _speaker_ids(options.excluded_speaker_ids)
        fields = options.speaker_filter_fields or ()
        if ids and not fields:
            raise ConfigError(
                "excluded_speaker_ids needs speaker_filter_fields",
                fix="Name the fields that hold the speaker, such as [speaker]",
            )
        max_cer, least = options.max_cer, options.min_context_speaker_similarity
        asks = (max_cer is not None and max_cer < float("inf")) or (
            least is not None and least > -1
        )
        if not ids and not asks:
            return None
        return FieldFilter(excluded_speaker_ids=ids, speaker_filter_fields=fields if ids else ())

    @property
    def digest(self) -> str:
        """Identity of what is asked: 16 hexadecimal digits. Limits of numbers do not enter."""
        asked = [sorted(set(self.excluded_speaker_ids)), sorted(set(self.speaker_filter_fields))]
        return digest_of(b"fields", _VERSION, msgspec.json.encode(asked))


class RowFacts:
    """Reads `cer`, `context_speaker_similarity` and speakers of rows.

    The first two are those of a MonoCut's first supervision, the last is that of any supervision;
    of NeMo rows, and of any other rows of audio that are no cuts, the row's own fields are meant.
    Texts and conversations have none of them.

    Parameters
    ----------
    asked
        What filters look at.
    """

    kind = _KIND
    columns = {"cer": np.float64, "similarity": np.float64, "speaker": np.bool_}  # noqa: RUF012 - never changed
    runs_in_threads = False

    def __init__(self, asked: FieldFilter) -> None:
        self._asked = asked
        self.digest = asked.digest

    def of_rows(self, leaf: Leaf, pack: LeafPack, stretch: Stretch) -> dict[str, NDArray[Any]]:
        """Return the facts of some rows; `Measure.of_rows`."""
        num_rows = stretch.stop - stretch.start
        numbers = np.full((2, num_rows), np.nan)
        held_out = np.zeros(num_rows, bool)
        # What is asked is asked of cuts alone.
        facts = _facts(leaf, pack, stretch) if leaf.kind == "cut" else ()
        for index, (first, speaking) in enumerate(facts):
            numbers[0, index] = _number(first.get("cer"))
            numbers[1, index] = _number(first.get("context_speaker_similarity"))
            held_out[index] = self._excluded and any(map(self._is_held_out, speaking))
        return {"cer": numbers[0], "similarity": numbers[1], "speaker": held_out}

    @cached_property
    def _excluded(self) -> frozenset[str]:
        return frozenset(self._asked.excluded_speaker_ids)

    def _is_held_out(self, fields: Mapping[str, Any]) -> bool:
        custom: Any = fields.get("custom")
        for name in self._asked.speaker_filter_fields:
            value = fields.get(name)
            if value is None and isinstance(custom, dict):
                value = custom.get(name)
            if value is None:
                continue
            said = str(value)
            parsed = _SPEAKER.search(said)
            if said in self._excluded or (parsed and parsed[1].strip() in self._excluded):
                return True
        return False


def open_field_columns(
    leaf: Leaf,
    pack: LeafPack,
    asked: FieldFilter,
    *,
    workers: int = 1,
    progress: Progress | None = None,
    wait_seconds: float = WAIT_SECONDS,
) -> Mapping[str, NDArray[Any]]:
    """Open the facts that filters ask of the rows of a leaf; read what is missing.

    Parameters
    ----------
    leaf
        The source.
    pack
        Its columns.
    asked
        What filters look at.
    workers, progress, wait_seconds
        As in `open_columns`.

    Returns
    -------
    Mapping
        `cer` and `similarity`: float64, NaN where the row does not say; `speaker`: bool, true where
        the speaker is held out. Each has shape (N,).

    Raises
    ------
    DataError
        If a row cannot be used; it names it.
    StaleIndexError
        If a row is not the one that was indexed.
    BuildError
        If the side file cannot be written, or another process takes too long.
    """
    return open_columns(
        leaf, pack, RowFacts(asked), workers=workers, progress=progress, wait_seconds=wait_seconds
    )


def find_field_columns(
    leaf: Leaf, pack: LeafPack, digest: str
) -> Mapping[str, NDArray[Any]] | None:
    """Open the facts that some filter asked for; None where there are none that can be used.

    Parameters
    ----------
    leaf
        The source.
    pack
        Its columns.
    digest
        Digest of the filter.
    """
    return find_columns(leaf, pack, _KIND, digest)


def _facts(
    leaf: Leaf, pack: LeafPack, stretch: Stretch
) -> Iterator[tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]]:
    """Give what holds the numbers of each row, and what may name its speakers."""
    reader: Any = format_of(leaf)
    start = stretch.start
    block = read_rows(leaf, pack, start, stretch.stop)
    rows = block.rows
    if isinstance(reader, Nemo):
        for number, row in enumerate(rows):
            fields = {**decode_row(row, place_of(leaf, pack, start + number)), **leaf.tags}
            yield fields, (fields,)
    elif isinstance(reader, (LhotseCuts, LhotseShar)):
        for number, row in enumerate(rows):
            line = row.partition(b"\n")[0]
            yield _of_cut(decode_row(line, place_of(leaf, pack, start + number)))
    else:
        for example in examples(leaf, pack, start, block):
            if example.cut_data is None:
                yield example.custom, (example.custom,)
            else:
                yield _of_cut(example.cut_data)


def _of_cut(cut: Any) -> tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]:
    supervisions = supervisions_of(cut)
    custom: Any = supervisions[0].get("custom") if supervisions else None
    is_mono = cut["type"] in _MONO and isinstance(custom, dict)
    return custom if is_mono else {}, supervisions


def _number(value: Any) -> float:
    """Return a number, also one that is written as text; NaN for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return float("nan")
    try:
        return float(value)
    except ValueError:
        return float("nan")


def _speaker_ids(value: Any) -> tuple[str, ...]:
    """Return the speakers that are held out, which may stand in a YAML file."""
    where = None
    if isinstance(value, (str, Path)):
        where = str(value)
        try:
            value = parse_yaml(Path(value).expanduser().read_bytes(), where)
        except FileNotFoundError:
            raise SourceNotFoundError(
                "the file of excluded_speaker_ids does not exist", where=where, fix="Correct it"
            ) from None
        except OSError as error:
            raise ConfigError(
                f"the file of excluded_speaker_ids cannot be read: {error.strerror}",
                where=where,
                fix="Correct its path or rights",
            ) from None
        if isinstance(value, dict):
            value = value.get(_OPTION, value)
    if value is None:
        return ()
    if not isinstance(value, (list, tuple)):
        raise ConfigError(
            f"excluded_speaker_ids is {type(value).__name__}, not a list",
            where=where,
            fix="Write a list of ids, or the path of a YAML file that holds one under that key",
        )
    return tuple(map(str, value))
