"""`playhead inspect`: how far every source of a checkpoint has been read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from playhead.cli import app
from playhead.cli.configs import import_all
from playhead.cli.options import AsJson, DataBlendDir, Imports, Section, Tokenizer, parse_spec
from playhead.cli.progress import say
from playhead.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from playhead.inspect.summary import Summary

__all__ = ["inspect"]


@app.command()
def inspect(
    checkpoint: Annotated[
        str | None,
        typer.Argument(help="A checkpoint: JSON, .ckpt, a torch file, a folder, eval-step-N."),
    ] = None,
    *,
    state_json: Annotated[
        str | None,
        typer.Option(help="A state as JSON, in place of a checkpoint.", metavar="FILE"),
    ] = None,
    config: Annotated[
        str | None,
        typer.Option(
            help="The config of the run; one beside the checkpoint, or in the two folders above, by"
            " default.",
            metavar="YAML",
        ),
    ] = None,
    section: Section = None,
    loader: Annotated[
        str | None,
        typer.Option(
            help="The place of the position to show, or the end of it, where there are several.",
            metavar="PATH",
        ),
    ] = None,
    tokenizer: Tokenizer = None,
    data_blend_dir: DataBlendDir = None,
    imports: Imports = None,
    indexes_root: Annotated[
        str | None,
        typer.Option(help="Where indexes are, in place of what the config says.", metavar="DIR"),
    ] = None,
    index_pack_root: Annotated[
        str | None,
        typer.Option(
            help="Where declared packs are, in place of what the config says.", metavar="DIR"
        ),
    ] = None,
    default_index_pack_root: Annotated[
        str | None,
        typer.Option(help="Where declared packs are if the config says nothing.", metavar="DIR"),
    ] = None,
    output_dir: Annotated[
        str | None,
        typer.Option(help="Write summary.json, summary.md and summary.csv there.", metavar="DIR"),
    ] = None,
    output_json: Annotated[
        str | None, typer.Option(help="Write the JSON there.", metavar="FILE")
    ] = None,
    output_md: Annotated[
        str | None, typer.Option(help="Write the Markdown there.", metavar="FILE")
    ] = None,
    output_csv: Annotated[
        str | None, typer.Option(help="Write the CSV there.", metavar="FILE")
    ] = None,
    print_table: Annotated[
        bool, typer.Option("--print-table", help="Print the table although files are written.")
    ] = False,
    as_json: AsJson = False,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print Markdown in place of the table.")
    ] = False,
    replay_draws: Annotated[
        int,
        typer.Option(
            min=0,
            help="Draws that are planned again at most, for the padding of all steps and the steps"
            " that are left.",
            metavar="N",
        ),
    ] = 4_000_000,
    max_full_load_mb: Annotated[
        int,
        typer.Option(
            min=1,
            help="Files that hold more than this beside their tensors are passed over.",
            metavar="MB",
        ),
    ] = 512,
    allow_full_ckpt_load: Annotated[
        bool,
        typer.Option(
            "--allow-full-ckpt-load",
            help="Let torch load a file that cannot be read otherwise: it RUNS what stands in it.",
        ),
    ] = False,
) -> None:
    """Say how far every source of a checkpoint has been read, and how well the blend is kept.

    Nothing is changed, built or run: tensors are not read, and objects of a checkpoint are never
    made.

    Exit code 0: it was shown; 2: wrong input; 1: a checkpoint is damaged.
    """
    from playhead.inspect.config_files import Asked  # noqa: PLC0415  (only here)
    from playhead.inspect.inspecting import (  # noqa: PLC0415  (loads NumPy)
        Limits,
        inspect_checkpoint,
        inspect_loaders,
    )

    path = state_json if state_json is not None else checkpoint
    if not path:
        raise ConfigError("there is nothing to look at", fix="Name a checkpoint, or a --state-json")
    files = {
        "folder": output_dir,
        "json_file": output_json,
        "markdown_file": output_md,
        "csv_file": output_csv,
    }
    import_all(imports or ())
    limits = Limits(
        allow_full_load=allow_full_ckpt_load,
        most_full_load_bytes=max_full_load_mb << 20,
        most_replayed=replay_draws,
    )
    asked = Asked(
        section=section,
        data_blend_dir=data_blend_dir,
        tokenizer=parse_spec(tokenizer),
        indexes_root=indexes_root,
        index_pack_root=index_pack_root,
        default_index_pack_root=default_index_pack_root,
    )
    writes = any(file is not None for file in files.values())
    if loader is not None or as_json or (writes and not print_table):
        shown = [inspect_checkpoint(path, config, asked=asked, limits=limits, loader=loader)]
    else:
        shown = inspect_loaders(path, config, asked=asked, limits=limits)
    _write(shown[0], files)
    if as_json:
        _say_json(shown[0])
    elif print_table or not writes:
        _say(shown, _page if as_markdown else _table)


def _write(summary: Summary, files: Mapping[str, str | None]) -> None:
    from playhead.inspect.writing import write_files  # noqa: PLC0415  (only where asked)

    for file in write_files(summary, **files):
        say(f"Wrote {file}.")


def _say_json(summary: Summary) -> None:
    from playhead.inspect.writing import json_text  # noqa: PLC0415  (only where asked)

    typer.echo(json_text(summary), nl=False)


def _say(summaries: Sequence[Summary], text_of: Callable[[Summary], str]) -> None:
    typer.echo("\n".join(f"{text_of(summary)}\n" for summary in summaries), nl=False)


def _table(summary: Summary) -> str:
    from playhead.inspect.table import table  # noqa: PLC0415  (only where asked)

    return table(summary)


def _page(summary: Summary) -> str:
    from playhead.inspect.table import printable  # noqa: PLC0415  (only where asked)
    from playhead.inspect.writing import markdown  # noqa: PLC0415  (only where asked)

    listed = [f"- {printable(note)}" for note in summary.notes]
    notes = ["", "Notes:", "", *listed] if listed else []
    return "\n".join([markdown(summary).rstrip("\n"), *notes])
