"""Convolutions against plain loops, on the cpu and on a GPU: every option, odd and empty sizes, mistakes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.functions.convolution.windows_reference import convolution, transposed
from tests.graph.helpers import nodes_under
from webgrad.errors import ArgumentError, DTypeError, ShapeError
from webgrad.functions.convolution import products

Array = np.ndarray[Any, Any]
Sides = tuple[int, ...]
DEVICES = [pytest.param("cpu"), pytest.param("webgpu", marks=pytest.mark.gpu)]
ON_GPUS = ("uneven", "depthwise, several", "1 x 1 with stride", "groups", "three axes", "empty batch", "same")


def everywhere(cases: Iterable[str]) -> list[Any]:
    """(name, device): every case on the cpu, and some on a GPU, where each compiles kernels of its own."""
    on_gpus = [pytest.param(name, "webgpu", marks=pytest.mark.gpu) for name in cases if name in ON_GPUS]
    return [*[pytest.param(name, "cpu") for name in cases], *on_gpus]


def drawn(*shape: int, dtype: Any = np.float32) -> Array:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(dtype)


@dataclass(frozen=True)
class Case:
    """x, the weight, and the options as tuples."""

    x: Sides
    weight: Sides
    stride: Sides = ()
    padding: Any = ()
    dilation: Sides = ()
    groups: int = 1
    extra: Sides = ()

    @property
    def count(self) -> int:
        return len(self.weight) - 2

    def sides(self, given: Sides, default: int) -> Sides:
        return given or (default,) * self.count


CASES = {
    "plain": Case((2, 3, 7, 6), (4, 3, 3, 3)),
    "padded": Case((1, 4, 8, 8), (8, 4, 3, 3), padding=(1, 1)),
    "uneven": Case((2, 3, 9, 7), (5, 3, 2, 3), stride=(2, 3), padding=(1, 2), dilation=(2, 1)),
    "stride beyond the kernel": Case((1, 2, 11, 10), (3, 2, 2, 1), stride=(4, 3)),
    "groups": Case((2, 6, 5, 8), (4, 3, 3, 3), padding=(1, 1), groups=2),
    "depthwise": Case((2, 4, 6, 8), (4, 1, 3, 3), padding=(1, 1), groups=4),
    "depthwise, several": Case((1, 3, 7, 5), (6, 1, 3, 2), stride=(2, 1), groups=3),
    "1 x 1": Case((2, 5, 4, 4), (3, 5, 1, 1)),
    "1 x 1 with stride": Case((2, 5, 5, 4), (3, 5, 1, 1), stride=(2, 2)),
    "1 x 1 in groups": Case((2, 4, 3, 4), (4, 2, 1, 1), groups=2),
    "one axis": Case((2, 3, 17), (4, 3, 5), stride=(2,), padding=(2,)),
    "three axes": Case((1, 2, 5, 4, 6), (3, 2, 2, 3, 3), padding=(0, 1, 1), stride=(1, 2, 1)),
    "empty batch": Case((0, 3, 6, 6), (4, 3, 3, 3)),
    "no more than a window": Case((3, 2, 3, 3), (4, 2, 3, 3)),
    "same": Case((1, 2, 6, 7), (2, 2, 4, 3), padding="same", dilation=(1, 2)),
    "valid": Case((1, 2, 6, 7), (2, 2, 2, 3), padding="valid"),
}


def around(case: Case) -> tuple[tuple[int, int], ...]:
    """The padding of a case at both ends of each axis."""
    if case.padding == "same":
        dilation = case.sides(case.dilation, 1)
        total = [apart * (size - 1) for apart, size in zip(dilation, case.weight[2:], strict=True)]
        return tuple((each // 2, each - each // 2) for each in total)
    numbers = case.sides(() if case.padding == "valid" else case.padding, 0)
    return tuple((each, each) for each in numbers)


def convolved(case: Case, device: str, dtype: Any = np.float32) -> tuple[wg.Tensor, Array]:
    """The result, and what it must be."""
    x, weight, bias = drawn(*case.x, dtype=dtype), drawn(*case.weight, dtype=dtype), drawn(case.weight[0])
    function = getattr(wg, f"conv{case.count}d")
    stride, dilation = case.sides(case.stride, 1), case.sides(case.dilation, 1)
    result = function(
        wg.asarray(x, device=device),
        wg.asarray(weight, device=device),
        wg.asarray(bias.astype(dtype), device=device),
        stride=stride,
        padding=case.padding or 0,
        dilation=dilation,
        groups=case.groups,
    )
    expected = convolution(x, weight, stride, around(case), dilation, case.groups)
    return result, expected + bias.astype(dtype).reshape(-1, *[1] * case.count)


@pytest.mark.parametrize(("name", "device"), everywhere(CASES))
def test_convolutions(name: str, device: str) -> None:
    result, expected = convolved(CASES[name], device)
    assert result.dtype is wg.float32
    assert result.shape == expected.shape
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5, atol=2e-5)


LARGE = {
    "image": Case((2, 16, 33, 40), (24, 16, 3, 3), padding=(1, 1)),
    "many small ones": Case((24, 32, 7, 7), (16, 32, 3, 3), padding=(1, 1)),
    "groups": Case((3, 16, 30, 31), (32, 4, 3, 3), stride=(2, 1), groups=4),
    "line": Case((3, 8, 5000), (8, 8, 9), padding=(4,), dilation=(1,)),
    "volume": Case((1, 4, 9, 20, 21), (6, 4, 3, 3, 3), padding=(1, 1, 1)),
    "depthwise": Case((2, 32, 40, 41), (32, 1, 3, 3), padding=(1, 1), groups=32),
    "1 x 1 with stride": Case((2, 32, 41, 40), (16, 32, 1, 1), stride=(2, 2)),
}


@pytest.mark.parametrize("name", LARGE)
def test_large_convolutions_go_by_blocks(name: str) -> None:
    result, expected = convolved(LARGE[name], "cpu")
    np.testing.assert_allclose(wg.relu(result).numpy(), np.maximum(expected, 0), rtol=1e-4, atol=2e-4)
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-4, atol=2e-4)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [wg.float16, wg.bfloat16], ids=str)
def test_halves_are_summed_in_float32(dtype: wg.DType, device: str) -> None:
    cases = [CASES["groups"], CASES["depthwise"], LARGE["image"]] if device == "cpu" else [CASES["padded"]]
    for case in cases:
        result, expected = convolved(case, device, dtype.numpy)
        assert result.dtype is dtype
        found = result.astype(wg.float32).numpy()
        np.testing.assert_allclose(found, expected, rtol=2**-7, atol=2**-6)


def test_integers_and_mixed_types() -> None:
    x = np.arange(50, dtype=np.int32).reshape(1, 2, 5, 5)
    weight = np.arange(-9, 9, dtype=np.int32).reshape(1, 2, 3, 3)
    exact = convolution(x, weight, (1, 1), ((0, 0), (0, 0)), (1, 1), 1)
    result = wg.conv2d(wg.asarray(x, device="cpu"), wg.asarray(weight, device="cpu"))
    assert result.dtype is wg.int32
    np.testing.assert_array_equal(result.numpy(), exact)
    mixed = wg.conv2d(wg.asarray(x, device="cpu"), wg.asarray(weight.astype(np.float32), device="cpu"))
    np.testing.assert_allclose(mixed.numpy(), exact, rtol=1e-5)


def test_infinities_stay_where_they_are() -> None:
    x = np.zeros((1, 1, 6, 6), np.float32)
    x[0, 0, 1, 1] = np.inf
    x[0, 0, 4, 4] = np.nan
    found = wg.conv2d(wg.asarray(x, device="cpu"), wg.ones((1, 1, 2, 2), device="cpu")).numpy()[0, 0]
    assert np.isinf(found).sum() == 4
    assert np.isnan(found).sum() == 4
    assert not np.isfinite(found[:2, :2]).any()


def test_without_a_batch() -> None:
    x, weight = drawn(3, 8, 9), drawn(2, 3, 3, 3)
    with_batch = wg.conv2d(wg.asarray(x[None]), wg.asarray(weight), padding=1)
    alone = wg.conv2d(wg.asarray(x), wg.asarray(weight), padding=1)
    np.testing.assert_array_equal(alone.numpy(), with_batch.numpy()[0])


@pytest.mark.gpu
def test_a_convolution_with_bias_and_relu_is_one_kernel() -> None:
    x, weight = (wg.asarray(drawn(*shape), device="webgpu") for shape in ((2, 8, 8, 8), (16, 4, 3, 3)))
    bias = wg.asarray(drawn(16), device="webgpu")
    result = wg.relu(wg.conv2d(wg.relu(x), weight, bias, padding=1, groups=2))
    assert "1 kernel " in str(wg.explain(result))
    depthwise = wg.relu(wg.conv2d(x, weight[:8, :1], bias[:8], padding=1, groups=8))
    assert "1 kernel " in str(wg.explain(depthwise))


def test_patches_are_moved_and_not_copied() -> None:
    result = wg.conv2d(wg.asarray(drawn(1, 2, 5, 5)), wg.asarray(drawn(3, 2, 3, 3)), padding=1)
    assert {node.sig.kind for node in nodes_under([result.node])} <= {"leaf", "scalar", "move", "contract"}


# Transposed


TRANSPOSED = {
    "plain": Case((2, 3, 5, 4), (3, 2, 3, 3)),
    "twice as large": Case((1, 4, 4, 6), (4, 3, 4, 4), stride=(2, 2), padding=(1, 1)),
    "odd kernel": Case((2, 3, 5, 4), (3, 4, 3, 3), stride=(2, 2), padding=(1, 1), extra=(1, 1)),
    "uneven": Case((1, 2, 5, 3), (2, 3, 2, 5), stride=(3, 2), padding=(0, 2), extra=(2, 0)),
    "dilated": Case((1, 2, 5, 4), (2, 2, 3, 2), dilation=(2, 3), padding=(1, 0), extra=(1, 2)),
    "dilated with stride": Case((1, 2, 4, 5), (2, 2, 3, 2), stride=(2, 3), dilation=(3, 2), padding=(1, 1)),
    "groups": Case((2, 6, 4, 4), (6, 2, 3, 3), stride=(2, 1), groups=3),
    "depthwise": Case((1, 4, 5, 5), (4, 1, 2, 2), stride=(2, 2), groups=4),
    "much padding": Case((1, 2, 6, 6), (2, 2, 3, 3), padding=(3, 2)),
    "stride beyond the kernel": Case((1, 2, 3, 4), (2, 3, 2, 1), stride=(4, 3)),
    "one axis": Case((2, 3, 9), (3, 2, 4), stride=(2,), padding=(1,)),
    "three axes": Case((1, 2, 3, 2, 4), (2, 2, 2, 3, 2), stride=(2, 1, 2), padding=(0, 1, 0)),
    "empty batch": Case((0, 3, 6, 6), (3, 4, 3, 3), stride=(2, 2)),
}


@pytest.mark.parametrize("least_work", [0, products._LEAST_WORK])
@pytest.mark.parametrize(("name", "device"), everywhere(TRANSPOSED))
def test_transposed_convolutions(
    name: str, device: str, least_work: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(products, "_LEAST_WORK", least_work)  # 0: the parts of a kernel are multiplied apart
    case = TRANSPOSED[name]
    x, weight = drawn(*case.x), drawn(*case.weight)
    bias = drawn(case.weight[1] * case.groups)
    stride, dilation = case.sides(case.stride, 1), case.sides(case.dilation, 1)
    padding, extra = case.sides(case.padding, 0), case.sides(case.extra, 0)
    operands = [wg.asarray(each, device=device) for each in (x, weight, bias)]
    function = getattr(wg, f"conv_transpose{case.count}d")
    result = function(*operands, stride, padding, extra, case.groups, dilation)
    expected = transposed(x, weight, stride, padding, extra, dilation, case.groups)
    expected += bias.reshape(-1, *[1] * case.count)
    assert result.shape == expected.shape
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5, atol=2e-5)


# Mistakes


def tensors(arguments: dict[str, Any]) -> dict[str, Any]:
    return {
        name: wg.asarray(each) if isinstance(each, np.ndarray) else each for name, each in arguments.items()
    }


X, W = np.zeros((1, 4, 6, 6), np.float32), np.zeros((8, 4, 3, 3), np.float32)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"x": X[0, 0]}, ShapeError, r"conv2d takes x as \(N, C, H, W\) or \(C, H, W\), not \(6, 6\)"),
        ({"x": X[:, :3]}, ShapeError, r"\(1, 3, 6, 6\).*x must have 4 channels, not 3"),
        ({"weight": W[0]}, ShapeError, r"weight \(O, C / groups, kh, kw\).*\(4, 3, 3\)"),
        ({"weight": W[:0]}, ShapeError, "with elements in it"),
        ({"groups": 3}, ShapeError, "groups=3.*x must have 12 channels"),
        ({"weight": W[:7, :2], "groups": 2}, ShapeError, "groups=2.*a multiple of groups, which 7 is not"),
        ({"groups": 0}, ArgumentError, "groups is 1 or more"),
        ({"bias": np.zeros(3, np.float32)}, ShapeError, r"each of 8 output channels, not \(3,\)"),
        ({"stride": 0}, ArgumentError, "stride is 1 or more"),
        ({"stride": (1, 1, 1)}, ArgumentError, "one for each of 2 axes"),
        ({"stride": 1.5}, DTypeError, "stride must be an integer"),
        ({"padding": -1}, ArgumentError, "padding is 0 or more"),
        ({"padding": "equal"}, ArgumentError, "'same' or 'valid', not 'equal'"),
        ({"padding": "same", "stride": 2}, ArgumentError, "stride=1 only"),
        (
            {"dilation": 3},
            ShapeError,
            r"kernel of \(3, 3\) with dilation \(3, 3\) does not fit into \(6, 6\)",
        ),
        ({"x": X > 0, "weight": W > 0}, DTypeError, "conv2d is not offered for bool"),
    ],
)
def test_mistakes(options: dict[str, Any], error: type[Exception], words: str) -> None:
    arguments = {"x": X, "weight": W} | options
    with pytest.raises(error, match=words):
        wg.conv2d(**tensors(arguments))


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"output_padding": 1}, ArgumentError, "output_padding .* smaller than the stride"),
        ({"padding": 9}, ShapeError, "nothing is left"),
        ({"groups": 3}, ShapeError, "groups=3.*a multiple of groups, which 4 is not"),
        ({"x": X[:, :3]}, ShapeError, "x must have 4 channels, not 3"),
        ({"bias": np.zeros(4, np.float32)}, ShapeError, "each of 8 output channels"),
    ],
)
def test_transposed_mistakes(options: dict[str, Any], error: type[Exception], words: str) -> None:
    arguments = {"x": X, "weight": np.moveaxis(W, 0, 1)} | options
    with pytest.raises(error, match=words):
        wg.conv_transpose2d(**tensors(arguments))


def test_complex_numbers_are_convolved_by_their_parts() -> None:
    shapes = ((1, 1, 6), (1, 1, 3), (1,))
    x, weight, bias = (drawn(*each) + 1j * drawn(*each, 1).reshape(each) for each in shapes)
    given: Any = [wg.asarray(each.astype(np.complex64)) for each in (x, weight, bias)]
    found = wg.conv1d(*given).numpy()[0, 0]
    np.testing.assert_allclose(found, np.correlate(x[0, 0], weight[0, 0].conj(), "valid") + bias, rtol=1e-4)
    own = given[1].requires_grad_()
    wg.abs(wg.conv1d(wg.asarray(x.real.astype(np.float32)), own)).sum().backward()
    assert own.grad.dtype is wg.complex64
