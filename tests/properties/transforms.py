"""Cases for Fourier transforms: lengths of every radix, odd ones and primes on the cpu, rows of none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.properties.helpers import Case, wide
from webgrad.ops.transforms import TRANSFORMS as ROWS
from webgrad.ops.transforms import halves_have_kernels, has_kernels

if TYPE_CHECKING:
    from tests.properties.cases import Maker

__all__ = ["TRANSFORMS"]

Cases = Iterator[Case]
SMOOTH = (2, 4, 16, 6, 7, 30, 64)
OTHERS = (1, 11, 26, 97)


def _shape(name: str, rows: tuple[int, ...], length: int) -> tuple[int, ...]:
    return {"fft": (*rows, length, 2), "rfft": (*rows, length), "irfft": (*rows, length // 2 + 1, 2)}[name]


def _attributes(name: str, length: int, inverse: bool, axis: int) -> tuple[Any, ...]:
    scale = 1 / length if inverse else 1.0
    return {"fft": (inverse, scale, axis), "rfft": (scale,), "irfft": (length, scale)}[name]


def offered(name: str, length: int) -> bool:
    """Whether GPUs have kernels for a length."""
    return length > 1 and (has_kernels if name == "fft" else halves_have_kernels)(length)


def transforms(maker: Maker) -> Cases:
    """Both directions, each with its own scale."""
    name, on_cpu = maker.op.name, maker.device.name == "cpu"
    lengths = [each for each in SMOOTH + OTHERS if on_cpu or offered(name, each)]
    choices = [
        (rows, length, length % 3 == 1) for rows, length in zip(((3,), (), (2, 5)) * 4, lengths, strict=False)
    ]
    for layout, (rows, length, inverse) in maker.spread(choices):
        operand = maker.operand(layout, _shape(name, rows, length))
        attributes = _attributes(name, length, inverse, len(rows))
        wanted = maker.op.numpy(maker.case("", [operand], attributes).node.sig, wide(operand.value))
        epsilon = float(np.finfo(maker.dtype.numpy).eps)
        slack = np.full(wanted.shape, 4 * epsilon * np.abs(wide(operand.value)).max() * length)
        yield maker.close(f"{layout} {rows} {length}", [operand], attributes, wanted, slack)
    yield maker.case(
        "no rows", [maker.operand("contiguous", _shape(name, (0,), 8))], _attributes(name, 8, False, 1)
    )


TRANSFORMS: dict[str, Callable[[Maker], Cases]] = {row.name: transforms for row in ROWS}
