"""Matrices that several products of a plan multiply with, packed once: the weights of a recurrent net.

In: the commands of a plan. Out: the same, with a command that packs before the first of such products, and
products that read panels; and the bytes of the packed values, which have numbers below -1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ..native.background import Request
from ..native.emit import Program
from .layout import Command, HostStep, ProgramRequest

__all__ = ["LEAST", "share_panels"]

LEAST = 4  # products of one matrix: packing it takes another pass over memory


class Forms(NamedTuple):
    """A product whose second operand is packed by a program of its own, into so many bytes."""

    packing: Program
    size: int
    product: Program


def share_panels(
    steps: Sequence[Command | HostStep], forms_of: Callable[[int], Forms]
) -> tuple[list[Command | HostStep], dict[int, int]]:
    """The steps of a plan; `forms_of` gives the programs for the product of a group."""
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
        if key not in shared or id(step.kernel) not in kernels:
            forms, wanted = forms_of(step.group), step.kernel
            kernels[id(wanted)] = replace(wanted, request=_request(forms.product), program=forms.product)
            if key not in shared:
                panels = shared[key] = -2 - len(sizes)
                sizes[panels] = forms.size
                packing = ProgramRequest(_request(forms.packing), forms.packing, (), ())
                found.append(Command(step.group, packing, (key[0], panels), ()))
        buffers = (*step.buffers, shared[key])
        found.append(replace(step, kernel=kernels[id(step.kernel)], buffers=buffers))
    return found, sizes


def _key(step: Command | HostStep) -> tuple[Any, ...] | None:
    """What products share that may read the same panels: the matrix, and what its panels depend on."""
    if not isinstance(step, Command) or not step.kernel.program.packs:
        return None
    buffer, *layout = step.kernel.program.packs
    return step.buffers[buffer], *layout


def _request(program: Program) -> Request:
    return Request(program.text, ["kernel"], "product")
