"""Windows over axes after the channels, taken apart with NumPy: what tests compare with."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

__all__ = ["convolved", "places_of", "spread"]

Sizes = Sequence[int]


def places_of(
    window: Sizes, kernel: Sizes, strides: Sizes, dilations: Sizes, before: Sizes
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The elements of a window: where each is in the kernel, and where in x, which may be outside."""
    for tap in itertools.product(*map(range, kernel)):
        yield (
            tap,
            tuple(
                at * step + each * apart - low
                for at, step, each, apart, low in zip(window, strides, tap, dilations, before, strict=True)
            ),
        )


def convolved(
    x: Any, weight: Any, strides: Sizes, dilations: Sizes, before: Sizes, counts: Sizes, groups: int = 1
) -> Any:
    """Each window times the weight, summed, in float64."""
    y: Any = np.zeros((x.shape[0], weight.shape[0], *counts))
    inputs, outputs = weight.shape[1], weight.shape[0] // groups
    for window in itertools.product(*map(range, counts)):
        for tap, place in places_of(window, weight.shape[2:], strides, dilations, before):
            if all(0 <= at < size for at, size in zip(place, x.shape[2:], strict=True)):
                for group in range(groups):
                    rows = slice(group * outputs, group * outputs + outputs)
                    columns = x[(slice(None), slice(group * inputs, group * inputs + inputs), *place)]
                    y[(slice(None), rows, *window)] += columns @ weight[(rows, slice(None), *tap)].T
    return y


def spread(
    x: Any, weight: Any, strides: Sizes, dilations: Sizes, before: Sizes, sizes: Sizes, groups: int = 1
) -> Any:
    """Each element of x times the weight, added to a window of what comes out, in float64."""
    inputs, outputs = weight.shape[0] // groups, weight.shape[1]
    y: Any = np.zeros((x.shape[0], outputs * groups, *sizes))
    for window in itertools.product(*map(range, x.shape[2:])):
        for tap, place in places_of(window, weight.shape[2:], strides, dilations, before):
            if all(0 <= at < size for at, size in zip(place, sizes, strict=True)):
                for group in range(groups):
                    rows = slice(group * inputs, group * inputs + inputs)
                    columns = slice(group * outputs, group * outputs + outputs)
                    y[(slice(None), columns, *place)] += (
                        x[(slice(None), rows, *window)] @ weight[(rows, slice(None), *tap)]
                    )
    return y
