"""What `playhead oomptimizer` is asked, checked before anything slow begins."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playhead.cli.same_file import is_same
from playhead.errors import ConfigError, SourceNotFoundError
from playhead.fit.amounts import read_amount
from playhead.fit.model import ModelSource
from playhead.storage.cache import cache_folder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from playhead.fit.bounds import GivenBuckets
    from playhead.fit.training import Training

__all__ = [
    "Outputs",
    "Places",
    "check_places",
    "check_range",
    "dtype_of",
    "identity_of",
    "memory_of",
    "mixed_steps_of",
    "outputs_of",
    "places_of",
    "source_of",
]

_WITHOUT_GPU = ("cpu", "fake")
_MIXED_STEPS = 200
_OF_HUGGING_FACE = {
    "attn_implementation": "--attention",
    "gradient_checkpointing": "--gradient-checkpointing",
}
_RECIPES = ("whisper", "wav2vec2", "ctc", "seq2seq")
# torch's own names for them.
_DTYPES = {
    "bfloat16": "bfloat16",
    "float16": "float16",
    "half": "float16",
    "float32": "float32",
    "float": "float32",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Outputs:
    """Where what comes out goes."""

    profile: Path | None
    """The profile; None where it is printed alone."""
    optimizer: str
    """Name of the optimizer, which may have come as `-o`."""
    notes: tuple[str, ...] = ()
    """What people should know of how their words were taken."""


def source_of(
    *,
    pretrained_name: str | None,
    module_name: str | None,
    config_path: str | None,
    hf: tuple[str, str] | None,
    model: str | None,
    **options: Any,
) -> ModelSource:
    """Return the model that is meant.

    Parameters
    ----------
    pretrained_name, module_name, config_path, hf, model
        What was given; exactly one model.
    **options
        Further fields of `ModelSource`.

    Raises
    ------
    ConfigError
        If none is, or several are, or a part is missing.
    SourceNotFoundError
        If a config does not exist.
    """
    if config_path is not None and module_name is None:
        raise ConfigError(
            "--config-path belongs to --module-name, which is not given",
            fix="Give --module-name CLASS as well",
        )
    _check_one(
        {
            "--pretrained-name": pretrained_name,
            "--module-name": module_name,
            "--hf": hf,
            "--model": model,
        }
    )
    if hf is not None:
        return _of_recipe(*hf, **options)
    for name, flag in _OF_HUGGING_FACE.items():
        if options.pop(name, None):
            raise ConfigError(f"{flag} is for Hugging Face models", fix="Leave it out")
    if model is not None:
        return _of_code(model, **options)
    if module_name is not None:
        return _of_class(module_name, config_path, **options)
    return ModelSource(kind="pretrained", name=pretrained_name or "", **options)


def _check_one(named: Mapping[str, object]) -> None:
    given = [flag for flag, value in named.items() if value is not None]
    choices = "--pretrained-name, --module-name with --config-path, --hf, or --model"
    if not given:
        raise ConfigError("no model is given", fix=f"Give {choices}")
    if len(given) > 1:
        raise ConfigError(f"{' and '.join(given)} exclude each other", fix=f"Give one of {choices}")


def _of_recipe(recipe: str, config: str, **options: Any) -> ModelSource:
    if recipe not in _RECIPES:
        raise ConfigError(
            f"there is no recipe {recipe!r}",
            where="--hf",
            fix=f"Choose {', '.join(_RECIPES)}, or use --model with your own code",
        )
    return ModelSource(kind="hf", name=recipe, config=config, **options)


def _of_code(model: str, **options: Any) -> ModelSource:
    module, colon, name = model.partition(":")
    if not (module and colon and name):
        raise ConfigError(
            f"{model!r} names no model",
            where="--model",
            fix="Write MODULE:NAME, such as my_models:MyModel",
        )
    return ModelSource(kind="code", name=model, **options)


def _of_class(name: str, config: str | None, **options: Any) -> ModelSource:
    if config is None:
        raise ConfigError(
            "--module-name needs the training config of the model", fix="Give --config-path YAML"
        )
    if not Path(config).is_file():
        raise SourceNotFoundError(
            "the training config does not exist", where=config, fix="Correct --config-path"
        )
    return ModelSource(kind="module", name=name, config=config, **options)


def outputs_of(given: Sequence[str], optimizer: str | None) -> Outputs:
    """Tell a file from the name of an optimizer among what `-o` was given.

    Parameters
    ----------
    given
        Everything that was.
    optimizer
        What `--optimizer-name` says.

    Raises
    ------
    ConfigError
        If it is neither, or there are two of one.

    Examples
    --------
    >>> outputs_of(["profile.yaml"], "sgd").optimizer
    'sgd'
    >>> outputs_of(["adamw"], None).notes
    ('-o adamw is taken as --optimizer-name adamw; -o FILE.yaml is where the profile goes',)
    """
    files = [text for text in given if text.endswith((".yaml", ".yml"))]
    names = [text for text in given if text not in files]
    for name in names:
        if not name.isidentifier():
            raise ConfigError(
                f"{name!r} is neither a .yaml file nor the name of an optimizer",
                where="--output",
                fix="Write -o profile.yaml",
            )
    if len(files) > 1 or len({*names, *([] if optimizer is None else [optimizer])}) > 1:
        raise ConfigError(
            f"-o is given {' and '.join([*given])}"
            + ("" if optimizer is None else f", and --optimizer-name {optimizer}"),
            fix="Give one .yaml file and one optimizer",
        )
    notes = tuple(
        f"-o {name} is taken as --optimizer-name {name}; -o FILE.yaml is where the profile goes"
        for name in names[:1]
    )
    return Outputs(
        profile=Path(files[0]) if files else None,
        optimizer=optimizer or (names[0] if names else "adamw"),
        notes=notes,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Places:
    """Where a search writes while it runs."""

    journal: Path
    """Every try."""
    log: Path
    """Everything that the model writes."""


def places_of(profile: Path | None, journal: str | None, identity: Mapping[str, Any]) -> Places:
    """Return where a search writes while it runs: as asked, beside the profile, or in the cache.

    Parameters
    ----------
    profile
        Where the profile goes.
    journal
        Where the journal was asked to be.
    identity
        What the search is about: the same search has the same place in the cache.

    Raises
    ------
    ConfigError
        If the journal is to be a folder.
    """
    if journal is not None:
        path = Path(journal)
        if not path.name or path.is_dir():
            raise ConfigError(
                f"{journal!r} is a folder", where="--journal", fix="Give the name of a file"
            )
    elif profile is not None:
        path = profile.with_suffix(".journal.jsonl")
    else:
        text = json.dumps(identity, sort_keys=True)
        name = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
        path = cache_folder("fit") / f"{name}.journal.jsonl"
    return Places(journal=path, log=path.with_suffix(".log"))


def check_places(profile: Path | None, places: Places, read: Sequence[str | None]) -> None:
    """Refuse to write over what is read, or two things into one file.

    Parameters
    ----------
    profile
        Where the profile goes.
    places
        Where the search writes while it runs.
    read
        What is read; not all need be files, and None is nothing.

    Raises
    ------
    ConfigError
        If a search would end with a loss, or could not write its profile.
    """
    if profile is not None and profile.is_dir():
        raise ConfigError(f"{str(profile)!r} is a folder", where="--output", fix="Name a file")
    written = [str(path) for path in (profile, places.journal, places.log) if path is not None]
    for number, path in enumerate(written):
        others = [*written[:number], *(name for name in read if name is not None)]
        if any(is_same(path, other) for other in others):
            raise ConfigError(
                "this file would be written, and is read or written for something else too",
                where=path,
                fix="Give another name for --output or --journal, which has its log beside it",
            )


def dtype_of(name: str) -> str:
    """Return the dtype of autocast by the name that torch has for it.

    Raises
    ------
    ConfigError
        If nothing is trained in it.
    """
    if name not in _DTYPES:
        raise ConfigError(
            f"{name!r} is no dtype to train in",
            where="--dtype",
            fix="Choose bfloat16, float16 or float32",
        )
    return _DTYPES[name]


def memory_of(device: str, memory: str | None) -> int | None:
    """Return the memory that the device is to have (bytes); None for all of it.

    Raises
    ------
    ConfigError
        If it is no amount, or a device that has none of its own was given none.
    """
    if memory is not None:
        return read_amount(memory, "--memory")
    if device in _WITHOUT_GPU:
        raise ConfigError(
            f"--device {device} has no memory of its own",
            fix="Say how much a model may take: --memory 80GiB",
        )
    return None


def mixed_steps_of(device: str, asked: int | None) -> int:
    """Return how many steps of a mix sizes have to survive.

    Only a GPU has an allocator whose memory is in fragments after a while.

    Examples
    --------
    >>> mixed_steps_of("cuda:1", None), mixed_steps_of("fake", None), mixed_steps_of("cpu", 12)
    (200, 0, 12)
    """
    if asked is not None:
        return asked
    return 0 if device in _WITHOUT_GPU else _MIXED_STEPS


def check_range(flag: str, value: float, *, least: float, most: float = math.inf) -> None:
    """Refuse numbers that are not above `least` or above `most`.

    Raises
    ------
    ConfigError
        Naming the flag.
    """
    if not least < value <= most or math.isinf(value):
        upto = "" if math.isinf(most) else f" and up to {most:g}"
        raise ConfigError(
            f"{flag} is {value:g}, and has to be above {least:g}{upto}", fix=f"Correct {flag}"
        )


def identity_of(
    source: ModelSource, training: Training, given: GivenBuckets, device: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what peaks depend on: two searches of which this is the same may share a journal.

    Parameters
    ----------
    source
        The model; the content of its config counts, not where it lies.
    training
        How it is trained.
    given
        The buckets.
    device
        What the device says of itself.
    """
    config = None
    if source.config is not None:
        path = Path(source.config)
        if path.is_dir():
            path /= "config.json"
        content = path.read_bytes() if path.is_file() else source.config.encode()
        config = hashlib.blake2b(content, digest_size=8).hexdigest()
    return {
        "model": f"{source.kind} {source.name}",
        "config": config,
        "ratio": source.ratio,
        "audio_share": source.audio_share,
        "attention": source.attn_implementation,
        "gradient_checkpointing": source.gradient_checkpointing,
        "optimizer": training.optimizer,
        "ddp": training.ddp,
        "ema": training.ema,
        "accumulate": training.accumulate,
        "buckets": [list(one) if isinstance(one, tuple) else one for one in given.bounds],
        **device,
    }
