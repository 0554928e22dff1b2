from __future__ import annotations

import pytest

from playhead.errors import ConfigError
from playhead.formats import SourcePair
from playhead.formats.conversation_archives import check_archives, locate, pair_archives


def pairs(manifests: list[str], tars: list[str]) -> list[tuple[str, ...]]:
    return [pair.files for pair in pair_archives(manifests, tars, "talk")]


def test_numbers_decide_where_all_names_have_them():
    manifests = ["d/manifest_1.jsonl", "d/manifest_0.jsonl"]
    assert pairs(manifests, ["d/audio_0.tar", "d/audio_1.tar"]) == [
        ("d/manifest_1.jsonl", "d/audio_1.tar"),
        ("d/manifest_0.jsonl", "d/audio_0.tar"),
    ]


def test_order_decides_where_they_have_none():
    assert pairs(["d/talk_1.jsonl", "d/talk_0.jsonl"], ["d/audio_0.tar", "d/audio_1.tar"]) == [
        ("d/talk_1.jsonl", "d/audio_0.tar"),
        ("d/talk_0.jsonl", "d/audio_1.tar"),
    ]
    assert pairs(["m.json"], ["x.tar"]) == [("m.json", "x.tar")]


def test_no_tars():
    assert pairs(["a.jsonl", "b.jsonl"], []) == [("a.jsonl",), ("b.jsonl",)]


@pytest.mark.parametrize("numbers", [(1, 2), (2, 1), (3, 2)])
def test_unequal_counts_name_both(numbers: tuple[int, int]):
    manifests = [f"manifest_{n}.jsonl" for n in range(numbers[0])]
    tars = [f"audio_{n}.tar" for n in range(numbers[1])]
    with pytest.raises(
        ConfigError,
        match=rf"{numbers[0]} manifests \(manifest_0.*{numbers[1]} tars \(audio_0.*leaf talk",
    ):
        pairs(manifests, tars)


def test_numbers_that_do_not_fit():
    with pytest.raises(ConfigError, match=r"no partner.*manifest_1"):
        pairs(["manifest_0.json", "manifest_1.json"], ["audio_0.tar", "audio_2.tar"])


@pytest.mark.parametrize("name", ["a.gz", "a.zip", "a"])
def test_only_tars_are_archives(name: str):
    with pytest.raises(ConfigError, match=rf"ends neither with \.tar.*{name}"):
        check_archives(["b.tar", name], "talk")


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("v.wav", ("v.wav", 9)),
        ("a/v.wav", ("a/v.wav", 9)),
        ("y.tar/v.wav", ("v.wav", 1)),
        ("./y.tar/v.wav", ("v.wav", 1)),
        ("d/y.tar/a/v.wav", ("a/v.wav", 1)),
        ("/b/d/x.tar/v.wav", ("v.wav", 0)),
        ("z.tar/v.wav", ("z.tar/v.wav", 9)),
        # Half of a folder's name is not its name.
        ("ay.tar/v.wav", ("ay.tar/v.wav", 9)),
        ("y.tar/", ("y.tar/", 9)),
    ],
)
def test_which_archive_a_name_means(name: str, found: tuple[str, int]):
    pair = SourcePair(manifest="m.jsonl", tars=("/b/d/x.tar", "/b/d/y.tar"))
    assert locate(pair, name, 9) == found
