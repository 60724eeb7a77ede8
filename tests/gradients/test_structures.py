"""Ways back that were gone before: one node, the same gradients, and nothing taken for what it is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad import Tensor
from webgrad.gradients import structures
from webgrad.graph.node import Bundle, backlog

Array = np.ndarray[Any, Any]
Loss = Callable[..., Tensor]


def parameters(seed: int, *shapes: tuple[int, ...]) -> list[Tensor]:
    random = np.random.default_rng(seed)
    return [wg.asarray(random.standard_normal(each, np.float32)).requires_grad_() for each in shapes]


def values(gradient: Tensor | None) -> Array:
    assert gradient is not None
    return gradient.numpy()


def is_computed(x: Tensor) -> bool:
    return x.grad is not None and x.grad.node.storage is not None


def gradients(loss: Loss, given: list[Tensor], *, plainly: bool = False) -> list[Array]:
    """The gradients of a loss; with hooks every vertex is gone through by itself."""
    handles = [each.register_hook(lambda g: None) for each in given] if plainly else []
    loss(*given).backward()
    found = [values(each.grad) for each in given]
    for handle in handles:
        handle.remove()
    for each in given:
        each.grad = None
    return found


def net(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    hidden = wg.relu(x @ w + b)
    return (wg.softmax(hidden @ w, axis=-1) * hidden).sum() + (b * b).mean()


LOSSES: dict[str, tuple[Loss, tuple[tuple[int, ...], ...]]] = {
    "a net with shared weights": (net, ((3, 4), (4, 4), (4,))),
    "parts of one": (lambda x: (x[0] * 2 + x[1]).sum() * x[2, 0], ((3, 2),)),
    "several results": (lambda x: wg.stack(wg.split(x, 2, axis=0)[::-1]).max(axis=0).sum(), ((4, 3),)),
    "the same twice": (lambda x, y: ((x + x) * y * y).sum(), ((3,), (3,))),
    "numbers": (lambda x: wg.exp(x * 0.5 - 1.0).mean() / 3, ((5,),)),
    "a scalar": (lambda x, y: (x * y).sum() * wg.asarray(2.0), ((2, 2), (2,))),
}


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_are_those_of_the_walk(name: str) -> None:
    loss, shapes = LOSSES[name]
    for seed in range(5):
        given = parameters(seed, *shapes)
        for one, other in zip(gradients(loss, given), gradients(loss, given, plainly=True), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)


def test_a_way_that_was_gone_before_is_one_node_and_its_items() -> None:
    given = parameters(0, (3, 4), (4, 4), (4,))
    for _ in range(3):
        loss = net(*given)
        count = len(backlog.made)
        loss.backward()
        made = [each() for each in backlog.made[count:]]
        for each in given:
            each.grad = None
    assert [type(each) is Bundle for each in made] == [True, False, False, False]


def test_one_input_twice_is_another_structure_than_two() -> None:
    x, y = parameters(0, (3,), (3,))
    for _ in range(3):
        (both,) = gradients(lambda x: (x * x).sum(), [x])
        first, second = gradients(lambda x, y: (x * y).sum(), [x, y])
        np.testing.assert_array_equal(both, 2 * x.numpy())
        np.testing.assert_array_equal(first, y.numpy())
        np.testing.assert_array_equal(second, x.numpy())


def test_numbers_are_values_and_no_structure() -> None:
    (x,) = parameters(0, (3,))
    for factor in (1.5, 2.5, -0.0, 0.0, 7.0):
        (found,) = gradients(lambda x, factor=factor: (x * factor * x).sum(), [x])
        np.testing.assert_allclose(found, 2 * factor * x.numpy(), rtol=1e-6)


def test_movement_that_begins_anywhere_is_not_recorded_at_every_place() -> None:
    structures._known.recordings.clear()
    (x,) = parameters(0, (40,))
    for at in [*range(40), *range(40)]:
        (found,) = gradients(lambda x, at=at: wg.exp(x[at] * 2) + x[at], [x])
        wanted = np.zeros(40)
        wanted[at] = 2 * np.exp(2 * x.numpy()[at]) + 1
        np.testing.assert_allclose(found, wanted, rtol=1e-5)
    assert not structures._known.recordings


def test_gradients_of_one_way_are_computed_together() -> None:
    given = parameters(0, (3, 4), (4, 4), (4,))
    for _ in range(3):
        for each in given:
            each.grad = None
        net(*given).backward()
    assert not any(map(is_computed, given))
    values(given[0].grad)
    assert all(map(is_computed, given))


def test_the_graph_is_freed_or_kept_as_ever() -> None:
    (x,) = parameters(0, (3,))
    for _ in range(3):
        loss = (x * x * x).sum()
        loss.backward(retain_graph=True)
        loss.backward()
        with pytest.raises(wg.GradientError, match="its graph was freed"):
            loss.backward()
    np.testing.assert_allclose(values(x.grad), 6 * 3 * x.numpy() ** 2, rtol=1e-5)


def test_hooks_and_retained_gradients_are_seen_after_the_same_way_without_them() -> None:
    (x,) = parameters(0, (3,))
    for _ in range(3):
        gradients(lambda x: (x * x).sum(), [x])
    square = x * x
    square.retain_grad()
    square.sum().backward()
    np.testing.assert_array_equal(values(square.grad), np.ones(3))
    x.grad = None
    handle = x.register_hook(lambda g: g * 10)
    found = gradients(lambda x: (x * x).sum(), [x])[0]
    handle.remove()
    np.testing.assert_allclose(found, 20 * x.numpy(), rtol=1e-6)


def test_wanted_gradients_are_part_of_the_structure() -> None:
    for seed in range(4):
        x, y = parameters(seed, (3,), (3,))
        middle = x * y
        result = (middle * middle * x).sum()
        (inner,) = wg.grad_of(result, middle, retain_graph=True)
        (outer,) = wg.grad_of(result, y)
        np.testing.assert_allclose(values(inner), 2 * middle.numpy() * x.numpy(), rtol=1e-5)
        np.testing.assert_allclose(values(outer), 2 * x.numpy() ** 3 * y.numpy(), rtol=1e-5)


def test_value_and_grad_of_the_same_function_again() -> None:
    both = wg.value_and_grad(lambda x: wg.log(1 + wg.exp(x)).sum())
    for seed in range(4):
        x = parameters(seed, (4,))[0].detach()
        np.testing.assert_allclose(both(x)[1].numpy(), 1 / (1 + np.exp(-x.numpy())), rtol=1e-5)


def test_autocast_is_part_of_the_structure() -> None:
    w, x = parameters(0, (8, 8), (8, 8))
    for _ in range(3):
        exact = gradients(lambda w, x: (x @ w).sum(), [w, x])
        with wg.amp.autocast():
            rough = gradients(lambda w, x: (x @ w).sum(), [w, x])
        assert not np.array_equal(exact[0], rough[0])
        np.testing.assert_allclose(exact[0], rough[0], rtol=5e-2, atol=5e-2)
