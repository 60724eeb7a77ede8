"""Settings of a file, checked as they are asked for.

In: a file of JSON, or a dict that a file told. Out: numbers, texts and truth values in their bounds. What is
missing or impossible is a `ModelFileError` that names the file and the key.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from reprlib import repr as shown  # short, and not deep: a file may nest values as it likes
from typing import Any, cast

import webgrad as wg

__all__ = ["Reader", "read_json", "read_text", "shown"]

_MOST_BYTES = 1 << 24  # of a file of settings
_LARGEST = 1 << 24  # of any dimension: beyond that a file is damaged
_SMALLEST_NUMBER, _LARGEST_NUMBER = 1e-30, 1e30  # what float32 can be multiplied and divided by


class Reader:
    """A dict of settings, whose values are checked as they are asked for."""

    def __init__(self, values: Mapping[str, Any], source: str, prefix: str = "") -> None:
        self._values, self._prefix = values, prefix
        self.source = source

    def __contains__(self, key: str) -> bool:
        return self._values.get(key) is not None

    def get(self, key: str) -> Any:
        """The value as it is, or None."""
        return self._values.get(key)

    def with_defaults(self, values: Mapping[str, Any]) -> Reader:
        """The same settings, with these where a key is not there at all."""
        return Reader({**values, **self._values}, self.source)

    def under(self, prefix: str) -> Reader:
        """The settings whose keys begin so, by the rest of their keys; errors name the whole."""
        inner = {k.removeprefix(prefix): v for k, v in self._values.items() if k.startswith(prefix)}
        return Reader(inner, self.source, self._prefix + prefix)

    def whole(self, *keys: str, default: int | None = None, least: int = 1, most: int = _LARGEST) -> int:
        """The first of these keys that is there, an integer in bounds."""
        key = self._first(keys, default)
        if key is None:
            return cast(int, default)
        value = self.get(key)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self.error(key, f" must be an integer from {least} to {most:,}, not {shown(value)}")
        return value

    def number(self, *keys: str, default: float | None = None) -> float:
        """The first of these keys that is there, a positive number."""
        key = self._first(keys, default)
        if key is None:
            return cast(float, default)
        value = self.get(key)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not _SMALLEST_NUMBER <= value <= _LARGEST_NUMBER:
            raise self.error(key, f" is a positive number, not {shown(value)}")
        return float(value)

    def error(self, key: str, told: str) -> wg.ModelFileError:
        """What is wrong with a key, for the caller to raise."""
        return wg.ModelFileError(f"{self.source}: {self._prefix}{key}{told}")

    def _first(self, keys: Sequence[str], default: float | None) -> str | None:
        key = next((each for each in keys if each in self), None)
        if key is None and default is None:
            raise self.error(keys[0], " is missing")
        return key

    def cap(self, key: str) -> float:
        """What values are bounded to: a positive number, or 0 where there is no bound."""
        value = self.get(key)
        return 0.0 if value is None or (value == 0 and not isinstance(value, bool)) else self.number(key)

    def text(self, key: str, default: str) -> str:
        """A text."""
        return cast(str, self._of_kind(key, default, str, "a text"))

    def flag(self, key: str, default: bool) -> bool:
        """A truth value."""
        return cast(bool, self._of_kind(key, default, bool, "true or false"))

    def one_of(self, key: str, default: str, known: Mapping[str, str]) -> str:
        """What a table has for a text."""
        name = self.text(key, default)
        if name not in known:
            raise self.error(key, f"={shown(name)} is not offered; webgrad has {', '.join(known)}")
        return known[name]

    def _of_kind(self, key: str, default: Any, kind: type, told: str) -> Any:
        value = self.get(key)
        if value is None:
            return default
        if not isinstance(value, kind):
            raise self.error(key, f" is {told}, not {shown(value)}")
        return value

    def refuse(self, key: str, *allowed: Any) -> None:
        """Raise if a key asks for what webgrad does not do; it may be missing."""
        value = self.get(key)
        if value is not None and not any(type(value) is type(each) and value == each for each in allowed):
            raise self.error(key, f"={shown(value)} is not offered by webgrad")


def read_json(path: Path, default: Any = None, kind: type = dict) -> Any:
    """A file's values; without the file the default, if there is one."""
    if not path.is_file():
        if default is not None:
            return default
        raise wg.ModelFileError(f"{path} is missing, which says what the model is")
    try:
        value = json.loads(read_text(path, _MOST_BYTES))
    except (ValueError, RecursionError) as error:
        raise wg.ModelFileError(f"{path} cannot be read: {error}") from None
    if not isinstance(value, kind):
        raise wg.ModelFileError(f"{path} must hold a {kind.__name__}, not a {type(value).__name__}")
    return value


def read_text(path: Path, most: int) -> str:
    """A file's text, which has so many bytes at the most."""
    try:
        size = path.stat().st_size
        if size > most:
            raise wg.ModelFileError(f"{path} is too large: it has {size:,} bytes, and {most:,} are read")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise wg.ModelFileError(f"{path} cannot be read: {error}") from None
