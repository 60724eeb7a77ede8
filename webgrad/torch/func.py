"""torch.func: gradients of functions, functions over batches, and modules as functions of their state.

In: functions of tensors. Out: functions. `vmap` calls the function once for each element and stacks the
results, as one graph: right for whatever it does, and as long as the batch.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import webgrad as wg

from .autograd import functional
from .tensor import Array, adopt

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "stack_module_state",
    "vjp",
    "vmap",
]


def grad(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """The gradient of a function of one number, by some of its arguments.

    >>> import webgrad.torch as torch
    >>> torch.func.grad(torch.sin)(torch.tensor(0.0)).item()
    1.0
    """
    return _adopting(wg.grad(func, argnums, has_aux))


def grad_and_value(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """The gradient and the value."""
    both = wg.value_and_grad(func, argnums, has_aux)

    def swapped(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return adopt((gradient, value))

    return swapped


def _adopting(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def adopted(*args: Any, **kwargs: Any) -> Any:
        return adopt(function(*args, **kwargs))

    return adopted


def _by(func: Callable[..., Any], argnums: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function of the arguments `argnums` alone, and these."""
    places = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    def of_those(*given: Any) -> Any:
        full = list(args)
        for at, each in zip(places, given, strict=True):
            full[at] = each
        return func(*full, **kwargs)

    chosen = tuple(args[at] for at in places)
    return of_those, chosen[0] if isinstance(argnums, int) else chosen


def jacrev(func: Callable[..., Any], argnums: Any = 0, **options: Any) -> Callable[..., Any]:
    """The Jacobian of a function, by some of its arguments."""

    @functools.wraps(func)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        of_those, chosen = _by(func, argnums, args, kwargs)
        return functional.jacobian(of_those, chosen, create_graph=wg.is_grad_enabled())

    return differentiated


jacfwd = jacrev


def hessian(func: Callable[..., Any], argnums: Any = 0) -> Callable[..., Any]:
    """The second derivatives of a function of one number."""

    @functools.wraps(func)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        return functional.hessian(*_by(func, argnums, args, kwargs))

    return differentiated


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The results, and a function from their gradients to those of the arguments."""
    given = tuple(adopt(each.detach().clone().requires_grad_()) for each in primals)
    found = func(*given)
    result, aux = found if has_aux else (found, None)

    def pulled(*gradients: Any, **options: Any) -> Any:
        seeds = gradients[0] if len(gradients) == 1 else gradients
        back = wg.grad_of(result, given, seeds, retain_graph=True, create_graph=wg.is_grad_enabled())
        return adopt(
            tuple(wg.zeros_like(x) if each is None else each for x, each in zip(given, back, strict=True))
        )

    value = result.detach() if isinstance(result, Array) else tuple(each.detach() for each in result)
    return (adopt(value), pulled, aux) if has_aux else (adopt(value), pulled)


def jvp(func: Callable[..., Any], primals: tuple[Any, ...], tangents: tuple[Any, ...], **options: Any) -> Any:
    """The results, and how they change as the arguments move along the tangents."""
    return functional.jvp(func, tuple(primals), tuple(tangents))


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """A function of single elements as one of batches of them.

    >>> import webgrad.torch as torch
    >>> torch.func.vmap(torch.dot)(torch.ones(3, 2), torch.ones(3, 2)).tolist()
    [2.0, 2.0, 2.0]
    """

    @functools.wraps(func)
    def batched(*args: Any, **kwargs: Any) -> Any:
        dims = in_dims if isinstance(in_dims, tuple | list) else (in_dims,) * len(args)
        sizes = {_size(each, dim) for each, dim in zip(args, dims, strict=True)} - {None}
        sizes |= {_size(each, 0) for each in kwargs.values()} - {None}
        if len(sizes) != 1:
            raise ValueError(
                f"vmap: the batched arguments have {sorted(sizes)} elements: one number is needed"
            )
        results = [
            func(
                *(_part(each, dim, at) for each, dim in zip(args, dims, strict=True)),
                **{name: _part(each, 0, at) for name, each in kwargs.items()},
            )
            for at in range(sizes.pop())
        ]
        return adopt(_stacked(results, out_dims))

    return batched


def _size(value: Any, dim: Any) -> Any:
    """How many elements a batched argument has; None where it is none."""
    if dim is None:
        return None
    if isinstance(value, Array):
        return value.shape[dim]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, tuple | list) else ()
    return next((size for each in parts if (size := _size(each, dim)) is not None), None)


def _part(value: Any, dim: Any, at: int) -> Any:
    """One element of a batched argument."""
    if dim is None:
        return value
    if isinstance(value, Array):
        return adopt(value[(*[slice(None)] * (dim % value.ndim), at)])
    if isinstance(value, dict):
        return {name: _part(each, dim, at) for name, each in value.items()}
    return type(value)(_part(each, dim, at) for each in value) if isinstance(value, tuple | list) else value


def _stacked(results: list[Any], dim: Any) -> Any:
    first = results[0]
    if isinstance(first, dict):
        return {name: _stacked([each[name] for each in results], dim) for name in first}
    if isinstance(first, tuple | list):
        dims = dim if isinstance(dim, tuple | list) else (dim,) * len(first)
        return type(first)(
            _stacked(list(each), one) for each, one in zip(zip(*results, strict=True), dims, strict=True)
        )
    return wg.stack(results, axis=dim)


def functional_call(
    module: Any, parameter_and_buffer_dicts: Any, args: Any = (), kwargs: Any = None, **options: Any
) -> Any:
    """A module called with other parameters and buffers than its own."""
    given = parameter_and_buffer_dicts
    values = (
        dict(given)
        if isinstance(given, dict)
        else {name: each for one in given for name, each in one.items()}
    )
    held = []
    for name, value in values.items():
        path, _, last = name.rpartition(".")
        owner = module.get_submodule(path)
        place = owner._parameters if last in owner._parameters else owner._buffers
        held.append((place, last, place[last]))
        place[last] = value
    try:
        return module(*(args if isinstance(args, tuple) else (args,)), **(kwargs or {}))
    finally:
        for place, last, value in held:
            place[last] = value


def stack_module_state(models: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters and buffers of equal modules, stacked along a new first dimension."""
    every = list(models)

    def stacked(get: str) -> dict[str, Any]:
        names = dict(getattr(every[0], get)())
        return {
            name: adopt(
                wg.stack([dict(getattr(each, get)())[name].detach() for each in every]).requires_grad_(
                    one.requires_grad
                )
            )
            for name, one in names.items()
        }

    return stacked("named_parameters"), stacked("named_buffers")
