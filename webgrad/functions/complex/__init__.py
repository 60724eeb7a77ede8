"""Functions of complex numbers, as formulas over pairs of floats; they are what primitives compute by."""

from __future__ import annotations

from ...ops.primitives import Formula, complex_numbers


def _formulas() -> dict[str, Formula]:
    from .application import PRIMITIVES  # here: most programs compute with no complex numbers

    return PRIMITIVES


complex_numbers.formulas = _formulas
