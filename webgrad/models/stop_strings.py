"""Stop strings: a text that ends where one of them begins, though it comes in pieces.

In: pieces of text. Out: the same text, held back as long as its end may be the beginning of a stop string.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import webgrad as wg

__all__ = ["Stopper", "checked_stops"]


def checked_stops(stop: str | Sequence[str]) -> tuple[str, ...]:
    """Stop strings as a tuple."""
    try:
        given: tuple[Any, ...] = (stop,) if isinstance(stop, str) else tuple(stop)
    except TypeError:
        raise wg.DTypeError(f"stop is a text, or a list of texts, not {stop!r}") from None
    for each in given:
        if not isinstance(each, str) or not each:
            raise wg.ArgumentError(f"stop is a text or several, none of them empty, not {each!r}")
    return given


class Stopper:
    """Text that is let through until a stop string is found."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = stops
        self._held = ""
        self.found: str | None = None

    def push(self, piece: str) -> str:
        """What may be shown now; after a stop string was `found`, nothing."""
        if self.found is not None:
            return ""
        text = self._held + piece
        ends = [(at, each) for each in self._stops if (at := text.find(each)) >= 0]
        if ends:
            at, self.found = min(ends, key=lambda end: (end[0], -len(end[1])))
            self._held = ""
            return text[:at]
        kept = max((_overlap(text, each) for each in self._stops), default=0)
        self._held = text[len(text) - kept :]
        return text[: len(text) - kept]

    def finish(self) -> str:
        """What was still held back."""
        rest, self._held = self._held, ""
        return rest


def _overlap(text: str, stop: str) -> int:
    """How many characters at the text's end are the beginning of a stop string."""
    for count in range(min(len(text), len(stop) - 1), 0, -1):
        if text.endswith(stop[:count]):
            return count
    return 0
