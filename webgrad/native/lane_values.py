"""Values of a kernel in lanes: numbers, indices, and what maps make of them, in LLVM's text.

In: instructions of a `Kernel`. Out: for each a `Value`, one for all lanes or a vector, or a `Linear`: an
index that goes up by a fixed stride from lane to lane. The methods that are not private are those of
instructions, under their names in the grammar of `lower/ir.py`. Indices in lanes have 32 bits, where buffers
allow it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..lower.ir import BLOCK, COUNT, PANEL, Instruction, Kernel, Size
from .processor import Processor
from .text import Function
from .translation.translator import Translator
from .value import SCALARS, Value, constants, llvm_type, number

MOST_NARROW = 1 << 31  # elements of a buffer up to which indices in lanes have 32 bits
TRUE = Value("true", "bool")
OWN = {PANEL: "%out", BLOCK: "%tile", COUNT: "%count"}  # buffers that are parameters of a hole


@dataclass(frozen=True, slots=True)
class Linear:
    """An index: `base` in the first lane, `stride` more in each next one."""

    base: str
    stride: int = 0


@dataclass(frozen=True, slots=True)
class Register:
    """A variable: of all lanes, or a vector of them."""

    place: str
    scalar: str
    width: int


class LaneValues:
    """A kernel while it is written."""

    def __init__(
        self,
        kernel: Kernel,
        body: Sequence[Instruction],
        code: Function,
        processor: Processor,
        lanes: int,
        first: int,
        sizes: list[Size],
    ) -> None:
        self.kernel = kernel
        self._instructions = list(body)
        self._first = first  # field, of those of the kernel
        self.lanes = lanes
        self.code = code
        self.translator = Translator(code)
        self.sizes = sizes
        self._processor = processor
        self._values: dict[int, Value | Linear | Register] = {}
        self._width = 0  # of the loop that is open now: 0 outside of lanes
        self._mask: Value | None = None  # of the lanes that exist
        self._copy = 0
        self._goes_straight = False  # the loop that is open: lanes after lanes, without a loop inside
        self._accumulators: dict[int, list[str]] = {}
        # Loads that are rows of squares in memory: the address, the first row, and the loop over rows
        self._squares: dict[int, tuple[str, str, Instruction]] = {}
        self._buffers: list[str] = []
        self._fixed = _sizes_in_text(body)
        sizes_of = [each.size for each in kernel.buffers if each.value not in OWN]
        sizes_of += [each.data for each in body if isinstance(each.data, Size)]
        large = max(sizes_of, default=0) >= MOST_NARROW
        self._index = "i64" if large else "u32"  # of indices that differ between lanes
        self._masked = processor.has_masks or (
            processor.register_bytes > 16 and all(each.dtype.itemsize >= 4 for each in kernel.buffers)
        )

    def _is_uniform(self, value: Any) -> bool:
        return value.stride == 0 if isinstance(value, Linear) else not value.width

    def _i64(self, each: Instruction) -> str:
        """An index that is one for all lanes."""
        value = self._values[id(each)]
        if isinstance(value, Linear):
            return value.base
        assert isinstance(value, Value)
        return self._widened_index(value, "i64").name

    def _widened_index(self, value: Value, scalar: str) -> Value:
        to = llvm_type(scalar, value.width)
        if value.type == to:
            return value
        return Value(self.code(f"zext {value.type} {value.name} to {to}"), scalar, value.width)

    def _spread(self, each: Instruction) -> Value:
        """An index as a vector."""
        value, width, code, scalar = self._values[id(each)], self._width, self.code, self._index
        kind = SCALARS[scalar]
        if isinstance(value, Linear):
            base = value.base
            if not base.startswith("%"):
                base = number(scalar, int(base))
            elif scalar != "i64":
                base = code(f"trunc i64 {base} to {kind}")
            first = code.splat(Value(base, scalar), width)
            if not value.stride:
                return first
            steps = constants(kind, [value.stride * lane for lane in range(width)])
            return Value(code(f"add {first.type} {first.name}, {steps}"), scalar, width)
        assert isinstance(value, Value)
        return code.splat(self._widened_index(value, scalar), width)

    def _plain(self, each: Instruction) -> Value:
        """A value of its own type: an index becomes u32."""
        value = self._values[id(each)]
        if isinstance(value, Linear) and not value.stride:
            if not value.base.startswith("%"):
                return Value(number("u32", int(value.base)), "u32")
            return Value(self.code(f"trunc i64 {value.base} to i32"), "u32")
        assert not isinstance(value, Register)
        if isinstance(value, Linear) or (value.scalar == "i64" and each.type and each.type.scalar == "u32"):
            wide = self._spread(each)
            if wide.scalar == "u32":
                return wide
            return Value(
                self.code(f"trunc {wide.type} {wide.name} to <{wide.width} x i32>"), "u32", wide.width
            )
        return value

    # Numbers and indices

    def const(self, each: Instruction) -> Value | Linear:
        assert each.type is not None
        if each.type.scalar != "u32":
            return Value(number(each.type.scalar, each.data), each.type.scalar)
        if isinstance(each.data, Size) and id(each) not in self._fixed:
            if each.data not in self.sizes:
                self.sizes.append(each.data)
            first = self._first + len(self.kernel.buffers) + len(self.kernel.scalars)
            return Linear(self.code.field("i64", first + self.sizes.index(each.data)))
        return Linear(str(int(each.data)))

    def scalar(self, each: Instruction) -> Value:
        compute = self.kernel.scalars[each.data][1].compute
        kind = "i8" if compute == "bool" else SCALARS[compute]
        value = self.code.field(kind, self._first + len(self.kernel.buffers) + each.data)
        return Value(self.code(f"icmp ne i8 {value}, 0") if compute == "bool" else value, compute)

    def thread(self, each: Instruction) -> Linear:
        return Linear(f"%{each.data}")

    def argument(self, each: Instruction) -> Linear:
        return Linear(f"%{each.data}")

    def arithmetic(self, each: Instruction) -> Value | Linear:
        a, b = (self._values[id(x)] for x in each.args)
        if self._is_uniform(a) and self._is_uniform(b):
            return Linear(self._folded(each.data, *(self._i64(x) for x in each.args)))
        if isinstance(a, Linear) and isinstance(b, Linear):
            if each.data in "+-":
                stride = a.stride + (b.stride if each.data == "+" else -b.stride)
                return Linear(self._folded(each.data, a.base, b.base), stride)
            if each.data == "*":
                a, b = (b, a) if a.stride == 0 else (a, b)
                if b.stride == 0 and not b.base.startswith("%"):
                    return Linear(self._folded("*", a.base, b.base), a.stride * int(b.base))
        x, y = (self._spread(arg) for arg in each.args)
        if each.data == "min":
            return Value(self.code.intrinsic("umin", x.type, x.name, y.name), self._index, x.width)
        return Value(self.code(f"{_INDEX[each.data]} {x.type} {x.name}, {y.name}"), self._index, x.width)

    def _folded(self, sign: str, a: str, b: str) -> str:
        """Arithmetic of i64 that is one for all lanes, computed here where both are known."""
        if not a.startswith("%") and not b.startswith("%"):
            return str(_KNOWN[sign](int(a), int(b)))
        if (b, sign) in (("0", "+"), ("0", "-"), ("1", "*"), ("1", "/")):
            return a
        if (a, sign) in (("0", "+"), ("1", "*")):
            return b
        if sign == "*" and "0" in (a, b):
            return "0"
        if sign == "min":
            return self.code.intrinsic("umin", "i64", a, b)
        return self.code(f"{_INDEX[sign]} i64 {a}, {b}")

    def compare(self, each: Instruction) -> Value:
        test = {"<": "ult", "==": "eq", ">=": "uge"}[each.data]
        first = self._values[id(each.args[0])]
        if isinstance(first, Value) and first.scalar == "u32":  # a computed number
            a, b = self.code.level(*(self._plain(x) for x in each.args))
        elif all(self._is_uniform(self._values[id(x)]) for x in each.args):
            a, b = (Value(self._i64(x), "i64") for x in each.args)
        else:
            a, b = (self._spread(x) for x in each.args)
        return Value(self.code(f"icmp {test} {a.type} {a.name}, {b.name}"), "bool", a.width)

    # Maps

    def apply(self, each: Instruction) -> Value:
        if each.data.name == "logical_and":
            known = [self._values[id(x)] for x in each.args]
            for at in (0, 1):
                if known[at] == TRUE:
                    return self._plain(each.args[1 - at])
        scalar = each.args[-1].type.scalar if each.args[-1].type else ""
        return self._applied(each.data, [self._plain(x) for x in each.args], scalar)

    def _applied(self, op: Any, args: list[Value], scalar: str) -> Value:
        spelling = op.wgsl if isinstance(op.wgsl, str) else op.wgsl[scalar]
        # Each op is rounded, as NumPy does it: results do not change when a graph is compiled. Inside of the
        # library's functions products and sums may be fused.
        return self.translator.spelled(spelling, args, False)

    def select(self, each: Instruction) -> Value:
        no, yes, condition = (self._plain(x) for x in each.args)
        if condition == TRUE:
            return yes
        return self.translator.choose(condition, yes, no)


_INDEX = {"+": "add", "-": "sub", "*": "mul", "/": "udiv", "%": "urem"}
_KNOWN: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a // max(b, 1),
    "%": lambda a, b: a % max(b, 1),
    "min": min,
}


def _sizes_in_text(body: Sequence[Instruction]) -> set[int]:
    """The sizes that a lane is multiplied with or divided by: known numbers there, since a stride that LLVM
    does not know makes a gather of a load, and a division by it is slow.
    """
    varying: set[int] = set()
    found: set[int] = set()
    lanes: list[Instruction] = []
    for each in body:
        if each.op == "loop" and each.data == "lanes":
            lanes.append(each)
            varying.add(id(each))
        elif each.op == "end_loop" and each.args[0] in lanes:
            lanes.pop()
        elif any(id(arg) in varying for arg in each.args) or (each.op == "register" and lanes):
            varying.add(id(each))
            if each.op == "arithmetic" and each.data in "*/%":
                found |= {id(arg) for arg in each.args}
    return found
