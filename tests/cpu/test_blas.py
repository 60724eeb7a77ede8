"""How many threads BLAS uses: one inside, as before outside, whatever happens in between."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from webgrad.cpu import blas


def threads() -> int:
    functions = blas._functions()
    if functions is None:
        pytest.skip("NumPy's BLAS is not an OpenBLAS of its own")
    return functions[0]()


def test_one_thread_inside() -> None:
    before = threads()
    with blas.single_threaded():
        assert threads() == 1
        with blas.single_threaded():
            assert threads() == 1
        assert threads() == 1
    assert threads() == before


def test_an_error_leaves_it_as_it_was() -> None:
    before = threads()
    with pytest.raises(KeyError), blas.single_threaded():
        raise KeyError
    assert threads() == before


def test_the_last_of_several_threads_sets_it_back() -> None:
    before = threads()
    inside, leave = threading.Event(), threading.Event()

    def work() -> None:
        with blas.single_threaded():
            inside.set()
            leave.wait()

    other = threading.Thread(target=work)
    with blas.single_threaded():
        other.start()
        inside.wait()
    assert threads() == 1
    leave.set()
    other.join()
    assert threads() == before


def test_without_a_library_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blas, "_functions", lambda: None)
    with blas.single_threaded():
        pass


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_product_is_added(dtype: Any) -> None:
    multiply = blas.gemm(np.dtype(dtype))
    if multiply is None:
        pytest.skip("NumPy's BLAS is not an OpenBLAS of its own")
    a, b = np.arange(12, dtype=dtype).reshape(3, 4), np.arange(20, dtype=dtype).reshape(4, 5)
    c = np.full((3, 6), np.nan, dtype)
    for keep in (0.0, 1.0):
        multiply((3, 5, 4), (a.ctypes.data, 4), (b.ctypes.data, 5), (c.ctypes.data, 6), keep)
    np.testing.assert_array_equal(c[:, :5], 2 * (a @ b))
    assert np.isnan(c[:, 5]).all()


def test_no_product_of_other_types() -> None:
    assert blas.gemm(np.dtype(np.float16)) is None
    assert blas.gemm(np.dtype(np.int32)) is None
