"""Rules on the nodes of a job, compared with each other; one that is alone has nothing to say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.check.preflight.nodes import ends_of_leaves, unlike
from playhead.check.preflight.rule import CannotRun, Seen, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.check.preflight.exchange import Exchange
    from playhead.check.preflight.subject import Subject

__all__: list[str] = []


@rule("nodes-differ", "fail", "Ranks that see other data train on other data, or stop")
def nodes_differ(subject: Subject) -> Iterator[Seen]:
    """Nodes that see other bytes than most at the ends of a leaf."""
    exchange: Exchange | None = subject.facts.get("exchange")
    if subject.facts.get("nodes", 1) == 1:
        return
    if exchange is None:
        raise CannotRun("nodes cannot be compared without --exchange DIR, a folder all share")
    said = exchange.gather("files", ends_of_leaves(subject))
    subject.facts["hosts"] = tuple(said)
    for host, facts in said.items():
        if facts is None:
            yield Seen(
                f"{host} said nothing in time",
                host,
                advice="Look whether it has started, and whether it sees the exchange",
            )
    there = {host: facts for host, facts in said.items() if facts is not None}
    for host, count, total, example in unlike(there):
        yield Seen(
            f"{host} sees {count} of {total} files in another way than most: {example}",
            host,
            advice="Copy the data again, or mount the same file system on all nodes",
        )
