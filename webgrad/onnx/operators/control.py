"""Control flow: branches and loops whose bodies are graphs, run as often as the host decides.

A condition that is known on the host costs nothing; one that is computed on the device is waited for. Loops
are unrolled: a captured call has the launches of every round.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

import webgrad as wg

from ...arrays import np
from .table import Call, operator
from .values import bounded

__all__ = ["slice_at", "stacked"]


@operator("If", host="condition", folds=False)
def if_(condition: Any, *, then_branch: Any, else_branch: Any, call: Call) -> Any:
    return tuple(call.run(then_branch if condition.item() else else_branch, []))


@operator("Loop", host="maximum condition", known="carried", folds=False)
def loop(maximum: Any, condition: Any, *carried: Any, body: Any, call: Call) -> Any:
    goes_on = condition is None or condition.item()
    kept = len(carried)
    scans: list[list[Any]] = [[] for _ in body.outputs[1 + kept :]]
    for at in count() if maximum is None else range(maximum.item()):
        if not goes_on:
            break
        found = call.run(body, [np.asarray(at, np.int64), np.asarray(True), *carried])
        goes_on = call.host(found[0]).item()
        carried = tuple(found[1 : 1 + kept])
        for several, value in zip(scans, found[1 + kept :], strict=True):
            several.append(value)
    declared = body.outputs[1 + kept :]
    stacks = [_scanned(each, 0, what, call) for each, what in zip(scans, declared, strict=True)]
    return (*carried, *stacks)


@operator("Scan", 9, known="values", folds=False)
def scan(
    *values: Any,
    body: Any,
    num_scan_inputs: int,
    scan_input_axes: Sequence[int] = (),
    scan_input_directions: Sequence[int] = (),
    scan_output_axes: Sequence[int] = (),
    scan_output_directions: Sequence[int] = (),
    call: Call,
) -> Any:
    kept = len(values) - num_scan_inputs
    states, scanned = list(values[:kept]), values[kept:]
    axes = [*scan_input_axes, *[0] * (len(scanned) - len(scan_input_axes))]
    backward = [*scan_input_directions, *[0] * (len(scanned) - len(scan_input_directions))]
    length = scanned[0].shape[axes[0]]
    declared = body.outputs[kept:]
    results: list[list[Any]] = [[] for _ in declared]
    for at in range(length):
        rows = [
            slice_at(each, axis, length - 1 - at if back else at)
            for each, axis, back in zip(scanned, axes, backward, strict=True)
        ]
        found = call.run(body, [*states, *rows])
        states = found[:kept]
        for several, value in zip(results, found[kept:], strict=True):
            several.append(value)
    for several, back in zip(results, scan_output_directions, strict=False):
        if back:
            several.reverse()
    out_axes = [*scan_output_axes, *[0] * (len(results) - len(scan_output_axes))]
    outputs = zip(results, out_axes, declared, strict=True)
    return (*states, *[_scanned(each, axis, what, call) for each, axis, what in outputs])


@operator("Scan", 8, host="lengths", known="values", folds=False)
def scan_of_batches(
    lengths: Any,
    *values: Any,
    body: Any,
    num_scan_inputs: int,
    directions: Sequence[int] = (),
    call: Call,
) -> Any:
    """Each row of a batch by itself: rows may end early, and the rest of what they give is zeros."""
    kept = len(values) - num_scan_inputs
    batch, longest = values[kept].shape[:2]
    each_row = []
    for row in range(batch):
        length = longest if lengths is None else lengths[row].item()
        states = [each[row] for each in values[:kept]]
        scanned = [each[row][:length] for each in values[kept:]]
        given = {"body": body, "num_scan_inputs": num_scan_inputs, "scan_input_directions": directions}
        found = scan(*states, *scanned, **given, call=call)
        each_row.append([*found[:kept], *[_filled(each, longest, call) for each in found[kept:]]])
    return tuple(stacked(several, 0, call) for several in zip(*each_row, strict=True))


def slice_at(value: Any, axis: int, at: int) -> Any:
    """What a place of an axis holds."""
    return value[(slice(None),) * (axis % value.ndim) + (at,)]


def stacked(values: Sequence[Any], axis: int, call: Call) -> Any:
    """Values along a new axis: an array if all are known."""
    if all(isinstance(each, np.ndarray) for each in values):
        return np.stack(values, axis)
    return wg.stack([call.tensor(each) for each in values], axis=axis)


def _scanned(values: Sequence[Any], axis: int, declared: Any, call: Call) -> Any:
    """What the rounds gave, along a new axis; of no round what the graph says of its type."""
    if values:
        return stacked(values, axis, call)
    sides = [each if isinstance(each, int) else 0 for each in declared.shape or ()]
    sides.insert(axis % (len(sides) + 1), 0)
    bounded(*sides, 1)
    return np.zeros(sides, declared.element.numpy if declared.element else np.float32)


def _filled(value: Any, length: int, call: Call) -> Any:
    """A scan's output with zeros up to a length."""
    missing = length - value.shape[0]
    if not missing:
        return value
    value = call.tensor(value)
    return wg.concat([value, wg.zeros((missing, *value.shape[1:]), dtype=value.dtype, device=value.device)])
