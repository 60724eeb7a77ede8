"""Random programs of views and in-place writes: every tensor is what NumPy makes it, under jit too."""

from __future__ import annotations

import pytest

from tests.properties.helpers import gpu
from tests.properties.view_programs import difference, write_program

pytestmark = pytest.mark.property

EACH = 50  # programs of one test; every fourth captures functions, for which all objects are looked at


@pytest.mark.parametrize("first", range(0, 400, EACH))
def test_views_and_writes_are_numpys(first: int) -> None:
    for seed in range(first, first + EACH):
        assert not difference(write_program(seed, captures=seed % 4 == 0), "cpu")


@pytest.mark.gpu
def test_views_and_writes_are_numpys_on_a_gpu() -> None:
    device = gpu().name
    for seed in range(10_000, 10_000 + EACH):
        assert not difference(write_program(seed), device)
