"""LBFGS: Newton's method with a memory of some steps, driven by a closure (Liu and Nocedal, 1989).

In: parameters, and a function that computes the loss and its gradients anew. Out: the same parameters,
changed by as many evaluations as a step may take. The direction is computed on the device; the loss, slopes
and lengths of steps are read, since what is done next depends on them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import webgrad as wg
from webgrad import Tensor

from .optimizer import Group, Optimizer

__all__ = ["LBFGS"]

ENOUGH_LESS, FLAT_ENOUGH = 1e-4, 0.9  # Wolfe's conditions
MOST_SEARCHES = 25


class _Point(NamedTuple):
    """A place along a direction: how far, the loss, the gradient, and its slope along the direction."""

    t: float
    loss: float
    gradient: Tensor
    slope: float


class LBFGS(Optimizer):
    """Steps along an estimate of Newton's direction; `step` takes a closure that computes the loss anew.

    >>> w = wg.asarray([3.0, -2.0]).requires_grad_()
    >>> opt = wg.optim.LBFGS([w], line_search_fn="strong_wolfe")
    >>> def loss():
    ...     opt.zero_grad()
    ...     value = ((w - 1.0) ** 2 * wg.asarray([1.0, 10.0])).sum()
    ...     value.backward()
    ...     return value
    >>> _ = opt.step(loss)
    >>> [round(each, 3) for each in w.tolist()]
    [1.0, 1.0]
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1.0,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        settings = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, settings)
        if len(self.param_groups) != 1:
            raise wg.ArgumentError("LBFGS has one group of parameters, since they share a direction")

    def _check(self, group: Group) -> None:
        super()._check(group)
        if group["line_search_fn"] not in (None, "strong_wolfe"):
            raise wg.ArgumentError(
                f"LBFGS: line_search_fn is 'strong_wolfe' or None, not {group['line_search_fn']!r}"
            )

    def _counts(self, group: Group) -> bool:
        return False

    @property
    def _params(self) -> list[Tensor]:
        return self.param_groups[0]["params"]  # type: ignore[no-any-return]

    @property
    def _memory(self) -> dict[str, Any]:
        """What is remembered between steps; it is kept with the first parameter, as in PyTorch."""
        memory: dict[str, Any] = self.state[self._params[0]]
        return memory

    def step(self, closure: Callable[[], Any] | None = None, *, skip: Tensor | None = None) -> Any:
        """Search on, as far as one step may; gives the loss that it began with."""
        if closure is None:
            raise wg.ArgumentError("LBFGS.step takes a closure that computes the loss, with its gradients")
        if skip is not None and bool(skip):
            return None
        first = self._evaluated(closure)
        with wg.no_grad():
            self._search(closure, float(first))
        return first

    def _evaluated(self, closure: Callable[[], Any]) -> Any:
        with wg.enable_grad():
            return closure()

    def _search(self, closure: Callable[[], Any], loss: float) -> None:
        group, memory = self.param_groups[0], self._memory
        memory["func_evals"] = memory.get("func_evals", 0) + 1
        gradient = self._gradient()
        evaluations, iterations = 1, 0
        if _largest(gradient) <= group["tolerance_grad"]:
            return
        while iterations < group["max_iter"]:
            iterations += 1
            memory["n_iter"] = memory.get("n_iter", 0) + 1
            direction = self._direction(gradient)
            memory["prev_flat_grad"], memory["prev_loss"] = gradient, loss
            t = group["lr"]
            if memory["n_iter"] == 1:
                t = min(1.0, 1.0 / float(wg.sum(wg.abs(gradient)))) * t
            slope = _dot(gradient, direction)
            if slope > -group["tolerance_change"]:
                memory["t"] = t
                break
            count = 0
            if group["line_search_fn"] is not None:
                start = _Point(0.0, loss, gradient, slope)
                found, count = self._along(closure, start, t, direction, group["tolerance_change"])
                loss, gradient, t = found.loss, found.gradient, found.t
                self._move(t, direction)
            else:
                self._move(t, direction)
                if iterations != group["max_iter"]:
                    loss, count = float(self._evaluated(closure)), 1
                    gradient = self._gradient()
            memory["t"] = t
            evaluations += count
            memory["func_evals"] += count
            is_done = (
                evaluations >= group["max_eval"]
                or _largest(gradient) <= group["tolerance_grad"]
                or _largest(direction) * abs(t) <= group["tolerance_change"]
                or abs(loss - memory["prev_loss"]) < group["tolerance_change"]
            )
            if is_done:
                break

    # Saving and going on

    def state_dict(self) -> dict[str, Any]:
        """Everything that is needed to go on, in PyTorch's layout."""
        group = {**self.param_groups[0], "params": list(range(len(self._params)))}
        memory = {name: _detached(value) for name, value in self._memory.items()}
        return {"state": {0: memory} if memory else {}, "param_groups": [group]}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` gave, PyTorch's too."""
        group, memory = state_dict["param_groups"][0], state_dict["state"].get(0, {})
        if len(group["params"]) != len(self._params):
            raise wg.ArgumentError(
                f"LBFGS.load_state_dict: the state is another model's, of {len(group['params'])} parameters, "
                f"and this optimiser has {len(self._params)}"
            )
        self._memory.clear()
        self._memory.update({name: _detached(value) for name, value in memory.items()})
        self.param_groups[0].update({key: each for key, each in group.items() if key in self.defaults})

    # Directions

    def _direction(self, gradient: Tensor) -> Tensor:
        """Downhill, bent by what is known of the curvature from earlier steps."""
        memory = self._memory
        bent: Tensor
        if memory["n_iter"] == 1:
            bent = -gradient
            memory.update(d=bent, old_dirs=[], old_stps=[], ro=[], H_diag=1.0)
            return bent
        change, step = gradient - memory["prev_flat_grad"], memory["d"] * memory["t"]
        curvature = _dot(change, step)
        changes, steps, inverses = memory["old_dirs"], memory["old_stps"], memory["ro"]
        if curvature > 1e-10:
            if len(changes) == self.param_groups[0]["history_size"]:
                for each in (changes, steps, inverses):
                    each.pop(0)
            changes.append(change)
            steps.append(step)
            inverses.append(1.0 / curvature)
            memory["H_diag"] = curvature / _dot(change, change)
        bent, shares = -gradient, []
        for each, step, inverse in zip(reversed(changes), reversed(steps), reversed(inverses), strict=True):
            shares.append(wg.sum(step * bent) * inverse)
            bent = bent - shares[-1] * each
        bent = bent * memory["H_diag"]
        for each, step, inverse, share in zip(changes, steps, inverses, reversed(shares), strict=True):
            bent = bent + step * (share - wg.sum(each * bent) * inverse)
        wg.eval(bent)
        memory["d"] = bent
        return bent

    def _gradient(self) -> Tensor:
        """All gradients as one vector."""
        parts = [
            wg.zeros(each.size, dtype=each.dtype, device=each.device) if each.grad is None else each.grad
            for each in self._params
        ]
        whole = wg.concat([_real(part).reshape((-1,)) for part in parts])
        return whole.clone()

    def _move(self, t: float, direction: Tensor) -> None:
        """Go so far along a direction."""
        at = 0
        for each in self._params:
            flat = _real(each.detach())
            part = direction[at : at + flat.size].reshape(flat.shape)
            moved = flat + part * t
            each[...] = wg.view_as_complex(moved) if each.dtype.kind == "c" else moved
            at += flat.size
        wg.eval(*self._params)

    # Line search

    def _along(
        self, closure: Callable[[], Any], start: _Point, t: float, direction: Tensor, tolerance: float
    ) -> tuple[_Point, int]:
        """A place along a direction that keeps Wolfe's conditions, and how often the loss was computed."""
        starts = [each.detach().clone() for each in self._params]
        wg.eval(*starts)
        reach, count = _largest(direction), 0

        def at(t: float) -> _Point:
            nonlocal count
            count += 1
            self._move(t, direction)
            loss = float(self._evaluated(closure))
            gradient = self._gradient()
            for each, before in zip(self._params, starts, strict=True):
                each[...] = before
            return _Point(t, loss, gradient, _dot(gradient, direction))

        def is_less(point: _Point) -> bool:
            return point.loss <= start.loss + ENOUGH_LESS * point.t * start.slope

        def is_flat(point: _Point) -> bool:
            return abs(point.slope) <= -FLAT_ENOUGH * start.slope

        bracket = _bracket(start, at(t), at, is_less, is_flat)
        if len(bracket) == 1:
            return bracket[0], count
        return _narrowed(bracket, at, is_less, is_flat, reach, tolerance, lambda: count), count


Evaluate = Callable[[float], _Point]
Test = Callable[[_Point], bool]


def _bracket(start: _Point, here: _Point, at: Evaluate, is_less: Test, is_flat: Test) -> list[_Point]:
    """A place that will do, or two with one between them."""
    before = start
    for number in range(MOST_SEARCHES):
        if not is_less(here) or (number > 1 and here.loss >= before.loss):
            return [before, here]
        if is_flat(here):
            return [here]
        if here.slope >= 0:
            return [before, here]
        bounds = (here.t + 0.01 * (here.t - before.t), here.t * 10)
        before, here = here, at(_lowest(before, here, bounds))
    return [start, here]


def _narrowed(
    bracket: list[_Point],
    at: Evaluate,
    is_less: Test,
    is_flat: Test,
    reach: float,
    tolerance: float,
    count: Callable[[], int],
) -> _Point:
    """A place between two that will do, or the lower end when they are close."""
    low, high = sorted(bracket, key=lambda each: each.loss)
    was_near_end = False
    while count() <= MOST_SEARCHES and abs(high.t - low.t) * reach >= tolerance:
        first, second = sorted((low, high), key=lambda each: each.t)
        t = _lowest(first, second, (first.t, second.t))
        edge = 0.1 * (second.t - first.t)
        if min(second.t - t, t - first.t) < edge:  # too little progress, twice: away from the end
            if was_near_end or t >= second.t or t <= first.t:
                t = second.t - edge if abs(t - second.t) < abs(t - first.t) else first.t + edge
                was_near_end = False
            else:
                was_near_end = True
        else:
            was_near_end = False
        here = at(t)
        if not is_less(here) or here.loss >= low.loss:
            low, high = (low, here) if low.loss <= here.loss else (here, low)
            continue
        if is_flat(here):
            return here
        if here.slope * (high.t - low.t) >= 0:
            high = low
        low = here
    return low


def _lowest(a: _Point, b: _Point, bounds: tuple[float, float]) -> float:
    """Where the cubic through two losses with their slopes is lowest, within bounds."""
    if a.t == b.t:
        return (bounds[0] + bounds[1]) / 2
    first = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = first**2 - a.slope * b.slope
    if not square >= 0:
        return (bounds[0] + bounds[1]) / 2
    root = math.sqrt(square)
    a, b = (a, b) if a.t <= b.t else (b, a)
    scale = b.slope - a.slope + 2 * root
    if scale == 0:
        return (bounds[0] + bounds[1]) / 2
    found = b.t - (b.t - a.t) * ((b.slope + root - first) / scale)
    return min(max(found, bounds[0]), bounds[1])


def _real(x: Tensor) -> Tensor:
    """Complex numbers as pairs."""
    return wg.view_as_real(x) if x.dtype.kind == "c" else x


def _detached(value: Any) -> Any:
    """A value of the state, with tensors, in lists too, as they are now."""
    if isinstance(value, list):
        return [_detached(each) for each in value]
    return value.detach().clone() if isinstance(value, Tensor) else value


def _largest(x: Tensor) -> float:
    return float(wg.max(wg.abs(x)))


def _dot(a: Tensor, b: Tensor) -> float:
    return float(wg.sum(a * b))
