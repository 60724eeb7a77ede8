"""WGSL's operators, conversions and builtin functions over values, in any number of lanes.

Whatever stops a processor, or LLVM leaves open, is defined as in WGSL: division by 0 gives the dividend, its
remainder is 0, shifts take their amount modulo the width, floats saturate when they become integers (NaN is
0). NaN, infinities and the sign of 0 are IEEE's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from ...errors import CompileError
from ..text import Function
from ..value import BITS, FLOATS, SCALARS, Value, constant, llvm_type

_ORDERED = {"==": "oeq", "!=": "une", "<": "olt", ">": "ogt", "<=": "ole", ">=": "oge"}
_COMPARED = {"==": "eq", "!=": "ne", "<": "lt", ">": "gt", "<=": "le", ">=": "ge"}
_OF_FLOATS = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"}
_OF_INTEGERS = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "&": "and",
    "|": "or",
    "^": "xor",
    "&&": "and",
    "||": "or",
}
_ROUNDING = {"round": "roundeven", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "sqrt": "sqrt"}
_COUNTING = {
    "countLeadingZeros": "ctlz",
    "countTrailingZeros": "cttz",
    "countOneBits": "ctpop",
    "reverseBits": "bitreverse",
}


class Arithmetic:
    """What can be done with numbers; `mask` are the lanes that count (None: all)."""

    def __init__(self, code: Function) -> None:
        self.code = code
        self.mask: Value | None = None
        self._flags = ""

    @contextmanager
    def fusing(self, contract: bool) -> Iterator[None]:
        """Whether sums of products may be rounded once."""
        outer, self._flags = self._flags, "contract " if contract else ""
        yield
        self._flags = outer

    # Operators

    def binary(self, sign: str, a: Value, b: Value) -> Value:
        """`a sign b`; both sides of && and || are computed."""
        if sign in ("<<", ">>"):
            return self._shifted(sign, a, b)
        a, b = self.code.level(a, b)
        if sign in _COMPARED:
            return self._compared(sign, a, b)
        if a.is_float:
            if sign == "%":  # LLVM would call the C library's fmod
                quotient = self.builtin("trunc", [self.binary("/", a, b)])
                return self.binary("-", a, self.binary("*", b, quotient))
            return self._named(f"{_OF_FLOATS[sign]} {self._flags}", a, b)
        if sign in ("/", "%"):
            word = {"/": "div", "%": "rem"}[sign]
            return self._named(f"{'s' if a.is_signed else 'u'}{word} ", a, self._divisor(a, b))
        return self._named(f"{_OF_INTEGERS[sign]} ", a, b)

    def _named(self, word: str, a: Value, b: Value) -> Value:
        return Value(self.code(f"{word}{a.type} {a.name}, {b.name}"), a.scalar, a.width)

    def _compared(self, sign: str, a: Value, b: Value) -> Value:
        if a.is_float:
            test = f"fcmp {_ORDERED[sign]}"
        else:
            kind = "" if sign in ("==", "!=") else "s" if a.is_signed else "u"
            test = f"icmp {kind}{_COMPARED[sign]}"
        return Value(self.code(f"{test} {a.type} {a.name}, {b.name}"), "bool", a.width)

    def _shifted(self, sign: str, a: Value, b: Value) -> Value:
        last, amounts = BITS[a.scalar] - 1, f"u{BITS[a.scalar]}"
        if b.is_constant:
            b = constant(amounts, int(b.name) & last)
        else:
            b = self.convert(amounts, self.binary("&", b, constant(b.scalar, last)))
        a, b = self.code.level(a, b)
        return self._named("shl " if sign == "<<" else "ashr " if a.is_signed else "lshr ", a, b)

    def _divisor(self, a: Value, b: Value) -> Value:
        """b, or 1 where the division by it would stop the processor."""
        bad = self.binary("==", b, constant(b.scalar, 0))
        if a.is_signed:
            lowest = self.binary("==", a, constant(a.scalar, -(1 << (BITS[a.scalar] - 1))))
            minus = self.binary("==", b, constant(b.scalar, -1))
            bad = self.binary("|", bad, self.binary("&", lowest, minus))
        return self.choose(bad, constant(b.scalar, 1), b)

    def signed(self, sign: str, x: Value) -> Value:
        """`-x`, `~x` or `!x`."""
        if sign == "-" and x.is_float:
            return Value(self.code(f"fneg {x.type} {x.name}"), x.scalar, x.width)
        if sign == "-":
            return self.binary("-", constant(x.scalar, 0), x)
        return self.binary("^", x, constant(x.scalar, 1 if x.scalar == "bool" else -1))

    def choose(self, condition: Value, yes: Value, no: Value) -> Value:
        """`yes` where the condition is true, else `no`."""
        condition, yes, no = self.code.level(condition, yes, no)
        parts = ", ".join(f"{each.type} {each.name}" for each in (condition, yes, no))
        return Value(self.code(f"select {parts}"), yes.scalar, yes.width)

    # Conversions

    def bitcast(self, scalar: str, x: Value) -> Value:
        """The same bits as another type of this size."""
        if SCALARS[scalar] == SCALARS[x.scalar]:
            return Value(x.name, scalar, x.width)
        return self._cast("bitcast", scalar, x)

    def _cast(self, word: str, scalar: str, x: Value) -> Value:
        name = self.code(f"{word} {x.type} {x.name} to {llvm_type(scalar, x.width)}")
        return Value(name, scalar, x.width)

    def convert(self, scalar: str, x: Value) -> Value:
        """f32(x), u32(x), …: the same value as another type."""
        source = x.scalar
        if source == scalar:
            return x
        if scalar == "bool":
            return self.binary("!=", x, constant(source, 0))
        if scalar in FLOATS:
            if x.is_float:
                return self._cast("fpext" if BITS[scalar] > BITS[source] else "fptrunc", scalar, x)
            return self._cast("sitofp" if x.is_signed else "uitofp", scalar, x)
        if x.is_float:
            word = "fptosi.sat" if scalar[0] == "i" else "fptoui.sat"
            made = self.code.intrinsic(word, x.type, x.name, result=llvm_type(scalar, x.width))
            return Value(made, scalar, x.width)
        if BITS[scalar] == BITS[source]:
            return Value(x.name, scalar, x.width)
        wider = "sext" if x.is_signed else "zext"
        return self._cast(wider if BITS[scalar] > BITS[source] else "trunc", scalar, x)

    # Functions

    def builtin(self, name: str, args: Sequence[Value]) -> Value:
        """One of WGSL's functions of numbers."""
        if name in _ROUNDING:
            return self.like(_ROUNDING[name], args[0])
        if name in _COUNTING:
            return self.like(_COUNTING[name], args[0])
        if name not in _BUILTINS:
            raise CompileError(f"the function {name} of WGSL is not translated")
        return _BUILTINS[name](self, *args)

    def like(self, intrinsic: str, *args: Value) -> Value:
        """An intrinsic whose result is of the type of its operands."""
        x = args[0]
        name = self.code.intrinsic(intrinsic, x.type, *[each.name for each in args])
        return Value(name, x.scalar, x.width)

    def _select(self, no: Value, yes: Value, condition: Value) -> Value:
        return self.choose(condition, yes, no)

    def _any(self, x: Value) -> Value:
        """Whether it is true in a lane that counts."""
        return self._across("or", x if self.mask is None else self.binary("&", x, self.mask))

    def _all(self, x: Value) -> Value:
        return self._across(
            "and", x if self.mask is None else self.binary("|", x, self.signed("!", self.mask))
        )

    def _across(self, word: str, x: Value) -> Value:
        if not x.width:
            return x
        return Value(self.code.intrinsic(f"vector.reduce.{word}", x.type, x.name, result="i1"), "bool")

    def _extreme(self, word: str, a: Value, b: Value) -> Value:
        a, b = self.code.level(a, b)
        if a.is_float:  # of NaN and a number the second, as x86 has it
            return self.choose(self.binary("<" if word == "min" else ">", a, b), a, b)
        return self.like(("s" if a.is_signed else "u") + word, a, b)

    def _min(self, a: Value, b: Value) -> Value:
        return self._extreme("min", a, b)

    def _max(self, a: Value, b: Value) -> Value:
        return self._extreme("max", a, b)

    def _clamp(self, x: Value, low: Value, high: Value) -> Value:
        return self._min(self._max(x, low), high)

    def _abs(self, x: Value) -> Value:
        if x.is_float:
            return self.like("fabs", x)
        return self.like("abs", x) if x.is_signed else x

    def _sign(self, x: Value) -> Value:
        zero, one, minus = (constant(x.scalar, each) for each in (0, 1, -1))
        below = self.choose(self.binary("<", x, zero), minus, zero)
        return self.choose(self.binary(">", x, zero), one, below)


_BUILTINS: Mapping[str, Callable[..., Value]] = {
    "select": Arithmetic._select,
    "any": Arithmetic._any,
    "all": Arithmetic._all,
    "min": Arithmetic._min,
    "max": Arithmetic._max,
    "clamp": Arithmetic._clamp,
    "abs": Arithmetic._abs,
    "sign": Arithmetic._sign,
}
