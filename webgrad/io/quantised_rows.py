"""Quantised rows on the host: blocks as GGUF has them, before they go to a device.

In: bytes, a row of blocks each. Out: other choices of the same rows, or a `QuantisedTensor`. Rows are the
smallest part that can be taken: a block never lies in two of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import webgrad as wg

from ..arrays import Array, np
from ..ops.blocks import FORMATS

__all__ = ["Blocks"]


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """Rows of quantised blocks in the host's memory: `data` is uint8 (rows, bytes of a row).

    >>> blocks = wg.io.Blocks("Q8_0", (3, 32), np.zeros((3, 34), np.uint8))
    >>> blocks.take([2, 0]).tensor()
    QuantisedTensor(Q8_0, shape=(2, 32), device='cpu', 68 B)
    """

    format: str
    shape: tuple[int, ...]
    data: Array

    def __post_init__(self) -> None:
        known = FORMATS.get(self.format)
        if known is None:
            raise wg.ArgumentError(f"Blocks: {self.format!r} is none of the formats {', '.join(FORMATS)}")
        if not self.shape or self.shape[-1] % known.weights:
            raise wg.ShapeError(
                f"Blocks: a row of {self.format} is a multiple of {known.weights} weights, not {self.shape}"
            )
        wanted = (math.prod(self.shape[:-1]), self.shape[-1] // known.weights * known.nbytes)
        if self.data.shape != wanted or self.data.dtype != np.uint8:
            raise wg.ShapeError(
                f"Blocks: {self.format} of shape {self.shape} is uint8 of shape {wanted}, not "
                f"{self.data.dtype.name} of {self.data.shape}"
            )

    @property
    def nbytes(self) -> int:
        """How many bytes the blocks are."""
        return self.data.nbytes

    def __repr__(self) -> str:
        return f"Blocks({self.format}, shape={self.shape}, {self.nbytes:,} bytes)"

    def take(self, rows: Any) -> Blocks:
        """Some rows of a matrix, by a slice, by indices, or by a bool for each."""
        self._check_matrix("take")
        try:
            chosen = self.data[rows if isinstance(rows, slice) else _indices(rows)]
        except IndexError as error:
            raise wg.IndexingError(f"Blocks.take: {error}") from None
        if chosen.ndim != 2:
            raise wg.IndexingError("Blocks.take: rows are named by a slice or by a list of indices")
        return Blocks(self.format, (len(chosen), self.shape[-1]), chosen)

    @staticmethod
    def concat(parts: Sequence[Blocks]) -> Blocks:
        """The rows of several matrices of one format, one after the other.

        >>> blocks = wg.io.Blocks("Q8_0", (3, 32), np.zeros((3, 34), np.uint8))
        >>> wg.io.Blocks.concat([blocks, blocks]).shape
        (6, 32)
        """
        if not parts:
            raise wg.ArgumentError("Blocks.concat: there must be one at least")
        for part in parts:
            part._check_matrix("concat")
        if len({(part.format, part.shape[-1]) for part in parts}) > 1:
            raise wg.ShapeError(f"Blocks.concat: {list(parts)} differ in format or length of rows")
        data = np.concatenate([part.data for part in parts])
        return Blocks(parts[0].format, (len(data), parts[0].shape[-1]), data)

    def tensor(self, device: Any = None) -> wg.QuantisedTensor:
        """The same on a device."""
        return wg.from_blocks(self.data, self.format, self.shape, device)

    def _check_matrix(self, what: str) -> None:
        if len(self.shape) != 2:
            raise wg.ShapeError(f"Blocks.{what} is for matrices, and this has the shape {self.shape}")


def _indices(rows: Any) -> Array:
    found = np.asarray(rows)
    return found if found.size else found.astype(np.intp)  # an empty list is one of floats, to NumPy
