"""The scripts that make bins out of data: of seconds, of seconds and tokens, and of tokens."""

from __future__ import annotations

from typing import Final

from playhead.cli.nemo_names.script import Script, passed, run_given

__all__ = ["DURATION_BINS", "DURATION_BINS_2D", "TOKEN_BINS"]

_BUCKETS: Final = passed("-b", "--buckets", default="30")
_EXAMPLES: Final = passed("-n", "--num_examples", default="-1")
_DURATIONS: Final = (passed("-l", "--min_duration"), passed("-u", "--max_duration"))
# Their values, which the guides have behind them, are the command's to understand.
_QUIET: Final = passed("-q", "--quiet", takes=0)
_TEXTS: Final = (
    passed("--text-field"),
    passed("--lang-field"),
    passed("-f", "--prompt-format"),
    passed("-p", "--prompt"),
)

DURATION_BINS: Final = Script(
    about="Make bins of equal total duration.",
    usage="INPUT",
    command=("bins",),
    run=run_given,
    options=(_BUCKETS, _EXAMPLES, *_DURATIONS, _QUIET),
)

DURATION_BINS_2D: Final = Script(
    about="Make bins of seconds and tokens.",
    usage="INPUT",
    command=("bins",),
    run=run_given,
    options=(
        passed("-t", "--tokenizer", required=True),
        passed("-a", "--langs"),
        _BUCKETS,
        passed("-s", "--sub-buckets", default="2"),
        *_TEXTS,
        _EXAMPLES,
        *_DURATIONS,
        passed("--max_tps"),
        passed("--token_outlier_threshold", default="4.0"),
        _QUIET,
    ),
)

TOKEN_BINS: Final = Script(
    about="Make bins of tokens for a speech language model.",
    usage="INPUT_CFG",
    command=("bins", "--tokens"),
    run=run_given,
    options=(
        passed("-t", "--tokenizer", required=True),
        _BUCKETS,
        passed("-s", "--sub-buckets"),
        _EXAMPLES,
        passed("-l", "--min_tokens"),
        passed("-u", "--max_tokens"),
        passed("--max_tpt"),
        passed("--min_duration"),
        passed("--max_duration"),
        passed("--token_equivalent_duration"),
        passed("--token_outlier_threshold"),
        passed("--audio-locator-tag"),
        *_TEXTS,
        passed("-m", "--measure-total-length", takes=0),
        passed("--quantize-bins", default="none"),
        passed("--source-config"),
        passed("--output-config"),
        _QUIET,
    ),
)
