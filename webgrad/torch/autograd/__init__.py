"""torch.autograd: gradients of tensors, functions with their own gradient, and grad modes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import webgrad as wg

from ..tensor import Array, adopt
from . import functional, graph
from .function import Function, FunctionCtx, once_differentiable

__all__ = [
    "Function",
    "FunctionCtx",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "functional",
    "grad",
    "gradcheck",
    "graph",
    "no_grad",
    "once_differentiable",
    "set_detect_anomaly",
    "set_grad_enabled",
]
no_grad, enable_grad, set_grad_enabled = wg.no_grad, wg.enable_grad, wg.set_grad_enabled


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """The gradients of outputs with respect to inputs; an input that is not used is an error, unless allowed.

    >>> import webgrad.torch as torch
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> torch.autograd.grad(x * x, x)[0].item()
    6.0
    """
    if is_grads_batched:
        raise RuntimeError("grad: is_grads_batched=True is not there: call grad once for each gradient")
    wanted = [inputs] if isinstance(inputs, Array) else list(inputs)
    found = wg.grad_of(outputs, wanted, grad_outputs, retain_graph=retain_graph, create_graph=create_graph)
    if materialize_grads:
        return tuple(
            adopt(wg.zeros_like(x) if each is None else each) for x, each in zip(wanted, found, strict=True)
        )
    if not allow_unused and any(each is None for each in found):
        raise RuntimeError(
            "One of the differentiated Tensors appears to not have been used in the graph. Set "
            "allow_unused=True if this is the desired behavior."
        )
    return tuple(adopt(each) for each in found)


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Add the gradients of tensors to the `grad` of what they were computed from."""
    results: Sequence[Any] = [tensors] if isinstance(tensors, Array) else list(tensors)
    given = [grad_tensors] if grad_tensors is None or isinstance(grad_tensors, Array) else list(grad_tensors)
    given = given if len(given) == len(results) else given * len(results)
    total: Any = sum(
        (each if one is None else wg.sum(each * one)) for each, one in zip(results, given, strict=True)
    )
    if inputs is None:
        wg.Tensor.backward(total, None, retain_graph, create_graph)
        return
    wanted = [inputs] if isinstance(inputs, Array) else list(inputs)
    found = wg.grad_of(total, wanted, retain_graph=retain_graph, create_graph=create_graph)
    for x, each in zip(wanted, found, strict=True):
        if each is not None:
            x.grad = each if x.grad is None else x.grad + each


def Variable(data: Any, requires_grad: bool = False, volatile: bool = False) -> Any:
    """The tensor itself, as it has been since PyTorch 0.4."""
    return data.requires_grad_() if requires_grad else data


class set_detect_anomaly:
    """Taken and without effect: errors name the line that made a tensor in any case."""

    def __init__(self, mode: bool = True, check_nan: bool = True) -> None:
        self.mode = mode

    def __enter__(self) -> None:
        """Nothing to do."""

    def __exit__(self, *error: object) -> None:
        """Nothing to do."""


class detect_anomaly(set_detect_anomaly):
    """As `set_detect_anomaly`."""


def gradcheck(
    func: Any, inputs: Any, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3, **options: Any
) -> bool:
    """Whether gradients agree with differences of results; the inputs should be float64."""
    given = [inputs] if isinstance(inputs, Array) else list(inputs)
    learnt = [each for each in given if isinstance(each, Array) and each.requires_grad]
    results = func(*given)
    for result in [results] if isinstance(results, Array) else results:
        seed = wg.random.normal(shape=tuple(result.shape), dtype=result.dtype)
        exact = wg.grad_of(result, learnt, seed, retain_graph=True)
        for x, gradient in zip(learnt, exact, strict=True):
            flat = x.detach().reshape(-1)
            for at in range(int(x.numel())):
                moved = []
                for step in (eps, -eps):
                    other = flat.clone()
                    other[at] += step
                    with wg.no_grad():
                        again = func(*(other.reshape(x.shape) if each is x else each for each in given))
                    moved.append(wg.sum(again * seed).item())
                slope = (moved[0] - moved[1]) / (2 * eps)
                found = 0.0 if gradient is None else gradient.reshape(-1)[at].item()
                if abs(found - slope) > atol + rtol * abs(slope):
                    if options.get("raise_exception", True):
                        raise RuntimeError(
                            f"gradcheck: the gradient of element {at} is {found}, and the slope is {slope}"
                        )
                    return False
    return True
