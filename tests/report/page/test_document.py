"""A page has everything that the figures say, and a config puts nothing but text into it."""

from __future__ import annotations

import re
import shlex
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from functools import cache

import matplotlib as mpl
import pytest

from playhead.errors import MissingExtraError
from playhead.report.page.document import MARK, page_of
from playhead.report.page.sections.sources import sources
from support import report_figures
from support.parsed_page import parsed

FIGURES = {
    "small": report_figures.small(),
    "large": report_figures.large(500),
    "several": report_figures.several_blends(),
    "texts": report_figures.texts(),
    "empty": report_figures.empty(),
}
SECTIONS = ["summary", "sources", "lengths-seconds", "classes", "costs", "blend", "storage"]
SECTIONS += ["memory", "passes"]
NAMES = (
    "<script>alert(1)</script>",
    "a|b",
    r"$\frac{1}$",
    "half $ of it",
    "fill: #fe0010; url(#p)",
    "x\x00\x1b\udc80\ny",
    "&amp; \"quoted\" 'so'",
    "中文" * 30,
    "</svg></figure><img src=x onerror=alert(1)>",
)


@cache
def made_page(name):
    return page_of(FIGURES[name])


@pytest.fixture(params=FIGURES)
def made(request):
    return FIGURES[request.param], made_page(request.param)


def values(element):
    return [one.attributes["data-value"] for one in element.all() if "data-value" in one.attributes]


def columns(table):
    """The exact values of a table's columns of numbers, by title."""
    titles = [head.text for head in table.one("thead").all("th")]
    rows = [row.all("td") for row in table.one("tbody").all("tr")]
    return {
        title: [row[place].attributes.get("data-value", row[place].text) for row in rows]
        for place, title in enumerate(titles)
    }


def test_a_page_is_well_formed_and_needs_nothing_else(made):
    _, page = made
    root = parsed(page)
    assert page.startswith('<!doctype html>\n<html lang="en">')
    assert MARK in page[:1024]
    assert not root.all("link")
    assert not root.all("img")
    assert not root.all("iframe")
    assert [script.attributes for script in root.all("script")] == [{}]
    addresses = set(re.findall(r"[a-z]+://[^\s\"'<>)]+", page))
    assert addresses <= {"http://www.w3.org/2000/svg"}
    assert "@import" not in page
    assert not re.findall(r"url\((?!#)", page)


def test_names_in_a_page_are_one_of_a_kind_and_every_link_has_its_target(made):
    _, page = made
    root = parsed(page)
    ids = [one.attributes["id"] for one in root.all() if "id" in one.attributes]
    assert len(ids) == len(set(ids))
    targets = [one.attributes["href"] for one in root.all() if "href" in one.attributes]
    for one in root.all():
        targets += [f"#{name}" for name in one.attributes.get("aria-labelledby", "").split()]
        targets += [f"#{name}" for name in one.attributes.get("aria-describedby", "").split()]
        for value in one.attributes.values():
            targets += re.findall(r"url\((#[^)]+)\)", value)
    assert targets
    assert {target.removeprefix("#") for target in targets} <= set(ids)


def test_every_plot_is_xml_has_a_title_a_description_and_the_colours_of_the_page(made):
    figures, page = made
    drawings = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    for drawing in drawings:
        root = ET.fromstring(drawing)
        assert root.attrib["role"] == "img"
        about = root.find("{http://www.w3.org/2000/svg}desc")
        assert about is not None
        assert len(about.text) > 20
        styles = " ".join(one.attrib.get("style", "") for one in root.iter())
        assert "var(--ink)" in styles
        assert not re.findall("#[0-9a-f]{6}", styles)
        assert "font-family" not in styles
    captions = [one.text for one in parsed(page).all("figcaption")]
    assert len(captions) == len(drawings)
    assert all(len(caption) > 20 for caption in captions)
    # Each drawing is beside its numbers, in a section that has some.
    for section in parsed(page).all("section"):
        assert not section.all("svg") or values(section)
    assert figures is FIGURES["empty"] or len(drawings) >= 6


def test_all_sections_are_there_and_have_a_plot():
    root = parsed(made_page("small"))
    assert [section.attributes["id"] for section in root.all("section")] == SECTIONS
    for name in SECTIONS[1:]:
        assert len(root.one("section", id=name).all("svg")) == 1, name
    assert [link.attributes["href"] for link in root.one("nav").all("a")] == [
        f"#{name}" for name in SECTIONS
    ]


def test_the_blends_of_a_config_have_their_sections_each():
    root = parsed(made_page("several"))
    assert [head.text for head in root.all("h2")] == [
        *("Summary", "Blend audio", "Blend text", "Steps and times")
    ]
    # Its steps are its own: no command takes them.
    assert not root.one("section", id="part-0-memory").all("code")
    names = [section.attributes["id"] for section in root.all("section")]
    assert "part-0-buckets" in names
    assert "part-1-classes" in names
    assert {"part-0-lengths-seconds", "part-0-lengths-tokens"} <= set(names)
    found = columns(root.one("section", id="summary").one("table"))
    assert found["Blend"] == ["audio", "text"]
    assert found["Share of the steps"] == ["0.6", "0.4"]


def test_what_is_not_known_is_left_out():
    texts = parsed(made_page("texts"))
    titles = {head.text for head in texts.all("th")}
    assert "Hours" not in titles
    assert "Tokens of a pass" in titles
    assert "no place in a file" not in texts.text
    assert "None" not in texts.text
    assert "nan" not in texts.text
    empty = parsed(made_page("empty"))
    assert empty.text.count("There is nothing to") == 4
    assert "None" not in empty.text


def test_the_numbers_are_those_of_the_figures():
    figures = FIGURES["small"]
    [part] = figures.parts
    root = parsed(made_page("small"))
    summary = values(root.one("section", id="summary"))
    hours = sum(leaf.accepted_hours for leaf in part.leaves)
    for value in (hours, figures.hours_per_step, part.padding, part.imbalance):
        assert repr(value) in summary
    for value in (sum(leaf.rows for leaf in part.leaves), sum(x.accepted for x in part.leaves)):
        assert str(value) in summary
    assert repr(figures.time.seconds_per_step) in summary
    found = columns(root.one("section", id="sources").one("table"))
    assert found["Source"] == [leaf.name for leaf in part.leaves]
    for title, name in {
        "Rows": "rows",
        "Samples": "accepted",
        "Hours": "hours",
        "Hours of a pass": "accepted_hours",
        "Longest": "longest",
        "Weight": "weight",
        "Steps of a pass": "steps_per_pass",
    }.items():
        assert found[title] == [repr(getattr(leaf, name)) for leaf in part.leaves], title
    assert found["Left out"] == ["3", "3", "3"]
    found = columns(root.one("section", id="classes").one("table"))
    assert found["Batches"] == [repr(bucket.batches) for bucket in part.buckets]
    assert found["Fill"] == [repr(bucket.fill) for bucket in part.buckets]
    assert found["Padding"] == [repr(bucket.padding) for bucket in part.buckets]
    found = columns(root.one("section", id="storage").one("table"))
    assert found["Requests"] == ["56.2", "1.7"]
    assert found["Locality"] == ["rows (this config)", "shards"]
    found = columns(root.one("section", id="memory").one("table"))
    for title, name in {
        "Step": "step",
        "Slot": "slot",
        "Rank": "rank",
        "Of the limit": "cost",
    }.items():
        assert found[title] == [repr(getattr(one, name)) for one in part.worst], title
    costs = values(root.one("section", id="costs"))
    assert costs == [
        repr(one) for one in (part.imbalance, part.imbalance_linear, part.imbalance_quadratic)
    ]
    copies = values(root.one("section", id="classes"))
    assert repr(part.most_copies) in copies


def test_sources_are_compared_by_what_all_of_them_have():
    speech, text = report_figures.leaf("speech", 1.0, 0.5), report_figures.leaf("text", None, 0.5)
    few = replace(speech, name="few", tokens=7)
    unread = replace(text, name="unread", accepted=0, tokens=None)
    for leaves, what, words in (
        ([speech, unread], "hours of audio", "speech 59 min 24 s; unread 0 h"),
        ([few, text], "tokens", "text 31,000; few 7"),
        ([speech, text], "samples", "text 997; speech 597"),
    ):
        plot = sources(report_figures.part(tuple(leaves)), "").plots[0]
        assert f"How many {what} a pass has" in plot
        assert words in plot


def test_of_many_sources_the_largest_are_shown_and_all_can_be_opened():
    figures = FIGURES["large"]
    root = parsed(made_page("large"))
    section = root.one("section", id="sources")
    largest, everything = section.all("table")
    assert len(columns(largest)["Source"]) == 12
    assert columns(largest)["Source"][0] == "source-000"
    folded = section.one("details")
    assert "open" not in folded.attributes
    assert folded.one("table") is everything
    assert columns(everything)["Source"] == [leaf.name for leaf in figures.parts[0].leaves]
    drawn = section.one("svg").text
    assert "489 others" in drawn
    assert "source-010" in drawn
    assert "source-011" not in drawn
    mixed = root.one("section", id="blend").one("table")
    assert columns(mixed)["Source"][-1] == "493 others"
    assert sum(map(float, columns(mixed)["Weight"])) == pytest.approx(1)


def test_very_many_rows_are_not_all_written_and_the_page_says_so():
    [part] = report_figures.large(2500).parts
    section = parsed(sources(part, "").to_html(2))
    assert len(section.one("details").one("tbody").all("tr")) == 2000
    assert "500 more are left out here" in section.text


def test_names_are_text_whatever_they_are():
    page = page_of(report_figures.named(*NAMES))
    root = parsed(page)
    assert len(root.all("script")) == 1
    assert not root.all("img")
    assert page.count("<script>") == 1
    for one in root.all():
        assert not [name for name in one.attributes if name.startswith("on")]
    found = columns(root.one("section", id="sources").one("table"))["Source"]
    kept = [name.replace("\x00\x1b\udc80", 3 * "\N{REPLACEMENT CHARACTER}") for name in NAMES]
    assert found == kept
    drawn = [one.text for one in root.one("section", id="sources").one("svg").all("text")]
    for name in (*NAMES[:5], "&amp; \"quoted\" 'so'"):
        assert name in drawn
    for drawing in re.findall(r"<svg.*?</svg>", page, re.DOTALL):
        ET.fromstring(drawing)
    page.encode()


def test_the_same_figures_make_the_same_page_whatever_a_users_settings_are():
    was_loaded = "matplotlib.pyplot" in sys.modules
    figures, first = FIGURES["small"], made_page("small")
    settings = {"svg.fonttype": "path", "text.usetex": True, "font.size": 30, "axes.grid": True}
    with mpl.rc_context(settings):
        assert page_of(figures) == first
        # And those are as they were.
        assert all(mpl.rcParams[name] == value for name, value in settings.items())
    assert ("matplotlib.pyplot" in sys.modules) == was_loaded


def test_the_command_that_shows_the_largest_batch_can_be_pasted():
    figures = replace(FIGURES["small"], config="my configs/train $x.yaml")
    text = parsed(page_of(figures)).one("section", id="memory").one("code").text
    assert shlex.split(text) == [
        *("playhead", "report", "my configs/train $x.yaml", "--section", "model.train_ds"),
        *("--world-size", "64", "--seed", "42", "--step", "3", "--rank", "0"),
    ]


def test_notes_come_first_in_their_order():
    figures = FIGURES["small"]
    root = parsed(made_page("small"))
    summary = root.one("section", id="summary")
    assert [note.text for note in summary.all("li")] == list(figures.notes)
    assert root.text.index(figures.notes[0]) < root.text.index("Samples of a pass")


def test_numbers_that_are_none_or_endless_are_dashes():
    [part] = FIGURES["small"].parts
    odd = replace(part, padding=float("nan"), unused_budget=float("inf"))
    text = parsed(page_of(replace(FIGURES["small"], parts=(odd,)))).text
    assert "nan" not in text
    assert "inf" not in text


def test_without_matplotlib_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"playhead\[report\]") as error:
        page_of(FIGURES["small"])
    assert error.value.exit_code == 2
