"""What the official SDK must see of the emulator; run by itself, with any version of the SDK."""

from __future__ import annotations

import io
import json
import sys
import tarfile
from typing import Any

from support.ais_emulator import AisEmulator

LONG = "x" * 150 + ".flac"


def a_tar(members: dict[str, bytes]) -> bytes:
    """An archive in memory."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def seen() -> dict[str, Any]:
    """What the SDK makes of what the emulator answers."""
    from aistore import Client
    from aistore.sdk.archive_config import ArchiveConfig

    told: dict[str, Any] = {}
    with AisEmulator() as ais:
        bucket = Client(ais.endpoint).bucket("bck")
        bucket.create()
        bucket.object("o 1/ü.bin").get_writer().put_content(b"hello world")
        tar = a_tar({"a.flac": b"a" * 700, "d/b.flac": b"b" * 600, LONG: b"c" * 5})
        bucket.object("t.tar").get_writer().put_content(tar)
        one = bucket.object("o 1/ü.bin")
        told["size"] = one.props.size
        told["whole"] = one.get_reader().read_all().decode()
        told["range"] = one.get_reader(byte_range="bytes=2-4").read_all().decode()
        told["direct"] = one.get_reader(direct=True).read_all().decode()
        archived = ArchiveConfig(archpath="d/b.flac")
        member = bucket.object("t.tar").get_reader(archive_config=archived)
        told["member"] = len(member.read_all())
        told["names"] = [entry.name for entry in bucket.list_all_objects(page_size=1)]
        for streaming in (True, False):
            batch = Client(ais.endpoint).batch(bucket=bucket, streaming_get=streaming)
            for name, more in (
                ("t.tar", {"archpath": "a.flac"}),
                ("gone", {}),
                ("t.tar", {"archpath": LONG}),
                ("o 1/ü.bin", {"start": 1, "length": 3}),
                ("t.tar", {"archpath": "a.flac"}),
            ):
                batch.add(name, **more)
            told[f"batch {streaming}"] = [len(data) for _, data in batch.get()]
        raised: list[str] = []
        for act in (
            bucket.object("gone").get_reader().read_all,
            bucket.object("gone").head,
            bucket.create,
        ):
            try:
                act()
            except Exception as error:  # noqa: BLE001, PERF203 - which it is is what is asked
                raised.append(type(error).__name__)
        told["raised"] = raised
        told["counts"] = ais.counts()
    return told


if __name__ == "__main__":
    json.dump(seen(), sys.stdout)
