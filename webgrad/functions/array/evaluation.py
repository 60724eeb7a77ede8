"""Computing now: what a user calls to have tensors computed without reading them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...errors import DTypeError
from ...evaluate.evaluate import evaluate
from ...graph.node import backlog
from ...graph.trace import current_trace
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
            evaluate(backlog.held())
            backlog.restart(backlog.waiting())
        return
    if all(each.__class__ is Tensor for each in tensors):
        evaluate([each.node for each in tensors])
    else:
        evaluate([each.node for each in _found(tensors)])


def _found(value: Any) -> Iterator[Tensor]:
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, Tensor):
            yield each
        elif isinstance(each, Mapping):
            waiting += each.values()
        elif isinstance(each, Sequence) and not isinstance(each, str | bytes):
            waiting += each
        else:
            raise DTypeError(f"eval takes tensors, or lists and dicts of them, not a {type(each).__name__}")
