"""Functions whose graphs are built once: what is built, that values and gradients are the function's own, and
what is called as any function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import ref

import numpy as np
import pytest

import webgrad as wg
from tests.functions.devices import everywhere, place
from webgrad.evaluate.evaluate import plans, snapshot_of
from webgrad.gradients.history import Composed
from webgrad.graph.walk import pending

RNG = np.random.default_rng(0)
X, Y = (RNG.standard_normal((3, 4)).astype(np.float32) for _ in range(2))


def kinds_under(*tensors: wg.Tensor) -> list[str]:
    return sorted(each.sig.kind for each in pending([one.node for one in tensors]))


def gradient_of(x: wg.Tensor) -> Any:
    assert x.grad is not None
    return x.grad.numpy()


class Counted:
    """A function, and how often its code ran."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.calls = 0

        def counted(*args: Any, **named: Any) -> Any:
            self.calls += 1
            return function(*args, **named)

        self.function = wg.pure(counted)

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self.function(*args, **named)


def distance(x: wg.Tensor, y: wg.Tensor, scale: float = 1.0) -> wg.Tensor:
    difference = x - y
    return (difference * difference).sum(axis=1) * scale


@everywhere
def test_the_code_runs_once_for_each_kind_of_arguments(kind: str) -> None:
    function = Counted(distance)
    for _ in range(3):
        found = function(place(kind, X), place(kind, Y), scale=2.0)
        np.testing.assert_allclose(found.numpy(), 2 * ((X - Y) ** 2).sum(1), rtol=1e-5)
    assert function.calls == 1
    np.testing.assert_allclose(function(place(kind, X[:2]), place(kind, Y[:2]), 2.0).numpy().shape, (2,))
    assert function.calls == 2
    function(place(kind, X), place(kind, Y), scale=2)  # an integer may make another result
    assert function.calls == 3


def test_a_composite_is_one_node_of_what_it_computes() -> None:
    function = wg.pure(distance)
    x, y = wg.asarray(X, device="cpu"), wg.asarray(Y, device="cpu")
    plain, made = distance(x, y), function(x, y)
    assert kinds_under(made) == ["composite", "leaf", "leaf", "scalar"]
    inside, expected = (snapshot_of([each.node]) for each in (made, plain))
    assert sorted(inside.sigs[each].op.name for each in inside.order()) == sorted(
        expected.sigs[each].op.name for each in expected.order()
    )


def test_numbers_in_it_are_no_structure() -> None:
    function = wg.pure(distance)
    x, y = wg.asarray(X, device="cpu"), wg.asarray(Y, device="cpu")
    function(x, y, 1.5).numpy()
    before = plans()
    for scale in (2.5, -3.0):
        np.testing.assert_allclose(function(x, y, scale).numpy(), scale * ((X - Y) ** 2).sum(1), rtol=1e-5)
    assert plans() == before


@everywhere
def test_gradients_are_the_functions_own(kind: str) -> None:
    def both(x: wg.Tensor, y: wg.Tensor) -> wg.Tensor:
        return ((x.sigmoid() * y).sum(axis=0).exp() + x.mean()).sum()

    pure = wg.pure(both)
    for _ in range(2):
        found: list[Any] = []
        expected: list[Any] = []
        for function, into in ((pure, found), (both, expected)):
            x, y = place(kind, X).requires_grad_(), place(kind, Y).requires_grad_()
            (function(x * 2.0, y) * 3.0).backward()
            into += [gradient_of(x), gradient_of(y)]
        for each, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(each, other, rtol=2e-5)


def test_of_several_results_gradients_go_through_those_that_are_used() -> None:
    @wg.pure
    def parts(x: wg.Tensor) -> tuple[wg.Tensor, list[wg.Tensor]]:
        wide = x.exp() * 2.0
        return wide.sum(), [wide.mean(axis=0), (wide * wide).sum(axis=1)]

    x = wg.asarray(X, device="cpu").requires_grad_()
    total, (mean, squares) = parts(x)
    assert (total.shape, mean.shape, squares.shape) == ((), (4,), (3,))
    assert kinds_under(total, mean).count("bundle") == 1
    (total + squares.sum()).backward()
    exact = np.exp(X.astype(np.float64))
    np.testing.assert_allclose(gradient_of(x), 2 * exact + 8 * exact * exact, rtol=1e-5)
    np.testing.assert_allclose(mean.numpy(), 2 * exact.mean(0), rtol=1e-5)


def test_gradients_of_gradients() -> None:
    cube = wg.pure(lambda x: (x * x * x).sum())
    second = wg.grad(lambda x: wg.grad(cube)(x).sum())
    np.testing.assert_allclose(second(wg.asarray(X, device="cpu")).numpy(), 6 * X, rtol=1e-5)
    x = wg.asarray(X, device="cpu").requires_grad_()
    cube(x * 1.0).backward(create_graph=True)
    assert x.grad is not None
    x.grad.sum().backward()
    np.testing.assert_allclose(gradient_of(x), 3 * X * X + 6 * X, rtol=1e-4, atol=1e-5)


def test_a_value_that_was_read_before_backward() -> None:
    function = wg.pure(lambda x: (x.exp() * x).sum())
    x = wg.asarray(X, device="cpu").requires_grad_()
    loss = function(x)
    np.testing.assert_allclose(loss.item(), (np.exp(X) * X).sum(), rtol=1e-5)
    loss.backward()
    np.testing.assert_allclose(gradient_of(x), np.exp(X) * (1 + X), rtol=1e-5)


def test_what_is_read_of_it_is_computed_once() -> None:
    """The gradient's body computes exp anew, but in the graph there is one."""
    function = wg.pure(lambda x: (x.exp() + 1.0).log().sum())
    x = wg.asarray(X, device="cpu").requires_grad_()
    loss = function(x)
    loss.backward()
    assert x.grad is not None
    graph = snapshot_of([loss.node, x.grad.node])
    names = [graph.sigs[each].op.name for each in graph.order()]
    assert names.count("exp") == 1


MEMORY = wg.asarray(Y, device="cpu")


GENERATOR = wg.random.Generator(3)


def drawn(x: wg.Tensor) -> wg.Tensor:
    return x + GENERATOR.uniform(x.shape, device=x.device)


def closed(x: wg.Tensor) -> wg.Tensor:
    return x * MEMORY + 1.0 - x


def reading(x: wg.Tensor) -> wg.Tensor:
    return x * 2.0 if x.sum().item() > 1e9 else x * 3.0 + 1.0 - x


def viewing(x: wg.Tensor) -> wg.Tensor:
    return x.reshape(4, 3)


def changing(x: wg.Tensor) -> wg.Tensor:
    x += 1.0
    return x * 1.0


@pytest.mark.parametrize("function", [drawn, closed, reading, viewing, changing])
def test_what_is_not_pure_is_called_each_time(function: Callable[[wg.Tensor], wg.Tensor]) -> None:
    counted = Counted(function)
    x = wg.asarray(X, device="cpu")
    first = counted(x)
    again = counted(x)
    assert counted.calls > 2  # once to see, and for each call
    if function is drawn:
        GENERATOR.seed(5)
        known = wg.pure(drawn)(x), drawn(x)
        GENERATOR.seed(5)
        for each in known:  # looking whether it draws took no numbers
            np.testing.assert_array_equal(drawn(x).numpy(), each.numpy())
        assert not np.array_equal(first.numpy(), again.numpy())
    elif function is viewing:
        first += 1.0
        np.testing.assert_allclose(x.numpy(), X + 1.0)
    elif function is changing:
        np.testing.assert_allclose(again.numpy(), X + 2.0, rtol=1e-5)
    else:
        np.testing.assert_array_equal(first.numpy(), again.numpy())


def noisy(x: wg.Tensor) -> wg.Tensor:
    kept = wg.random.bernoulli(0.5, x.shape, device=x.device)
    return wg.where(kept, x * wg.random.uniform(x.shape, device=x.device), 0.0)


@everywhere
def test_what_it_draws_is_what_the_function_draws(kind: str) -> None:
    x = place(kind, X)
    function = Counted(noisy)
    wg.random.seed(7)
    wanted = [noisy(x).numpy() for _ in range(4)]
    state = wg.random.get_state()
    wg.random.seed(7)
    found = [function(x) for _ in range(4)]
    assert function.calls == 1
    assert wg.random.get_state() == state
    assert kinds_under(found[3]).count("composite") == 1
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one.numpy(), other, rtol=1e-6)


@pytest.mark.parametrize("create_graph", [False, True])
def test_gradients_go_through_what_was_drawn(create_graph: bool) -> None:
    function = wg.pure(lambda x: noisy(x * x))
    x = wg.asarray(np.abs(X) + 1, device="cpu").requires_grad_()
    for _ in range(3):
        y = function(x)
        (found,) = wg.grad_of(y.sum(), x, create_graph=create_graph)
        assert found is not None
        np.testing.assert_allclose(found.numpy(), 2 * y.numpy() / x.numpy(), rtol=1e-5)
        assert (y.numpy() == 0).any()


def test_a_checkpoint_draws_the_same_again() -> None:
    function = wg.pure(lambda x: noisy(x * x))
    x = wg.asarray(np.abs(X) + 1, device="cpu").requires_grad_()
    for _ in range(3):
        y = wg.checkpoint(lambda x: function(x) * 1.0, x)
        (found,) = wg.grad_of(y.sum(), x)
        assert found is not None
        np.testing.assert_allclose(found.numpy(), 2 * y.numpy() / x.numpy(), rtol=1e-5)


def test_it_draws_anew_in_a_captured_function() -> None:
    step = wg.jit(wg.pure(noisy))
    x = wg.asarray(X, device="cpu")
    assert len({step(x).numpy().tobytes() for _ in range(4)}) == 4


def test_a_function_that_draws_and_reads_takes_no_numbers_before_it_is_called() -> None:
    def reading_noise(x: wg.Tensor) -> wg.Tensor:
        found = x + wg.random.uniform(x.shape, device=x.device)
        return found if found.sum().item() < 1e9 else x

    x = wg.asarray(X, device="cpu")
    wg.random.seed(5)
    wanted = [reading_noise(x).numpy() for _ in range(3)]
    wg.random.seed(5)
    function = wg.pure(reading_noise)
    for each in wanted:
        np.testing.assert_array_equal(function(x).numpy(), each)


def test_what_is_recorded_holds_no_argument() -> None:
    x = wg.asarray(X, device="cpu") * 1.0
    known = ref(x), ref(x.node)
    functions = wg.pure(lambda x: distance(x, x)), wg.pure(noisy)
    for function in functions:
        function(x)
    del x
    wg.eval()
    assert [each() for each in known] == [None, None]


def test_an_error_is_the_functions_own_at_each_call() -> None:
    function = wg.pure(lambda x, y: (x @ y) * 2.0 + 1.0)
    for _ in range(2):
        with pytest.raises(wg.ShapeError, match="matmul"):
            function(wg.ones((2, 3), device="cpu"), wg.ones((2, 3), device="cpu"))


def test_an_error_that_is_kept_holds_nothing_that_waits() -> None:
    function = wg.pure(lambda x, y: (x * 2.0) @ y)
    kept = None
    try:
        function(wg.ones((2, 3), device="cpu"), wg.ones((2, 3), device="cpu"))
    except wg.ShapeError as error:
        kept = error
    waiting = wg.ones(3, device="cpu") * 2.0
    wg.eval()  # placeholders have no values
    assert waiting.node.storage is not None
    assert kept is not None


def test_what_it_is_in_a_captured_function() -> None:
    function = Counted(distance)
    step = wg.jit(lambda x, y: function(x, y) * 2.0)
    x, y = wg.asarray(X, device="cpu"), wg.asarray(Y, device="cpu")
    for _ in range(3):
        np.testing.assert_allclose(step(x, y).numpy(), 2 * ((X - Y) ** 2).sum(1), rtol=1e-5)


def test_autocast_has_recordings_of_its_own() -> None:
    x, w = wg.asarray(X, device="cpu"), wg.asarray(RNG.standard_normal((5, 4)).astype(np.float32))
    exact = wg.linear(x, w.to_device("cpu")).numpy()
    with wg.amp.autocast():
        rough = wg.linear(x, w.to_device("cpu")).numpy()
    assert 0 < abs(exact - rough).max() < 0.05
    np.testing.assert_array_equal(wg.linear(x, w.to_device("cpu")).numpy(), exact)


def test_histories_name_the_recording() -> None:
    x = wg.asarray(X, device="cpu").requires_grad_()
    assert isinstance(wg.nn.functional.layer_norm(x, 4).node.history, Composed)
    with wg.no_grad():
        assert wg.nn.functional.layer_norm(x, 4).node.history is None
