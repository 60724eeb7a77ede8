"""Blocks: which part of every value one block of a result needs.

A `Part` says for each axis of a value how much of it belongs to a block: None, all of it; or (axis, scale):
where the block has the range [a, b) of the domain's axis, the value has [a · scale, b · scale). `follow`
carries the part of a node to its inputs, or says that it cannot. `cut` chooses the blocks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..graph.node import Signature

__all__ = ["Cut", "Part", "Range", "block_shape", "cut", "follow", "index_of"]

Shape = tuple[int, ...]
Part = tuple[tuple[int, int] | None, ...]
Range = tuple[int, int]
Cut = dict[int, list[Range]]  # domain axis → its ranges; other axes are not cut
Parts = tuple[Part, ...]


def cut(shape: Shape, axes: Iterable[int], pieces: int, least: Mapping[int, int]) -> Cut:
    """Ranges that make about as many blocks as asked for, from the first of `axes` on; `least` sides of a
    block.
    """
    ranges: Cut = {}
    for axis in axes:
        side = shape[axis]
        count = min(pieces, side // least.get(axis, 1))
        if count > 1:
            step = -(-side // count)
            ranges[axis] = [(start, min(start + step, side)) for start in range(0, side, step)]
            pieces = -(-pieces // count)
    return ranges


def block_shape(shape: Shape, part: Part, lengths: Mapping[int, int]) -> Shape:
    """The shape of a value's part in a block with these lengths of the cut axes."""
    return tuple(
        side if each is None else lengths[each[0]] * each[1] for side, each in zip(shape, part, strict=True)
    )


def index_of(part: Part, block: Mapping[int, Range]) -> tuple[Any, ...]:
    """What to index a value with; the ellipsis keeps a view of no dimensions a view."""
    index: list[Any] = [
        slice(None) if each is None else slice(block[each[0]][0] * each[1], block[each[0]][1] * each[1])
        for each in part
    ]
    while index and index[-1] == slice(None):
        index.pop()
    return (*index, ...)


def follow(sig: Signature, inputs: list[Signature], part: Part) -> Parts | None:
    """The inputs' parts for a part of a node; None where it is no such part."""
    rule = _RULES.get(sig.op.name) or _KINDS.get(sig.kind)
    return rule(sig, inputs, part) if rule is not None else None


def _broadcast(shape: Shape, source: Shape, part: Part) -> Part:
    shift = len(shape) - len(source)
    return tuple(
        None if side == 1 and shape[axis + shift] != 1 else part[axis + shift]
        for axis, side in enumerate(source)
    )


def _elementwise(sig: Signature, inputs: list[Signature], part: Part) -> Parts:
    return tuple(_broadcast(sig.shape, each.shape, part) for each in inputs)


def _pairs(sig: Signature, inputs: list[Signature], part: Part) -> Parts | None:
    return None if part[-1] is not None else _elementwise(sig, inputs, part)


def _sizes(sig: Signature, inputs: list[Signature], part: Part) -> Parts:
    return (*part, None), *[()] * (len(inputs) - 1)


def _source(sig: Signature, inputs: list[Signature], part: Part) -> Parts:
    return ()


def _reshape(sig: Signature, inputs: list[Signature], part: Part) -> Parts | None:
    before, after = inputs[0].shape, sig.shape
    result: list[tuple[int, int] | None] = [None] * len(before)
    for axis, each in enumerate(part):
        if each is None:
            continue
        outer = math.prod(after[:axis])
        found = [at for at, side in enumerate(before) if side != 1 and math.prod(before[:at]) == outer]
        if not found:
            return None
        run = each[1] * math.prod(after[axis + 1 :])
        whole = math.prod(before[found[0] + 1 :])
        if run % whole:
            return None
        result[found[0]] = (each[0], run // whole)
    return (tuple(result),)


def _permute(sig: Signature, inputs: list[Signature], part: Part) -> Parts:
    result: list[tuple[int, int] | None] = [None] * len(part)
    for at, axis in enumerate(sig.attributes[0]):
        result[axis] = part[at]
    return (tuple(result),)


def _slice(sig: Signature, inputs: list[Signature], part: Part) -> Parts | None:
    for side, each, span in zip(inputs[0].shape, part, sig.attributes[0], strict=True):
        if each is not None and span != (0, side, 1):
            return None
    return (part,)


def _flip(sig: Signature, inputs: list[Signature], part: Part) -> Parts | None:
    return None if any(part[axis] is not None for axis in sig.attributes[0]) else (part,)


def _window(sig: Signature, inputs: list[Signature], part: Part) -> Parts | None:
    return None if part[-1] is not None or part[sig.attributes[0]] is not None else (part[:-1],)


def _pad(sig: Signature, inputs: list[Signature], part: Part) -> Parts | None:
    for each, widths in zip(part, sig.attributes[0], strict=True):
        if each is not None and widths != (0, 0):
            return None
    return part, ()


def _take(sig: Signature, inputs: list[Signature], part: Part) -> Parts:
    (axis,) = sig.attributes
    end = axis + len(inputs[1].shape)
    return (*part[:axis], None, *part[end:]), part[axis:end]


def _take_along(sig: Signature, inputs: list[Signature], part: Part) -> Parts:
    (axis,) = sig.attributes
    x, index = (_broadcast(sig.shape, each.shape, part) for each in inputs)
    return (*x[:axis], None, *x[axis + 1 :]), index


def _concat(sig: Signature, inputs: list[Signature], part: Part) -> Parts | None:
    return None if part[sig.attributes[0]] is not None else (part,) * len(inputs)


def _reduce(sig: Signature, inputs: list[Signature], part: Part) -> Parts:
    left = iter(part)
    axes = sig.attributes[0]
    return (tuple(None if axis in axes else next(left) for axis in range(len(inputs[0].shape))),)


Rule = Callable[[Signature, list[Signature], Part], Parts | None]
_KINDS: dict[str, Rule] = {"map": _elementwise, "cast": _elementwise, "iota": _source, "reduce": _reduce}
_RULES: dict[str, Rule] = {
    "expand": _elementwise,
    "reshape": _reshape,
    "permute": _permute,
    "slice": _slice,
    "flip": _flip,
    "window": _window,
    "pad": _pad,
    "take": _take,
    "take_along": _take_along,
    "concat": _concat,
    "multiply_pairs": _pairs,
    "conjugate_pairs": _pairs,
    "add_to_real": _pairs,
    "sizes_of_pairs": _sizes,
}
