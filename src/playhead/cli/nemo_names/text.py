"""What a script says of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playhead.cli.nemo_names.script import Option, Script

__all__ = ["help_of"]


def help_of(name: str, script: Script) -> str:
    """Return what a script takes, an option a line.

    Parameters
    ----------
    name
        Where it is below `scripts/`.
    script
        The script.
    """
    command = " ".join(script.command)
    more = f"`playhead {script.command[0]} --help` says what they mean, and has more:"
    lines = [f"  {', '.join(option.names)}{_said(option)}" for option in script.options]
    return "\n".join(
        [
            f"Usage: {name} [OPTIONS] {script.usage}".rstrip(),
            "",
            f"{script.about} This is `playhead {command}` under the name that NeMo's guides have.",
            "",
            *lines,
            "",
            f"{more} they are taken here, too.",
        ]
    )


def _said(option: Option) -> str:
    if option.fate == "refused":
        return f": refused, for {option.reasons[None]}"
    if option.fate == "idle":
        return ": without effect"
    needed = " (required)" if option.is_required else ""
    return f" (default {option.default})" if option.default is not None else needed
