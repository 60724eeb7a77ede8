"""Random programs of views and in-place writes: every tensor is what NumPy makes it, under jit too."""

from __future__ import annotations

import pytest

from tests.properties.helpers import gpu
from tests.properties.view_programs import difference, write_program
from tests.selection import first

pytestmark = pytest.mark.property

EACH = 50  # programs of one test; every fourth captures functions, for which all objects are looked at
EACH_ON_GPU = 10


@pytest.mark.parametrize("start", first(2, range(0, 400, EACH)))
def test_views_and_writes_are_numpys(start: int) -> None:
    for seed in range(start, start + EACH):
        assert not difference(write_program(seed, captures=seed % 4 == 0), "cpu")


@pytest.mark.gpu
@pytest.mark.parametrize("start", first(1, range(10_000, 10_050, EACH_ON_GPU)))
def test_views_and_writes_are_numpys_on_a_gpu(start: int) -> None:
    for seed in range(start, start + EACH_ON_GPU):
        assert not difference(write_program(seed), gpu().name)
