"""Which of many cases of one kind `make test` runs; `make test-long` runs all of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

__all__ = ["every", "first"]


def first(count: int, values: Iterable[Any]) -> list[Any]:
    """The values as parameters of a test: so many as they are, and those after them marked long."""
    return [each if at < count else _long(each) for at, each in enumerate(values)]


def every(step: int, values: Iterable[Any]) -> list[Any]:
    """The values as parameters of a test: the first and every so many after it as they are, others long."""
    return [_long(each) if at % step else each for at, each in enumerate(values)]


def _long(value: Any) -> Any:
    return pytest.param(value, marks=pytest.mark.long)
