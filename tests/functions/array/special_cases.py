"""The special cases of the array API standard for element-wise functions of floats, as a table.

A line is what the operands are, and what the result is. An operand is a class of values (`CLASSES`), and a
case holds for every value, or pair of values, of its classes. A result is a number with its sign, `nan`, `+`
or `-` (only the sign counts), an operand, `|x|` of one, or a bool. Numbers behind `~` are approximate, and
the sign of `0` and of `inf` is open. A complex operand is two classes, and a complex result two results.
"""

from __future__ import annotations

import math

__all__ = ["BINARY", "CLASSES", "COMPLEX", "UNARY"]

NAN, INF = math.nan, math.inf
_PLUS = (0.5, 1.0, 2.0, 2.5, 3.0, 100.0)
_MINUS = tuple(-each for each in _PLUS)
_ODD = (1.0, 3.0)
_NOT_ODD = (0.5, 2.0, 2.5, 100.0)

CLASSES: dict[str, tuple[float, ...]] = {
    "nan": (NAN,),
    "-nan": (math.copysign(NAN, -1),),
    "+0": (0.0,),
    "-0": (-0.0,),
    "0": (0.0, -0.0),
    "+inf": (INF,),
    "-inf": (-INF,),
    "inf": (INF, -INF),
    "1": (1.0,),
    "-1": (-1.0,),
    "+finite": _PLUS,
    "-finite": _MINUS,
    "nonzero": _PLUS + _MINUS,
    "finite": (*_PLUS, *_MINUS, 0.0, -0.0),
    ">0": (*_PLUS, INF),
    "<0": (*_MINUS, -INF),
    "number": (*_PLUS, *_MINUS, 0.0, -0.0, INF, -INF),
    "any": (*_PLUS, *_MINUS, 0.0, -0.0, INF, -INF, NAN),
    ">1": (1.5, 100.0, INF),
    "<1": (0.5, 0.0, -0.0, -0.5, -1.0, -100.0, -INF),
    "<-1": (-1.5, -100.0, -INF),
    "|x|>1": (1.5, -1.5, 100.0, INF, -INF),
    "|x|=1": (1.0, -1.0),
    "|x|<1": (0.5, -0.5, 0.0, -0.0),
    "not 0": (*_PLUS, *_MINUS, INF, -INF, NAN),
    "not 1": (*_MINUS, 0.0, 0.5, 2.0, 100.0, INF, -INF, NAN),
    "whole": (1.0, -1.0, 3.0, -100.0, 0.0, -0.0),
    "+odd": _ODD,
    "-odd": tuple(-each for each in _ODD),
    "+not odd": (*_NOT_ODD, INF),
    "-not odd": (*(-each for each in _NOT_ODD), -INF),
    "fraction": (0.5, -0.5, 2.5, -2.5),
}

_KEPT = {"nan": "nan", "+0": "+0", "-0": "-0", "+inf": "+inf", "-inf": "-inf"}
_ROUNDED = _KEPT | {"whole": "x1"}
_LOGARITHM = {"nan": "nan", "<0": "nan", "0": "-inf", "1": "+0", "+inf": "+inf"}
_WAVE = {"nan": "nan", "+0": "+0", "-0": "-0", "inf": "nan"}

UNARY: dict[str, dict[str, str]] = {
    "abs": {"nan": "nan", "-0": "+0", "-inf": "+inf", "finite": "|x1|"},
    "acos": {"nan": "nan", ">1": "nan", "<-1": "nan", "1": "+0"},
    "acosh": {"nan": "nan", "<1": "nan", "1": "+0", "+inf": "+inf"},
    "asin": {"nan": "nan", ">1": "nan", "<-1": "nan", "+0": "+0", "-0": "-0"},
    "asinh": _KEPT,
    "atan": _KEPT | {"+inf": "~1.5707963", "-inf": "~-1.5707963"},
    "atanh": {"nan": "nan", "<-1": "nan", ">1": "nan", "-1": "-inf", "1": "+inf", "+0": "+0", "-0": "-0"},
    "ceil": _ROUNDED,
    "cos": {"nan": "nan", "0": "1", "inf": "nan"},
    "cosh": {"nan": "nan", "0": "1", "inf": "+inf"},
    "exp": {"nan": "nan", "0": "1", "+inf": "+inf", "-inf": "+0"},
    "expm1": _KEPT | {"-inf": "-1"},
    "floor": _ROUNDED,
    "isfinite": {"inf": "False", "nan": "False", "finite": "True"},
    "isinf": {"inf": "True", "nan": "False", "finite": "False"},
    "isnan": {"nan": "True", "-nan": "True", "number": "False"},
    "log": _LOGARITHM,
    "log10": _LOGARITHM,
    "log1p": _KEPT | {"-inf": "nan", "<-1": "nan", "-1": "-inf"},
    "log2": _LOGARITHM,
    "negative": {"nan": "nan", "+0": "-0", "-0": "+0", "+inf": "-inf", "-inf": "+inf"},
    "positive": _ROUNDED,
    "reciprocal": {"nan": "nan", "+0": "+inf", "-0": "-inf", "+inf": "+0", "-inf": "-0"},
    "round": _ROUNDED,
    "sign": {"<0": "-1", "0": "0", ">0": "1", "nan": "nan"},
    "signbit": {"nan": "False", "-nan": "True", "+0": "False", "-0": "True", ">0": "False", "<0": "True"},
    "sin": _WAVE,
    "sinh": _KEPT,
    "sqrt": {"nan": "nan", "<0": "nan", "+0": "+0", "-0": "-0", "+inf": "+inf"},
    "square": {"nan": "nan", "0": "+0", "inf": "+inf"},
    "tan": _WAVE,
    "tanh": _KEPT | {"+inf": "1", "-inf": "-1"},
    "trunc": _ROUNDED,
}

_SUM = """
    nan, any: nan
    any, nan: nan
    +inf, +inf: +inf
    -inf, -inf: -inf
    +inf, -inf: nan
    -inf, +inf: nan
    +inf, finite: +inf
    -inf, finite: -inf
    finite, +inf: +inf
    finite, -inf: -inf
    -0, -0: -0
    -0, +0: +0
    +0, -0: +0
    +0, +0: +0
    0, nonzero: x2
    nonzero, 0: x1
    """
_QUOTIENT = """
    nan, any: nan
    any, nan: nan
    inf, inf: nan
    0, 0: nan
    +0, >0: +0
    -0, >0: -0
    +0, <0: -0
    -0, <0: +0
    >0, +0: +inf
    >0, -0: -inf
    <0, +0: -inf
    <0, -0: +inf
    +inf, +finite: +inf
    +inf, -finite: -inf
    -inf, +finite: -inf
    -inf, -finite: +inf
    +finite, +inf: +0
    +finite, -inf: -0
    -finite, +inf: -0
    -finite, -inf: +0
    +finite, +finite: +
    -finite, -finite: +
    +finite, -finite: -
    -finite, +finite: -
    """
_EXTREME = """
    nan, any: nan
    any, nan: nan
    """
_ORDER = """
    nan, any: {unordered}
    any, nan: {unordered}
    +inf, finite: {above}
    +inf, -inf: {above}
    finite, -inf: {above}
    finite, +inf: {below}
    +inf, +inf: {same}
    -inf, -inf: {same}
    0, 0: {same}
    0, <0: {above}
    >0, 0: {above}
    <0, >0: {below}
    """


def _order(above: bool, same: bool, below: bool, unordered: bool = False) -> str:
    return _ORDER.format(above=above, same=same, below=below, unordered=unordered)


BINARY: dict[str, str] = {
    "add": _SUM,
    "subtract": """
    nan, any: nan
    any, nan: nan
    +inf, -inf: +inf
    -inf, +inf: -inf
    inf, finite: x1
    +inf, +inf: nan
    -inf, -inf: nan
    finite, +inf: -inf
    finite, -inf: +inf
    -0, +0: -0
    -0, -0: +0
    +0, 0: +0
    nonzero, 0: x1
    """,
    "multiply": """
    nan, any: nan
    any, nan: nan
    inf, 0: nan
    0, inf: nan
    >0, >0: +
    <0, <0: +
    >0, <0: -
    <0, >0: -
    +inf, >0: +inf
    +inf, <0: -inf
    -inf, >0: -inf
    -inf, <0: +inf
    >0, +inf: +inf
    <0, +inf: -inf
    >0, -inf: -inf
    <0, -inf: +inf
    +0, +finite: +0
    -0, +finite: -0
    -finite, +0: -0
    -finite, -0: +0
    """,
    "divide": _QUOTIENT,
    "floor_divide": _QUOTIENT,
    "remainder": """
    nan, any: nan
    any, nan: nan
    inf, number: nan
    number, 0: nan
    0, >0: +0
    0, <0: -0
    +finite, +inf: x1
    +finite, -inf: x2
    -finite, +inf: x2
    -finite, -inf: x1
    """,
    "pow": """
    not 1, nan: nan
    any, 0: 1
    nan, not 0: nan
    |x|>1, +inf: +inf
    |x|>1, -inf: +0
    |x|=1, inf: 1
    1, any: 1
    |x|<1, +inf: +0
    |x|<1, -inf: +inf
    +inf, >0: +inf
    +inf, <0: +0
    -inf, +odd: -inf
    -inf, +not odd: +inf
    -inf, -odd: -0
    -inf, -not odd: +0
    +0, >0: +0
    +0, <0: +inf
    -0, +odd: -0
    -0, +not odd: +0
    -0, -odd: -inf
    -0, -not odd: +inf
    -finite, fraction: nan
    """,
    "atan2": """
    nan, any: nan
    any, nan: nan
    >0, 0: ~1.5707963
    +0, >0: +0
    +0, +0: +0
    +0, -0: ~3.1415927
    +0, <0: ~3.1415927
    -0, >0: -0
    -0, +0: -0
    -0, -0: ~-3.1415927
    -0, <0: ~-3.1415927
    <0, 0: ~-1.5707963
    +finite, +inf: +0
    +finite, -inf: ~3.1415927
    -finite, +inf: -0
    -finite, -inf: ~-3.1415927
    +inf, finite: ~1.5707963
    -inf, finite: ~-1.5707963
    +inf, +inf: ~0.7853982
    +inf, -inf: ~2.3561945
    -inf, +inf: ~-0.7853982
    -inf, -inf: ~-2.3561945
    """,
    "copysign": """
    number, >0: |x1|
    number, +0: |x1|
    number, nan: |x1|
    number, <0: -|x1|
    number, -0: -|x1|
    number, -nan: -|x1|
    nan, <0: -nan
    nan, -0: -nan
    nan, -nan: -nan
    -nan, >0: +nan
    -nan, +0: +nan
    -nan, nan: +nan
    """,
    "hypot": """
    inf, any: +inf
    any, inf: +inf
    0, number: |x2|
    number, 0: |x1|
    finite, nan: nan
    nan, finite: nan
    nan, nan: nan
    """,
    "logaddexp": """
    nan, any: nan
    any, nan: nan
    +inf, number: +inf
    number, +inf: +inf
    """,
    "nextafter": """
    nan, any: nan
    any, nan: nan
    -0, +0: +0
    +0, -0: -0
    """,
    "maximum": _EXTREME + "number, -inf: x1\n +inf, number: x1\n",
    "minimum": _EXTREME + "number, +inf: x1\n -inf, number: x1\n",
    "equal": _order(above=False, same=True, below=False),
    "greater": _order(above=True, same=False, below=False),
    "greater_equal": _order(above=True, same=True, below=False),
    "less": _order(above=False, same=False, below=True),
    "less_equal": _order(above=False, same=True, below=True),
    "not_equal": _order(above=True, same=False, below=True, unordered=True),
}

_PI, _HALF_PI, _QUARTER_PI, _THREE_QUARTERS = "~3.1415927", "~1.5707963", "~0.7853982", "~2.3561945"
_EXPONENTIAL = """
    finite, +inf: nan, nan
    finite, nan: nan, nan
    +inf, +0: +inf, +0
    +inf, +inf: inf, nan
    +inf, nan: inf, nan
    nan, +0: nan, +0
    nan, not 0: nan, nan
    """
_COMPLEX_LOGARITHM = f"""
    finite, +inf: +inf, {_HALF_PI}
    finite, nan: nan, nan
    -inf, +finite: +inf, {_PI}
    +inf, +finite: +inf, +0
    -inf, +inf: +inf, {_THREE_QUARTERS}
    +inf, +inf: +inf, {_QUARTER_PI}
    inf, nan: +inf, nan
    nan, finite: nan, nan
    nan, +inf: +inf, nan
    nan, nan: nan, nan
    """

COMPLEX: dict[str, str] = {
    "acos": f"""
    0, +0: {_HALF_PI}, -0
    0, nan: {_HALF_PI}, nan
    finite, +inf: {_HALF_PI}, -inf
    nonzero, nan: nan, nan
    -inf, +finite: {_PI}, -inf
    +inf, +finite: +0, -inf
    -inf, +inf: {_THREE_QUARTERS}, -inf
    +inf, +inf: {_QUARTER_PI}, -inf
    inf, nan: nan, inf
    nan, finite: nan, nan
    nan, +inf: nan, -inf
    nan, nan: nan, nan
    """,
    "acosh": f"""
    0, +0: +0, {_HALF_PI}
    finite, +inf: +inf, {_HALF_PI}
    nonzero, nan: nan, nan
    +0, nan: nan, {_HALF_PI}
    -inf, +finite: +inf, {_PI}
    +inf, +finite: +inf, +0
    -inf, +inf: +inf, {_THREE_QUARTERS}
    +inf, +inf: +inf, {_QUARTER_PI}
    inf, nan: +inf, nan
    nan, finite: nan, nan
    nan, +inf: +inf, nan
    nan, nan: nan, nan
    """,
    "asinh": f"""
    +0, +0: +0, +0
    +finite, +inf: +inf, {_HALF_PI}
    finite, nan: nan, nan
    +inf, +finite: +inf, +0
    +inf, +inf: +inf, {_QUARTER_PI}
    nan, +0: nan, +0
    nan, nonzero: nan, nan
    nan, +inf: inf, nan
    nan, nan: nan, nan
    """,
    "atanh": f"""
    +0, +0: +0, +0
    +0, nan: +0, nan
    1, +0: +inf, +0
    +finite, +inf: +0, {_HALF_PI}
    nonzero, nan: nan, nan
    +inf, +finite: +0, {_HALF_PI}
    +inf, +inf: +0, {_HALF_PI}
    +inf, nan: +0, nan
    nan, finite: nan, nan
    nan, +inf: 0, {_HALF_PI}
    nan, nan: nan, nan
    """,
    "cosh": """
    +0, +0: 1, +0
    +0, +inf: nan, 0
    +0, nan: nan, 0
    nonzero, +inf: nan, nan
    nonzero, nan: nan, nan
    +inf, +0: +inf, +0
    +inf, +inf: inf, nan
    +inf, nan: +inf, nan
    nan, 0: nan, 0
    nan, nonzero: nan, nan
    nan, nan: nan, nan
    """,
    "exp": _EXPONENTIAL
    + """
    0, +0: 1, +0
    -inf, +inf: 0, 0
    -inf, nan: 0, 0
    """,
    "expm1": _EXPONENTIAL
    + """
    0, +0: +0, +0
    -inf, +inf: -1, 0
    -inf, nan: -1, 0
    """,
    "log": _COMPLEX_LOGARITHM + f"-0, +0: -inf, {_PI}\n+0, +0: -inf, +0",
    "log1p": _COMPLEX_LOGARITHM + "-1, +0: -inf, +0",
    "sign": "0, 0: 0, 0\nnan, any: nan, nan\nany, nan: nan, nan",
    "sinh": """
    +0, +0: +0, +0
    +0, +inf: 0, nan
    +0, nan: 0, nan
    +finite, +inf: nan, nan
    +finite, nan: nan, nan
    +inf, +0: +inf, +0
    +inf, +inf: inf, nan
    +inf, nan: inf, nan
    nan, +0: nan, +0
    nan, nonzero: nan, nan
    nan, nan: nan, nan
    """,
    "sqrt": """
    0, +0: +0, +0
    any, +inf: +inf, +inf
    finite, nan: nan, nan
    -inf, +finite: +0, +inf
    +inf, +finite: +inf, +0
    -inf, nan: nan, inf
    +inf, nan: +inf, nan
    nan, finite: nan, nan
    nan, nan: nan, nan
    """,
    "tanh": """
    +0, +0: +0, +0
    nonzero, +inf: nan, nan
    +0, +inf: +0, nan
    nonzero, nan: nan, nan
    +0, nan: +0, nan
    +inf, +finite: 1, +0
    +inf, +inf: 1, 0
    +inf, nan: 1, 0
    nan, +0: nan, +0
    nan, nonzero: nan, nan
    nan, nan: nan, nan
    """,
}
