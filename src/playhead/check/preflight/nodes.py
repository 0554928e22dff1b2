"""What this node sees of the data, to be compared with what others see."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any
from zlib import crc32

from playhead.check.preflight.files import without_secrets
from playhead.errors import PlayheadError
from playhead.storage import access

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.check.preflight.subject import Subject

__all__ = ["Difference", "ends_of_leaves", "unlike"]

_KIB = 1024
_THREADS = 16
Difference = tuple[str, int, int, str]
"""A node, how many of how many files it sees in another way, and the first of them."""


def ends_of_leaves(subject: Subject) -> dict[str, list[Any]]:
    """Read the first and last KiB of the first and last file of every role of every leaf.

    Parameters
    ----------
    subject
        The config.

    Returns
    -------
    dict[str, list]
        By leaf, role and end: the path, and size and CRC-32, or what is wrong with it.
    """
    wanted: dict[str, str] = {}
    for number, named in enumerate(subject.leaves):
        for role, paths in named.leaf.paths.items():
            for end, path in (("first", paths[0]), ("last", paths[-1])):
                if not path.startswith("pipe:"):
                    wanted[f"{number} {named.leaf.type} {role} {end}"] = path
    with ThreadPoolExecutor(_THREADS) as pool:
        facts = pool.map(_look, wanted.values())
        return {
            key: [without_secrets(path), fact]
            for (key, path), fact in zip(wanted.items(), facts, strict=True)
        }


def _look(path: str) -> str:
    try:
        size = access.size(path)
        some = min(_KIB, size)
        head, tail = access.read_ranges(path, [0, size - some], [some, some])
    except IsADirectoryError:
        return "a folder"
    except (PlayheadError, OSError) as error:
        return without_secrets(str(error).partition(" (")[0].rstrip("."))
    return f"{size} bytes, crc {crc32(tail, crc32(head)):08x}"


def unlike(seen: Mapping[str, Mapping[str, list[Any]]]) -> list[Difference]:
    """Find the nodes that see other files than most.

    Parameters
    ----------
    seen
        By node what `ends_of_leaves` gave there.

    Examples
    --------
    >>> one, other = {"0 nemo tar first": ["a.tar", "1"]}, {"0 nemo tar first": ["a.tar", "2"]}
    >>> unlike({"a": one, "b": one, "c": other})
    [('c', 1, 1, 'a.tar: 2, and 1 on a')]
    """
    hosts = list(seen)
    keys = dict.fromkeys(key for facts in seen.values() for key in facts)
    counts: dict[str, int] = dict.fromkeys(hosts, 0)
    first: dict[str, str] = {}
    for key in keys:
        facts = {host: seen[host].get(key, ["", "not in the config"]) for host in hosts}
        # Of equally many the first node is believed.
        usual = Counter(fact[1] for fact in facts.values()).most_common(1)[0][0]
        model = next(host for host in hosts if facts[host][1] == usual)
        for host, (path, fact) in facts.items():
            if fact != usual:
                counts[host] += 1
                first.setdefault(host, f"{path or facts[model][0]}: {fact}, and {usual} on {model}")
    return [(host, counts[host], len(keys), first[host]) for host in hosts if counts[host]]
