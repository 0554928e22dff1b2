"""Progress on stderr: plain lines, and a bar where a person is looking."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from types import TracebackType

    from rich.progress import Progress, TaskID

    from playhead.index.build_pace import Progress as Told

__all__ = ["Heartbeat", "say", "shares", "stages"]


def say(line: str) -> None:
    """Print a line to stderr at once."""
    print(line, file=sys.stderr, flush=True)  # noqa: T201


@contextmanager
def shares(doing: str) -> Generator[Told]:
    """Show how much of some work is done: `  packed 40.0%  train.json`.

    A line comes about twenty times; on a terminal a bar stands in for them.

    Parameters
    ----------
    doing
        What is done, such as `packed`.

    Yields
    ------
    Told
        What is to be told of the work.
    """
    if sys.stderr.isatty():
        from rich.console import Console  # noqa: PLC0415  (only where there is a terminal)
        from rich.progress import Progress  # noqa: PLC0415

        with Progress(console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(doing, total=None)
            yield lambda what, done, total: bar.update(
                task, description=f"{doing} {what}", completed=done, total=total
            )
        return
    said = 0

    def tell(what: str, done: float, total: float) -> None:
        nonlocal said
        twentieth = int(20 * done / total) if total else 20
        if twentieth > said:
            said = twentieth
            say(f"  {doing} {5 * twentieth}%  {what}")

    yield tell


@contextmanager
def stages() -> Generator[Callable[[str], None]]:
    """Show what is being done, where a person is looking; nothing is said elsewhere.

    Yields
    ------
    Callable[[str], None]
        What is to be told of it, in a few words.
    """
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console  # noqa: PLC0415  (only where there is a terminal)
    from rich.markup import escape  # noqa: PLC0415

    with Console(stderr=True).status("") as status:
        yield lambda doing: status.update(escape(doing))


@final
class Heartbeat:
    """Says how far some work is: `  built 20/100 (20.0%)  failures=0`.

    A line comes about twenty times, at least every 5,000 items, and always at the end. On a
    terminal a bar stands in for all lines but the last.

    Parameters
    ----------
    total
        Number of items.
    doing
        What is done with them.
    """

    def __init__(self, total: int, doing: str = "built") -> None:
        self.total = total
        self._doing = doing
        self.done = 0
        self.failures = 0
        self._every = max(1, min(5000, total // 20))
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Heartbeat:
        if self.total and sys.stderr.isatty():
            from rich.console import Console  # noqa: PLC0415  (only where there is a terminal)
            from rich.progress import Progress  # noqa: PLC0415

            self._bar = Progress(console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task(self._doing, total=self.total)
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
        if self.total and kind is None and (self._bar is not None or self.done % self._every):
            self._beat()

    def advance(self, *, failure: str | None) -> None:
        """Count an item; `failure` is the line to print if it failed."""
        self.done += 1
        if failure is not None:
            self.failures += 1
            self.say(failure)
        if self._bar is not None and self._task is not None:
            self._bar.advance(self._task)
        elif self.done % self._every == 0:
            self._beat()

    def say(self, line: str) -> None:
        """Print a line, above the bar if there is one."""
        if self._bar is None:
            say(line)
        else:
            self._bar.console.print(line, markup=False, highlight=False, soft_wrap=True)

    def _beat(self) -> None:
        share = 100 * self.done / self.total
        say(f"  {self._doing} {self.done}/{self.total} ({share:.1f}%)  failures={self.failures}")
