"""Cases for ops on quantised blocks: every format, against weights computed one by one in Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from tests.ops.block_reference import WEIGHTS, dequantise, random_blocks
from tests.properties.helpers import Case, Operand, place, wide
from webgrad.graph.node import make
from webgrad.ops.blocks import FORMATS, to_words

if TYPE_CHECKING:
    from tests.properties.cases import Maker

__all__ = ["PACKED"]

Cases = Iterator[Case]
EPSILON = float(np.finfo(np.float32).eps)


def _packed(
    maker: Maker, name: str, rows: int, scale: float | None = None
) -> tuple[Operand, tuple[int, int]]:
    """A matrix of blocks: its words, beside its weights."""
    shape = (rows, 2 * WEIGHTS[name])
    data = random_blocks(name, shape, maker.turn % 1000, scale=scale)
    words = to_words(data, FORMATS[name])
    return Operand(place(words, maker.device), dequantise(data, name, shape)), shape


def decodes(maker: Maker) -> Cases:
    """All weights, and rows of them, some of the indices outside; words of any other dtype are refused."""
    places: tuple[tuple[int, ...], ...] = ((4,), (2, 3), (), (0,))
    for at, name in enumerate(FORMATS):
        words, shape = _packed(maker, name, 3)
        node = words.node
        if maker.dtype.name != "uint32":
            node = place(np.zeros(node.sig.shape, maker.dtype.numpy), maker.device)
        if maker.op.name == "decode":
            made = make(maker.op, (node,), (name, shape))
            yield Case(f"decode {name}", made, (words.value,))
            continue
        array = np.asarray(maker.generator.integers(-2, 5, places[at % 4]), np.int32)
        made = make(maker.op, (node, place(array, maker.device)), (name, shape))
        yield Case(f"decode_rows {name}", made, (words.value[np.clip(array, 0, 2)],))


def products(maker: Maker) -> Cases:
    """Few rows and many, odd numbers of columns, batches."""
    for name, rows in {"Q4_0": (1,), "Q5_1": (3,), "Q4_K": (9,), "Q6_K": (2, 2)}.items():
        words, shape = _packed(maker, name, 7, 0.01)
        a = maker.operand("contiguous", (*rows, shape[1]))
        x, w = wide(a.value), wide(words.value).T
        node = make(maker.op, (a.node, words.node), (name, shape))
        slack = np.abs(x) @ np.abs(w) * EPSILON * 16
        yield Case(f"{name} by {rows} rows", node, (x @ w,), 1.0, slack)


PACKED: dict[str, Callable[[Maker], Cases]] = {"decode": decodes, "matmul_blocks": products}
