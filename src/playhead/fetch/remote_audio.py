"""Audio files that rows name by URLs, read together for a whole batch."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from playhead.fetch.missing_audio import mark_missing, with_rows_and_turns
from playhead.paths import scheme
from playhead.storage import access

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from playhead.fetch.timings import Timings
    from playhead.formats import Example

__all__ = ["read_remote_audio", "remote_files"]


def remote_files(examples: Sequence[Example]) -> list[str]:
    """Name the files that samples name by URLs, none twice."""
    files: dict[str, None] = {}
    for example in with_rows_and_turns(examples):
        files |= dict.fromkeys(_urls(example))
    return list(files)


def read_remote_audio(
    examples: Sequence[Example], read: Mapping[str, bytes | None], timings: Timings
) -> None:
    """Read the files that samples name by URLs, all at once; afterwards samples hold their bytes.

    Parameters
    ----------
    examples
        The samples; those that have such files are changed. A file that does not exist is noted.
    read
        What of them was read already; None for a file that does not exist.
    timings
        Where the reading is counted.

    Raises
    ------
    StorageError
        If one cannot be read.
    """
    found = dict(read)
    urls = [url for url in remote_files(examples) if url not in found]
    if urls:
        with timings.reading(urls[0], 0, len(urls)):
            found.update(zip(urls, access.read_files(urls), strict=True))
        timings.num_bytes += sum(len(found[url] or b"") for url in urls)
    if not found:
        return
    data = {url: content for url, content in found.items() if content is not None}
    for example in with_rows_and_turns(examples):
        gone = next((url for url in _urls(example) if url not in data), None)
        if gone is None:
            _fill(example, data)
        else:
            mark_missing(example, gone)


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
