"""What `playhead index` says while it works and at its end."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playhead.cli.parts import missing_note
from playhead.cli.progress import say
from playhead.cli.repeated import without_repeats

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.cli.index_tokens import TokenResult
    from playhead.errors import PlayheadError
    from playhead.index.build_result import PackResult
    from playhead.index.part_work import Share
    from playhead.index.sidecars import Sidecar

__all__ = ["Failure", "Report"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """Something that could not be indexed."""

    kind: str
    """`jsonl`, `nemo_tar`, `wds_tar`, `pack`, `tokens` or `exclusions`."""
    path: str
    """The data file, the pack, or the side file."""
    error: str
    """Why."""


@dataclass(kw_only=True, slots=True)
class Report:
    """The outcome of one run."""

    discovered: int
    """Data files that are named."""
    pending: Sequence[Sidecar]
    """Those whose `.idx` is to be built."""
    built: int = 0
    """`.idx` files written."""
    samples: int = 0
    """Samples in them."""
    failures: list[Failure] = field(default_factory=list[Failure])
    """What went wrong, in order."""
    is_refused: bool = False
    """Whether a config is among that which cannot be used."""
    packs: list[PackResult] = field(default_factory=list["PackResult"])
    """The packs, those that were fresh included."""
    tokens: list[TokenResult] = field(default_factory=list["TokenResult"])
    """The side files with token counts, those that were fresh included."""
    excluded: dict[str, Any] | None = None
    """What became of the samples that were to be left out; None where none was named."""
    share: Share | None = None
    """Which part of the work this is; None for all of it."""
    notes: list[str] = field(default_factory=list[str])
    """What a person should know."""

    @property
    def exit_code(self) -> int:
        """0; 1 if something could not be indexed; 2 if a config cannot be used."""
        return 2 if self.is_refused else int(bool(self.failures))

    @property
    def missing_parts(self) -> list[int]:
        """Numbers of the parts that others have to do before all is there."""
        results = (*self.packs, *self.tokens)
        return sorted({number for result in results for number in result.missing_parts})

    def fail(self, kind: str, path: str, error: PlayheadError) -> str:
        """Keep a failure and give its line."""
        self.failures.append(Failure(kind=kind, path=path, error=str(error)))
        return f"  [FAIL] {kind} {path}: {error}"

    def note(self, text: str) -> None:
        """Keep a note and print it."""
        self.notes.append(text)
        say(f"Note: {text}.")

    def say_discovered(self) -> None:
        """Print how much there is to do."""
        fresh = self.discovered - len(self.pending)
        say(
            f"Discovered {self.discovered} files ({fresh} already indexed, "
            f"{len(self.pending)} to build)."
        )

    def say_pending(self) -> None:
        """Print what would be built."""
        for sidecar in self.pending:
            say(f"  [{sidecar.kind}] {sidecar.path} -> {sidecar.idx}")

    def say_packs(self) -> None:
        """Print what became of the packs, if there are any."""
        if not self.packs:
            return
        count: Counter[str] = Counter(pack.status for pack in self.packs)
        waiting = f"{count['waiting']} waiting for other parts, " if count["waiting"] else ""
        rows = sum(pack.num_rows for pack in self.packs)
        written = [pack.path for pack in self.packs if pack.status != "failed"]
        folders = sorted({str(Path(path).parent) for path in written})
        say(
            f"Packs: {count['built']} built, {count['fresh']} up to date, {waiting}"
            f"{count['failed']} failed; {rows:,} rows{', in ' * bool(folders)}{', '.join(folders)}."
        )
        for pack in self.packs:
            for reason, dropped in pack.dropped.items():
                say(f"  left out {dropped:,} ({reason}) of {pack.path}")

    def say_missing_parts(self, arguments: Sequence[str]) -> None:
        """Print which parts of the work are missing, if any are, and what does the first of them.

        Parameters
        ----------
        arguments
            Those that this run was started with, behind the program's name.
        """
        missing, share = self.missing_parts, self.share
        if not missing or share is None:
            return
        self.note(missing_note(missing, share, arguments))

    def say_failures(self) -> None:
        """Print the failures once more, for those who read only the end."""
        if self.failures:
            say(f"\n{len(self.failures)} index build(s) failed:")
            for line in without_repeats(
                (f"  {one.path} ({one.kind}): {one.error}", one.error.replace(one.path, ""))
                for one in self.failures
            ):
                say(line)

    def to_json(self, *, dry_run: bool) -> str:
        """Give everything as one line of JSON."""
        summary: dict[str, Any] = {
            "dry_run": dry_run,
            "discovered": self.discovered,
            "already_indexed": self.discovered - len(self.pending),
            "to_build": [
                {"kind": one.kind, "path": one.path, "idx": one.idx} for one in self.pending
            ],
            "built": self.built,
            "samples": self.samples,
            "packs": [
                {
                    "path": pack.path,
                    "status": pack.status,
                    "rows": pack.num_rows,
                    "left_out": pack.dropped,
                }
                for pack in self.packs
            ],
            "tokens": [result.to_json() for result in self.tokens],
            "excluded": self.excluded,
            "part": None if self.share is None else str(self.share),
            "missing_parts": self.missing_parts,
            "failures": [
                {"kind": one.kind, "path": one.path, "error": one.error} for one in self.failures
            ],
            "notes": self.notes,
        }
        return json.dumps(summary, ensure_ascii=False)
