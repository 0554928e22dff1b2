"""What a terminal shows of a checkpoint."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from playhead.inspect.table import table
from support.summaries import overall, source, summary

_FULL = source(
    0,
    "librispeech/en",
    desired_weight=0.5,
    observed_weight=0.625,
    consumed_items=1250,
    total_items=1000,
    consumed_hours=12.346,
    observed_weight_hours=0.25,
    consumed_tokens=99_000,
    observed_weight_tokens=0.75,
    hours_left=7.5,
    partitions_seen=4,
    state_type="sequential packed",
)


def _lines(text: str, head: str = "#  dataset") -> list[str]:
    """The lines of the table itself."""
    lines = text.splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith(head))
    return lines[start : lines.index("", start) if "" in lines[start:] else None]


def test_a_wide_terminal_shows_every_known_figure() -> None:
    head, row = _lines(table(summary(_FULL), width=200))

    assert head.split("  ")[0] == "#"
    assert row.split() == [
        *("0", "librispeech/en", "125.00%", "1", "+", "25.00%", "50%", "62.5%", "+12.50%"),
        *("1,250", "1,000", "12.35", "25%", "7.50", "99,000", "75%"),
        *("4", "sequential", "packed"),
    ]


def test_columns_that_nothing_is_known_for_are_not_there() -> None:
    text = table(summary(source(0, "a", consumed_items=3), source(1, "b")), width=200)

    assert _lines(text) == [
        "#  dataset  items",
        "0  a            3",
        "1  b            -",
    ]


@given(width=st.integers(60, 200), length=st.integers(1, 200))
def test_no_line_of_the_table_is_wider_than_the_terminal(width: int, length: int) -> None:
    named = source(1, "n" * length, consumed_items=10**9, total_items=10**9, desired_weight=0.5)

    text = table(summary(_FULL, named), width=width)

    assert all(cell_len(line) <= width for line in _lines(text))


def test_what_has_no_room_is_named_and_the_shares_stay() -> None:
    text = table(summary(_FULL), width=80)

    assert all(head in _lines(text)[0] for head in ("utilization", "target", "observed", "items"))
    assert "No room for state, parts, hours left" in text
    assert "state" not in _lines(text)[0]


def test_a_long_name_keeps_both_its_ends() -> None:
    name = "first-corpus/" + "x" * 100 + "/last-part"

    row = _lines(table(summary(source(0, name, consumed_items=1)), width=60))[1]

    shown = row.split()[1]
    assert shown.startswith("first-corpus")
    assert shown.endswith("last-part")
    assert "…" in shown


def test_columns_line_up_under_wide_letters() -> None:
    rows = (source(0, "日本語", consumed_items=5), source(1, "en", consumed_items=123))

    _, wide, narrow = _lines(table(summary(*rows), width=100))

    assert cell_len(wide) == cell_len(narrow)


def test_a_name_cannot_steer_the_terminal_or_break_its_line() -> None:
    text = table(summary(source(0, "a\x1b[31m\nb", consumed_items=5)), width=100)

    assert "\x1b" not in text
    assert r"a\x1b[31m\nb" in _lines(text)[1]


def test_where_training_stands_is_above_the_sources() -> None:
    whole = overall(
        finite=True, pass_=2, steps_left=34, padding=0.0146, padding_of="this window", hours=1.5
    )

    text = table(summary(_FULL, overall=whole), width=160)

    assert "step        1,234, in window 3, 8 micro-batches a step, seed 42" in text
    assert "pass        2, 34 steps left" in text
    assert "padding     1.46% of this window" in text
    assert "hours       1.50 read" in text
    assert text.index("padding") < text.index("dataset")


def test_a_pass_without_an_end_is_not_mentioned() -> None:
    assert "pass " not in table(summary(_FULL, overall=overall()), width=160)


def test_notes_come_once_with_the_sources_that_they_are_of() -> None:
    rows = [source(number, f"s{number}", notes=("its total is unknown",)) for number in range(10)]

    text = table(summary(*rows, notes=("2 sources of the config have no state",)), width=100)

    assert text.endswith(
        "Notes:\n"
        "  - 2 sources of the config have no state\n"
        "  - #0, #1, #2, #3, #4, #5, #6, #7 and 2 more: its total is unknown"
    )


def test_a_checkpoint_without_sources_says_so() -> None:
    assert "No source was read." in table(summary(), width=80)
