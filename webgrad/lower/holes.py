"""Holes: functions that a hand-written template calls, and that pulling fills.

In: a `Puller` and what a hole is given. Out: `Hole`s. What a template reads or stores may be any fused chain:
layouts, casts, a bias, an activation cost no kernel of their own.
"""

from __future__ import annotations

from collections.abc import Callable

from .builder import Builder
from .index import Index, variable
from .ir import Hole, Instruction, Type
from .pull import Puller

__all__ = ["F32x4", "argument", "make_hole", "store_lanes", "zero_beyond"]

F32x4 = Type("f32", 4)


def make_hole(
    puller: Puller, name: str, arguments: dict[str, Type], fill: Callable[..., Instruction | None]
) -> Hole:
    """A hole whose body `fill` writes, given the arguments as instructions."""
    puller.builder = build = Builder()
    given = [build.emit("argument", type, (), each) for each, type in arguments.items()]
    result = fill(*given)
    return Hole(name, tuple(arguments.items()), build.body(), result)


def argument(puller: Puller, value: Instruction, name: str, side: int) -> Index:
    """An argument of a hole as an index below `side`."""
    puller.builder.values[name] = value
    return variable(name, side)


def zero_beyond(puller: Puller, value: Instruction, k: Index, side: int) -> Instruction:
    """Four values, 0 where their index is not below `side`."""
    build = puller.builder
    value = build.widened(value, 4)
    if k.high < side:
        return value
    zero = build.widened(build.constant(0.0, Type("f32")), 4)
    return build.select(puller.within(k, side), value, zero)


def store_lanes(puller: Puller, output: int, line: Index, n: Index, side: int, value: Instruction) -> None:
    """Store those of four lanes that are below `side`, one by one."""
    build = puller.builder
    for lane in range(4):
        at = build.in_lane(n, lane)
        build.open_if(build.compare("<", build.index(at), build.size(side)))
        puller.store(output, line + at, build.lane(value, lane))
        build.close()
