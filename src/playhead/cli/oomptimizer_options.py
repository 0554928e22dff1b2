"""The options of `playhead oomptimizer`, those of NeMo's tool under the names that it has."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = [
    "Accumulate",
    "Attention",
    "Buckets",
    "Checkpointing",
    "ConfigPath",
    "Ddp",
    "Device",
    "DryRun",
    "Dtype",
    "Ema",
    "Hf",
    "Journal",
    "MaxBatchSize",
    "Memory",
    "MemoryFraction",
    "Model",
    "ModuleName",
    "MultipleOf",
    "OptimizerName",
    "Output",
    "PredictionTimeout",
    "PretrainedName",
    "ProbeTimeout",
    "Ratio",
    "Resume",
    "SalmAudioTokenRatio",
    "StartBatchSize",
    "Threshold",
    "Verify",
]

_MODEL, _TRAINING, _SEARCH, _DEVICE, _RESULT = (
    "The model: one of these",
    "How it is trained",
    "The search",
    "The device",
    "What comes out",
)

PretrainedName = Annotated[
    str | None,
    typer.Option(
        "--pretrained-name",
        "-n",
        help="A trained NeMo model, by name or as a .nemo file.",
        metavar="NAME",
        rich_help_panel=_MODEL,
    ),
]
ModuleName = Annotated[
    str | None,
    typer.Option(
        "--module-name",
        "-m",
        help="A class of NeMo by its dotted path; with --config-path.",
        metavar="CLASS",
        rich_help_panel=_MODEL,
    ),
]
ConfigPath = Annotated[
    str | None,
    typer.Option(
        "--config-path",
        "-c",
        help="The training config of --module-name.",
        metavar="YAML",
        rich_help_panel=_MODEL,
    ),
]
Hf = Annotated[
    tuple[str, str] | None,
    typer.Option(
        "--hf",
        help="A Hugging Face model: whisper, wav2vec2, ctc or seq2seq, and its config, as a name, a"
        " folder or a .json file.",
        metavar="RECIPE CONFIG",
        rich_help_panel=_MODEL,
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        help="Your own nn.Module or LightningModule with make_batch and training_step, or a"
        " function that makes it.",
        metavar="MODULE:NAME",
        rich_help_panel=_MODEL,
    ),
]
Attention = Annotated[
    str | None,
    typer.Option(
        "--attention",
        help="How a Hugging Face model attends: sdpa, eager or flash_attention_2.",
        metavar="NAME",
        rich_help_panel=_MODEL,
    ),
]
Checkpointing = Annotated[
    bool,
    typer.Option(
        "--gradient-checkpointing",
        help="Have a Hugging Face model compute activations again.",
        rich_help_panel=_MODEL,
    ),
]

Buckets = Annotated[
    str,
    typer.Option(
        "--buckets",
        "-b",
        help="Upper bounds, as '[5,10]', or '[[5,40],[5,80]]' of two lengths; or a .yaml"
        " file of `playhead bins -o`.",
        metavar="LIST",
        rich_help_panel=_SEARCH,
    ),
]
Threshold = Annotated[
    float,
    typer.Option(
        "--threshold",
        "-t",
        help="Widest gap between what fits and what does not, as a share.",
        metavar="X",
        rich_help_panel=_SEARCH,
    ),
]
StartBatchSize = Annotated[
    int,
    typer.Option(
        "--start-batch-size",
        "-s",
        min=1,
        help="The first size to try, where nothing is predicted.",
        metavar="N",
        rich_help_panel=_SEARCH,
    ),
]
MultipleOf = Annotated[
    int,
    typer.Option(min=1, help="Sizes are multiples of it.", metavar="N", rich_help_panel=_SEARCH),
]
MaxBatchSize = Annotated[
    int,
    typer.Option(min=1, help="No size is above it.", metavar="N", rich_help_panel=_SEARCH),
]
Verify = Annotated[
    int | None,
    typer.Option(
        min=0,
        help="Steps over a shuffled mix of all buckets that the sizes have to survive; 200 on a"
        " GPU, 0 elsewhere.",
        metavar="N",
        rich_help_panel=_SEARCH,
    ),
]
ProbeTimeout = Annotated[
    float,
    typer.Option(
        help="Seconds that opening the model and then each step may take.",
        metavar="SECONDS",
        rich_help_panel=_SEARCH,
    ),
]
PredictionTimeout = Annotated[
    float,
    typer.Option(
        help="Seconds that each prediction may take; after that the search goes on without any.",
        metavar="SECONDS",
        rich_help_panel=_SEARCH,
    ),
]

Ratio = Annotated[
    float,
    typer.Option(
        "--ratio",
        "-r",
        help="Longest output by longest input, as tokens a second, where buckets are one number.",
        metavar="X",
        rich_help_panel=_TRAINING,
    ),
]
SalmAudioTokenRatio = Annotated[
    float | None,
    typer.Option(
        help="Share of a bucket of tokens that is audio, in a speech language model; 1 by default.",
        metavar="X",
        rich_help_panel=_TRAINING,
    ),
]
OptimizerName = Annotated[
    str | None,
    typer.Option(
        "--optimizer-name",
        help="An optimizer of torch, adamw by default; where a model does not make its own.",
        metavar="NAME",
        rich_help_panel=_TRAINING,
    ),
]
Dtype = Annotated[
    str,
    typer.Option(
        "--dtype",
        "-y",
        help="The dtype of autocast: bfloat16, float16, or float32 for none.",
        metavar="NAME",
        rich_help_panel=_TRAINING,
    ),
]
Ddp = Annotated[
    bool,
    typer.Option(
        "--ddp/--no-ddp",
        help="Count DDP's copy of the gradients.",
        rich_help_panel=_TRAINING,
    ),
]
Ema = Annotated[
    bool,
    typer.Option("--ema", help="Count an average of the weights.", rich_help_panel=_TRAINING),
]
Accumulate = Annotated[
    int,
    typer.Option(
        min=1,
        help="Micro-batches of an optimizer step.",
        metavar="N",
        rich_help_panel=_TRAINING,
    ),
]

MemoryFraction = Annotated[
    float,
    typer.Option(
        "--memory-fraction",
        "-f",
        help="Share of the memory that the allocator may hold.",
        metavar="X",
        rich_help_panel=_DEVICE,
    ),
]
Device = Annotated[
    str,
    typer.Option(
        "--device",
        "-d",
        help="cuda, cuda:N, cpu with --memory, or fake with --memory: an estimate without a GPU.",
        metavar="NAME",
        rich_help_panel=_DEVICE,
    ),
]
Memory = Annotated[
    str | None,
    typer.Option(
        help="Memory of the device, as 80GiB; by default all that it has.",
        metavar="AMOUNT",
        rich_help_panel=_DEVICE,
    ),
]

Output = Annotated[
    list[str] | None,
    typer.Option(
        "--output",
        "-o",
        help="Write the profile to a .yaml file that a config takes as it is. (The name of an"
        " optimizer, as NeMo's tool has it under -o, is understood, too.)",
        metavar="YAML",
        rich_help_panel=_RESULT,
    ),
]
Journal = Annotated[
    str | None,
    typer.Option(
        help="Where every probe is written down; beside the output by default.",
        metavar="FILE",
        rich_help_panel=_RESULT,
    ),
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Go on with the journal: after a crash, or for another --memory-fraction.",
        rich_help_panel=_RESULT,
    ),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run", help="Say what would be tried, and try nothing.", rich_help_panel=_RESULT
    ),
]
