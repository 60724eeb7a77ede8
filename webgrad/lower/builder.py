"""Builds a kernel's instructions: every value goes to the outermost block in which its arguments are known.

In: calls such as `arithmetic`, `apply`, `load`, `open_loop`. Out: a flat list of instructions. A loop is
added to the block around it when it is closed, so values that are computed for it meanwhile come before it:
loop-invariant code is hoisted, and equal values in one block are made once.
"""

from __future__ import annotations

from typing import Any

from ..dtypes import DType
from .index import Atom, Index
from .ir import BOOL, U32, Instruction, Size, Type

LANE = "lane"  # the kind of the variable that counts the four lanes of a vector


class _Block:
    __slots__ = ("body", "made", "opener", "pinned")

    def __init__(self, opener: Instruction | None, pinned: bool = False) -> None:
        self.opener = opener
        self.pinned = pinned  # loads stay inside: the block may not run
        self.body: list[Instruction] = []
        self.made: dict[Any, Instruction] = {}


class Builder:
    """The open blocks, from the whole kernel inwards."""

    def __init__(self) -> None:
        self.blocks = [_Block(None)]
        self.depths: dict[int, int] = {}  # id of an instruction → number of its block
        self.values: dict[Any, Instruction] = {}  # variable name → its instruction

    # Placing

    def emit(
        self, op: str, type: Type | None, args: tuple[Instruction, ...] = (), data: Any = None
    ) -> Instruction:
        """A value, in the outermost block where it can be; an equal one that exists is used again."""
        depths = self.depths
        depth = 0
        for arg in args:
            found = depths[id(arg)]
            if found > depth:
                depth = found
        if op in ("load", "decode"):
            for at in range(len(self.blocks) - 1, depth, -1):
                if self.blocks[at].pinned:
                    depth = at
                    break
        key = (op, type, data.__class__, data, *map(id, args))
        block = self.blocks[depth]
        made = block.made.get(key)
        if made is None:
            made = block.made[key] = Instruction(op, type, args, data)
            block.body.append(made)
            depths[id(made)] = depth
        return made

    def here(
        self, op: str, type: Type | None, args: tuple[Instruction, ...] = (), data: Any = None
    ) -> Instruction:
        """An instruction in the innermost block: one with a side effect, or a read of something mutable."""
        made = Instruction(op, type, args, data)
        self.blocks[-1].body.append(made)
        self.depths[id(made)] = len(self.blocks) - 1
        return made

    def open_stage(self) -> None:
        """Begin a part of a hole that is a separate function: it ends with the hole."""
        self.blocks.append(_Block(None))

    def open_loop(self, start: Instruction, stop: Instruction, step: Instruction) -> Instruction:
        """Begin a loop; gives its variable."""
        loop = Instruction("loop", U32, (start, stop, step))
        return self._open(loop)

    def open_if(self, condition: Instruction) -> Instruction:
        """Begin a block that runs only where the condition holds."""
        return self._open(Instruction("if", None, (condition,)), pinned=True)

    def _open(self, opener: Instruction, pinned: bool = False) -> Instruction:
        self.blocks.append(_Block(opener, pinned))
        self.depths[id(opener)] = len(self.blocks) - 1
        return opener

    def close(self) -> None:
        """End the innermost block."""
        block = self.blocks.pop()
        assert block.opener is not None
        outer = self.blocks[-1].body
        outer.append(block.opener)
        outer += block.body
        outer.append(Instruction("end_" + block.opener.op, None, (block.opener,)))

    def outside(self, depth: int) -> list[_Block]:
        """Leave the blocks inside a depth for a while: what is opened now comes before them."""
        suspended = self.blocks[depth + 1 :]
        del self.blocks[depth + 1 :]
        return suspended

    def body(self) -> tuple[Instruction, ...]:
        """The whole kernel."""
        assert len(self.blocks) == 1
        return tuple(self.blocks[0].body)

    # Values

    def constant(self, value: Any, type: Type = U32) -> Instruction:
        """A number."""
        return self.emit("const", type, (), value)

    def size(self, value: int, role: str = "") -> Instruction:
        """A number that comes from a shape."""
        return self.emit("const", U32, (), Size(value, role))

    def arithmetic(self, sign: str, a: Instruction, b: Instruction) -> Instruction:
        """Unsigned index arithmetic."""
        return self.emit("arithmetic", U32, (a, b), sign)

    def compare(self, sign: str, a: Instruction, b: Instruction) -> Instruction:
        """A comparison of indices."""
        return self.emit("compare", BOOL, (a, b), sign)

    def widened(self, x: Instruction, width: int) -> Instruction:
        """x with `width` lanes."""
        assert x.type is not None
        return x if x.type.width == width else self.emit("splat", Type(x.type.scalar, width), (x,))

    def apply(self, op: Any, result: str, *args: Instruction) -> Instruction:
        """A map op; operands of one lane are broadcast where others have four."""
        width = max(arg.type.width for arg in args if arg.type)
        return self.emit("apply", Type(result, width), tuple(self.widened(arg, width) for arg in args), op)

    def select(self, condition: Instruction, yes: Instruction, no: Instruction) -> Instruction:
        """One of two values."""
        width = max(arg.type.width for arg in (condition, yes, no) if arg.type)
        no, yes, condition = (self.widened(each, width) for each in (no, yes, condition))
        return self.emit("select", no.type, (no, yes, condition))

    def cast(self, x: Instruction, source: DType, target: DType, by_bits: bool = False) -> Instruction:
        """x in another dtype."""
        assert x.type is not None
        return self.emit("cast", Type(target.compute, x.type.width), (x,), (source, target, by_bits))

    def lanes(self, parts: list[Instruction]) -> Instruction:
        """Four values as one."""
        assert parts[0].type is not None
        if all(each is parts[0] for each in parts):
            return parts[0]
        return self.emit("vectorize", Type(parts[0].type.scalar, 4), tuple(parts))

    def lane(self, x: Instruction, number: int) -> Instruction:
        """One lane of a value."""
        assert x.type is not None
        if x.type.width == 1:
            return x
        if x.op == "vectorize":
            return x.args[number]
        if x.op == "splat":
            return x.args[0]
        return self.emit("extract", Type(x.type.scalar), (x,), number)

    # Indices

    def index(self, index: Index) -> Instruction:
        """An index without lanes as a value."""
        total: Instruction | None = None
        negative: list[tuple[Atom, int]] = []
        for atom, factor in sorted(index.terms.items(), key=lambda term: self.depth_of_atom(term[0])):
            if factor < 0:
                negative.append((atom, -factor))
                continue
            part = self._multiple(atom, factor)
            total = part if total is None else self.arithmetic("+", total, part)
        if index.constant > 0 or total is None:
            offset = self.size(index.constant) if index.constant > 0 else self.constant(0)
            total = offset if total is None else self.arithmetic("+", total, offset)
        for atom, factor in negative:
            total = self.arithmetic("-", total, self._multiple(atom, factor))
        if index.constant < 0:
            total = self.arithmetic("-", total, self.size(-index.constant))
        return total

    def _multiple(self, atom: Atom, factor: int) -> Instruction:
        value = self._atom(atom)
        return value if factor == 1 else self.arithmetic("*", value, self.size(factor))

    def _atom(self, atom: Atom) -> Instruction:
        if atom.expression is None:
            return self.values[atom.name]
        inner = self.index(atom.expression)
        if atom.kind == "limit":
            return self.arithmetic("min", inner, self.size(atom.divisor - 1))
        return self.arithmetic("/" if atom.kind == "quotient" else "%", inner, self.size(atom.divisor))

    def depth_of_atom(self, atom: Atom) -> int:
        """The block in which an atom is known."""
        if atom.expression is None:
            return 0 if atom.kind == LANE else self.depths[id(self.values[atom.name])]
        return self.depth_of(atom.expression)

    def depth_of(self, index: Index) -> int:
        """The block in which an index is known."""
        return max((self.depth_of_atom(atom) for atom in index.terms), default=0)

    def has_lanes(self, index: Index) -> bool:
        """Whether an index differs between the lanes of a vector."""
        return index.mentions(self._differs)

    def _differs(self, atom: Atom) -> bool:
        if atom.kind == LANE:
            return True
        if atom.kind != "value":
            return False
        type = self.values[atom.name].type
        return type is not None and type.width > 1

    def in_lane(self, index: Index, number: int) -> Index:
        """The index in one lane."""

        def change(atom: Atom) -> Index | None:
            if atom.kind == LANE:
                return Index({}, number)
            if self._differs(atom):
                part = self.lane(self.values[atom.name], number)
                return self.dynamic(part, atom.high + 1)
            return None

        return index.replace(change)

    def dynamic(self, value: Instruction, size: int) -> Index:
        """A computed number below `size` as an index."""
        name = f"v{id(value)}"
        self.values[name] = value
        return Index({Atom("value", name, None, 0, 0, max(size - 1, 0)): 1}, 0)

    def index_lanes(self, index: Index) -> Instruction:
        """An index as a value, of four lanes where they differ."""
        if not self.has_lanes(index):
            return self.index(index)
        return self.lanes([self.index(self.in_lane(index, number)) for number in range(4)])
