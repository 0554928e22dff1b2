"""The table of all options in `docs/config.md`, made from the dataclass that declares them.

`python tests/support/options_table.py` writes it into the page.
"""

from __future__ import annotations

import ast
import inspect
from dataclasses import MISSING, fields
from itertools import pairwise
from pathlib import Path
from typing import Any

from playhead.config import STATUS, UNITS, Options
from playhead.config import options as declared_in

PAGE = Path(__file__).parents[2] / "docs/config.md"
BEGIN = "<!-- options: made by tests/support/options_table.py -->"
END = "<!-- end of options -->"


def meanings() -> dict[str, str]:
    """The docstring line below each field."""
    body = next(
        node for node in ast.parse(inspect.getsource(declared_in)).body if hasattr(node, "bases")
    ).body
    found = {}
    for field, line in pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(line, ast.Expr):
            found[field.target.id] = ast.literal_eval(line.value)
    return found


def shown_default(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {None: "", True: "`true`", False: "`false`"}[value]
    return f"`{list(value) if isinstance(value, tuple) else value}`".replace("inf", ".inf")


def options_table() -> str:
    said = meanings()
    lines = ["| option | default | unit | status | meaning |", "| --- | --- | --- | --- | --- |"]
    for field in fields(Options):
        assert field.default is not MISSING
        unit, status = UNITS.get(field.name, ""), STATUS[field.name].value
        meaning = said[field.name].replace("|", "\\|")
        lines.append(
            f"| `{field.name}` | {shown_default(field.default)} | {unit} | {status} | {meaning} |"
        )
    return "\n".join(lines)


def page_with_table() -> str:
    before, _, rest = PAGE.read_text().partition(BEGIN)
    return f"{before}{BEGIN}\n{options_table()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(page_with_table())
