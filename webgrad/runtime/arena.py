"""Generational arenas: values behind integer handles, never confused with a later value in the same slot.

A handle is `generation << 32 | index`. Removing a value raises its slot's generation, so that an old handle
is found out as stale, never answered with another value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from ..errors import StaleBufferError

Value = TypeVar("Value")

INDEX_BITS = 32
INDEX_MASK = (1 << INDEX_BITS) - 1


class Arena(Generic[Value]):
    """Values by handle. `what` names them in errors.

    >>> arena = Arena("buffer")
    >>> handle = arena.insert("weights")
    >>> arena.get(handle)
    'weights'
    >>> arena.remove(handle)
    'weights'
    >>> handle in arena
    False
    """

    __slots__ = ("_free", "_generations", "_values", "what")

    def __init__(self, what: str) -> None:
        self.what = what
        self._values: list[Value | None] = []
        self._generations: list[int] = []
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self._values) - len(self._free)

    def __contains__(self, handle: int) -> bool:
        index = handle & INDEX_MASK
        return 0 <= index < len(self._values) and self._generations[index] == handle >> INDEX_BITS

    def __iter__(self) -> Iterator[Value]:
        return (value for value in self._values if value is not None)

    def items(self) -> Iterator[tuple[int, Value]]:
        """Handle and value of everything that is in."""
        for index, value in enumerate(self._values):
            if value is not None:
                yield self._generations[index] << INDEX_BITS | index, value

    def insert(self, value: Value) -> int:
        """Put a value in and give its handle."""
        if self._free:
            index = self._free.pop()
            self._values[index] = value
        else:
            index = len(self._values)
            self._generations.append(1)  # first: a Ctrl-C between the two must not leave a value without one
            self._values.append(value)
        return self._generations[index] << INDEX_BITS | index

    def get(self, handle: int) -> Value:
        """The value behind a handle; StaleBufferError where it is gone."""
        index = handle & INDEX_MASK
        try:
            if self._generations[index] == handle >> INDEX_BITS:
                return self._values[index]  # type: ignore[return-value]  # None only where the generation differs
        except IndexError:
            pass
        raise StaleBufferError(
            f"{self.what} {index} (generation {handle >> INDEX_BITS}) is gone: it was freed, "
            f"and its place may hold another {self.what} now; keep the object alive for as long as you use it"
        )

    def remove(self, handle: int) -> Value:
        """Take a value out; its handle is stale from now on."""
        value = self.discard(handle)
        return self.get(handle) if value is None else value

    def discard(self, handle: int) -> Value | None:
        """The same, with None where the handle is stale already."""
        index = handle & INDEX_MASK
        generations = self._generations
        if index >= len(generations) or generations[index] != handle >> INDEX_BITS:
            return None
        value = self._values[index]
        generations[index] += 1
        self._values[index] = None
        self._free.append(index)
        return value
