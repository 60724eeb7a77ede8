"""Optionals: a value, or None."""

from __future__ import annotations

from typing import Any

import webgrad as wg

from ...arrays import np
from .table import operator

__all__: list[str] = []


@operator("Optional", known="value", folds=False)
def optional(value: Any = None, *, type: Any = None) -> Any:
    return value


@operator("OptionalHasElement", known="value", folds=False)
def optional_has_element(value: Any = None) -> Any:
    return np.asarray(value is not None)


@operator("OptionalGetElement", known="value", folds=False)
def optional_get_element(value: Any) -> Any:
    if value is None:
        raise wg.ArgumentError("the optional is empty")
    return value
