"""Graphs that once went wrong: rings of kernels, chains of indices, packed rows, empty and huge things."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad.evaluate.evaluate import plans

Array = np.ndarray[Any, Any]


@pytest.fixture(params=["cpu", pytest.param("webgpu", marks=pytest.mark.gpu)], autouse=True)
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    wg.set_default_device(request.param)
    yield request.param
    wg.set_default_device(None)


def numbers(*shape: int) -> Array:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


def test_kernels_that_read_each_other_crosswise_are_not_merged_into_a_ring() -> None:
    a, b, c = (numbers(6, 6) + each for each in range(3))
    t, v, z = wg.asarray(a) * 2, wg.asarray(b) * 3, wg.asarray(c) * 4
    g, h, k = t + v.T, v + z.T, z + t.T
    wg.eval(k, h, g, z, v, t)
    np.testing.assert_allclose(g.numpy(), a * 2 + (b * 3).T, rtol=1e-6)
    np.testing.assert_allclose(h.numpy(), b * 3 + (c * 4).T, rtol=1e-6)
    np.testing.assert_allclose(k.numpy(), c * 4 + (a * 2).T, rtol=1e-6)


@pytest.mark.parametrize("shape", [(8, 16), (5, 12), (6, 7)])
def test_rows_of_packed_results_turned(shape: tuple[int, int]) -> None:
    x = numbers(*shape)
    above = wg.asarray(x) > wg.asarray(x).mean(axis=-1, keepdims=True)
    np.testing.assert_array_equal(above.T.numpy(), (x > x.mean(-1, keepdims=True)).T)
    across = (wg.asarray(x) - wg.asarray(x).mean(axis=0, keepdims=True)).T
    np.testing.assert_array_equal((across > 0).numpy(), (x - x.mean(0)).T > 0)
    halves = wg.softmax(wg.asarray(x.astype(np.float16)), axis=-1).T.numpy()
    wide = np.exp(x.astype(np.float16).astype(np.float32))
    np.testing.assert_allclose(halves, (wide / wide.sum(-1, keepdims=True)).T, rtol=2e-3, atol=1e-6)


def test_small_casts_from_wide_types_together() -> None:
    first, second = (wg.asarray(np.array(each)).astype(wg.int8) for each in ([1, -2, 300], [5, 6]))
    wg.eval(first, second)
    assert (first.tolist(), second.tolist()) == ([1, -2, 44], [5, 6])


def test_a_tensor_that_grows_by_concat() -> None:
    one = wg.ones(1)
    x = one
    for _ in range(150):
        x = wg.concat([x, one])
    assert x.numpy().tolist() == [1.0] * 151


def test_a_tensor_that_grows_by_padding() -> None:
    x = wg.ones(1)
    for _ in range(150):
        x = wg.pad(x, ((1, 1),))
    assert x.numpy().nonzero()[0].tolist() == [150]


def test_turning_and_reshaping_in_turns() -> None:
    array = numbers(6, 10)
    x, expected = wg.asarray(array), array
    for _ in range(40):
        x, expected = x.T.reshape(6, 10), expected.T.reshape(6, 10)
    np.testing.assert_array_equal(x.numpy(), expected)


def test_a_concat_of_many() -> None:
    parts = [np.full((3, 2), each, np.float32) for each in range(40)]
    for axis in (0, 1):
        result = wg.concat([wg.asarray(each) for each in parts], axis=axis)
        np.testing.assert_array_equal(result.numpy(), np.concatenate(parts, axis))


def test_nothing_divided_by_nothing() -> None:
    assert np.isnan((wg.sum(wg.zeros(0)) / 0.0).item())
    assert wg.sum(wg.zeros((0, 3)), axis=0).tolist() == [0, 0, 0]
    assert (wg.zeros((5, 0)) @ wg.zeros((0, 4))).numpy().shape == (5, 4)


def test_an_infinite_value_less_itself() -> None:
    x = wg.asarray([1.0, np.inf, np.nan])
    np.testing.assert_array_equal((x - x).numpy(), [0, np.nan, np.nan])


def test_indices_beyond_32_bits_are_clamped_not_wrapped() -> None:
    x = wg.arange(5)
    assert x[wg.asarray(np.array([4_000_000_000, 2], np.uint32))].tolist() == [4, 2]
    assert x[wg.asarray(np.array([2**32 + 1, -1]))].tolist() == [4, 4]


def test_constants_of_halves_have_their_dtype() -> None:
    x = wg.ones(3, dtype=wg.float16)
    assert x.numpy().dtype == np.float16
    assert wg.bitcast(x, wg.int16).tolist() == [0x3C00] * 3


def test_only_the_corners_of_what_is_huge_are_shown() -> None:
    assert "..." in str(wg.zeros((100_000, 100_000)))


def test_a_loop_that_never_reads_finds_its_plan() -> None:
    p = wg.ones(64)
    for _ in range(1400):
        p = p + (p * 0.3) * 0.5
    before = plans()
    for _ in range(2800):
        p = p + (p * 0.3) * 0.5
    assert plans() - before <= 3


def test_what_is_too_large_is_refused_with_the_line(device: str) -> None:
    huge = wg.broadcast_to(wg.ones((16, 1)), (16, 1 << 40 if device == "cpu" else 1 << 27)) * 1
    small = wg.ones(2) + 1
    with pytest.raises(wg.WebgradError, match=r"while computing (multiply|expand) .*test_tangles\.py"):
        wg.eval(small, huge)
    assert small.tolist() == [2, 2]
