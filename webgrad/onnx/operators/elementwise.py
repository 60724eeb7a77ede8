"""Operators that work element by element."""

from __future__ import annotations

from typing import Any

import webgrad as wg

from .table import operator

# ONNX's name, the version, and webgrad's function of all its inputs
_SAME = """
Abs 1 abs, Add 7 add, Ceil 1 ceil, Cos 7 cos, Equal 7 equal, Exp 1 exp, Floor 1 floor, Log 1 log,
Mul 7 multiply, Neg 1 negative, Sin 7 sin, Sqrt 1 sqrt, Sub 7 subtract, Tanh 1 tanh
"""

for _row in _SAME.replace("\n", " ").split(","):
    _name, _since, _function = _row.split()
    operator(_name, int(_since))(getattr(wg, _function))


@operator("Identity")
def identity(x: Any) -> Any:
    return x
