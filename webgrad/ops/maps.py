"""The map ops, one row each: element by element, operands of one dtype, with broadcasting.

A row with an example is a public function and a method of tensors (`functions/array/maps.py`): both, their
text in the reference, both backends and the property tests follow from it.
`wgsl` is an expression over {0}, {1}, …, scalars or vectors of four alike; names that begin with `wg_` are
functions of `wgsl/library*.wgsl`. A compute type that a row does not spell is not offered on GPUs. Integers
follow NumPy and wrap; floats keep NaN and infinities. Compilers assume that there are no NaN, so what depends
on them goes through functions that test bits.
"""

from __future__ import annotations

from . import references
from .rows import (
    INTEGERS,
    NUMBERS,
    called,
    choice,
    comparison,
    logical,
    of_floats,
    question,
    row,
    spelled,
    words,
)

ARITHMETIC = (
    row("add", "x1 + x2. >>> [1, 2], 3 -> [4 5]", spelled("({0} + {1})", *NUMBERS), gradient=("g", "g")),
    row(
        "subtract",
        "x1 - x2. >>> [1, 2], 3 -> [-2 -1]",
        spelled("({0} - {1})", *NUMBERS),
        gradient=("g", "-g"),
    ),
    row(
        "multiply",
        "x1 * x2. >>> [1, 2], 3 -> [3 6]",
        spelled("({0} * {1})", *NUMBERS),
        gradient=("g * b", "g * a"),
    ),
    row(
        "divide",
        "x1 / x2; integers are divided as float32. >>> [1, 2], 4 -> [0.25 0.5 ]",
        spelled("({0} / {1})", "f32", "f64"),
        "f",
        cost=4,
        tolerance=3,
        gradient=("g / b", "-g * y / b"),
    ),
    row(
        "floor_divide",
        "x1 / x2 rounded down; of infinite floats x1 / x2. Integers by 0 give 0; the lowest one by -1 "
        "wraps to itself. >>> [7, -7], 2 -> [ 3 -4]",
        called("floor_divide", 2, *NUMBERS),
        cost=60,
        tolerance=2,
        gradient=("0", "0"),
        numpy=references.floor_divide,
    ),
    row(
        "remainder",
        "What floor_divide leaves, with the sign of x2; of integers by 0 it is 0. >>> [7, -7], 3 -> [1 2]",
        called("remainder", 2, *NUMBERS),
        cost=60,
        gradient=("g", "remainder_divisor(g, y, a, b)"),
    ),
    row(
        "power",
        "x1 to the power of x2. Integers wrap; to a tensor of negative powers they give 0, but for 1 and -1;"
        " a negative number as their power is refused."
        " >>> [2, 3], 2 -> [4 9]",
        called("power", 2, *NUMBERS),
        cost=110,
        domain=(0, 20),
        tolerance=4,
        gradient=("power_base(g, a, b)", "power_exponent(g, y, a, b)"),
        numpy=references.power,
    ),
    row(
        "negative",
        "-x; of unsigned integers it wraps. >>> [1, -2] -> [-1  2]",
        spelled("(-{0})", "i32", "i64", "f64")
        | {"f32": "wg_negative({0})", "u32": "(~{0} + 1u)", "u64": "(~{0} + 1lu)"},
        gradient=("-g",),
    ),
    row(
        "abs",
        "The value without its sign; the lowest integer of a dtype stays: it has no positive."
        " >>> [1, -2] -> [1 2]",
        spelled("abs({0})", "i32", "i64", "f64") | spelled("{0}", "u32", "u64") | {"f32": "wg_abs({0})"},
        gradient=("g * sign(a)",),
    ),
    row(
        "sign",
        "-1, 0 or 1; NaN of NaN. >>> [3.5, 0.0, -2.0] -> [ 1.  0. -1.]",
        spelled("sign({0})", "i32", "i64") | called("sign", 1, "f32", "u32", "u64", "f64"),
        cost=3,
        gradient=("0",),
    ),
    row(
        "maximum",
        "The larger of two; NaN where one is NaN. >>> [1, 5], [4, 2] -> [4 5]",
        spelled("max({0}, {1})", *INTEGERS) | called("maximum", 2, "f32", "f64") | {"bool": "({0} | {1})"},
        "biuf",
        cost=3,
        gradient=("larger(g, a, b)", "larger(g, b, a)"),
    ),
    row(
        "minimum",
        "The smaller of two; NaN where one is NaN. >>> [1, 5], [4, 2] -> [1 2]",
        spelled("min({0}, {1})", *INTEGERS) | called("minimum", 2, "f32", "f64") | {"bool": "({0} & {1})"},
        "biuf",
        cost=3,
        gradient=("larger(g, b, a)", "larger(g, a, b)"),
    ),
    row(
        "clamp_min",
        "maximum, but of two that are equal the first has all of the gradient.",
        spelled("max({0}, {1})", *INTEGERS) | called("maximum", 2, "f32", "f64") | {"bool": "({0} | {1})"},
        "biuf",
        cost=3,
        gradient=("where(a < b, 0.0, g)", "where(y <= a, 0.0, g)"),  # of y, which relu stores anyway
        numpy="maximum",
    ),
    row(
        "clamp_max",
        "minimum, but of two that are equal the first has all of the gradient.",
        spelled("min({0}, {1})", *INTEGERS) | called("minimum", 2, "f32", "f64") | {"bool": "({0} & {1})"},
        "biuf",
        cost=3,
        gradient=("where(a > b, 0.0, g)", "where(y >= a, 0.0, g)"),
        numpy="minimum",
    ),
)

COMPARISON = (
    comparison(
        "equal", "Whether x1 is equal to x2. >>> [1, 2, 3], 2 -> [False  True False]", "==", "({0} == {1})"
    ),
    comparison(
        "not_equal",
        "Whether x1 is not equal to x2. >>> [1, 2, 3], 2 -> [ True False  True]",
        "!=",
        "({0} != {1})",
    ),
    comparison(
        "less", "Whether x1 is less than x2. >>> [1, 2, 3], 2 -> [ True False False]", "<", "(!{0} & {1})"
    ),
    comparison(
        "less_equal",
        "Whether x1 is less than x2, or equal. >>> [1, 2, 3], 2 -> [ True  True False]",
        "<=",
        "(!{0} | {1})",
    ),
    comparison(
        "greater",
        "Whether x1 is greater than x2. >>> [1, 2, 3], 2 -> [False False  True]",
        ">",
        "({0} & !{1})",
    ),
    comparison(
        "greater_equal",
        "Whether x1 is greater than x2, or equal. >>> [1, 2, 3], 2 -> [False  True  True]",
        ">=",
        "({0} | !{1})",
    ),
    question(
        "isnan",
        "Whether it is not a number. >>> [1.0, wg.nan, wg.inf] -> [False  True False]",
        integers="false",
    ),
    question(
        "isinf",
        "Whether it is infinite, of either sign. >>> [1.0, wg.nan, -wg.inf] -> [False False  True]",
        integers="false",
    ),
    question(
        "isfinite",
        "Whether it is a number, and finite. >>> [1.0, wg.nan, wg.inf] -> [ True False False]",
        integers="true",
    ),
)

LOGIC = (
    logical(
        "logical_and",
        "Whether both are true; numbers are true unless they are 0."
        " >>> [0, 1, 2], [1, 0, 3] -> [False False  True]",
        "({0} & {1})",
    ),
    logical(
        "logical_or",
        "Whether one is true; numbers are true unless they are 0."
        " >>> [0, 1, 0], [0, 0, 3] -> [False  True  True]",
        "({0} | {1})",
    ),
    logical(
        "logical_xor",
        "Whether exactly one is true; numbers are true unless they are 0."
        " >>> [0, 1, 2], [0, 0, 3] -> [False  True False]",
        "({0} != {1})",
    ),
    logical(
        "logical_not",
        "Whether it is not true; numbers are true unless they are 0. >>> [0, 1, 2] -> [ True False False]",
        "(!{0})",
    ),
    row(
        "bitwise_and",
        "x1 & x2, of integers or bools. >>> [12, 10], 6 -> [4 2]",
        spelled("({0} & {1})", "bool", *INTEGERS),
        "biu",
        gradient=(),
    ),
    row(
        "bitwise_or",
        "x1 | x2, of integers or bools. >>> [12, 10], 6 -> [14 14]",
        spelled("({0} | {1})", "bool", *INTEGERS),
        "biu",
        gradient=(),
    ),
    row(
        "bitwise_xor",
        "x1 ^ x2, of integers or bools. >>> [12, 10], 6 -> [10 12]",
        spelled("({0} ^ {1})", *INTEGERS) | {"bool": "({0} != {1})"},
        "biu",
        gradient=(),
    ),
    row(
        "bitwise_invert",
        "~x, of integers or bools. >>> [0, 5, -1] -> [-1 -6  0]",
        spelled("(~{0})", *INTEGERS) | {"bool": "(!{0})"},
        "biu",
        gradient=(),
        numpy="invert",
    ),
    row(
        "left_shift",
        "x1 << x2; by the width or more, or by a negative number, 0. >>> [1, 3], 4 -> [16 48]",
        called("left_shift", 2, *INTEGERS),
        "iu",
        cost=2,
        gradient=(),
        function="bitwise_left_shift",
    ),
    row(
        "right_shift",
        "x1 >> x2, keeping the sign; by the width or more, or a negative number, 0 or -1."
        " >>> [16, -16], 2 -> [ 4 -4]",
        called("right_shift", 2, *INTEGERS),
        "iu",
        cost=2,
        gradient=(),
        function="bitwise_right_shift",
    ),
    row(
        "where",
        "The second operand where the first, a bool, is true; else the third.",
        spelled("select({2}, {1}, {0})", "bool", *NUMBERS),
        "biuf",
        arity=3,
        infer=choice,
        gradient=("0", "where(a, g, 0.0)", "where(a, 0.0, g)"),
    ),
    row(
        "random_bits",
        "Threefry-2x32, 20 rounds: the first word for the counter (operand 0, 0) and the key (1, 2).",
        {"u32": "wg_random_bits({0}, {1}, {2})"},
        "u",
        "uint32",
        arity=3,
        infer=words,
        cost=110,
        gradient=(),
        numpy=references.random_bits,
    ),
)

FUNCTIONS = (
    of_floats(
        "exp", "e to the power of x. >>> [0.0, 1.0] -> [1.     2.7183]", 25, "g * y", domain=(-104, 89)
    ),
    of_floats(
        "exp2", "2 to the power of x. >>> [0.0, 3.0] -> [1. 8.]", 22, "g * y * LOG_2", domain=(-150, 128)
    ),
    of_floats(
        "expm1",
        "exp(x) - 1, exact near 0. >>> [0.0, 1.0] -> [0.     1.7183]",
        25,
        "g * (y + 1)",
        domain=(-104, 89),
    ),
    of_floats(
        "log", "The natural logarithm. >>> [1.0, 10.0] -> [0.     2.3026]", 30, "g / a", domain=(0, 1e3)
    ),
    of_floats(
        "log1p",
        "log(1 + x), exact near 0. >>> [0.0, 1.0] -> [0.     0.6931]",
        35,
        "g / (1 + a)",
        domain=(-1, 1e3),
    ),
    of_floats(
        "log2", "The logarithm to base 2. >>> [1.0, 8.0] -> [0. 3.]", 30, "g / (a * LOG_2)", domain=(0, 1e3)
    ),
    of_floats(
        "log10",
        "The logarithm to base 10. >>> [1.0, 3.0] -> [0.     0.4771]",
        32,
        "g / (a * LOG_10)",
        domain=(0, 1e3),
    ),
    of_floats("sin", "The sine of an angle in radians. >>> [0.0, 1.0] -> [0.     0.8415]", 100, "g * cos(a)"),
    of_floats(
        "cos", "The cosine of an angle in radians. >>> [0.0, 1.0] -> [1.     0.5403]", 100, "-g * sin(a)"
    ),
    of_floats(
        "tan", "The tangent of an angle in radians. >>> [0.0, 1.0] -> [0.     1.5574]", 100, "g * (1 + y * y)"
    ),
    of_floats(
        "asin",
        "The angle of a sine. >>> [0.0, 1.0] -> [0.     1.5708]",
        25,
        "g * rsqrt(1 - a * a)",
        numpy="arcsin",
        domain=(-1, 1),
    ),
    of_floats(
        "acos",
        "The angle of a cosine. >>> [0.0, 1.0] -> [1.5708 0.    ]",
        28,
        "-g * rsqrt(1 - a * a)",
        numpy="arccos",
        domain=(-1, 1),
    ),
    of_floats(
        "atan",
        "The angle of a tangent. >>> [0.0, 1.0] -> [0.     0.7854]",
        28,
        "g / (1 + a * a)",
        numpy="arctan",
    ),
    of_floats(
        "atan2",
        "The angle of the point (x2, x1), from -π to π."
        " >>> [0.0, 1.0, -1.0], [1.0, 0.0, 0.0] -> [ 0.      1.5708 -1.5708]",
        35,
        "angle_slope(g * b, a, b)",
        "angle_slope(-g * a, a, b)",
        numpy="arctan2",
    ),
    of_floats(
        "sinh", "The hyperbolic sine. >>> [0.0, 1.0] -> [0.     1.1752]", 35, "g * cosh(a)", domain=(-90, 90)
    ),
    of_floats(
        "cosh",
        "The hyperbolic cosine. >>> [0.0, 1.0] -> [1.     1.5431]",
        28,
        "g * sinh(a)",
        domain=(-90, 90),
    ),
    of_floats(
        "tanh",
        "The hyperbolic tangent. >>> [0.0, 1.0] -> [0.     0.7616]",
        40,
        "g * (1 - y * y)",
        domain=(-10, 10),
    ),
    of_floats(
        "asinh",
        "The inverse of sinh. >>> [0.0, 1.0] -> [0.     0.8814]",
        55,
        "g * rsqrt(a * a + 1)",
        numpy="arcsinh",
    ),
    of_floats(
        "acosh",
        "The inverse of cosh. >>> [1.0, 1.5] -> [0.     0.9624]",
        50,
        "g * rsqrt(a * a - 1)",
        numpy="arccosh",
        domain=(1, 1e3),
    ),
    of_floats(
        "atanh",
        "The inverse of tanh. >>> [0.0, 0.5] -> [0.     0.5493]",
        45,
        "g / (1 - a * a)",
        numpy="arctanh",
        domain=(-1, 1),
    ),
    of_floats(
        "erf",
        "The error function. >>> [0.0, 0.5] -> [0.     0.5205]",
        70,
        "g * exp(-a * a) * TWO_BY_ROOT_PI",
        numpy=references.erf,
        domain=(-5, 5),
    ),
    of_floats(
        "erfc",
        "1 - erf(x), exact where that is small. >>> [0.0, 0.5] -> [1.     0.4795]",
        55,
        "g * exp(-a * a) * -TWO_BY_ROOT_PI",
        numpy=references.erfc,
        domain=(-5, 11),
    ),
    of_floats(
        "sqrt",
        "The square root. >>> [4.0, 2.0] -> [2.     1.4142]",
        5,
        "g * 0.5 / y",
        domain=(0, 1e3),
        tolerance=3,
    ),
    of_floats(
        "rsqrt",
        "1 / sqrt(x). >>> [4.0, 2.0] -> [0.5    0.7071]",
        8,
        "g * -0.5 * y * y * y",
        numpy=references.rsqrt,
        domain=(0, 1e3),
        tolerance=3,
    ),
    of_floats(
        "sigmoid",
        "1 / (1 + exp(-x)). >>> [0.0, 2.0] -> [0.5    0.8808]",
        32,
        "g * y * (1 - y)",
        numpy=references.sigmoid,
        domain=(-105, 105),
    ),
    of_floats(
        "gelu",
        "x times the normal distribution's Φ(x); 0 at -inf.",
        50,
        "g * gelu_slope(a)",
        numpy=references.gelu,
        domain=(-15, 15),
    ),
    of_floats(
        "gelu_tanh",
        "gelu's approximation by tanh; 0 at -inf.",
        60,
        "g * gelu_tanh_slope(a)",
        numpy=references.gelu_tanh,
        domain=(-15, 15),
    ),
    row(
        "floor",
        "Rounded down; integers and bools stay. >>> [1.5, -1.5] -> [ 1. -2.]",
        spelled("floor({0})", "f32", "f64"),
        "f",
        gradient=("0",),
        integers="same",
    ),
    row(
        "ceil",
        "Rounded up; integers and bools stay. >>> [1.5, -1.5] -> [ 2. -1.]",
        spelled("ceil({0})", "f32", "f64"),
        "f",
        gradient=("0",),
        integers="same",
    ),
    row(
        "round",
        "To the nearest integer, halves to the even; integers and bools stay."
        " >>> [0.5, 1.5, -1.2] -> [ 0.  2. -1.]",
        {"f32": "round({0})", "f64": "wg_round_f64({0})"},
        "f",
        gradient=("0",),
        integers="same",
        numpy="rint",
    ),
    row(
        "trunc",
        "Without what is after the point; integers and bools stay. >>> [1.5, -1.5] -> [ 1. -1.]",
        {"f32": "trunc({0})", "f64": "wg_trunc_f64({0})"},
        "f",
        gradient=("0",),
        integers="same",
    ),
)

MAPS = (*ARITHMETIC, *COMPARISON, *LOGIC, *FUNCTIONS)
