"""Gradients of functions: grad and value_and_grad, functions with gradients of their own, recomputing."""

from __future__ import annotations

import sys
import tracemalloc
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad.errors import ArgumentError, GradientError


def parameter(values: Any, **more: Any) -> Any:
    """A tensor that asks for a gradient."""
    return wg.asarray(values, **more).requires_grad_()


# grad and value_and_grad


def test_gradients_by_several_arguments() -> None:
    function = wg.value_and_grad(lambda a, b, scale: (a * a * b).sum() * scale, argnums=(0, 1))
    value, (of_a, of_b) = function(wg.asarray([1.0, 2.0]), wg.asarray([3.0, 4.0]), 2.0)
    assert (value.item(), of_a.tolist(), of_b.tolist()) == (38.0, [12.0, 32.0], [2.0, 8.0])
    last = wg.grad(lambda a, b: (a * b * b).sum(), argnums=-1)
    assert last(wg.ones(2), wg.asarray([1.0, 2.0])).tolist() == [2.0, 4.0]
    one = wg.grad(lambda a, b: (a * b).sum(), argnums=[0])
    assert [each.tolist() for each in one(wg.ones(1), wg.asarray([5.0]))] == [[5.0]]


def test_gradients_have_the_nesting_of_the_argument() -> None:
    def loss(model: Any) -> Any:
        first, second = model["layers"]
        return (first["w"] * 2).sum() + (second[0] ** 2).sum() + model["bias"] * 3

    model = {
        "layers": [{"w": wg.ones(2)}, (wg.asarray([3.0]), wg.ones(1))],
        "bias": wg.asarray(1.0),
        "name": "mlp",
        "rate": 0.5,
    }
    found = wg.grad(loss)(model)
    assert found["layers"][0]["w"].tolist() == [2.0, 2.0]
    assert found["layers"][1][0].tolist() == [6.0]
    assert found["layers"][1][1].tolist() == [0.0]  # not used
    assert found["bias"].item() == 3.0
    assert isinstance(found["layers"][1], tuple)


def test_other_results_go_beside_the_value() -> None:
    def function(x: Any) -> Any:
        return (x * x).sum(), {"hidden": x * 2, "count": 7}

    (value, aux), gradient = wg.value_and_grad(function, has_aux=True)(wg.asarray([1.0, 2.0]))
    assert (value.item(), aux["hidden"].tolist(), aux["count"]) == (5.0, [2.0, 4.0], 7)
    assert gradient.tolist() == [2.0, 4.0]
    gradient, aux = wg.grad(function, has_aux=True)(wg.asarray([1.0, 2.0]))
    assert (gradient.tolist(), aux["count"]) == ([2.0, 4.0], 7)


def test_gradients_of_gradients() -> None:
    def function(x: Any) -> Any:
        return (x**3).sum()

    second = wg.grad(lambda x: wg.grad(function)(x).sum())
    third = wg.grad(lambda x: second(x).sum())
    x = wg.asarray([1.0, 2.0])
    assert (second(x).tolist(), third(x).tolist()) == ([6.0, 12.0], [6.0, 6.0])
    mixed = wg.grad(lambda a, b: wg.grad(lambda a, b: a * a * b * b)(a, b), argnums=1)
    assert mixed(wg.asarray(2.0), wg.asarray(3.0)).item() == 24.0


def test_the_arguments_are_left_as_they_were() -> None:
    x, y = wg.asarray([1.0]), parameter([2.0])
    value, gradient = wg.value_and_grad(lambda x: (x * x).sum())(x)
    assert not x.requires_grad
    assert not value.requires_grad
    assert not gradient.requires_grad
    wg.grad(lambda y: (y * y).sum())(y)
    assert y.grad is None


def test_closed_over_tensors_may_ask_for_gradients_too() -> None:
    w = parameter([3.0])
    gradient = wg.grad(lambda x: (w * x * x).sum())(wg.asarray([2.0]))
    assert gradient.tolist() == [12.0]
    assert gradient.requires_grad
    assert not isinstance(w.grad, wg.Tensor)
    gradient.sum().backward()
    assert w.grad.tolist() == [4.0]


def test_a_gradient_penalty() -> None:
    """The usual mixed use: a gradient by the input, part of a loss by the weights."""
    w, x = parameter([[1.0], [2.0]]), wg.asarray([[0.5, 1.0]])
    inner = wg.grad(lambda x: wg.tanh(x @ w).sum())(x)
    (inner * inner).sum().backward()
    step, found = 1e-3, []
    for at in range(2):
        values = []
        for sign in (1, -1):
            moved = np.array([[1.0], [2.0]])
            moved[at] += sign * step
            slope = (1 - np.tanh(x.numpy() @ moved) ** 2) * moved.T
            values.append((slope**2).sum())
        found.append((values[0] - values[1]) / (2 * step))
    np.testing.assert_allclose(w.grad.numpy().ravel(), found, rtol=1e-3)


def test_arguments_that_already_have_a_history() -> None:
    w = parameter([2.0])
    gradient = wg.grad(lambda x: (x**3).sum())(w * 3)
    assert gradient.tolist() == [108.0]
    gradient.sum().backward()
    assert w.grad.tolist() == [3 * 6 * 6.0]


def test_grad_under_no_grad_still_computes_gradients() -> None:
    with wg.no_grad():
        gradient = wg.grad(lambda x: (x * x).sum())(wg.asarray([1.0, 2.0]))
    assert gradient.tolist() == [2.0, 4.0]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: wg.grad(lambda x: x * 2)(wg.ones(2)), r"shape \(2,\).*sum\(\)"),
        (lambda: wg.grad(lambda x: 3.0)(wg.ones(2)), "float"),
        (lambda: wg.grad(lambda x: x.sum())(wg.ones(2, dtype=wg.int32)), "int32.*argnums"),
        (lambda: wg.grad(lambda x: (x > 0).sum())(wg.ones(2)), "int32.*single float"),
        (lambda: wg.grad(lambda x: (x.sum(), 1))(wg.ones(2)), "has_aux"),
        (lambda: wg.grad(lambda x: x.sum(), has_aux=True)(wg.ones(2)), "has_aux"),
    ],
)
def test_what_has_no_gradient_is_refused_at_the_call(call: Any, words: str) -> None:
    with pytest.raises(GradientError, match=words):
        call()


def test_arguments_that_are_not_there() -> None:
    with pytest.raises(ArgumentError, match=r"argnums=2.*1 positional"):
        wg.grad(lambda x: x.sum(), argnums=2)(wg.ones(2))
    with pytest.raises(ArgumentError, match="takes a function"):
        wg.grad(3)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="argnums"):
        wg.grad(lambda x: x.sum(), argnums=())(wg.ones(2))
    with pytest.raises(ArgumentError, match="no tensor"):
        wg.grad(lambda x: wg.ones(()) * x)(3.0)


def test_the_same_tensor_twice() -> None:
    x = wg.asarray([2.0])
    assert [each.tolist() for each in wg.grad(lambda a, b: (a * a * b).sum(), (0, 1))(x, x)] == [[8.0], [4.0]]


def test_a_function_may_change_its_arguments_in_place() -> None:
    def function(x: Any) -> Any:
        x[0] = x[1] * 3
        x *= x
        return x.sum()

    x = wg.asarray([5.0, 2.0])
    value, gradient = wg.value_and_grad(function)(x)
    assert (value.item(), gradient.tolist(), x.tolist()) == (40.0, [0.0, 40.0], [5.0, 2.0])


# Functions with a gradient of their own


def test_a_gradient_of_several_results_and_arguments() -> None:
    seen: list[Any] = []

    @wg.custom_gradient
    def both(a: Any, b: Any, *, scale: float) -> Any:
        def pull(of_sum: Any, of_product: Any) -> Any:
            seen.append((of_sum is None, of_product is None))
            return of_sum * scale, None

        return (a + b, a * b), pull

    a, b = parameter([1.0]), parameter([2.0])
    total, _ = both(a, b, scale=5.0)
    total.sum().backward()
    assert (a.grad.tolist(), b.grad.tolist()) == ([5.0], [0.0])
    assert seen == [(False, True)]


def test_a_straight_through_estimator() -> None:
    @wg.custom_gradient
    def rounded(x: Any) -> Any:
        return wg.round(x), lambda g: g

    x = parameter([0.4, 1.6])
    (rounded(x) * wg.asarray([1.0, 10.0])).sum().backward()
    assert x.grad.tolist() == [1.0, 10.0]
    assert wg.grad(lambda x: rounded(x).sum())(wg.asarray([0.3])).tolist() == [1.0]


def test_a_gradient_of_ones_own_has_derivatives_if_it_is_made_of_tensors() -> None:
    @wg.custom_gradient
    def cube(x: Any) -> Any:
        return x * x * x, lambda g: g * 3 * x * x

    second = wg.grad(wg.grad(cube))
    assert second(wg.asarray(2.0)).item() == 12.0


def test_gradients_that_do_not_fit_are_refused() -> None:
    @wg.custom_gradient
    def wrong_count(a: Any, b: Any) -> Any:
        return a + b, lambda g: (g, g, g)

    @wg.custom_gradient
    def wrong_shape(a: Any) -> Any:
        return a * 2, lambda g: wg.ones(5)

    @wg.custom_gradient
    def no_function(a: Any) -> Any:
        return a * 2

    with pytest.raises(GradientError, match="3 gradients for 2"):
        wrong_count(parameter([1.0]), parameter([2.0])).backward()
    with pytest.raises(GradientError, match="shape"):
        wrong_shape(parameter([1.0])).backward()
    with pytest.raises(GradientError, match="no_function"):
        no_function(parameter([1.0]))


def test_the_inside_of_a_custom_function_is_not_differentiated() -> None:
    @wg.custom_gradient
    def logarithm(x: Any) -> Any:
        return wg.log(x), lambda g: wg.where(x > 0, g / wg.where(x > 0, x, 1.0), 0.0)

    x = parameter([0.0, 2.0])
    logarithm(x)[1:].sum().backward()
    assert x.grad.tolist() == [0.0, 0.5]
    with wg.no_grad():
        assert not logarithm(x).requires_grad
    assert not logarithm(wg.ones(1)).requires_grad


# Computing again


def block(x: Any, w: Any) -> Any:
    """Something with values on the way."""
    return wg.tanh(x @ w) * wg.sigmoid(x)


def test_a_checkpoint_gives_the_same_gradients() -> None:
    values = np.random.default_rng(0).normal(size=(3, 3)).astype(np.float32)
    gradients = []
    for function in (block, lambda *args: wg.checkpoint(block, *args)):
        x, w = parameter(values), parameter(values * 0.5)
        (function(function(x, w), w) ** 2).sum().backward()
        gradients.append((x.grad.numpy(), w.grad.numpy()))
    np.testing.assert_allclose(gradients[0][0], gradients[1][0], rtol=1e-5)
    np.testing.assert_allclose(gradients[0][1], gradients[1][1], rtol=1e-5)


def test_a_checkpoint_sees_what_it_closes_over_and_gives_several_results() -> None:
    w, x = parameter([2.0]), parameter([3.0])

    def function(x: Any, *, factor: float) -> Any:
        return {"a": x * w * factor, "b": [w * w]}

    found = wg.checkpoint(function, x, factor=2.0)
    (found["a"] + found["b"][0] * 10).sum().backward()
    assert (w.grad.tolist(), x.grad.tolist()) == ([6 + 40.0], [4.0])


def test_a_checkpoint_draws_the_same_random_numbers_again() -> None:
    x = parameter(np.ones(1000, np.float32))
    kept: list[Any] = []

    def dropped(x: Any) -> Any:
        mask = wg.random.bernoulli(0.5, x.shape)
        kept.append(mask)
        return wg.where(mask, x * 2, 0.0)

    y = wg.checkpoint(dropped, x)
    between = wg.random.uniform(shape=4).tolist()
    y.sum().backward()
    assert x.grad.tolist() == y.tolist()
    assert len(kept) == 2
    assert wg.random.uniform(shape=4).tolist() != between


def test_a_checkpoint_computes_in_the_precision_it_did_the_first_time() -> None:
    x = wg.asarray(np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4))
    gradients: list[Any] = []
    for run in (lambda function, x: function(x), wg.checkpoint):
        w: Any = wg.asarray(np.linspace(0.1, 0.9, 16, dtype=np.float32).reshape(4, 4)).requires_grad_()
        with wg.amp.autocast():
            loss = run(lambda x, w=w: (wg.tanh(x @ w) @ w).sum(), x)
        loss.backward()
        gradients.append(w.grad.numpy())
    np.testing.assert_array_equal(gradients[0], gradients[1])


def test_a_checkpoint_of_what_was_changed_since_is_refused() -> None:
    w = wg.ones(3).requires_grad_()
    loss = wg.checkpoint(lambda x: (w * w * x).sum(), wg.ones(3))
    with wg.no_grad():
        w += 1.0
    with pytest.raises(GradientError, match=r"changed or replaced since.*before the optimiser"):
        loss.backward()


def test_checkpoints_in_checkpoints_and_second_derivatives() -> None:
    def inner(x: Any) -> Any:
        return wg.exp(x * 0.5)

    def outer(x: Any) -> Any:
        return wg.checkpoint(inner, x) * x

    def checked(x: Any) -> Any:
        return wg.checkpoint(outer, x).sum()

    def plain(x: Any) -> Any:
        return (inner(x) * x).sum()

    x = wg.asarray([1.0, 2.0])
    np.testing.assert_allclose(wg.grad(checked)(x).numpy(), wg.grad(plain)(x).numpy(), rtol=1e-6)
    twice = [wg.grad(lambda x, f=f: wg.grad(f)(x).sum())(x).numpy() for f in (checked, plain)]
    np.testing.assert_allclose(twice[0], twice[1], rtol=1e-6)


def test_a_checkpoint_of_what_needs_no_gradient_is_the_function_itself() -> None:
    calls: list[Any] = []

    def function(x: Any) -> Any:
        calls.append(x)
        return x * 2

    assert wg.checkpoint(function, wg.ones(1)).tolist() == [2.0]
    with wg.no_grad():
        assert not wg.checkpoint(function, parameter([1.0])).requires_grad
    assert len(calls) == 2


@pytest.mark.usefixtures("compiled_at_once")
def test_a_checkpoint_needs_less_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one plan, forwards and backwards; values are only computed together at the end."""
    monkeypatch.setattr("webgrad.cpu.layout.KEPT", 0)  # so that each run asks for its memory …
    monkeypatch.setattr("webgrad.runtime.host_buffers.LARGE", sys.maxsize)  # … where it is traced

    def peak(layer: Any, *, traced: bool) -> int:
        x = parameter(np.ones((128, 128), np.float32), device="cpu")
        w = wg.asarray(np.eye(128, dtype=np.float32), device="cpu")
        y = x
        for _ in range(3):
            y = layer(y, w)
        y.sum().backward()
        if traced:
            tracemalloc.start()
        try:
            wg.eval(x.grad)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    def deep(x: Any, w: Any) -> Any:
        for _ in range(4):
            x = wg.tanh(x @ w)
        return x

    def checked(x: Any, w: Any) -> Any:
        return wg.checkpoint(deep, x, w)

    for layer in (deep, checked):
        peak(layer, traced=False)  # the plan is made

    def least(layer: Any) -> int:  # a thread may compile what another test asked for
        return min(peak(layer, traced=True) for _ in range(5))

    assert least(checked) < 0.75 * least(deep)
