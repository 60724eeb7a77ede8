"""Exponentials of vectors: how exact they are, and what becomes of numbers out of range."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from webgrad.native.compiler import compiled
from webgrad.native.templates.exponentials import exponentials, lowest
from webgrad.native.text import Function


def module(kind: str, lanes: int) -> str:
    f = Function("run", [("ptr", "fields")], "i64")
    place, type = f.field("ptr", 0), f"<{lanes} x {kind}>"
    with f.loop(0, f.field("i64", 1), lanes) as at:
        f.store(type, exponentials(f, f.load(type, place, at, kind), kind, lanes), place, at, kind)
    return f.module()


@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
@pytest.mark.parametrize(
    ("dtype", "kind", "least"), [(np.float32, "float", -87.3), (np.float64, "double", -708.3)]
)
def test_they_are_right_to_two_units_in_the_last_place(
    dtype: Any, kind: str, least: float, lanes: int
) -> None:
    x = np.concatenate([np.linspace(least, 0, 1 << 16), [-0.0, 1.2 * least, -1e30, -np.inf, np.nan]])
    x = np.concatenate([x, np.zeros(-len(x) % 16)]).astype(dtype)
    got = x.copy()
    compiled(module, kind, lanes)[0](np.array([got.ctypes.data, len(got)]).ctypes.data)
    with np.errstate(all="ignore"):
        want = np.exp(x.astype(np.longdouble))
    normal = want > np.finfo(dtype).tiny
    assert (np.abs(got[normal] / want[normal] - 1) < 2 * np.finfo(dtype).eps).all()
    assert (got[want < np.finfo(dtype).tiny] == 0).all()
    np.testing.assert_array_equal(np.isnan(got), np.isnan(x))
    assert got[x == 0].min() == 1


def test_the_lowest_numbers() -> None:
    for dtype, kind in ((np.float32, "float"), (np.float64, "double")):
        bits = np.array(int(lowest(kind), 16), np.uint64).view(np.float64)
        assert bits == np.finfo(dtype).min
