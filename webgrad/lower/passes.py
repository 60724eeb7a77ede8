"""Passes: plain functions from kernel to kernel, each optional: every subset gives the same results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from .ir import Instruction, Kernel

Results = tuple[Instruction, ...]  # the values that leave a body
Changed = tuple[list[Instruction], Results]
Change = Callable[[tuple[Instruction, ...], Results], Changed]
_EFFECTS = frozenset({"store", "write", "fold", "loop", "end_loop", "if", "end_if", "combine"})
_FIXED: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: (a + b) & 0xFFFFFFFF,
    "-": lambda a, b: (a - b) & 0xFFFFFFFF,
    "*": lambda a, b: (a * b) & 0xFFFFFFFF,
    "/": lambda a, b: a // b if b else a,
    "%": lambda a, b: a % b if b else 0,
    "min": min,
}


def drop_unused(kernel: Kernel) -> Kernel:
    """Drop values that nothing uses, and empty blocks."""
    return _each_body(kernel, _used)


def _each_body(kernel: Kernel, change: Change) -> Kernel:
    """A kernel with its body, and the bodies of its holes, changed. `change` also gives the results' new
    names.
    """
    holes = []
    for hole in kernel.holes:
        body, results = change(hole.body, hole.results)
        result = None if hole.result is None else results[0]
        keeps = None if hole.keeps is None else results[len(results) - len(hole.keeps) :]
        holes.append(replace(hole, body=tuple(body), result=result, keeps=keeps))
    body, _ = change(kernel.body, ())
    return replace(kernel, body=tuple(body), holes=tuple(holes))


def _used(old: tuple[Instruction, ...], results: Results) -> Changed:
    used = set(map(id, results))
    kept: list[Instruction] = []
    for each in reversed(old):
        if each.op in _EFFECTS or id(each) in used:
            kept.append(each)
            used.update(map(id, each.args))
    kept.reverse()
    body: list[Instruction] = []
    for each in kept:
        if each.op in ("end_loop", "end_if") and body and body[-1] is each.args[0]:
            body.pop()
        else:
            body.append(each)
    return body, results


def _rebuilt(each: Instruction, names: dict[int, Instruction]) -> Instruction:
    args = tuple(names.get(id(arg), arg) for arg in each.args)
    if all(a is b for a, b in zip(args, each.args, strict=True)):
        return each
    made = names[id(each)] = Instruction(each.op, each.type, args, each.data)
    return made


def fold_constants(kernel: Kernel) -> Kernel:
    """Compute index arithmetic of constants, and drop x + 0, x * 1 and x / 1."""
    return _each_body(kernel, _folded)


def _folded(body_before: tuple[Instruction, ...], results: Results) -> Changed:
    names: dict[int, Instruction] = {}
    body: list[Instruction] = []
    for old in body_before:
        each = _rebuilt(old, names)
        if each.op == "arithmetic":
            a, b = each.args
            if a.op == b.op == "const":
                each = Instruction("const", each.type, (), _FIXED[each.data](a.data, b.data))
                names[id(old)] = each
            elif b.op == "const" and (b.data, each.data) in ((0, "+"), (0, "-"), (1, "*"), (1, "/")):
                names[id(old)] = a
                continue
        body.append(each)
    return body, _renamed(results, names)


def _renamed(results: Results, names: dict[int, Instruction]) -> Results:
    return tuple(names.get(id(each), each) for each in results)


def share_values(kernel: Kernel) -> Kernel:
    """Make equal values once in a block; reads of registers and side effects do not change."""
    return _each_body(kernel, _shared)


def _shared(body_before: tuple[Instruction, ...], results: Results) -> Changed:
    names: dict[int, Instruction] = {}
    body: list[Instruction] = []
    scopes: list[dict[Any, Instruction]] = [{}]
    for old in body_before:
        each = _rebuilt(old, names)
        if each.op in ("end_loop", "end_if"):
            scopes.pop()
        elif each.op not in _EFFECTS and each.op not in ("register", "read"):
            key = (each.op, each.type, each.data.__class__, each.data, *map(id, each.args))
            found = next((scope[key] for scope in scopes if key in scope), None)
            if found is not None:
                names[id(old)] = found
                continue
            scopes[-1][key] = each
        body.append(each)
        if each.op in ("loop", "if"):
            scopes.append({})
    return body, _renamed(results, names)


def order_buffers(kernel: Kernel) -> Kernel:
    """Number buffers by their first use, what is read before what is written.

    They come in the order of node ids, which differs where the same ops were called in another order; the
    text must not depend on that.
    """
    bodies = [*(hole.body for hole in kernel.holes), kernel.body]
    used = dict.fromkeys(_buffer(each) for body in bodies for each in body if each.op in _ACCESSES)
    order = sorted(
        [*used, *(each for each in range(len(kernel.buffers)) if each not in used)],
        key=lambda each: kernel.buffers[each].written,
    )
    if order == sorted(order):
        return kernel
    places = {old: new for new, old in enumerate(order)}
    moved = replace(kernel, buffers=tuple(kernel.buffers[each] for each in order))
    return _each_body(moved, lambda body, results: _moved(body, results, places))


_ACCESSES = frozenset({"load", "store", "decode"})


def _buffer(each: Instruction) -> int:
    number: int = each.data[0] if each.op == "decode" else each.data
    return number


def _moved(old: tuple[Instruction, ...], results: Results, places: dict[int, int]) -> Changed:
    names: dict[int, Instruction] = {}
    body: list[Instruction] = []
    for each in old:
        made = _rebuilt(each, names)
        if each.op in _ACCESSES:
            place = places[_buffer(each)]
            data = (place, *each.data[1:]) if each.op == "decode" else place
            made = names[id(each)] = Instruction(each.op, each.type, made.args, data)
        body.append(made)
    return body, _renamed(results, names)


PASSES: tuple[Callable[[Kernel], Kernel], ...] = (fold_constants, share_values, drop_unused, order_buffers)
