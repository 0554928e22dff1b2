from __future__ import annotations

import gzip
import hashlib
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.stores import MemoryStore, plugged_in

from playhead.errors import ConfigError, DataError, SourceNotFoundError
from playhead.formats.share_gpt_exclusions import excluded_lines, lines_of_manifests
from support.conversation_leaves import talk_leaf

if TYPE_CHECKING:
    from pathlib import Path

AUDIT = "ab" * 32


def excluded(lines: Any, digest: Any = None, audit: Any = AUDIT) -> list[int]:
    own = {
        "excluded_manifest_lines": lines,
        "excluded_manifest_lines_sha256": digest,
        "approved_exclusion_audit_sha256": audit,
    }
    return excluded_lines(talk_leaf("share_gpt", own=own, manifest="/m.jsonl"))


def test_lines_are_ascending():
    assert excluded([7, 2, 5]) == [2, 5, 7]
    assert excluded((3,)) == [3]
    assert excluded([], audit=None) == []
    assert excluded(None, audit=None) == []


def test_the_digest_is_that_of_the_ascending_numbers():
    digest = hashlib.sha256(b"[2,5,7]\n").hexdigest()
    assert excluded([7, 5, 2], digest) == [2, 5, 7]
    assert excluded([7, 5, 2], digest.upper()) == [2, 5, 7]
    assert excluded([], hashlib.sha256(b"[]\n").hexdigest(), None) == []
    with pytest.raises(ConfigError, match=f"is {digest} and the lines that are listed have"):
        excluded([2, 5], digest)


@pytest.mark.parametrize(
    ("lines", "digest", "audit", "says"),
    [
        ([0], None, AUDIT, "excluded_manifest_lines is"),
        ([-1], None, AUDIT, "excluded_manifest_lines is"),
        ([True], None, AUDIT, "excluded_manifest_lines is"),
        ([1.0], None, AUDIT, "excluded_manifest_lines is"),
        (["1"], None, AUDIT, "excluded_manifest_lines is"),
        (7, None, AUDIT, "excluded_manifest_lines is 7"),
        ("7", None, AUDIT, "excluded_manifest_lines is '7'"),
        ([3, 1, 3], None, AUDIT, "has 3 twice"),
        ([1], None, None, "without approved_exclusion_audit_sha256"),
        ([1], None, "ab", "approved_exclusion_audit_sha256 is 'ab'"),
        ([1], None, 5, "approved_exclusion_audit_sha256 is 5"),
        ([1], "x" * 64, AUDIT, "excluded_manifest_lines_sha256 is"),
        (None, None, "ab", "approved_exclusion_audit_sha256 is 'ab'"),
    ],
)
def test_lists_that_nobody_can_have_approved(lines: Any, digest: Any, audit: Any, says: str):
    with pytest.raises(ConfigError, match=says):
        excluded(lines, digest, audit)


@given(
    st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=4),
    st.data(),
)
def test_numbers_run_on_over_manifests(
    tmp_path_factory: pytest.TempPathFactory, shape: list[tuple[int, bool]], data: st.DataObject
):
    folder = tmp_path_factory.mktemp("lines")
    paths: list[str] = []
    where: list[tuple[int, int]] = []
    for number, (count, ends) in enumerate(shape):
        path = folder / f"{number}.jsonl"
        # Blank lines count, and so does a last line without its end.
        path.write_bytes(b"\n" * (count - 1) + (b"{}\n" if ends else b"{}") if count else b"")
        paths.append(str(path))
        where += [(number, line) for line in range(count)]
    lines = data.draw(st.sets(st.integers(1, len(where))) if where else st.just(set[int]()))
    found = lines_of_manifests(sorted(lines), paths, "talk")
    assert [(number, line) for number, some in enumerate(found) for line in some] == [
        where[line - 1] for line in sorted(lines)
    ]
    with pytest.raises(ConfigError, match=f"line {len(where) + 1}, and the manifests have"):
        lines_of_manifests([*sorted(lines), len(where) + 1], paths, "talk")


def test_manifests_whose_lines_cannot_be_counted(tmp_path: Path):
    with pytest.raises(SourceNotFoundError, match="does not exist"):
        lines_of_manifests([1], [str(tmp_path / "m.jsonl")], "talk")
    packed = tmp_path / "m.jsonl.gz"
    packed.write_bytes(gzip.compress(b"{}\n")[:-1])
    with pytest.raises(DataError, match="cannot be decompressed"):
        lines_of_manifests([1], [str(packed)], "talk")
    assert lines_of_manifests([], [str(packed)], "talk") == [()]


def test_lines_are_counted_wherever_they_are(tmp_path: Path):
    packed = gzip.compress(b"{}\n{}\n")
    (tmp_path / "m.jsonl.gz").write_bytes(packed)
    with plugged_in(MemoryStore({"s3://b/m.jsonl": b"{}\n{}", "s3://b/m.jsonl.gz": packed})):
        paths = [str(tmp_path / "m.jsonl.gz"), "s3://b/m.jsonl", "s3://b/m.jsonl.gz"]
        assert lines_of_manifests([2, 3, 6], paths, "talk") == [(1,), (0,), (1,)]
