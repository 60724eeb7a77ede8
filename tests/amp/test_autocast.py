"""Products in half precision inside of autocast, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.functions.devices import device_of
from tests.optim.helpers import DEVICES, drawn
from webgrad import Tensor

Product = Callable[[Tensor, Tensor], Tensor]
# name: product, and the shapes of its inputs
PRODUCTS: dict[str, tuple[Product, tuple[int, ...], tuple[int, ...]]] = {
    "matmul": (wg.matmul, (5, 8), (8, 3)),
    "operator": (lambda a, b: a @ b, (5, 8), (8, 3)),
    "linear": (wg.linear, (5, 8), (3, 8)),
    "einsum": (lambda a, b: wg.einsum("ij,jk->ik", a, b), (5, 8), (8, 3)),
    "tensordot": (lambda a, b: wg.tensordot(a, b, 1), (5, 8), (8, 3)),
    "conv1d": (wg.conv1d, (2, 3, 9), (4, 3, 3)),
    "conv2d": (wg.conv2d, (2, 3, 6, 6), (4, 3, 3, 3)),
    "conv_transpose2d": (wg.conv_transpose2d, (2, 3, 4, 4), (3, 4, 3, 3)),
    "attention": (lambda q, k: wg.scaled_dot_product_attention(q, k, k), (1, 2, 5, 8), (1, 2, 7, 8)),
}


def place(kind: str, seed: int, shape: tuple[int, ...]) -> Tensor:
    return wg.asarray(drawn(seed, shape), device=device_of(kind))


@DEVICES
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_are_computed_in_half_precision(name: str, kind: str) -> None:
    product, *shapes = PRODUCTS[name]
    a, b = (place(kind, at, shape) for at, shape in enumerate(shapes))
    with wg.amp.autocast():
        found = product(a, b)
    by_hand = product(a.astype(wg.float16), b.astype(wg.float16)).astype(wg.float32)
    assert found.dtype is wg.float32
    assert np.array_equal(found.numpy(), by_hand.numpy())
    assert not np.array_equal(found.numpy(), product(a, b).numpy())


def test_bfloat16_too() -> None:
    a = place("cpu", 0, (4, 4))
    with wg.amp.autocast(dtype=wg.bfloat16):
        found = a @ a
    by_hand = (a.astype(wg.bfloat16) @ a.astype(wg.bfloat16)).astype(wg.float32)
    assert np.array_equal(found.numpy(), by_hand.numpy())


def test_everything_else_stays_as_it_is() -> None:
    x = place("cpu", 0, (4, 8)) * 100
    functions: list[Callable[[Tensor], Tensor]] = [
        wg.softmax,
        wg.exp,
        lambda x: wg.layer_norm(x, 8),
        wg.sum,
        lambda x: wg.cross_entropy(x, wg.zeros(4, dtype=wg.int32, device="cpu")),
        lambda x: x * x + 1,
    ]
    for function in functions:
        with wg.amp.autocast():
            found = function(x)
        assert np.array_equal(found.numpy(), function(x).numpy(), equal_nan=True)


def test_a_bias_is_added_in_float32() -> None:
    x, w = place("cpu", 0, (4, 8)), place("cpu", 1, (3, 8))
    bias = wg.full((3,), 1e5, device="cpu")  # which float16 does not hold
    with wg.amp.autocast():
        for found in (wg.linear(x, w, bias), wg.linear(x, w, bias=bias)):
            assert np.isfinite(found.numpy()).all()


def test_tensors_of_other_types_are_left_alone() -> None:
    whole = wg.ones((3, 3), dtype=wg.int32, device="cpu")
    wide = wg.ones((3, 3), dtype=wg.float64, device="cpu")
    half = wg.ones((3, 3), dtype=wg.float16, device="cpu")
    with wg.amp.autocast():
        assert (whole @ whole).dtype is wg.int32
        assert (wide @ wide).dtype is wg.float64
        assert wg.matmul(half, half).dtype in (wg.float16, wg.float32)


def test_it_ends_with_its_block_and_is_off_where_told() -> None:
    a = place("cpu", 0, (4, 4)) * 1000
    plain = (a @ a).numpy()
    with wg.amp.autocast():
        with wg.amp.autocast(enabled=False):
            assert np.array_equal((a @ a).numpy(), plain)
        assert not np.array_equal((a @ a).numpy(), plain)
    with pytest.raises(ValueError, match="stop"), wg.amp.autocast():
        raise ValueError("stop")
    assert np.array_equal((a @ a).numpy(), plain)


def test_it_decorates_functions() -> None:
    a = place("cpu", 0, (4, 4)) * 1000

    @wg.amp.autocast()
    def product(x: Tensor) -> Tensor:
        """Squared."""
        return x @ x

    with wg.amp.autocast():
        want = (a @ a).numpy()
    assert np.array_equal(product(a).numpy(), want)
    assert product.__doc__ == "Squared."


def test_captured_functions_see_it() -> None:
    a = place("cpu", 0, (4, 4)) * 1000
    captured = wg.jit(lambda x: x @ x)
    plain = captured(a).numpy()
    with wg.amp.autocast():
        assert not np.array_equal(captured(a).numpy(), plain)
    assert np.array_equal(captured(a).numpy(), plain)


def test_one_that_is_opened_inside_needs_no_other_capture() -> None:
    x = wg.random.normal((1, 1, 5, 5))
    w = wg.random.normal((2, 1, 3, 3))

    def halved(x: Tensor) -> Tensor:
        with wg.amp.autocast():
            return wg.conv2d(x, w)

    inside: Any = wg.jit(halved)
    outside: Any = wg.jit(partial(wg.conv2d, weight=w))
    for _ in range(3):
        found = inside(x)
        with wg.amp.autocast():
            assert (outside(x) == found).all()
        assert (wg.conv2d(x, w) != found).any()
    assert inside.captures == outside.captures == 1


@DEVICES
def test_gradients_come_back_in_float32(kind: str) -> None:
    x = place(kind, 0, (4, 8))
    w = place(kind, 1, (3, 8)).requires_grad_()
    with wg.amp.autocast():
        loss = wg.square(wg.linear(x, w)).sum()
    loss.backward()
    assert w.grad is not None
    assert w.grad.dtype is wg.float32
    with_halves = [each.numpy().astype(np.float16).astype(np.float64) for each in (x, w)]
    want = 2 * (with_halves[0] @ with_halves[1].T).T @ with_halves[0]
    np.testing.assert_allclose(w.grad.numpy(), want, rtol=5e-3, atol=5e-2)


@pytest.mark.parametrize("dtype", [wg.float32, wg.int8, "float64"], ids=str)
def test_types_that_are_no_halves_are_refused(dtype: Any) -> None:
    with pytest.raises(wg.DTypeError, match="float16 or bfloat16, not in"):
        wg.amp.autocast(dtype=dtype)
