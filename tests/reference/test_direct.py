"""Functions of frequent nodes with nothing around them: the values that the table's rows give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from webgrad import dtypes
from webgrad.graph.node import Node, leaf, make
from webgrad.ops.table import ROWS, TABLE
from webgrad.reference.direct import DIRECT
from webgrad.reference.functions import functions_for, value_of
from webgrad.runtime.device import open_device

CPU = open_device("cpu")
RNG = np.random.default_rng(3)


def drawn(*shape: int, dtype: Any = dtypes.float32) -> Node:
    array = (RNG.integers(-4, 4, shape) if dtype.kind in "iu" else RNG.standard_normal(shape)).astype(
        dtype.numpy
    )
    return leaf(np.asarray(array), shape, dtype, CPU)


def index(*values: int, dtype: Any = dtypes.int32) -> Node:
    return leaf(np.array(values, dtype.numpy), (len(values),), dtype, CPU)


def attended(heads: int, kept: int, queries: int, keys: int, length: int = 9) -> tuple[Node, ...]:
    """Queries, keys, values, a scale, and how many keys there are."""
    arrays = [drawn(2, count, rows, 4) for count, rows in ((heads, queries), (kept, keys), (kept, keys))]
    return (
        *arrays,
        leaf(np.array(0.5, np.float32), (), dtypes.float32, CPU),
        leaf(np.array(length, np.int32), (), dtypes.int32, CPU),
    )


NUMBER = leaf(np.array(2.5, np.float32), (), dtypes.float32, CPU)
CASES: dict[str, list[tuple[tuple[Node, ...], tuple[Any, ...]]]] = {
    "reshape": [((drawn(2, 6),), ((3, 4),)), ((drawn(1),), ((),))],
    "permute": [((drawn(2, 3, 4),), ((2, 0, 1),))],
    "slice": [((drawn(5, 6),), (((1, 4, 2), (0, 6, 1)),))],
    "flip": [((drawn(2, 3, 4),), ((0, 2),))],
    "expand": [
        ((drawn(3, 1),), ((2, 3, 4),)),
        ((NUMBER,), ((2, 2),)),
        ((drawn(0, 1),), ((0, 3),)),
        ((make(TABLE["permute"], (drawn(1, 3),), ((1, 0),)),), ((3, 2),)),
    ],
    "pad": [((drawn(2, 3), NUMBER), (((1, 2), (0, 3)),)), ((drawn(0, 3), NUMBER), (((1, 2), (0, 0)),))],
    "take": [
        ((drawn(4, 3), index(3, -2, 9)), (0,)),
        ((drawn(4, 3), index(2, 0, dtype=dtypes.uint32)), (1,)),
        ((drawn(4, 3), leaf(np.array(1, np.int32), (), dtypes.int32, CPU)), (1,)),
    ],
    "iota": [((), ())],
    "concat": [((drawn(2, 3), drawn(2, 1)), (1,))],
    "cast": [((drawn(7),), (dtypes.int32,)), ((drawn(7, dtype=dtypes.int32),), (dtypes.bool,))],
    "sum": [
        ((drawn(3, 4),), ((0,),)),
        ((drawn(3, 4),), ((0, 1),)),
        ((drawn(3, 4, dtype=dtypes.int8),), ((1,),)),
        ((drawn(0, 4),), ((0,),)),
    ],
    "max": [((drawn(3, 4),), ((1,),)), ((drawn(3, dtype=dtypes.int32),), ((0,),)), ((drawn(0, 2),), ((0,),))],
    "min": [((drawn(3, 4),), ((0,),)), ((drawn(3, dtype=dtypes.uint8),), ((0,),))],
    "attention": [
        (attended(2, 2, 5, 5), (False, 0, False, 0)),
        (attended(2, 2, 5, 5), (True, 0, False, 0)),
        (attended(4, 2, 3, 7), (True, 2, True, 0)),
        (attended(2, 1, 3, 7, length=4), (False, 0, False, 0)),
        (attended(2, 1, 3, 7, length=0), (True, 0, True, 0)),
        ((*attended(2, 2, 3, 4), drawn(1, 1, 3, 4)), (True, 0, False, 0)),
    ],
    "matmul": [((drawn(2, 3, 4), drawn(4, 5)), ()), ((drawn(1, 2), drawn(2, 1)), ())],
    "where": [((leaf(np.array([True, False]), (2,), dtypes.bool, CPU), drawn(2), NUMBER), ())],
}


def test_every_function_has_cases() -> None:
    assert CASES.keys() == DIRECT.keys()


@pytest.mark.parametrize("name", sorted(set(CASES) - {"iota"}))
def test_they_do_what_the_rows_do(name: str) -> None:
    for inputs, attributes in CASES[name]:
        sig = make(TABLE[name], inputs, attributes).sig
        arrays = [
            value_of(each.sig, [one.storage for one in each.inputs]) if each.inputs else each.storage
            for each in inputs
        ]
        before = [each.copy() for each in arrays]
        with np.errstate(all="ignore"):
            found = functions_for([sig])[sig](*arrays)
        wanted = value_of(sig, arrays)
        assert found.shape == wanted.shape == sig.shape
        assert found.dtype == sig.dtype.numpy
        np.testing.assert_allclose(found, wanted, rtol=1e-6)
        for each, old in zip(arrays, before, strict=True):
            np.testing.assert_array_equal(each, old)


@pytest.mark.parametrize("row", [each for each in ROWS if each.kind == "map"], ids=lambda row: row.name)
def test_maps_keep_their_dtype(row: Any) -> None:
    """NumPy's functions are called as they are where there is one: what they give is what the row says."""
    for dtype in (dtypes.float32, dtypes.float64, dtypes.int8, dtypes.uint32, dtypes.int64, dtypes.bool):
        if dtype.kind not in row.types or row.name in ("where", "random_bits"):
            continue
        for shape in ((3,), ()):
            inputs = tuple([leaf(np.ones(shape, dtype.numpy), shape, dtype, CPU) for _ in range(row.arity)])
            sig = make(row, inputs).sig
            with np.errstate(all="ignore"):
                found = functions_for([sig])[sig](*[each.storage for each in inputs])
            assert found.dtype == sig.dtype.numpy, (row.name, dtype.name)
            assert found.shape == shape
