"""Fetches the shards of the running window, and of the next one, before anybody needs them."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from concurrent.futures import CancelledError
from contextlib import ExitStack, suppress
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from playhead.errors import PlayheadError
from playhead.loader.fork_lock import fork_lock
from playhead.loader.report import KeptReport
from playhead.loader.window_files import kept_files
from playhead.storage.at_exit import call_at_exit
from playhead.storage.held import hold
from playhead.storage.shard_cache import shard_cache
from playhead.storage.shard_room import NoPart
from playhead.storage.shard_wanted import WantedList

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Future

    from playhead.fetch import FetchSpec
    from playhead.index.pack import LeafPack
    from playhead.loader.window_files import FileUse
    from playhead.plan import WindowPlan
    from playhead.storage.held import Held
    from playhead.storage.shard_cache import ShardCache
    from playhead.storage.shard_wanted import Shard

__all__ = ["AheadPart", "ReadAhead", "WindowAhead"]

_log = logging.getLogger("playhead")

STREAMS: Final = 4
"""Shards that are fetched at a time."""

_ROUND_SECONDS = 0.5
_JOIN_SECONDS = 5.0


class WindowAhead(NamedTuple):
    """A window that has batches still to be handed out."""

    part: int
    """Which of several configs it is of; 0 where there is one."""
    steps: int
    """Steps of it that were handed out since its plan was made."""
    plan: Future[WindowPlan]
    """Its plan, when it is there."""


class AheadPart(NamedTuple):
    """Where the samples of one config come from."""

    spec: FetchSpec
    """Its leaves, and where shards are kept."""
    packs: Sequence[LeafPack]
    """Their columns."""
    with_audio: bool
    """Whether archives are read."""


class ReadAhead:
    """Says what this process needs now and next, and fetches it if no other of the machine does.

    One process of a machine fetches; another takes over when it ends. A loader says how far it is,
    and never waits for any of this: who needs a shard that is not there yet fetches it, or waits
    for whoever does.

    Parameters
    ----------
    parts
        The configs, in the order in which windows count them.

    Attributes
    ----------
    error
        What went wrong last; whoever needs that shard will be told.
    """

    def __init__(self, parts: Sequence[AheadPart]) -> None:
        self._parts = parts
        digests = [pack.digest for part in parts for pack in part.packs]
        self._name = blake2b(" ".join(digests).encode(), digest_size=8).hexdigest()
        self._windows: Sequence[WindowAhead] = ()
        self._uses: dict[int, tuple[WindowPlan, list[FileUse]]] = {}
        self._lists: dict[str, WantedList] = {}
        self._published: dict[str, list[Shard]] = {}
        self._lead: dict[str, Held] = {}
        self._news = threading.Event()
        self._stopped = threading.Event()
        self._stopped.set()
        self._due = threading.Condition()
        self._turn = threading.Lock()
        self._shards: deque[tuple[ShardCache, Shard]] = deque()
        self._threads: list[threading.Thread] = []
        self._process = os.getpid()
        self.error: Exception | None = None
        settings = {part.spec.cache.folder: part.spec.cache for part in parts}
        self._rooms = [shard_cache(one).room for one in settings.values()]
        self._before = [room.counts() for room in self._rooms]
        call_at_exit(self.stop)

    def kept(self) -> KeptReport:
        """What all processes of this machine did in the folders since this was made."""
        now = [room.counts() for room in self._rooms]
        return KeptReport(
            **{
                name: sum(getattr(one, name) for one in now)
                - sum(getattr(one, name) for one in self._before)
                for name in ("fetched_bytes", "fetched_shards", "evicted_shards")
            }
        )

    def follow(self, windows: Sequence[WindowAhead]) -> None:
        """Go on from here.

        Parameters
        ----------
        windows
            The running window and those after it, as far as they are being planned.
        """
        is_news = [one.plan for one in windows] != [one.plan for one in self._windows]
        self._windows = windows
        if self._stopped.is_set():
            if any(thread.is_alive() for thread in self._threads):
                return  # in the midst of a request still: they would not know that it goes on
            self._stopped.clear()
            self._shards.clear()
            tasks = [self._run, *[self._fetch] * STREAMS]
            self._threads = [
                threading.Thread(target=task, name="playhead-ahead", daemon=True) for task in tasks
            ]
            for thread in self._threads:
                thread.start()
        elif is_news:
            self._news.set()

    def stop(self) -> None:
        """Need nothing any more, and fetch nothing; a later `follow` starts again."""
        # A process that was forked has no threads, and locks in any state.
        if self._stopped.is_set() or self._process != os.getpid():
            return
        self._stopped.set()
        self._news.set()
        with self._due:
            self._due.notify_all()
        end = time.monotonic() + _JOIN_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))
        self._windows = ()

    def _run(self) -> None:
        try:
            while not self._stopped.is_set():
                try:
                    self._round()
                except (OSError, PlayheadError) as error:
                    # Whoever needs what could not be had tries again, and raises.
                    self._note(error)
                except RuntimeError:
                    if not self._stopped.is_set():
                        raise
                    return  # the process ends, and has no threads for requests any more
                self._news.wait(_ROUND_SECONDS)
                self._news.clear()
        finally:
            for wanted in self._lists.values():
                wanted.withdraw()
            for held in self._lead.values():
                held.close()
            self._lists.clear()
            self._published.clear()
            self._lead.clear()

    def _round(self) -> None:
        """Say what is needed, and have fetched what is not there."""
        missing: deque[tuple[ShardCache, Shard]] = deque()
        for folder, (cache, uris) in self._needed().items():
            if not uris and folder not in self._lists:
                continue
            shards = self._looked_at(cache, uris)
            self._publish(folder, cache, shards)
            lacking = [shard for shard in shards if not cache.has(shard)]
            if not lacking or not self._leads(folder):
                continue
            missing += [(cache, shard) for shard in lacking]
        with self._due:
            self._shards = missing
            self._due.notify_all()

    def _needed(self) -> dict[str, tuple[ShardCache, list[str]]]:
        """What is still needed, by folder, in the order of first use."""
        needed: dict[str, tuple[ShardCache, dict[str, None]]] = {}
        uses: dict[int, tuple[WindowPlan, list[FileUse]]] = {}
        for window in self._windows:
            if not window.plan.done():
                continue  # what is planned already does not wait for it; the next round looks again
            try:
                plan = window.plan.result()
            except (CancelledError, PlayheadError):
                continue  # whoever takes batches will be told
            part = self._parts[window.part]
            settings = part.spec.cache
            known = self._uses.get(id(plan))
            if known is None:
                # A store imports what it needs when it is first asked, which is to be here.
                with fork_lock:
                    known = plan, self._files_of(plan, part)
                    with suppress(OSError, PlayheadError):
                        shard_cache(settings).look([use.uri for use in known[1][:1]])
            uses[id(plan)] = known
            _, uris = needed.setdefault(settings.folder, (shard_cache(settings), {}))
            step = plan.first_step + window.steps
            uris |= dict.fromkeys(use.uri for use in known[1] if use.last >= step)
        self._uses = uses
        return {folder: (cache, list(uris)) for folder, (cache, uris) in needed.items()}

    def _files_of(self, plan: WindowPlan, part: AheadPart) -> list[FileUse]:
        samples = plan.samples_from(plan.first_step)
        return kept_files(samples, part.spec.leaves, part.packs, with_audio=part.with_audio)

    def _looked_at(self, cache: ShardCache, uris: Sequence[str]) -> list[Shard]:
        try:
            return cache.look(uris)
        except (OSError, PlayheadError) as error:
            self._note(error)
        found: list[Shard] = []
        for uri in uris:
            with suppress(OSError, PlayheadError):
                found += cache.look([uri])
        return found

    def _publish(self, folder: str, cache: ShardCache, shards: list[Shard]) -> None:
        if self._published.get(folder) == shards:
            return
        cache.room.folder.mkdir(parents=True, exist_ok=True)
        wanted = self._lists.setdefault(folder, WantedList(cache.room.folder))
        wanted.publish(shards)
        self._published[folder] = shards

    def _leads(self, folder: str) -> bool:
        """Whether it is this process that fetches."""
        if folder not in self._lead:
            held = hold(Path(folder) / f"{self._name}.lead", create=True)
            if held is None:
                return False
            self._lead[folder] = held
        return True

    def _note(self, error: Exception) -> None:
        """Say once what keeps shards from being fetched ahead."""
        if str(error) != str(self.error):
            _log.warning("shards are not fetched ahead: %s", error)
        self.error = error

    def _fetch(self) -> None:
        """Fetch one shard after another, until it is all over."""
        while not self._stopped.is_set():
            # Room goes to shards in the order in which they are needed: one stream after another
            # asks for it.
            with ExitStack() as turn:
                turn.enter_context(self._turn)
                with self._due:
                    if not self._shards:
                        if not self._stopped.is_set():
                            self._due.wait(_ROUND_SECONDS)
                        continue
                    cache, shard = self._shards.popleft()
                try:
                    found = cache.fill(shard, stopped=self._stopped.is_set, reserved=turn.close)
                except (OSError, PlayheadError) as error:
                    self._note(error)
                    continue
                except RuntimeError:
                    if not self._stopped.is_set():
                        raise
                    return  # as above
            if found is NoPart.FULL:
                with self._due:
                    self._shards.clear()
