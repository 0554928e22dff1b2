"""Sources of configs: read with care and without, they are the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from playhead.inspect.nemo_config import declared_sources
from playhead.inspect.nemo_entries import lenient_sources


def _entry(**optional: Any) -> st.SearchStrategy[dict[str, Any]]:
    weight = st.integers(1, 9) | st.floats(0.1, 9)
    tags = st.fixed_dictionaries({}, optional={"t": st.sampled_from(["x", "y"])})
    common = {"corpus": st.just("c"), "tags": tags, "indexes_root": st.just("/idx")}
    return st.fixed_dictionaries({"weight": weight}, optional={**common, **optional})


_FILES = st.sampled_from(["m.jsonl", "/x/m_OP_0..1_CL_.jsonl"])
_LEAF = st.builds(
    lambda entry, file: {**entry, "type": "nemo", "manifest_filepath": file},
    _entry(
        language=st.just("en"),
        subset=st.just("s"),
        name=st.sampled_from([f"n{number}" for number in range(9)]),
    ),
    _FILES,
)


def _group(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(
        lambda entry, inner: {**entry, "type": "group", "input_cfg": inner},
        _entry(name=st.just("g")),
        st.lists(children, min_size=1, max_size=3),
    )


@given(
    st.lists(st.recursive(_LEAF, _group, max_leaves=6), min_size=1, max_size=3),
    st.sampled_from([None, 0, 0.5, 1, 2]),
)
def test_sources_are_the_same_whether_playhead_trains_from_the_config_or_not(
    entries: list[dict[str, Any]], temperature: float | None
) -> None:
    section: dict[str, Any] = {"input_cfg": entries, "batch_size": 2}
    if temperature is not None:
        section["reweight_temperature"] = temperature
    with_care = declared_sources({"train_ds": section})
    # Two of one name are refused.
    assume(not with_care.notes)

    without = lenient_sources({"train_ds": section})

    def facts(sources: Any) -> list[Any]:
        names = ("name", "type", "raw_weight", "tags", "first_path", "specs", "groups")
        return [[getattr(one, name) for name in (*names, "indexes_root")] for one in sources]

    assert facts(without) == facts(with_care.sources)
    shares = [one.desired_weight for one in with_care.sources]
    assert [one.desired_weight for one in without] == pytest.approx(shares, abs=1e-6)


def test_a_config_that_playhead_cannot_train_from_is_read_with_less_care_and_a_note() -> None:
    entries = [{"type": "of_our_lab", "name": "a", "weight": 1}, {"type": "nemo_tarred"}]

    declared = declared_sources({"train_ds": {"input_cfg": entries}})

    assert [one.name for one in declared.sources] == ["a", "source-1"]
    (note,) = declared.notes
    assert note.startswith("Playhead cannot train from this config: ")
