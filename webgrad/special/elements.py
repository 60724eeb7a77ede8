"""What every function of this package has: dtypes, broadcasting, and a gradient by a formula.

In: how values are computed of tensors of float32 or float64, and the derivatives. Out: a function of tensors
and numbers. Integers and bools are computed as float32; float16 and bfloat16 in float32, and rounded.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import webgrad as wg
from webgrad import Tensor

__all__ = ["floats", "of_one", "of_two", "refuse_gradient"]

Slope = Callable[..., Tensor]
Function = Callable[..., Tensor]


def floats(name: str, *values: Any) -> tuple[list[Tensor], wg.DType]:
    """Tensors in the dtype in which they are computed, and the dtype of the result."""
    # copies: a user's tensor may get another value before a gradient is asked for
    tensors = [Tensor.__copy__(each) if isinstance(each, Tensor) else each for each in values]
    kinds = [each.dtype for each in tensors if isinstance(each, Tensor)]
    result: wg.DType = functools.reduce(wg.promote, kinds) if kinds else wg.float32
    if result.kind == "c":
        raise wg.DTypeError(f"special.{name} is not offered for {result.name}, only for real numbers")
    result = result if result.kind == "f" else wg.float32
    device = next((each.device for each in tensors if isinstance(each, Tensor)), None)
    return [
        each.astype(result.wide, copy=False)
        if isinstance(each, Tensor)
        else wg.asarray(each, dtype=result.wide, device=device)
        for each in tensors
    ], result


def refuse_gradient(name: str, x: Tensor, by: str = "") -> None:
    """Raise where a gradient may be asked for that there is none of."""
    if wg.is_grad_enabled() and x.requires_grad:
        raise wg.GradientError(
            f"special.{name} has no gradient{by}, and this tensor of shape {tuple(x.shape)} asks for one: "
            "call it with x.detach()"
        )


def of_one(slope: Slope | None) -> Callable[[Function], Function]:
    """A function of one tensor, by how it is computed and by its derivative; None where there is none."""

    def decorated(compute: Function) -> Function:
        @wg.custom_gradient
        def differentiable(x: Tensor) -> Any:
            return _value(compute, x), lambda g: g * slope(x)  # type: ignore[misc]

        @functools.wraps(compute)
        def function(x: Any) -> Tensor:
            (values,), result = floats(compute.__name__, x)
            if slope is None:
                refuse_gradient(compute.__name__, values)
                return _value(compute, values).astype(result, copy=False)
            found: Tensor = differentiable(values)
            return found.astype(result, copy=False)

        return _signed(function, "x")

    return decorated


def of_two(first: Slope | None, second: Slope) -> Callable[[Function], Function]:
    """A function of two tensors that broadcast, by how it is computed and by its two derivatives."""

    def decorated(compute: Function) -> Function:
        @wg.custom_gradient
        def differentiable(a: Tensor, b: Tensor) -> Any:
            return _value(compute, a, b), lambda g: (first and g * first(a, b), g * second(a, b))

        names = list(inspect.signature(compute).parameters)

        @functools.wraps(compute)
        def function(a: Any, b: Any) -> Tensor:
            given, result = floats(compute.__name__, a, b)
            if first is None:
                refuse_gradient(compute.__name__, given[0], f" by {names[0]}")
                given[0] = given[0].detach()
            found: Tensor = differentiable(*wg.broadcast_arrays(*given))
            return found.astype(result, copy=False)

        return _signed(function, *names)

    return decorated


def _value(compute: Function, *tensors: Tensor) -> Tensor:
    with wg.no_grad():
        return compute(*tensors)


def _signed(function: Any, *names: str) -> Function:
    """The function with a signature for the reference, whose arguments are by position."""
    kind = inspect.Parameter.POSITIONAL_ONLY
    given = [inspect.Parameter(name, kind, annotation="Tensor") for name in names]
    function.__signature__ = inspect.Signature(given, return_annotation="Tensor")
    made: Function = function
    return made
