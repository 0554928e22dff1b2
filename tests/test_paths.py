from __future__ import annotations

import json
import os
import shutil
import subprocess
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.errors import ConfigError
from playhead.paths import expand, index_path, resolve_reference, scheme

LIKE_BASH = [
    "a{0..3}b",
    "{000..127}",
    "{0..10..5}",
    "{10..0..-5}",
    "{0..10..-5}",
    "{1..3..0}",
    "{a..e}",
    "{e..a..2}",
    "{a,b,c}",
    "{1..2}{a,b}",
    "{a,b}/{x,y}/{1..3}.tar",
    "x{,a}",
    "{a}",
    "{}",
    "{a,b",
    "{a,b{1,2}",
    "{{1,2}",
    "{1..2}}",
    "{{1..3}}",
    "{a{1,2}}",
    "{a,b}}",
    "{1..}",
    "{1..3,5}",
    "{a,{1..3}}",
    "{a,b}{1,",
    "{-5..05}",
    "{01..-3}",
    "{-01..3}",
    "{0..-05}",
    "{001..9..4}",
    "{-3..3..3}",
    "{+1..3}",
    "{1..a}",
    "}{1,2}",
    "a,b",
    "{a,b,{c,d}{1,2}}",
    "{1.5..3}",
    "{00..3}",
    "{a..c..-1}",
    "{x,y}{}z",
    "{a..zz}",
    "{0..0}",
    "{08..010}",
    "{1..3..a}",
    "q{z}{1,2}",
    "{a,b{c,d{e,f}}}",
]


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash to compare with")
def test_braces_mean_what_they_mean_in_bash():
    script = "\n".join(f"printf '%s\\n' {pattern}; echo ---" for pattern in LIKE_BASH)
    said = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, check=True, timeout=60
    ).stdout.split("---\n")
    expected = {p: text.splitlines() for p, text in zip(LIKE_BASH, said, strict=False)}
    assert {pattern: expand(pattern) for pattern in LIKE_BASH} == expected


@pytest.mark.parametrize("opener", ["_OP_", "(", "[", "<", "{"])
@pytest.mark.parametrize("closer", ["_CL_", ")", "]", ">", "}"])
def test_every_spelling_of_braces(opener, closer):
    assert expand(f"m_{opener}8..10{closer}.json") == ["m_8.json", "m_9.json", "m_10.json"]


def test_the_left_most_group_varies_slowest():
    assert expand("b__OP_1..2_CL_/m__OP_0..1_CL_.json") == [
        "b_1/m_0.json",
        "b_1/m_1.json",
        "b_2/m_0.json",
        "b_2/m_1.json",
    ]


def test_what_is_no_pattern_stays_as_it_is_written():
    for path in ("plain.json", "take (1).wav", "a[x]<y>_OP_z_CL_.json", "open(1..2", "", "a)b"):
        assert expand(path) == [path]
    assert expand("take (1)/m_OP_0..1_CL_.json") == ["take (1)/m0.json", "take (1)/m1.json"]


def test_a_path_that_exists_is_that_path(tmp_path):
    (tmp_path / "take(1..2).wav").touch()
    assert expand("take(1..2).wav") == ["take(1..2).wav"]
    assert expand(f"{tmp_path}/take(1..2).wav") == [f"{tmp_path}/take(1..2).wav"]
    assert expand("take(1..3).wav") == ["take1.wav", "take2.wav", "take3.wav"]


def test_op_and_cl_are_a_pattern_even_if_such_a_file_exists(tmp_path):
    (tmp_path / "m_OP_0..1_CL_").touch()
    assert expand("m_OP_0..1_CL_") == ["m0", "m1"]


@pytest.mark.parametrize(
    "pattern",
    [
        "{0..10000000}",
        "{1..4000}/{1..4000}",
        "{a,{0..9999999}}",
        "{0..9}" * 8,
        "{1..100000000000000000000}",
    ],
)
def test_more_than_ten_million_paths_are_refused_before_any_is_made(pattern):
    with pytest.raises(ConfigError, match=r"stands for .* paths, more than 10,000,000"):
        expand(pattern)


def test_many_groups_do_not_recurse():
    assert expand("{a,b}" + "{a}" * 5000)[1] == "b" + "{a}" * 5000
    assert expand("{" * 5000) == ["{" * 5000]


names = st.text("abz_./", max_size=3)
ranges = st.tuples(st.integers(-20, 20), st.integers(-20, 20), st.integers(1, 7))
lists = st.lists(st.text("xyz", min_size=1, max_size=2), min_size=2, max_size=4)


@given(st.lists(st.tuples(names, ranges | lists), min_size=1, max_size=3), names)
def test_as_many_paths_as_the_groups_multiply_to(groups, end):
    pattern, counts = "", []
    for before, group in groups:
        if isinstance(group, tuple):
            first, last, step = group
            pattern += f"{before}{{{first}..{last}..{step}}}"
            counts.append(abs(last - first) // step + 1)
        else:
            pattern += f"{before}_OP_{','.join(group)}_CL_"
            counts.append(len(group))
    paths = expand(pattern + end)
    assert len(paths) == prod(counts)
    assert all(path.startswith(groups[0][0]) and path.endswith(end) for path in paths)


@given(st.text("a{}(),.[]<>1_OPCL", max_size=12))
def test_any_text_expands_to_something(text):
    assert all(isinstance(path, str) for path in expand(text))


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/data/a.json", ""),
        ("data/a.json", ""),
        ("C:/data", ""),
        ("s3://bucket/key", "s3"),
        ("AIS://bucket/key", "ais"),
        ("s3+http://x/y", "s3+http"),
        ("pipe:cat a.tar", "pipe"),
        ("a://b", "a"),
        ("a:b", ""),
        ("dir/s3://x", ""),
    ],
)
def test_schemes(path, expected):
    assert scheme(path) == expected


# What `lhotse.indexing.index_file_path` of 2.0.0a7 says, as a text.
AS_LHOTSE = [
    ("cuts.jsonl", None, "cuts.jsonl.idx"),
    ("./a//b.tar", None, "a/b.tar.idx"),
    ("../b.tar", None, "../b.tar.idx"),
    ("s3://b/k/x.tar", None, "s3://b/k/x.tar.idx"),
    ("s3://b//k/x.tar?v=1", None, "s3://b//k/x.tar?v=1.idx"),
    ("s3://b/k/x.tar", "/c", "/c/b/k/x.tar.idx"),
    ("s3://b/k/x.tar", "/c/", "/c/b/k/x.tar.idx"),
    ("s3://b/k/x.tar", "c", "c/b/k/x.tar.idx"),
    ("ais://b/k/x.tar", "ais://r/i/", "ais://r/i/b/k/x.tar.idx"),
    ("/data/x.jsonl", "/c", "/c/data/x.jsonl.idx"),
    ("data/x.jsonl", "/c", "/c/data/x.jsonl.idx"),
    ("//data/x.jsonl", "/c", "/c/data/x.jsonl.idx"),
    ("../x.jsonl", "/c/d", "/c/d/../x.jsonl.idx"),
    ("C:/data/x.jsonl", "/c", "/c/data/x.jsonl.idx"),
    ("file:///x.jsonl", "/c", "/c/x.jsonl.idx"),
    ("a b/ü.tar", "/c", "/c/a b/ü.tar.idx"),
]


@pytest.mark.parametrize(("path", "root", "expected"), AS_LHOTSE)
def test_indexes_lie_where_lhotse_looks_for_them(path, root, expected):
    assert index_path(path, root) == expected


def test_lhotse_itself_agrees(peer_python):
    code = (
        "import json, sys; from lhotse.indexing import index_file_path as f;"
        "print(json.dumps([str(f(*case)) for case in json.load(sys.stdin)]))"
    )
    done = subprocess.run(
        [peer_python, "-c", code],
        input=json.dumps([case[:2] for case in AS_LHOTSE]),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert json.loads(done.stdout) == [case[2] for case in AS_LHOTSE]


@pytest.fixture
def peer_python():
    python = os.environ.get("PLAYHEAD_PEER_PYTHON", "")
    if not os.access(python, os.X_OK):
        pytest.skip("no Python with Lhotse 2: `make peer`, PLAYHEAD_PEER_PYTHON")
    return python


def test_a_reference_is_relative_to_its_file_then_to_the_working_directory(tmp_path):
    folder = tmp_path / "configs"
    folder.mkdir()
    (tmp_path / "both.yaml").touch()
    (folder / "both.yaml").touch()
    (tmp_path / "here.yaml").touch()
    assert resolve_reference("both.yaml", folder) == str(folder / "both.yaml")
    assert resolve_reference("here.yaml", folder) == "here.yaml"
    assert resolve_reference("gone.yaml", folder) == "gone.yaml"
    assert resolve_reference("both.yaml", None) == "both.yaml"
    assert resolve_reference("/etc/x.yaml", folder) == "/etc/x.yaml"
    assert resolve_reference("s3://b/x.yaml", folder) == "s3://b/x.yaml"


def test_a_reference_may_be_in_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert resolve_reference("~/x.yaml", "/configs") == f"{tmp_path}/x.yaml"
