"""Products as native programs: every layout of operands, what is fused before and after, convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.cpu.helpers import last_plan
from webgrad.cpu.plan import CompiledPlan
from webgrad.native.compiler import is_available

pytestmark = [
    pytest.mark.skipif(not is_available(), reason="no native code here: llvmlite is not installed, or off"),
    pytest.mark.usefixtures("compiled_at_once"),
]

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(5)


def on_cpu(array: Array) -> wg.Tensor:
    return wg.asarray(np.ascontiguousarray(array), device="cpu")


def drawn(*shape: int, dtype: Any = np.float32) -> Array:
    return RNG.standard_normal(shape).astype(dtype)


def check(found: wg.Tensor, want: Array, rtol: float = 2e-5) -> None:
    array = found.numpy()
    plan = last_plan()
    assert isinstance(plan.plan, CompiledPlan)
    assert array.shape == want.shape
    np.testing.assert_allclose(array.astype(np.float64), want, rtol=rtol, atol=rtol * (1 + abs(want).max()))


# m, n, k: thin, thin the other way, one tile, several blocks with odd tails
SIZES = [(1, 33, 70), (5, 200, 9), (150, 3, 40), (17, 16, 300), (100, 130, 64)]


@pytest.mark.parametrize(("m", "n", "k"), SIZES)
def test_layouts(m: int, n: int, k: int) -> None:
    a, b = drawn(m, k), drawn(k, n)
    want = a.astype(np.float64) @ b
    for left in (on_cpu(a), on_cpu(a.T).T):
        for right in (on_cpu(b), on_cpu(b.T).T):
            check(left @ right, want)


@pytest.mark.parametrize(("m", "n", "k"), SIZES)
def test_what_is_fused(m: int, n: int, k: int) -> None:
    a, b, bias = drawn(m, k), drawn(k, n), drawn(n)
    wide = np.maximum(a, 0).astype(np.float64) @ (2.0 * b)
    check(wg.relu(on_cpu(a)) @ (on_cpu(b) * 2), wide)
    check(wg.relu(on_cpu(a) @ on_cpu(b) + on_cpu(bias)), np.maximum(a.astype(np.float64) @ b + bias, 0))
    check((on_cpu(a.T).T * 3) @ on_cpu(b)[:, : max(n - 1, 1)], (3.0 * a) @ b[:, : max(n - 1, 1)])


@pytest.mark.parametrize("batch", [(3,), (2, 3)])
def test_batches(batch: tuple[int, ...]) -> None:
    a, b = drawn(*batch, 9, 20), drawn(*batch, 20, 11)
    first = (0,) * len(batch)
    check(on_cpu(a) @ on_cpu(b), a.astype(np.float64) @ b)
    check(on_cpu(a) @ on_cpu(b[first]), a.astype(np.float64) @ b[first])
    check(on_cpu(a[first]) @ on_cpu(b), a[first].astype(np.float64) @ b)


@pytest.mark.parametrize(
    "dtype", [np.float64, np.float16, np.int32, np.int64, np.uint8, np.int16, np.uint32, np.uint64]
)
def test_dtypes(dtype: Any) -> None:
    a, b = (RNG.integers(0, 40, shape).astype(dtype) for shape in ((20, 30), (30, 19)))
    with np.errstate(over="ignore"):
        want = (a @ b).astype(np.float64)
    check(on_cpu(a) @ on_cpu(b), want, 1e-3 if dtype is np.float16 else 1e-12)


def test_nothing_to_sum() -> None:
    check(on_cpu(drawn(3, 0)) @ on_cpu(drawn(0, 5)), np.zeros((3, 5)))


def convolved(x: Array, w: Array, stride: int, padding: int) -> Array:
    padded = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding))).astype(np.float64)
    windows = np.lib.stride_tricks.sliding_window_view(padded, w.shape[2:], (2, 3))
    return np.asarray(np.einsum("bchwij,ocij->bohw", windows[:, :, ::stride, ::stride], w))


@pytest.mark.parametrize(("stride", "padding"), [(1, 0), (1, 1), (2, 1)])
def test_convolutions_write_no_windows(stride: int, padding: int) -> None:
    x, w, bias = drawn(2, 3, 12, 14), drawn(20, 3, 3, 3), drawn(20)
    found = wg.relu(wg.conv2d(on_cpu(x), on_cpu(w), on_cpu(bias), stride=stride, padding=padding))
    check(found, np.maximum(convolved(x, w, stride, padding) + bias[:, None, None], 0))
    plan = last_plan()
    assert isinstance(plan.plan, CompiledPlan)
    assert len(plan.plan._steps) <= 2


def test_gradients_of_a_layer() -> None:
    x, w = drawn(33, 20), on_cpu(drawn(20, 17))
    w.requires_grad = True
    (on_cpu(x) @ w).sum().backward()
    assert w.grad is not None
    check(w.grad, np.repeat(x.astype(np.float64).sum(0)[:, None], 17, 1))


# channels, outputs, kernel, stride, padding, dilation, height, width: rows of windows shorter and longer than
# panels, images of one channel, more channels than one part of k holds
GEOMETRIES = [
    (1, 5, 3, 1, 1, 1, 6, 7),
    (3, 33, 7, 2, 3, 1, 21, 75),
    (40, 20, 3, 1, 1, 1, 9, 14),
    (5, 4, 3, 2, 1, 1, 13, 37),
    (6, 40, 1, 2, 0, 1, 8, 34),
    (4, 3, 3, 1, 2, 2, 7, 40),
]


@pytest.mark.parametrize(
    ("channels", "outputs", "kernel", "stride", "padding", "dilation", "height", "width"), GEOMETRIES
)
def test_convolutions_and_their_gradients(
    channels: int,
    outputs: int,
    kernel: int,
    stride: int,
    padding: int,
    dilation: int,
    height: int,
    width: int,
) -> None:
    x, w = drawn(2, channels, height, width), drawn(outputs, channels, kernel, kernel)
    around = ((0, 0), (0, 0), (padding, padding), (padding, padding))
    padded, span = np.pad(x, around).astype(np.float64), dilation * (kernel - 1) + 1
    windows = np.lib.stride_tricks.sliding_window_view(padded, (span, span), (2, 3))
    taps = windows[:, :, ::stride, ::stride, ::dilation, ::dilation]
    g = drawn(2, outputs, *taps.shape[2:4])

    def convolved(x: wg.Tensor, w: wg.Tensor) -> wg.Tensor:
        return wg.conv2d(x, w, stride=stride, padding=padding, dilation=dilation)

    def loss(x: wg.Tensor, w: wg.Tensor) -> wg.Tensor:
        return (convolved(x, w) * on_cpu(g)).sum()

    check(convolved(on_cpu(x), on_cpu(w)), np.einsum("nchwij,ocij->nohw", taps, w))
    check(wg.grad(loss, argnums=1)(on_cpu(x), on_cpu(w)), np.einsum("nchwij,nohw->ocij", taps, g))
    spread = np.zeros(padded.shape)
    for i, j in np.ndindex(kernel, kernel):
        rows, columns = (
            slice(at * dilation, at * dilation + (count - 1) * stride + 1, stride)
            for at, count in zip((i, j), g.shape[2:], strict=True)
        )
        spread[:, :, rows, columns] += np.einsum("oc,nohw->nchw", w[:, :, i, j], g)
    inside = spread[:, :, padding : padding + height, padding : padding + width]
    check(wg.grad(loss)(on_cpu(x), on_cpu(w)), inside)


@pytest.mark.parametrize(("m", "n", "k"), [(40, 9, 300), (33, 20, 7), (70, 31, 1), (10, 12, 0)])
def test_few_columns(m: int, n: int, k: int) -> None:
    a, b, bias = drawn(2, m, k), drawn(2, k, n), drawn(n)
    want = a.astype(np.float64) @ b
    check(on_cpu(a) @ on_cpu(b), want)
    check(wg.relu(on_cpu(a) @ on_cpu(b) + on_cpu(bias)), np.maximum(want + bias, 0))
    check((on_cpu(a[0] * 1) * 2) @ on_cpu(b[1]), 2 * a[0].astype(np.float64) @ b[1])


def test_no_elements_to_sum() -> None:
    a, b = on_cpu(drawn(1, 0)), on_cpu(drawn(3, 0))
    check(wg.matmul(wg.permute_dims(a + 1, (1, 0)).reshape((1, 0)), (b * 2).T), np.zeros((1, 3)))


def test_blocks_of_kept_panels() -> None:
    """One A for all batches, and an A for each of them, in blocks of several columns."""
    a, b = drawn(30, 40), drawn(3, 40, 1100)
    check(on_cpu(a) @ on_cpu(b), a.astype(np.float64) @ b)
    several = drawn(3, 30, 40)
    check(on_cpu(several) @ on_cpu(b), several.astype(np.float64) @ b)
    check((on_cpu(several) * 2) @ on_cpu(b), 2 * several.astype(np.float64) @ b)
