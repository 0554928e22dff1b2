"""Real servers of objects on loopback, from programs that come as wheels; tests skip without them.

Each is a context manager that starts the program, waits until it answers, and kills it at the end.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

Process = subprocess.Popen[bytes]

START_SECONDS = 60
# Several processes of tests look for ports at once.
_ports = random.Random()
ACCESS_KEY, SECRET_KEY = "tester", "secret-of-tests"


@dataclass(frozen=True)
class WebServer:
    """A server of the files of a folder."""

    url: str
    """Without a slash at the end."""
    root: Path
    """The folder."""
    pid: int

    @property
    def port(self) -> int:
        return _port(self.url)


@dataclass(frozen=True)
class S3Server:
    """A server that speaks S3; buckets come to be when something is put there."""

    endpoint: str
    """Without a slash at the end."""
    root: Path | None
    """The folder whose folders are its buckets, if they are."""
    pid: int

    @property
    def port(self) -> int:
        return _port(self.endpoint)

    def environment(self, endpoint: str | None = None) -> dict[str, str]:
        """Variables by which clients find it and may write; `endpoint` is a proxy's before it."""
        return {
            "AWS_ENDPOINT_URL": endpoint or self.endpoint,
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_REGION": "us-east-1",
        }

    def bucket(self, name: str) -> Any:
        """An obstore store of a bucket, to put objects there or to compare with."""
        from obstore.store import S3Store

        return S3Store(
            name,
            endpoint=self.endpoint,
            access_key_id=ACCESS_KEY,
            secret_access_key=SECRET_KEY,
            region="us-east-1",
            virtual_hosted_style_request=False,
            client_options={"allow_http": True},
            retry_config={"max_retries": 2},
        )

    def put(self, bucket: str, key: str, data: bytes) -> str:
        """Write an object; return its URI."""
        import obstore

        if self.root is not None:
            (self.root / bucket).mkdir(parents=True, exist_ok=True)
        obstore.put(self.bucket(bucket), key, data)
        return f"s3://{bucket}/{key}"

    def put_folder(self, bucket: str, folder: Path, prefix: str = "") -> None:
        """Write all files of a folder under a prefix, by their paths inside of it."""
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                key = f"{prefix}{path.relative_to(folder).as_posix()}"
                self.put(bucket, key, path.read_bytes())


@contextmanager
def seaweedfs(folder: Path) -> Iterator[S3Server]:
    """SeaweedFS: a full S3 server, which checks signatures and answers ranges with 206."""
    folder.mkdir(parents=True, exist_ok=True)
    identities = {
        "identities": [
            {
                "name": "tests",
                "credentials": [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}],
                "actions": ["Admin", "Read", "Write", "List", "Tagging"],
            },
            # Who does not sign may read one bucket.
            {"name": "anonymous", "actions": ["Read:public", "List:public"]},
        ]
    }
    config = folder / "s3.json"
    config.write_text(json.dumps(identities))
    data = folder / "data"
    data.mkdir(exist_ok=True)
    parts = ("master", "volume", "filer", "s3")
    ports = free_ports(2 * len(parts))
    endpoint = f"http://127.0.0.1:{ports[3]}"
    command = [
        "server",
        f"-dir={data}",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        "-master.telemetry=false",
        "-master.volumeSizeLimitMB=128",
        # Every bucket of a test takes several.
        "-volume.max=512",
        f"-filer.localSocket={folder / 'filer.sock'}",
        f"-s3.localSocket={folder / 's3.sock'}",
        "-s3",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        f"-s3.config={config}",
    ]
    command += [f"-{part}.port={port}" for part, port in zip(parts, ports, strict=False)]
    command += [
        f"-{part}.port.grpc={port}" for part, port in zip(parts, ports[len(parts) :], strict=True)
    ]
    with _running("weed", command, folder) as process:
        server = S3Server(endpoint, None, process.pid)
        # The gateway answers before the volumes are there.
        _wait_until(process, folder, lambda: server.put("ready", "ready", b"x"))
        yield server


@contextmanager
def caddy(root: Path, *, logs: Path) -> Iterator[WebServer]:
    """Caddy: an ordinary web server, with ranges and ETags."""
    logs.mkdir(parents=True, exist_ok=True)
    (port,) = free_ports(1)
    command = ["file-server", "--listen", f"127.0.0.1:{port}", "--root", str(root), "--no-compress"]
    with _running("caddy", command, logs) as process:
        server = WebServer(f"http://127.0.0.1:{port}", root, process.pid)
        _wait_until(process, logs, lambda: _answers(server.url))
        yield server


@contextmanager
def rclone_s3(root: Path, *, logs: Path) -> Iterator[S3Server]:
    """Rclone as an S3 server: it answers ranges with 200, which is against the rules."""
    for folder in (root, logs):
        folder.mkdir(parents=True, exist_ok=True)
    (port,) = free_ports(1)
    command = ["serve", "s3", "--addr", f"127.0.0.1:{port}", "--config", "/dev/null"]
    command += ["--auth-key", f"{ACCESS_KEY},{SECRET_KEY}", "--vfs-cache-mode", "full"]
    command += ["--cache-dir", str(logs / "cache"), str(root)]
    with _running("rclone", command, logs) as process:
        server = S3Server(f"http://127.0.0.1:{port}", root, process.pid)
        _wait_until(process, logs, lambda: _answers(server.endpoint))
        yield server


def use(monkeypatch: pytest.MonkeyPatch, environment: Mapping[str, str]) -> None:
    """Give this process, and those it starts, an environment; stores are opened anew."""
    from playhead.storage import access
    from playhead.storage.limits import limits

    for name in [name for name in os.environ if name.startswith(("AWS_", "PLAYHEAD_STORAGE_"))]:
        monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    access._store.cache_clear()
    limits.cache_clear()


def free_ports(count: int) -> list[int]:
    """Ports that nothing listens on now, and that no connection will be given by the system."""
    chosen: list[int] = []
    while len(chosen) < count:
        port = _ports.randrange(12_000, 32_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            if port not in chosen:
                chosen.append(port)
    return chosen


def program(name: str) -> str:
    """Where a program is: beside this Python, or on the path. Skips the test if it is nowhere."""
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed (pip install playhead[test])")
    return found


@contextmanager
def _running(
    name: str, arguments: Sequence[str], folder: Path
) -> Iterator[subprocess.Popen[bytes]]:
    environment: Mapping[str, str] = {
        # Nothing is read from or written to the user's own folders.
        **{key: value for key, value in os.environ.items() if not key.startswith("AWS_")},
        "HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder),
        "XDG_DATA_HOME": str(folder),
    }
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            [program(name), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        # SIGTERM would be waited for: SeaweedFS takes its time.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(20)


def _wait_until(process: Process, folder: Path, act: Callable[[], object]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            act()
        except Exception:  # noqa: BLE001, PERF203 - whatever it is, it may pass
            logs = "\n".join(path.read_text()[-2000:] for path in folder.glob("*.log"))
            assert process.poll() is None, f"the server ended:\n{logs}"
            assert time.monotonic() < deadline, f"the server does not answer:\n{logs}"
            time.sleep(0.1)
        else:
            return


def _answers(url: str) -> None:
    try:
        urllib.request.urlopen(url, timeout=5).close()
    except urllib.error.HTTPError as error:
        error.close()


def _port(url: str) -> int:
    return int(url.rpartition(":")[2])
