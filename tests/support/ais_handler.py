"""What proxy and target of an emulated AIStore have in common."""

from __future__ import annotations

import json
import os
import socket
import ssl
import struct
import sys
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from support.ais_objects import Bucket, Fault, Holdings, bucket_of

BATCH = "/v1/ml/moss"


class Handler(BaseHTTPRequestHandler):
    """Answers requests, and says what they ask for."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    holdings: Holdings
    where: str
    proxy_url: str
    target_url: str

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def read_body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def answer(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        given = {"Content-Length": str(len(body))} | (headers or {})
        for name, value in given.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        self.wfile.flush()

    def refuse(self, status: int, message: str) -> None:
        told = {"tcode": "", "message": message, "method": self.command, "url_path": self.path}
        told |= {"remote_addr": "", "caller": "", "node": self.where, "status": status}
        body = json.dumps(told).encode()
        if self.command == "HEAD":
            self.answer(status, headers={"Hdr-Error": body.decode(), "Content-Length": "0"})
        else:
            self.answer(status, body, {"Content-Type": "application/json"})

    def asked(self) -> tuple[str, Bucket, str, dict[str, str]]:
        """The kind of a request, its bucket, its object and its query."""
        parts = urlsplit(self.path)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        if parts.path.startswith(BATCH):
            names = [*parts.path.removeprefix(BATCH).strip("/").split("/"), ""]
            return "batch", bucket_of(query.get("provider", ""), names[0]), "", query
        _, _, kind, name, *rest = [*parts.path.split("/", 4), "", ""]
        bucket = bucket_of(query.get("provider", ""), unquote(name))
        if kind == "buckets":
            return "list", bucket, "", query
        verbs = {"GET": "get", "HEAD": "head", "PUT": "put"}
        return verbs.get(self.command, "other"), bucket, unquote(rest[0]), query

    def tell_map(self) -> None:
        """Say which nodes there are."""

        def node(identity: str, kind: str, url: str) -> dict[str, Any]:
            host, port = urlsplit(url).netloc.split(":")
            net = {"node_ip_addr": host, "daemon_port": port, "direct_url": url}
            nets = dict.fromkeys(("public_net", "intra_control_net", "intra_data_net"), net)
            return {"daemon_id": identity, "daemon_type": kind, "flags": 0, "id_digest": 7} | nets

        proxy, target = node("p1", "proxy", self.proxy_url), node("t1", "target", self.target_url)
        known = {"pmap": {"p1": proxy}, "tmap": {"t1": target}, "proxy_si": proxy}
        told = known | {"uuid": "emulated", "creation_time": "now", "version": "7"}
        self.answer(200, json.dumps(told).encode(), {"Content-Type": "application/json"})

    def break_off(self, ending: str) -> None:
        """End the connection: by its end, or by a reset."""
        self.close_connection = True
        with suppress(OSError):
            self.wfile.flush()
        if ending == "reset":
            linger = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            # What closes the socket would say good-bye first.
            os.close(self.connection.detach())
            raise ConnectionResetError

    def went_wrong(self, kind: str, name: str) -> tuple[bool, Fault | None]:
        """Do what a fault says before an answer: whether that was all, else the fault."""
        fault = self.holdings.fault(kind, self.where, name)
        if fault is None or fault.what not in ("status", "delay"):
            return False, fault
        if fault.what == "status":
            self.refuse(fault.status, "told to fail")
            return True, None
        time.sleep(fault.seconds)
        return False, None

    def handle_one_request(self) -> None:
        with suppress(ConnectionError, ssl.SSLError, ValueError):
            super().handle_one_request()
            return
        self.close_connection = True


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256
    context: ssl.SSLContext | None = None

    def finish_request(self, request: Any, client_address: Any) -> None:
        if self.context is None:
            super().finish_request(request, client_address)
            return
        with suppress(OSError), self.context.wrap_socket(request, server_side=True) as secure:
            super().finish_request(secure, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)
