"""What a page of a driven browser can do, whichever browser it is.

In: addresses, expressions, keys and the mouse. Out: values, screenshots, and every error that a page
reported. tests/browser.py has the pages of Chromium, tests/firefox.py those of Firefox; here is what both do
the same way.
"""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.limits import HANG

__all__ = ["SECONDS", "BrowserError", "DrivenBrowser", "DrivenPage"]

SECONDS = HANG  # for one answer


class BrowserError(Exception):
    """The browser did not do what it was asked for."""


class DrivenPage(ABC):
    """One page of a browser."""

    @abstractmethod
    def open(self, address: str | Path) -> None:
        """Go to an address or a file, and wait until it is loaded."""

    @abstractmethod
    def preload(self, script: str) -> None:
        """Run statements on this page before any script of the addresses that it opens from now on."""

    @abstractmethod
    def show(self, *, dark: bool = False, media: str = "") -> None:
        """Ask for a colour scheme, and for a medium such as "print"."""

    @abstractmethod
    def evaluate(self, expression: str, *, seconds: float = SECONDS) -> Any:
        """The value of an expression, or of what it promises, as plain data."""

    @abstractmethod
    def press(self, key: str) -> None:
        """Press a key where the focus is."""

    @abstractmethod
    def mouse(self, kind: str, left: float, top: float, **more: Any) -> None:
        """A mouse event at a place of the window: mouseMoved, mousePressed, mouseReleased, mouseWheel."""

    @abstractmethod
    def choose_files(self, selector: str, files: Sequence[Path]) -> None:
        """Choose files in an input for files, as a user does in the dialog."""

    @abstractmethod
    def screenshot(self, path: Path | None = None, *, whole: bool = True) -> bytes:
        """The page as a PNG: all of it, or what the window shows."""

    @abstractmethod
    def errors(self) -> list[str]:
        """What went wrong since the page was opened: uncaught exceptions, console errors, refused loads."""

    @abstractmethod
    def requests(self) -> list[str]:
        """The addresses that the page asked for, its own and those within it ("data:") aside."""

    def settle(self) -> None:
        """Wait until what was asked for is drawn."""
        self.evaluate("new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(() => go())))")

    def click(self, selector: str) -> None:
        """Press and release the mouse in the middle of an element, scrolled into view."""
        left, top = self.evaluate(
            f"""(() => {{ const found = document.querySelector({json.dumps(selector)});
            if (!found) throw new Error("no element " + {json.dumps(selector)});
            found.scrollIntoView({{ block: "center", behavior: "instant" }});
            const box = found.getBoundingClientRect();
            return [box.left + box.width / 2, box.top + box.height / 2]; }})()"""
        )
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.mouse(kind, left, top)

    def drag(self, points: Sequence[tuple[float, float]]) -> None:
        """Press the mouse at the first place of the window, move it along the others, and release it."""
        self.mouse("mouseMoved", *points[0])
        self.mouse("mousePressed", *points[0])
        for point in points[1:]:
            self.mouse("mouseMoved", *point, button="left", buttons=1)
        self.mouse("mouseReleased", *points[-1])

    def type(self, text: str) -> None:
        """Press the key of each character."""
        for character in text:
            self.press(character)

    def text(self, selector: str = "body") -> str:
        """The text that an element shows."""
        return str(self.evaluate(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''"))

    def wait_for(self, expression: str, *, seconds: float = SECONDS) -> Any:
        """Ask again and again until an expression's value is true, and give that value."""
        until = time.monotonic() + seconds
        while not (value := self.evaluate(expression, seconds=seconds)):
            if time.monotonic() > until:
                shown = self.text()[:500]
                raise BrowserError(
                    f"{expression}: not within {seconds:.0f} s; page: {shown!r}; {self.errors()}"
                )
            time.sleep(0.05)
        return value


class DrivenBrowser(ABC):
    """A running browser, which gives pages."""

    name: str

    @abstractmethod
    def page(
        self, width: int = 1280, height: int = 800, *, dark: bool = False, touch: bool = False
    ) -> DrivenPage:
        """A new empty page of a size."""

    @abstractmethod
    def close_pages(self) -> None:
        """Close every page, and forget what happened on them."""

    @abstractmethod
    def close(self) -> None:
        """End the browser and all of its processes, and remove its profile."""
