"""A headless Chromium that opens a page and tells what is in it, by its DevTools protocol."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

__all__ = ["CHROMIUM", "Browser", "browser"]

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
_PATIENCE = 60.0


@contextlib.contextmanager
def browser() -> Generator[Browser]:
    """Start Chromium, and end it."""
    assert CHROMIUM is not None
    to_chromium, from_us = os.pipe()
    from_chromium, to_us = os.pipe()
    with tempfile.TemporaryDirectory() as profile:
        # It reads commands from descriptor 3 and writes answers to 4.
        started = subprocess.Popen(
            [
                *("bash", "-c", f'exec "$@" 3<&{to_chromium} 4>&{to_us}', "bash"),
                *(CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu"),
                *("--hide-scrollbars", "--no-first-run", "--disable-background-networking"),
                *("--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"),
            ],
            pass_fds=(to_chromium, to_us),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_chromium)
        os.close(to_us)
        try:
            yield Browser(from_us, from_chromium)
        finally:
            with contextlib.suppress(OSError):
                os.write(from_us, b'{"id": 0, "method": "Browser.close"}\0')
            os.close(from_us)
            os.close(from_chromium)
            try:
                started.wait(10)
            except subprocess.TimeoutExpired:
                started.kill()
                started.wait()


class Browser:
    """One page of a browser that runs."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = commands, answers
        self._read, self._number = b"", 0
        self._session: str | None = None
        self._events: list[dict[str, Any]] = []
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self._ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._ask(f"{domain}.enable")

    def open(
        self, page: Path, *, width: int, height: int = 800, scheme: str = "light", media: str = ""
    ) -> None:
        """Open a file in a window of some size."""
        self._events.clear()
        self._ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self._ask("Emulation.setEmulatedMedia", media=media, features=[feature])
        self._ask("Page.navigate", url=page.as_uri())
        self._await("Page.loadEventFired")

    def evaluate(self, script: str) -> Any:
        """Return what a script gives."""
        answer = self._ask(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    @property
    def errors(self) -> list[dict[str, Any]]:
        """What the console complains of since the page was opened."""
        return [
            event
            for event in self._events
            if event["method"] in {"Runtime.exceptionThrown", "Log.entryAdded"}
            or (
                event["method"] == "Runtime.consoleAPICalled"
                and event["params"]["type"] in {"error", "warning", "assert"}
            )
        ]

    @property
    def requests(self) -> list[str]:
        """The addresses that were asked for since the page was opened."""
        return [
            event["params"]["request"]["url"]
            for event in self._events
            if event["method"] == "Network.requestWillBeSent"
        ]

    def screenshot(self, to: Path) -> None:
        """Save a picture of the whole page."""
        taken = self._ask("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        to.write_bytes(base64.b64decode(taken["data"]))

    def pdf(self, to: Path) -> None:
        """Save what is printed."""
        to.write_bytes(base64.b64decode(self._ask("Page.printToPDF")["data"]))

    def _ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            said = self._next(time.monotonic() + _PATIENCE)
            if said.get("id") == self._number:
                assert "error" not in said, said
                return said["result"]
            self._events.append(said)

    def _await(self, method: str) -> None:
        until = time.monotonic() + _PATIENCE
        while not any(event["method"] == method for event in self._events):
            self._events.append(self._next(until))

    def _next(self, until: float) -> dict[str, Any]:
        while b"\0" not in self._read:
            ready, _, _ = select.select([self._answers], [], [], max(0, until - time.monotonic()))
            assert ready, "Chromium says nothing"
            read = os.read(self._answers, 1 << 20)
            assert read, "Chromium has ended"
            self._read += read
        said, _, self._read = self._read.partition(b"\0")
        return json.loads(said)
