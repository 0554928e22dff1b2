"""The proxy of an emulated AIStore: it knows the buckets and sends one on for the objects."""

from __future__ import annotations

import json
import time
from urllib.parse import urlsplit

from support.ais_handler import BATCH, Handler
from support.ais_msgpack import packed

PAGE = 1000


class Proxy(Handler):
    """Where every request comes first."""

    where = "proxy"
    token: str
    is_tls: bool

    def do_GET(self) -> None:  # noqa: N802 - its name
        path = urlsplit(self.path).path
        if self.forbidden():
            return
        if path == "/v1/daemon":
            self.tell_map()
        elif path == "/v1/health":
            self.answer(200)
        elif path == "/v1/buckets" or path.startswith("/v1/buckets/"):
            self.list()
        else:
            body = self.read_body()
            self.redirect(307 if path.startswith(BATCH) else 301, body)

    def do_HEAD(self) -> None:  # noqa: N802 - its name
        if self.forbidden():
            return
        kind, bucket, _, _ = self.asked()
        if kind != "list":
            self.redirect(307)
        elif bucket in self.holdings.buckets:
            self.answer(200, headers={"Ais-Bucket-Props": "{}"})
        else:
            self.refuse(404, f'bucket "{bucket}" does not exist')

    def do_PUT(self) -> None:  # noqa: N802 - its name
        if self.forbidden():
            return
        # Over TLS the SDK announces a body that it sends to the target only.
        if not (self.is_tls and self.headers.get("Connection", "").lower() == "close"):
            self.read_body()
        self.redirect(307)

    def do_DELETE(self) -> None:  # noqa: N802 - its name
        body = self.read_body()
        if self.forbidden():
            return
        kind, bucket, _, _ = self.asked()
        if kind != "list":
            self.redirect(307)
        elif json.loads(body or b"{}").get("action") == "destroy-bck":
            self.holdings.buckets.pop(bucket, None)
            self.answer(200)

    def do_POST(self) -> None:  # noqa: N802 - its name
        body = self.read_body()
        if self.forbidden():
            return
        _, bucket, _, _ = self.asked()
        if json.loads(body).get("action") != "create-bck":
            self.refuse(501, "not emulated")
        elif bucket in self.holdings.buckets:
            self.refuse(409, f'bucket "{bucket}" already exists')
        else:
            self.holdings.buckets[bucket] = {}
            self.answer(200)

    def forbidden(self) -> bool:
        if self.token and self.headers.get("Authorization") != f"Bearer {self.token}":
            self.read_body()
            self.refuse(401, "token required")
            return True
        return False

    def redirect(self, status: int, body: bytes = b"") -> None:
        kind, bucket, name, _ = self.asked()
        self.holdings.count(f"proxy {kind}")
        if self.went_wrong(kind, name)[0]:
            return
        split = urlsplit(self.path)
        path = split.path
        if kind == "batch":
            count = len(json.loads(body)["in"])
            self.holdings.count("batch entries", count)
            own = f"/{bucket.name}" if bucket.name else ""
            path = f"{BATCH}{own}/xid/wid/1"
        query = f"{split.query}&" if split.query else ""
        where = f"{self.target_url}{path}?{query}pid=p1&utm={time.time_ns()}&vpams=7"
        self.answer(status, headers={"Location": where})

    def list(self) -> None:
        said = json.loads(self.read_body() or b"{}")
        _, bucket, _, _ = self.asked()
        self.holdings.count("list")
        if self.went_wrong("list", "")[0]:
            return
        if not bucket.name:
            names = [{"name": one.name, "provider": one.provider} for one in self.holdings.buckets]
            self.answer(200, json.dumps(names).encode(), {"Content-Type": "application/json"})
            return
        objects = self.holdings.buckets.get(bucket)
        if objects is None:
            self.refuse(404, f'bucket "{bucket}" does not exist')
            return
        value = said.get("value") or {}
        after, prefix = value.get("continuation_token", ""), value.get("prefix", "")
        page = int(value.get("pagesize") or 0) or PAGE
        names = sorted(name for name in objects if name.startswith(prefix) and name > after)
        told = [{"n": name, "s": len(objects[name].data), "f": 64} for name in names[:page]]
        token = names[page - 1] if len(names) > page else ""
        answer = {"UUID": "emulated", "ContinuationToken": token, "Flags": 0, "Entries": told}
        self.answer(200, packed(answer), {"Content-Type": "application/msgpack"})
