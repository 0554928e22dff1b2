"""Options of `playhead bins` that do not go together, refused before any data are read."""

from __future__ import annotations

from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playhead.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["refuse_idle", "refuse_nan", "refuse_to_replace", "tokenizer_of"]


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


def refuse_nan(*numbers: float | None) -> None:
    """Refuse limits that are no numbers.

    Raises
    ------
    ConfigError
        When one is NaN.
    """
    if any(number is not None and isnan(number) for number in numbers):
        raise ConfigError("nan is no limit", fix="Give a number")


def refuse_to_replace(output: str | None, inputs: Sequence[str]) -> None:
    """Refuse to write over what is read.

    Parameters
    ----------
    output
        The file to write, if any.
    inputs
        What is read; not all need be files.

    Raises
    ------
    ConfigError
        When they are the same file.
    """
    if output is None or not Path(output).exists():
        return
    if any(Path(path).exists() and Path(path).samefile(output) for path in inputs):
        raise ConfigError(
            "the file to write is one that is read",
            where=output,
            fix="Give --output another name, or write a whole config with --output-config",
        )


def tokenizer_of(tokenizers: Sequence[str], langs: Sequence[str]) -> Any:
    """Return what names the tokenizer: one for all, or one by language; None for none.

    Raises
    ------
    ConfigError
        When languages and tokenizers do not pair.
    """
    from playhead.cli.index_tokens import parse_spec  # noqa: PLC0415  (only where asked)

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
