"""Reading only the texts of rows gives what their samples have."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.errors import ManifestError
from playhead.formats import Place, get_format
from playhead.tokens.rows import RowBlock
from playhead.tokens.texts import text_reader, texts_of
from support.leaves import make_leaf
from support.token_rows import cut_row, mixed_row, nemo_row

PLACE = Place(leaf="leaf", shard="/data/m.json", row=0, byte=0)
texts = st.one_of(
    st.none(), st.text(max_size=20), st.integers(), st.floats(allow_nan=False, allow_infinity=False)
)
strings = st.one_of(st.none(), st.text(max_size=20))
supervisions = st.lists(
    st.fixed_dictionaries({}, optional={"text": strings, "language": strings}), max_size=3
)


def per_sample(leaf, rows):
    reader = get_format(leaf.type)
    return [texts_of(reader.example(leaf, PLACE, row, [])) for row in rows]


def per_block(leaf, rows):
    reader = text_reader(leaf, with_languages=True)
    assert reader is not None
    found = reader(RowBlock(rows))
    assert found is not None
    numbers = range(len(rows)) if found.rows is None else found.rows
    result = [[] for _ in rows]
    for number, text, language in zip(numbers, found.texts, found.languages, strict=True):
        result[number].append((text, language))
    return result


def lines(rows):
    return [json.dumps(row).encode() for row in rows]


@given(
    st.lists(
        st.fixed_dictionaries({}, optional={"words": texts, "tongue": texts, "text": texts}),
        min_size=1,
        max_size=6,
    )
)
def test_rows_of_nemo(rows):
    leaf = make_leaf("nemo", text_field="words", lang_field="tongue")
    rows = lines([nemo_row(**row) for row in rows])
    assert per_block(leaf, rows) == per_sample(leaf, rows)


def test_one_field_may_be_text_and_language():
    leaf = make_leaf("nemo", text_field="lang")
    rows = lines([nemo_row(lang="en"), nemo_row()])
    assert per_block(leaf, rows) == per_sample(leaf, rows) == [[("en", "en")], []]


@given(st.lists(st.tuples(supervisions, supervisions, st.booleans()), min_size=1, max_size=5))
def test_cuts(rows):
    leaf = make_leaf("lhotse")
    rows = lines(
        [
            mixed_row(i, cut_row(i, first), cut_row(i, second)) if mixed else cut_row(i, first)
            for i, (first, second, mixed) in enumerate(rows)
        ]
    )
    assert per_block(leaf, rows) == per_sample(leaf, rows)


def test_rows_that_only_pythons_reader_takes():
    leaf = make_leaf("nemo")
    rows = [b'{"audio_filepath": "a", "snr": NaN, "text": "we"}', b'{"audio_filepath": "b"}']
    assert per_block(leaf, rows) == per_sample(leaf, rows) == [[("we", None)], []]


@pytest.mark.parametrize("value", [b"true", b"[]", b"NaN", b"-Infinity", b'{"a": 1}'])
@pytest.mark.parametrize("field", [b"text", b"lang"])
def test_fields_that_are_no_texts_are_left_to_the_format(value, field):
    leaf = make_leaf("nemo")
    rows = [b'{"audio_filepath": "a", "text": "x"}']
    rows.append(b'{"audio_filepath": "a", "%s": %s}' % (field, value))
    assert text_reader(leaf, with_languages=True)(RowBlock(rows)) is None
    with pytest.raises(ManifestError, match="not a text"):
        per_sample(leaf, rows)


def test_languages_are_left_out_where_nobody_asks():
    leaf = make_leaf("nemo")
    rows = [b'{"audio_filepath": "a", "text": "x", "lang": []}', b'{"audio_filepath": "a"}']
    found = text_reader(leaf, with_languages=False)(RowBlock(rows))
    assert found == (["x"], [None], [0])


@pytest.mark.parametrize("joined", [b'{"text": "a"},{"text": "b"}', b'{"text": "a"}', b"\n\n"])
def test_what_lies_between_rows_is_not_trusted(joined):
    rows = [b'{"text": "a"}', b'{"text": "b"}']
    reader = text_reader(make_leaf("nemo"), with_languages=True)
    assert reader(RowBlock(rows, b"\n".join(rows))).texts == ["a", "b"]
    assert reader(RowBlock(rows, joined)) is None
    cuts = [b'{"type": "MonoCut"}'] * 2
    reader = text_reader(make_leaf("lhotse"), with_languages=True)
    assert reader(RowBlock(cuts, b"\n".join(cuts))) is not None
    assert reader(RowBlock(cuts, cuts[0])) is None


def test_what_is_no_row_is_left_to_the_format():
    for leaf in (make_leaf("nemo"), make_leaf("lhotse")):
        assert text_reader(leaf, with_languages=True)(RowBlock([b"[1]"])) is None
        assert text_reader(leaf, with_languages=True)(RowBlock([b"{"])) is None


def test_other_types_have_no_shortcut():
    assert text_reader(make_leaf("table_for_tests"), with_languages=True) is None
