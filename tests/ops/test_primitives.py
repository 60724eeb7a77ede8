"""Complex numbers as pairs: what is put side by side is not taken for parts, and slopes where a part is 0."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.functions.devices import everywhere, place
from tests.graph.helpers import graph_of
from webgrad.functions.array.manipulation import concat
from webgrad.functions.complex.parts import imag
from webgrad.graph.node import Node
from webgrad.ops import primitives


@everywhere
@pytest.mark.parametrize("axis", [0, 1])
def test_parts_of_complex_numbers_that_were_put_side_by_side(kind: str, axis: int) -> None:
    first, second = np.asarray([[1 + 2j, 3 + 4j]], np.complex64), np.asarray([[5 + 6j, 7 + 8j]], np.complex64)
    both = concat([place(kind, first), place(kind, second)], axis=axis)
    wanted = np.concatenate([first, second], axis=axis)
    np.testing.assert_array_equal(imag(both).numpy(), wanted.imag)
    np.testing.assert_array_equal((both * 2).numpy(), wanted * 2)


def test_gradients_where_a_part_is_zero() -> None:
    z = place("cpu", np.asarray([2 + 0j, 1j, 1 + 2j, -2 + 2j]))

    def quotient(w: wg.Tensor) -> wg.Tensor:
        return wg.real(wg.sum((1 + 1j) / w))

    wanted = np.conj(-(1 + 1j) / z.numpy() ** 2)
    np.testing.assert_allclose(wg.grad(quotient)(z).numpy(), wanted, rtol=1e-12)
    sizes = place("cpu", np.asarray([2 + 0j, -1j, 3 + 4j, 0j]))
    np.testing.assert_allclose(wg.grad(lambda w: wg.sum(wg.abs(w)))(sizes).numpy(), [1, -1j, 0.6 + 0.8j, 0])


def test_the_size_of_a_real_number_curves() -> None:
    def slope(w: wg.Tensor) -> wg.Tensor:
        return wg.sum(wg.imag(wg.grad(lambda v: wg.sum(wg.abs(v)))(w)))

    found = wg.grad(slope)(place("cpu", np.asarray([2 + 0j, 4 + 0j]))).numpy()
    np.testing.assert_allclose(found, [0.5j, 0.25j])


class _Overtaken:
    """A node that another thread computes as soon as its signature was looked at."""

    history = None

    def __init__(self, node: Node) -> None:
        self.node = node

    @property
    def inputs(self) -> tuple[Any, ...]:
        return self.node.inputs

    @property
    def sig(self) -> Any:
        sig = self.node.sig
        self.node.settle(np.zeros(sig.shape, sig.dtype.numpy))
        return sig


def test_parts_are_found_while_another_thread_computes_the_numbers() -> None:
    pairs = place("cpu", np.ones((3, 2), np.float32)).node
    assert primitives.as_real(_Overtaken(primitives.as_complex(pairs))) is pairs  # type: ignore[arg-type]
    real, imaginary = (place("cpu", np.ones((3, 1), np.float32)).node for _ in range(2))
    joined = primitives.as_complex(primitives.concat([real, imaginary], 1))
    assert primitives._halves(_Overtaken(joined)) == (real, imaginary)  # type: ignore[arg-type]
    done = primitives.as_complex(primitives.concat([real, imaginary], 1))
    done.inputs[0].settle(np.ones((3, 2), np.float32))
    assert not primitives.is_joined(done)
    assert len(primitives.parts(done)) == 2


@everywhere
@pytest.mark.parametrize("subscripts", ["ij,jk->ik", "kj,ji->ki"])
def test_a_real_factor_of_a_complex_product_takes_two_products(kind: str, subscripts: str) -> None:
    real, numbers = np.ones((4, 4), np.float32), np.full((4, 4), 1 + 2j, np.complex64)
    for a, b in ((real, numbers), (numbers, real)):
        for result in (
            place(kind, a) @ place(kind, b),
            wg.einsum(subscripts, place(kind, a), place(kind, b)),
        ):
            products = [sig for sig in graph_of(result).sigs if sig.kind == "contract"]
            assert len(products) == 2
            np.testing.assert_array_equal(result.numpy(), a @ b)
