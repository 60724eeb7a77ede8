"""Sequences of different lengths: padded to one tensor, or packed, time by time, without the padding.

In: sequences, or a padded batch and its lengths. Out: a padded batch, or a `PackedSequence`, which recurrent
layers take and give. Lengths are read, since shapes depend on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import webgrad as wg
from webgrad import Tensor

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


class PackedSequence(NamedTuple):
    """Sequences of different lengths: `data` has the elements of every time, of the longest sequences first.

    `batch_sizes` says how many sequences have an element at each time; `sorted_indices` how the sequences
    were sorted by length, `unsorted_indices` how they come back.

    >>> packed = wg.nn.utils.rnn.pack_sequence([wg.asarray([1, 2, 3]), wg.asarray([4])])
    >>> packed.data.tolist(), packed.batch_sizes.tolist()
    ([1, 4, 2, 3], [2, 1, 1])
    """

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None = None
    unsorted_indices: Tensor | None = None

    def to(self, *targets: Any, **options: Any) -> Any:
        """The same with its data in another dtype, or all of it on another device."""
        data = self.data.to(*targets, **options)
        indices = (
            None if each is None else each.to_device(data.device)
            for each in (self.sorted_indices, self.unsorted_indices)
        )
        return type(self)(data, self.batch_sizes, *indices)


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes one.

    >>> wg.nn.utils.rnn.invert_permutation(wg.asarray([2, 0, 1])).tolist()
    [1, 2, 0]
    """
    return None if permutation is None else wg.argsort(permutation).astype(permutation.dtype)


def _numbers(lengths: Any) -> list[int]:
    return [int(each) for each in (lengths.tolist() if isinstance(lengths, Tensor) else lengths)]


def _batch_sizes(lengths: Sequence[int]) -> list[int]:
    """How many sequences there are at each time."""
    return [sum(length > time for length in lengths) for time in range(max(lengths))]


def _on_host(numbers: Sequence[int]) -> Tensor:
    return wg.asarray(list(numbers), dtype=wg.int64, device="cpu")


def pack_padded_sequence(
    x: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """A padded batch (time, batch, …) and its lengths, packed.

    >>> x = wg.asarray([[1, 2, 3], [4, 0, 0]])
    >>> wg.nn.utils.rnn.pack_padded_sequence(x, [3, 1], batch_first=True).data.tolist()
    [1, 4, 2, 3]
    """
    sizes = _numbers(lengths)
    padded = wg.swapaxes(x, 0, 1) if batch_first else x
    times, batch = padded.shape[:2]
    if len(sizes) != batch or not sizes:
        raise wg.ArgumentError(f"pack_padded_sequence: {len(sizes)} lengths for a batch of {batch}")
    if min(sizes) < 1 or max(sizes) > times:
        raise wg.ArgumentError(
            f"pack_padded_sequence: lengths are from 1 to {times}, the times of x, not {min(sizes)} to "
            f"{max(sizes)}"
        )
    order = sorted(range(batch), key=lambda each: -sizes[each])
    if enforce_sorted and order != list(range(batch)):
        raise wg.ArgumentError(
            "pack_padded_sequence: the lengths must fall when enforce_sorted is True; give "
            "enforce_sorted=False, and they are sorted"
        )
    counts = _batch_sizes(sizes)
    rows = [time * batch + each for time, count in enumerate(counts) for each in order[:count]]
    flat = padded.reshape((times * batch, *padded.shape[2:]))
    data = wg.take(flat, wg.asarray(rows, device=x.device), axis=0)
    if enforce_sorted:
        return PackedSequence(data, _on_host(counts))
    indices = wg.asarray(order, device=x.device)
    return PackedSequence(data, _on_host(counts), indices, invert_permutation(indices))


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """A packed batch, padded again, and its lengths; up to `total_length` times.

    >>> packed = wg.nn.utils.rnn.pack_sequence([wg.asarray([1, 2, 3]), wg.asarray([4])])
    >>> padded, lengths = wg.nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
    >>> padded.tolist(), lengths.tolist()
    ([[1, 2, 3], [4, 0, 0]], [3, 1])
    """
    counts = _numbers(sequence.batch_sizes)
    batch, times = counts[0], len(counts)
    if total_length is not None and total_length < times:
        raise wg.ArgumentError(
            f"pad_packed_sequence: total_length={total_length}, and the longest sequence has {times} times"
        )
    order = list(range(batch)) if sequence.unsorted_indices is None else _numbers(sequence.unsorted_indices)
    starts = [0, *accumulate(counts)]
    whole = times if total_length is None else total_length
    places = [
        [starts[time] + each if time < times and each < counts[time] else -1 for each in order]
        for time in range(whole)
    ]
    data = sequence.data
    index = wg.asarray(places, device=data.device)
    index = wg.swapaxes(index, 0, 1) if batch_first else index
    rows = wg.take(data, wg.clip(index, min=0), axis=0)
    there = (index >= 0).reshape((*index.shape, *[1] * (data.ndim - 1)))
    lengths = [sum(count > each for count in counts) for each in order]
    return wg.where(there, rows, padding_value).astype(data.dtype, copy=False), _on_host(lengths)


def pad_sequence(
    sequences: Iterable[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Sequences (time, …) of different lengths as one batch (time, batch, …).

    >>> wg.nn.utils.rnn.pad_sequence([wg.ones(2), wg.ones(1)], batch_first=True).tolist()
    [[1.0, 1.0], [1.0, 0.0]]
    """
    if padding_side not in ("left", "right"):
        raise wg.ArgumentError(f"pad_sequence: padding_side is 'left' or 'right', not {padding_side!r}")
    given = list(sequences)
    if not given:
        raise wg.ArgumentError("pad_sequence takes one sequence or more")
    most = max(each.shape[0] for each in given)
    padded = []
    for each in given:
        missing = most - each.shape[0]
        widths = (0, missing) if padding_side == "right" else (missing, 0)
        padded.append(wg.pad(each, (widths, *[(0, 0)] * (each.ndim - 1)), constant_values=padding_value))
    return wg.stack(padded, axis=0 if batch_first else 1)


def pack_sequence(sequences: Iterable[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Sequences of different lengths, packed.

    >>> wg.nn.utils.rnn.pack_sequence([wg.ones(2), wg.ones(1)]).batch_sizes.tolist()
    [2, 1]
    """
    given = list(sequences)
    lengths = [each.shape[0] for each in given]
    return pack_padded_sequence(pad_sequence(given), lengths, enforce_sorted=enforce_sorted)


def unpad_sequence(padded: Tensor, lengths: Any, batch_first: bool = False) -> list[Tensor]:
    """The sequences of a padded batch.

    >>> [each.tolist() for each in wg.nn.utils.rnn.unpad_sequence(wg.ones((3, 2)), [3, 1])]
    [[1.0, 1.0, 1.0], [1.0]]
    """
    rows = padded if batch_first else wg.swapaxes(padded, 0, 1)
    return [rows[at, :length] for at, length in enumerate(_numbers(lengths))]


def unpack_sequence(packed: PackedSequence) -> list[Tensor]:
    """The sequences of a packed batch.

    >>> packed = wg.nn.utils.rnn.pack_sequence([wg.ones(2), wg.ones(1)])
    >>> [each.tolist() for each in wg.nn.utils.rnn.unpack_sequence(packed)]
    [[1.0, 1.0], [1.0]]
    """
    return unpad_sequence(*pad_packed_sequence(packed))
