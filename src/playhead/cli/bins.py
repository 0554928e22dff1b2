"""`playhead bins`: length classes for a config, out of the columns of its data."""

from __future__ import annotations

import json
import warnings
from contextlib import contextmanager
from dataclasses import replace
from math import isnan
from typing import TYPE_CHECKING, Annotated, Any

import typer

from playhead.cli import app
from playhead.cli import bins_options as given
from playhead.cli.configs import import_all
from playhead.cli.options import DataBlendDir, Imports
from playhead.cli.progress import say
from playhead.cli.several_values import SeveralValues
from playhead.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence


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
    section: given.Section = None,
    data_blend_dir: DataBlendDir = None,
    imports: Imports = None,
    output: given.Output = None,
    source_config: given.SourceConfig = None,
    output_config: given.OutputConfig = None,
    quiet: given.Quiet = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON to stdout.")
    ] = False,
) -> None:
    """Make bins for a config, and print the options that training needs for them.

    Only columns are read, no audio; indexes that are missing are built first. The weights of a
    blend count, and so do the filters of a config.
    """
    from playhead.bins.config_keys import keys_of, lines_of, yaml_of  # noqa: PLC0415
    from playhead.bins.estimate import estimate_bins  # noqa: PLC0415
    from playhead.bins.inputs import config_of  # noqa: PLC0415
    from playhead.bins.opening import Reading, open_data  # noqa: PLC0415  (imports torch)
    from playhead.bins.prompt_slots import slots_of  # noqa: PLC0415
    from playhead.bins.rewriting import with_bins  # noqa: PLC0415
    from playhead.bins.settings import BinSettings  # noqa: PLC0415
    from playhead.cli.bins_text import header_of, story_of, to_json  # noqa: PLC0415

    if (source_config is None) != (output_config is None):
        raise ConfigError(
            "--source-config and --output-config go together", fix="Give both, or none"
        )
    if sub_buckets is None:
        sub_buckets = _SUB_BUCKETS if tokenizer and not tokens else 0
    low, high = (min_tokens, max_tokens) if tokens else (min_duration, max_duration)
    low, high = (least if low is None else low), (most if high is None else high)
    _refuse_idle(
        tokens,
        quantize_bins=None if quantize_bins == "none" else quantize_bins,
        measure_total_length=measure_total_length,
        min_tokens=min_tokens,
        max_tokens=max_tokens,
        max_tpt=max_tpt,
        token_equivalent_duration=token_equivalent_duration,
    )
    _refuse_nan(low, high, min_duration, max_duration, max_tps, max_tpt, token_outlier_threshold)
    settings = BinSettings(
        num_buckets=buckets,
        in_tokens=tokens,
        sub_buckets=sub_buckets or None,
        outlier_threshold=token_outlier_threshold
        if token_outlier_threshold is not None
        else (_THRESHOLD_OF_TOKENS if tokens else _THRESHOLD),
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
    import_all(imports or ())
    config = config_of(inputs)
    reading = Reading(
        in_tokens=tokens,
        two_lengths=bool(sub_buckets),
        tokenizer=_tokenizer_of(tokenizer or (), langs or ()),
        slots=None if prompt is None else slots_of(prompt),
        section=section,
        data_blend_dir=data_blend_dir,
        overrides={name: value for name, value in overrides.items() if value is not None},
    )
    note: Callable[[str], None] = _silent if quiet else _note
    if max_tps is not None:
        note("--max_tps is deprecated: --token_outlier_threshold finds a limit for each bucket")
    with _warnings_told(note):
        opened = open_data(config, reading, note)
        strict = opened.options.bucketing_2d_strict_mode
        made = estimate_bins(opened.leaves, opened.shape, replace(settings, strict_2d=strict))
    keys = keys_of(made, opened.options)
    for text in made.notes:
        note(text)
    if output is not None:
        _write(output, yaml_of(keys, header_of(made, inputs)))
    if source_config is not None and output_config is not None:
        text = with_bins(source_config, keys, section=section, data_blend_dir=data_blend_dir)
        _write(output_config, text)
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
        yield
    for warning in caught:
        tell(str(warning.message))


def _tokenizer_of(tokenizers: Sequence[str], langs: Sequence[str]) -> Any:
    from playhead.cli.index_tokens import parse_spec  # noqa: PLC0415  (as the others)

    if not tokenizers:
        if langs:
            raise ConfigError("--langs is given without --tokenizer", fix="Give one for each")
        return None
    if len(tokenizers) == 1 and len(langs) <= 1:
        # One for all languages, whatever it is called.
        return parse_spec(tokenizers[0])
    if len(tokenizers) != len(langs) or len({*langs}) < len(langs):
        raise ConfigError(
            f"there are {len(tokenizers)} tokenizers for {len({*langs})} languages",
            fix="Name the language of each --tokenizer with --langs, in the same order",
        )
    return dict(zip(langs, tokenizers, strict=True))


def _refuse_idle(tokens: bool, **given_options: Any) -> None:
    """Refuse what only bins of tokens have, where seconds are measured."""
    idle = [name for name, value in given_options.items() if value is not None]
    if idle and not tokens:
        raise ConfigError(
            f"only bins of tokens have {', '.join(f'--{name}' for name in idle)}",
            fix="Give --tokens too, or leave it out",
        )


def _refuse_nan(*numbers: float | None) -> None:
    if any(number is not None and isnan(number) for number in numbers):
        raise ConfigError("nan is no limit", fix="Give a number")


def _write(path: str, text: str) -> None:
    from playhead.storage.atomic import atomic_write  # noqa: PLC0415  (only where asked)

    with atomic_write(path) as file:
        file.write(text.encode())
    say(f"Wrote {path}.")
