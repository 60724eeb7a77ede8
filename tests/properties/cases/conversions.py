"""Cases of casts, of bits taken for another dtype, of complex numbers as pairs, and of counts."""

from __future__ import annotations

import numpy as np

from tests.properties.cases.maker import Cases, Maker
from tests.properties.helpers import (
    SHAPES,
    Array,
    Case,
    Operand,
    flushed,
    specials,
    wide,
)
from webgrad import dtypes
from webgrad.dtypes import DType
from webgrad.graph.node import make, source
from webgrad.ops import primitives

__all__ = ["bitcasts", "casts", "iotas", "views"]


def converted(x: Array, dtype: DType) -> Array:
    """Integers wrap; floats are cut towards zero and stop at an integer's limits; NaN becomes 0."""
    with np.errstate(all="ignore"):
        if x.dtype.kind not in "fV" or dtype.kind not in "iu":
            narrow = x.astype(np.float32) if dtype.itemsize == 2 and dtype.kind == "f" else x
            return narrow.astype(dtype.numpy)
        limits = np.iinfo(dtype.numpy)
        inside = np.clip(np.nan_to_num(wide(x)), -1e30, 1e30)  # then in Python's integers, which have no end
        numbers = [min(max(int(each), int(limits.min)), int(limits.max)) for each in inside.ravel()]
        return np.array(numbers, dtype.numpy).reshape(x.shape)


def casts(maker: Maker) -> Cases:
    """To every dtype: special and out-of-range values; every layout, to dtypes in turn."""
    edges = [
        0.0,
        0.5,
        0.99,
        1.5,
        127.5,
        128.0,
        255.5,
        256.0,
        32767.5,
        65535.5,
        2.0**31,
        2.0**32,
        2.0**63,
        2.0**64,
    ]
    values = specials(maker.dtype)
    if maker.dtype.kind == "f":
        with np.errstate(over="ignore"):
            both = np.array([*edges, *[-each for each in edges], 3e38, -3e38, 1e-45]).astype(
                maker.dtype.numpy
            )
        values = np.concatenate([values, both])

    def case(label: str, operand: Operand, target: DType) -> Case:
        node = make(maker.op, (operand.node,), (target,))
        wanted = [converted(operand.value, target)]
        if maker.device.name != "cpu":
            wanted.append(converted(flushed(operand.value), target))
        return Case(f"cast from {maker.dtype.name}, {label}", node, tuple(wanted))

    operands = {
        "special values": maker.plain(values),
        "0-d": maker.operand("contiguous", ()),
        "empty": maker.operand("contiguous", (0, 4)),
    }
    for label, operand in operands.items():  # the same to every dtype, in one kernel
        for target in dtypes.REAL:
            yield case(label, operand, target)
    for turn, (label, operand) in enumerate(maker.every_layout()):
        yield case(label, operand, dtypes.REAL[(maker.turn + turn) % len(dtypes.REAL)])


def bitcasts(maker: Maker) -> Cases:
    """Between dtypes of one width; a bool is no free choice of bits."""
    targets = [each for each in dtypes.REAL if each.itemsize == maker.dtype.itemsize and each.kind != "b"]
    if maker.dtype.kind == "b":
        return
    for label, operand in [*maker.every_layout(), ("empty", maker.operand("contiguous", (0, 4)))]:
        for target in targets:
            yield maker.case(f"to {target.name}, {label}", [operand], (target,))


def views(maker: Maker) -> Cases:
    """Complex numbers as pairs and back, of every layout."""
    part = dtypes.part_of(maker.dtype)
    for layout, shape in maker.spread([(*each, 2) for each in SHAPES] + [(2,), (0, 2)]):
        pairs = maker.operand(layout, shape, part, turn=maker.turn)
        if maker.dtype.kind == "c":
            numbers = np.ascontiguousarray(pairs.value).view(maker.dtype.numpy).reshape(shape[:-1])
            pairs = Operand(primitives.as_complex(pairs.node), numbers)
        yield maker.case(f"{layout} {shape}", [pairs])


def iotas(maker: Maker) -> Cases:
    """Lengths with and without a rest, and beyond small types."""
    for length in (0, 1, 4, 7, 300):
        node = source(maker.op, (length,), maker.dtype, maker.device)
        yield Case(f"iota of {length}", node, (np.arange(length).astype(maker.dtype.numpy),))
