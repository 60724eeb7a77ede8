"""Sequences: lists of values, which the host always knows, whatever it knows of their elements."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import webgrad as wg

from ...arrays import np
from .control import stacked
from .table import Call, operator

__all__: list[str] = []


@operator("SequenceEmpty", folds=False)
def sequence_empty(*, dtype: int = 1) -> Any:
    return []


@operator("SequenceConstruct", known="values", folds=False)
def sequence_construct(*values: Any) -> Any:
    return list(values)


@operator("SequenceAt", host="position", folds=False)
def sequence_at(sequence: Any, position: Any) -> Any:
    return sequence[_place(sequence, position)]


@operator("SequenceErase", host="position", folds=False)
def sequence_erase(sequence: Any, position: Any = None) -> Any:
    at = len(sequence) - 1 if position is None else _place(sequence, position)
    return [*sequence[:at], *sequence[at + 1 :]]


@operator("SequenceInsert", host="position", known="value", folds=False)
def sequence_insert(sequence: Any, value: Any, position: Any = None) -> Any:
    if position is None:
        return [*sequence, value]
    at = position.item()
    if not -len(sequence) <= at <= len(sequence):
        raise wg.IndexingError(f"the position {at} is outside of a sequence of {len(sequence)}")
    at %= len(sequence) + (at >= 0)
    return [*sequence[:at], value, *sequence[at:]]


@operator("SequenceLength", folds=False)
def sequence_length(sequence: Any) -> Any:
    return np.asarray(len(sequence), np.int64)


@operator("ConcatFromSequence", folds=False)
def concat_from_sequence(sequence: Any, *, axis: int, new_axis: int = 0, call: Call) -> Any:
    if new_axis:
        return stacked(sequence, axis, call)
    if all(isinstance(each, np.ndarray) for each in sequence):
        return np.concatenate(sequence, axis)
    return wg.concat([call.tensor(each) for each in sequence], axis=axis)


@operator("SplitToSequence", host="split", known="x", folds=False)
def split_to_sequence(x: Any, split: Any = None, *, axis: int = 0, keepdims: int = 1) -> Any:
    axis %= x.ndim
    size = x.shape[axis]
    if split is None:
        sizes = [1] * size
    elif split.ndim:
        sizes = split.tolist()
        if sum(sizes) != size or min(sizes, default=0) < 0:
            raise wg.ShapeError(f"an axis of {size} cannot be split into {sizes}")
    else:
        each = split.item()
        sizes = [min(each, size - at) for at in range(0, size, each)]
    parts = _parts(x, sizes, axis)
    if split is None and not keepdims:
        return [part.reshape((*part.shape[:axis], *part.shape[axis + 1 :])) for part in parts]
    return parts


@operator("SequenceMap", known="others", folds=False)
def sequence_map(sequence: Any, *others: Any, body: Any, call: Call) -> Any:
    """The body's outputs for each element; other sequences are read in step, everything else is the same."""
    rounds = [
        call.run(body, [each, *[other[at] if isinstance(other, list) else other for other in others]])
        for at, each in enumerate(sequence)
    ]
    return tuple(map(list, zip(*rounds, strict=True))) if rounds else tuple([] for _ in body.outputs)


def _parts(x: Any, sizes: Sequence[int], axis: int) -> list[Any]:
    ends = np.cumsum([0, *sizes]).tolist()
    before = (slice(None),) * axis
    return [x[(*before, slice(start, end))] for start, end in pairwise(ends)]


def _place(sequence: Any, position: Any) -> int:
    at = int(position.item())
    if not -len(sequence) <= at < len(sequence):
        raise wg.IndexingError(f"the position {at} is outside of a sequence of {len(sequence)}")
    return at % len(sequence)
