"""Running programs of calls on a device: results and gradients, beside NumPy's."""

from __future__ import annotations

import numpy as np

import webgrad as wg
from tests.properties.calls.drawer import GRADIENT, Calls, beside
from tests.properties.calls.writer import KINKS, most_apart, widest
from tests.properties.helpers import AnyDevice, Array, place, wide
from tests.properties.slopes import wrong_slope
from webgrad.reference.plan import compute
from webgrad.tensor import Tensor

__all__ = ["difference"]


def difference(calls: Calls, device: AnyDevice, seed: int) -> str:
    """What is wrong with a result on a device, or with its gradient; the empty text: nothing."""
    try:
        return _difference(calls, device) or _wrong_gradient(calls, device, seed)
    except Exception as error:
        return f"{calls}: {type(error).__name__}: {' '.join(str(error).split())}"


def _run(calls: Calls, x: Tensor) -> Tensor:
    for _, (webgrad, _) in calls.steps:
        x = webgrad(x)
    return x


def _difference(calls: Calls, device: AnyDevice) -> str:
    found = _run(calls, Tensor(place(calls.start, device))).numpy()
    if found.shape != calls.exact.shape:
        return f"{calls}: the shape is {found.shape}, not {calls.exact.shape}"
    if calls.wanted.dtype.kind in "fcV":
        bad = ~(np.abs(widest(found) - calls.exact) <= most_apart(calls.dtype, calls.exact))
    else:
        bad = found != calls.wanted
    return _first(calls, "result", bad, found, calls.wanted)


def _first(calls: Calls, what: str, bad: Array, found: Array, wanted: Array) -> str:
    if not np.any(bad):
        return ""
    at = tuple(int(each) for each in np.argwhere(bad)[0])
    count = np.count_nonzero(bad)
    return f"{calls}: {count} of {bad.size} of the {what} wrong, first at {at}: {found[at]}, not {wanted[at]}"


def _wrong_gradient(calls: Calls, device: AnyDevice, seed: int) -> str:
    """The gradient against that of the same calls in float64, computed node by node, and that against the
    difference between results a little apart.
    """
    random = np.random.default_rng(seed)
    floats = calls.dtype in (wg.float32, wg.float64) and calls.wanted.dtype.kind == "f"
    if (
        not floats
        or not calls.smooth
        or not calls.wanted.size
        or random.random() > GRADIENT[device.name != "cpu"]
    ):
        return ""
    weights = np.asarray(random.uniform(-1, 1, calls.wanted.shape))
    grad = _gradient(calls, wg.asarray(calls.start, device=device), weights)
    exact = _gradient(calls, wg.asarray(wide(calls.start), device="cpu"), weights)
    if grad is None or exact is None:
        return ""
    (wanted,), found = compute([exact.node]), wide(grad.numpy())
    if found.shape != wanted.shape:
        return f"{calls}: the gradient's shape is {found.shape}, not {wanted.shape}"
    slack = 1e-3 * max(1.0, float(np.abs(wanted).max(initial=0.0)))
    wrong = _first(calls, "gradient", ~(np.abs(found - wanted) <= slack), found, wanted)
    return wrong or _wrong_slope(calls, weights, random)


def _gradient(calls: Calls, x: Tensor, weights: Array) -> Tensor | None:
    total = (_run(calls, x.requires_grad_()) * beside(x, weights)).sum()
    if not total.requires_grad:
        return None
    total.backward()
    return x.grad


def _wrong_slope(calls: Calls, weights: Array, random: np.random.Generator) -> str:
    """A gradient in float64 against the slope of results.

    Where one kink hides another, as the lowest of [-2, -1] clipped to at least -1, results are constant and
    the gradient is not, by convention: then only what is wrong beside the kinks too is wrong.
    """
    start = wide(calls.start)
    wrong = _wrong_slope_at(calls, start, weights, random)
    if wrong and sum(name.split(" between")[0] in KINKS for name, _ in calls.steps) > 1:
        wrong = _wrong_slope_at(calls, start + random.uniform(-1e-3, 1e-3, start.shape), weights, random)
    return f"{calls}: {wrong}" if wrong else ""


def _wrong_slope_at(calls: Calls, start: Array, weights: Array, random: np.random.Generator) -> str:
    def total(offset: Array) -> float:
        x = wg.asarray(start + offset, device="cpu")
        return float(compute([(_run(calls, x) * beside(x, weights)).sum().node])[0])

    gradient = _gradient(calls, wg.asarray(start, device="cpu"), weights)
    return "" if gradient is None else wrong_slope(total, compute([gradient.node])[0], random)
