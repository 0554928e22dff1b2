from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from playhead.errors import ConfigError
from playhead.formats import BadRowError
from playhead.formats.share_gpt_paths import AudioPaths, audio_paths
from support.conversation_leaves import talk_leaf


def paths(prefixes: Any = None, root: Any = None) -> AudioPaths:
    own = {"audio_path_prefix_map": prefixes, "audio_root": root}
    return audio_paths(talk_leaf("share_gpt", own=own, manifest="/m.jsonl"))


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/old/v.wav", "/new/v.wav"),
        ("/old/a/v.wav", "/fast/v.wav"),
        ("/old/a/b/v.wav", "/fast/b/v.wav"),
        # A prefix ends where a folder's name ends.
        ("/old/ab/v.wav", "/new/ab/v.wav"),
        ("//old//a//v.wav".removeprefix("/"), "/fast/v.wav"),
        ("/old/a", "/fast"),
        ("/bucket/v.wav", "s3://b/k/v.wav"),
        ("s3://old/v.wav", "s3://old/v.wav"),
        ("v.wav", "v.wav"),
    ],
)
def test_the_longest_prefix_that_fits(path: str, found: str):
    some = {"/old": "/new/", "/old/a/": "/fast", "/bucket": "s3://b/k"}
    assert paths(some).resolve(path, "/nowhere") == found


def test_the_root_may_move():
    assert paths({"/": "/mnt"}).resolve("/a/v.wav", "/m") == "/mnt/a/v.wav"
    assert paths({"/mnt": "/"}).resolve("/mnt/a/v.wav", "/m") == "/a/v.wav"


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/older/v.wav", "no prefix in audio_path_prefix_map fits '/older/v.wav'"),
        ("/v.wav", "no prefix"),
        ("/old/../v.wav", "holds . or .."),
        ("./v.wav", "holds . or .."),
    ],
)
def test_paths_that_no_prefix_takes(path: str, says: str):
    with pytest.raises(BadRowError, match=f"(?i){says}"):
        paths({"/old": "/new"}).resolve(path, "/m")


def test_without_prefixes_dots_are_as_elsewhere(tmp_path: Path):
    (tmp_path / "v.wav").touch()
    assert paths().resolve("./v.wav", str(tmp_path)) == str(tmp_path / "./v.wav").replace(
        "/v.wav", "/./v.wav"
    )
    assert paths().resolve("/a/../v.wav", "/m") == "/a/../v.wav"


def test_a_root_is_for_what_is_relative(tmp_path: Path):
    (tmp_path / "v.wav").touch()
    mine = paths(root=str(tmp_path))
    assert mine.resolve("v.wav", "/m") == str(tmp_path / "v.wav")
    assert mine.resolve("/v.wav", "/m") == "/v.wav"
    assert mine.resolve("s3://b/v.wav", "/m") == "s3://b/v.wav"
    # What is not there is what it says, as beside a manifest.
    assert mine.resolve("w.wav", "/m") == "w.wav"
    assert paths(root="~/audio").root == str(Path("~/audio").expanduser())


@pytest.mark.parametrize(
    "prefixes",
    [
        {"old": "/new"},
        {"": "/new"},
        {"/old": "new"},
        {"/old": ""},
        {"/old/..": "/new"},
        {"/old": "/new/./a"},
        {"//old": "/new"},
        {"s3://b": "/new"},
        {"/old": "s3://"},
        {"/old": "s3:///key"},
        {"/old": 5},
        {5: "/new"},
        {"/old": None},
        ["/old"],
        "/old",
    ],
)
def test_maps_that_cannot_be(prefixes: Any):
    with pytest.raises(ConfigError, match="audio_path_prefix_map"):
        paths(prefixes)


def test_one_prefix_twice():
    with pytest.raises(ConfigError, match="has '/old' twice"):
        paths({"/old": "/new", "/old/": "/other"})
