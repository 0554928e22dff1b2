"""A command that has commands below it and is one itself."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

__all__ = ["SELF", "WithDefault"]

SELF = "run"
"""The name under which such a group registers what it does itself; nobody has to write it."""


class WithDefault(TyperGroup):
    """A group that runs its own command where no other is named: `validate CONFIG`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the name of its own command before arguments that name none."""
        named = bool(args) and args[0] in self.commands
        return super().parse_args(ctx, args if named else [SELF, *args])

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Find the command; its own has no name in messages."""
        name, command, rest = super().resolve_command(ctx, args)
        return ("" if name == SELF else name), command, rest
