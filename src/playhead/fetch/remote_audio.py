"""Audio files that rows name by URLs, read together for a whole batch."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from playhead.errors import SourceNotFoundError
from playhead.paths import scheme
from playhead.storage import access

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from playhead.fetch.timings import Timings
    from playhead.formats import Example, Place

__all__ = ["missing", "read_remote_audio"]


def read_remote_audio(examples: Sequence[Example], timings: Timings) -> None:
    """Read the files that samples name by URLs, all at once; afterwards samples hold their bytes.

    Parameters
    ----------
    examples
        The samples; those that have such files are changed.
    timings
        Where the reading is counted.

    Raises
    ------
    SourceNotFoundError
        If one does not exist; it names the row.
    StorageError
        If one cannot be read.
    """
    remote: list[Example] = []
    named: dict[str, Example] = {}
    for example in _each(examples):
        urls = list(_urls(example))
        if urls:
            remote.append(example)
            named.update((url, example) for url in urls if url not in named)
    if not named:
        return
    urls = list(named)
    with timings.reading(urls[0], 0, len(urls)):
        try:
            data = dict(zip(urls, access.read_files(urls), strict=True))
        except SourceNotFoundError as error:
            gone = max((url for url in urls if url in str(error)), key=len, default=urls[0])
            raise missing(gone, named[gone].place) from error
    timings.num_bytes += sum(map(len, data.values()))
    for example in remote:
        _fill(example, data)


def missing(path: str, place: Place) -> SourceNotFoundError:
    """Return the error of a file that a row names and nobody has."""
    return SourceNotFoundError(
        "the audio file does not exist",
        where=str(place) if place.member == path else f"{place}, audio {path}",
        fix="Restore it, or correct the row's path",
    )


def _each(examples: Sequence[Example]) -> Iterator[Example]:
    """Samples, the rows that they were joined from, and their audio turns."""
    for example in examples:
        yield example
        yield from _each(example.members)
        yield from _each([turn.audio for turn in example.turns if turn.audio is not None])


def _urls(example: Example) -> Iterator[str]:
    audio = example.audio
    if audio is not None and isinstance(audio.source, str) and scheme(audio.source):
        yield audio.source
    if example.cut_data is not None:
        yield from _urls_in(example.cut_data)


def _urls_in(value: Mapping[str, Any]) -> Iterator[str]:
    """URLs of the recordings of a serialised cut."""
    if _is_remote(value):
        yield value["source"]
    for key, inner in value.items():
        if isinstance(inner, dict):
            yield from _urls_in(inner)
        # Supervisions may hold an alignment of every word, and never data.
        elif isinstance(inner, list) and key != "supervisions":
            for item in inner:
                if isinstance(item, dict):
                    yield from _urls_in(item)


def _is_remote(value: Mapping[str, Any]) -> bool:
    source = value.get("source")
    return value.get("type") in ("url", "file") and isinstance(source, str) and bool(scheme(source))


def _fill(example: Example, data: Mapping[str, bytes]) -> None:
    audio = example.audio
    if audio is not None and isinstance(audio.source, str) and audio.source in data:
        if example.place.member is None:
            example.place = replace(example.place, member=audio.source)
        example.audio = replace(audio, source=data[audio.source])
    if example.cut_data is not None:
        mine = {url: data[url] for url in _urls_in(example.cut_data)}
        if mine:
            example.cut_data = _in_memory(example.cut_data)
            example.in_memory = {**example.in_memory, **mine}


def _in_memory(value: Mapping[str, Any]) -> dict[str, Any]:
    """A serialised cut whose recordings of URLs lie in memory, with the URLs as markers."""
    changed: dict[str, Any] = {"type": "memory"} if _is_remote(value) else {}
    for key, inner in value.items():
        if isinstance(inner, dict):
            changed[key] = _in_memory(inner)
        elif isinstance(inner, list) and key != "supervisions":
            changed[key] = [_in_memory(one) if isinstance(one, dict) else one for one in inner]
    return {**value, **changed}
