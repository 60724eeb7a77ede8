"""The fuel of one rendering: what a chat template may still make and do.

A unit is a byte made, or about ten nanoseconds of work. Whoever works for a template spends units before the
work, by the sizes of what goes in: a clock that is read between operations cannot bound one operation. No
clock is read at all, so a template is refused on every machine or on none.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

from jinja2.utils import Namespace

__all__ = [
    "ELEMENT",
    "FUEL",
    "LONGEST_VALUE",
    "STEP",
    "Fuel",
    "Refused",
    "check_bits",
    "check_keys",
    "search_work",
]

ALL_FUEL = 100_000_000  # about a second, and at most 100 MB
LONGEST_VALUE = 8_000_000  # bytes of one value with all it holds, as often as it holds it
DEEPEST_VALUE = 64  # lists in lists
LARGEST_NUMBER_BITS = 512
ELEMENT = 80  # a place in a list, and the work of looking at it
STEP = 600  # one operation, whatever it is
COMPARES = 8  # letters that a search compares in a unit
CONTAINERS: tuple[type, ...] = (
    *(list, tuple, dict, set, frozenset, range),
    *(type({}.keys()), type({}.values()), type({}.items())),
)
# Of these only: with the right numbers or tuples, all keys of a dictionary can have one place.
KEYS = (str, int, float, type(None))
LARGEST_KEY_BITS = 60


class Refused(Exception):
    """A template went over a bound, or used what is not offered; the text says which."""


class Fuel:
    """What one rendering has left, and the sizes of the containers it has seen."""

    def __init__(self) -> None:
        self.left = ALL_FUEL
        # By identity: size, height and the container, which is kept so that no identity is used twice. A list
        # that holds another one twice, which holds … is small, and endless when written: its size says so.
        self.known: dict[int, tuple[int, int, object]] = {}

    def spend(self, amount: int) -> None:
        """Pay for work, before it is done."""
        self.left -= amount
        if self.left < 0:
            raise Refused(f"it takes more than {ALL_FUEL:,} units of work (bytes made, letters compared)")

    def made(self, value: Any) -> Any:
        """The value, paid for; a container pays when its size is first asked for."""
        if isinstance(value, str):
            self.spend(self.size(value))
        else:
            self.size(value)
        return value

    def size(self, value: object) -> int:
        """The bytes of a value with all it holds. A namespace has none: it could hold itself."""
        if isinstance(value, str):
            size = sys.getsizeof(value)
            if size > LONGEST_VALUE:
                raise Refused(f"it made a text of more than {LONGEST_VALUE:,} bytes")
            return size
        if isinstance(value, int):
            check_bits(value.bit_length())
            return 28 + value.bit_length() // 3
        if isinstance(value, Namespace):
            raise Refused("it takes a namespace for a value")
        return self.measured(value)[0] if isinstance(value, CONTAINERS) else 28

    def measured(self, value: Any) -> tuple[int, int]:
        """Size and height of a container."""
        known = self.known.get(id(value))
        if known is not None:
            return known[:2]
        if isinstance(value, dict):
            check_keys(value)
        self.spend(STEP)
        total, height = 56, 0
        for part in parts_of(value):
            self.spend(ELEMENT + (sys.getsizeof(part) if isinstance(part, str) else 0))
            if isinstance(part, CONTAINERS):
                height = max(height, self.measured(part)[1])
            total += ELEMENT + self.size(part)
            if total > LONGEST_VALUE:
                raise Refused(f"it made a list of more than {LONGEST_VALUE:,} bytes")
        if height >= DEEPEST_VALUE:
            raise Refused(f"it made lists in lists, more than {DEEPEST_VALUE} deep")
        self.known[id(value)] = (total, height + 1, value)
        return total, height + 1


FUEL: ContextVar[Fuel] = ContextVar("FUEL")


def parts_of(container: Any) -> Iterator[Any]:
    for part in container:
        yield part
        if isinstance(container, dict):
            yield container[part]


def check_bits(bits: int) -> None:
    """Refuse large numbers: Python's have no end."""
    if bits > LARGEST_NUMBER_BITS:
        raise Refused("it made a number of more than 150 digits")


def check_keys(keys: Any) -> None:
    """Refuse keys of a dictionary or set that could all be made to have one place."""
    for key in keys:
        if not isinstance(key, KEYS) or (isinstance(key, int) and key.bit_length() > LARGEST_KEY_BITS):
            raise Refused(f"it takes a {type(key).__name__} for a key, not a text or a small number")


def search_work(text: Any, sought: Any) -> int:
    """The work of looking in a text for another, or for its letters, at worst."""
    return len(text) * len(sought) // COMPARES if isinstance(text, str) and isinstance(sought, str) else 0
