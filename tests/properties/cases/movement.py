"""Cases of movement: several attributes over every layout, and empty ones; joined values."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

from tests.properties.cases.maker import Cases, Maker
from tests.properties.helpers import (
    LAYOUTS,
    Case,
    Shape,
)
from webgrad.ops import primitives
from webgrad.ops.table import TABLE
from webgrad.reference.plan import value_of

__all__ = ["concats", "moves"]


MOVES: dict[str, dict[Shape, tuple[tuple[Any, ...], ...]]] = {
    "reshape": {
        (5, 12): (((60,),), ((12, 5),), ((3, 4, 5),), ((5, 1, 3, 1, 4),)),
        (3, 7): (((21,),), ((7, 3),), ((1, 21, 1),)),
        (4, 4): (((4, 2, 2),), ((2, 2, 2, 2),), ((4, 1, 4),)),
    },
    "permute": {
        (5, 12): (((1, 0),),),
        (3, 7): (((1, 0),),),
        (2, 3, 4): (((2, 0, 1),), ((1, 0, 2),), ((0, 2, 1),)),
        (4, 4): (((1, 0),),),
        (3, 3, 3): (((2, 0, 1),), ((1, 2, 0),), ((2, 1, 0),)),
    },
    "expand": {(5, 1): (((5, 4),), ((2, 5, 3),)), (1, 7): (((3, 7),),), (1,): (((2, 3, 5),),)},
    "pad": {
        (5, 12): ((((0, 0), (4, 4)),), (((1, 2), (0, 0)),), (((0, 3), (3, 2)),)),
        (3, 7): ((((1, 1), (1, 1)),), (((0, 0), (5, 0)),)),
        (4, 4): ((((0, 1), (1, 0)),), (((2, 2), (2, 2)),)),
    },
    "slice": {
        (5, 12): ((((0, 5, 1), (4, 12, 1)),), (((1, 5, 3), (1, 12, 2)),), (((2, 3, 1), (0, 12, 5)),)),
        (3, 7): ((((0, 3, 2), (6, 7, 1)),), (((1, 1, 1), (0, 7, 1)),)),
        (4, 4): ((((0, 3, 1), (1, 4, 1)),), (((0, 4, 2), (0, 4, 2)),)),
    },
    "flip": {(5, 12): (((0,),), ((1,),), ((0, 1),)), (3, 7): (((1,),), ((0, 1),)), (4, 4): (((0,),),)},
    "window": {
        (5, 12): ((1, 4, 1, 1), (1, 4, 4, 1), (0, 3, 1, 2), (1, 3, 2, 2)),
        (3, 7): ((1, 3, 1, 1), (0, 2, 3, 1), (1, 1, 2, 1)),
        (4, 4): ((0, 2, 1, 2), (1, 3, 1, 1)),
    },
}
EMPTY_MOVES: dict[str, tuple[Shape, tuple[Any, ...]]] = {
    "reshape": ((0, 4), ((2, 0),)),
    "permute": ((0, 4), ((1, 0),)),
    "expand": ((1, 0), ((3, 0),)),
    "pad": ((0, 3), (((2, 1), (0, 1)),)),
    "slice": ((5, 4), (((2, 2, 1), (0, 4, 1)),)),
    "flip": ((0, 4), ((0, 1),)),
    "window": ((0, 4), (1, 2, 1, 1)),
}


def moves(maker: Maker) -> Cases:
    """Several attributes, each over every layout, and empty ones."""
    filler = [maker.plain(maker.draw(()))] if maker.op.arity == 2 else []
    choices = [(shape, each) for shape, several in MOVES[maker.op.name].items() for each in several]
    for layout, (shape, attributes) in maker.spread(choices):
        operand = maker.operand(layout, shape)
        label = f"{attributes} of {layout} {shape}"
        yield maker.case(label, [operand, *filler], attributes)
        if maker.thorough and layout == "contiguous":
            again = maker.case(label, [operand, *filler], attributes)
            yield folded(again, again.wanted[0].ndim - 1)
    shape, attributes = EMPTY_MOVES[maker.op.name]
    yield maker.case(
        f"{attributes} of empty {shape}", [maker.operand("contiguous", shape), *filler], attributes
    )
    if maker.op.name in ("reshape", "expand"):
        yield maker.case("of 0-d", [maker.operand("contiguous", ())], ((1, 1),))


def concats(maker: Maker) -> Cases:
    """Two and three inputs, along both axes, of all layouts; one of them empty."""
    names = list(LAYOUTS)
    for layout, (axis, lengths) in maker.spread(list(product((0, 1), ((4, 8), (3, 1, 5), (4, 0, 2))))):
        shapes = [(each, 8) if axis == 0 else (3, each) for each in lengths]
        operands = [
            maker.operand(
                names[(names.index(layout) + at) % 4] if 0 not in shape else "contiguous", shape, turn=at
            )
            for at, shape in enumerate(shapes)
        ]
        yield maker.case(f"axis {axis}, {shapes}, {layout}", operands, (axis,))
    nothing = [maker.operand("contiguous", (0, 3)), maker.operand("contiguous", (0, 2))]
    yield maker.case("empty", nothing, (1,))
    for axis, shape in enumerate(((0, 4), (4, 0))):
        for end in (lambda case: case, partial(folded, axis=axis)):
            empty = [maker.plain(maker.draw(shape)) for _ in range(2)]
            yield end(maker.case(f"axis {axis}, nothing but empty", empty, (axis,)))


def folded(case: Case, axis: int) -> Case:
    """The largest along an axis of what a case gives. That is no case itself, or it would be stored: here a
    kernel computes it inside of a loop.
    """
    node = primitives.reduce(TABLE["max"], case.node, (axis,))
    wanted = tuple(value_of(node.sig, [each]) for each in case.wanted)
    return replace(case, label=f"the largest of {case.label}", node=node, wanted=wanted)
