"""A page as a browser shows it, on a phone and on a wide screen, by day and by night."""

from __future__ import annotations

import pytest

from playhead.report.page.document import page_of
from support import report_figures
from support.browser import CHROMIUM, browser

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium: apt-get install chromium"),
]
FIGURES = {
    "small": report_figures.small(),
    "large": report_figures.large(500),
    "several": report_figures.several_blends(),
    "texts": report_figures.texts(),
    "empty": report_figures.empty(),
    "named": report_figures.named("<script>alert(1)</script>", "中文" * 30, "x" * 300, "a | b"),
}
OPEN_ALL = "document.querySelectorAll('details').forEach((one) => { one.open = true })"
# What sticks out of the window, but for what is in a box that scrolls.
TOO_WIDE = """
[...document.querySelectorAll("body *")]
  .filter((one) => !one.parentElement.closest(".scroll, svg"))
  .filter((one) => one.getBoundingClientRect().right > innerWidth + 0.5)
  .map((one) => one.outerHTML.slice(0, 100))
"""
PLOTS = """
[...document.querySelectorAll("svg.plot")].map((plot) => {
  const box = plot.getBoundingClientRect();
  const texts = [...plot.querySelectorAll("text")].map((text) => {
    const { left, right, top, bottom } = text.getBoundingClientRect();
    const scale = plot.getScreenCTM().a;
    return { text: text.textContent, left, right, top, bottom,
             size: scale * parseFloat(getComputedStyle(text).fontSize) };
  });
  const marks = [...plot.querySelectorAll("path, use")].filter((one) => {
    const { width, height } = one.getBoundingClientRect();
    return width + height > 0 && getComputedStyle(one).display !== "none";
  });
  return { name: plot.parentElement.id, left: box.left, right: box.right, top: box.top,
           bottom: box.bottom, texts, marks: marks.length };
})
"""
COLOURS = """
Object.fromEntries(
  ["paper", "raised", "ink", "soft", "link", "alarm-paper", "others",
   ...[0, 1, 2, 3, 4, 5, 6].map((number) => `series-${number}`)].map((name) =>
    [name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`)]))
"""


@pytest.fixture(scope="module")
def chromium():
    with browser() as started:
        yield started


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    for name, figures in FIGURES.items():
        (folder / f"{name}.html").write_text(page_of(figures), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in FIGURES}


def overlapping(texts):
    """Pairs of texts that cover each other by more than a pixel in both directions."""
    return [
        (one["text"], other["text"])
        for number, one in enumerate(texts)
        for other in texts[number + 1 :]
        if min(one["right"], other["right"]) - max(one["left"], other["left"]) > 1
        and min(one["bottom"], other["bottom"]) - max(one["top"], other["top"]) > 3
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 390, 1280])
@pytest.mark.parametrize("name", FIGURES)
def test_a_page_fits_and_every_plot_can_be_read(name, width, scheme, chromium, pages):
    chromium.open(pages[name], width=width, scheme=scheme)
    chromium.evaluate(OPEN_ALL)
    assert chromium.errors == []
    assert chromium.requests == [pages[name].as_uri()]
    assert chromium.evaluate("document.documentElement.scrollWidth") == width
    assert chromium.evaluate(TOO_WIDE) == []
    plots = chromium.evaluate(PLOTS)
    assert len(plots) == pages[name].read_text(encoding="utf-8").count("<svg ")
    assert len(plots) >= (0 if name == "empty" else 6)
    for plot in plots:
        where = plot["name"]
        assert plot["right"] - plot["left"] > 0.8 * min(width, 480), where
        assert plot["bottom"] - plot["top"] > 60, where
        assert plot["marks"] > 3, where
        assert len(plot["texts"]) > 3, where
        for text in plot["texts"]:
            assert text["size"] > 9.5, (where, text)
            inside = (
                text["left"] >= plot["left"] - 1
                and text["right"] <= plot["right"] + 1
                and text["top"] >= plot["top"] - 1
                and text["bottom"] <= plot["bottom"] + 2
            )
            assert inside, (where, text)
        assert overlapping(plot["texts"]) == [], where


def luminance(colour):
    channels = [int(colour.strip()[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(share * one for share, one in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
    """The ratio of the W3C's guidelines: 1 to 21."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_and_plots_stand_out_in_either_scheme(scheme, chromium, pages):
    chromium.open(pages["small"], width=800, scheme=scheme)
    colours = chromium.evaluate(COLOURS)
    background = chromium.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == {"light": "rgb(255, 255, 255)", "dark": "rgb(18, 23, 29)"}[scheme]
    for behind in ("paper", "raised"):
        for text in ("ink", "soft", "link"):
            assert contrast(colours[text], colours[behind]) >= 4.5, (text, behind)
    assert contrast(colours["ink"], colours["alarm-paper"]) >= 4.5
    for mark in ("others", *(f"series-{number}" for number in range(7))):
        assert contrast(colours[mark], colours["paper"]) >= 3, mark
    drawn = chromium.evaluate("getComputedStyle(document.querySelector('svg text')).fill")
    channels = [int(part) for part in drawn.strip("rgb()").split(",")]
    assert "#" + "".join(f"{one:02x}" for one in channels) == colours["ink"].strip()


def test_a_table_can_be_put_in_order_by_a_column(chromium, pages):
    chromium.open(pages["small"], width=1280)
    cells = "[...document.querySelectorAll('#sources tbody tr')].map((row) => row.cells[2])"
    rows = f"{cells}.map((cell) => cell.dataset.value)"
    before = chromium.evaluate(rows)
    chromium.evaluate("document.querySelectorAll('#sources th button')[2].click()")
    descending = chromium.evaluate(rows)
    chromium.evaluate("document.querySelectorAll('#sources th button')[2].click()")
    assert descending == sorted(before, key=float, reverse=True) != before
    assert chromium.evaluate(rows) == descending[::-1]
    head = "document.querySelectorAll('#sources th')[2].getAttribute('aria-sort')"
    assert chromium.evaluate(head) == "ascending"


def test_a_page_can_be_printed(chromium, pages, tmp_path):
    chromium.open(pages["small"], width=1280, scheme="dark")
    chromium.pdf(tmp_path / "page.pdf")
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")
    # On paper it is light.
    chromium.open(pages["small"], width=800, scheme="dark", media="print")
    background = chromium.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == "rgb(255, 255, 255)"
    assert chromium.evaluate("document.documentElement.scrollWidth") == 800
