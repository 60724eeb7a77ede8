"""A file of weights that is open: a mapping of names to tensors, each read when it is asked for.

In: what a reader found in a file, as `Contents`: a row for each tensor, and metadata. Out: tensors on a
device, or views of the mapped file. Opening reads names and places only, and all of them have been checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import webgrad as wg

from ..arrays import Array
from .memory_map import shown
from .quantised_rows import Blocks

__all__ = ["Contents", "Row", "Weights"]


@dataclass(frozen=True, slots=True)
class Row:
    """One tensor of a file: what it is, and a function that gives it on the host, or raises."""

    form: str
    shape: tuple[int, ...]
    nbytes: int
    host: Callable[[], Array | Blocks]


@dataclass(frozen=True, slots=True)
class Contents:
    """What a reader found in a file."""

    kind: str
    metadata: dict[str, Any]
    rows: dict[str, Row]


class Weights(Mapping[str, "wg.Tensor | wg.QuantisedTensor"]):
    """The tensors of a file that `wg.io.open` opened, by their names, in the order of the file.

    >>> import tempfile
    >>> path = tempfile.gettempdir() + "/webgrad-weights.safetensors"
    >>> wg.io.save(path, {"weight": wg.ones((2, 2))})
    >>> with wg.io.open(path) as weights:
    ...     weights.form("weight"), weights.shape("weight"), weights["weight"].tolist()
    ('F32', (2, 2), [[1.0, 1.0], [1.0, 1.0]])
    """

    def __init__(self, path: Path, contents: Contents) -> None:
        self.path = path
        self.kind = contents.kind
        self.metadata = contents.metadata
        self._rows = contents.rows
        self._closed = False

    __eq__ = object.__eq__  # a mapping's own would read all tensors
    __hash__ = object.__hash__

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __contains__(self, name: object) -> bool:  # without reading it
        return name in self._rows

    def __getitem__(self, name: str) -> wg.Tensor | wg.QuantisedTensor:
        if name not in self._rows:
            raise KeyError(name)  # as mappings do; get() waits for it
        return self.read(name)

    def __repr__(self) -> str:
        state = ", closed" if self._closed else ""
        return f"Weights({str(self.path)!r}, {self.kind}, {len(self)} tensors, {self.nbytes:,} bytes{state})"

    @property
    def nbytes(self) -> int:
        """How many bytes all its tensors take in the file."""
        return sum(row.nbytes for row in self._rows.values())

    def shape(self, name: str) -> tuple[int, ...]:
        """A tensor's shape, in NumPy's order."""
        return self._row(name).shape

    def form(self, name: str) -> str:
        """What a tensor's numbers are in the file: "F32", "BF16", "Q4_1" …"""
        return self._row(name).form

    def host(self, name: str) -> Array | Blocks:
        """A tensor as a read-only NumPy array, or as `Blocks`: a view of the file where that can be."""
        row = self._row(name)
        if self._closed:
            raise wg.ModelFileError(f"{self.path} is closed: {shown(name)} cannot be read any more")
        return row.host()

    def read(self, name: str, device: Any = None) -> wg.Tensor | wg.QuantisedTensor:
        """A tensor on a device. On the cpu, numbers that lie aligned are not copied out of the file."""
        found = self.host(name)
        where = wg.open_device(device)
        if isinstance(found, Blocks):
            return found.tensor(where)
        shared = where is wg.open_device("cpu") and found.flags.c_contiguous
        return wg.asarray(found, device=where, copy=False if shared else None)

    def close(self) -> None:
        """Let the file go. Views and tensors that were given stay as they are."""
        self._closed = True
        self._rows = {
            name: Row(row.form, row.shape, row.nbytes, _nothing) for name, row in self._rows.items()
        }

    def __enter__(self) -> Weights:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _row(self, name: str) -> Row:
        try:
            return self._rows[name]
        except (KeyError, TypeError):
            raise wg.ModelFileError(
                f"{self.path} has no tensor {name!r}; it has {len(self)}{_some(list(self._rows))}"
            ) from None


def _nothing() -> Array:
    raise wg.ModelFileError("a closed file gives nothing")


def _some(names: list[str]) -> str:
    return f": {', '.join(map(shown, names[:4]))}{' …' if len(names) > 4 else ''}" if names else ""
