"""Random programs of views and in-place writes, to be run by webgrad and by NumPy or PyTorch alike.

In: a seed. Out: a `Program`: arrays to begin with, and steps over a growing list of tensors. Values are small
integers, so that results are equal to the last bit. Sides are often equal, tensors die while their views
live, and some steps run inside of a captured function, twice.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import webgrad as wg

__all__ = ["OURS", "TABLE", "Program", "Step", "difference", "run", "write_program"]

Array = Any


class Step(NamedTuple):
    """One action on tensor number `at` of the list; views and copies are appended to it."""

    kind: str
    at: int
    argument: Any = None


@dataclass(frozen=True)
class Program:
    """Where it begins, and what is done."""

    seed: int
    beginnings: list[Array]
    steps: list[Step]

    def __str__(self) -> str:
        lines = [f"seed {self.seed}"]
        lines += [f"x{at} = array of shape {each.shape}" for at, each in enumerate(self.beginnings)]
        return "\n".join([*lines, *(f"{step.kind} x{step.at} {step.argument!r}" for step in self.steps)])


# What steps do, over NumPy's arrays; other libraries give tables of what they do otherwise

Action = Callable[[Array, Any], Array]


def _copied(x: Array) -> Array:
    return np.array(x, order="C", copy=True)


VIEWS: dict[str, Action] = {
    "index": lambda x, key: x[(*key, ...)],  # with an ellipsis one element is a view too
    "transpose": lambda x, axes: x.transpose(axes),
    "reshape": lambda x, shape: x.reshape(shape),
    "diagonal": lambda x, _: np.einsum("ii...->i...", x),
    "expand": lambda x, shape: np.broadcast_to(x, shape),
    "detach": lambda x, _: x.view(),
    "rows": lambda x, at: x[at, ...],
    "contiguous": lambda x, _: x if x.flags.c_contiguous else _copied(x),
    "copy": lambda x, _: _copied(x),
    "doubled": lambda x, _: _copied(np.clip(x * 2, -9, 9)),
}


def _filled(x: Array, value: float) -> None:
    x[...] = value


def _assigned(x: Array, argument: Any) -> None:
    key, value = argument
    x[key] = value


def _added(x: Array, value: Any) -> None:
    x += value


def _flipped(x: Array, value: Any) -> None:
    x *= value


WRITES: dict[str, Callable[[Array, Any], None]] = {
    "fill": _filled,
    "assign": _assigned,
    "add": _added,
    "multiply": _flipped,
}


def run(
    program: Program, tensors: list[Any], table: dict[str, Any], capture: Callable[..., Any]
) -> list[Any]:
    """Do the steps of a program to its tensors; what is None at the end was dropped."""
    for step in program.steps:
        do(step, tensors, table, capture)
    return tensors


def do(step: Step, tensors: list[Any], table: dict[str, Any], capture: Callable[..., Any]) -> None:
    """Do one step."""
    if step.kind == "drop":
        tensors[step.at] = None
    elif step.kind == "captured":
        places, inner = step.argument

        def function(*given: Any) -> list[Any]:
            local = list(given)
            for each in inner:
                do(each, local, table, lambda function: function)
            return local[len(given) :]

        call = capture(function)
        for _ in range(2):
            tensors += call(*(tensors[at] for at in places))
    elif step.kind in WRITES:
        table[step.kind](tensors[step.at], step.argument)
    else:
        tensors.append(table[step.kind](tensors[step.at], step.argument))


# The same over webgrad's tensors

OURS: dict[str, Any] = {
    **VIEWS,
    "transpose": lambda x, axes: x.permute(axes),
    "diagonal": lambda x, _: wg.moveaxis(x.diagonal(), -1, 0),
    "expand": lambda x, shape: x.expand(shape),
    "detach": lambda x, _: x.detach(),
    "rows": lambda x, at: list(x)[at],
    "contiguous": lambda x, _: x.contiguous(),
    "copy": lambda x, _: x.clone(),
    "doubled": lambda x, _: wg.clip(x * 2, -9, 9),
    "fill": lambda x, value: x.fill_(value),
    "assign": _assigned,
    "add": lambda x, value: x.add_(value if isinstance(value, float) else wg.asarray(value, device=x.device)),
    "multiply": lambda x, value: x.mul_(value),
}


def difference(program: Program, device: str) -> str:
    """What webgrad makes otherwise than NumPy; nothing where all tensors are equal at the end."""
    wanted = run(program, [each.copy() for each in program.beginnings], TABLE, lambda function: function)
    tensors = [wg.asarray(each, device=device) for each in program.beginnings]
    found: list[Any] = [
        None if each is None else each.numpy() for each in run(program, tensors, OURS, wg.jit)
    ]
    wrong = [
        f"x{at} is\n{ours}\nand should be\n{theirs}"
        for at, (ours, theirs) in enumerate(zip(found, wanted, strict=True))
        if (ours is None) != (theirs is None) or not np.array_equal(ours, theirs)
    ]
    return f"{program}\n{wrong[0]}" if wrong else ""


# Writing programs


def write_program(seed: int, *, negative_steps: bool = True, captures: bool = True) -> Program:
    """A program of about twenty steps."""
    draw = random.Random(seed)
    beginnings = [_array(draw) for _ in range(draw.randint(1, 2))]
    tensors: list[Any] = [each.copy() for each in beginnings]
    writer = _Writer(draw, negative_steps)
    steps: list[Step] = []
    for _ in range(draw.randint(4, 20)):
        step = writer.captured(tensors) if captures and draw.random() < 0.06 else writer.step(tensors)
        if step is not None:
            steps.append(step)
            do(step, tensors, TABLE, lambda function: function)
    return Program(seed, beginnings, steps)


TABLE: dict[str, Any] = {**VIEWS, **WRITES}
_SHAPES = (
    (3, 3),
    (2, 2, 2),
    (4,),
    (2, 3),
    (3, 1),
    (2, 3, 2),
    (4, 4),
    (1,),
    (),
    (0, 3),
    (6,),
    (3, 3, 3),
    (2, 6),
)


def _array(draw: random.Random) -> Array:
    shape = draw.choice(_SHAPES)
    return np.asarray([draw.randint(-4, 4) for _ in range(math.prod(shape))], np.float32).reshape(shape)


class _Writer:
    """Draws steps that fit the tensors there are."""

    def __init__(self, draw: random.Random, negative_steps: bool) -> None:
        self.draw, self.negative_steps = draw, negative_steps

    def step(self, tensors: Sequence[Any], *, inside: bool = False) -> Step | None:
        """One step; None where none was found."""
        alive = [at for at, each in enumerate(tensors) if each is not None]
        at = self.draw.choice(alive)
        x = tensors[at]
        if self.draw.random() < 0.5:
            return self._view(at, x)
        if not inside and self.draw.random() < 0.15 and len(alive) > 1:
            return Step("drop", at)
        return self._write(at, x) if _is_writable(x) else None

    def captured(self, tensors: Sequence[Any]) -> Step | None:
        """Some steps inside of a captured function of some tensors."""
        alive = [at for at, each in enumerate(tensors) if each is not None]
        places = [self.draw.choice(alive) for _ in range(self.draw.randint(1, 2))]
        local, copies = _copies([tensors[at] for at in places])
        inner: list[Step] = []
        for _ in range(self.draw.randint(1, 4)):
            step = self.step(local, inside=True)
            if step is not None:
                inner.append(step)
                do(step, local, TABLE, lambda function: function)
        del copies
        return Step("captured", 0, (places, inner)) if inner else None

    def _view(self, at: int, x: Any) -> Step:
        kinds = [
            "index",
            "index",
            "transpose",
            "reshape",
            "reshape",
            "detach",
            "copy",
            "doubled",
            "contiguous",
        ]
        if x.ndim >= 2 and x.shape[0] == x.shape[1]:
            kinds += ["diagonal", "transpose"]
        if x.ndim and x.shape[0]:
            kinds.append("rows")
        if x.size <= 9 and self.draw.random() < 0.3:
            kinds.append("expand")
        kind = self.draw.choice(kinds)
        argument: Any = None
        if kind == "index":
            argument = self._key(x.shape)
        elif kind == "transpose":
            argument = tuple(self.draw.sample(range(x.ndim), x.ndim))
        elif kind == "reshape":
            argument = self._shape(x.size, x.shape)
        elif kind == "rows":
            argument = self.draw.randrange(x.shape[0])
        elif kind == "expand":
            argument = (2, *(side if side != 1 else self.draw.choice((1, 3)) for side in x.shape))
        return Step(kind, at, argument)

    def _key(self, shape: Sequence[int]) -> Any:
        entries: list[Any] = []
        for side in shape:
            kind = self.draw.random()
            if kind < 0.25 and side:
                entries.append(self.draw.randrange(-side, side))
            elif kind < 0.75:
                start, stop = sorted((self.draw.randint(0, side), self.draw.randint(0, side)))
                entries.append(slice(start, stop, self.draw.choice((None, 1, 2, 3))))
            elif kind < 0.85 and self.negative_steps:
                entries.append(slice(None, None, self.draw.choice((-1, -2))))
            else:
                entries.append(slice(None))
        if self.draw.random() < 0.15:
            entries.insert(self.draw.randint(0, len(entries)), None)
        return (
            tuple(entries[: self.draw.randint(0, len(entries))])
            if self.draw.random() < 0.3
            else tuple(entries)
        )

    def _shape(self, size: int, shape: Sequence[int]) -> tuple[int, ...]:
        if not size:
            return (0,) if self.draw.random() < 0.5 else tuple(reversed(shape))
        left, sides = size, []
        while left > 1 and self.draw.random() < 0.7:
            side = self.draw.choice([each for each in range(2, left + 1) if left % each == 0])
            sides.append(side)
            left //= side
        return (*sides, left) if left > 1 or self.draw.random() < 0.3 else tuple(sides)

    def _write(self, at: int, x: Any) -> Step:
        number = float(self.draw.randint(-3, 3))
        kind = self.draw.choice(("fill", "assign", "assign", "add", "multiply"))
        if kind == "fill":
            return Step(kind, at, number)
        if kind == "multiply":
            return Step(kind, at, -1.0)
        if kind == "add":
            return Step(kind, at, number if self.draw.random() < 0.5 else _numbers(self.draw, x.shape))
        key = self._key(x.shape) if self.draw.random() < 0.6 else self._rows(x)
        part = x[key]
        whole = np.ndim(part) == 0 or self.draw.random() < 0.5
        return Step(kind, at, (key, number if whole else _numbers(self.draw, part.shape)))

    def _rows(self, x: Any) -> Any:
        """Indices in a list, or a mask, along the first axis."""
        if not x.ndim or not x.shape[0]:
            return ...
        if self.draw.random() < 0.5:
            return np.asarray([self.draw.random() < 0.5 for _ in range(x.shape[0])])
        count = self.draw.randint(1, x.shape[0])
        return np.asarray(self.draw.sample(range(x.shape[0]), count))


def _numbers(draw: random.Random, shape: Sequence[int]) -> Array:
    count = math.prod(shape)
    return np.asarray([draw.randint(-3, 3) for _ in range(count)], np.float32).reshape(tuple(shape))


def _is_writable(x: Any) -> bool:
    """Not where elements stand for others as well."""
    return bool(x.flags.writeable) and not any(
        stride == 0 and side > 1 for stride, side in zip(x.strides, x.shape, strict=True)
    )


def _copies(arrays: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The same arrays over other memory, shared as theirs is."""
    owners: dict[int, Any] = {}
    found = []
    for x in arrays:
        owner = x
        while owner.base is not None:
            owner = owner.base
        new = owners.setdefault(id(owner), owner.copy())
        offset = x.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
        view = np.ndarray(x.shape, x.dtype, new.data, offset, x.strides) if x.size else x.copy()
        view.flags.writeable = x.flags.writeable
        found.append(view)
    return found, list(owners.values())
