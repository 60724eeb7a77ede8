"""Complex numbers as pairs: what is put side by side is not taken for parts."""

from __future__ import annotations

import numpy as np
import pytest

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
