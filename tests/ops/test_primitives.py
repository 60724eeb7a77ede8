"""Complex numbers as pairs: what is put side by side is not taken for parts, and slopes where a part is 0."""

from __future__ import annotations

import numpy as np
import pytest

import webgrad as wg
from tests.ops.devices import EVERYWHERE, place
from webgrad.ops.elementwise import imag
from webgrad.ops.manipulation import concat


@EVERYWHERE
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
