"""What a run says of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from playhead.errors import DataError, SourceNotFoundError
from playhead.validate.meta import RunMeta, meta_path, read_meta, write_meta

if TYPE_CHECKING:
    from pathlib import Path

META = RunMeta(
    phase="resumed",
    run=2,
    is_over=True,
    world_size=3,
    micro_batches_per_step=6,
    num_workers=2,
    mode="full",
    config_digest="c0ffee",
    seed=7,
    is_finite=True,
    steps=40,
    batches=31,
    is_exhausted=True,
    first_step=5,
    dropped={"drop_last": 3},
)


def test_what_a_run_says_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    write_meta(tmp_path, META)
    assert (tmp_path / "resumed" / "run2" / "meta.json").is_file()
    assert read_meta(tmp_path, "resumed", 2) == META


def test_a_run_that_was_never_made_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceNotFoundError, match="no run 1 of the phase baseline"):
        read_meta(tmp_path, "baseline", 1)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"phase": "baseline"}', "\0"])
def test_what_is_no_such_file_is_named(tmp_path: Path, text: str) -> None:
    path = meta_path(tmp_path, "groundtruth", 0)
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(DataError, match=r"groundtruth.meta\.json"):
        read_meta(tmp_path, "groundtruth", 0)
