"""Holes: functions that a hand-written template calls, and that pulling fills.

In: a `Puller` and a hole's arguments. Out: `Hole`s. What a template reads or stores may be any fused chain:
layouts, casts, a bias, an activation cost no extra kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .builder import Builder
from .index import Index, variable
from .ir import Hole, Instruction, Type
from .pull import Puller

F32x4 = Type("f32", 4)


def make_hole(
    puller: Puller, name: str, arguments: dict[str, Type], fill: Callable[..., Instruction | None]
) -> Hole:
    """A hole whose body `fill` writes, given the arguments as instructions."""
    puller.builder = build = Builder()
    given = [build.emit("argument", type, (), each) for each, type in arguments.items()]
    result = fill(*given)
    return Hole(name, tuple(arguments.items()), build.body(), result)


def make_stages(
    puller: Puller, stages: Sequence[tuple[str, dict[str, Type]]], fill: Callable[..., Instruction]
) -> tuple[Hole, ...]:
    """A hole in stages, (name, arguments) each: every value is computed in the first one that knows it.

    A stage gets the values that each stage before it keeps, one argument each, and then its own arguments.
    """
    puller.builder = build = Builder()
    given = []
    for _, arguments in stages:
        build.open_stage()
        given += [build.here("argument", type, (), name) for name, type in arguments.items()]
    result = fill(*given)
    first, *bodies = [block.body for block in build.blocks]
    everywhere = [each for each in first if each.op in ("const", "scalar")]
    bodies[0][:0] = [each for each in first if each.op not in ("const", "scalar")]
    keeps, result = _hand_on(bodies, result)
    holes: list[Hole] = []
    for at, (name, arguments) in enumerate(stages):
        before = [(f"stage{each}", hole.kept) for each, hole in enumerate(holes)]
        last = at == len(stages) - 1
        body = (*everywhere, *bodies[at])
        holes.append(
            Hole(
                name,
                (*before, *arguments.items()),
                body,
                result if last else None,
                None if last else tuple(keeps[at]),
            )
        )
    return tuple(holes)


def _hand_on(
    bodies: list[list[Instruction]], result: Instruction
) -> tuple[list[list[Instruction]], Instruction]:
    """Rewrite every body so that values of earlier ones become arguments.

    Gives the values that each has to keep, and the result in the last one.
    """
    home = {id(each): at for at, body in enumerate(bodies) for each in body}
    keeps: list[list[Instruction]] = [[] for _ in bodies]
    for at, body in enumerate(bodies):
        taken: dict[int, Instruction] = {}

        def here(value: Instruction, at: int = at, taken: dict[int, Instruction] = taken) -> Instruction:
            origin = home.get(id(value), at)
            if origin == at:
                return value
            if id(value) not in taken:
                if value not in keeps[origin]:
                    keeps[origin].append(value)
                place = f"stage{origin}.k{keeps[origin].index(value)}"
                taken[id(value)] = Instruction("argument", value.type, (), place)
            return taken[id(value)]

        for each in body:
            each.args = tuple(map(here, each.args))
        if at == len(bodies) - 1:
            result = here(result)
        body[:0] = taken.values()
    return keeps, result


def argument(puller: Puller, value: Instruction, name: str, size: int) -> Index:
    """An argument of a hole as an index below `size`."""
    puller.builder.values[name] = value
    return variable(name, size)


def zero_beyond(puller: Puller, value: Instruction, k: Index, size: int) -> Instruction:
    """Four values, 0 where their index is not below `size`."""
    build = puller.builder
    value = build.widened(value, 4)
    if k.high < size:
        return value
    zero = build.widened(build.constant(0.0, Type("f32")), 4)
    return build.select(puller.within(k, size), value, zero)


def store_lanes(
    puller: Puller, output: int, line: Index, n: Index, size: int, value: Instruction, stride: int = 1
) -> None:
    """Store those of four lanes that are below `size`, one by one, `stride` apart."""
    build = puller.builder
    for lane in range(4):
        at = build.in_lane(n, lane)
        build.open_if(build.compare("<", build.index(at), build.size(size)))
        puller.store(output, line + at * stride, build.lane(value, lane))
        build.close()
