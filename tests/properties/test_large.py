"""Tensors beyond the limits of one binding (128 MiB) and of a row of workgroups (65,535), and long odd folds.

The values are cheap to make and to check on the host; each test holds at most about a gigabyte. What is
known from one kernel of a kind at the real limits is tested for the others at lower ones; `make test-long`
has more at the real ones.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tests.properties.helpers import Array, place
from tests.properties.limited import BINDING, GROUPS, limited
from tests.selection import first
from webgrad import dtypes
from webgrad.evaluate.evaluate import evaluate, read
from webgrad.graph.node import Node
from webgrad.ops import primitives as p
from webgrad.ops.table import TABLE
from webgrad.runtime.webgpu import Device

pytestmark = [pytest.mark.gpu, pytest.mark.property]
FEW_BYTES = 8 * 2**20
FEW_GROUPS = 4_095


@pytest.fixture(params=["software", "discrete"])
def device(request: pytest.FixtureRequest) -> Iterator[Device]:
    """With the limits that every device has."""
    with limited(request.param) as own:
        yield own


@pytest.fixture(params=["software", "discrete"])
def narrow(request: pytest.FixtureRequest) -> Iterator[Device]:
    """With lower limits, which smaller and quicker tensors are beyond."""
    with limited(request.param, FEW_BYTES, FEW_GROUPS) as own:
        yield own


def op(name: str, *operands: Node | float) -> Node:
    return p.elementwise(TABLE[name], *operands)


def fold(name: str, x: Node, *axes: int) -> Node:
    return p.reduce(TABLE[name], x, axes)


def ramp(count: int, dtype: dtypes.DType, period: int = 251) -> Array:
    """0, 1, 2 … again and again: a period that no power of two divides."""
    return np.resize(np.arange(period).astype(dtype.numpy), count)


def test_a_map_of_more_workgroups_than_a_row_of_the_grid_holds(narrow: Device) -> None:
    x = ramp(1024 * FEW_GROUPS + 4099, dtypes.uint8)
    np.testing.assert_array_equal(read(op("bitwise_xor", place(x, narrow), 85)), x ^ 85)


def test_a_fold_of_more_rows_than_a_row_of_the_grid_holds(device: Device) -> None:
    x = ramp((GROUPS + 66) * 1028, dtypes.uint8).reshape(-1, 1028)
    x[::3, 77] = 253
    np.testing.assert_array_equal(read(fold("max", place(x, device), 1)), x.max(1))


def test_a_product_of_more_batches_than_a_row_of_the_grid_holds(narrow: Device) -> None:
    product_of_batches(FEW_GROUPS + 3, narrow)


@pytest.mark.long
def test_a_product_of_more_batches_than_a_row_of_any_grid_holds(device: Device) -> None:
    product_of_batches(GROUPS + 3, device)


def product_of_batches(count: int, device: Device) -> None:
    a = ramp(count * 2, dtypes.float32, 7).reshape(-1, 1, 2)
    b = ramp(count * 6, dtypes.float32, 11).reshape(-1, 2, 3)
    np.testing.assert_array_equal(read(p.contract(place(a, device), place(b, device))), a @ b)


def test_a_map_over_the_binding_limit(narrow: Device) -> None:
    large_map(FEW_BYTES // 4 + 10_007, narrow)


@pytest.mark.long
def test_a_map_over_the_binding_limit_of_every_device(device: Device) -> None:
    large_map(BINDING // 4 + 10_007, device)


def large_map(count: int, device: Device) -> None:
    x = ramp(count, dtypes.float32)
    node = op("add", op("multiply", place(x, device), 2.0), 1.0)
    np.testing.assert_array_equal(read(node), x * 2 + 1)


def test_a_map_of_halves_over_the_binding_limit(narrow: Device) -> None:
    x = ramp(FEW_BYTES // 2 + 4_093, dtypes.float16)
    np.testing.assert_array_equal(read(op("less", place(x, narrow), 100.0)), x < 100)


def test_a_transposed_map_over_the_binding_limit(narrow: Device) -> None:
    x = ramp(FEW_BYTES // 4 + 128 * 1031, dtypes.float32).reshape(-1, 128)
    np.testing.assert_array_equal(read(op("add", p.permute(place(x, narrow), (1, 0)), 3.0)), x.T + 3)


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
def test_sums_over_the_binding_limit(narrow: Device, axes: tuple[int, ...]) -> None:
    rows = FEW_BYTES // 2 // 1_000 + 642
    x = ramp(rows * 1_000, dtypes.float16, 7).reshape(rows, 1_000)
    wide = p.cast(place(x, narrow), dtypes.float32)
    wanted = x.sum(axes, np.float64)
    np.testing.assert_allclose(read(fold("sum", wide, *axes)), wanted, rtol=1e-6)


def test_rows_taken_from_a_table_over_the_binding_limit(device: Device) -> None:
    rows = BINDING // 96 + 4_001
    table = ramp(rows * 96, dtypes.uint8).reshape(rows, 96)
    index = np.array([0, 1, rows - 1, rows // 2, rows + 5, BINDING // 96, BINDING // 96 + 1], np.int32)
    wanted = table[np.clip(index, 0, rows - 1)]
    np.testing.assert_array_equal(read(p.take(place(table, device), place(index, device), 0)), wanted)


def test_taking_more_than_the_binding_limit(narrow: Device) -> None:
    table = ramp(40 * 1_024, dtypes.float32, 40 * 1_024).reshape(40, 1_024)
    index = np.resize(np.arange(40), FEW_BYTES // 4_096 + 65).astype(np.int32)
    np.testing.assert_array_equal(read(p.take(place(table, narrow), place(index, narrow), 0)), table[index])


def test_a_product_with_a_matrix_over_the_binding_limit(narrow: Device) -> None:
    columns = FEW_BYTES // 2 // 512 + 300
    a = ramp(3 * 512, dtypes.float16, 5).reshape(3, 512)
    b = ramp(512 * columns, dtypes.float16, 3).reshape(512, columns)
    node = p.contract(p.cast(place(a, narrow), dtypes.float32), p.cast(place(b, narrow), dtypes.float32))
    np.testing.assert_allclose(read(node), a.astype(np.float32) @ b.astype(np.float32), rtol=1e-6)


def test_a_product_that_is_over_the_binding_limit(narrow: Device) -> None:
    a = ramp(1_451 * 4, dtypes.float32, 9).reshape(1_451, 4)
    b = ramp(4 * 1_451, dtypes.float32, 13).reshape(4, 1_451)
    assert a.shape[0] * b.shape[1] * 4 > FEW_BYTES
    np.testing.assert_array_equal(read(p.contract(place(a, narrow), place(b, narrow))), a @ b)


@pytest.mark.parametrize("count", first(2, [2**24 + 3, 65_537, 10_000_019]))
def test_long_odd_sums_keep_their_digits(device: Device, count: int) -> None:
    ones = place(np.ones(count, np.float32), device)
    waves = np.sin(np.arange(count)).astype(np.float32)
    total, waved = fold("sum", ones, 0), fold("sum", place(waves, device), 0)
    evaluate([total, waved])
    assert read(total) == np.float32(count)  # one accumulator would stop at 2^24
    exact = waves.sum(dtype=np.float64)
    assert abs(float(read(waved)) - exact) < 1e-6 * np.abs(waves).sum(dtype=np.float64)


def test_a_long_odd_product_and_maximum_of_integers(device: Device) -> None:
    x = ramp(3_000_017, dtypes.int32, 1_001) * 2 + 1
    node = place(x, device)
    product, largest = fold("prod", node, 0), fold("max", node, 0)
    evaluate([product, largest])
    assert read(product) == np.prod(x, dtype=np.int32)
    assert read(largest) == 2_001


def test_a_huge_broadcast_is_not_stored(device: Device) -> None:
    """256 MiB of float32, of which nothing but the operands and the sums is in memory."""
    rows, columns = ramp(2_048, dtypes.float32), ramp(32_771, dtypes.float32, 13)
    column = p.reshape(place(rows, device), (2_048, 1))
    node = fold("sum", op("add", column, place(columns, device)), 1)
    wanted = rows.astype(np.float64) * 32_771 + columns.sum(dtype=np.float64)
    np.testing.assert_allclose(read(node), wanted, rtol=1e-6)
    assert device.stats()["bytes_peak"] < 2**24


def test_a_broadcast_of_more_than_32_bits_of_elements(device: Device) -> None:
    """Only a corner is looked at; its places in the whole need more than 32 bits."""
    size = 70_000
    column = p.reshape(p.iota(size, dtypes.int32, device), (size, 1))
    whole = p.expand(column, (size, size))
    corner = p.slice_(whole, ((size - 2, size, 1), (size - 3, size, 1)))
    np.testing.assert_array_equal(read(op("add", corner, 1)), [[69_999] * 3, [70_000] * 3])
