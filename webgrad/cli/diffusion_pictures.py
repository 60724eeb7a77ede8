"""Previews of a diffusion model on their way to PNG files, and how long their steps take.

In: previews, and where pictures go with which texts. Out: files, which hold a preview until the last step.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import webgrad as wg

from ..arrays import Array, np

__all__ = ["Run", "in_grid", "numbered"]

INTERRUPTED = 130


@dataclass
class Run:
    """Steps on their way to files."""

    paths: list[Path]
    columns: int | None  # of a grid, which is one file
    texts: dict[str, str]
    every: int | None  # steps between previews; None: an eighth of all
    last: Any = None
    taken: int = 0
    seconds: float = 0.0  # of all steps
    first: float = 0.0  # of the first one, compiling included
    writing: float = 0.0  # of previews: decoding and files

    def follow(self, previews: Any, *, show: bool) -> int:
        """Take all steps, and write what there is: 0, or Ctrl-C's code."""
        bar = None
        begun = time.perf_counter()
        try:
            for self.last in previews:
                self.taken += 1
                wg.synchronize(self.last.latents.device)  # a GPU may still be at work on it
                self.seconds = time.perf_counter() - begun - self.writing
                self.first = self.first or self.seconds
                if bar is None:  # what the first step took says nothing of the others
                    bar = _bar(self.last.steps, show)
                else:
                    bar.advance()
                if self._is_due():
                    self.write(is_preview=True)
        except KeyboardInterrupt:
            if self.last is None:
                raise
            self.write(is_preview=True)
            return INTERRUPTED
        finally:
            if bar is not None:
                bar.close()
        self.write(is_preview=False)
        return 0

    @property
    def speed(self) -> float:
        """Steps a second, after the first one where there are more."""
        if self.taken > 1 and self.seconds > self.first:
            return (self.taken - 1) / (self.seconds - self.first)
        return 1 / self.seconds

    def _is_due(self) -> bool:
        every = math.ceil(self.last.steps / 8) if self.every is None else self.every
        return bool(every) and self.last.step % every == 0 and self.last.step < self.last.steps

    def write(self, *, is_preview: bool) -> None:
        begun = time.perf_counter()
        pictures = self.last.pictures()
        texts = self.texts | (
            {"Preview": f"step {self.last.step} of {self.last.steps}"} if is_preview else {}
        )
        made = [in_grid(pictures, self.columns)] if self.columns else list(pictures)
        for path, picture in zip(self.paths, made, strict=True):
            wg.io.write_picture(path, picture, texts)
        self.writing += time.perf_counter() - begun


def _bar(total: int, show: bool) -> Any:
    """A bar after the first step."""
    return wg.training.progress(total=total, label="steps", unit="step", start=1, show=show)


def in_grid(pictures: Array, columns: int) -> Array:
    """Pictures (n, height, width, channels) beside and below each other."""
    n, height, width, channels = pictures.shape
    rows = pictures.reshape(n // columns, columns, height, width, channels)
    return np.ascontiguousarray(rows.swapaxes(1, 2)).reshape(n // columns * height, columns * width, channels)


def numbered(output: Path, number: int) -> list[Path]:
    """The paths of so many files: a number behind the name where there are several."""
    if number == 1:
        return [output]
    digits = len(str(number))
    return [output.with_stem(f"{output.stem}-{at:0{digits}}") for at in range(1, number + 1)]
