"""The options of `playhead bins`, under the names that NeMo's scripts have."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

__all__ = [
    "AudioLocatorTag",
    "Buckets",
    "Inputs",
    "LangField",
    "Langs",
    "Least",
    "MaxDuration",
    "MaxTokens",
    "MaxTps",
    "MaxTpt",
    "MeasureTotalLength",
    "MinDuration",
    "MinTokens",
    "Most",
    "NumExamples",
    "Optimize",
    "Output",
    "OutputConfig",
    "Prompt",
    "PromptFormat",
    "QuantizeBins",
    "Quiet",
    "SourceConfig",
    "SubBuckets",
    "TextField",
    "TokenEquivalentDuration",
    "TokenOutlierThreshold",
    "Tokenizers",
    "Tokens",
]

_TWO, _OF_TOKENS = "Bins of two lengths", "Bins of tokens"

Inputs = Annotated[
    list[str],
    typer.Argument(
        metavar="INPUT",
        help="A config (.yaml); manifests, cuts or Shar folders; '[[path, weight], …]'; or"
        " key=value of an entry.",
        show_default=False,
    ),
]
Buckets = Annotated[
    int, typer.Option("--buckets", "-b", help="The most buckets to make.", metavar="N")
]
Least = Annotated[
    float | None,
    typer.Option("-l", help="--min_duration; with --tokens --min_tokens.", metavar="X"),
]
Most = Annotated[
    float | None,
    typer.Option("-u", help="--max_duration; with --tokens --max_tokens.", metavar="X"),
]
MinDuration = Annotated[
    float | None,
    typer.Option(
        "--min_duration",
        "--min-duration",
        help="Shortest sample that counts, seconds; wins over the config's.",
        metavar="X",
    ),
]
MaxDuration = Annotated[
    float | None,
    typer.Option(
        "--max_duration",
        "--max-duration",
        help="Longest sample that counts, seconds; wins over the config's.",
        metavar="X",
    ),
]
NumExamples = Annotated[
    int,
    typer.Option(
        "--num_examples",
        "--num-examples",
        "-n",
        help="Let so many rows decide, spread evenly over all; -1 for all. No sample is without a"
        " bin for that.",
        metavar="N",
    ),
]
Optimize = Annotated[
    bool, typer.Option("--optimize", help="Edges of least padding in the place of equal mass.")
]
Tokenizers = Annotated[
    list[str] | None,
    typer.Option(
        "--tokenizer",
        "-t",
        help="What counts tokens, for bins of two lengths and of tokens: a SentencePiece model, a"
        " tokenizer.json or its folder, or en=PATH,de=PATH; several go with --langs.",
        metavar="SPEC",
        rich_help_panel=_TWO,
    ),
]
Langs = Annotated[
    list[str] | None,
    typer.Option(
        "--langs",
        "-a",
        help="The language of each --tokenizer.",
        metavar="LANG",
        rich_help_panel=_TWO,
    ),
]
SubBuckets = Annotated[
    int | None,
    typer.Option(
        "--sub-buckets",
        "--sub_buckets",
        "-s",
        help="Split each bucket by its tokens into so many; 2 by default with --tokenizer, none"
        " with --tokens. 0 makes bins of one length.",
        metavar="K",
        rich_help_panel=_TWO,
    ),
]
TokenOutlierThreshold = Annotated[
    float | None,
    typer.Option(
        "--token_outlier_threshold",
        "--token-outlier-threshold",
        help="Leave out samples with more tokens by length than the mean of their bucket and so"
        " many standard deviations; 4 by default, 6 with --tokens.",
        metavar="X",
        rich_help_panel=_TWO,
    ),
]
MaxTps = Annotated[
    float | None,
    typer.Option(
        "--max_tps",
        "--max-tps",
        help="Most tokens a second; deprecated: the threshold finds a limit for each bucket.",
        metavar="X",
        rich_help_panel=_TWO,
    ),
]
TextField = Annotated[
    str | None,
    typer.Option(
        "--text-field",
        "--text_field",
        help="Row's key of the transcript.",
        metavar="KEY",
        rich_help_panel=_TWO,
    ),
]
LangField = Annotated[
    str | None,
    typer.Option(
        "--lang-field",
        "--lang_field",
        help="Row's key of the language.",
        metavar="KEY",
        rich_help_panel=_TWO,
    ),
]
PromptFormat = Annotated[
    str | None,
    typer.Option(
        "--prompt-format",
        "--prompt_format",
        "-f",
        help="Count the tokens of this prompt; the config's by default.",
        metavar="NAME",
        rich_help_panel=_TWO,
    ),
]
Prompt = Annotated[
    str | None,
    typer.Option(
        "--prompt",
        "-p",
        help="What the prompt says of every sample, as \"[{'role': …, 'slots': {…}}]\".",
        metavar="LIST",
        rich_help_panel=_TWO,
    ),
]
Tokens = Annotated[
    bool, typer.Option("--tokens", help="Measure samples in tokens.", rich_help_panel=_OF_TOKENS)
]
QuantizeBins = Annotated[
    Literal["none", "pow2", "pow2sum"],
    typer.Option(
        "--quantize-bins",
        "--quantize_bins",
        help="Move edges to powers of two, or sums of two of them, from 32 on.",
        rich_help_panel=_OF_TOKENS,
    ),
]
MeasureTotalLength = Annotated[
    bool | None,
    typer.Option(
        "--measure-total-length/--no-measure-total-length",
        "-m",
        help="Count the answer into the length; as the config says by default.",
        show_default=False,
        rich_help_panel=_OF_TOKENS,
    ),
]
MinTokens = Annotated[
    float | None,
    typer.Option(
        "--min_tokens",
        "--min-tokens",
        help="Shortest sample that counts.",
        metavar="X",
        rich_help_panel=_OF_TOKENS,
    ),
]
MaxTokens = Annotated[
    float | None,
    typer.Option(
        "--max_tokens",
        "--max-tokens",
        help="Longest sample that counts.",
        metavar="X",
        rich_help_panel=_OF_TOKENS,
    ),
]
MaxTpt = Annotated[
    float | None,
    typer.Option(
        "--max_tpt",
        "--max-tpt",
        help="Most tokens of an answer by token before it.",
        metavar="X",
        rich_help_panel=_OF_TOKENS,
    ),
]
TokenEquivalentDuration = Annotated[
    float | None,
    typer.Option(
        "--token_equivalent_duration",
        "--token-equivalent-duration",
        help="Seconds of audio that count as one token; the config's, else 0.08.",
        metavar="X",
        rich_help_panel=_OF_TOKENS,
    ),
]
AudioLocatorTag = Annotated[
    str | None,
    typer.Option(
        "--audio-locator-tag",
        "--audio_locator_tag",
        help="Token that stands for audio in a text.",
        metavar="TAG",
        rich_help_panel=_OF_TOKENS,
    ),
]
Output = Annotated[
    str | None,
    typer.Option("--output", "-o", help="Write the options as YAML too.", metavar="FILE"),
]
SourceConfig = Annotated[
    str | None,
    typer.Option(
        "--source-config",
        "--source_config",
        help="Take this config for --output-config: what the bins replace of its section is gone.",
        metavar="FILE",
    ),
]
OutputConfig = Annotated[
    str | None,
    typer.Option(
        "--output-config",
        "--output_config",
        help="Write --source-config with the bins.",
        metavar="FILE",
    ),
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print the options, and no notes beside them.")
]
