"""Playhead: the index of archives on a server 20 ms away, against one request for each header.

The server is one of our own on loopback, which waits before every answer; it counts what it sends.
"""

from __future__ import annotations

import io
import tarfile
import tempfile
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

from meter import Settings, main
from playhead.index.sidecars import Sidecar, build_sidecar
from playhead.storage import access
from playhead.storage.tarheader import BLOCK, parse_header

if TYPE_CHECKING:
    from collections.abc import Iterator

_LATENCY_SECONDS = 0.02
_SHORT, _LONG = 40_000, 50_000_000


class _Files(BaseHTTPRequestHandler):
    """The files of a folder, in parts, and late."""

    protocol_version = "HTTP/1.1"
    folder: Path
    sent = 0
    requests = 0

    def do_HEAD(self) -> None:
        self._answer(0, 0, 200)

    def do_GET(self) -> None:
        asked = self.headers.get("Range", "")
        first, _, last = asked.removeprefix("bytes=").partition("-")
        size = self._path().stat().st_size
        stop = min(int(last) + 1, size) if last else size
        self._answer(int(first or 0), stop, 206 if asked else 200)

    def _path(self) -> Path:
        return self.folder / self.path.strip("/")

    def _answer(self, start: int, stop: int, status: int) -> None:
        time.sleep(_LATENCY_SECONDS)
        size = self._path().stat().st_size
        self.send_response(status)
        self.send_header("Content-Length", str(stop - start if stop else size))
        self.send_header("ETag", f'"{size}"')
        if status == 206:
            self.send_header("Content-Range", f"bytes {start}-{stop - 1}/{size}")
        self.end_headers()
        _Files.requests += 1
        if stop:
            with self._path().open("rb") as file:
                file.seek(start)
                self.wfile.write(file.read(stop - start))
            _Files.sent += stop - start

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def _served(folder: Path) -> Iterator[str]:
    _Files.folder = folder
    with ThreadingHTTPServer(("127.0.0.1", 0), _Files) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def _write(path: Path, count: int, size: int) -> None:
    """An archive whose payloads are holes."""
    with path.open("wb") as file:
        for number in range(count):
            info = tarfile.TarInfo(f"{number:05d}.flac")
            info.size = size
            file.write(info.tobuf())
            file.seek(-(-size // BLOCK) * BLOCK, io.SEEK_CUR)
        file.truncate(file.tell() + 2 * BLOCK)


def _header_by_header(uri: str) -> int:
    size, offset, count = access.size(uri), 0, 0
    while offset < size:
        (block,) = access.read_ranges(uri, [offset], [BLOCK])
        if not any(block):
            break
        offset += BLOCK + -(-parse_header(block).size // BLOCK) * BLOCK
        count += 1
    return count


def measure(settings: Settings) -> dict[str, float]:
    short, long = (100, 4) if settings.quick else (400, 20)
    with tempfile.TemporaryDirectory() as name, _served(Path(name)) as url:
        folder = Path(name)
        _write(folder / "short.tar", short, _SHORT)
        _write(folder / "long.tar", long, _LONG)
        begin = time.perf_counter()
        assert _header_by_header(f"{url}/short.tar") == short
        slow = time.perf_counter() - begin
        ours: list[float] = []
        for turn in range(3):
            item = Sidecar(path=f"{url}/short.tar", kind="nemo_tar", idx=f"{name}/{turn}.idx")
            _Files.requests = 0
            begin = time.perf_counter()
            assert build_sidecar(item) == short
            ours.append(time.perf_counter() - begin)
        requests, _Files.sent = _Files.requests, 0
        item = Sidecar(path=f"{url}/long.tar", kind="nemo_tar", idx=f"{name}/long.idx")
        assert build_sidecar(item) == long
        whole = (folder / "long.tar").stat().st_size
        return {
            "remote_tar_index_times": slow / sorted(ours)[1],
            "remote_tar_index_requests": requests,
            "remote_tar_index_percent_read": 100 * _Files.sent / whole,
        }


if __name__ == "__main__":
    main(measure)
