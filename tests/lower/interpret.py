"""Runs kernel IR in Python, thread by thread, stricter than any GPU: indices are checked, and writers.

In: a schedule, a profile and the leaves' arrays. Out: the roots' arrays. A workgroup's threads run in step
from one `combine` to the next. Matrix products are computed through their holes, as the template calls them.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from webgrad.device_profile import DeviceProfile
from webgrad.dtypes import DType
from webgrad.lower.compile import lower_bundle
from webgrad.lower.ir import Hole, Instruction, Kernel, Type, verify
from webgrad.lower.passes import PASSES
from webgrad.ops.table import TABLE
from webgrad.schedule.plan import Schedule

__all__ = ["run_schedule"]

Array = np.ndarray[Any, Any]
Thread = Generator[Any, Any, None]
WORD = 1 << 32
COMPUTE: dict[str, Any] = {
    "f32": np.float32,
    "i32": np.int32,
    "u32": np.uint32,
    "bool": np.bool_,
    "i64": np.int64,
    "u64": np.uint64,
    "f64": np.float64,
}
ARITHMETIC: dict[str, Any] = {
    "+": lambda a, b: (a + b) % WORD,
    "-": lambda a, b: (a - b) % WORD,
    "*": lambda a, b: (a * b) % WORD,
    "/": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "min": min,
}
COMPARE: dict[str, Any] = {"<": lambda a, b: a < b, "==": lambda a, b: a == b, ">=": lambda a, b: a >= b}


class Memory:
    """A buffer, padded to 16 bytes as the runtime pads; every element may be written once."""

    def __init__(self, dtype: DType, array: Array | None, size: int) -> None:
        self.dtype = dtype
        count = -(-size * dtype.itemsize // 16) * 16 // dtype.itemsize
        self.data = np.zeros(max(count, 1), dtype.numpy)
        if array is not None:
            self.data[:size] = array.ravel()
        self.writers: dict[int, Any] = {}

    def load(self, index: int, width: int) -> Any:
        assert width * (index + 1) <= self.data.size, f"reads {width} at {index} of {self.data.size}"
        part = self.data[width * index : width * (index + 1)].astype(COMPUTE[self.dtype.compute])
        return part if width == 4 else part[0]

    def store(self, index: int, value: Any, width: int, who: Any) -> None:
        assert width * (index + 1) <= self.data.size, f"writes {width} at {index} of {self.data.size}"
        for place in range(width * index, width * (index + 1)):
            assert self.writers.setdefault(place, who) == who, f"two threads write element {place}"
        self.data[width * index : width * (index + 1)] = np.asarray(value).astype(self.dtype.numpy)


def converted(value: Any, source: DType, target: DType, by_bits: bool) -> Any:
    """A cast, from compute type to compute type."""
    array = np.asarray(value)
    if by_bits:
        result = np.atleast_1d(array.astype(source.numpy)).view(target.numpy).reshape(array.shape)
    else:
        result = TABLE["cast"].numpy(SimpleNamespace(dtype=target), array)
    return np.asarray(result).astype(COMPUTE[target.compute])[()]


class Machine:
    """One launch: its memory, and its run-time numbers."""

    def __init__(self, kernel: Kernel, memory: list[Memory], scalars: list[Any]) -> None:
        self.kernel = kernel
        self.memory = memory
        self.scalars = scalars

    def run(self) -> None:
        """Every workgroup, one after another."""
        for group in range(self.kernel.groups):
            threads = [self.thread(group, local) for local in range(self.kernel.workgroup)]
            self.together(threads)

    def together(self, threads: list[Thread]) -> None:
        """Threads from barrier to barrier; all must come to each, or none."""
        answers: list[Any] = [None] * len(threads)
        while True:
            asked = []
            for thread, answer in zip(threads, answers, strict=True):
                try:
                    asked.append(thread.send(answer))
                except StopIteration:
                    asked.append(None)
            if all(each is None for each in asked):
                return
            assert all(each is not None for each in asked), "a barrier that not all threads reach"
            op, total = asked[0]
            for _, value in asked[1:]:
                total = op.numpy(total, value)
            answers = [total] * len(threads)

    def thread(self, group: int, local: int) -> Thread:
        values: dict[int, Any] = {}
        yield from self.block(self.kernel.body, 0, len(self.kernel.body), values, (group, local))

    def block(
        self, body: tuple[Instruction, ...], at: int, stop: int, values: dict[int, Any], who: Any
    ) -> Thread:
        while at < stop:
            each = body[at]
            if each.op in ("loop", "if"):
                end = next(
                    place
                    for place in range(at, stop)
                    if body[place].args[:1] == (each,) and "end" in body[place].op
                )
                args = [values[id(arg)] for arg in each.args]
                if each.op == "if":
                    if args[0]:
                        yield from self.block(body, at + 1, end, values, who)
                else:
                    place, last, step = args
                    while place < last:
                        values[id(each)] = place
                        yield from self.block(body, at + 1, end, values, who)
                        place += step
                at = end
            elif each.op == "combine":
                values[id(each)] = yield each.data, values[id(each.args[0])]
            else:
                self.step(each, values, who)
            at += 1

    def step(self, each: Instruction, values: dict[int, Any], who: Any) -> None:
        """One instruction without a block."""
        args = [values[id(arg)] for arg in each.args]
        op, data = each.op, each.data
        if op == "store":
            type = each.args[1].type
            assert type is not None
            self.memory[data].store(args[0], args[1], type.width, who)
        elif op == "write":
            values[id(each.args[0])] = args[1]
        else:
            values[id(each)] = self.value(each, args, data, who)

    def value(self, each: Instruction, args: list[Any], data: Any, who: Any) -> Any:
        assert each.type is not None
        kind, width = COMPUTE[each.type.scalar], each.type.width
        if each.op == "const":
            return int(data) if each.type == Type("u32") else kind(data)
        if each.op == "scalar":
            return kind(self.scalars[data])
        if each.op == "thread":
            return who[0] if data == "group" else who[1]
        if each.op == "arithmetic":
            return ARITHMETIC[data](*args)
        if each.op == "compare":
            return COMPARE[data](*args)
        if each.op == "apply":
            with np.errstate(all="ignore"):
                return np.asarray(data.numpy(*map(np.asarray, args))).astype(kind)[()]
        if each.op == "cast":
            source = np.asarray(args[0]).astype(COMPUTE[data[0].compute])
            made = converted(source, *data)
            return int(made) if each.type == Type("u32") else made
        if each.op == "select":
            return (
                np.where(args[2], args[1], args[0]).astype(kind)[()]
                if width == 4
                else args[1 if args[2] else 0]
            )
        if each.op in ("splat", "vectorize"):
            return np.asarray(args * (4 if each.op == "splat" else 1), kind)
        if each.op == "extract":
            return int(args[0][data]) if each.type == Type("u32") else args[0][data]
        if each.op == "load":
            found = self.memory[data].load(args[0], width)
            return int(found) if each.type == Type("u32") else found
        assert each.op in ("register", "read"), each.op
        return args[0]

    # Matrix products

    def product(self) -> None:
        """Through the holes, as the template calls them: rows and columns beyond the end as well."""
        template = self.kernel.template
        assert template is not None
        numbers = dict(template.numbers)
        single = "SINGLE" in dict(template.defines)
        along_k = "TRANSPOSED" in dict(template.defines)
        lines = numbers["row_blocks"] * numbers["block_rows"]
        groups = numbers["column_blocks"] * numbers["block_groups"]
        (store,) = [hole for hole in self.kernel.holes if hole.name == "hole_c"]
        counts = (numbers["k"] if single else numbers["steps"], numbers["outers"])
        rows_of_b = (numbers["k"] if single else 4 * numbers["steps"], numbers["outers"])
        for batch in range(self.kernel.groups // (numbers["row_blocks"] * numbers["column_blocks"])):
            rights = []
            for column in range(groups):
                if along_k:
                    lanes = [self.operand("hole_b", batch, 4 * column + lane, *counts) for lane in range(4)]
                    rights.append(np.stack([np.concatenate(lane) for lane in lanes], 1))
                else:
                    rights.append(np.stack(self.operand("hole_b", batch, column, *rows_of_b)))
            for row in range(lines):
                left = np.concatenate(
                    [np.atleast_1d(each) for each in self.operand("hole_a", batch, row, *counts)]
                )
                for column, right in enumerate(rights):
                    self.hole(store, batch, row, column, (left @ right).astype(np.float32))

    def operand(self, name: str, batch: int, at: int, count: int, outers: int) -> list[Any]:
        """What a row of A, or a column of B, gives at every step of every stretch of k."""
        first, second, last = (hole for hole in self.kernel.holes if hole.name.startswith(name))
        whole = self.hole(first, batch, at)
        found = []
        for outer in range(outers):
            part = self.hole(second, whole, outer)
            found += [self.hole(last, whole, part, step) for step in range(count)]
        return found

    def hole(self, hole: Hole, *arguments: Any) -> Any:
        """One call of a hole; a stage gives the values it keeps."""
        given = dict(zip((name for name, _ in hole.arguments), arguments, strict=True))
        values: dict[int, Any] = {}
        for each in hole.body:
            if each.op == "argument":
                name, _, field = each.data.partition(".k")
                values[id(each)] = given[name][int(field)] if field else given[name]
        body = tuple(each for each in hole.body if each.op != "argument")
        for _ in self.block(body, 0, len(body), values, arguments[:3]):
            raise AssertionError("a barrier in a hole")
        if hole.keeps is not None:
            return [values[id(each)] for each in hole.keeps]
        return None if hole.result is None else values[id(hole.result)]


def run_schedule(
    plan: Schedule,
    profile: DeviceProfile,
    leaves: Mapping[int, Array],
    scalars: Mapping[int, Any],
    *,
    passes: bool = True,
) -> list[Array]:
    """The roots' values."""
    graph = plan.graph
    values = dict(leaves)
    for bundle in plan.bundles:
        groups = [plan.groups[at] for at in bundle if graph.sigs[plan.groups[at].outputs[0]].size]
        for at in bundle:
            for each in plan.groups[at].outputs:
                values[each] = np.zeros(graph.sigs[each].shape, graph.sigs[each].dtype.numpy)
        if not groups:
            continue
        kernel = lower_bundle(graph, groups, profile)
        for change in PASSES if passes else ():
            kernel = change(kernel)
        verify(kernel)
        memory = [Memory(b.dtype, None if b.written else values[b.value], b.size) for b in kernel.buffers]
        machine = Machine(kernel, memory, [scalars[number] for number, _ in kernel.scalars])
        if kernel.template is None:
            machine.run()
        else:
            machine.product()
        for buffer, made in zip(kernel.buffers, memory, strict=True):
            if buffer.written:
                sig = graph.sigs[buffer.value]
                assert set(range(buffer.size)) <= made.writers.keys(), "elements that nobody wrote"
                values[buffer.value] = made.data[: buffer.size].reshape(sig.shape)
    return [values[each] for each in graph.roots]
