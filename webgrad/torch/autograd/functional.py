"""torch.autograd.functional: Jacobians, Hessians, and products with them.

In: a function of tensors and its inputs. Out: tensors, nested as inputs and outputs are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import webgrad as wg

from ..tensor import Array, adopt

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def _several(values: Any) -> tuple[Any, ...]:
    return (values,) if isinstance(values, Array) else tuple(values)


def _fresh(inputs: Any) -> tuple[Any, ...]:
    """Inputs that require a gradient, and keep their history if they have one."""
    return tuple(
        adopt(each * 1.0 if each.requires_grad else each.detach().clone().requires_grad_())
        for each in _several(inputs)
    )


def _one_or_all(values: tuple[Any, ...], like: Any) -> Any:
    return values[0] if isinstance(like, Array) else values


def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The derivatives of each element of the outputs by each element of the inputs.

    >>> import webgrad.torch as torch
    >>> torch.autograd.functional.jacobian(lambda x: x * x, torch.tensor([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    given = _fresh(inputs)
    with wg.enable_grad():
        result = func(*given)
    rows = tuple(_rows(each, given, inputs, create_graph) for each in _several(result))
    return adopt(_one_or_all(rows, result))


def _rows(output: Any, given: tuple[Any, ...], inputs: Any, create_graph: bool) -> Any:
    """The Jacobians of one output."""
    flat = output.reshape(-1)
    found: list[list[Any]] = [[] for _ in given]
    for at in range(int(flat.numel())):
        row = (
            wg.grad_of(flat[at], given, retain_graph=True, create_graph=create_graph)
            if output.requires_grad
            else (None,) * len(given)
        )
        for column, x, gradient in zip(found, given, row, strict=True):
            column.append(wg.zeros_like(x) if gradient is None else gradient)
    whole = tuple(
        wg.reshape(wg.stack(column), (*output.shape, *x.shape))
        if column
        else wg.zeros((*output.shape, *x.shape), dtype=x.dtype, device=x.device)
        for column, x in zip(found, given, strict=True)
    )
    return _one_or_all(whole, inputs)


def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The second derivatives of a function of one number."""

    def gradient(*given: Any) -> Any:
        found = wg.grad_of(func(*given), given, create_graph=True)
        filled = tuple(
            wg.zeros_like(x) if each is None else each for x, each in zip(given, found, strict=True)
        )
        return adopt(_one_or_all(filled, inputs))

    return jacobian(gradient, inputs, create_graph)


def vjp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The outputs, and the gradients of the inputs for gradients v of the outputs."""
    given = _fresh(inputs)
    with wg.enable_grad():
        result = func(*given)
    found = wg.grad_of(result, given, v, create_graph=create_graph)
    filled = tuple(wg.zeros_like(x) if each is None else each for x, each in zip(given, found, strict=True))
    return adopt(result if create_graph else _detached(result)), adopt(_one_or_all(filled, inputs))


def jvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The outputs, and how they change as the inputs move along v: the gradient of a gradient."""
    given = _fresh(inputs)
    directions = _several(v) if v is not None else tuple(wg.ones_like(each) for each in given)
    with wg.enable_grad():
        result = func(*given)
        moved = []
        for each in _several(result):
            seed = wg.zeros_like(each).requires_grad_()
            back = wg.grad_of(each, given, seed, retain_graph=True, create_graph=True)
            total: Any = sum(
                wg.sum(gradient * direction)
                for gradient, direction in zip(back, directions, strict=True)
                if gradient is not None
            )
            found = (
                wg.grad_of(total, seed, create_graph=create_graph)[0] if isinstance(total, Array) else None
            )
            moved.append(wg.zeros_like(each) if found is None else found)
    return (
        adopt(result if create_graph else _detached(result)),
        adopt(_one_or_all(tuple(moved), result)),
    )


def hvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """A function's value, and its Hessian times v."""
    given = _fresh(inputs)
    with wg.enable_grad():
        result = func(*given)
        gradients = wg.grad_of(result, given, create_graph=True)
    directions = _several(v) if v is not None else tuple(wg.ones_like(each) for each in given)
    total: Any = sum(
        wg.sum(gradient * direction)
        for gradient, direction in zip(gradients, directions, strict=True)
        if gradient is not None and gradient.requires_grad
    )
    found = (
        wg.grad_of(total, given, create_graph=create_graph)
        if isinstance(total, Array)
        else (None,) * len(given)
    )
    filled = tuple(wg.zeros_like(x) if each is None else each for x, each in zip(given, found, strict=True))
    return adopt(_detached(result)), adopt(_one_or_all(filled, inputs))


vhp = hvp  # Hessians are symmetric


def _detached(result: Any) -> Any:
    return result.detach() if isinstance(result, Array) else tuple(each.detach() for each in result)
