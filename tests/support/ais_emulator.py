"""An AIStore on loopback in a process of its own, which the official SDK takes for a real one.

It speaks as much of the REST API as the SDK uses for objects, listings, archives and GetBatch:
a proxy redirects to a target, which holds the objects in memory and does wrong what it is told.
Left out: placement on several targets, signed redirects, transformations, uploads in parts.
"""

from __future__ import annotations

import argparse
import base64
import dataclasses
import json
import os
import ssl
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import ProxyHandler, Request, build_opener

from support.ais_get_batch import Settings
from support.ais_handler import Handler, Server
from support.ais_objects import Fault, Holdings, bucket_of
from support.ais_proxy import Proxy
from support.ais_target import Target

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

LOOPBACK = "127.0.0.1"


class AisEmulator:
    """An emulated AIStore, as long as its ``with`` block lasts.

    Parameters
    ----------
    token
        What the proxy wants to see; empty lets everybody in.
    tls
        Folder with ``cert.pem`` and ``key.pem``; None speaks plain HTTP.
    batch_ranges
        Whether GetBatch knows byte ranges, as servers do from 5.0 on.
    max_soft_errs
        How many missing entries a batch may have.
    """

    def __init__(
        self,
        *,
        token: str = "",
        tls: Path | None = None,
        batch_ranges: bool = True,
        max_soft_errs: int = 6,
    ) -> None:
        self._arguments = ["--token", token, "--max-soft-errs", str(max_soft_errs)]
        self._arguments += ["--tls", str(tls)] if tls else []
        self._arguments += [] if batch_ranges else ["--no-batch-ranges"]
        self.token = token

    def __enter__(self) -> Self:
        env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
        command = [sys.executable, "-m", "support.ais_emulator", *self._arguments]
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True, env=env
        )
        assert self._process.stdout is not None
        told = json.loads(self._process.stdout.readline())
        self.endpoint: str = told["endpoint"]
        self._control: str = told["control"]
        self._opener = build_opener(ProxyHandler({}))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # The end of its input ends it, also when this process dies.
        with self._process:
            self._process.kill()

    def put(
        self, bucket: str, name: str, data: bytes, *, provider: str = "ais", present: bool = True
    ) -> str:
        """Give it an object; its URI is returned."""
        content = base64.b64encode(data).decode()
        self._tell("put", bucket=[provider, bucket], name=name, data=content, present=present)
        return f"{provider}://{bucket}/{name}"

    def load(
        self,
        bucket: str,
        folder: Path,
        *,
        provider: str = "ais",
        prefix: str = "",
        present: bool = True,
    ) -> str:
        """Give it the files of a folder; the URI of the folder is returned."""
        where, there = [provider, bucket], str(folder)
        self._tell("load", bucket=where, folder=there, prefix=prefix, present=present)
        return f"{provider}://{bucket}/{prefix}".removesuffix("/")

    def forget(self, bucket: str, name: str, *, provider: str = "ais") -> None:
        """Take an object away."""
        self._tell("forget", bucket=[provider, bucket], name=name)

    def forget_bucket(self, bucket: str, *, provider: str = "ais") -> None:
        """Take a bucket away."""
        self._tell("forget bucket", bucket=[provider, bucket])

    def fault(self, **fault: Any) -> None:
        """Make it do something wrong, as `Fault` says."""
        self._tell("fault", **dataclasses.asdict(Fault(**fault)))

    def heal(self) -> None:
        """Make it do nothing wrong any more, and count from nothing."""
        self._tell("heal")

    def counts(self) -> dict[str, int]:
        """How often it was asked for what."""
        return self._tell("counts")

    def _tell(self, order: str, **rest: Any) -> Any:
        data = json.dumps({"do": order, **rest}).encode()
        with self._opener.open(Request(self._control, data), timeout=30) as answer:
            return json.loads(answer.read())


class Control(BaseHTTPRequestHandler):
    """How a test talks to the emulator behind the back of what is tested."""

    holdings: Holdings

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        what = said.pop("do")
        bucket = bucket_of(*said.pop("bucket")) if "bucket" in said else None
        told: Any = None
        if what == "put":
            data = base64.b64decode(said["data"])
            self.holdings.put(bucket, said["name"], data, present=said["present"])
        elif what == "load":
            self.holdings.load(bucket, **said)
        elif what == "forget":
            self.holdings.buckets[bucket].pop(said["name"], None)
        elif what == "forget bucket":
            self.holdings.buckets.pop(bucket, None)
        elif what == "fault":
            self.holdings.faults.append(Fault(**said))
        elif what == "heal":
            self.holdings.faults.clear()
            self.holdings.counts.clear()
        else:
            told = dict(self.holdings.counts)
        body = json.dumps(told).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main() -> None:
    """Serve until the input ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--token", default="")
    parser.add_argument("--tls", type=Path)
    parser.add_argument("--no-batch-ranges", action="store_true")
    parser.add_argument("--max-soft-errs", type=int, default=6)
    given = parser.parse_args()
    if given.tls:
        Server.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        Server.context.load_cert_chain(given.tls / "cert.pem", given.tls / "key.pem")
    scheme = "https" if given.tls else "http"
    holdings = Holdings()
    settings = Settings(not given.no_batch_ranges, given.max_soft_errs)
    shared = {"holdings": holdings, "settings": settings, "token": given.token}
    shared["is_tls"] = bool(given.tls)
    target = Server((LOOPBACK, 0), type("T", (Target,), shared))
    proxy = Server((LOOPBACK, 0), type("P", (Proxy,), shared))
    Handler.proxy_url = own = f"{scheme}://{LOOPBACK}:{proxy.server_port}"
    Handler.target_url = f"{scheme}://{LOOPBACK}:{target.server_port}"
    control = ControlServer((LOOPBACK, 0), type("C", (Control,), {"holdings": holdings}))
    for server in (target, proxy, control):
        threading.Thread(target=server.serve_forever, daemon=True).start()
    where = f"http://{LOOPBACK}:{control.server_port}"
    print(json.dumps({"endpoint": own, "control": where}), flush=True)
    sys.stdin.read()


class ControlServer(Server):
    """Never behind TLS."""

    def finish_request(self, request: Any, client_address: Any) -> None:
        self.RequestHandlerClass(request, client_address, self)


if __name__ == "__main__":
    main()
