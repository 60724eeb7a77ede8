"""WGSL's builtin functions over the values of users' kernels.

A table each: those of the library, those that are written with others, those of vectors. What is in none is
refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from ..value import Value, constant
from .types import Type, matrix_type, vector_type
from .values import Data, Group, Refusal, Values, type_of

# By the library: float16 as float32, float64 by its own.
_LIBRARY = {
    **{name: f"wg_{name}" for name in ("exp", "exp2", "log", "log2", "sqrt", "atan2")},
    **{name: f"wg_{name}" for name in ("sin", "cos", "tan", "asin", "acos", "atan")},
    **{name: f"wg_{name}" for name in ("sinh", "cosh", "tanh", "asinh", "acosh", "atanh")},
    "pow": "wg_power",
    "inverseSqrt": "wg_rsqrt",
}
_SHARE = "clamp(({2} - {0}) / ({1} - {0}), 0.0, 1.0)"
_SPELLED = {
    "fract": "{0} - floor({0})",
    "mix": "{0} * (1.0 - {2}) + {1} * {2}",
    "saturate": "clamp({0}, 0.0, 1.0)",
    "smoothstep": f"{_SHARE} * {_SHARE} * (3.0 - 2.0 * {_SHARE})",
    "degrees": "{0} * 57.29577951308232",
    "radians": "{0} * 0.017453292519943295",
    "fma": "{0} * {1} + {2}",
    "quantizeToF16": "wg_round_f16({0})",
}
_COUNT = "min({2}, 32u - min({1}, 32u))"
_WIDTH = "min({3}, 32u - min({2}, 32u))"
_MASK = f"(select(0xffffffffu >> (32u - {_WIDTH}), 0u, {_WIDTH} == 0u) << {{2}})"
# Of bits, as u32; `extractBits` keeps the type, for the sign.
_BITWISE = {
    "firstTrailingBit": "select(countTrailingZeros({0}), 0xffffffffu, {0} == 0u)",
    "insertBits": f"({{0}} & ~{_MASK}) | (({{1}} << {{2}}) & {_MASK})",
}
_EXTRACT = f"({{0}} << (32u - min({{1}}, 32u) - {_COUNT})) >> (32u - {_COUNT})"
_PLAIN = (
    *("abs", "sign", "min", "max", "clamp", "floor", "ceil", "round", "trunc", "select"),
    *("countLeadingZeros", "countTrailingZeros", "countOneBits", "reverseBits"),
)


class Functions(Values):
    """Calls of builtin functions."""

    def function(self, name: str, args: Sequence[Data]) -> Data:
        """The result of a function of values."""
        if name == "select":
            no, yes = self.alike(args[0], args[1])
            return self.lifted(lambda a, b, c: self.choose(c, b, a), no, yes, self.settled(args[2]))
        if name in _WHOLE:
            return _WHOLE[name](self, *self.alike(*args))
        if name in _LIBRARY:
            return self.lifted(lambda *parts: self.by_library(_LIBRARY[name], parts), *self._floats(args))
        if name in _SPELLED:
            text = _SPELLED[name]
            return self.lifted(
                lambda *parts: self.library.spelled(text, parts, contract=name == "fma"), *self._floats(args)
            )
        if name == "extractBits":
            more = [self.settled(each, "u32") for each in args[1:]]
            return self.lifted(self.extracted, *self.alike(args[0]), *more)
        if name in _BITWISE:
            return self._of_bits(name, args)
        if name in _PLAIN:
            return self.lifted(lambda *parts: self.builtin(name, parts), *self.alike(*args))
        raise Refusal(f"the function `{name}` is not translated for the cpu")

    def _floats(self, args: Sequence[Data]) -> list[Value | Group]:
        return self.alike(*[float(each) if isinstance(each, int) else each for each in args])

    def by_library(self, name: str, args: Sequence[Value]) -> Value:
        """A function of floats."""
        scalar = args[0].scalar
        if scalar == "f16":
            wide = [self.convert("f32", each) for each in args]
            return self.convert("f16", self.library.call(name, wide))
        if scalar not in ("f32", "f64"):
            raise Refusal(f"`{name.removeprefix('wg_')}` takes floats, not {scalar}")
        return self.library.call(f"{name}_f64" if scalar == "f64" else name, args)

    def extracted(self, x: Value, offset: Value, count: Value) -> Value:
        """extractBits of one number."""
        operands = [x, offset, count]
        found = self.library.spelled(_EXTRACT, operands)
        none = self.binary("==", self.library.spelled(_COUNT, operands), constant("u32", 0))
        return self.choose(none, constant(x.scalar, 0), found)

    def _of_bits(self, name: str, args: Sequence[Data]) -> Data:
        values = [self.settled(each) for each in args]
        scalar = type_of(values[0]).scalar

        def one(*parts: Value) -> Value:
            words = [self.bitcast("u32", each) for each in parts]
            return self.bitcast(scalar, self.library.spelled(_BITWISE[name], words))

        return self.lifted(one, *values)

    # Of whole vectors

    def first_leading_bit(self, x: Value | Group) -> Data:
        def one(part: Value) -> Value:
            word = self.bitcast("u32", part)
            if part.is_signed:
                below = self.binary("<", part, constant("i32", 0))
                word = self.choose(below, self.signed("~", word), word)
            text = "select(31u - countLeadingZeros({0}), 0xffffffffu, {0} == 0u)"
            return self.bitcast(part.scalar, self.library.spelled(text, [word]))

        return self.lifted(one, x)

    def step(self, edge: Value | Group, x: Value | Group) -> Data:
        def one(a: Value, b: Value) -> Value:
            return self.choose(self.binary("<=", a, b), constant(b.scalar, 1), constant(b.scalar, 0))

        return self.lifted(one, edge, x)

    def each_of(self, word: str, x: Value | Group) -> Value:
        """any and all."""
        parts = x.parts if isinstance(x, Group) else (x,)
        found = self.scalar(parts[0])
        for part in parts[1:]:
            found = self.binary(word, found, self.scalar(part))
        return found

    def norm(self, x: Value | Group) -> Value:
        """The length of a vector."""
        if isinstance(x, Value):
            return self.builtin("abs", [x])
        return self.by_library("wg_sqrt", [self.dot(x, x)])

    def normalize(self, x: Value | Group) -> Data:
        return self.operation("/", x, self.norm(x))

    def distance(self, a: Value | Group, b: Value | Group) -> Value:
        return self.norm(cast("Value | Group", self.operation("-", a, b)))

    def cross(self, a: Group, b: Group) -> Data:
        x, y = a.parts, b.parts
        pairs = ((1, 2), (2, 0), (0, 1))
        products = [
            self.operation("-", self.operation("*", x[i], y[j]), self.operation("*", x[j], y[i]))
            for i, j in pairs
        ]
        return Group(a.type, tuple(products))

    def reflect(self, x: Group, normal: Group) -> Data:
        twice = self.operation("*", 2.0, self.dot(normal, x))
        return self.operation("-", x, self.operation("*", twice, normal))

    def transpose(self, x: Group) -> Data:
        columns = [cast(Group, each) for each in x.parts]
        assert x.type is not None
        assert x.type.element is not None
        rows, scalar = x.type.element.count, x.type.scalar
        made = tuple(
            Group(vector_type(len(columns), scalar), tuple(each.parts[at] for each in columns))
            for at in range(rows)
        )
        return Group(matrix_type(rows, len(columns), scalar), made)

    # Packed words

    def unpack(self, name: str, word: Value) -> Data:
        found = self.library.unpacked(name, word).parts
        return Group(vector_type(len(found), found[0].scalar), found)

    def unpack_norm(self, name: str, most: float, word: Value) -> Data:
        floats = [self.convert("f32", each) for each in self.library.unpacked(name, word).parts]
        text = f"max({{0}} / {most}, -1.0)"
        return Group(vector_type(4, "f32"), tuple(self.library.spelled(text, [each]) for each in floats))

    def pack_bytes(self, x: Group) -> Value:
        word = constant("u32", 0)
        for at, each in enumerate(x.parts):
            text = f"{{0}} | ((bitcast<u32>({{1}}) & 0xffu) << {8 * at}u)"
            word = self.library.spelled(text, [word, self.scalar(each)])
        return word

    def pack_norm(self, least: float, most: float, x: Group) -> Value:
        text = f"I(floor(0.5 + {most} * clamp({{0}}, {least}, 1.0)))"
        numbers = tuple(self.library.spelled(text, [self.scalar(each)]) for each in x.parts)
        return self.pack_bytes(Group(vector_type(4, "i32"), numbers))

    def pack_clamped(self, low: int, high: int, x: Group) -> Value:
        text = f"clamp({{0}}, {low}, {high})"
        return self.pack_bytes(
            Group(x.type, tuple(self.library.spelled(text, [self.scalar(each)]) for each in x.parts))
        )

    def pack_halves(self, x: Group) -> Value:
        text = "wg_f16_bits({0}) | (wg_f16_bits({1}) << 16u)"
        return self.library.spelled(text, [self.scalar(each) for each in x.parts])

    def dot_bytes(self, name: str, a: Value, b: Value) -> Value:
        left, right = self.unpack(name, a), self.unpack(name, b)
        return self.dot(cast(Group, left), cast(Group, right))

    def bits_as(self, type: Type, x: Data) -> Data:
        """bitcast<T>(x) between types of one size."""
        return self.lifted(lambda part: self.bitcast(type.scalar, part), self.settled(x))


_WHOLE: Mapping[str, Callable[..., Data]] = {
    "dot": Functions.dot,
    "any": lambda f, x: f.each_of("|", x),
    "all": lambda f, x: f.each_of("&", x),
    "length": Functions.norm,
    "distance": Functions.distance,
    "normalize": Functions.normalize,
    "cross": Functions.cross,
    "reflect": Functions.reflect,
    "transpose": Functions.transpose,
    "step": Functions.step,
    "firstLeadingBit": Functions.first_leading_bit,
    "unpack2x16float": lambda f, x: f.unpack("unpack2x16float", x),
    "unpack4xI8": lambda f, x: f.unpack("unpack4xI8", x),
    "unpack4xU8": lambda f, x: f.unpack("unpack4xU8", x),
    "unpack4x8unorm": lambda f, x: f.unpack_norm("unpack4xU8", 255.0, x),
    "unpack4x8snorm": lambda f, x: f.unpack_norm("unpack4xI8", 127.0, x),
    "pack2x16float": Functions.pack_halves,
    "pack4xI8": Functions.pack_bytes,
    "pack4xU8": Functions.pack_bytes,
    "pack4xI8Clamp": lambda f, x: f.pack_clamped(-128, 127, x),
    "pack4xU8Clamp": lambda f, x: f.pack_clamped(0, 255, x),
    "pack4x8unorm": lambda f, x: f.pack_norm(0.0, 255.0, x),
    "pack4x8snorm": lambda f, x: f.pack_norm(-1.0, 127.0, x),
    "dot4I8Packed": lambda f, a, b: f.dot_bytes("unpack4xI8", a, b),
    "dot4U8Packed": lambda f, a, b: f.dot_bytes("unpack4xU8", a, b),
}
