"""torch.autograd.Function: a function with a gradient of its own, as a class with two static methods.

In: a subclass that defines `forward` and `backward`. Out: `apply`, which computes the first and keeps the
second for the way back.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import webgrad as wg

from ..tensor import Array, adopt

__all__ = ["Function", "FunctionCtx", "once_differentiable"]


class FunctionCtx:
    """What `forward` leaves for `backward`."""

    def __init__(self, needs_input_grad: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs_input_grad
        self.saved_tensors: tuple[Any, ...] = ()
        self.materialize_grads = True
        self.non_differentiable: tuple[Any, ...] = ()

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors, as `saved_tensors`."""
        self.saved_tensors = tensors

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Say that results have no gradient."""
        self.non_differentiable = tensors

    def mark_dirty(self, *tensors: Any) -> None:
        """Say that inputs were changed in place."""

    def set_materialize_grads(self, value: bool) -> None:
        """Whether a missing gradient is given as zeros, or as None."""
        self.materialize_grads = value


class Function:
    """A function with a gradient of its own.

    >>> import webgrad.torch as torch
    >>> class Double(torch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * 2
    ...     @staticmethod
    ...     def backward(ctx, gradient):
    ...         return gradient * 2
    >>> x = torch.ones(2, requires_grad=True)
    >>> Double.apply(x).sum().backward()
    >>> x.grad.tolist()
    [2.0, 2.0]
    """

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the results."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """A gradient for each argument of `forward`."""
        raise NotImplementedError("You must implement the backward function for your custom Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Keep what `backward` needs, where `forward` takes no ctx."""

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """The results of `forward`, whose gradients `backward` gives."""
        ctx = FunctionCtx(tuple(isinstance(each, Array) and each.requires_grad for each in args))
        places = [at for at, each in enumerate(args) if isinstance(each, Array)]

        def computed(*tensors: Any) -> tuple[Any, Callable[..., Any]]:
            given = list(args)
            for at, tensor in zip(places, tensors, strict=True):
                given[at] = tensor
            with wg.no_grad():
                result = cls._forward(ctx, given, kwargs)
            results = result if isinstance(result, tuple) else (result,)

            def pulled(*gradients: Any) -> Any:
                if ctx.materialize_grads:
                    gradients = tuple(
                        wg.zeros_like(like) if each is None and isinstance(like, Array) else each
                        for each, like in zip(gradients, results, strict=False)
                    )
                found = cls.backward(ctx, *(adopt(each) for each in gradients))
                found = found if isinstance(found, tuple) else (found,)
                return tuple(found[at] if at < len(found) else None for at in places)

            return result, pulled

        return adopt(wg.custom_gradient(computed)(*(args[at] for at in places)))

    @classmethod
    def _forward(cls, ctx: FunctionCtx, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if cls.setup_context is Function.setup_context:
            return cls.forward(ctx, *args, **kwargs)
        result = cls.forward(*args, **kwargs)
        cls.setup_context(ctx, tuple(args), result)
        return result


def once_differentiable(function: Callable[..., Any]) -> Callable[..., Any]:
    """A `backward` whose own operations keep no history."""

    @functools.wraps(function)
    def once(*args: Any, **kwargs: Any) -> Any:
        with wg.no_grad():
            return function(*args, **kwargs)

    return once
