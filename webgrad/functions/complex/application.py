"""Complex ops for `primitives.py`: maps by their formulas, and products.

In: nodes and numbers, cast to one complex dtype, in arithmetic also to its parts' dtype. Out: a node. Here
functions get their gradients: of a holomorphic one the conjugate of its derivative, which is exact where its
formula has a corner (an absolute value at 0, say). Sums and products of parts need no rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

from ...gradients.own import own_gradient
from ...graph.node import Node
from ...ops import primitives
from ...ops.primitives import reshape, slice_
from ...ops.shapes import broadcast
from ...ops.table import TABLE
from ...tensor import Tensor
from ..array.elementwise import abs as absolute
from ..array.elementwise import cos, cosh, exp, exp2, log, sign, sin, sinh, sqrt, tan, tanh, where
from .formulas import ARITHMETIC, FORMULAS, Pair
from .parts import conj, real

Slope = Callable[..., Tensor]


def _computed(name: str, operands: Sequence[Node | primitives.Number]) -> Node:
    """A map op of the table, of complex numbers; in arithmetic real ones beside them stay real."""
    nodes = (primitives.factors if name in ARITHMETIC else primitives.common)(name, operands)
    if name in _BOTH_PARTS and _is_alike(name, nodes):
        return primitives.as_complex(primitives.elementwise(TABLE[name], *map(_as_floats, nodes)))
    formula = ARITHMETIC.get(name) or FORMULAS[name]
    if all(each.history is None for each in nodes) or name not in _RULES:
        return _result(formula, nodes)
    shape = broadcast(name, [each.sig.shape for each in nodes])
    sources = [Tensor(primitives.expand(each, shape)) for each in nodes]
    rules = [_rule(sources, at, each) for at, each in enumerate(_RULES[name])]
    inputs = tuple(each.node for each in sources)
    return own_gradient(lambda: Tensor(_result(formula, inputs)), *zip(sources, rules, strict=True)).node


_BOTH_PARTS = ("add", "subtract", "multiply", "divide", "negative")


def _is_alike(name: str, nodes: tuple[Node, ...]) -> bool:
    """Whether an op does the same to both parts, and its operands are stored as pairs."""
    kinds = "".join(each.sig.dtype.kind for each in nodes)
    alike = {"multiply": ("cf", "fc"), "divide": ("cf",), "negative": ("c",)}.get(name, ("cc",))
    return kinds in alike and not any(primitives.is_joined(each) for each in nodes)


def _as_floats(x: Node) -> Node:
    """Pairs, or real numbers that broadcast to both parts of a pair."""
    if x.sig.dtype.kind == "c":
        return primitives.as_real(x)
    return reshape(x, (*x.sig.shape, 1)) if x.sig.shape else x


def _result(formula: Callable[..., Pair | Tensor], nodes: tuple[Node, ...]) -> Node:
    takes_real = formula in ARITHMETIC.values()
    return _node(formula(*(_operand(each, takes_real) for each in nodes)))


def _operand(x: Node, takes_real: bool) -> Pair | Tensor:
    return Tensor(x) if x.sig.dtype.kind != "c" and takes_real else _pair(x)


def _pair(x: Node) -> Pair:
    real_part, imaginary = primitives.parts(x)
    return Pair(Tensor(real_part), Tensor(imaginary))


def _node(value: Pair | Tensor) -> Node:
    return primitives.join(value.re.node, value.im.node) if isinstance(value, Pair) else value.node


# Gradients: of the inputs, from the result's gradient g and the inputs


def _rule(sources: list[Tensor], at: int, pull: Slope) -> Callable[[Tensor], Tensor]:
    def rule(g: Tensor) -> Tensor:
        gradient = pull(g, *sources)
        return gradient if sources[at].dtype.kind == "c" else real(gradient)

    return rule


def _by(slope: Slope) -> Slope:
    """The rule of a holomorphic function, from its derivative."""
    return lambda g, *inputs: g * conj(slope(*inputs))


def _sign_gradient(g: Tensor, z: Tensor) -> Tensor:
    """The component of g orthogonal to z, over |z|."""
    direction, size = sign(z), absolute(z)
    across = g - real(conj(direction) * g) * direction
    return where(size == 0, 0.0, across / where(size == 0, 1.0, size))


def _exponent_slope(a: Tensor, b: Tensor) -> Tensor:
    """a^b log a, which is 0 where a is."""
    nought = a == 0
    return where(nought, 0.0, a**b * log(where(nought, 1.0, a)))


_RULES: dict[str, tuple[Slope, ...]] = {
    "divide": (_by(lambda a, b: 1 / b), _by(lambda a, b: -(a / b) / b)),
    "power": (_by(lambda a, b: b * a ** (b - 1)), _by(_exponent_slope)),
    "abs": (lambda g, z: g * sign(z),),
    "sign": (_sign_gradient,),
    "exp": (_by(exp),),
    "exp2": (_by(lambda z: exp2(z) * math.log(2)),),
    "expm1": (_by(exp),),
    "log": (_by(lambda z: 1 / z),),
    "log1p": (_by(lambda z: 1 / (1 + z)),),
    "log2": (_by(lambda z: 1 / (z * math.log(2))),),
    "log10": (_by(lambda z: 1 / (z * math.log(10))),),
    "sqrt": (_by(lambda z: 0.5 / sqrt(z)),),
    "rsqrt": (_by(lambda z: -0.5 / (z * sqrt(z))),),
    "sinh": (_by(cosh),),
    "cosh": (_by(sinh),),
    "tanh": (_by(lambda z: 1 - tanh(z) ** 2),),
    "asinh": (_by(lambda z: 1 / sqrt(1 + z * z)),),
    "acosh": (_by(lambda z: 1 / (sqrt(z - 1) * sqrt(z + 1))),),
    "atanh": (_by(lambda z: 1 / (1 - z * z)),),
    "sin": (_by(cos),),
    "cos": (_by(lambda z: -sin(z)),),
    "tan": (_by(lambda z: 1 + tan(z) ** 2),),
    "asin": (_by(lambda z: 1 / sqrt(1 - z * z)),),
    "acos": (_by(lambda z: -1 / sqrt(1 - z * z)),),
    "atan": (_by(lambda z: 1 / (1 + z * z)),),
}


# Products of many


def _matrix_product(a: Node, b: Node) -> Node:
    """(…, m, k) @ (…, k, n): four products of the parts, or two with a real factor."""
    first, second = (_operand(each, True) for each in primitives.factors("matmul", (a, b)))
    if isinstance(first, Tensor):
        assert isinstance(second, Pair)
        return _node(Pair(first @ second.re, first @ second.im))
    if isinstance(second, Tensor):
        return _node(Pair(first.re @ second, first.im @ second))
    return _node(
        Pair(
            first.re @ second.re - first.im @ second.im,
            first.re @ second.im + first.im @ second.re,
        )
    )


def _product_over(x: Node, axes: tuple[int, ...]) -> Node:
    """The product over axes: halves multiplied with each other until one is left."""
    rest = tuple(axis for axis in range(len(x.sig.shape)) if axis not in axes)
    sizes = tuple(x.sig.shape[axis] for axis in rest)
    count = math.prod(x.sig.shape[axis] for axis in axes)
    line = reshape(primitives.permute(x, (*rest, *axes)), (*sizes, count))
    if not count:
        return primitives.expand(primitives.constant("prod", 1, x.sig.dtype, x.sig.device), sizes)
    while count > 1:
        half = count // 2
        pairs = [_cut(line, at * half, (at + 1) * half) for at in (0, 1)]
        product = _computed("multiply", pairs)
        odd = [_cut(line, 2 * half, count)] if count % 2 else []
        line = primitives.concat([product, *odd], len(sizes))
        count = half + count % 2
    return reshape(line, sizes)


def _running_product(x: Node, axis: int) -> Node:
    """Running products along an axis: each element times the one 1, 2, 4 … before it, in turn."""
    rank, length = len(x.sig.shape), x.sig.shape[axis]
    last = (*(each for each in range(rank) if each != axis), axis)
    line = primitives.permute(x, last)
    step = 1
    while step < length:
        product = _computed("multiply", (_cut(line, step, length), _cut(line, 0, length - step)))
        line = primitives.concat([_cut(line, 0, step), product], rank - 1)
        step *= 2
    return primitives.permute(line, tuple(last.index(each) for each in range(rank)))


def _cut(line: Node, start: int, stop: int) -> Node:
    *sizes, _ = line.sig.shape
    return slice_(line, (*((0, size, 1) for size in sizes), (start, stop, 1)))


# By the name of the op
PRIMITIVES: dict[str, primitives.Formula] = {
    **{name: partial(_computed, name) for name in (*ARITHMETIC, *FORMULAS)},
    "matmul": _matrix_product,
    "prod": _product_over,
    "cumulative_prod": _running_product,
}
