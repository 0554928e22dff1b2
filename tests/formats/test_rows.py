from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from playhead.errors import ManifestError, NotSupportedError
from playhead.formats import BadRowError, Place, get_format
from playhead.formats.rows import CustomField, decode_block, decode_row, is_skipped, resolve_path

if TYPE_CHECKING:
    from pathlib import Path

PLACE = Place(leaf="l", shard="m.json", row=3, byte=40)


class Row(msgspec.Struct):
    a: int = 0
    b: float | None = None


class Skippable(msgspec.Struct):
    skipme: Any = msgspec.field(default=None, name="_skipme")
    custom: CustomField = None


DECODER = msgspec.json.Decoder(Row)
SKIP_DECODER = msgspec.json.Decoder(Skippable)


def test_a_block_is_decoded_line_by_line():
    assert decode_block(DECODER, Row, b'{"a": 1}\n{"b": 2.5, "c": [1]}\r\n') == [
        Row(1),
        Row(0, 2.5),
    ]


def test_rows_that_only_python_can_read_are_read():
    text = json.dumps({"a": 1, "cer": float("nan")}) + "\n" + json.dumps({"a": 2}) + "\n"
    assert decode_block(DECODER, Row, text.encode()) == [Row(1), Row(2)]
    assert decode_row(b'{"a": 1, "cer": Infinity}', PLACE)["cer"] == float("inf")


@pytest.mark.parametrize(
    ("block", "says"),
    [
        (b'{"a": "x"}\n', "field 'a' has the wrong type: Expected `int`, got `str`"),
        (b'{"a": 1}\n{"a": "x"}\n', "field 'a' has the wrong type"),
        (b'{"a": "x", "c": NaN}\n', "field 'a' has the wrong type"),
        (b"[1]\n", "the row is not what it should be: Expected `object`, got `array`"),
        (b"[" * 100_000 + b"\n", "the row is not what it should be"),
        (b'{"c": ' + b"[" * 100_000 + b"\n", "not valid JSON"),
        (b'{"a": 1\n', "not valid JSON"),
        (b'{"\xff\xfe": 1', "not valid JSON"),
    ],
)
def test_a_bad_row_is_said(block: bytes, says: str):
    with pytest.raises(BadRowError, match=r".") as caught:
        decode_block(DECODER, Row, block)
    assert says.lower() in str(caught.value).lower()


@pytest.mark.parametrize("row", [b"[1]", b'"x"', b"{", b'{"a": 1} x'])
def test_a_row_that_is_no_object_is_named(row: bytes):
    with pytest.raises(ManifestError, match=r"m\.json, byte 40, row 3"):
        decode_row(row, PLACE)


@pytest.mark.parametrize(
    ("top", "custom", "skipped"),
    [
        (True, None, True),
        ("noisy", None, True),
        (1, None, True),
        (["x"], None, True),
        (False, None, False),
        ("", None, False),
        (0, None, False),
        (None, {"_skipme": "why"}, True),
        (None, {"_skipme": ""}, False),
        (None, {"other": "_skipme"}, False),
        (0, {"_skipme": 2}, True),
        (None, "_skipme", False),
        (None, ["_skipme"], False),
        (None, 3, False),
        (None, True, False),
        (None, None, False),
    ],
)
def test_skipme(top: object, custom: object, skipped: bool):
    row = json.dumps({"_skipme": top, "custom": custom}).encode()
    for end in (b"}", b', "cer": NaN}'):
        (decoded,) = decode_block(SKIP_DECODER, Skippable, row[:-1] + end)
        assert is_skipped(decoded.skipme, decoded.custom) is skipped


def test_relative_paths_are_found_beside_the_manifest(tmp_path: Path, monkeypatch):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.wav").touch()
    folder = str(tmp_path / "data")
    assert resolve_path("a.wav", folder) == f"{folder}/a.wav"
    assert resolve_path("b.wav", folder) == "b.wav"
    monkeypatch.setenv("HOME", "/home/me")
    assert resolve_path("~/b.wav", folder) == "/home/me/b.wav"
    assert resolve_path("/abs/a.wav", folder) == "/abs/a.wav"
    assert resolve_path("s3://bucket/a.wav", folder) == "s3://bucket/a.wav"


def test_an_unknown_type_is_named():
    with pytest.raises(
        NotSupportedError, match=r"'paper'.*lhotse, .*nemo, nemo_sft_jsonl, nemo_tarred"
    ):
        get_format("paper")
