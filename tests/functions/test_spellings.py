"""Other libraries' names of arguments, and `x.size()`."""

from __future__ import annotations

import inspect
import json
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad.functions.array import reductions
from webgrad.functions.spellings import SPELLINGS, other_names, spelled

VALUES = np.array([[[3.0, 1.0], [2.0, 5.0]], [[0.0, 4.0], [7.0, 6.0]]], np.float32)


@pytest.fixture(autouse=True)
def cpu() -> Any:
    wg.set_default_device("cpu")
    yield
    wg.set_default_device(None)


def public() -> dict[str, Any]:
    return {name: getattr(wg, name) for home in wg._NAMES.values() for name in home.split()}


def test_every_function_with_an_axis_takes_dim() -> None:
    of_axes = [
        name
        for name, each in public().items()
        if inspect.isfunction(each)
        and "axis" in inspect.signature(each).parameters
        and name != "apply_along_axis"  # whose keywords are those of another function
    ]
    assert len(of_axes) > 60
    assert [name for name in of_axes if "dim" not in other_names(inspect.unwrap(getattr(wg, name)))] == []
    assert all(getattr(wg, name) is spelled(getattr(wg, name).__wrapped__) for name in of_axes)


def test_every_row_is_of_a_function() -> None:
    known = {**public(), **vars(wg.fft), **{name: getattr(wg.random, name) for name in wg.random.__all__}}
    for other, own, functions in SPELLINGS:
        for name in functions.split():
            parameters = inspect.signature(known[name]).parameters
            assert own in parameters, (other, name)
            assert other not in parameters, (other, name)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (lambda x: x.sum(dim=1, keepdim=True), lambda x: x.sum(axis=1, keepdims=True)),
        (lambda x: wg.softmax(x, dim=0), lambda x: wg.softmax(x, axis=0)),
        (lambda x: wg.concat([x, x], dim=2), lambda x: wg.concat([x, x], axis=2)),
        (lambda x: x.flatten(start_dim=1), lambda x: x.flatten(start_axis=1)),
        (lambda x: x.swapaxes(dim0=0, dim1=2), lambda x: x.swapaxes(0, 2)),
        (lambda x: x.diagonal(dim1=1, dim2=2), lambda x: x.diagonal(0, 1, 2)),
        (lambda x: wg.roll(x, shifts=1, dims=2), lambda x: wg.roll(x, 1, 2)),
        (lambda x: wg.permute_dims(x, dims=(2, 0, 1)), lambda x: x.permute(2, 0, 1)),
        (lambda x: wg.gather(x, dim=1, index=x.argsort(1)), lambda x: x.sort(1)),
        (lambda x: x.std(dim=0, unbiased=True), lambda x: x.std(axis=0, correction=1)),
        (lambda x: x.var(0, ddof=1, keepdim=True), lambda x: x.var(0, correction=1, keepdims=True)),
        (lambda x: wg.triu(x, diagonal=1), lambda x: wg.triu(x, k=1)),
        (lambda x: wg.zeros(size=(2, 3)), lambda x: wg.zeros((2, 3))),
        (lambda x: wg.fft.fftn(x, dim=(0, 1)).real, lambda x: wg.fft.fftn(x, axes=(0, 1)).real),
        (lambda x: wg.linalg.norm(x[0], dim=1), lambda x: wg.linalg.norm(x[0], axis=1)),
        (lambda x: wg.nn.functional.softmax(x, dim=1), lambda x: wg.softmax(x, axis=1)),
    ],
)
def test_both_names_are_one(theirs: Callable[..., Any], ours: Callable[..., Any]) -> None:
    x = wg.asarray(VALUES)
    np.testing.assert_array_equal(theirs(x).numpy(), ours(x).numpy())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: x.sum(axis=0, dim=0), r"sum\(\) was given axis and dim, which are the same"),
        (lambda x: x.softmax(dimm=1), r"softmax\(\) has no argument 'dimm': did you mean 'dim'\?"),
        (
            lambda x: wg.sum(x, quux=1),  # type: ignore[call-arg]
            r"sum\(\) has no argument 'quux'; it takes x, axis, dtype, keepdims, dim",
        ),
        (lambda x: wg.gather(x, dim=1), r"gather\(\) missing 1 required positional argument: 'index'"),
        (lambda x: wg.permute_dims(x), r"permute_dims\(\) missing 1 required positional argument: 'axes'"),
        (lambda x: x.size(0, dim=1), r"size\(\) was given axis and dim"),
    ],
)
def test_mistakes_are_named(call: Callable[..., Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call(wg.asarray(VALUES))


def test_webgrads_own_functions_call_the_original() -> None:
    assert reductions.sum is wg.sum.__wrapped__ is not wg.sum  # type: ignore[attr-defined]
    assert wg.sum is wg.Tensor.sum
    assert (wg.sum.__name__, wg.sum.__module__) == ("sum", "webgrad.functions.array.reductions")
    assert inspect.signature(wg.sum) == inspect.signature(reductions.sum)


def test_size_is_a_number_that_can_be_called() -> None:
    x = wg.ones((2, 3))
    assert (x.size, x.size(), x.size(0), x.size(-1), x.size(dim=1)) == (6, (2, 3), 2, 3, 3)
    assert wg.asarray(1.0).size() == ()
    assert (wg.zeros(x.size).shape, (x / x.size).sum().item(), x.size // 4) == ((6,), 1.0, 1)
    assert json.dumps([x.size]) == "[6]"
    assert type(pickle.loads(pickle.dumps(x.size))) is int
    with pytest.raises(wg.AxisError, match="no axis 2"):
        x.size(2)


NAMES = (
    "sum max mean all argmax std logsumexp median softmax log_softmax sort argsort cumsum cummax flip squeeze"
)
ALONG_AN_AXIS: list[Callable[[wg.Tensor, int], Any]] = [
    *(getattr(wg, name) for name in NAMES.split()),
    lambda x, axis: wg.topk(x, 1, axis)[0],
    lambda x, axis: wg.quantile(x, 0.3, axis),
    lambda x, axis: wg.take(x, wg.asarray(0), axis),
    lambda x, axis: wg.gather(x, axis, wg.zeros((1,) * x.ndim, int)),
]


@pytest.mark.parametrize("function", ALONG_AN_AXIS)
def test_a_number_has_axis_0_and_minus_1(function: Callable[[wg.Tensor, int], Any]) -> None:
    x, one = wg.asarray(3.0), wg.asarray([3.0])
    for axis in (0, -1):
        assert function(x, axis).shape == ()
        assert function(x, axis).tolist() == function(one, axis).reshape(()).tolist()
    for axis in (1, -2):
        with pytest.raises(wg.AxisError, match=f"no axis {axis}"):
            function(x, axis)
