"""Settings of a file, checked as they are asked for.

In: a dict that a file told. Out: numbers, texts and truth values in their bounds. What is missing or
impossible is a `ModelFileError` that names the file and the key.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import webgrad as wg

__all__ = ["Reader"]

_LARGEST = 1 << 24  # of any side: beyond that a file is damaged


class Reader:
    """A dict of settings, whose values are checked as they are asked for."""

    def __init__(self, values: Mapping[str, Any], source: str) -> None:
        self._values = values
        self.source = source

    def __contains__(self, key: str) -> bool:
        return self._values.get(key) is not None

    def get(self, key: str) -> Any:
        """The value as it is, or None."""
        return self._values.get(key)

    def whole(self, *keys: str, default: int | None = None, least: int = 1) -> int:
        """The first of these keys that is there, a whole number in bounds."""
        key = next((each for each in keys if each in self), None)
        if key is None:
            if default is None:
                raise wg.ModelFileError(f"{self.source}: {keys[0]} is missing")
            return default
        value = self.get(key)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _LARGEST:
            raise wg.ModelFileError(
                f"{self.source}: {key} is a whole number from {least} to {_LARGEST:,}, not {value!r:.60}"
            )
        return value

    def number(self, *keys: str, default: float | None = None) -> float:
        """The first of these keys that is there, a positive number."""
        key = next((each for each in keys if each in self), None)
        if key is None:
            if default is None:
                raise wg.ModelFileError(f"{self.source}: {keys[0]} is missing")
            return default
        value = self.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
            raise wg.ModelFileError(f"{self.source}: {key} is a positive number, not {value!r:.60}")
        return float(value)

    def text(self, key: str, default: str) -> str:
        """A text."""
        value = self.get(key)
        if value is None:
            return default
        if not isinstance(value, str):
            raise wg.ModelFileError(f"{self.source}: {key} is a text, not {value!r:.60}")
        return value

    def flag(self, key: str, default: bool) -> bool:
        """A truth value."""
        value = self.get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise wg.ModelFileError(f"{self.source}: {key} is true or false, not {value!r:.60}")
        return value

    def refuse(self, key: str, *allowed: Any) -> None:
        """Raise if a key asks for what webgrad does not do; it may be missing."""
        if key in self and self.get(key) not in allowed:
            raise wg.ModelFileError(f"{self.source}: {key}={self.get(key)!r:.60} is not offered by webgrad")
