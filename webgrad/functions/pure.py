"""Functions of tensors whose graphs are built once: `wg.pure`.

In: a function whose results follow from its arguments alone. Out: the same function; called again with
tensors of the same shapes and dtypes, and the same other arguments, it runs none of its code, and makes one
node of the graph that it made the first time.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from itertools import islice
from types import FunctionType
from typing import Any, ParamSpec, TypeVar

from ..dtypes import DType, uint32
from ..errors import CaptureError
from ..gradients.history import grad_mode
from ..graph.node import Node, signature
from ..graph.op import SCALAR
from ..graph.trace import Draw, ImpureError, current_trace, noting, repeating, words_of
from ..jit.pytree import TreeSpec, flatten, unflatten
from ..ops.views import shares_with
from ..tensor import Tensor
from .learning.autocast import autocast_dtype
from .recording import Recording, check_pure, placeholder

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
MOST_RECORDINGS = 512  # of a function
_NUMBERS = frozenset((bool, int, float))
_WORDS = frozenset((type(None), str, DType, FunctionType))


def pure(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """The function, whose code runs once for each kind of arguments: shapes and dtypes of tensors, alone or
    in tuples and lists, and the values of all others, which are numbers, texts, dtypes and functions.

    Later calls make one node of the graph that it made then. What it returns, tensors or tuples and lists of
    them, must follow from its arguments alone, and be new; what it draws from `wg.random` is drawn anew at
    each call. Where it draws from another generator, changes or reads a tensor, or uses tensors that are no
    arguments, it is called as any function. Gradients are those of the function, and its graph fuses with
    what is around it.

    >>> @wg.pure
    ... def distance(x, y):
    ...     return ((x - y) ** 2).sum().sqrt()
    >>> distance(wg.asarray([0.0, 3.0]), wg.asarray([4.0, 0.0])).item()
    5.0
    """
    recordings: dict[tuple[Any, ...], _Kept | None] = {}

    @functools.wraps(function)
    def call(*args: Arguments.args, **named: Arguments.kwargs) -> Result:
        trace = current_trace()
        if trace is not None:
            result = function(*args, **named)
            if trace.calls is not None:
                trace.calls(function, args, named, result)
            return result
        nodes: list[Node] = []
        parts: list[Any] = [autocast_dtype(), grad_mode.on]
        if not _take((*args, *named.values()) if named else args, nodes, parts):
            return function(*args, **named)
        if named:
            parts += named
        key = tuple(parts)
        if key not in recordings:
            if len(recordings) >= MOST_RECORDINGS:
                recordings.clear()
            recordings[key] = _kept(function, args, named)
        kept = recordings[key]
        if kept is None:
            return function(*args, **named)
        if kept.draws:
            nodes += kept.words()
        found: list[Any] = kept.recording(tuple(nodes))
        if kept.spec is None:
            return Tensor(found[0])  # type: ignore[return-value]
        return unflatten(kept.spec, map(Tensor, found))  # type: ignore[no-any-return]

    return call


class _Kept:
    """A recording, how its results are arranged (None: a single tensor), and what it draws."""

    __slots__ = ("draws", "recording", "spec")

    def __init__(self, recording: Recording, spec: TreeSpec, draws: Sequence[tuple[Draw, int]]) -> None:
        self.recording = recording
        self.spec = None if spec.kind == "tensor" else spec
        self.draws = draws  # with how many words each gives

    def words(self) -> list[Node]:
        """The words that a call draws: the last of what the recording is given."""
        sig = self.recording.sigs[-1]
        return [Node(sig, (), each, None) for draw, count in self.draws for each in words_of(draw, count)]


def _take(values: Sequence[Any], nodes: list[Node], parts: list[Any]) -> bool:
    """Add the nodes of tensors, and what says which recording fits; false where none can."""
    for each in values:
        if isinstance(each, Tensor):
            node = each.node
            nodes.append(node)
            parts += (node.sig.given, node.history is not None)
        elif each.__class__ in _WORDS:
            parts.append(each)
        elif each.__class__ in _NUMBERS:
            parts += (each.__class__, each)
        elif isinstance(each, tuple | list):
            parts += (each.__class__, len(each))
            if not _take(each, nodes, parts):
                return False
        else:
            return False
    return True


def _kept(function: Callable[..., Any], args: Any, named: dict[str, Any]) -> _Kept | None:
    """The recording of a call, or None where it must be called as any function."""
    tensors: list[Any] = []
    spec = flatten((args, named), tensors, numbers=False)
    made: list[TreeSpec] = []  # how the results are arranged
    lengths: list[int] = []  # how many words each draw gives
    count = len(tensors)  # what is kept must not hold the tensors themselves

    def compute(nodes: Sequence[Node]) -> list[Node]:
        given = [*map(Tensor, nodes[:count])]
        words = iter([each.storage for each in nodes[count:]])
        values, options = unflatten(spec, iter(given))
        results: list[Tensor] = []
        with repeating([[*islice(words, each)] for each in lengths]) if lengths else nullcontext():
            made[:] = [flatten(function(*values, **options), results, numbers=False)]
        if not _are_new(results, given):
            raise ImpureError
        return [each.node for each in results]

    try:
        given = [placeholder(each.node.sig.given, each.node.history is not None) for each in tensors]
        with noting() as trace:
            results = compute(given)
            check_pure(trace, may_draw=True)
            if not results:
                raise ImpureError
            lengths += [len(numbers) for _, numbers in trace.draws]
            word = signature(SCALAR, (), uint32, results[0].sig.device)
            given += [Node(word, (), each, None) for _, numbers in trace.draws for each in numbers]
            draws = [(draw, len(numbers)) for draw, numbers in trace.draws]
            return _Kept(Recording(given, results, whole=True, compute=compute), made[0], draws)
    except (ImpureError, CaptureError):
        return None


def _are_new(results: Sequence[Tensor], given: Sequence[Tensor]) -> bool:
    """Whether no result is an argument, or shares elements with one or with another result."""
    seen = {id(each) for each in (*results, *given)}
    nodes = {id(each.node) for each in (*results, *given)}
    return len(nodes) == len(results) + len(given) and not any(
        id(other) in seen for each in results for other in shares_with(each)
    )
