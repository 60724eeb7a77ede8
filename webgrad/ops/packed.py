"""Ops on quantised blocks, one row each: their weights, some rows of them, and a product that keeps them
packed.

In: a tensor's words, with (format, shape) as attributes. Out: float32. `ops/blocks.py` defines the words.
"""

from __future__ import annotations

import math
from typing import Any

from ..arrays import Array, np
from ..dtypes import float32, uint32
from ..errors import DTypeError, ShapeError
from ..graph.node import Signature
from ..graph.op import Op
from .blocks import FORMATS, decode_blocks, word_count


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


# Shapes and dtypes


def _check_words(op: str, words: Signature, name: str, shape: tuple[int, ...]) -> None:
    if words.dtype is not uint32:
        raise DTypeError(f"{op}: quantised blocks are words of uint32, not {words.dtype.name}")
    format = FORMATS[name]
    if shape[-1] % format.weights or words.size != word_count(format, math.prod(shape) // format.weights):
        raise ShapeError(f"{op}: {words.size} words are not {name} blocks of shape {shape}")


def _all(sigs: tuple[Signature, ...], attributes: tuple[Any, ...]) -> Any:
    _check_words("decode", sigs[0], *attributes)
    return attributes[1], float32


def _some(sigs: tuple[Signature, ...], attributes: tuple[Any, ...]) -> Any:
    _check_words("decode_rows", sigs[0], *attributes)
    return (*sigs[1].shape, attributes[1][-1]), float32


def _multiplied(sigs: tuple[Signature, ...], attributes: tuple[Any, ...]) -> Any:
    if sigs[0].dtype is not float32:
        raise DTypeError(f"matmul_blocks: the operand must be float32, not {sigs[0].dtype.name}")
    _check_words("matmul_blocks", sigs[1], *attributes)
    return (*sigs[0].shape[:-1], attributes[1][0]), float32


PACKED = (
    Op(
        "decode",
        "decode",
        1,
        _decode,
        types="u",
        result="float32",
        infer=_all,
        cost=8,
        doc="The weights of quantised blocks, attributes = (format, shape), from their words.",
        gradient=(),
    ),
    Op(
        "decode_rows",
        "decode",
        2,
        _decode_rows,
        types="u",
        result="float32",
        infer=_some,
        cost=8,
        doc="Rows of a matrix of quantised blocks, by index; indices out of range are clamped.",
        gradient=(),
    ),
    Op(
        "matmul_blocks",
        "contract",
        2,
        _product,
        types="f",
        infer=_multiplied,
        domain=(-2, 2),
        doc="(…, k) floats by a matrix (n, k) of quantised blocks, transposed; made by the scheduler.",
        gradient=(),
    ),
)
