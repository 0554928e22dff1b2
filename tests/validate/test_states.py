"""The states that ranks save."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.validate.states import load_state, save_state

if TYPE_CHECKING:
    from pathlib import Path


def test_files_beside_a_state_are_no_states(tmp_path: Path) -> None:
    save_state(tmp_path / "state_rank_000.pt", {"step": 1})
    (tmp_path / "state_rank_001.pt.part").write_bytes(b"half")
    assert load_state(tmp_path, 0) == {"step": 1}
