"""All 54 rules have a place here, and the documentation says which."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from playhead.check.preflight.finding import SEVERITIES, Finding
from playhead.check.preflight.rule import check_ids, rules
from playhead.check.preflight.run import preflight
from playhead.check.preflight.unnecessary import UNNECESSARY
from playhead.errors import ConfigError

DOCS = Path(__file__).parents[3] / "docs" / "check.md"
ROW = re.compile(r"^\| (\d+) \| (.*) \| (.*) \|$", re.MULTILINE)
OWN = re.compile(r"^\| `([a-z-]+)` \| (\w+) \| (.*) \|$", re.MULTILINE)


def test_all_54_are_rules_or_unnecessary_and_none_is_both():
    numbers = {number for one in rules() for number in one.numbers}
    assert numbers | set(UNNECESSARY) == set(range(1, 55))
    assert not numbers & set(UNNECESSARY)


def test_ids_are_kebab_case_and_reasons_are_sentences():
    for one in rules():
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", one.id)
        assert one.severity in SEVERITIES
        assert one.why[0].isupper() or one.why.startswith("`")
        assert not one.why.endswith(".")


def test_the_table_of_the_documentation_is_true():
    rows = {int(number): (about, here) for number, about, here in ROW.findall(DOCS.read_text())}
    assert sorted(rows) == list(range(1, 55))
    for number, (about, here) in rows.items():
        if number in UNNECESSARY:
            what, why = UNNECESSARY[number]
            assert (about, here) == (what, f"not needed: {why}")
        else:
            ids = [one.id for one in rules() if number in one.numbers]
            assert re.findall(r"`([a-z-]+)`", here) == ids


def test_the_table_of_own_rules_is_true():
    own = [(one.id, one.severity, one.why) for one in rules() if not one.numbers]
    assert OWN.findall(DOCS.read_text()) == own


def test_the_number_of_rules_in_the_example_is_true():
    assert f"2 sources, {len(list(rules()))} rules" in DOCS.read_text()


def test_ids_to_ignore_have_to_be_ids():
    assert check_ids(["weights", "bins"]) == {"weights", "bins"}
    with pytest.raises(ConfigError, match=r"no rule 'weight'.*Use weights"):
        check_ids(["weight"])


def test_the_keys_of_the_report_are_documented(subject_of, corpus):
    section = DOCS.read_text().partition("## The report as JSON")[2].partition("\n## ")[0]
    documented = re.findall(
        r"`(\w+)`", "".join(re.findall(r"^\| ([^|]*) \|", section, re.MULTILINE))
    )
    report = preflight(subject_of({"batch_size": 1, "manifest_filepath": corpus["plain"]}))
    assert documented == [*report.to_json(), "repeatability"]
    for key in Finding.__dataclass_fields__:
        assert f"`{key}`" in section
