"""Pages in a headless Chromium, driven over its DevTools protocol through a pipe.

In: addresses or files. Out: values of expressions, screenshots, and every error that a page reported. Nothing
listens on a port, and each browser has a profile of its own that goes with it.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from scripts.browser import find_browser
from tests.pages import SECONDS, BrowserError, DrivenBrowser, DrivenPage

__all__ = ["Browser", "BrowserError", "Page"]

OPTIONS = (
    "--headless",
    "--no-sandbox",  # tests run as root in containers, where there is no other way
    "--remote-debugging-pipe",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
)
WEBGPU = ("--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader")
GRACE = 5.0  # to end by itself


class Browser(DrivenBrowser):
    """A running headless Chromium; `with Browser() as browser: page = browser.page()`."""

    name = "chromium"

    def __init__(self, *options: str) -> None:
        binary = find_browser()
        if binary is None:
            raise BrowserError("no Chromium was found; CHROME may name one")
        self.folder = tempfile.mkdtemp(prefix="webgrad-browser-")
        self.events: list[dict[str, Any]] = []
        self._buffer = b""
        self._number = 0
        self._targets: list[str] = []
        self.process = self._start([binary, *OPTIONS, *options, f"--user-data-dir={self.folder}"])

    def _start(self, command: list[str]) -> int:
        """Start it with its end of the pipes as descriptors 3 and 4, where it looks for them."""
        ends = [_above(end) for pair in (os.pipe(), os.pipe()) for end in pair]
        theirs_in, self._out, self._in, theirs_out = ends
        quiet = _above(os.open(Path(self.folder) / "log", os.O_WRONLY | os.O_CREAT, 0o600))
        actions = [
            (os.POSIX_SPAWN_DUP2, theirs_in, 3),
            (os.POSIX_SPAWN_DUP2, theirs_out, 4),
            (os.POSIX_SPAWN_DUP2, quiet, 1),
            (os.POSIX_SPAWN_DUP2, quiet, 2),
        ]
        try:
            return os.posix_spawn(command[0], command, os.environ, file_actions=actions, setpgroup=0)
        finally:
            for end in (theirs_in, theirs_out, quiet):
                os.close(end)

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the browser and all of its processes, and remove its profile."""
        if not self.process:
            return
        os.close(self._out)  # its way to know that nobody is left to talk to
        until = time.monotonic() + GRACE
        while not (ended := os.waitpid(self.process, os.WNOHANG)[0]) and time.monotonic() < until:
            time.sleep(0.01)
        if not ended:
            os.killpg(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)
        os.close(self._in)
        self.process = 0
        shutil.rmtree(self.folder, ignore_errors=True)

    def call(
        self, method: str, session: str | None = None, seconds: float = SECONDS, **parameters: Any
    ) -> dict[str, Any]:
        """One call of the protocol, and its result; what happens meanwhile is in `events`."""
        until = time.monotonic() + seconds
        self._number += 1
        number = self._number
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.next_message(method, until)
            if answer.get("id") != number:
                continue
            if "error" in answer:
                raise BrowserError(f"{method}: {answer['error'].get('message')}")
            result: dict[str, Any] = answer["result"]
            return result

    def next_message(self, awaited: str, until: float) -> dict[str, Any]:
        """The next message, before a time; events are kept as well."""
        while b"\0" not in self._buffer:
            if not select.select([self._in], [], [], max(0.0, until - time.monotonic()))[0]:
                raise BrowserError(f"{awaited}: no answer in time")
            if not (more := os.read(self._in, 1 << 20)):
                raise BrowserError(f"{awaited}: the browser has ended: {self._log()}")
            self._buffer += more
        text, self._buffer = self._buffer.split(b"\0", 1)
        message: dict[str, Any] = json.loads(text)
        if "method" in message:
            self.events.append(message)
        return message

    def _log(self) -> str:
        return (Path(self.folder) / "log").read_text(encoding="utf-8", errors="replace")[-2000:]

    def page(self, width: int = 1280, height: int = 800, *, dark: bool = False, touch: bool = False) -> Page:
        """A new empty page of a size."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        self._targets.append(target)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        page.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=touch,
        )
        page.show(dark=dark)
        return page

    def close_pages(self) -> None:
        """Close every page, and forget what happened on them."""
        while self._targets:
            self.call("Target.closeTarget", targetId=self._targets.pop())
        self.events.clear()


class Page(DrivenPage):
    """One page of a browser."""

    def __init__(self, browser: Browser, session: str) -> None:
        self.browser = browser
        self.session = session

    def call(self, method: str, seconds: float = SECONDS, **parameters: Any) -> dict[str, Any]:
        """One call of the protocol for this page."""
        return self.browser.call(method, self.session, seconds, **parameters)

    def open(self, address: str | Path) -> None:
        """Go to an address or a file, and wait until it is loaded."""
        url = address.resolve().as_uri() if isinstance(address, Path) else address
        self.browser.events[:] = [
            each for each in self.browser.events if each.get("sessionId") != self.session
        ]
        if failed := self.call("Page.navigate", url=url).get("errorText"):
            raise BrowserError(f"{url}: {failed}")
        until = time.monotonic() + SECONDS
        while not any(event["method"] == "Page.loadEventFired" for event in self._events()):
            self.browser.next_message(url, until)

    def preload(self, script: str) -> None:
        """Run statements on this page before any script of the addresses that it opens from now on."""
        self.call("Page.addScriptToEvaluateOnNewDocument", source=f"{{ {script} }}")

    def show(self, *, dark: bool = False, media: str = "") -> None:
        """Ask for a colour scheme, and for a medium such as "print"."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=media, features=[scheme])

    def evaluate(self, expression: str, *, seconds: float = SECONDS) -> Any:
        """The value of an expression, or of what it promises, as plain data."""
        answer = self.call(
            "Runtime.evaluate",
            seconds,
            expression=expression,
            awaitPromise=True,
            returnByValue=True,
            userGesture=True,
        )
        if "exceptionDetails" in answer:
            raise BrowserError(f"{expression}: {_described(answer['exceptionDetails'])}")
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        """Press a key where the focus is."""
        typed = {"Enter": "\r"}.get(key, key)
        text: dict[str, Any] = {"text": typed} if len(typed) == 1 else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def mouse(self, kind: str, left: float, top: float, **more: Any) -> None:
        """A mouse event at a place of the window: mouseMoved, mousePressed, mouseReleased, mouseWheel."""
        if kind in ("mousePressed", "mouseReleased"):
            more = {"button": "left", "clickCount": 1, **more}
        self.call("Input.dispatchMouseEvent", type=kind, x=left, y=top, **more)

    def choose_files(self, selector: str, files: Sequence[Path]) -> None:
        """Choose files in an input for files, as a user does in the dialog."""
        found = self.call("Runtime.evaluate", expression=f"document.querySelector({json.dumps(selector)})")
        if "objectId" not in found["result"]:
            raise BrowserError(f"no element {selector}")
        names = [str(file.resolve()) for file in files]
        self.call("DOM.setFileInputFiles", files=names, objectId=found["result"]["objectId"])

    def screenshot(self, path: Path | None = None, *, whole: bool = True) -> bytes:
        """The page as a PNG: all of it, or what the window shows."""
        taken = self.call(
            "Page.captureScreenshot", format="png", captureBeyondViewport=whole, **self._clip(whole)
        )
        png = base64.b64decode(taken["data"])
        if path is not None:
            path.write_bytes(png)
        return png

    def _clip(self, whole: bool) -> Mapping[str, Any]:
        if not whole:
            return {}
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        return {"clip": {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}}

    def errors(self) -> list[str]:
        """What went wrong since the page was opened: uncaught exceptions, console errors, refused loads."""
        self.evaluate("0")  # events that came before this answer are there now
        return [text for event in self._events() if (text := _error(event))]

    def requests(self) -> list[str]:
        """The addresses that the page asked for, its own and those within it ("data:") aside."""
        asked = [event for event in self._events() if event["method"] == "Network.requestWillBeSent"]
        urls = [event["params"]["request"]["url"] for event in asked if event["params"]["type"] != "Document"]
        return [url for url in urls if not url.startswith("data:")]

    def _events(self) -> list[dict[str, Any]]:
        return [event for event in self.browser.events if event.get("sessionId") == self.session]


def _above(end: int) -> int:
    """The same file with a number that standard streams and the browser's own do not take."""
    moved = fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(end)
    return moved


def _described(details: Mapping[str, Any]) -> str:
    return str(details.get("exception", {}).get("description") or details.get("text"))


def _error(event: Mapping[str, Any]) -> str:
    """An event's message where it tells of an error, else ""."""
    method, parameters = event["method"], event["params"]
    if method == "Runtime.exceptionThrown":
        return _described(parameters["exceptionDetails"])
    if method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "assert"):
        return " ".join(str(each.get("value", each.get("description"))) for each in parameters["args"])
    if method == "Log.entryAdded" and parameters["entry"]["level"] == "error":
        return str(parameters["entry"]["text"])
    return ""
