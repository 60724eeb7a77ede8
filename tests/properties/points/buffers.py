"""What a device does with buffers: users' kernels, and the same steps again while results before live on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import webgrad as wg
from tests.properties.helpers import LEAST, Array
from tests.properties.points.drawer import Cases, Points
from webgrad.tensor import Tensor

__all__ = ["again", "keeping", "kernel", "state"]

KERNEL = """
struct Params { factor: f32, offset: f32 }
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
var<uniform> p: Params;
@compute @workgroup_size(64)
fn scale(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < arrayLength(&y)) { y[id.x] += p.factor * x[id.x] + p.offset; }
}
"""


def kernel(p: Points) -> Cases:
    """A user's kernel that adds to what its result begins with, which stays what it was."""
    scale = wg.kernel(KERNEL, label="scale", device=p.device, threads=lambda x, *_, **__: x.size)
    shape = tuple(int(each) for each in p.random.integers(1, 6, 2))
    x, y = (p.random.integers(-9, 10, shape).astype(np.float32) for _ in range(2))
    factor, offset = (float(each) for each in p.random.integers(2, 9, 2))
    given = p.tensor(y)
    found = scale(p.tensor(x), given, factor=factor, offset=offset)
    wanted = y + factor * x + offset
    yield p.case("a user's kernel", found + 0, wanted, 1)
    yield p.case("what a user's kernel began with", given + 0, y, 1)


def again(p: Points) -> Cases:
    """The same steps several times, of other inputs or of one given twice, while results before live on."""
    size = int(p.random.integers(2, 40))
    kept: list[tuple[str, Tensor, Array]] = []
    captured = p.chance(0.5)
    which = int(p.random.integers(3))

    def steps(of: Any, x: Any, y: Any) -> Any:
        first = x * 2 + y
        if which == 0:
            return first, (first.sum(axis=0) + x) * y
        turned = first.T @ x
        return (turned, turned + first) if which == 1 else (of.cumsum(first, axis=0) - turned, x + 1)

    call = wg.jit(lambda x, y: steps(wg, x, y)) if captured else lambda x, y: steps(wg, x, y)
    given: list[tuple[Array, Tensor]] = []
    for turn in range(int(p.random.integers(3, 7))):
        array = p.random.integers(-3, 4, (size, size)).astype(np.float32)
        given.append((array, p.tensor(array)))
        (a, x), (b, y) = (p.one(given) for _ in range(2))
        if p.chance(0.3):  # a value that nobody else refers to
            a, x = a + 1, x + 1
        found, wanted = call(x, y), steps(np, a, b)
        kept += [
            (f"result {at} of turn {turn}, {'captured ' * captured}{which}", *pair)
            for at, pair in enumerate(zip(found, wanted, strict=True))
        ]
        del x, y, found
        if p.chance(0.4):  # a result that nobody asks for
            kept.pop(int(p.random.integers(-2, 0)))
        if p.chance(0.5):
            label, tensor, exact = kept.pop(int(p.random.integers(len(kept))))
            yield p.case(label, p.tensor(tensor.numpy()), exact, 1, 1e-3)
        if p.chance(0.3):
            given.pop(0)
    for label, tensor, exact in [*kept, *(("an input", tensor, array) for array, tensor in given)]:
        yield p.case(label, p.tensor(tensor.numpy()), exact, 1, 1e-3)


def keeping(p: Points) -> Cases:
    """The same commands over the same values: at times somebody keeps what is between them."""
    size = int(p.random.integers(2, 70))
    array = p.random.integers(-3, 4, (size, 2)).astype(np.float32)
    x = p.tensor(array)
    between = np.cumsum(array * 2, axis=0)
    last = np.cumsum(between % 5, axis=0)
    for turn in range(int(p.random.integers(4, 9))):
        first = wg.cumsum(x * 2, axis=0)
        second = wg.cumsum(first % 5, axis=0)
        kept = [(f"the first of turn {turn}", first, between)] if p.chance(0.5) else []
        del first
        for label, tensor, exact in ((f"the second of turn {turn}", second, last), *kept):
            yield p.case(label, p.tensor(tensor.numpy()), exact, slack=LEAST)


# State

# New values of a square, of itself and of another square: where it is, and elsewhere. They stay small. The
# other may have other sizes where one element of it is read.
ALIKE: tuple[Callable[[Any, Any], Any], ...] = (
    lambda x, y: (x * 2 + y) % 5,
    lambda x, y: (x + y.T) % 5,
    lambda x, y: (x.T + y) % 5,
    lambda x, y: x[::-1] + y % 2,
)
UNLIKE: tuple[Callable[[Any, Any], Any], ...] = (
    lambda x, y: (x + y[0, 1]) % 5,  # which _ring takes
    lambda x, y: (x + x[0, 1]) % 5,
    lambda x, y: (x + (x * 2 + y[1, 1])[0, 1]) % 5,
    lambda x, y: (y[1, 0] - x) % 5,
    lambda x, y: (x * 2 + 1) % 5,
    lambda x, y: (x + x.sum(0)) % 5,
)
RESULTS: tuple[Callable[[Any], Any], ...] = (lambda x: x.sum(), lambda x: x * 3 - 1, lambda x: x[0] * 2)


Update = tuple[Callable[[Any, Any], Any], int, int]  # what, of which, and of which other


def state(p: Points) -> Cases:
    """A captured step that writes to what it reads, again and again; at times somebody keeps an old value."""
    few = int(p.random.integers(2, 12))  # beside what a software GPU's subgroup has no room for
    apart = p.chance(0.6)
    sizes = p.random.permutation((few, 8, 80)) if apart else [p.one((few, few, 80))] * 3
    arrays = [p.random.integers(0, 5, (size, size)).astype(np.float32) for size in sizes]
    tensors = [p.tensor(each) for each in arrays]
    updates, at_once = _ring(p) if apart and p.chance(0.5) else _updates(p, apart)
    result = p.one(RESULTS)

    def step(of: list[Any], write: Callable[[int, Any], object]) -> Any:
        """The updates, one after another or all of what was before, and a result of the first."""
        made = []
        for update, at, by in updates:
            made.append((at, update(of[at], of[by])))
            if not at_once:
                write(*made.pop())
        for at, value in made:
            write(at, value)
        return result(of[0])

    call = wg.jit(lambda: step(tensors, lambda at, value: tensors[at].copy_(value)))
    kept = list[tuple[str, Tensor, Array]]()
    for turn in range(int(p.random.integers(4, 8))):
        if p.chance(0.2):
            at = int(p.random.integers(3))
            kept.append((f"a copy before turn {turn}", tensors[at].clone(), arrays[at]))
        found = call()
        kept.append((f"a result of turn {turn}", found, step(arrays, arrays.__setitem__)))
    kept += [(f"state {at}", *pair) for at, pair in enumerate(zip(tensors, arrays, strict=True))]
    for label, tensor, exact in kept:
        yield p.case(label, p.tensor(tensor.numpy()), exact, slack=LEAST)


def _updates(p: Points, apart: bool) -> tuple[list[Update], bool]:
    """Three, often of one structure, and whether all of them read what was before."""
    choices = UNLIKE if apart else (*ALIKE, *UNLIKE)
    which = [p.one(choices)] * 3 if p.chance(0.5) else [p.one(choices) for _ in range(3)]
    return [(each, *(int(at) for at in p.random.permutation(3)[:2])) for each in which], p.chance(0.5)


def _ring(p: Points) -> tuple[list[Update], bool]:
    """Each reads an element of the next or of the one before, which the same launch may write."""
    way = p.one((1, 2))
    return [(UNLIKE[0], at, (at + way) % 3) for at in range(3)], True
