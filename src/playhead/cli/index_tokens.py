"""`playhead index --tokenizer`: count the tokens of every row, beside the packs."""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from playhead.cli.options import parse_spec
from playhead.cli.progress import say
from playhead.errors import PlayheadError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence

    from playhead.blend import Blend
    from playhead.blend.leaf import Leaf
    from playhead.index.build_pace import Progress
    from playhead.index.build_result import PackResult
    from playhead.index.pack import LeafPack
    from playhead.index.part_work import Share
    from playhead.index.pool import Workers
    from playhead.tokens.encoding import Encoding

__all__ = [
    "TokenResult",
    "count_tokens",
    "encoding_of",
    "measured_as_trained",
    "packs_of",
    "say_tokens",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenResult:
    """One leaf after `count_tokens`."""

    leaf: str
    """Its name."""
    path: str
    """The side file."""
    status: Literal["counted", "fresh", "waiting", "failed"]
    """`fresh`: it was up to date and is as it was; `waiting`: other parts have to do theirs."""
    rows: int
    """Rows."""
    tokens: int
    """Tokens of all rows; 0 where it failed."""
    error: PlayheadError | None = None
    """Why it failed."""
    missing_parts: tuple[int, ...] = ()
    """Numbers of the parts of the work that it waits for."""

    def to_json(self) -> dict[str, Any]:
        """Return it as the summary has it."""
        return {
            "leaf": self.leaf,
            "path": self.path,
            "status": self.status,
            "rows": self.rows,
            "tokens": self.tokens,
        }


def encoding_of(spec: str, prompt_format: str | None) -> Encoding:
    """Load what `--tokenizer` and `--prompt-format` say.

    Raises
    ------
    PlayheadError
        If there is no such tokenizer or prompt format.
    """
    from playhead.tokens.encoding import Encoding  # noqa: PLC0415  (loads pyarrow)
    from playhead.tokens.tokenizer import load_tokenizer  # noqa: PLC0415

    return Encoding(load_tokenizer(parse_spec(spec)), prompt_format)


def measured_as_trained(
    blend: Blend, packs: Sequence[tuple[Leaf, LeafPack]], encoding: Encoding
) -> list[tuple[Leaf, LeafPack, Encoding]]:
    """Say what counts the tokens of each leaf of a blend: as its loaders will ask for them.

    Where it measures its samples in tokens, the audio in conversations takes some too. Its own
    prompt format holds where the call names none.

    Parameters
    ----------
    blend
        The blend, with the options of its section.
    packs
        Their leaves with their columns; a leaf that is not there is left out.
    encoding
        The tokenizer and the prompt format.

    Raises
    ------
    ConfigError
        If there is audio and the blend does not say how many tokens it takes.
    """
    from playhead.loader.audio_lengths import audio_tokens_of  # noqa: PLC0415  (loads NumPy)
    from playhead.loader.settings import measures_tokens  # noqa: PLC0415
    from playhead.tokens.encoding import Encoding  # noqa: PLC0415

    pack_of = {id(leaf): pack for leaf, pack in packs}
    mine = [(leaf, pack_of[id(leaf)]) for leaf in blend.leaves if id(leaf) in pack_of]
    prompt = encoding.prompt_format or blend.options.prompt_format
    audio = None
    if mine and measures_tokens(blend.options):
        audio = audio_tokens_of(blend.options, *map(list, zip(*mine, strict=True)))
    if audio is not None or prompt != encoding.prompt_format:
        encoding = Encoding(encoding.tokenizer, prompt, audio=audio)
    return [(leaf, pack, encoding) for leaf, pack in mine]


def packs_of(leaves: Iterable[Leaf], results: Iterable[PackResult]) -> list[tuple[Leaf, LeafPack]]:
    """Open the columns of leaves: in the packs that were built, or where they are declared.

    Parameters
    ----------
    leaves
        The leaves; those whose pack failed or waits for other parts are left out.
    results
        What `build_packs` said of them.
    """
    from playhead.index.build import open_leaves  # noqa: PLC0415  (loads pyarrow)
    from playhead.index.build_target import leaf_sources  # noqa: PLC0415
    from playhead.index.pack import open_pack  # noqa: PLC0415

    homes: dict[str, Any] = {}
    failed: set[str] = set()
    for result in results:
        if result.status == "failed":
            failed.update(result.keys)
        if result.status in ("built", "fresh"):
            pack = open_pack(result.path)
            homes.update((entry.source, pack) for entry in pack.leaves)
    opened: list[tuple[Leaf, LeafPack]] = []
    for leaf in leaves:
        if leaf.key in failed:
            continue
        sources = leaf_sources(leaf)
        if sources.declared_pack is not None:
            opened.append((leaf, open_leaves([leaf])[0]))
            continue
        source = sources.source
        if source in homes:
            opened.append((leaf, homes[source].leaf(leaf.key, source)))
    return opened


def count_tokens(
    leaves: Sequence[tuple[Leaf, LeafPack, Encoding]],
    *,
    workers: Workers,
    force: bool,
    share: Share | None,
) -> list[TokenResult]:
    """Count the tokens of leaves, with a bar where a person is looking.

    Parameters
    ----------
    leaves
        The leaves with their columns and what makes tokens of their rows; two of one source, the
        same fields and the same encoding are counted once.
    workers
        How many threads or processes may work; or a cluster.
    force
        Count what is up to date too.
    share
        Do one part of the work; all of it if None.

    Returns
    -------
    list[TokenResult]
        One for each side file; those that failed say why, and the others are made all the same.
    """
    from playhead.tokens.side_columns import side_path  # noqa: PLC0415  (loads pyarrow)

    todo = {
        str(side_path(leaf, pack, "tokens", encoding.digest)): (leaf, pack, encoding)
        for leaf, pack, encoding in leaves
    }
    results: list[TokenResult] = []
    before = 0
    with _bar(sum(pack.num_rows for _, pack, _ in todo.values())) as behind:
        for path, (leaf, pack, encoding) in todo.items():
            results.append(
                _counted(
                    path,
                    leaf,
                    pack,
                    encoding,
                    workers=workers,
                    progress=behind(before),
                    force=force,
                    share=share,
                )
            )
            before += pack.num_rows
    return results


def say_tokens(results: Sequence[TokenResult]) -> None:
    """Print what became of the counts, if there are any."""
    if not results:
        return
    count: Counter[str] = Counter(result.status for result in results)
    waiting = f"{count['waiting']} waiting for other parts, " if count["waiting"] else ""
    rows, tokens = sum(one.rows for one in results), sum(one.tokens for one in results)
    say(
        f"Tokens: {count['counted']} counted, {count['fresh']} up to date, {waiting}"
        f"{count['failed']} failed; {tokens:,} tokens of {rows:,} rows."
    )


def _counted(
    path: str,
    leaf: Leaf,
    pack: LeafPack,
    encoding: Encoding,
    *,
    workers: Workers,
    progress: Progress,
    force: bool,
    share: Share | None,
) -> TokenResult:
    from playhead.index.partials import remove_partials  # noqa: PLC0415  (loads pyarrow)
    from playhead.tokens.count import (  # noqa: PLC0415
        count_token_share,
        find_token_columns,
        open_token_columns,
    )

    status: Literal["counted", "fresh", "waiting", "failed"] = "fresh"
    counts = error = None
    missing: tuple[int, ...] = ()
    how: dict[str, Any] = {"workers": workers, "progress": progress}
    try:
        if force and share is None:
            Path(path).unlink(missing_ok=True)
            remove_partials(Path(path))
        found = find_token_columns(leaf, pack, encoding.digest)
        if found is not None and not force:
            remove_partials(Path(path))
        if share is not None and (found is None or force):
            missing = count_token_share(leaf, pack, encoding, share, force=force, **how)
            status = "waiting" if missing else "counted"
            found = find_token_columns(leaf, pack, encoding.digest)
        elif found is None:
            status = "counted"
            found = open_token_columns(leaf, pack, encoding, **how)
        counts = found["tokens"] if found is not None and not missing else None
    except PlayheadError as failure:
        status, error = "failed", failure
    return TokenResult(
        leaf=leaf.name,
        path=path,
        status=status,
        rows=pack.num_rows,
        tokens=0 if counts is None else int(counts.sum(dtype="int64")),
        error=error,
        missing_parts=missing,
    )


@contextmanager
def _bar(total: int) -> Generator[Callable[[int], Progress]]:
    """Show how many rows are done, on a terminal: what is told is behind so many rows."""
    if not total or not sys.stderr.isatty():
        yield lambda before: lambda what, done, total: None  # noqa: ARG005 - the protocol's
        return
    from rich.console import Console  # noqa: PLC0415  (only where there is a terminal)
    from rich.progress import Progress as Bar  # noqa: PLC0415

    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("counting tokens", total=total)

        def behind(before: int) -> Progress:
            def show(what: str, done: float, total: float) -> None:  # noqa: ARG001 - the protocol's
                bar.update(task, description=f"counting {what}", completed=before + done)

            return show

        yield behind
