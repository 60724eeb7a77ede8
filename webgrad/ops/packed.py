"""Ops on quantised blocks, one row each: their weights, some rows of them, and a product that keeps them
packed.

In: a tensor's words, with (format, shape) as attributes. Out: float32. `ops/blocks.py` says what words mean.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..dtypes import float32
from ..graph.node import Signature
from ..graph.op import Op
from .blocks import FORMATS, decode_blocks

__all__ = ["PACKED", "decoded_rows"]

Array = np.ndarray[Any, Any]


def decoded_rows(words: Array, name: str, shape: tuple[int, ...], rows: slice | Array) -> Array:
    """float32 (rows, columns): a run of rows of a tensor seen as a matrix, or those an index array names."""
    format, columns = FORMATS[name], shape[-1]
    blocks, width = math.prod(shape) // format.weights, columns // format.weights
    if isinstance(rows, slice):
        chosen: slice | Array = slice(rows.start * width, rows.stop * width)
    else:
        chosen = (rows.astype(np.intp)[:, None] * width + np.arange(width)).reshape(-1)
    return decode_blocks(words, format, blocks, chosen).reshape(-1, columns)


def _decode(sig: Signature, words: Array) -> Array:
    name, shape = sig.attributes
    rows = math.prod(shape[:-1]) if shape[-1] else 0
    return decoded_rows(words, name, shape, slice(0, rows)).reshape(shape)


def _decode_rows(sig: Signature, words: Array, index: Array) -> Array:
    name, shape = sig.attributes
    inside = np.clip(index.astype(np.int64), 0, max(shape[0] - 1, 0)).reshape(-1)
    return decoded_rows(words, name, shape, inside).reshape(sig.shape)


def _product(sig: Signature, a: Array, words: Array) -> Array:
    name, shape = sig.attributes
    result: Array = a @ decoded_rows(words, name, shape, slice(0, shape[0])).T
    return result


PACKED = (
    Op(
        "decode",
        "decode",
        1,
        _decode,
        types="u",
        infer=lambda sigs, attributes: (attributes[1], float32),
        cost=8,
        doc="The weights of quantised blocks, attributes = (format, shape), from their words.",
    ),
    Op(
        "decode_rows",
        "decode",
        2,
        _decode_rows,
        types="u",
        infer=lambda sigs, attributes: ((*sigs[1].shape, attributes[1][-1]), float32),
        cost=8,
        doc="Rows of a matrix of quantised blocks, by index; indices out of range are clamped.",
    ),
    Op(
        "matmul_blocks",
        "contract",
        2,
        _product,
        types="f",
        infer=lambda sigs, attributes: ((*sigs[0].shape[:-1], attributes[1][0]), float32),
        domain=(-2, 2),
        doc="(…, k) floats by a matrix (n, k) of quantised blocks, transposed; made by the scheduler.",
    ),
)
