"""How tests ask an emulated AIStore: as jobs do, but waiting half a second where they wait long."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support import servers

if TYPE_CHECKING:
    import pytest

    from support.ais_emulator import AisEmulator


def be_impatient(monkeypatch: pytest.MonkeyPatch, server: AisEmulator, **environment: str) -> None:
    """Ask this server from now on, and wait half a second where jobs wait half a minute."""
    servers.use(
        monkeypatch,
        {
            "AIS_ENDPOINT": server.endpoint,
            "PLAYHEAD_STORAGE_REQUEST_SECONDS": "0.5",
            "PLAYHEAD_STORAGE_DEADLINE_SECONDS": "6",
            "PLAYHEAD_STORAGE_TRIES": "3",
            **environment,
        },
    )
    for name in ("USE_AIS_GET_BATCH", "USE_AIS_INDIVIDUAL_GETS"):
        if name not in environment:
            monkeypatch.delenv(name, raising=False)
    for module in ("calls", "aistore_batch"):
        monkeypatch.setattr(f"playhead.storage.{module}.pause_before", lambda number: 0.01)
