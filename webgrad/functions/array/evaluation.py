"""Computing now: what a user calls to have tensors computed without reading them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...errors import DTypeError
from ...evaluate.evaluate import evaluate
from ...evaluate.waiting import evaluate_waiting
from ...gradients.history import grad_mode
from ...graph.node import Node, backlog
from ...graph.trace import current_trace
from ...ops.capabilities import has_host_memory
from ...tensor import Tensor


def eval(*tensors: Any) -> None:
    """Compute tensors, or all that are in lists, tuples and dicts: submits the work and returns; reads wait.

    Without arguments it computes every live tensor that is not computed yet; inside of a captured function
    nothing, since there everything is computed together.

    >>> x = wg.ones(3) * 2
    >>> wg.eval(x)
    """
    if not tensors:
        if current_trace() is None:
            evaluate_waiting()
        return
    if all(each.__class__ is Tensor for each in tensors):
        evaluate([each.node for each in tensors])
    else:
        evaluate([each.node for each in _found(tensors)])


def compute_apart(given: Any, found: Any) -> None:
    """Compute what a part of a program gives, apart from what it is given, if nothing is gained by waiting.

    That is on the cpu, outside of gradients, batches and captured functions: the plan of the part is found
    again then, whatever the program does before and after it. Modules that are called without gradients do
    so. A part of few operations waits. What is neither a tensor nor a list, tuple or dict of them is let be.

    >>> model = wg.nn.Sequential(wg.nn.Linear(2, 4), wg.nn.Tanh())
    >>> with wg.no_grad():
    ...     wg.compute_apart(wg.ones(2), model(wg.ones(2)))
    """
    if grad_mode.on or backlog.pauses or current_trace() is not None:
        return
    results = _waiting(found)
    if results and _is_long(results):
        evaluate(_waiting(given))
        evaluate(results)


LONG = 64  # operations


def _waiting(values: Any) -> list[Node]:
    """The nodes among values that wait to be computed on the cpu."""
    tensors = [values] if isinstance(values, Tensor) else _found(values, strict=False)
    nodes = [each.node for each in tensors]
    return [each for each in nodes if each.storage is None and has_host_memory(each.sig.device)]


def _is_long(roots: list[Node]) -> bool:
    """Whether many operations are to be computed for nodes."""
    known = set(roots)
    stack = list(roots)
    while stack and len(known) < LONG:
        for each in stack.pop().inputs:
            if each.storage is None and each not in known:
                known.add(each)
                stack.append(each)
    return len(known) >= LONG


def _found(value: Any, *, strict: bool = True) -> Iterator[Tensor]:
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, Tensor):
            yield each
        elif isinstance(each, Mapping):
            waiting += each.values()
        elif isinstance(each, Sequence) and not isinstance(each, str | bytes):
            waiting += each
        elif strict:
            raise DTypeError(f"eval takes tensors, or lists and dicts of them, not a {type(each).__name__}")
