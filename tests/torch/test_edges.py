"""Values and gradients at zeros, ties, bounds, infinities and NaN against torch's, function by function.

Gradients are compared where no input and no value is NaN: there they mean nothing in either library.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.torch.checking import Array, torch
from tests.torch.edges import DIFFERENT, EDGES, Case

RELATIVE, ABSOLUTE = 2e-4, 2e-5


def differentiated(library: Any, case: Case, tensors: list[Any]) -> tuple[Array, list[Array]]:
    """The value, and the gradients of its sum by all inputs: zeros where there is none."""
    result = case.function(library, *tensors)
    if result.requires_grad:
        result.sum().backward()
    gradients = [
        np.zeros_like(array) if each.grad is None else each.grad.numpy()
        for each, array in zip(tensors, case.arrays, strict=True)
    ]
    return result.detach().numpy(), gradients


def unlike(found: Array, wanted: Array) -> Array:
    """At which points, along the first axis, two arrays differ."""
    assert found.shape == wanted.shape
    differ = ~np.isclose(found, wanted, rtol=RELATIVE, atol=ABSOLUTE, equal_nan=True)
    return np.asarray(differ.reshape(len(differ), -1).any(axis=1))


def unlisted(name: str, device: str) -> tuple[list[str], set[str]]:
    """What is not torch's, and not on the list; and the reasons on the list that came up."""
    case = EDGES[name]
    with np.errstate(all="ignore"):
        ours = differentiated(
            wg, case, [wg.asarray(each, device=device).requires_grad_() for each in case.arrays]
        )
        theirs = differentiated(torch, case, [torch.tensor(each, requires_grad=True) for each in case.arrays])
    points = np.concatenate([each.reshape(len(each), -1) for each in case.arrays], axis=1)
    known = [each for each in DIFFERENT if fnmatchcase(name, each.names)]
    found, reasons = [], set()

    def note(at: Any, values: bool, text: str) -> None:
        listed = [each.reason for each in known if (each.values or not values) and each.where(points[at])]
        reasons.update(listed)
        found.extend([] if listed else [f"{text} at {points[at]}"])

    for at in np.flatnonzero(unlike(ours[0], theirs[0])):
        note(at, True, f"{ours[0][at]}, torch {theirs[0][at]}")
    meaningless = np.isnan(points).any(axis=1) | np.isnan(theirs[0].reshape(len(points), -1)).any(axis=1)
    for number, (mine, other) in enumerate(zip(ours[1], theirs[1], strict=True)):
        for at in np.flatnonzero(unlike(mine, other) & ~meaningless):
            note(at, False, f"gradient of input {number}: {mine[at]}, torch {other[at]}")
    return found, reasons


def check(name: str, device: str) -> None:
    """Nothing differs but what is listed."""
    found, _ = unlisted(name, device)
    assert not found, f"{name}: {len(found)} differ\n" + "\n".join(found[:8])


@pytest.mark.parametrize("name", EDGES)
def test_values_and_gradients_at_edges(name: str) -> None:
    check(name, "cpu")


@pytest.mark.gpu
@pytest.mark.parametrize("name", EDGES)
def test_values_and_gradients_at_edges_on_a_gpu(name: str) -> None:
    check(name, "webgpu")


@pytest.mark.parametrize("number", range(len(DIFFERENT)))
def test_every_difference_on_the_list_is_one(number: int) -> None:
    difference = DIFFERENT[number]
    names = [name for name in EDGES if fnmatchcase(name, difference.names)]
    assert any(difference.reason in unlisted(name, "cpu")[1] for name in names), difference
