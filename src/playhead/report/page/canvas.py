"""Plots by matplotlib, without anything that outlives the drawing."""

from __future__ import annotations

import io
import warnings
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from playhead.errors import MissingExtraError
from playhead.report.page.colours import GRID, INK
from playhead.report.page.markup import Markup, element, printable
from playhead.report.page.vector import embedded

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from matplotlib.axes import Axes

__all__ = ["check_matplotlib", "plotted"]

_WIDTH: Final = 400.0
_FONT_SIZE: Final = 13.0
_SETTINGS: Final[dict[str, Any]] = {
    "axes.axisbelow": True,
    "axes.edgecolor": INK,
    "axes.facecolor": "none",
    "axes.labelcolor": INK,
    "axes.labelsize": _FONT_SIZE,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.size": _FONT_SIZE,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "patch.linewidth": 0.0,
    "svg.fonttype": "none",
    "text.color": INK,
    # Names of sources are no formulas.
    "text.parse_math": False,
    "xtick.color": INK,
    "xtick.labelsize": _FONT_SIZE,
    # So that the first one is not under the last of the other axis.
    "xtick.major.pad": 6.0,
    "ytick.color": INK,
    "ytick.labelsize": _FONT_SIZE,
}


def plotted(
    draw: Callable[[Sequence[Axes]], None],
    *,
    name: str,
    title: str,
    description: str,
    height: float = 240,
    panels: int = 1,
    key: Markup | None = None,
) -> Markup:
    """Draw a plot for a page.

    Parameters
    ----------
    draw
        Draws on the axes, which lie one above the other.
    name
        The plot's name, one of a kind in the page.
    title
        What one sees, in words.
    description
        The same with its main numbers, for those who do not see it.
    height
        Its height where its width is 400; text has a size of 13.
    panels
        How many axes it has.
    key
        What its colours mean, where that is not said elsewhere.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    drawing = embedded(
        _drawn(draw, name=name, height=height, panels=panels),
        name=name,
        description=printable(description),
    )
    caption = element("figcaption", title, attributes={"id": f"{name}-title"})
    return element("figure", caption, key, drawing, attributes={"id": name})


def check_matplotlib() -> None:
    """Find out whether plots can be drawn.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    try:
        for name in ("matplotlib", "matplotlib.figure"):
            import_module(name)
    except ImportError as error:
        raise MissingExtraError(
            f"a page needs matplotlib for its plots, which cannot be imported: {error}",
            fix="Run `pip install 'playhead[report]'`, or ask for --json",
        ) from error


def _drawn(draw: Callable[[Sequence[Axes]], None], *, name: str, height: float, panels: int) -> str:
    """Draw an SVG file: the same bytes for the same plot."""
    check_matplotlib()
    import matplotlib as mpl  # noqa: PLC0415  (an extra, and slow to import)
    from matplotlib.figure import Figure  # noqa: PLC0415

    written = io.StringIO()
    with _settings(mpl, name), warnings.catch_warnings():
        # It only measures text; the browser has the fonts.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure = Figure(figsize=(_WIDTH / 72, height / 72), dpi=72, layout="constrained")
        figure.patch.set_alpha(0.0)
        draw(list(figure.subplots(panels, 1, squeeze=False)[:, 0]))
        figure.savefig(written, format="svg", metadata={"Date": None})
    return written.getvalue()


@contextmanager
def _settings(mpl: Any, name: str) -> Generator[None]:
    """Draw with our settings alone, whatever a user's own are, and give those back."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update({**_SETTINGS, "svg.hashsalt": name})
        yield
