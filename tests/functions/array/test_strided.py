"""Windows and strides: NumPy's elements, gradients, and what writes to such views do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webgrad as wg

Shape = tuple[int, ...]
BOTH = pytest.mark.parametrize("device", ["cpu", pytest.param("webgpu", marks=pytest.mark.gpu)])


@BOTH
@pytest.mark.parametrize(("size", "step", "axis"), [(2, 1, 0), (3, 2, 1), (2, 3, -1), (1, 1, 0), (0, 2, 1)])
def test_windows_are_numpys(device: str, size: int, step: int, axis: int) -> None:
    x = np.arange(20, dtype=np.float32).reshape(4, 5)
    wanted = np.lib.stride_tricks.sliding_window_view(x, size, axis) if size else np.zeros((4, 6, 0))
    steps = [slice(None), slice(None)]
    steps[axis] = slice(None, None, step)
    found = wg.sliding_windows(wg.asarray(x, device=device), size, step, axis)
    np.testing.assert_array_equal(found.numpy(), wanted[tuple(steps)])


@BOTH
def test_an_element_has_the_gradients_of_all_windows_that_have_it(device: str) -> None:
    x: Any = wg.ones(5, device=device).requires_grad_()
    wg.sliding_windows(x, 3, 1).sum().backward()
    assert x.grad.tolist() == [1, 2, 3, 2, 1]
    z: Any = wg.ones(4, wg.complex64, device=device).requires_grad_()
    (wg.sliding_windows(z, 2, 2) * 1j).real.sum().backward()
    assert z.grad.tolist() == [-1j] * 4


@BOTH
def test_a_write_to_windows_that_do_not_overlap_is_seen(device: str) -> None:
    x = wg.zeros(7, device=device)
    windows = wg.sliding_windows(x, 2, 3)
    windows[...] = wg.asarray([[1.0, 2.0], [3.0, 4.0]], device=device)
    assert x.tolist() == [1, 2, 0, 3, 4, 0, 0]
    x[0] = 9.0
    assert windows.tolist() == [[9, 2], [3, 4]]
    matrix = wg.zeros((3, 5), device=device)
    wg.sliding_windows(matrix.T, 2, 2, 0)[1, :, 0] = 5.0
    assert matrix[:, 2].tolist() == [5, 5, 5]
    assert matrix.sum().item() == 15


def test_a_write_to_windows_that_overlap_is_refused() -> None:
    x = wg.zeros(4)
    with pytest.raises(wg.ShapeError, match=r"repeats the elements of \(4,\) to \(3, 2\)"):
        wg.sliding_windows(x, 2)[...] = 1.0
    assert x.tolist() == [0, 0, 0, 0]


@BOTH
@pytest.mark.parametrize(
    ("shape", "strides", "offset"),
    [
        ((2, 3), (3, 1), 0),
        ((3, 2), (1, 3), 1),
        ((2, 2, 2), (1, 1, 1), 3),
        ((3,), (0,), 2),
        ((), (), 5),
        ((0,), (9,), 0),
    ],
)
def test_strides_are_numpys(
    device: str, shape: tuple[int, ...], strides: tuple[int, ...], offset: int
) -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    flat = x.reshape(-1)[offset:]
    wanted = np.lib.stride_tricks.as_strided(flat, shape, [4 * each for each in strides])
    given: Any = wg.asarray(x, device=device).requires_grad_()
    found = wg.as_strided(given, shape, strides, offset)
    np.testing.assert_array_equal(found.numpy(), wanted)
    if found.numel():
        found.sum().backward()
        counts = np.zeros(12, np.float32)
        places = np.lib.stride_tricks.as_strided(
            np.arange(12)[offset:], shape, [8 * each for each in strides]
        )
        np.add.at(counts, places.reshape(-1), 1)
        np.testing.assert_array_equal(given.grad.numpy().reshape(-1), counts)


@BOTH
def test_a_write_by_strides_is_seen_by_the_base_and_its_views(device: str) -> None:
    x = wg.zeros((2, 3), device=device)
    row = x[1]
    wg.as_strided(x, (2,), (2,), 1)[...] = wg.asarray([7.0, 8.0], device=device)
    assert (x.tolist(), row.tolist()) == ([[0, 7, 0], [8, 0, 0]], [8, 0, 0])
    assert wg.memory_layout(wg.as_strided(row, (2,), (2,), 0))[1:] == (3, (2,))
    with pytest.raises(wg.ShapeError, match="one element would get several values"):
        wg.as_strided(x, (2, 2), (1, 1))[...] = 1.0


@pytest.mark.parametrize(
    ("shape", "strides", "offset", "says"),
    [
        ((2,), (3,), 4, "has none at 7"),
        ((2, 2), (1,), 0, "give each a stride"),
        ((2,), (-1,), 3, "0 or more"),
    ],
)
def test_mistakes_are_named(shape: Shape, strides: Shape, offset: int, says: str) -> None:
    with pytest.raises(wg.WebgradError, match=says):
        wg.as_strided(wg.zeros(6), shape, strides, offset)
    with pytest.raises(wg.ShapeError, match="not in order in memory"):
        wg.as_strided(wg.zeros((2, 3)).T, (2,), (1,))
    with pytest.raises(wg.ShapeError, match="which has fewer"):
        wg.sliding_windows(wg.zeros(3), 4)
    with pytest.raises(wg.ArgumentError, match="step 0"):
        wg.sliding_windows(wg.zeros(3), 1, 0)
