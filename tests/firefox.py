"""Pages in a headless Firefox, driven over WebDriver BiDi: JSON through a WebSocket of the loopback address.

In: addresses or files. Out: values of expressions, screenshots, and every error that a page reported. The
port is the browser's own choice, and each browser has a profile of its own that goes with it. WebGPU runs on
the system's Vulkan driver.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from scripts.browser import find
from tests.limits import HANG
from tests.pages import SECONDS, BrowserError, DrivenBrowser, DrivenPage
from tests.websocket import WebSocket

__all__ = ["Firefox", "FirefoxPage"]

PREFERENCES: Mapping[str, bool | int | str] = {
    "dom.webgpu.enabled": True,
    "gfx.webgpu.ignore-blocklist": True,  # software drivers are on it
    # Nothing is asked of other hosts: no updates, studies, reports, lists, portals, start pages.
    "app.update.disabledForTesting": True,
    "app.normandy.enabled": False,
    "app.shield.optoutstudies.enabled": False,
    "browser.safebrowsing.blockedURIs.enabled": False,
    "browser.safebrowsing.downloads.enabled": False,
    "browser.safebrowsing.malware.enabled": False,
    "browser.safebrowsing.phishing.enabled": False,
    "browser.safebrowsing.update.enabled": False,
    "browser.search.update": False,
    "browser.newtabpage.enabled": False,
    "browser.startup.page": 0,
    "browser.startup.homepage_override.mstone": "ignore",
    "browser.shell.checkDefaultBrowser": False,
    "browser.aboutwelcome.enabled": False,
    "browser.topsites.contile.enabled": False,
    "browser.region.network.url": "",
    "datareporting.policy.dataSubmissionEnabled": False,
    "toolkit.telemetry.server": "",
    "extensions.getAddons.cache.enabled": False,
    "extensions.systemAddon.update.enabled": False,
    "extensions.update.enabled": False,
    "media.gmp-manager.updateEnabled": False,
    "messaging-system.rsexperimentloader.enabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "network.dns.disablePrefetch": True,
    "network.prefetch-next": False,
    "network.trr.mode": 5,
    "services.settings.server": "data:,#remote-settings-dummy/v1",
    "ui.useOverlayScrollbars": 1,  # the window's whole width is the page's
    # A page in the background, as all but one are, runs as quickly as one in front.
    "dom.min_background_timeout_value": 4,
    "dom.timeout.enable_budget_timer_throttling": False,
    "dom.ipc.processPrelaunch.enabled": False,
}
OPTIONS = ("--headless", "--no-remote", "--remote-debugging-port=0", "--remote-allow-system-access")
EVENTS = ("log.entryAdded", "network.beforeRequestSent", "network.responseCompleted", "network.fetchError")
START = HANG  # until it listens
GRACE = 10.0  # to end by itself
# At once; Firefox's own message, which is left out, comes some time after the page is loaded.
PRELOADED = """() => addEventListener("securitypolicyviolation", (event) =>
  console.error(`Content Security Policy: ${event.violatedDirective} refused ${event.blockedURI}`))"""
# WebDriver's names of the keys that are no characters.
KEYS = {
    "Backspace": "\ue003",
    "Tab": "\ue004",
    "Enter": "\ue007",
    "Shift": "\ue008",
    "Control": "\ue009",
    "Escape": "\ue00c",
    "PageUp": "\ue00e",
    "PageDown": "\ue00f",
    "End": "\ue010",
    "Home": "\ue011",
    "ArrowLeft": "\ue012",
    "ArrowUp": "\ue013",
    "ArrowRight": "\ue014",
    "ArrowDown": "\ue015",
    "Delete": "\ue017",
}


class Firefox(DrivenBrowser):
    """A running headless Firefox; `with Firefox() as browser: page = browser.page()`."""

    name = "firefox"

    def __init__(self, preferences: Mapping[str, bool | int | str] | None = None) -> None:
        binary = find("firefox")
        if binary is None:
            raise BrowserError("no Firefox was found; FIREFOX may name one")
        self.folder = Path(tempfile.mkdtemp(prefix="webgrad-firefox-"))
        self.events: list[dict[str, Any]] = []
        self._number = 0
        self._contexts: list[str] = []
        profile = self.folder / "profile"
        profile.mkdir()
        chosen = {**PREFERENCES, **(preferences or {})}
        lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in chosen.items()]
        (profile / "user.js").write_text("".join(lines), encoding="utf-8")
        with (self.folder / "log").open("wb") as log:
            self.process = subprocess.Popen(
                [binary, *OPTIONS, "--profile", str(profile), "about:blank"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # A home of its own: nothing is read from or written to the user's.
                env=os.environ | {"HOME": str(self.folder), "MOZ_CRASHREPORTER_DISABLE": "1"},
                start_new_session=True,
            )
        try:
            self._socket = WebSocket(self._port(profile), "/session")
            self.call("session.new", capabilities={})
            self.call("session.subscribe", events=list(EVENTS))
            self.call("script.addPreloadScript", functionDeclaration=PRELOADED)
        except BaseException:
            self._end()
            raise

    def _port(self, profile: Path) -> int:
        """Where it listens: it writes that down once it does."""
        file = profile / "WebDriverBiDiServer.json"
        until = time.monotonic() + START
        while time.monotonic() < until:
            if self.process.poll() is not None:
                raise BrowserError(f"Firefox has ended: {self._log()}")
            try:
                return int(json.loads(file.read_text(encoding="utf-8"))["ws_port"])
            except (OSError, ValueError):  # not there, or half written
                time.sleep(0.02)
        raise BrowserError(f"Firefox does not listen after {START:.0f} s: {self._log()}")

    def __enter__(self) -> Firefox:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the browser and all of its processes, and remove its profile."""
        if self.process.returncode is not None:
            return
        try:
            self.call("browser.close", GRACE)
            self.process.wait(GRACE)
        except (BrowserError, subprocess.TimeoutExpired):
            pass
        self._socket.close()
        self._end()

    def _end(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def call(self, method: str, seconds: float = SECONDS, **parameters: Any) -> dict[str, Any]:
        """One command of the protocol, and its result; what happens meanwhile is in `events`."""
        until = time.monotonic() + seconds
        self._number += 1
        number = self._number
        try:
            self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        except OSError as error:
            raise BrowserError(f"{method}: Firefox has ended: {self._log()}") from error
        while True:
            answer = self._next_message(method, until)
            if answer.get("id") != number:
                continue
            if answer["type"] == "error":
                raise BrowserError(f"{method}: {answer['error']}: {answer.get('message')}")
            result: dict[str, Any] = answer["result"]
            return result

    def _next_message(self, awaited: str, until: float) -> dict[str, Any]:
        try:
            message: dict[str, Any] = json.loads(self._socket.receive(until))
        except TimeoutError:
            raise BrowserError(f"{awaited}: no answer in time") from None
        except OSError as error:
            raise BrowserError(f"{awaited}: Firefox has ended: {self._log()}") from error
        if message["type"] == "event":
            self.events.append(message)
        return message

    def _log(self) -> str:
        return (self.folder / "log").read_text(encoding="utf-8", errors="replace")[-2000:]

    def page(
        self, width: int = 1280, height: int = 800, *, dark: bool = False, touch: bool = False
    ) -> FirefoxPage:
        """A new empty page of a size."""
        context = self.call("browsingContext.create", type="tab")["context"]
        self._contexts.append(context)
        viewport = {"width": width, "height": height}
        self.call("browsingContext.setViewport", context=context, viewport=viewport, devicePixelRatio=1.0)
        page = FirefoxPage(self, context)
        page.override(touchEventsOverride="enabled" if touch else "none")
        page.show(dark=dark)
        return page

    def close_pages(self) -> None:
        """Close every page, and forget what happened on them."""
        while self._contexts:
            self.call("browsingContext.close", context=self._contexts.pop())
        self.events.clear()

    def chrome(self, expression: str) -> Any:
        """The value of an expression in the browser's own window."""
        scope: dict[str, Any] = {"moz:scope": "chrome"}
        windows = self.call("browsingContext.getTree", **scope)["contexts"]
        return self.evaluate(windows[0]["context"], expression, SECONDS)

    def evaluate(self, context: str, expression: str, seconds: float) -> Any:
        """The value of an expression in a window, as plain data."""
        # By way of JSON: the protocol's own encoding of objects would have to be undone.
        asked = f"""(async () => {{ try {{ return JSON.stringify({{ value: await ({expression}\n) }}); }}
        catch (error) {{ return JSON.stringify({{ error: String(error) }}); }} }})()"""
        answer = self.call(
            "script.evaluate",
            seconds,
            expression=asked,
            target={"context": context},
            awaitPromise=True,
            userActivation=True,
        )
        if answer["type"] == "exception":
            raise BrowserError(f"{expression}: {answer['exceptionDetails']['text']}")
        found = json.loads(answer["result"]["value"])
        if "error" in found:
            raise BrowserError(f"{expression}: {found['error']}")
        return found.get("value")


class FirefoxPage(DrivenPage):
    """One page of a Firefox."""

    def __init__(self, browser: Firefox, context: str) -> None:
        self.browser = browser
        self.context = context

    def call(self, method: str, seconds: float = SECONDS, **parameters: Any) -> dict[str, Any]:
        """One command of the protocol for this page."""
        return self.browser.call(method, seconds, context=self.context, **parameters)

    def open(self, address: str | Path) -> None:
        """Go to an address or a file, and wait until it is loaded."""
        url = address.resolve().as_uri() if isinstance(address, Path) else address
        if isinstance(address, Path) and not address.exists():
            raise BrowserError(f"{url}: there is no such file")
        self.browser.events[:] = [event for event in self.browser.events if not self._is_mine(event)]
        self.call("browsingContext.navigate", url=url, wait="complete")

    def preload(self, script: str) -> None:
        """Run statements on this page before any script of the addresses that it opens from now on."""
        function = f"() => {{ {script} }}"
        self.browser.call("script.addPreloadScript", functionDeclaration=function, contexts=[self.context])

    def show(self, *, dark: bool = False, media: str = "") -> None:
        """Ask for a colour scheme, and for a medium such as "print"."""
        self.override(prefersColorSchemeOverride="dark" if dark else "light", mediumOverride=media)

    def override(self, **values: str) -> None:
        """Set what the tools for developers can override on a page."""
        number = json.dumps(self.context)
        self.browser.chrome(
            f"""(() => {{
            const {{ NavigableManager }} = ChromeUtils.importESModule(
              "chrome://remote/content/shared/NavigableManager.sys.mjs");
            const context = NavigableManager.getBrowsingContextById({number});
            Object.assign(context.top, {json.dumps(values)}); }})()"""
        )

    def evaluate(self, expression: str, *, seconds: float = SECONDS) -> Any:
        """The value of an expression, or of what it promises, as plain data."""
        return self.browser.evaluate(self.context, expression, seconds)

    def press(self, key: str) -> None:
        """Press a key where the focus is."""
        value = KEYS.get(key, key)
        self._act("key", "keyboard", [{"type": kind, "value": value} for kind in ("keyDown", "keyUp")])

    def mouse(self, kind: str, left: float, top: float, **more: Any) -> None:
        """A mouse event at a place of the window: mouseMoved, mousePressed, mouseReleased, mouseWheel."""
        place = {"x": round(left), "y": round(top)}
        if kind == "mouseWheel":
            turned = {"deltaX": round(more.get("deltaX", 0)), "deltaY": round(more.get("deltaY", 0))}
            self._act("wheel", "wheel", [{"type": "scroll", **place, **turned}])
            return
        then: dict[str, Sequence[Mapping[str, Any]]] = {
            "mouseMoved": (),
            "mousePressed": ({"type": "pointerDown", "button": 0},),
            "mouseReleased": ({"type": "pointerUp", "button": 0},),
        }
        self._act("pointer", "mouse", [{"type": "pointerMove", **place}, *then[kind]])

    def _act(self, kind: str, name: str, actions: Sequence[Mapping[str, Any]]) -> None:
        self.call("input.performActions", actions=[{"type": kind, "id": name, "actions": actions}])

    def choose_files(self, selector: str, files: Sequence[Path]) -> None:
        """Choose files in an input for files, as a user does in the dialog."""
        locator = {"type": "css", "value": selector}
        nodes = self.call("browsingContext.locateNodes", locator=locator)["nodes"]
        if not nodes:
            raise BrowserError(f"no element {selector}")
        names = [str(file.resolve()) for file in files]
        self.call("input.setFiles", element={"sharedId": nodes[0]["sharedId"]}, files=names)

    def screenshot(self, path: Path | None = None, *, whole: bool = True) -> bytes:
        """The page as a PNG: all of it, or what the window shows."""
        taken = self.call("browsingContext.captureScreenshot", origin="document" if whole else "viewport")
        png = base64.b64decode(taken["data"])
        if path is not None:
            path.write_bytes(png)
        return png

    def errors(self) -> list[str]:
        """What went wrong since the page was opened: uncaught exceptions, console errors, refused loads."""
        self.evaluate("0")  # events that came before this answer are there now
        return [text for event in self._events() if (text := _error(event))]

    def requests(self) -> list[str]:
        """The addresses that the page asked for, its own and those within it ("data:") aside."""
        asked = [event["params"] for event in self._events() if event["method"] == EVENTS[1]]
        urls = [each["request"]["url"] for each in asked if each["navigation"] is None]
        return [url for url in urls if not url.startswith("data:")]

    def _events(self) -> list[dict[str, Any]]:
        return [event for event in self.browser.events if self._is_mine(event)]

    def _is_mine(self, event: Mapping[str, Any]) -> bool:
        parameters = event["params"]
        context = parameters.get("context") or parameters.get("source", {}).get("context")
        return bool(context == self.context)


def _error(event: Mapping[str, Any]) -> str:
    """An event's message where it tells of an error, else ""."""
    method, parameters = event["method"], event["params"]
    if method == "log.entryAdded" and parameters["level"] == "error":
        text = str(parameters["text"])
        return "" if text.startswith("Content-Security-Policy:") else text
    if method == "network.fetchError":
        return f"{parameters['request']['url']}: {parameters['errorText']}"
    if method == "network.responseCompleted" and parameters["response"]["status"] >= 400:
        return f"{parameters['request']['url']}: status {parameters['response']['status']}"
    return ""
