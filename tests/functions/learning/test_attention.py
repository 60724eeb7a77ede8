"""Attention against NumPy in float64: masks, groups of heads, windows, lengths at run time, dtypes, mistakes.

Drivers compile slowly: on a GPU there are few heads' sizes and masks, on the cpu all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.properties.helpers import gpu
from tests.properties.running import profiled
from webgrad import dtypes
from webgrad.errors import ArgumentError, DeviceError, DTypeError, ShapeError
from webgrad.evaluate.evaluate import plans
from webgrad.functions.learning.attention import scaled_dot_product_attention
from webgrad.tensor import Tensor

Array = np.ndarray[Any, Any]
attention: Callable[..., Tensor] = scaled_dot_product_attention  # arguments come in tuples here
DEVICES = [pytest.param("cpu"), pytest.param("webgpu", marks=pytest.mark.gpu)]


def device_of(name: str) -> Any:
    """The cpu, the adapter, or the adapter as if it were a discrete GPU, or one without subgroups."""
    if name == "cpu":
        return "cpu"
    if name == "webgpu":
        return gpu()
    return profiled(kind="discrete" if name == "discrete" else "software", subgroup_size=0)


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed + sum(shape)).standard_normal(shape).astype(np.float32)


def wanted(
    *arrays: Array,
    mask: Array | None = None,
    causal: bool = False,
    window: int | None = None,
    length: int | None = None,
    scale: float | None = None,
) -> Array:
    """As it is defined, in float64; rows that see nothing are 0."""
    q, k, v = (each.astype(np.float64) for each in arrays)
    if k.ndim > 2:
        k, v = (np.repeat(each, q.shape[-3] // each.shape[-3], -3) for each in (k, v))
    queries, keys = q.shape[-2], k.shape[-2]
    count = keys if length is None else length
    scores = q @ np.swapaxes(k, -1, -2) * (1 / math.sqrt(max(q.shape[-1], 1)) if scale is None else scale)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    key, place = np.arange(keys), np.arange(queries)[:, None] + (0 if length is None else count - queries)
    seen = np.broadcast_to(key < count, (queries, keys))
    if causal or window:
        seen = seen & (key <= place)
    if window:
        seen = seen & (key > place - window)
    scores = np.where(seen, scores, -np.inf)
    weights = np.exp(scores - np.maximum(scores.max(-1, keepdims=True), -1e300))
    result: Array = weights @ v / np.maximum(weights.sum(-1, keepdims=True), 0.5)
    return result


def check(device: str, arrays: tuple[Array, Array, Array], mask: Array | None = None, **options: Any) -> None:
    """A call on a device gives what is wanted."""
    place = device_of(device)
    tensors = [wg.asarray(each, device=place) for each in arrays]
    given = {"is_causal": options.get("causal", False), "enable_gqa": arrays[0].ndim > 2}
    given |= {name: options[name] for name in ("window", "length", "scale") if name in options}
    made = attention(*tensors, None if mask is None else wg.asarray(mask, device=place), **given)
    expected = wanted(*arrays, mask=mask, **options)
    assert made.shape == expected.shape
    np.testing.assert_allclose(made.numpy(), expected, rtol=2e-5, atol=2e-5)


def operands(
    *before: int,
    queries: int,
    keys: int,
    columns: int = 8,
    values: int | None = None,
    heads: int | None = None,
) -> tuple[Array, Array, Array]:
    shared = before if heads is None else (*before[:-1], heads)
    wide = columns if values is None else values
    return (
        numbers(*before, queries, columns),
        numbers(*shared, keys, columns, seed=1),
        numbers(*shared, keys, wide, seed=2),
    )


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("causal", [False, True])
def test_queries_and_keys_of_any_number(device: str, causal: bool) -> None:
    for queries, keys in [(1, 1), (1, 7), (7, 1), (8, 8), (17, 33), (64, 300), (300, 65)]:
        check(device, operands(2, 3, queries=queries, keys=keys), causal=causal)


HEADS = [(5, 7), (64, 128), (256, 40), (4, 4), (1, 1), (36, 20), (3, 256)]
LARGE = [(8, 300), (260, 8)]
MASKS: list[tuple[int, ...]] = [(1, 1, 6, 11), (2, 1, 1, 11), (3, 6, 1), (6, 11), (11,), (2, 3, 6, 11)]


def on_each(choices: list[Any], few: int) -> list[Any]:
    """Each choice on the cpu, and the first few on a GPU."""
    return [pytest.param("cpu", each) for each in choices] + [
        pytest.param("webgpu", each, marks=pytest.mark.gpu) for each in choices[:few]
    ]


@pytest.mark.parametrize(("device", "head"), on_each(HEADS, 3))
def test_heads_of_any_size(device: str, head: tuple[int, int]) -> None:
    check(device, operands(1, 2, queries=9, keys=21, columns=head[0], values=head[1]), causal=True)


@pytest.mark.parametrize(("device", "head"), on_each(LARGE, 1))
def test_heads_beyond_one_kernel_are_composed(device: str, head: tuple[int, int]) -> None:
    arrays = operands(2, 4, queries=5, keys=9, columns=head[0], values=head[1], heads=2)
    check(device, arrays, np.tril(np.ones((5, 9), bool), -1), causal=True, window=3, length=7)
    if device == "cpu":
        check(device, arrays)


@pytest.mark.parametrize(("device", "shape"), on_each(MASKS, 2))
def test_masks_broadcast(device: str, shape: tuple[int, ...]) -> None:
    arrays = operands(2, 3, queries=6, keys=11)
    check(device, arrays, np.random.default_rng(5).random(shape) < 0.6)
    if device == "cpu" or shape == MASKS[0]:
        check(device, arrays, numbers(*shape), causal=True)


@pytest.mark.parametrize("device", DEVICES)
def test_groups_of_heads_share_keys(device: str) -> None:
    for heads, shared, queries in [(6, 3, 5), (4, 1, 9), (12, 1, 3)]:
        arrays = operands(2, heads, queries=queries, keys=30, heads=shared)
        check(device, arrays, causal=True, length=29)
        check(device, arrays)


@pytest.mark.parametrize("device", DEVICES)
def test_windows(device: str) -> None:
    arrays = operands(1, 2, queries=40, keys=70)
    for window in (1, 5, 39, 1000):
        check(device, arrays, window=window)
        check(device, arrays, window=window, length=55)


@pytest.mark.parametrize("device", DEVICES)
def test_a_growing_cache_has_one_plan(device: str) -> None:
    q, k, v = operands(1, 4, queries=1, keys=600, columns=16, heads=2)
    place = device_of(device)
    tensors = [wg.asarray(each, device=place) for each in (q, k, v)]
    before = None
    for length in (1, 2, 3, 64, 255, 256, 257, 599, 600):
        made = attention(*tensors, is_causal=True, enable_gqa=True, length=length).numpy()
        np.testing.assert_allclose(made, wanted(q, k, v, causal=True, length=length), rtol=2e-5, atol=2e-5)
        assert before in (None, plans())
        before = plans()


@pytest.mark.parametrize("device", DEVICES)
def test_a_length_may_be_a_tensor(device: str) -> None:
    q, k, v = operands(1, 2, queries=3, keys=40)
    place = device_of(device)
    tensors = [wg.asarray(each, device=place) for each in (q, k, v)]
    before = None
    for length in (0, 2, 17, 40, 1000, -5):
        given = wg.asarray(np.array(length, np.int32), device=place)
        made = attention(*tensors, is_causal=True, length=given).numpy()
        inside = min(max(length, 0), 40)
        np.testing.assert_allclose(made, wanted(q, k, v, causal=True, length=inside), rtol=2e-5, atol=2e-5)
        assert before in (None, plans())
        before = plans()


@pytest.mark.parametrize("device", DEVICES)
def test_what_lies_beyond_the_length_is_never_looked_at(device: str) -> None:
    q, k, v = operands(1, 2, queries=2, keys=24)
    expected = wanted(q, k, v, length=10)
    k[..., 10:, :], v[..., 10:, :] = np.nan, np.inf
    place = device_of(device)
    made = attention(*(wg.asarray(each, device=place) for each in (q, k, v)), length=10).numpy()
    np.testing.assert_allclose(made, expected, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("device", DEVICES)
def test_rows_that_see_nothing_are_zero(device: str) -> None:
    q, k, v = operands(1, 2, queries=5, keys=30)
    mask = np.ones((5, 30), bool)
    mask[1] = mask[4] = False
    check(device, (q, k, v), mask)
    check(device, (q, k, v), np.where(mask, np.float32(0), np.float32(-np.inf)))
    check(device, (q, k, v), causal=True, length=3)
    check(device, (q, k, v), length=0)


@pytest.mark.parametrize("device", DEVICES)
def test_large_scores_and_lowest_masks(device: str) -> None:
    q, k, v = operands(1, 2, queries=5, keys=12)
    check(device, (q * 1000, k * 1000, v))
    mask = np.zeros((5, 12), np.float32)
    mask[:, 3:] = np.finfo(np.float32).min  # as many programs write it
    check(device, (q, k, v), mask)


@pytest.mark.parametrize("device", DEVICES)
def test_nan_stays_in_its_row(device: str) -> None:
    q, k, v = operands(1, 2, queries=9, keys=12)
    expected = wanted(q, k, v)
    q[0, 1, 4, 2] = np.nan
    expected[0, 1, 4] = np.nan
    place = device_of(device)
    made = attention(*(wg.asarray(each, device=place) for each in (q, k, v))).numpy()
    np.testing.assert_allclose(made, expected, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16], ids=str)
def test_halves_are_computed_in_float32(device: str, dtype: dtypes.DType) -> None:
    for values in (8, 5) if device == "cpu" or dtype is dtypes.float16 else (8,):
        arrays = operands(2, 2, queries=6, keys=40, values=values)
        place = device_of(device)
        tensors = [wg.asarray(each, dtype, device=place) for each in arrays]
        rounded = [each.numpy().astype(np.float32) for each in tensors]
        made = attention(*tensors, is_causal=True, length=37)
        assert made.dtype is dtype
        close = 2e-3 if dtype is dtypes.float16 else 1e-2
        expected = wanted(*rounded, causal=True, length=37)
        np.testing.assert_allclose(made.numpy().astype(np.float32), expected, rtol=close, atol=close / 10)


def test_float64_on_the_cpu() -> None:
    arrays = operands(2, 2, queries=6, keys=40)
    made = attention(*(wg.asarray(each.astype(np.float64), device="cpu") for each in arrays))
    np.testing.assert_allclose(made.numpy(), wanted(*arrays), rtol=1e-6)
    assert made.dtype is dtypes.float64


def test_a_float64_mask_is_added_in_float64() -> None:
    arrays = numbers(2, 5, 8), numbers(2, 7, 8), numbers(2, 7, 8)
    mask = np.random.default_rng(0).uniform(-8, 8, (5, 7))
    made = attention(*(wg.asarray(each.astype(np.float64)) for each in arrays), wg.asarray(mask))
    np.testing.assert_allclose(made.numpy(), wanted(*arrays, mask=mask), rtol=1e-13, atol=1e-14)


@pytest.mark.gpu
def test_float64_on_a_gpu_is_refused() -> None:
    if "f64" not in gpu().profile.features:
        pytest.skip("this adapter has no float64")
    x = wg.zeros((2, 4), dtypes.float64, device=gpu())
    with pytest.raises(DTypeError, match=r"float64 is not offered on GPUs.*float32"):
        attention(x, x, x)


@pytest.mark.parametrize("device", DEVICES)
def test_heads_may_be_views_and_be_merged(device: str) -> None:
    """As blocks write it: (b, l, h e) split into heads, attended, merged, with maps before and after."""
    place = device_of(device)
    q, k, v = (numbers(2, 13, 24, seed=each) for each in range(3))

    def by_head(x: Any) -> Any:
        return x.reshape((2, 13, 3, 8)).transpose((0, 2, 1, 3))

    tensors = [wg.asarray(each, device=place) for each in (q, k, v)]
    made = attention(*[by_head(each * 0.5) for each in tensors], is_causal=True)
    merged = wg.relu(made.transpose((0, 2, 1, 3)).reshape((2, 13, 24)) + tensors[0])
    heads = wanted(*[by_head(each * np.float32(0.5)) for each in (q, k, v)], causal=True)
    expected = np.maximum(heads.transpose(0, 2, 1, 3).reshape(2, 13, 24) + q, 0)
    np.testing.assert_allclose(merged.numpy(), expected, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("device", DEVICES)
def test_leading_axes_broadcast(device: str) -> None:
    place = device_of(device)
    q, k, v = numbers(2, 3, 4, 5, 8), numbers(3, 1, 6, 8), numbers(6, 8)
    made = attention(*(wg.asarray(each, device=place) for each in (q, k, v)))
    whole = [np.broadcast_to(each, (2, 3, 4, *each.shape[-2:])) for each in (k, v)]
    np.testing.assert_allclose(made.numpy(), wanted(q, *whole), rtol=2e-5, atol=2e-5)
    mask = np.random.default_rng(3).random((2, 1, 4, 1, 6)) < 0.7
    made = attention(*(wg.asarray(each, device=place) for each in (q, k, v)), wg.asarray(mask, device=place))
    np.testing.assert_allclose(made.numpy(), wanted(q, *whole, mask=mask), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("device", DEVICES)
def test_two_axes_and_empty_ones(device: str) -> None:
    check(device, (numbers(3, 4), numbers(5, 4), numbers(5, 2)), scale=2.0)
    place = device_of(device)
    for queries, keys, values in ((0, 5, 2), (3, 0, 2), (3, 5, 0)):
        shapes = ((queries, 4), (keys, 4), (keys, values))
        made = attention(*(wg.ones(each, device=place) for each in shapes))
        assert made.shape == (queries, values)
        assert not made.numpy().any()
    check(device, (numbers(3, 0), numbers(5, 0), numbers(5, 2)))


@pytest.mark.gpu
@pytest.mark.parametrize("device", ["discrete", "single"])
def test_other_kinds_of_devices(device: str) -> None:
    """The template for GPUs, through workgroup memory, and that for software adapters without subgroups."""
    mask = np.random.default_rng(1).random((1, 1, 20, 70)) < 0.7
    arrays = operands(2, 4, queries=20, keys=70, columns=36, values=12, heads=2)
    check(device, arrays, mask, causal=True, window=17)
    check(device, arrays, mask, length=50)
    check(device, operands(1, 4, queries=1, keys=700, columns=16, heads=2), causal=True, length=650)


# Mistakes


def made(*shape: int, dtype: Any = None, device: Any = "cpu") -> Tensor:
    return wg.ones(shape, dtype, device=device)


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        (((3,), (3, 4), (3, 4)), "two axes or more"),
        (((3, 4), (3, 5), (3, 5)), "query and key must have the same size"),
        (((3, 4), (3, 4), (2, 4)), "equally many positions"),
        (((4, 3, 4), (2, 3, 4), (2, 3, 4)), "enable_gqa=True"),
        (((5, 4, 3, 4), (2, 4, 3, 4), (2, 4, 3, 4)), "must broadcast"),
    ],
)
def test_shapes_that_do_not_fit(shapes: tuple[tuple[int, ...], ...], words: str) -> None:
    with pytest.raises(ShapeError, match=words) as raised:
        attention(*(made(*each) for each in shapes))
    assert str(shapes[0]) in str(raised.value)


def test_groups_that_do_not_fit() -> None:
    with pytest.raises(ShapeError, match="their number divides"):
        attention(made(4, 3, 4), made(3, 3, 4), made(3, 3, 4), enable_gqa=True)
    with pytest.raises(ShapeError, match="three axes or more"):
        attention(made(3, 4), made(3, 4), made(3, 4), enable_gqa=True)
    with pytest.raises(ShapeError, match="before the heads"):
        attention(made(2, 4, 3, 4), made(3, 4, 3, 4), made(3, 4, 3, 4), enable_gqa=True)


def test_masks_that_do_not_fit() -> None:
    x = made(2, 3, 4)
    with pytest.raises(ShapeError, match=r"the mask \(4, 3\).*\(2, 3, 3\)"):
        attention(x, x, x, made(4, 3))
    with pytest.raises(ShapeError, match="the mask"):
        attention(x, x, x, made(1, 1, 3, 3))
    with pytest.raises(
        DTypeError, match=r"a mask must be of bools .* not of int32.*mask\.astype\(webgrad\.bool\)"
    ):
        attention(x, x, x, made(3, 3, dtype=dtypes.int32))


def test_arguments_that_are_refused() -> None:
    x = made(3, 4)
    with pytest.raises(ArgumentError, match=r"dropout_p is the probability"):
        attention(x, x, x, dropout_p=1.5)
    with pytest.raises(ArgumentError, match="window=0"):
        attention(x, x, x, window=0)
    for length in (-1, 4):
        with pytest.raises(ArgumentError, match=f"length={length}.*0 to 3"):
            attention(x, x, x, length=length)
    with pytest.raises(DTypeError, match="length must be an integer"):
        attention(x, x, x, length=made(2, dtype=dtypes.int32))
    with pytest.raises(DTypeError, match="length must be an integer"):
        attention(x, x, x, length=made())
    with pytest.raises(DTypeError, match="int32"):
        attention(*(made(3, 4, dtype=dtypes.int32) for _ in range(3)))


@pytest.mark.gpu
def test_devices_are_not_mixed() -> None:
    x = made(3, 4)
    with pytest.raises(DeviceError, match="to_device"):
        attention(x, x, made(3, 4, device=gpu()))
    with pytest.raises(DeviceError, match="to_device"):
        attention(x, x, x, made(3, 3, device=gpu()))
    with pytest.raises(DeviceError, match="to_device"):
        attention(x, x, x, length=made(dtype=dtypes.int32, device=gpu()))


@pytest.mark.parametrize("device", DEVICES)
def test_scores_whose_softmax_is_saturated_have_no_gradient(device: str) -> None:
    """Not one that rounding leaves of two large numbers: where a key has all the weight, it is exactly 0."""
    place = device_of(device)
    q, k = (wg.asarray(1e3 * np.eye(4, dtype=np.float32)[None], device=place) for _ in range(2))
    v, g = (wg.asarray(numbers(1, 4, 7, seed=each), device=place) for each in range(2))
    q.requires_grad_()
    k.requires_grad_()
    wg.sum(attention(q, k, v, scale=1.0) * g).backward()
    for each in (q, k):
        assert each.grad is not None
        assert not np.any(each.grad.numpy())


def test_weights_are_dropped_by_chance_and_gradients_know_which() -> None:
    q, k = (wg.zeros((1, count, 2)) for count in (300, 4))
    v: Any = wg.unsqueeze(wg.eye(4), 0).requires_grad_()
    found = attention(q, k, v, dropout_p=0.75)
    values = found.numpy()
    assert set(np.unique(values)) == {0.0, 1.0}
    assert abs(values.mean() - 0.25) < 0.05
    found.sum().backward()
    np.testing.assert_allclose(v.grad.numpy()[0, :, 0], values[0].sum(0), rtol=1e-5)
    assert not attention(q, k, v, dropout_p=1.0).numpy().any()
