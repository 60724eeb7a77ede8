"""Recordings: a stretch of commands over numbered slots, to be run again over other buffers.

In: launches over slots. Out: a `Recording`, whose replay by the queue makes no records for commands and
temporaries: only its inputs and outputs are buffers. Its number is its key among the resolved queues, which
do not keep it alive, and forget it when it is gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from weakref import ref

from ..errors import LaunchError
from .buffers import Virtual
from .pipelines import Pipeline
from .pool import size_class
from .resolve import Grid, Head, Pending, Size

__all__ = ["Recording"]


_numbers = count()


class Recording:
    """Commands over slots: `inputs` are given at each replay, `outputs` are new, all others temporary."""

    def __init__(self, max_binding: int) -> None:
        self.max_binding = max_binding
        self.number = next(_numbers)
        self.heads: list[Head] = []
        self.code: list[int] = []
        self.sizes: list[Size] = []
        self.nbytes: list[int] = []
        self.inputs: list[int] = []
        self.outputs: list[int] = []
        self.views = 0
        self._numbers: dict[Head, int] = {}
        self._blank: list[Virtual] = []

    def slot(self, nbytes: int, *, given: bool = False) -> int:
        """A new slot for so many bytes; `given`: an input."""
        size = size_class(nbytes)
        if nbytes <= self.max_binding < size:
            size = self.max_binding
        slot = self._add(nbytes, size)
        self.views += size > self.max_binding
        if given:
            self.inputs.append(slot)
        return slot

    def view(self, slot: int, start: int, nbytes: int) -> int:
        """A slot that is a part of another."""
        self.views += 1
        return self._add(nbytes, (slot, start, nbytes))

    def _add(self, nbytes: int, size: Size) -> int:
        self.sizes.append(size)
        self.nbytes.append(nbytes)
        self._blank.append(Virtual(nbytes, size, "", None, len(self._blank)))
        return len(self.sizes) - 1

    def launch(self, pipeline: Pipeline, grid: Grid, slots: Sequence[int]) -> None:
        """Record one command; its parameters are given at each replay."""
        if len(slots) != pipeline.arity:
            raise LaunchError(f"{pipeline!r} has {pipeline.arity} bindings, not {len(slots)}")
        head = (pipeline, grid)
        number = self._numbers.setdefault(head, len(self.heads))
        if number == len(self.heads):
            self.heads.append(head)
        words = [(self.nbytes[slot] + 3) // 4 for slot in slots] if pipeline.exact else ()
        self.code += (number, *slots, *words)

    def pending(self, donated: frozenset[int], params: list[bytes]) -> Pending:
        """A queue of these commands whose inputs and outputs are still to be filled in."""
        pending = _Again(self, donated)
        pending.code, pending.params, pending.views = self.code, params, self.views
        pending.virtuals = self._blank.copy()
        return pending


class _Again(Pending):
    """The commands of a recording, pending; what makes two of them the same is known beforehand."""

    __slots__ = ("donated", "given", "number", "recording")

    def __init__(self, recording: Recording, donated: frozenset[int]) -> None:
        super().__init__(recording.heads)
        self.number = recording.number
        self.recording = ref(recording)
        self.donated = donated
        self.given = frozenset(recording.inputs[each] for each in donated)

    def given_away(self) -> frozenset[int]:
        """The inputs that were donated."""
        return self.given

    def dropped(self) -> list[Virtual]:
        """None: inputs that may be taken over are their tensors' until that was done."""
        return []

    def key(self) -> object:
        """The recording's number, and which of its inputs may be taken over."""
        return self.number, self.donated

    def owner(self) -> object:
        """The recording."""
        return self.recording()
