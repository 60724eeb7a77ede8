"""Matrices that several products of a plan multiply with, packed once: the weights of a recurrent net.

In: the commands of a plan. Out: the same, with a command that packs before the first of such products, and
products that read panels; and the bytes of the packed values, which have numbers below -1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ..native.background import Request
from ..native.emit import Program
from .layout import Command, HostStep, ProgramRequest

__all__ = ["LEAST", "share_panels"]

LEAST = 4  # products of one matrix: packing it takes another pass over memory


def share_panels(
    steps: Sequence[Command | HostStep],
    product_of: Callable[[int], Program],
    packing_of: Callable[[int], tuple[Program, int]],
) -> tuple[list[Command | HostStep], dict[int, int]]:
    """The steps of a plan. For a group, `product_of` gives the product that reads panels, `packing_of` what
    packs them, and their bytes.
    """
    keys = [_key(each) for each in steps]
    counts = Counter(keys)
    sizes: dict[int, int] = {}
    shared: dict[Any, int] = {}
    kernels: dict[Any, ProgramRequest] = {}
    found: list[Command | HostStep] = []
    for key, step in zip(keys, steps, strict=True):
        if key is None or counts[key] < LEAST or not isinstance(step, Command):
            found.append(step)
            continue
        wanted = step.kernel
        if id(wanted) not in kernels:
            product = product_of(step.group)
            kernels[id(wanted)] = replace(wanted, request=_request(product), program=product)
        if key not in shared:
            panels = shared[key] = -2 - len(sizes)
            packing, sizes[panels] = packing_of(step.group)
            request = ProgramRequest(_request(packing), packing, (), ())
            found.append(Command(step.group, request, (key[0], panels), ()))
        buffers = (*step.buffers, shared[key])
        found.append(replace(step, kernel=kernels[id(wanted)], buffers=buffers))
    return found, sizes


def _key(step: Command | HostStep) -> tuple[Any, ...] | None:
    """What products share that may read the same panels: the matrix, and what its panels depend on."""
    if not isinstance(step, Command) or not step.kernel.program.packs:
        return None
    buffer, *layout = step.kernel.program.packs
    return step.buffers[buffer], *layout


def _request(program: Program) -> Request:
    return Request(program.text, ["kernel"], "product")
