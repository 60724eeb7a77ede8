"""Reductions against NumPy: axes, dtypes, NaN and infinities, empty and 0-d tensors, and mistakes."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import hypothesis.extra.numpy as arrays
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.reference_page import names_of
from tests.graph.helpers import nodes_under
from webgrad import dtypes
from webgrad.errors import ArgumentError, AxisError, DTypeError, ShapeError
from webgrad.functions.array import reductions
from webgrad.functions.array.creation import asarray
from webgrad.tensor import Tensor

INF, NAN = np.inf, np.nan
Array = np.ndarray[Any, Any]
AXES = [None, 0, 1, -1, (0, 2), (2, 0), (0, 1, 2), (), [1, -1]]


def on_cpu(values: Any, dtype: Any = None) -> Tensor:
    return asarray(values, dtype, device="cpu")


def quietly(function: Callable[..., Any], *arguments: Any, **options: Any) -> Array:
    """NumPy's result without its warnings about what is divided by zero."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return np.asarray(function(*arguments, **options))


def numpy_axis(axis: Any) -> Any:
    return tuple(axis) if isinstance(axis, list) else axis


def reduces_in(x: Tensor) -> int:
    return sum(node.sig.kind == "reduce" for node in nodes_under([x.node]))


def check(result: Tensor, expected: Any, tolerance: float = 1e-6) -> None:
    found = result.numpy()
    expected = np.asarray(expected)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean", "var", "std", "any", "all"])
def test_axes_and_keepdims(name: str, axis: Any, keepdims: bool) -> None:
    values = np.random.default_rng(0).normal(size=(3, 4, 5)).astype(np.float32)
    result = getattr(reductions, name)(on_cpu(values), axis=axis, keepdims=keepdims)
    wide = values if name in ("any", "all", "max", "min") else values.astype(np.float64)
    check(result, getattr(np, name)(wide, axis=numpy_axis(axis), keepdims=keepdims), 1e-5)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean", "any", "all"])
def test_all_axes_are_one_reduce(name: str) -> None:
    assert reduces_in(getattr(reductions, name)(on_cpu(np.ones((2, 3, 4), np.float32)), axis=(0, 2))) == 1


def test_a_variance_is_two_reduces() -> None:
    assert reduces_in(reductions.var(on_cpu(np.ones((2, 3, 4), np.float32)), axis=(0, 2))) == 2


@pytest.mark.parametrize("axis", [None, 0, -1])
def test_numbers_of_no_dimensions(axis: int | None) -> None:
    x = on_cpu(np.float32(3))
    assert reductions.sum(x, axis=axis).item() == 3
    assert reductions.max(x, axis=axis, keepdims=True).shape == ()
    assert reductions.argmax(x, axis=axis).item() == 0
    with pytest.raises(AxisError, match="no axis 1"):
        reductions.sum(x, axis=1)


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (dtypes.bool, dtypes.int32),
        (dtypes.int8, dtypes.int32),
        (dtypes.int16, dtypes.int32),
        (dtypes.int32, dtypes.int32),
        (dtypes.int64, dtypes.int64),
        (dtypes.uint8, dtypes.uint32),
        (dtypes.uint16, dtypes.uint32),
        (dtypes.uint32, dtypes.uint32),
        (dtypes.float16, dtypes.float16),
        (dtypes.bfloat16, dtypes.bfloat16),
        (dtypes.float64, dtypes.float64),
    ],
)
def test_dtypes_of_sums(dtype: dtypes.DType, expected: dtypes.DType) -> None:
    x = on_cpu(np.ones((200,)), dtype)
    for fold in (reductions.sum, reductions.prod):
        assert fold(x).dtype is expected
    assert reductions.sum(x).item() == 200
    assert reductions.max(x).dtype is dtype
    assert reductions.mean(x).dtype is (dtype if dtype.kind == "f" else dtypes.float32)
    assert reductions.var(x).dtype is reductions.mean(x).dtype


def test_a_dtype_can_be_asked_for() -> None:
    x = on_cpu([100, 100, 100], dtypes.int8)
    assert reductions.sum(x, dtype="float32").dtype is dtypes.float32
    assert reductions.sum(x, dtype=dtypes.int8).item() == 300 - 256
    assert reductions.mean(on_cpu([1, 2]), dtype=dtypes.float16).dtype is dtypes.float16
    with pytest.raises(DTypeError, match="mean"):
        reductions.mean(x, dtype=dtypes.int32)
    with pytest.raises(DTypeError, match="use any or all"):
        reductions.sum(x, dtype=dtypes.bool)


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16])
def test_small_floats_are_summed_wide(dtype: dtypes.DType) -> None:
    values = np.full(70_000, 1.0).astype(dtype.numpy)
    assert reductions.mean(on_cpu(values)).item() == 1.0
    assert reductions.var(on_cpu(values)).item() == 0.0


def test_a_variance_far_from_zero_keeps_its_digits() -> None:
    values = (np.arange(1000) % 7 + 1e5).astype(np.float32)
    check(reductions.var(on_cpu(values)), np.var(values.astype(np.float64)), 1e-4)


@pytest.mark.parametrize("correction", [0, 1, 2, 0.5, 2.5, 3, 4])
def test_corrections(correction: float) -> None:
    values = np.array([[1.0, 2.0, 4.0], [0.0, 0.0, 0.0]], np.float32)
    # The array API has NaN where nothing is left to divide by, where NumPy divides by 0.
    expected = np.var(values, axis=1, ddof=correction) if correction < 3 else np.full(2, NAN, np.float32)
    check(reductions.var(on_cpu(values), axis=1, correction=correction), expected)
    check(reductions.std(on_cpu(values), axis=1, correction=correction), np.sqrt(expected))


def test_numbers_that_are_none_are_refused() -> None:
    x = on_cpu([1.0, 2.0])
    mistakes: list[tuple[Callable[[], Any], str]] = [
        (lambda: reductions.var(x, correction="a"), "var takes a real number here, not 'a'"),  # type: ignore[arg-type]
        (lambda: reductions.std(x, correction=None), "std takes a real number here, not None"),  # type: ignore[arg-type]
        (lambda: reductions.vector_norm(x, ord="fro"), "vector_norm takes a real number here, not 'fro'"),  # type: ignore[arg-type]
        (lambda: reductions.argmax(on_cpu([1j])), "argmax is not offered for complex64"),
    ]
    for call, message in mistakes:
        with pytest.raises(DTypeError, match=message):
            call()


def test_the_mean_of_no_complex_numbers() -> None:
    found = reductions.mean(on_cpu(np.zeros((2, 0), np.complex64)), axis=1)
    assert found.dtype is dtypes.complex64
    assert np.isnan(found.numpy().view(np.float32)).all()


SPECIAL = np.array(
    [[1, NAN, 3, NAN], [INF, 1, -INF, 2], [-INF, -INF, -INF, -INF], [-0.0, 0.0, -0.0, 0.0]], np.float32
)


@pytest.mark.parametrize(
    "name", ["sum", "prod", "max", "min", "mean", "var", "std", "any", "all", "argmax", "argmin"]
)
@pytest.mark.parametrize("axis", [0, 1, None])
def test_special_values(name: str, axis: int | None) -> None:
    expected = quietly(getattr(np, name), SPECIAL, axis=axis)
    np.testing.assert_array_equal(getattr(reductions, name)(on_cpu(SPECIAL), axis=axis).numpy(), expected)


@pytest.mark.parametrize("name", ["sum", "prod", "any", "all", "mean", "var", "std", "count_nonzero"])
@pytest.mark.parametrize(
    ("shape", "axis"), [((0,), None), ((0, 3), 0), ((0, 3), 1), ((2, 0), (0, 1)), ((0, 0), 0)]
)
def test_of_nothing(name: str, shape: tuple[int, ...], axis: Any) -> None:
    expected = quietly(getattr(np, name), np.zeros(shape, np.float32), axis=axis)
    np.testing.assert_array_equal(
        getattr(reductions, name)(on_cpu(np.zeros(shape, np.float32)), axis=axis).numpy(), expected
    )


@pytest.mark.parametrize("name", ["mean", "var", "std"])
def test_gradients_of_nothing_are_nothing(name: str) -> None:
    x = on_cpu(np.zeros((2, 0), np.float32)).requires_grad_()
    getattr(reductions, name)(x, axis=1).sum().backward()
    assert x.grad is not None
    assert x.grad.shape == (2, 0)


@pytest.mark.parametrize("name", ["var", "std"])
def test_gradients_of_a_variance_that_is_none_are_none(name: str) -> None:
    x = on_cpu([3.0]).requires_grad_()
    getattr(reductions, name)(x, correction=1).backward()
    assert x.grad is not None
    assert math.isnan(x.grad.item())


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
def test_there_is_no_extreme_of_nothing(name: str) -> None:
    function = getattr(reductions, name)
    with pytest.raises(ShapeError, match=rf"{name} of a tensor of shape \(0, 3\) over axes \(0,\)"):
        function(on_cpu(np.zeros((0, 3), np.float32)), axis=0)
    with pytest.raises(ShapeError, match=name):
        function(on_cpu(np.zeros((0, 3), np.float32)))
    assert function(on_cpu(np.zeros((0, 3), np.float32)), axis=1).shape == (0,)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.uint8, np.bool_])
def test_places_of_extremes(name: str, axis: int | None, dtype: Any) -> None:
    values = np.random.default_rng(1).integers(0, 3, size=(5, 7, 3)).astype(dtype)
    result = getattr(reductions, name)(on_cpu(values), axis=axis)
    assert result.dtype is dtypes.int32
    np.testing.assert_array_equal(result.numpy(), getattr(np, name)(values, axis=axis))
    kept = getattr(reductions, name)(on_cpu(values), axis=axis, keepdims=True)
    np.testing.assert_array_equal(kept.numpy(), getattr(np, name)(values, axis=axis, keepdims=True))


def test_extremes_of_every_kind_of_number() -> None:
    assert reductions.max(on_cpu(np.array([2**32 - 1, 3], np.uint32))).item() == 2**32 - 1
    assert reductions.min(on_cpu(np.array([-(2**31), 3], np.int32))).item() == -(2**31)
    assert reductions.max(on_cpu([False, True])).item() is True
    assert reductions.min(on_cpu([False, True])).item() is False


def test_counting() -> None:
    values = np.array([[0.0, -0.0, NAN], [1, INF, 0]], np.float32)
    result = reductions.count_nonzero(on_cpu(values), axis=1)
    assert result.dtype is dtypes.int32
    assert result.tolist() == [1, 2]
    assert reductions.count_nonzero(on_cpu([True, False, True]), keepdims=True).tolist() == [2]


@pytest.mark.parametrize("order", [0, 0.5, 1, 2, 3, INF, -INF, -1])
@pytest.mark.parametrize("axis", [None, 0, (0, 1)])
def test_norms(order: float, axis: Any) -> None:
    values = np.random.default_rng(2).normal(size=(3, 4)).astype(np.float32)
    size = np.abs(values.astype(np.float64))
    if math.isinf(order):
        expected = (np.max if order > 0 else np.min)(size, axis=axis)
    elif order == 0:
        expected = np.sum(size != 0, axis=axis)
    else:
        expected = np.sum(size**order, axis=axis) ** (1 / order)
    check(reductions.vector_norm(on_cpu(values), axis=axis, ord=order), expected, 1e-5)


def test_norms_of_integers_and_mistaken_orders() -> None:
    assert reductions.norm(on_cpu([3, 4])).item() == 5.0
    with pytest.raises(ShapeError, match="norm: the order is a number"):
        reductions.norm(on_cpu([3.0]), NAN)
    with pytest.raises(ArgumentError, match=r"linalg\.matrix_norm"):
        reductions.norm(on_cpu([3.0]), "nuc")


def test_norm_takes_the_arguments_of_pytorch_in_its_order() -> None:
    x = on_cpu(np.array([[3, 4], [6, 8]], np.float32))
    assert x.norm(1).item() == reductions.norm(x, 1).item() == 21
    assert x.norm(2).item() == x.norm().item() == x.norm("fro").item() == pytest.approx(125**0.5)
    assert x.norm(1, 1).tolist() == [7, 14]
    assert x.norm(INF, axis=0, keepdims=True).tolist() == [[6, 8]]
    with pytest.raises(TypeError, match="positional"):
        reductions.vector_norm(x, 2)  # type: ignore[call-arg]


@pytest.mark.parametrize("axis", [True, False, "0", 1.0, on_cpu([0]), np.array([0, 1]), (0, True)])
@pytest.mark.parametrize("name", ["sum", "mean", "any", "logsumexp"])
def test_what_is_no_axis_is_refused(name: str, axis: Any) -> None:
    with pytest.raises(AxisError, match=f"{name}: an axis must be an integer, not "):
        getattr(reductions, name)(on_cpu(np.ones((2, 2), np.float32)), axis)


def test_numbers_of_numpy_are_axes() -> None:
    axis: Any = np.int64(1)
    assert reductions.sum(on_cpu([[1, 2], [3, 4]]), axis).tolist() == [3, 7]


@pytest.mark.parametrize("name", ["max", "min"])
def test_two_tensors_are_no_axes(name: str) -> None:
    x = on_cpu(np.ones((2, 2), np.float32))
    for other in (on_cpu([1]), on_cpu(0), x, np.array([0, 1])):
        with pytest.raises(AxisError, match=rf"webgrad\.{name}imum\(x, y\) compares two"):
            getattr(reductions, name)(x, other)


@pytest.mark.parametrize("name", ["std", "var"])
def test_pytorchs_unbiased_is_no_axis(name: str) -> None:
    with pytest.raises(AxisError, match=rf"unbiased=True\) is {name}\(correction=1\)"):
        getattr(reductions, name)(on_cpu(np.ones((2, 2), np.float32)), True)


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
def test_logsumexp(axis: Any, keepdims: bool) -> None:
    values = np.random.default_rng(3).normal(size=(3, 4)).astype(np.float32) * 50
    wide = values.astype(np.float64)
    expected = np.log(np.sum(np.exp(wide), axis=axis, keepdims=keepdims))
    check(reductions.logsumexp(on_cpu(values), axis=axis, keepdims=keepdims), expected, 1e-6)


def test_logsumexp_of_special_values() -> None:
    values = np.array([[INF, 0], [-INF, -INF], [NAN, 0], [-INF, 2], [1000, 1000]], np.float32)
    expected = [INF, -INF, NAN, 2, 1000 + math.log(2)]
    np.testing.assert_allclose(reductions.logsumexp(on_cpu(values), axis=1).numpy(), expected, rtol=1e-6)
    assert reductions.logsumexp(on_cpu(np.zeros((0, 2), np.float32)), axis=0).tolist() == [-INF, -INF]
    with pytest.raises(DTypeError, match=r"logsumexp is not offered for int32.*astype"):
        reductions.logsumexp(on_cpu([1, 2]))


@pytest.mark.parametrize("name", names_of(reductions))
def test_mistakes_name_the_op(name: str) -> None:
    function = getattr(reductions, name)
    with pytest.raises(AxisError, match=f"{name}: there is no axis 2 in a tensor of 2 dimensions"):
        function(on_cpu(np.ones((2, 3), np.float32)), axis=2)
    with pytest.raises(DTypeError, match=rf"{name} takes a webgrad tensor, not a list.*asarray"):
        function([1.0, 2.0])


def test_an_axis_named_twice() -> None:
    with pytest.raises(AxisError, match="named twice"):
        reductions.sum(on_cpu(np.ones((2, 3))), axis=(1, -1))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: reductions.norm(x, axis=1),
        lambda x: reductions.norm(x, 3, 1),
        lambda x: reductions.norm(x, 1, 1),
        lambda x: reductions.norm(x, 0.5, 1),
        lambda x: reductions.norm(x, -1, 1),
        lambda x: reductions.std(x, 1),
    ],
)
def test_gradients_of_norms_at_zero_are_zero(function: Callable[[Tensor], Tensor]) -> None:
    x = on_cpu(np.array([[0, 0], [3, -4]], np.float32)).requires_grad_()
    y = function(x)
    y.sum().backward()
    assert x.grad is not None
    assert y[0].item() == 0
    assert x.grad[0].tolist() == [0, 0]
    assert abs(x.grad[1].numpy()).min() > 0


@pytest.mark.property
@given(
    arrays.arrays(
        np.float32,
        arrays.array_shapes(min_dims=1, max_dims=3, max_side=5),
        elements=st.one_of(st.floats(-100, 100, width=32), st.sampled_from([NAN, INF, -INF, 0.0, -0.0])),
    ),
    st.data(),
)
def test_extremes_and_their_places_as_numpy(values: Array, data: st.DataObject) -> None:
    axis = data.draw(st.integers(-values.ndim, values.ndim - 1))
    for name in ("max", "min", "argmax", "argmin"):
        found = getattr(reductions, name)(on_cpu(values), axis=axis).numpy()
        np.testing.assert_array_equal(found, getattr(np, name)(values, axis=axis))
