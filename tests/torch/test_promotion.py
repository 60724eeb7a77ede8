"""Functions of two operands over all pairs of dtypes, with and without dimensions, and Python's numbers.

Where torch gives a value webgrad.torch gives the same one in the same dtype; where torch refuses, it may give
a value, but no error of another kind.
"""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest

import webgrad.torch as door
from tests.torch.checking import torch

pytestmark = pytest.mark.property
WHOLE = ["bool", "uint8", "int8", "int32", "int64"]
DTYPES = [*WHOLE, "float16", "bfloat16", "float32", "float64", "complex64"]
NUMBERS = (True, 3, -2, 2.5, 1j)
FUNCTIONS = (
    "add sub mul div floor_divide remainder fmod pow maximum minimum eq lt bitwise_and bitwise_or "
    "atan2 hypot logical_and copysign fmax logaddexp where"
)
REFUSALS = (RuntimeError, TypeError, ValueError, IndexError)


def operand(library: Any, dtype: str, single: bool) -> Any:
    return library.tensor(2 if single else [1, 2, 3]).to(getattr(library, dtype))


def result(library: Any, name: str, first: Any, second: Any) -> tuple[str, Any]:
    """The dtype and the values, or nothing where it is refused."""
    function = getattr(library, name)
    try:
        found = function(first > 0, first, second) if name == "where" else function(first, second)
    except REFUSALS:
        return "", None
    wide = library.complex128 if found.dtype.is_complex else library.float64
    return str(found.dtype).rpartition(".")[2], np.asarray(found.to(wide).numpy())


def pairs() -> Any:
    """Operands by their dtypes, and numbers as the second one."""
    kinds = list(itertools.product(DTYPES, (False, True)))
    for (first, single), other in itertools.product(kinds, [*kinds, *NUMBERS]):
        yield first, single, other


@pytest.mark.parametrize("name", FUNCTIONS.split())
def test_two_operands_are_promoted_as_torch_does(name: str) -> None:
    wrong = []
    for first, single, other in pairs():
        found = []
        for library in (torch, door):
            second = operand(library, *other) if isinstance(other, tuple) else other
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found.append(result(library, name, operand(library, first, single), second))
        (dtype, wanted), (ours, value) = found
        if not dtype or dtype == "complex32" or (not ours and (first, other) == ("bool", True)):
            continue
        if (
            ours != dtype
            or value.shape != wanted.shape
            or not np.allclose(value, wanted, 1e-2, equal_nan=True)
        ):
            wrong.append((first, single, other, dtype, ours, wanted, value))
    assert wrong == []
