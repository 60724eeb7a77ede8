"""Gradients of convolutions against finite differences of plain loops, which are exact: both are linear in
each of their operands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.functions.convolution.test_convolution import CASES, LARGE, TRANSPOSED, Case, around, drawn
from tests.functions.convolution.windows_reference import convolution, transposed
from tests.functions.devices import place
from tests.graph.helpers import graph_of
from webgrad.errors import GradientError
from webgrad.evaluate.evaluate import snapshot_of

Array = np.ndarray[Any, Any]
Function = Callable[..., Any]
# Each case compiles kernels of its own, on the test adapter as a discrete GPU for seconds.
ON_GPUS = {
    "software": ("uneven", "groups", "depthwise, several", "odd kernel"),
    "discrete": ("padded", "odd kernel"),
}


def everywhere(cases: dict[str, Case]) -> list[Any]:
    on_gpus = [(name, kind) for kind, names in ON_GPUS.items() for name in names if name in cases]
    return [
        *[pytest.param(name, "cpu") for name in cases],
        *[pytest.param(name, kind, marks=pytest.mark.gpu) for name, kind in on_gpus],
    ]


def functions(case: Case, *, is_transposed: bool) -> tuple[Function, Function]:
    """webgrad's function of x and the weight, and the reference's."""
    stride, dilation = case.sides(case.stride, 1), case.sides(case.dilation, 1)
    if is_transposed:
        padding, extra = case.sides(case.padding, 0), case.sides(case.extra, 0)
        function = getattr(wg, f"conv_transpose{case.count}d")
        return (
            lambda x, w: function(x, w, None, stride, padding, extra, case.groups, dilation),
            lambda x, w: transposed(x, w, stride, padding, extra, dilation, case.groups),
        )
    function = getattr(wg, f"conv{case.count}d")
    return (
        lambda x, w: function(x, w, None, stride, case.padding or 0, dilation, case.groups),
        lambda x, w: convolution(x, w, stride, around(case), dilation, case.groups),
    )


def slopes(function: Function, operands: list[Array], g: Array) -> list[Array]:
    """The gradients of Σ g · function(x, w), element by element."""
    found = []
    for at, operand in enumerate(operands):
        result = np.zeros(operand.shape)
        for index in np.ndindex(*operand.shape):
            step = np.zeros(operand.shape)
            step[index] = 1
            given = [step if at == each else other for each, other in enumerate(operands)]
            result[index] = (function(*given) * g).sum()
        found.append(result)
    return found


def check(case: Case, kind: str, *, is_transposed: bool) -> None:
    ours, reference = functions(case, is_transposed=is_transposed)
    operands = [drawn(*case.x), drawn(*case.weight)]
    g = drawn(*reference(*operands).shape)
    tensors = [place(kind, each).requires_grad_() for each in operands]
    ours(*tensors).backward(place(kind, g))
    for found, expected in zip(tensors, slopes(reference, operands, g), strict=True):
        assert found.grad is not None
        np.testing.assert_allclose(found.grad.numpy(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("name", "kind"), everywhere(CASES))
def test_convolutions(name: str, kind: str) -> None:
    check(CASES[name], kind, is_transposed=False)


@pytest.mark.parametrize(("name", "kind"), everywhere(TRANSPOSED))
def test_transposed(name: str, kind: str) -> None:
    check(TRANSPOSED[name], kind, is_transposed=True)


def inner(function: Function, x: Any, w: Any, g: Any) -> Any:
    """Σ g · function(x, w)² through its gradients: of second order in all three."""
    both = wg.grad(lambda x, w: (function(x, w) * g).sum(), argnums=(0, 1))(x, w)
    return (both[0] * both[0]).sum() + (both[1] * both[1]).sum()


@pytest.mark.parametrize("name", ["uneven", "groups", "depthwise, several", "odd kernel"])
def test_second_derivatives(name: str) -> None:
    is_transposed = name in TRANSPOSED and name not in CASES
    case = (TRANSPOSED if is_transposed else CASES)[name]
    ours, reference = functions(case, is_transposed=is_transposed)
    generator = np.random.default_rng(0)
    values = [generator.normal(size=shape) for shape in (case.x, case.weight)]
    values.append(generator.normal(size=reference(*values).shape))
    tensors = [wg.asarray(each, device="cpu") for each in values]
    found = wg.grad(lambda x, w, g: inner(ours, x, w, g), argnums=(0, 1, 2))(*tensors)
    for at, gradient in enumerate(found):
        way = generator.normal(size=values[at].shape)
        ends = []
        for sign in (1, -1):
            moved = [each + sign * 1e-4 * way if at == n else each for n, each in enumerate(values)]
            ends.append(inner(ours, *(wg.asarray(each, device="cpu") for each in moved)).item())
        expected = (ends[0] - ends[1]) / 2e-4
        np.testing.assert_allclose((gradient.numpy() * way).sum(), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", LARGE)
def test_large_ones_go_by_blocks(name: str) -> None:
    """⟨g, conv(x, w)⟩ is linear in x and in w: each gradient by what it belongs to gives it back."""
    case = LARGE[name]
    ours, reference = functions(case, is_transposed=False)
    x, weight = drawn(*case.x), drawn(*case.weight)
    other = np.random.default_rng(5)
    ways = [other.standard_normal(each.shape, np.float32) for each in (x, weight)]
    g = drawn(*reference(x, weight).shape)
    gradients = wg.grad(lambda x, w: (ours(x, w) * wg.asarray(g, device="cpu")).sum(), argnums=(0, 1))(
        wg.asarray(x, device="cpu"), wg.asarray(weight, device="cpu")
    )
    for gradient, way, given in zip(gradients, ways, ((ways[0], weight), (x, ways[1])), strict=True):
        expected = (reference(*given) * g).sum()
        scale = np.abs(gradient.numpy()).sum() * np.abs(way).mean()
        np.testing.assert_allclose((gradient.numpy() * way).sum(), expected, atol=1e-5 * scale)


@pytest.mark.parametrize("kind", ["cpu", pytest.param("software", marks=pytest.mark.gpu)])
def test_halves(kind: str) -> None:
    x, weight = drawn(2, 4, 8, 8).astype(np.float16), drawn(6, 4, 3, 3).astype(np.float16)
    tensors = [place(kind, each).requires_grad_() for each in (x, weight)]
    wg.conv2d(tensors[0], tensors[1], padding=1).backward(place(kind, np.ones((2, 6, 8, 8), np.float16)))
    expected = slopes(
        lambda x, w: convolution(x, w, (1, 1), ((1, 1), (1, 1)), (1, 1), 1),
        [x, weight],
        np.ones((2, 6, 8, 8)),
    )
    for found, wanted in zip(tensors, expected, strict=True):
        assert found.grad is not None
        assert found.grad.dtype is wg.float16
        np.testing.assert_allclose(found.grad.numpy(), wanted, rtol=2**-9, atol=2**-7)


def test_only_what_asks_for_a_gradient_gets_one() -> None:
    x, weight = wg.ones((1, 2, 5, 5)), wg.ones((3, 2, 3, 3)).requires_grad_()
    loss = wg.conv2d(x, weight).sum()
    loss.backward()
    assert x.grad is None
    assert weight.grad is not None
    assert not wg.conv2d(x, wg.ones((3, 2, 3, 3))).requires_grad
    with pytest.raises(GradientError, match="retain_graph"):
        loss.backward()


def test_operands_may_be_changed_before_gradients_are_asked_for() -> None:
    weight = wg.ones((1, 1, 2, 2)).requires_grad_()
    x = wg.ones((1, 1, 3, 3)).requires_grad_()
    result = wg.conv2d(x, weight).sum()
    with wg.no_grad():
        weight *= 5.0
    result.backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[[[1.0, 2.0, 1.0], [2.0, 4.0, 2.0], [1.0, 2.0, 1.0]]]]


def test_gradients_are_products_with_windows_that_nobody_stores() -> None:
    x, weight = wg.ones((2, 4, 8, 8)), wg.ones((6, 4, 3, 3))
    gradients = wg.grad(lambda x, w: wg.conv2d(x, w, padding=1).sum(), argnums=(0, 1))(x, weight)
    graph = snapshot_of([each.node for each in gradients])
    kinds = {graph.sigs[each].kind for each in graph.order()}
    assert kinds <= {"leaf", "scalar", "move", "contract"}
    graph = graph_of(*gradients)
    assert sum(graph.sigs[each].kind == "contract" for each in graph.order()) == 2


@pytest.mark.parametrize("kind", ["cpu", pytest.param("software", marks=pytest.mark.gpu)])
def test_a_captured_step_learns(kind: str) -> None:
    """A kernel is found again from what it does."""
    wanted = drawn(3, 2, 3, 3)
    x = place(kind, drawn(4, 2, 9, 9))
    goal = wg.conv2d(x, place(kind, wanted), stride=2)
    weight: Any = place(kind, np.zeros((3, 2, 3, 3), np.float32)).requires_grad_()

    @wg.jit
    def step() -> Any:
        weight.grad = None
        loss = ((wg.conv2d(x, weight, stride=2) - goal) ** 2).mean()
        loss.backward()
        with wg.no_grad():
            weight.__isub__(0.4 * weight.grad)
        return loss

    losses = [step().item() for _ in range(12)]
    assert losses[-1] < 0.1 * losses[0]
