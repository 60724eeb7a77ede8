"""Gradients of functions, functions with a custom gradient, and whether histories are kept.

In: functions. Out: functions that return gradients, which `differentiate.py` computes. Tensors that require
gradients are in `requires_grad.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Sequence
from contextlib import ContextDecorator
from typing import Any, TypeVar

from ..errors import ArgumentError, GradientError
from ..functions.array.creation import ones
from ..functions.learning.autocast import autocast, autocast_dtype
from ..graph.node import Node
from ..jit.pytree import flatten, unflatten
from ..ops import primitives
from ..tensor import Tensor
from .differentiate import order_of, pull_back
from .history import Call, grad_mode, grad_mode_set, grad_mode_until_closed
from .own import results_of
from .requires_grad import detached, gradient_like, zeros_for
from .slots import GradientSlot

Function = TypeVar("Function", bound=Callable[..., Any])


# Modes


class _Mode(ContextDecorator):
    """Whether histories are kept: `with no_grad():`, or `@no_grad()`."""

    _on = False

    def __init__(self) -> None:
        # Closing this resets the mode; dropping it too, if Ctrl-C comes before __exit__ does anything.
        self._entered: list[Generator[None, None, None]] = []

    def __call__(self, function: Function) -> Function:
        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with grad_mode_set(self._on):
                return function(*args, **kwargs)

        return inside  # type: ignore[return-value]

    def __enter__(self) -> None:
        until_closed = grad_mode_until_closed(self._on)
        next(until_closed)
        self._entered.append(until_closed)

    def __exit__(self, *error: object) -> None:
        self._entered.pop().close()


class no_grad(_Mode):
    """Compute without histories: results do not require gradients, and tensors that do may be changed.

    >>> w = wg.asarray([1.0]).requires_grad_()
    >>> with wg.no_grad():
    ...     w -= 0.5
    >>> w.tolist(), w.requires_grad
    ([0.5], True)
    """


class enable_grad(_Mode):
    """Compute with histories again, inside of `no_grad`.

    >>> with wg.no_grad(), wg.enable_grad():
    ...     wg.is_grad_enabled()
    True
    """

    _on = True


class set_grad_enabled(_Mode):
    """Compute with histories or without, by a flag; as a context, or as a call that holds until the next one.

    >>> with wg.set_grad_enabled(False):
    ...     wg.is_grad_enabled()
    False
    """

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self._on = bool(mode)
        self._outside: bool | None = grad_mode.on  # None where it is a context or a decorator after all
        grad_mode.on = self._on

    def _no_call(self) -> None:
        if self._outside is not None:
            grad_mode.on, self._outside = self._outside, None

    def __call__(self, function: Function) -> Function:
        self._no_call()
        return super().__call__(function)

    def __enter__(self) -> None:
        self._no_call()
        super().__enter__()


def is_grad_enabled() -> bool:
    """Whether what is computed now keeps its history.

    >>> wg.is_grad_enabled()
    True
    """
    return grad_mode.on


# Functions


def value_and_grad(
    function: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that returns `function`'s value and its gradient with respect to the arguments `argnums`.

    The value is a tensor of one element; with `has_aux` it is the first of two results. An argument may be
    a list, tuple or dict of tensors: its gradient is one too.

    Where a function is not differentiable there are rules: relu and abs have gradient 0 at 0, and elements
    equal to a maximum share its gradient. The branch that `where` does not choose gets gradient 0, but 0
    times an infinite derivative is NaN: for log(x) or sqrt at 0 mask x as well,
    `where(x > 0, log(where(x > 0, x, 1.0)), 0.0)`.

    >>> wg.value_and_grad(lambda x: (x * x).sum())(wg.asarray([1.0, 2.0]))[1].tolist()
    [2.0, 4.0]
    """
    if not callable(function):
        raise ArgumentError(f"value_and_grad takes a function, not a {type(function).__name__}")
    places = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    @functools.wraps(function)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        if not places or not all(-len(args) <= at < len(args) for at in places):
            raise ArgumentError(
                f"value_and_grad: argnums={argnums!r} names no argument, or one that is missing; the "
                f"function was called with {len(args)} positional arguments (others cannot be named)"
            )
        leaves: list[Tensor] = []
        specs = [flatten(args[at], leaves, numbers=False) for at in places]
        if not leaves:
            raise ArgumentError(
                f"value_and_grad: there is no tensor in what argnums={argnums!r} names, so nothing to "
                "differentiate by: make one with webgrad.asarray"
            )
        with grad_mode_set(True):
            inner, tracked = _fresh(leaves)
            given, parts = list(args), iter(map(Tensor, inner))
            for at, spec in zip(places, specs, strict=True):
                given[at] = unflatten(spec, parts)
            result = function(*given, **kwargs)
            value, aux = _checked_value(result, has_aux)
            value, found = _gradients(value, inner, tracked)
        gathered = iter(found)
        gradients = tuple(unflatten(spec, gathered) for spec in specs)
        answer = gradients[0] if isinstance(argnums, int) else gradients
        return ((value, aux), answer) if has_aux else (value, answer)

    return differentiated


def grad(
    function: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that returns `function`'s gradient with respect to `argnums`; see value_and_grad.

    >>> cube = lambda x: x**3
    >>> wg.grad(cube)(wg.asarray(2.0)).item(), wg.grad(wg.grad(cube))(wg.asarray(2.0)).item()
    (12.0, 12.0)
    """
    both = value_and_grad(function, argnums, has_aux)

    @functools.wraps(function)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        value, gradients = both(*args, **kwargs)
        return (gradients, value[1]) if has_aux else gradients

    return differentiated


def _fresh(leaves: Sequence[Tensor]) -> tuple[list[Node], bool]:
    """New nodes of the same values that require a gradient, and whether any leaf required one itself."""
    made = []
    for each in leaves:
        if each.dtype.kind not in "fc":
            raise GradientError(
                f"value_and_grad: an argument to differentiate by is {each.dtype.name}: only floats have "
                "gradients; name the others in argnums, or convert with astype(webgrad.float32)"
            )
        node = primitives.alias(each.node)
        if node.history is None:
            node.history = GradientSlot()
        made.append(node)
    return made, any(each.node.history is not None for each in leaves)


def _checked_value(result: Any, has_aux: bool) -> tuple[Tensor, Any]:
    """A function's result: the value to differentiate, and the auxiliary results."""
    if has_aux and not (isinstance(result, tuple) and len(result) == 2):
        raise GradientError(
            f"value_and_grad with has_aux=True: the function returned a {type(result).__name__}, not a pair: "
            "the value, and other results"
        )
    value, aux = result if has_aux else (result, None)
    if not isinstance(value, Tensor) or value.size != 1 or value.dtype.kind != "f":
        is_tensor = isinstance(value, Tensor)
        what = (
            f"a tensor of shape {value.shape} and {value.dtype.name}" if is_tensor else type(value).__name__
        )
        raise GradientError(
            f"value_and_grad: the function returned {what}, and only a single float has a gradient: return "
            "a tensor of one element, as of sum() or mean(); other results need has_aux=True"
        )
    return value, aux


def _gradients(value: Tensor, inner: list[Node], tracked: bool) -> tuple[Tensor, list[Tensor]]:
    """A function's value and gradients; they have histories only if something outside requires gradients."""
    wanted = {id(each): each for each in inner}
    reached = order_of([value.node], wanted)
    others = [each for each in reached if id(each) not in wanted]
    more = tracked or any(isinstance(each.history, GradientSlot) for each in others)
    seed = ones(value.shape, dtype=value.dtype, device=value.device)
    with grad_mode_set(more):
        found = pull_back([(value.node, seed)], wanted, keep=True)
        gradients = [found[id(each)] if id(each) in found else zeros_for(each) for each in inner]
    return (value if more else detached(value)), gradients


def _found_tensors(value: Any) -> tuple[Any, list[Tensor]]:
    leaves: list[Tensor] = []
    return flatten(value, leaves, numbers=False), leaves


def custom_gradient(function: Callable[..., tuple[Any, Callable[..., Any]]]) -> Callable[..., Any]:
    """A function with a custom gradient: it returns its result, and a function from gradients to gradients.

    That one takes the gradients of the results, in order (None where there is none), and returns those of the
    tensors among the arguments, in order: one, or a tuple, with None where there is none.

    >>> @wg.custom_gradient
    ... def halved_backwards(x):
    ...     return x * 1.0, lambda g: g * 0.5
    >>> wg.grad(lambda x: halved_backwards(x).sum())(wg.asarray([1.0, 2.0])).tolist()
    [0.5, 0.5]
    """

    @functools.wraps(function)
    def differentiable(*args: Any, **kwargs: Any) -> Any:
        _, given = _found_tensors((args, kwargs))
        answer = function(*args, **kwargs)
        if not _is_answer(answer):
            raise GradientError(
                f"custom_gradient: {getattr(function, '__name__', function)} must return its result, and a "
                "function from the result's gradient to those of its arguments"
            )
        result, pull = answer
        if not grad_mode.on or all(each.node.history is None for each in given):
            return result
        spec, results = _found_tensors(result)

        def pulled(gradients: list[Any]) -> list[Any]:
            found = pull(*gradients)
            found = list(found) if isinstance(found, tuple | list) else [found]
            if len(found) != len(given):
                raise GradientError(
                    f"custom_gradient: {len(found)} gradients for {len(given)} tensors among the arguments: "
                    "return one for each, in order, None where there is none"
                )
            return [
                None if each is None else gradient_like("custom_gradient", each, x)
                for each, x in zip(found, given, strict=True)
            ]

        call = Call(tuple(each.node for each in given), len(results), pulled)
        return unflatten(spec, iter(results_of(call, results)))

    return differentiable


def _is_answer(answer: Any) -> bool:
    return isinstance(answer, tuple) and len(answer) == 2 and callable(answer[1])


def checkpoint(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """A function's results; intermediate values are not kept for gradients, but computed again.

    It trades time for memory: of a chain of checkpointed layers only the values between them are kept until
    the gradients are computed. Random numbers are the same the second time.

    >>> x = wg.asarray([1.0, 2.0]).requires_grad_()
    >>> wg.checkpoint(lambda x: (x.exp() * 2).sum(), x).backward()
    >>> [round(each, 3) for each in x.grad.tolist()]
    [5.437, 14.778]
    """
    if not grad_mode.on:
        return function(*args, **kwargs)
    nesting, given = _found_tensors((args, kwargs))
    nodes = [each.node for each in given]
    draws: list[Any] = []
    half = autocast_dtype()

    def run(repeat: bool) -> tuple[Any, list[Tensor], set[int]]:
        before = grad_mode.made, grad_mode.draws, grad_mode.repeat
        grad_mode.made, grad_mode.draws, grad_mode.repeat = set(), draws.copy() if repeat else draws, repeat
        try:
            again_args, again_kwargs = unflatten(nesting, iter([Tensor(each) for each in nodes]))
            with autocast(half or "float16", enabled=half is not None):
                spec, results = _found_tensors(function(*again_args, **again_kwargs))
            return spec, results, grad_mode.made
        finally:
            grad_mode.made, grad_mode.draws, grad_mode.repeat = before

    spec, results, made = run(repeat=False)
    sources = _sources(results, made)
    if not sources:
        return unflatten(spec, iter(results))
    known = {id(each): each for each in sources}

    def pulled(gradients: list[Any]) -> list[Any]:
        with grad_mode_set(True):
            _, again, remade = run(repeat=True)
        if any(id(each) not in known for each in _sources(again, remade)):
            raise GradientError(
                "checkpoint: a tensor that gradients of the function go to was changed or replaced "
                "since, so that computing it again would differ: call backward() before the "
                "optimiser's step"
            )
        seeds = [
            (each.node, gradient)
            for each, gradient in zip(again, gradients, strict=True)
            if gradient is not None and each.node.history is not None
        ]
        found = pull_back(seeds, known, keep=True)
        return [found.get(identity) for identity in known]

    call = Call(tuple(sources), len(results), pulled)
    return unflatten(spec, iter(results_of(call, results)))


def _sources(results: Sequence[Tensor], made: set[int]) -> list[Node]:
    """The nodes outside of a function that gradients go to: those under its results that it did not make."""
    found: dict[int, Node] = {}
    seen: set[int] = set()
    stack: list[Any] = [each.node for each in results if each.node.history is not None]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Call) or id(node) in made:
            stack += [each for each in node.history.inputs if each.history is not None]
        else:
            found[id(node)] = node
    return list(found.values())
