"""A place in a config, for messages."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Spot"]


@dataclass(frozen=True, slots=True)
class Spot:
    """A place in a config: a file and the way to a value from its top.

    Examples
    --------
    >>> print(Spot("blend.yaml").at("input_cfg", 3, "weight"))
    blend.yaml: input_cfg[3].weight
    """

    file: str
    """The file, or what stands for it."""
    keys: tuple[str | int, ...] = ()
    """Keys of mappings and numbers of lists."""

    def at(self, *keys: str | int) -> Spot:
        """The place further down."""
        return Spot(self.file, (*self.keys, *keys))

    def __str__(self) -> str:
        text = ""
        for key in self.keys:
            text += f"[{key}]" if isinstance(key, int) else f".{key}" if text else key
        return f"{self.file}: {text}" if text else self.file
