"""A small HTTP proxy before a server that does what networks and busy servers do to requests.

It is a process of its own, so that it neither waits for the tests nor slows them down. Which
requests suffer depends on what they ask for, how often they asked, and the seed, not on the order
they come in: two runs that ask for the same meet the same faults.

    with FaultProxy(server.port) as proxy:
        proxy.set(Faults(share=0.05, kinds=("reset", "503", "cut"), seed=1))
        ...  # read from proxy.url
        assert proxy.seen().faults["reset"] > 0
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import re
import socket
import struct
import subprocess
import sys
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

if TYPE_CHECKING:
    from typing_extensions import Self

Kind = Literal[
    "reset",  # the connection is reset before an answer
    "reset_inside",  # … after half of the body
    "cut",  # the connection is closed, in order, after half of the body
    "short",  # half of the body, and a length that says that this is all
    "long",  # more bytes than were asked for, and a length that says so
    "no_range",  # the whole object, with 200, for a range of it
    "other_range",  # what is answered is said to be another range
    "silence",  # no answer
    "stall",  # half of the body, then nothing more
    "garbage",  # what is no HTTP
    "403",
    "404",
    "429",
    "500",
    "503",
]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, kw_only=True)
class Faults:
    """What happens to requests."""

    latency: float = 0.0
    """Seconds that every answer comes later."""
    bytes_per_second: float = 0.0
    """How fast the bodies of answers come, on each connection; 0 does not slow them."""
    share: float = 0.0
    """Of the requests, how many meet a fault."""
    kinds: tuple[Kind, ...] = ("503",)
    """Which; one of them each time."""
    tries: int | None = None
    """So often only for the same request: 1 is a fault that does not come again."""
    only: str = ""
    """A regular expression of the requests that may meet one, of `GET /bucket/key`."""
    retry_after: int | None = None
    """Seconds that 429 and 503 ask for."""
    seed: int = 0
    """Chooses which."""


@dataclass(kw_only=True)
class Seen:
    """What went through a proxy since it was started or told to forget."""

    requests: int = 0
    """How many requests."""
    connections: int = 0
    """How many connections were made."""
    at_once: int = 0
    """The most requests that were under way at once."""
    sent_bytes: int = 0
    """Bytes of the bodies that were answered."""
    faults: Counter[str] = field(default_factory=Counter[str])
    """Faults by kind."""
    asked: list[str] = field(default_factory=list[str])
    """`GET /bucket/key bytes=0-9` of every request, in order."""


class FaultProxy:
    """The process, its address, and what it is told; a context manager.

    Parameters
    ----------
    port
        That of the server on this machine.
    """

    def __init__(self, port: int) -> None:
        self._upstream = port

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__)), str(self._upstream)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONWARNINGS": "ignore"},
        )
        self.port = int(self._answer()["port"])
        self.url = f"http://127.0.0.1:{self.port}"
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait(20)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            # What was not flushed has nobody to read it.
            with contextlib.suppress(BrokenPipeError):
                pipe.close()

    def set(self, faults: Faults) -> None:
        """From now on this happens to requests; how often they asked is forgotten."""
        self._ask({"faults": asdict(faults)})

    def seen(self) -> Seen:
        """What went through so far."""
        found = self._ask({"seen": True})
        return Seen(**{**found, "faults": Counter(found["faults"])})

    def forget(self) -> None:
        """Count from here."""
        self._ask({"forget": True})

    def _ask(self, message: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the proxy ended"
        return json.loads(line)


class _Head(NamedTuple):
    """The first line and the headers of a request or an answer."""

    first: str
    headers: list[tuple[str, str]]

    def get(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name), None)

    def without(self, *names: str) -> _Head:
        return _Head(self.first, [pair for pair in self.headers if pair[0].lower() not in names])

    def with_header(self, name: str, value: str) -> _Head:
        return _Head(self.first, [*self.without(name.lower()).headers, (name, value)])

    def encoded(self) -> bytes:
        lines = [self.first, *(f"{key}: {value}" for key, value in self.headers), "", ""]
        return "\r\n".join(lines).encode("latin-1")


class _Ends(NamedTuple):
    """A connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


class _Aborted(Exception):  # noqa: N818 - no error: the fault is done
    """The connection ends here."""


class _Proxy:
    """What runs in the process."""

    def __init__(self, upstream: int) -> None:
        self._upstream = upstream
        self._under_way = 0
        self.faults = Faults()
        self.seen = Seen()
        self.tries: Counter[str] = Counter()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.seen.connections += 1
        up_reader, up_writer = None, None
        try:
            while (request := await _head_of(reader)) is not None:
                body = await _body_of(reader, request, has_end=True)
                if up_writer is None or up_reader is None or up_writer.is_closing():
                    up_reader, up_writer = await asyncio.open_connection(
                        "127.0.0.1", self._upstream, limit=1 << 20
                    )
                self._under_way += 1
                self.seen.at_once = max(self.seen.at_once, self._under_way)
                try:
                    up, down = _Ends(up_reader, up_writer), _Ends(reader, writer)
                    keeps = await self._exchange(request, body, up, down)
                finally:
                    self._under_way -= 1
                if not keeps:
                    break
        except (_Aborted, ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            for one in (writer, up_writer):
                if one is not None:
                    one.close()

    async def _exchange(
        self,
        request: _Head,
        body: bytes,
        up: _Ends,
        down: _Ends,
    ) -> bool:
        writer = down.writer
        faults = self.faults
        method = request.first.split(" ")[0]
        fault = self._fault_of(request)
        if faults.latency:
            await asyncio.sleep(faults.latency)
        if fault == "silence":
            await _left(down)
        if fault == "reset":
            _reset(writer)
        if fault == "garbage":
            writer.write(b"\x00\x01 no answer\r\n\r\n")
            await writer.drain()
            raise _Aborted
        if fault is not None and fault.isdigit():
            writer.write(_refusal(fault, faults.retry_after, method))
            await writer.drain()
            return True
        if fault == "no_range":
            request = request.without("range", "if-range")
        # Asking for the connection to be closed would be the client's affair, not the server's.
        up.writer.write(request.encoded() + body)
        await up.writer.drain()
        answer = await _head_of(up.reader)
        if answer is None:
            raise _Aborted
        if answer.first.split(" ")[1] == "100":
            answer = await _head_of(up.reader)
            assert answer is not None
        status = answer.first.split(" ")[1]
        has_body = method != "HEAD" and status not in ("204", "304")
        content = await _body_of(up.reader, answer, has_end=False) if has_body else b""
        await self._send(answer, content, fault if has_body and content else None, down, has_body)
        closes = (answer.get("connection") or "").lower() == "close"
        if closes:
            up.writer.close()
        return not closes

    async def _send(
        self,
        answer: _Head,
        content: bytes,
        fault: str | None,
        down: _Ends,
        has_body: bool,
    ) -> None:
        writer = down.writer
        if fault == "short":
            content = content[: len(content) // 2]
        elif fault == "long":
            content += content[:1000]
        elif fault == "other_range" and answer.get("content-range") is not None:
            said = re.sub(
                r"(\d+)-(\d+)/",
                lambda found: f"{int(found[1]) + 1}-{int(found[2]) + 1}/",
                answer.get("content-range") or "",
            )
            answer = answer.with_header("Content-Range", said)
        if has_body:
            answer = answer.without("transfer-encoding")
            answer = answer.with_header("Content-Length", str(len(content)))
        writer.write(answer.encoded())
        ends_early = fault in ("reset_inside", "cut", "stall")
        await self._send_body(content[: len(content) // 2] if ends_early else content, writer)
        if fault == "reset_inside":
            # What was sent must arrive first.
            await asyncio.sleep(0.01)
            _reset(writer)
        if fault == "cut":
            raise _Aborted
        if fault == "stall":
            await _left(down)

    async def _send_body(self, content: bytes, writer: asyncio.StreamWriter) -> None:
        rate = self.faults.bytes_per_second
        step = 1 << 20 if not rate else max(1, int(rate / 100))
        for start in range(0, len(content), step):
            part = content[start : start + step]
            writer.write(part)
            await writer.drain()
            self.seen.sent_bytes += len(part)
            if rate:
                await asyncio.sleep(len(part) / rate)

    def _fault_of(self, request: _Head) -> str | None:
        method, target, _ = request.first.split(" ")
        path = target.partition("?")[0]
        name = f"{method} {target} {request.get('range') or ''}".strip()
        self.seen.requests += 1
        self.seen.asked.append(name)
        faults, tried = self.faults, self.tries[name]
        self.tries[name] += 1
        if faults.tries is not None and tried >= faults.tries:
            return None
        if faults.only and not re.search(faults.only, f"{method} {path}"):
            return None
        digest = hashlib.blake2b(f"{faults.seed} {tried} {name}".encode(), digest_size=16).digest()
        chance, choice = struct.unpack("<QQ", digest)
        if chance >= faults.share * 2.0**64:
            return None
        kind = faults.kinds[choice % len(faults.kinds)]
        self.seen.faults[kind] += 1
        return kind


async def _head_of(reader: asyncio.StreamReader) -> _Head | None:
    try:
        block = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = block.decode("latin-1").split("\r\n")
    pairs = [line.partition(":") for line in lines if line]
    return _Head(first, [(key, value.strip()) for key, _, value in pairs])


async def _body_of(reader: asyncio.StreamReader, head: _Head, *, has_end: bool) -> bytes:
    """The body; without a length, all that an answer still brings, and nothing of a request."""
    length = head.get("content-length")
    if length is not None:
        return await reader.readexactly(int(length))
    if (head.get("transfer-encoding") or "").lower() != "chunked":
        return b"" if has_end else await reader.read()
    parts: list[bytes] = []
    raw: list[bytes] = []
    while True:
        line = await reader.readuntil(b"\r\n")
        size = int(line.partition(b";")[0], 16)
        part = await reader.readexactly(size + 2)
        raw += [line, part]
        if size == 0:
            break
        parts.append(part[:-2])
    # A request goes on as it came, an answer gets a length.
    return b"".join(raw if has_end else parts)


async def _left(down: _Ends) -> None:
    """Wait until the client closes the connection."""
    while not down.reader.at_eof():  # noqa: ASYNC110 - the reader has no event for it
        await asyncio.sleep(0.02)
    raise _Aborted


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close a connection with a reset."""
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
    raise _Aborted


def _refusal(status: str, retry_after: int | None, method: str) -> bytes:
    body = (
        b"" if method == "HEAD" else b"<Error><Code>Fault</Code><Message>told to</Message></Error>"
    )
    head = _Head(f"HTTP/1.1 {status} Told To", [("Content-Length", str(len(body)))])
    if retry_after is not None:
        head = head.with_header("Retry-After", str(retry_after))
    return head.encoded() + body


async def _main(upstream: int) -> None:
    proxy = _Proxy(upstream)
    server = await asyncio.start_server(
        proxy.serve, "127.0.0.1", 0, limit=1 << 20, backlog=1024, reuse_address=True
    )
    print(json.dumps({"port": server.sockets[0].getsockname()[1]}), flush=True)
    loop = asyncio.get_running_loop()
    # The end of the input is the end of the tests, however they ended.
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        message = json.loads(line)
        answer: dict[str, Any] = {}
        if "faults" in message:
            given = message["faults"]
            proxy.faults = Faults(**{**given, "kinds": tuple(given["kinds"])})
            proxy.tries.clear()
        elif "seen" in message:
            answer = vars(proxy.seen)
        else:
            proxy.seen = Seen()
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    asyncio.run(_main(int(sys.argv[1])))
