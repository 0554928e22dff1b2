"""Options of `playhead bins` that do not go together, refused before any data are read."""

from __future__ import annotations

from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playhead.cli.options import parse_spec
from playhead.cli.same_file import is_same
from playhead.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["either", "refuse_idle", "refuse_nan", "refuse_to_replace", "tokenizer_of"]


def refuse_idle(where: str, fix: str, **options: Any) -> None:
    """Refuse options that are given where nothing looks at them.

    Parameters
    ----------
    where
        What alone has them.
    fix
        What to do.
    **options
        Values by the names of their options; None and "none" are not given.

    Raises
    ------
    ConfigError
        When any is given.
    """
    idle = [name for name, value in options.items() if value not in (None, "none")]
    if idle:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in idle)
        raise ConfigError(f"only {where} have {names}", fix=fix)


def either(name: str, short: float | None, long: float | None) -> float | None:
    """Return what an option was given, in its short form or its long one.

    Raises
    ------
    ConfigError
        When both are given.
    """
    if None not in {short, long}:
        raise ConfigError(f"{name} is given in its long form too", fix="Give one of them")
    return short if long is None else long


def refuse_nan(*numbers: float | None) -> None:
    """Refuse limits that are no numbers.

    Raises
    ------
    ConfigError
        When one is NaN.
    """
    if any(number is not None and isnan(number) for number in numbers):
        raise ConfigError("nan is no limit", fix="Give a number")


def refuse_to_replace(
    output: str | None, rewritten: Mapping[str, str], inputs: Sequence[str]
) -> None:
    """Refuse to write what is no YAML by its name, or over what is read.

    Data, devices and folders are never called so that they could be written over.

    Parameters
    ----------
    output
        The file for the options, if any.
    rewritten
        Configs that are written anew, with where to; that may be where they are.
    inputs
        What is read; not all need be files.

    Raises
    ------
    ConfigError
        When one of the files may not be written.
    """
    if output is not None:
        _refuse("--output", output, [*inputs, *rewritten, *rewritten.values()])
    for source, target in rewritten.items():
        _refuse("--output-config", target, [] if is_same(source, target) else inputs)


def _refuse(option: str, path: str, others: Sequence[str]) -> None:
    if not path.endswith((".yaml", ".yml")) or Path(path).is_dir():
        raise ConfigError(
            f"{option} writes YAML, and this is no name of such a file",
            where=path,
            fix="Give a name that ends in .yaml",
        )
    if any(is_same(path, other) for other in others):
        raise ConfigError(
            f"the file that {option} would write is one that is read, or written too",
            where=path,
            fix="Give another name; --output-config writes a whole config",
        )


def tokenizer_of(tokenizers: Sequence[str], langs: Sequence[str]) -> Any:
    """Return what names the tokenizer: one for all, or one by language; None for none.

    Raises
    ------
    ConfigError
        When languages and tokenizers do not pair.
    """
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
