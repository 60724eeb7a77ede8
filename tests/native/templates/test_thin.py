"""Products of few rows, or few columns, with a wide matrix that is read where it lies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.native.products import BFLOAT16, PROCESSORS, assert_close, multiply, random, random_as
from webgrad.native.templates.thin import MOST_FEW, is_thin

LAYOUTS = ["rows", "transposed"]


def product(few: int, wide: int, k: int, layout: str, swapped: bool, dtypes: Any, **options: Any) -> None:
    """The few rows (columns) are strided, the wide matrix lies as the layout says."""
    if swapped:
        a, b = random_as((2, wide, k), layout, dtypes[1]), random_as((2, k, few), "strided", dtypes[0])
    else:
        a, b = random_as((2, few, k), "strided", dtypes[0]), random_as((2, k, wide), layout, dtypes[1])
    found = multiply(a, b, form="swapped" if swapped else "thin", **options)
    assert_close(found, a, b)


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("swapped", [False, True])
def test_sizes(processor: str, dtype: Any, layout: str, swapped: bool) -> None:
    for few in range(1, MOST_FEW + 1):
        for wide, k in ((1, 1), (3, 16), (16, 3), (37, 100), (300, 41)):
            product(few, wide, k, layout, swapped, (dtype, dtype), processor=processor)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("wide", [np.float16, BFLOAT16])
@pytest.mark.parametrize("few", [np.float32, BFLOAT16])
def test_half_operands(layout: str, wide: Any, few: Any) -> None:
    for count in (1, 2, 5):
        product(count, 83, 77, layout, False, (few, wide))


def test_a_shared_wide_matrix() -> None:
    a, b = random((5, 2, 64)), random_as((5, 64, 90), "shared")
    assert_close(multiply(a, b, form="thin"), a, b)


@pytest.mark.parametrize(("batch", "m", "n", "k"), [(0, 2, 2, 2), (2, 0, 3, 4), (2, 3, 0, 4), (2, 3, 5, 0)])
@pytest.mark.parametrize("form", ["thin", "swapped"])
def test_nothing(batch: int, m: int, n: int, k: int, form: str) -> None:
    found = multiply(random((batch, m, k)), random((batch, k, n)), form=form)
    np.testing.assert_array_equal(found, np.zeros((batch, m, n), np.float32))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_special_numbers(layout: str) -> None:
    a, b = np.ones((1, 3, 35), np.float32), abs(random_as((1, 35, 70), layout)) + 1
    a[0, 1, 34], b[0, 34, 69], b[0, 0, 0] = 0, np.inf, np.nan
    with np.errstate(invalid="ignore"):
        want = a.astype(np.float64) @ b.astype(np.float64)
    found = multiply(a, b, form="thin")
    assert np.isnan(want[0, 1, 69])
    np.testing.assert_array_equal(np.isnan(found), np.isnan(want))
    np.testing.assert_array_equal(np.isinf(found), np.isinf(want))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_results_do_not_depend_on_threads(layout: str) -> None:
    a, b = random((1, 3, 1111)), random_as((1, 1111, 1300), layout)
    want = multiply(a, b, form="thin")
    np.testing.assert_array_equal(multiply(a, b, form="thin", parts=50), want)
    for _ in range(20):
        np.testing.assert_array_equal(multiply(a, b, form="thin", threads=2), want)


def test_where_it_pays() -> None:
    assert is_thin(1, (1, 4096))
    assert is_thin(MOST_FEW, (4096, 1))
    assert not is_thin(MOST_FEW + 1, (4096, 1))
    assert not is_thin(1, (2, 4096))
