"""What lanes compute, here and on lesser processors: windows over padding, concats, elements that a
lane computes together, folds over several axes, transposes, rows that keep what was computed, rows added to
computed places.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.graph.helpers import graph_of
from webgrad import config
from webgrad.cpu import plan
from webgrad.device_profile import CPU_PROFILE
from webgrad.evaluate.evaluate import clear_plans
from webgrad.lower.lanes import lower_rows
from webgrad.native.background import Request
from webgrad.native.compiler import is_available
from webgrad.native.processor import chosen
from webgrad.ops import primitives
from webgrad.ops.table import TABLE
from webgrad.schedule.cpu_passes import CPU_PASSES
from webgrad.schedule.schedule import schedule

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(11)


@pytest.fixture(autouse=True, params=["", "x86-64-v2"])
def processor(request: pytest.FixtureRequest) -> Iterator[None]:
    """Code for this machine and for lesser ones, where it can run."""
    if not is_available():
        pytest.skip("no native code here: llvmlite is not installed, or switched off")
    clear_plans()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WEBGRAD_COMPILE", "always")
        if request.param:
            patch.setenv("WEBGRAD_PROCESSOR", request.param)
        config.reload()
        try:
            chosen()
        except wg.errors.ConfigError:
            pytest.skip("another kind of processor")
        yield
    config.reload()
    clear_plans()


def drawn(*shape: int, dtype: Any = np.float32) -> Array:
    return RNG.standard_normal(shape).astype(dtype)


def on_cpu(array: Array) -> wg.Tensor:
    return wg.asarray(array, device="cpu")


def windows_of(x: Array, kernel: int, stride: int, padding: int, dilation: int, value: float) -> Array:
    """(N, C, windows, elements)"""
    around = ((0, 0), (0, 0), (padding, padding), (padding, padding))
    padded = np.pad(x.astype(np.float64), around, constant_values=value)
    span = dilation * (kernel - 1) + 1
    found = np.lib.stride_tricks.sliding_window_view(padded, (span, span), (2, 3))
    return np.asarray(found[:, :, ::stride, ::stride, ::dilation, ::dilation])


# kernel, stride, padding, dilation, height, width: rows shorter and longer than vectors, windows as large as
# the image, interiors of no, one and several vectors
GEOMETRIES = [
    (3, 1, 1, 1, 5, 56),
    (3, 2, 1, 1, 13, 37),
    (2, 2, 0, 1, 8, 66),
    (7, 1, 3, 1, 7, 33),
    (3, 1, 2, 2, 6, 21),
]


@pytest.mark.parametrize(("kernel", "stride", "padding", "dilation", "height", "width"), GEOMETRIES)
def test_depthwise_windows(
    kernel: int, stride: int, padding: int, dilation: int, height: int, width: int
) -> None:
    x, w = drawn(2, 3, height, width), drawn(3, 1, kernel, kernel)
    found = wg.conv2d(on_cpu(x), on_cpu(w), stride=stride, padding=padding, dilation=dilation, groups=3)
    windows = windows_of(x, kernel, stride, padding, dilation, 0)
    want = np.einsum("nchwij,cij->nchw", windows, w[:, 0].astype(np.float64))
    np.testing.assert_allclose(found.numpy(), want, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(("kernel", "stride", "padding", "dilation", "height", "width"), GEOMETRIES)
def test_largest_of_windows(
    kernel: int, stride: int, padding: int, dilation: int, height: int, width: int
) -> None:
    if padding > kernel // 2:
        pytest.skip("padding of more than half a window")
    x = drawn(2, 3, height, width)
    x[0, 0, 0, :3] = np.nan, np.inf, -np.inf
    found = wg.max_pool2d(on_cpu(x), kernel, stride=stride, padding=padding, dilation=dilation)
    windows = windows_of(x, kernel, stride, padding, dilation, -np.inf)
    np.testing.assert_array_equal(found.numpy(), windows.max((-1, -2)).astype(np.float32))


@pytest.mark.parametrize(("kernel", "stride", "padding"), [(2, 2, 0), (3, 2, 1), (4, 4, 0)])
@pytest.mark.parametrize("size", [8, 40])
def test_the_gradient_of_the_largest(kernel: int, stride: int, padding: int, size: int) -> None:
    x = RNG.permutation(2 * 3 * size * size).reshape(2, 3, size, size).astype(np.float32)
    counts = windows_of(x, kernel, stride, padding, 1, -np.inf)
    g = drawn(*counts.shape[:4])
    found = wg.grad(lambda x: (wg.max_pool2d(x, kernel, stride=stride, padding=padding) * on_cpu(g)).sum())(
        on_cpu(x)
    )
    want = np.zeros(x.shape)
    flat = counts.reshape(*counts.shape[:4], -1).max(-1)
    for place in np.ndindex(*g.shape):
        hit = np.argwhere(x[place[:2]] == flat[place])[0]
        want[(*place[:2], *hit)] += g[place]
    np.testing.assert_allclose(found.numpy(), want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("several", [1, 2])
@pytest.mark.parametrize(("kernel", "stride", "padding", "dilation", "height", "width"), GEOMETRIES)
def test_gradients_of_depthwise_weights(
    kernel: int, stride: int, padding: int, dilation: int, height: int, width: int, several: int, dtype: str
) -> None:
    x, w = drawn(2, 3, height, width, dtype=dtype), drawn(3 * several, 1, kernel, kernel, dtype=dtype)
    windows = windows_of(x, kernel, stride, padding, dilation, 0)
    g = drawn(2, 3 * several, *windows.shape[2:4], dtype=dtype)
    how: dict[str, Any] = {"stride": stride, "padding": padding, "dilation": dilation, "groups": 3}
    found = wg.grad(lambda w: (wg.conv2d(on_cpu(x), w, **how) * on_cpu(g)).sum())(on_cpu(w))
    by_group = g.astype(np.float64).reshape(2, 3, several, *g.shape[2:])
    want = np.einsum("nchwij,ncshw->csij", windows, by_group).reshape(w.shape)
    tolerance = 2e-3 if dtype == "float16" else 1e-5
    np.testing.assert_allclose(found.numpy(), want, rtol=tolerance, atol=tolerance * abs(want).max())


# rows of less than a vector, of some with a rest, of several blocks of a sum; none, along an axis of none
FOLDED: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((3, 4, 5, 60), (0, 2, 3)),
    ((2, 3, 90, 33), (2, 3)),
    ((3, 5, 7, 2), (0, 3)),
    ((2, 70, 3, 1030), (1, 3)),
]
FOLDED += [((3, 0, 5, 60), (1, 3)), ((3, 4, 5, 0), (0, 2, 3)), ((2, 3, 4, 5, 17), (0, 2, 4))]


@pytest.mark.parametrize("name", ["sum", "max", "prod"])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize(("shape", "axes"), FOLDED)
def test_folds_over_several_axes(
    shape: tuple[int, ...], axes: tuple[int, ...], dtype: str, name: str
) -> None:
    if name == "max" and 0 in shape:
        pytest.skip("there is no largest of nothing")
    x = RNG.integers(1, 4, (*shape[:-1], shape[-1] + 3)).astype(dtype)
    y = RNG.choice([-1, 1], shape).astype(dtype)
    found = getattr(wg, name)(on_cpu(x)[..., 2:-1] * on_cpu(y), axis=axes)
    part = x[..., 2:-1] * y
    if name == "prod":  # exact: signs
        found, part = getattr(wg, name)(wg.sign(on_cpu(x)[..., 2:-1] * on_cpu(y)), axis=axes), np.sign(part)
    np.testing.assert_array_equal(found.numpy(), getattr(part, name)(axis=axes))


def test_several_folds_in_one_walk() -> None:
    x = drawn(5, 6, 7, 50)
    x[1, 2, 3, 4], x[2, 0, 0, 0] = np.nan, np.inf
    inner = on_cpu(x)[:, :, 1:, 3:]
    found = wg.sum(inner, axis=(1, 3)) + wg.max(inner * inner, axis=(1, 3))
    part = x[:, :, 1:, 3:].astype(np.float64)
    np.testing.assert_allclose(found.numpy(), part.sum((1, 3)) + (part * part).max((1, 3)), rtol=1e-5)


# Tiles: squares of lanes by rows, with a rest of both


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "float32", "float64"])
@pytest.mark.parametrize(
    "shape", [(64, 64), (100, 77), (33, 130), (16, 48), (70, 8), (9, 40), (3, 50, 41), (40, 0)]
)
def test_transposes(shape: tuple[int, ...], dtype: str) -> None:
    x = (drawn(*shape) * 2).astype(dtype)
    order = (*range(len(shape) - 2), len(shape) - 1, len(shape) - 2)
    found = wg.where(on_cpu(np.ones(1, bool)), wg.permute_dims(on_cpu(x), order), 0)
    np.testing.assert_array_equal(found.numpy(), x.transpose(order))


@pytest.mark.parametrize("order", [(0, 2, 3, 1), (0, 3, 1, 2), (2, 0, 3, 1), (1, 3, 0, 2), (3, 2, 1, 0)])
@pytest.mark.parametrize("shape", [(3, 20, 9, 17), (2, 40, 40, 33), (1, 64, 5, 70), (18, 2, 3, 35)])
def test_permuted_axes(shape: tuple[int, ...], order: tuple[int, ...]) -> None:
    x = drawn(*shape)
    found = wg.permute_dims(on_cpu(x), order) * 1
    np.testing.assert_array_equal(found.numpy(), x.transpose(order))


def test_transposes_beside_other_values() -> None:
    x, y, z = drawn(90, 70), drawn(70, 90), drawn(2, 92, 75)
    found = wg.permute_dims(on_cpu(x), (1, 0)) * on_cpu(y) - wg.permute_dims(on_cpu(z)[1, 2:, 5:], (1, 0))
    np.testing.assert_allclose(found.numpy(), x.T * y - z[1, 2:, 5:].T, rtol=1e-5, atol=1e-6)
    backwards = wg.permute_dims(wg.flip(on_cpu(x), axis=(1,)), (1, 0)) + on_cpu(y)
    np.testing.assert_array_equal(backwards.numpy(), x[:, ::-1].T + y)
    apart = wg.permute_dims(on_cpu(x)[:, ::2], (1, 0)) + on_cpu(y)[::2]
    np.testing.assert_array_equal(apart.numpy(), x[:, ::2].T + y[::2])
    padded = wg.permute_dims(wg.pad(on_cpu(x), ((3, 4), (2, 5))), (1, 0)) * 1
    np.testing.assert_array_equal(padded.numpy(), np.pad(x, ((3, 4), (2, 5))).T)


# Rows that keep what was computed on the way


def softmax_of(x: Array, axis: int = -1) -> Array:
    powers = np.exp(x.astype(np.float64) - x.max(axis, keepdims=True).astype(np.float64))
    return np.asarray(powers / powers.sum(axis, keepdims=True))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(3, 1), (1, 40), (5, 7), (4, 33), (2, 3, 257), (3, 2100), (0, 9)])
@pytest.mark.parametrize("axis", [0, -1])
def test_softmax_of_rows(shape: tuple[int, ...], axis: int, dtype: str) -> None:
    if not shape[axis]:
        pytest.skip("there is no largest of nothing")
    x = (drawn(*shape) * 5).astype(dtype)
    tolerance = 1e-3 if dtype == "float16" else 2e-6
    found = wg.softmax(on_cpu(x), axis=axis).numpy()
    np.testing.assert_allclose(found, softmax_of(x, axis), rtol=tolerance, atol=tolerance)


def test_softmax_where_there_is_no_number() -> None:
    x = drawn(6, 37)
    x[0, 3], x[1, 36], x[2, 5], x[3] = np.nan, np.inf, -np.inf, -np.inf
    found = wg.softmax(on_cpu(x), axis=-1).numpy()
    with np.errstate(invalid="ignore"):
        want = softmax_of(x)
    np.testing.assert_allclose(found, want, rtol=2e-6)


def test_what_a_row_keeps_is_read_where_it_lies() -> None:
    """Powers are read again backwards, beside their input, in two results, and after another fold."""
    x = drawn(9, 70)
    powers = np.exp(x.astype(np.float64))
    total = powers.sum(-1, keepdims=True)
    data = on_cpu(x)
    p = wg.exp(data)
    sums = wg.sum(p, axis=-1, keepdims=True)
    turned = wg.flip(p, axis=(1,)) / sums
    np.testing.assert_allclose(turned.numpy(), powers[:, ::-1] / total, rtol=2e-6)
    p = wg.exp(data)
    sums = wg.sum(p, axis=-1, keepdims=True)
    mixed = (p + wg.flip(p, axis=(1,))) / sums * data
    np.testing.assert_allclose(mixed.numpy(), (powers + powers[:, ::-1]) / total * x, rtol=4e-6, atol=1e-6)
    p = wg.exp(data)
    sums = wg.sum(p, axis=-1, keepdims=True)
    first, second = p / sums, p * sums + data
    wg.eval(first, second)
    np.testing.assert_allclose(first.numpy(), powers / total, rtol=2e-6)
    np.testing.assert_allclose(second.numpy(), powers * total + x, rtol=2e-6)
    p = wg.exp(data)
    sums = wg.sum(p, axis=-1, keepdims=True)
    largest = wg.max(p / sums, axis=-1, keepdims=True)
    np.testing.assert_allclose(
        (p / largest).numpy(), powers / (powers / total).max(-1, keepdims=True), rtol=4e-6
    )


def test_exponentials_of_a_softmax_are_computed_once() -> None:
    result = wg.softmax(on_cpu(drawn(4, 300)), axis=-1)
    plan = schedule(graph_of(result), CPU_PROFILE, CPU_PASSES)
    (group,) = plan.groups
    work = lower_rows(plan.graph, group)
    found = [each for each in work.kernel.body if each.op == "apply" and each.data.name == "exp"]
    assert len(found) == 1


@pytest.mark.parametrize("dtype", ["float16", "int8", "int64"])
@pytest.mark.parametrize(("times", "width"), [(2, 5), (2, 33), (4, 8), (4, 33), (3, 20)])
def test_repeated_elements(dtype: str, times: int, width: int) -> None:
    x = (drawn(6, width) * 9).astype(dtype)
    repeated = wg.where(on_cpu(x) == 0, on_cpu(x), on_cpu(x)).reshape((6, width, 1))
    found = wg.broadcast_to(repeated, (6, width, times)).reshape((6, width * times)) * 1
    np.testing.assert_array_equal(found.numpy(), (np.repeat(x, times, 1) * 1))


SHAPES = [
    ([(3, 40), (5, 40), (1, 40)], 0),
    ([(3, 40), (3, 9), (3, 17)], 1),
    ([(2, 3, 8), (2, 5, 8), (2, 1, 8)], 1),
    ([(33,), (70,), (8,)], 0),
    ([(1, 5), (7, 5), (2, 5)], 0),
    ([(9, 3), (20, 3), (0, 3)], 0),
]


@pytest.mark.parametrize(("shapes", "axis"), SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_concats_of_concats(shapes: list[tuple[int, ...]], axis: int, dtype: str) -> None:
    parts = [(drawn(*shape) * 9).astype(dtype) for shape in shapes]
    first, second, third = map(on_cpu, parts)
    inner = wg.concat([first + first, second], axis=axis)
    found = wg.concat([inner, -third], axis=axis)
    want = np.concatenate([parts[0] + parts[0], parts[1], -parts[2]], axis)
    np.testing.assert_array_equal(found.numpy(), want)
    flat = wg.concat([inner, -third], axis=axis).reshape((-1,))
    np.testing.assert_array_equal(flat.numpy(), want.reshape(-1))


@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.parametrize(
    ("rows", "columns", "count"), [(50, 16, 400), (7, 100, 3), (90, 257, 700), (5, 600, 0)]
)
def test_rows_added_in_their_order(dtype: str, rows: int, columns: int, count: int) -> None:
    base, updates = ((drawn(n, columns) * 9).astype(dtype) for n in (rows, count))
    for kind in ("int32", "uint8"):
        low = 0 if kind == "uint8" else -3
        index = RNG.integers(low, min(rows + 3, 100), count).astype(kind)
        want = base.copy()
        np.add.at(want, np.clip(index.astype(np.int64), 0, rows - 1), updates)
        nodes = [on_cpu(each).node for each in (base, index, updates)]
        found = wg.Tensor(primitives.scatter(TABLE["scatter_add"], *nodes))
        np.testing.assert_array_equal(found.numpy(), want)


def test_much_memory_is_fetched_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []

    def request(text: str, *others: Any) -> Request:
        texts.append(text)
        return Request(text, *others)

    monkeypatch.setattr(plan, "_programs", {})  # else what was lowered before is not written again
    monkeypatch.setattr(plan, "Request", request)
    for rows, is_fetched in ((2, False), (300, True)):  # of 4 KiB: 1.2 MB do not stay in a core's caches
        array = drawn(rows, 1024)
        texts.clear()
        np.testing.assert_allclose(on_cpu(array).sum(axis=1).numpy(), array.sum(1), rtol=1e-5, atol=1e-4)
        np.testing.assert_array_equal((on_cpu(array) * 2).numpy(), array * 2)
        assert ["prefetch" in each for each in texts] == [is_fetched] * 2
