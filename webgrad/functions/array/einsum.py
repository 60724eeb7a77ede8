"""Einstein's notation: subscripts to labelled operands, and labelled operands to products.

In: NumPy's subscripts, or labels for every axis. Out: one tensor. Operands are joined two by two, the pair
with the smallest result for its inputs first; a pair with axes to sum is one batched matrix product. Labels
are small numbers; inside, no operand has a label twice.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from ...dtypes import promote
from ...errors import DTypeError, ShapeError
from ...ops import primitives
from ...tensor import Tensor
from .creation import as_tensor
from .manipulation import diagonal
from .reductions import converted, fold, widened

Labels = list[int]
Operand = tuple[Tensor, Labels]
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"  # in the order of implicit outputs


# Subscripts


def parse(subscripts: Any, operands: Sequence[Any]) -> tuple[list[Tensor], list[Labels], Labels]:
    """The operands, a label for each of their axes, and the labels of the result."""
    if not isinstance(subscripts, str):
        subscripts, operands = _from_lists((subscripts, *operands))
    tensors = [as_tensor("einsum", each) for each in operands]
    inputs, output = _terms(subscripts, len(tensors))
    lengths = [
        each.ndim - len(term.replace("...", "")) if "..." in term else 0
        for each, term in zip(tensors, inputs, strict=True)
    ]
    for tensor, term, length in zip(tensors, inputs, lengths, strict=True):
        if length < 0 or ("..." not in term and len(term) != tensor.ndim):
            raise ShapeError(
                f"einsum {subscripts!r}: {term!r} does not name the {tensor.ndim} axes of an operand of "
                f"shape {tensor.shape}"
            )
    rank = max(lengths, default=0)
    labels = [_labels(term, length, rank) for term, length in zip(inputs, lengths, strict=True)]
    if output is None:
        output = _implicit(inputs)
    elif rank and "..." not in output:
        raise ShapeError(
            f'einsum {subscripts!r}: an operand has axes under "...", and the result must name them'
        )
    result = _labels(output, rank, rank)
    unknown = [label for label in result if not any(label in each for each in labels)]
    if unknown or len(set(result)) != len(result):
        raise ShapeError(
            f"einsum {subscripts!r}: the result {output!r} names axes of the operands, each once"
        )
    return tensors, labels, result


def _terms(subscripts: str, count: int) -> tuple[list[str], str | None]:
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    inputs = left.split(",")
    for term in [*inputs, right]:
        if any(letter not in _LETTERS for letter in term.replace("...", "", 1)):
            raise ShapeError(
                f'einsum {subscripts!r}: {term!r} must be letters, and "..." at most once; "," separates '
                'operands, and the result comes after "->"'
            )
    if len(inputs) != count:
        raise ShapeError(f"einsum {subscripts!r} names {len(inputs)} operands, and {count} were given")
    return inputs, right if arrow else None


def _labels(term: str, length: int, rank: int) -> Labels:
    """Letters as numbers; the axes under "..." come after all letters, aligned at the last."""
    before, dots, after = term.partition("...")
    hidden = [len(_LETTERS) + each for each in range(rank - length, rank)] if dots else []
    return [*map(_LETTERS.index, before), *hidden, *map(_LETTERS.index, after)]


def _implicit(inputs: list[str]) -> str:
    letters = "".join(inputs).replace(".", "")
    once = "".join(sorted(letter for letter in set(letters) if letters.count(letter) == 1))
    return ("..." if any("..." in term for term in inputs) else "") + once


def _from_lists(arguments: tuple[Any, ...]) -> tuple[str, list[Any]]:
    """The other form, einsum(x, [0, 1], y, [1, 2], [0, 2]), as subscripts."""
    if len(arguments) < 2:
        raise DTypeError('einsum takes subscripts such as "ij,jk->ik" and tensors')
    result = arguments[-1] if len(arguments) % 2 else None
    operands, lists = arguments[:-1:2] if result is not None else arguments[::2], arguments[1::2]
    terms = ",".join(map(_letters, lists))
    return terms if result is None else f"{terms}->{_letters(result)}", list(operands)


def _letters(axes: Any) -> str:
    if not isinstance(axes, (list, tuple)):
        raise DTypeError(f"einsum: the labels of an operand are a list of numbers and ..., not {axes!r}")
    for each in axes:
        if each is not Ellipsis and not (isinstance(each, int) and 0 <= each < len(_LETTERS)):
            raise ShapeError(
                f"einsum: {each!r} is not a label; labels are numbers from 0 to {len(_LETTERS) - 1}"
            )
    return "".join("..." if each is Ellipsis else _LETTERS[each] for each in axes)


# Products


def contracted(op: str, tensors: list[Tensor], labels: list[Labels], output: Labels) -> Tensor:
    """The sum of products of labelled tensors over every label that the output does not have."""
    sizes = _sizes(op, tensors, labels)
    operands = [_simple(each, names) for each, names in zip(tensors, labels, strict=True)]
    while len(operands) > 1:
        first, second = _cheapest(operands, output, sizes)
        left, right = operands[first], operands[second]
        operands = [each for at, each in enumerate(operands) if at not in (first, second)]
        order = None if operands else output
        operands.append(_product(left, right, _needed(operands, output), order))
    tensor, names = _summed(operands[0], set(output))
    missing = [label for label in output if label not in names]  # only ever of size 1
    shaped = primitives.reshape(tensor.node, (*tensor.shape, *[1] * len(missing)))
    names = [*names, *missing]
    return Tensor(primitives.permute(shaped, tuple(names.index(label) for label in output)))


def _sizes(op: str, tensors: list[Tensor], labels: list[Labels]) -> dict[int, int]:
    sizes: dict[int, int] = {}
    for tensor, names in zip(tensors, labels, strict=True):
        for label, size in zip(names, tensor.shape, strict=True):
            known = sizes.setdefault(label, size)
            if size != known and 1 not in (size, known):
                shapes = ", ".join(str(each.shape) for each in tensors)
                name = f"{_LETTERS[label]!r}" if label < len(_LETTERS) else 'under "..."'
                raise ShapeError(
                    f"{op} of the shapes {shapes}: the axis {name} has size {known} in one place and {size} "
                    "in another"
                )
            sizes[label] = size if known == 1 else known
    return sizes


def _simple(tensor: Tensor, names: Labels) -> Operand:
    """Diagonals for repeated labels, and no axes of size 1: those broadcast, or sum as one."""
    while len(set(names)) != len(names):
        label = next(each for each in names if names.count(each) > 1)
        first, second = [axis for axis, each in enumerate(names) if each == label][:2]
        if tensor.shape[first] != tensor.shape[second]:
            raise ShapeError(
                f"einsum: the diagonal of axes {first} and {second} of an operand of shape {tensor.shape} "
                "needs equal sizes"
            )
        tensor = diagonal(tensor, 0, first, second)
        names = [*[each for axis, each in enumerate(names) if axis not in (first, second)], label]
    kept = [axis for axis, size in enumerate(tensor.shape) if size != 1]
    node = primitives.reshape(tensor.node, tuple(tensor.shape[axis] for axis in kept))
    return Tensor(node), [names[axis] for axis in kept]


def _needed(others: list[Operand], output: Labels) -> set[int]:
    return {*output, *itertools.chain.from_iterable(names for _, names in others)}


def _cheapest(operands: list[Operand], output: Labels, sizes: dict[int, int]) -> tuple[int, int]:
    """The pair whose product is smallest for its inputs; of equal ones that with the least work."""

    def growth_and_work(pair: tuple[int, int]) -> tuple[int, int]:
        others = [each for at, each in enumerate(operands) if at not in pair]
        (a, first), (b, second) = (operands[at] for at in pair)
        every = {*first, *second}
        left = math.prod(sizes[label] for label in every & _needed(others, output))
        return left - a.size - b.size, math.prod(sizes[label] for label in every)

    return min(itertools.combinations(range(len(operands)), 2), key=growth_and_work)


def _summed(operand: Operand, wanted: set[int]) -> Operand:
    """An operand without the axes that nothing else needs."""
    tensor, names = operand
    axes = tuple(axis for axis, label in enumerate(names) if label not in wanted)
    return fold("sum", tensor, axes), [label for label in names if label in wanted]


def _product(left: Operand, right: Operand, wanted: set[int], output: Labels | None) -> Operand:
    """Two operands as one, with the wanted labels only; in the order of the output where that is known."""
    a, first = _summed(left, wanted | set(right[1]))
    b, second = _summed(right, wanted | set(left[1]))
    shared = [label for label in first if label in second and label not in wanted]
    batch = [label for label in first if label in second and label in wanted]
    rows = [label for label in first if label not in second]
    columns = [label for label in second if label not in first]
    labels = [*batch, *rows, *columns]
    if output is not None:
        order = [label for label in output if label in labels]
        batch, rows, columns = (sorted(each, key=order.index) for each in (batch, rows, columns))
        if rows and columns and order.index(columns[0]) < order.index(rows[0]):
            (a, first, rows), (b, second, columns) = (b, second, columns), (a, first, rows)
        labels = order
    if shared and (rows or columns):
        return _matrix_product((a, first), (b, second), batch, rows, columns, shared)
    every = [*labels, *shared]
    product = _aligned(widened(a), first, every) * _aligned(widened(b), second, every)
    total = fold("sum", product, tuple(range(len(labels), product.ndim)))
    return converted(total, promote(a.dtype, b.dtype)), labels


def _aligned(tensor: Tensor, names: Labels, labels: Labels) -> Tensor:
    """The axes in the order of `labels`, with size 1 for those that it lacks."""
    moved = primitives.permute(tensor.node, tuple(names.index(label) for label in labels if label in names))
    sizes = iter(moved.sig.shape)
    return Tensor(primitives.reshape(moved, tuple(next(sizes) if each in names else 1 for each in labels)))


def _matrix_product(
    left: Operand, right: Operand, batch: Labels, rows: Labels, columns: Labels, shared: Labels
) -> Operand:
    """(batch, rows, shared) @ (batch, shared, columns), each group of axes as one."""
    a = _grouped(left, batch, rows, shared)
    b = _grouped(right, batch, shared, columns)
    result = primitives.contract(a.node, b.node)
    known = dict(zip(left[1], left[0].shape, strict=True)) | dict(zip(right[1], right[0].shape, strict=True))
    labels = [*batch, *rows, *columns]
    return Tensor(primitives.reshape(result, tuple(known[label] for label in labels))), labels


def _grouped(operand: Operand, batch: Labels, *groups: Labels) -> Tensor:
    tensor, names = operand
    moved = _aligned(tensor, names, [*batch, *itertools.chain.from_iterable(groups)])
    known = dict(zip(names, tensor.shape, strict=True))
    sizes = [math.prod(known[label] for label in group) for group in groups]
    return Tensor(primitives.reshape(moved.node, (*[known[label] for label in batch], *sizes)))
