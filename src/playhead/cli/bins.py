"""`playhead bins`: length classes for a config, out of the columns of its data."""

from __future__ import annotations

import json
import warnings
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import typer

from playhead.cli import app
from playhead.cli import bins_options as given
from playhead.cli.bins_checks import (
    either,
    refuse_idle,
    refuse_nan,
    refuse_to_replace,
    tokenizer_of,
)
from playhead.cli.configs import import_all
from playhead.cli.options import AsJson, DataBlendDir, Imports, Section
from playhead.cli.progress import say
from playhead.cli.several_values import SeveralValues
from playhead.errors import ConfigError, PlayheadError, StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from playhead.bins.opening import Reading
    from playhead.bins.result import Bins
    from playhead.bins.settings import BinSettings
    from playhead.config import Options

__all__ = ["bins"]

_SUB_BUCKETS = 2
_THRESHOLD, _THRESHOLD_OF_TOKENS = 4.0, 6.0


@app.command(cls=SeveralValues)
def bins(
    inputs: given.Inputs,
    *,
    buckets: given.Buckets = 30,
    least: given.Least = None,
    most: given.Most = None,
    min_duration: given.MinDuration = None,
    max_duration: given.MaxDuration = None,
    num_examples: given.NumExamples = -1,
    optimize: given.Optimize = False,
    tokenizer: given.Tokenizers = None,
    langs: given.Langs = None,
    sub_buckets: given.SubBuckets = None,
    token_outlier_threshold: given.TokenOutlierThreshold = None,
    max_tps: given.MaxTps = None,
    text_field: given.TextField = None,
    lang_field: given.LangField = None,
    prompt_format: given.PromptFormat = None,
    prompt: given.Prompt = None,
    tokens: given.Tokens = False,
    quantize_bins: given.QuantizeBins = "none",
    measure_total_length: given.MeasureTotalLength = None,
    min_tokens: given.MinTokens = None,
    max_tokens: given.MaxTokens = None,
    max_tpt: given.MaxTpt = None,
    token_equivalent_duration: given.TokenEquivalentDuration = None,
    audio_locator_tag: given.AudioLocatorTag = None,
    section: Section = None,
    data_blend_dir: DataBlendDir = None,
    imports: Imports = None,
    output: given.Output = None,
    source_config: given.SourceConfig = None,
    output_config: given.OutputConfig = None,
    quiet: given.Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Make bins for a config, and print the options that training needs for them.

    Only columns are read, no audio; indexes that are missing are built first. The weights of a
    blend count, and so do the filters of a config.
    """
    from playhead.bins.config_keys import keys_of, yaml_of  # noqa: PLC0415  (loads NumPy)
    from playhead.bins.inputs import config_of  # noqa: PLC0415
    from playhead.bins.opening import Reading  # noqa: PLC0415  (imports torch)
    from playhead.bins.prompt_slots import slots_of  # noqa: PLC0415
    from playhead.bins.rewriting import with_bins  # noqa: PLC0415
    from playhead.bins.settings import BinSettings  # noqa: PLC0415
    from playhead.cli.bins_text import header_of  # noqa: PLC0415

    if not tokens:
        refuse_idle(
            "bins of tokens",
            "Give --tokens too, or leave it out",
            quantize_bins=quantize_bins,
            measure_total_length=measure_total_length,
            min_tokens=min_tokens,
            max_tokens=max_tokens,
            max_tpt=max_tpt,
            token_equivalent_duration=token_equivalent_duration,
        )
    if sub_buckets is None:
        sub_buckets = _SUB_BUCKETS if tokenizer and not tokens else 0
    if not sub_buckets:
        refuse_idle(
            "bins of two lengths",
            "Give --tokenizer and --sub-buckets too, or leave it out",
            token_outlier_threshold=token_outlier_threshold,
        )
    if not tokenizer:
        refuse_idle("bins with a --tokenizer", "Give one, or leave it out", prompt=prompt)
    low, high = (min_tokens, max_tokens) if tokens else (min_duration, max_duration)
    low, high = either("-l", least, low), either("-u", most, high)
    if token_outlier_threshold is None:
        token_outlier_threshold = _THRESHOLD_OF_TOKENS if tokens else _THRESHOLD
    refuse_nan(low, high, min_duration, max_duration, max_tps, max_tpt, token_outlier_threshold)
    settings = BinSettings(
        num_buckets=buckets,
        in_tokens=tokens,
        sub_buckets=sub_buckets or None,
        outlier_threshold=token_outlier_threshold,
        num_examples=None if num_examples == -1 else num_examples,
        optimize=optimize,
        quantization=quantize_bins,
        min_tokens=low if tokens else None,
        max_tokens=high if tokens else None,
        max_tpt=max_tpt,
    )
    overrides = {
        "min_duration": min_duration if tokens else low,
        "max_duration": max_duration if tokens else high,
        "max_tps": max_tps,
        "text_field": text_field,
        "lang_field": lang_field,
        "prompt_format": prompt_format,
        "measure_total_length": measure_total_length,
        "token_equivalent_duration": token_equivalent_duration,
        "audio_locator_tag": audio_locator_tag,
    }
    rewritten = _rewritten(source_config, output_config, section, data_blend_dir)
    refuse_to_replace(output, rewritten, inputs)
    import_all(imports or ())
    reading = Reading(
        in_tokens=tokens,
        two_lengths=bool(sub_buckets),
        tokenizer=tokenizer_of(tokenizer or (), langs or ()),
        slots=None if prompt is None else slots_of(prompt),
        section=section,
        data_blend_dir=data_blend_dir,
        overrides={name: value for name, value in overrides.items() if value is not None},
    )
    note: Callable[[str], None] = _silent if quiet else _note
    if max_tps is not None:
        note("--max_tps is deprecated: --token_outlier_threshold finds a limit for each bucket")
    made, options = _estimated(config_of(inputs), reading, settings, note)
    keys = keys_of(made, options)
    # Printed first: what cannot be written is not lost.
    _print(made, keys, quiet=quiet, as_json=as_json)
    if output is not None:
        _write(output, yaml_of(keys, header_of(made, inputs)))
    for source, target in rewritten.items():
        text = with_bins(source, keys, section=section, data_blend_dir=data_blend_dir)
        _write(target, text)


def _rewritten(
    source: str | None, target: str | None, section: str | None, data_blend_dir: str | None
) -> dict[str, str]:
    """The config that is to be written anew, with where to; a bad one is refused at once."""
    from playhead.bins.rewriting import with_bins  # noqa: PLC0415  (only where asked)

    if source is None and target is None:
        return {}
    if source is None or target is None:
        raise ConfigError(
            "--source-config and --output-config go together", fix="Give both, or none"
        )
    with_bins(source, {}, section=section, data_blend_dir=data_blend_dir)
    return {source: target}


def _estimated(
    config: Any, reading: Reading, settings: BinSettings, note: Callable[[str], None]
) -> tuple[Bins, Options]:
    from playhead.bins.estimate import estimate_bins  # noqa: PLC0415  (loads NumPy)
    from playhead.bins.opening import open_data  # noqa: PLC0415  (imports torch)

    with _warnings_told(note):
        opened = open_data(config, reading, note)
        strict = opened.options.bucketing_2d_strict_mode
        made = estimate_bins(opened.leaves, opened.shape, replace(settings, strict_2d=strict))
    for text in made.notes:
        note(text)
    return made, opened.options


def _print(made: Bins, keys: Mapping[str, Any], *, quiet: bool, as_json: bool) -> None:
    from playhead.bins.config_keys import lines_of  # noqa: PLC0415  (as the others)
    from playhead.cli.bins_text import story_of, to_json  # noqa: PLC0415

    if as_json:
        typer.echo(json.dumps(to_json(made, keys), indent=2))
        return
    for line in () if quiet else story_of(made):
        typer.echo(line)
    typer.echo("Use the following options in your config:")
    for line in lines_of(keys):
        typer.echo(f"\t{line}")


def _note(text: str) -> None:
    say(f"note: {text}")


def _silent(_: str) -> None:
    pass


@contextmanager
def _warnings_told(tell: Callable[[str], None]) -> Generator[None]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            yield
        finally:
            for warning in caught:
                tell(str(warning.message))


def _write(path: str, text: str) -> None:
    from playhead.storage.access import write  # noqa: PLC0415  (only where asked)

    try:
        write(path, text.encode())
    except PlayheadError:
        raise
    except OSError as error:
        # The file that the system names is a hidden one beside it.
        raise StorageError(
            f"the file cannot be written: {error.strerror or error}",
            where=path,
            fix="Give a name in a folder that you may write to, with room for it",
        ) from error
    say(f"Wrote {path}.")
