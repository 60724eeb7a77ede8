"""Plans of the reference: what they give is theirs, and leaves stay what they are."""

from __future__ import annotations

import numpy as np

from tests.cpu.helpers import node_of
from webgrad.graph.node import make
from webgrad.ops.table import TABLE
from webgrad.reference.plan import compute


def test_a_result_that_is_a_view_is_an_array_of_its_own() -> None:
    x = node_of(np.arange(4, dtype=np.float32))
    first, second = compute(
        [make(TABLE["reshape"], (x,), ((2, 2),)), make(TABLE["slice"], (x,), (((1, 3, 1),),))]
    )
    first[:] = 7
    np.testing.assert_array_equal(second, [1, 2])
    np.testing.assert_array_equal(x.storage, np.arange(4))
