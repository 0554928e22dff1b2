"""The target of an emulated AIStore: it has the objects."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from support import ais_get_batch
from support.ais_handler import Handler

if TYPE_CHECKING:
    from support.ais_objects import Bucket, Fault, StoredObject


class Target(Handler):
    """Where the objects are."""

    where = "target"
    settings: ais_get_batch.Settings

    def do_GET(self) -> None:  # noqa: N802 - its name
        body = self.read_body()
        if self.path.startswith("/v1/daemon"):
            self.tell_map()
            return
        kind, bucket, name, query = self.asked()
        self.holdings.count(kind)
        over, fault = self.went_wrong(kind, name)
        if over:
            return
        if kind == "batch":
            self.batch(json.loads(body), bucket if bucket.name else None, fault)
            return
        if bucket not in self.holdings.buckets:
            self.refuse(404, f'bucket "{bucket}" does not exist')
            return
        found = self.holdings.find(bucket, name)
        if found is None:
            self.refuse(404, f"{bucket}/{name} does not exist")
            return
        # What the cluster does not have, it fetches from the bucket behind it.
        found.present = True
        archpath, span = query.get("archpath"), self.headers.get("Range")
        if archpath and span:
            self.refuse(416, "range of an archived file")
        elif archpath:
            data = found.member(archpath)
            if data is None:
                self.refuse(404, f"{bucket}/{name}: {archpath} not found in archive")
            else:
                self.send_object(200, data, found, fault)
        elif span and not (fault and fault.what == "ignore_range"):
            self.range(found, span, fault)
        else:
            self.send_object(200, found.data, found, fault)

    def do_HEAD(self) -> None:  # noqa: N802 - its name
        kind, bucket, name, _ = self.asked()
        self.holdings.count(kind)
        if self.went_wrong(kind, name)[0]:
            return
        found = self.holdings.find(bucket, name)
        if found is None:
            self.refuse(404, f"{bucket}/{name} does not exist")
        else:
            self.answer(200, headers=self.about(found, len(found.data)))

    def do_PUT(self) -> None:  # noqa: N802 - its name
        data = self.read_body()
        kind, bucket, name, _ = self.asked()
        self.holdings.count(kind)
        if self.went_wrong(kind, name)[0]:
            return
        if bucket not in self.holdings.buckets:
            self.refuse(404, f'bucket "{bucket}" does not exist')
            return
        self.holdings.put(bucket, name, data)
        self.answer(200)

    def do_DELETE(self) -> None:  # noqa: N802 - its name
        self.read_body()
        _, bucket, name, _ = self.asked()
        self.holdings.buckets.get(bucket, {}).pop(name, None)
        self.answer(200)

    def about(self, found: StoredObject, size: int) -> dict[str, str]:
        return {
            "Content-Length": str(size),
            "Accept-Ranges": "bytes",
            "ais-version": str(found.version),
            "ais-checksum-type": "crc32",
            "ais-checksum-value": found.checksum,
            "ais-present": str(found.present).lower(),
        }

    def range(self, found: StoredObject, span: str, fault: Fault | None) -> None:
        whole = len(found.data)
        first, _, last = span.removeprefix("bytes=").partition("-")
        start = int(first) if first else whole - int(last)
        end = min(int(last) + 1, whole) if first and last else whole
        if start >= whole:
            unknown = {"Content-Range": f"bytes */{whole}"}
            self.answer(416, b"", unknown)
            return
        if fault and fault.what == "short":
            end -= 1
        self.send_object(206, found.data[start:end], found, fault, (start, end))

    def send_object(
        self,
        status: int,
        data: bytes,
        found: StoredObject,
        fault: Fault | None,
        span: tuple[int, int] | None = None,
    ) -> None:
        headers = self.about(found, len(data))
        if span:
            headers["Content-Range"] = f"bytes {span[0]}-{span[1] - 1}/{len(found.data)}"
        if fault is None or fault.what not in ("cut", "stall"):
            self.answer(status, data, headers)
            return
        sent = 0 if fault.at == "start" else len(data) // 2
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data[:sent])
        self.wfile.flush()
        if fault.what == "stall":
            time.sleep(fault.seconds)
        self.break_off(fault.ending)

    def batch(self, request: dict[str, Any], bucket: Bucket | None, fault: Fault | None) -> None:
        answer: list[ais_get_batch.Entry] = []
        refusal = None
        try:
            for one in ais_get_batch.entries(request, bucket, self.holdings, self.settings):
                answer.append(one)  # noqa: PERF402 - what comes before an error is sent
        except ais_get_batch.RefusedError as error:
            refusal = error
        if fault and fault.what == "disorder":
            answer = ais_get_batch.disordered(answer)
        if not request.get("strm"):
            if refusal is not None:
                self.refuse(refusal.status, str(refusal))
                return
            body = ais_get_batch.multipart(answer, "emulated")
            kind = {"Content-Type": "multipart/mixed; boundary=emulated"}
            self.answer(200, body, kind)
            return
        self.send_response(200)
        self.send_header("Content-Type", "application/x-tar")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        blocks = [one.blocks for one in answer]
        if fault and fault.what in ("cut", "stall"):
            self.spoil(blocks, fault)
            return
        body = b"".join(blocks) + (bytes(1024) if refusal is None else b"")
        self.chunk(body)
        self.last_chunk()

    def spoil(self, blocks: list[bytes], fault: Fault) -> None:
        """Send the beginning of a batch, and end or stall where the fault says."""
        whole = {"start": 0, "inside": fault.after, "member": fault.after}[fault.at]
        self.chunk(b"".join(blocks[:whole]))
        if fault.at == "inside" and whole < len(blocks):
            self.chunk(blocks[whole][: len(blocks[whole]) - 513])
        self.wfile.flush()
        if fault.what == "stall":
            time.sleep(fault.seconds)
        if fault.ending == "clean":
            self.last_chunk()
        else:
            self.break_off("reset")

    def chunk(self, data: bytes) -> None:
        if data:
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def last_chunk(self) -> None:
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()
