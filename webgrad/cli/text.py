"""Laying out labelled lines for a terminal of any width and any character set.

In: `Line`s. Out: strings no wider than asked for (a single word that is wider stays whole), in characters
that the stream's encoding has.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

__all__ = ["NARROW", "NO_BREAK", "Line", "encodable", "layout", "size", "wrap"]

NARROW = 60  # below this many columns a text goes under its label instead of beside it
NO_BREAK = "\N{NO-BREAK SPACE}"  # keeps "32 KiB" on one line; printed as a plain space
_PLAIN = {"✓": "+", "–": "-", "·": "|", "×": "x", "µ": "u", "…": "..."}


@dataclass(frozen=True, slots=True)
class Line:
    """A label and its text, or, without a text, a heading."""

    label: str
    text: str = ""


def layout(lines: Iterable[Line], width: int) -> Iterator[str]:
    """The lines as text: headings with a blank line before, labels in a column, texts wrapped beside them."""
    every = list(lines)
    column = 2 + max((len(line.label) for line in every if line.text), default=0)
    for number, line in enumerate(every):
        if not line.text:
            yield from [""] if number else []
            yield from wrap(line.label, width)
        elif width < NARROW:
            yield from wrap(line.label, width, first="  ")
            yield from wrap(line.text, width, first="    ", rest="    ")
        else:
            yield from wrap(line.text, width, first=f"  {line.label:{column}}", rest=" " * (column + 2))


def wrap(text: str, width: int, *, first: str = "", rest: str = "") -> list[str]:
    """The text in lines of whole words."""
    wrapped = textwrap.wrap(
        text,
        max(width, len(rest) + 8),
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(NO_BREAK, " ") for line in wrapped]


def encodable(text: str, encoding: str) -> str:
    """The text in characters that `encoding` has: signs become plain ones, what is left a question mark."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        for sign, plain in _PLAIN.items():
            text = text.replace(sign, plain)
        return text.encode(encoding, errors="replace").decode(encoding)
    return text


def size(count: int) -> str:
    """A number of bytes for people: 128 MiB, 2 GiB, 256 B."""
    amount, units = float(count), ["B", "KiB", "MiB", "GiB", "TiB"]
    while amount >= 1024 and len(units) > 1:
        amount, units = amount / 1024, units[1:]
    return f"{amount:.4g}{NO_BREAK}{units[0]}"
