"""jit: a call's commands are captured once and replayed for new inputs of the same shapes.

In: a function of tensors. Out: a function that runs its Python code only when shapes, dtypes or static
arguments are new. The invariant: what a tensor holds at the call is what is used, be it an argument or one
that the function closes over, and what the function changes in place is changed at every call.
"""

from __future__ import annotations

import functools
import gc
import inspect
import math
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import CellType
from typing import Any, ParamSpec, TypeVar, overload
from weakref import ref

from . import dtypes
from .errors import ArgumentError, CaptureError, WebgradError
from .evaluate import Recorded, compute, compute_waiting, plan_for, submit
from .graph.node import Node, Signature, backlog, leaf, scalar, signature
from .graph.op import LEAF
from .graph.trace import RuntimeFloat, RuntimeInt, Trace, current_trace, is_runtime, tracing
from .kept import refuse_kept
from .nested import Nesting, put_together, taken_apart
from .runtime.device import default_device
from .tensor import Tensor
from .tuning import is_on

__all__ = ["jit"]

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
CAPTURES = 64  # kept of one function; the least used go first


# A capture


class _Part:
    """What is computed on one device. `feeds` are the leaves and numbers that are others in each run."""

    def __init__(self, roots: list[Node]) -> None:
        self.plan, self.nodes = plan_for(roots)
        numbers = {id(node): number for number, node in enumerate(self.nodes)}
        self.roots = [numbers[id(root)] for root in roots]
        self.leaf_feeds: list[tuple[int, int]] = []
        self.number_feeds: list[tuple[int, int]] = []
        self.recorded: Recorded | None = None
        self.places = {number: at for at, number in enumerate(self.plan.stored)}

    def feed(self, leaves: dict[int, int], numbers: dict[int, int]) -> None:
        """Note what is fed, and let go of the graph; the user's lines stay, for messages."""
        for at, node in enumerate(self.nodes):
            if id(node) in leaves:
                self.leaf_feeds.append((at, leaves[id(node)]))
            elif is_runtime(node.storage):
                self.number_feeds.append((at, numbers[id(node.storage)]))
        self.nodes = [Node(node.sig, (), node.storage, node.where) for node in self.nodes]

    def run(self, leaves: Sequence[Node], numbers: Sequence[Any], donated: Sequence[int]) -> list[Node]:
        """The roots, as leaves."""
        nodes = self.nodes.copy()
        for at, source in self.leaf_feeds:
            nodes[at] = leaves[source]
        for at, source in self.number_feeds:
            nodes[at] = Node(nodes[at].sig, (), numbers[source], None)
        if self.recorded is None:  # the first run is an ordinary one, with every check
            found = submit(self.plan, nodes)
            self.recorded = self.plan.record()
        else:
            free = frozenset(at for at, source in self.leaf_feeds if source in donated)
            found = self.recorded.run(nodes, free)
        made = []
        for each in self.roots:
            sig = nodes[each].sig
            made.append(leaf(found[self.places[each]], sig.shape, sig.dtype, sig.device))
        return made


class _Capture:
    """One captured call: what it computes, from which tensors and numbers, and what becomes of the results.

    Its leaves are those of the arguments, then those of the tensors that it changes or closes over.
    """

    def __init__(
        self,
        trace: Trace,
        given: Sequence[Tensor],
        was: Sequence[Node],
        shape: Nesting,
        ends: Sequence[Tensor],
        names: list[tuple[Callable[[], Any], Any]],
    ) -> None:
        self.shape = shape
        self.names = names
        self.draws = [draw for draw, _ in trace.draws]
        self.drawn = [int(each) for _, numbers in trace.draws for each in numbers]  # for the first run
        leaves = [node for node in was if node.sig.op is LEAF]
        self.arguments = len(leaves)
        self.owners: list[list[ref[Tensor]]] = []  # of the leaves behind the arguments'
        self.changed: list[tuple[int, ref[Tensor] | None]] = []  # (leaf, its tensor if that is no argument)
        results = [each.node for each in ends]
        arguments = {id(tensor) for tensor in given}
        for reference, before in trace.changed.values():
            tensor = reference()
            if tensor is None or before.inputs:
                continue  # it was made inside
            if before.sig.op is not LEAF:
                raise CaptureError("a number among the arguments cannot be changed in place: pass a tensor")
            if id(tensor) in arguments:
                self.changed.append((_place(before, leaves), None))
            else:
                self.changed.append((len(leaves), reference))
                self.owners.append([reference])
                leaves.append(before)
            results.append(tensor.node)
        by_device = _by_device(results)
        self.parts = [_Part(each) for each in by_device]
        self._close_over(leaves)
        self.sigs = [node.sig for node in leaves]
        places = {id(node): at for at, node in enumerate(leaves)}
        numbers = [node.storage for node in was if node.sig.op is not LEAF]
        numbers += [each for _, drawn in trace.draws for each in drawn]
        number_places = {id(each): at for at, each in enumerate(numbers)}
        for part in self.parts:
            part.feed(places, number_places)
        computed = {id(node): at for at, node in enumerate(node for each in by_device for node in each)}
        tables = (("computed", computed), ("leaf", places))
        self.results = [_origin(node, tables, number_places) for node in results]
        self.needed = {at for kind, at in self.results if kind == "leaf"}

    def _close_over(self, leaves: list[Node]) -> None:
        """Find the tensors that hold the other leaves: what they hold at a call is what it uses."""
        known = {id(node): at for at, node in enumerate(leaves)}
        found = {id(node): node for part in self.parts for node in part.nodes if node.sig.op is LEAF}
        holders: dict[int, list[ref[Tensor]]] = {}
        for tensor in gc.get_referrers(*found.values()) if found else ():
            if isinstance(tensor, Tensor):
                holders.setdefault(id(tensor.node), []).append(ref(tensor))
        for identity, tensors in holders.items():
            at = known.get(identity)
            if at is None:
                leaves.append(found[identity])
                self.owners.append(tensors)
            elif at >= self.arguments:  # others hold what one tensor had before it was changed
                self.owners[at - self.arguments] += tensors

    def leaves(self, ends: Sequence[Any]) -> list[Node] | None:
        """The leaves of a call; None where they are not what was captured."""
        for name, then in self.names:
            now = name()
            if now is not then and not _is_still(now, then):
                return None
        found = [each.node for each in ends if isinstance(each, Tensor)]
        for owners, sig in zip(self.owners, self.sigs[self.arguments :], strict=True):
            node = _node_of(owners) if len(owners) > 1 else getattr(owners[0](), "node", None)
            if node is None or not (node.sig is sig or _is_alike(node.sig, sig)):
                return None
            found.append(node)
        return found

    def run(self, ends: Sequence[Any], leaves: list[Node]) -> Any:
        """The results of a call, after what it changes was changed."""
        numbers = [each for each in ends if not isinstance(each, Tensor)]
        numbers += self.drawn or [each for draw in self.draws for each in draw()]
        self.drawn = []
        compute([node for node in leaves if node.sig.op is not LEAF])
        donated = [at for at, _ in self.changed if at not in self.needed and _is_free(leaves, at)]
        found = [each for part in self.parts for each in part.run(leaves, numbers, donated)]
        nodes = self._nodes(found, leaves, numbers)
        count = len(nodes) - len(self.changed)
        tensors = [each for each in ends if isinstance(each, Tensor)]
        for (at, reference), node in zip(self.changed, nodes[count:], strict=True):
            tensor = tensors[at] if reference is None else reference()
            if tensor is not None:
                tensor.node = node
        return put_together(self.shape, iter([Tensor(node) for node in nodes[:count]]))

    def _nodes(self, found: list[Node], leaves: list[Node], numbers: list[Any]) -> list[Node]:
        """The nodes of the results: computed, or a leaf or number as it came in."""
        nodes = []
        for kind, what in self.results:
            if kind == "computed":
                nodes.append(found[what])
            elif kind == "leaf":
                nodes.append(leaves[what])
            elif kind == "number":
                at, sig = what
                nodes.append(scalar(numbers[at], sig.dtype, sig.device))
            else:
                nodes.append(what)
        return nodes


def _node_of(owners: list[ref[Tensor]]) -> Node | None:
    """The node that several tensors share; None where they do not share one any more."""
    nodes = [tensor.node for tensor in (each() for each in owners) if tensor is not None]
    return nodes[0] if nodes and all(node is nodes[0] for node in nodes) else None


def _is_alike(new: Signature, old: Signature) -> bool:
    return new.shape == old.shape and new.dtype is old.dtype and new.device is old.device


def _place(node: Node, nodes: list[Node]) -> int:
    return next(at for at, each in enumerate(nodes) if each is node)


def _by_device(results: list[Node]) -> list[list[Node]]:
    """What is to be computed, each once."""
    devices: dict[Any, dict[int, Node]] = {}
    for node in results:
        if node.storage is None:
            devices.setdefault(node.sig.device, {})[id(node)] = node
    return [list(each.values()) for each in devices.values()]


def _origin(
    node: Node, tables: Sequence[tuple[str, dict[int, int]]], numbers: dict[int, int]
) -> tuple[str, Any]:
    """Where a result comes from."""
    for kind, table in tables:
        if id(node) in table:
            return kind, table[id(node)]
    if id(node.storage) in numbers:
        return "number", (numbers[id(node.storage)], node.sig)
    return "constant", node


def _is_free(leaves: list[Node], at: int) -> bool:
    """Whether only its tensor and this list hold a leaf, and only the leaf its storage."""
    return sys.getrefcount(leaves[at]) <= _LEAF_HOLDERS and sys.getrefcount(leaves[at].storage) <= 2


_LEAF_HOLDERS = 3  # the tensor, the list, and the argument of getrefcount


# The function


class Jit:
    """A function with its captures. Made by `jit`."""

    def __init__(self, function: Callable[..., Any], static: Sequence[str | int]) -> None:
        self.function = function
        self._static = _static_places(function, static)
        self._captures: OrderedDict[Any, _Capture] = OrderedDict()
        self._lock = threading.RLock()
        functools.update_wrapper(self, function)

    def __repr__(self) -> str:
        name = getattr(self.function, "__qualname__", repr(self.function))
        return f"<jit of {name}: {len(self._captures)} captured>"

    def __get__(self, instance: Any, owner: type) -> Any:
        return self if instance is None else functools.partial(self, instance)

    @property
    def captures(self) -> int:
        """How many calls are captured: one for each combination of shapes, dtypes and static arguments."""
        return len(self._captures)

    def clear(self) -> None:
        """Forget what was captured."""
        with self._lock:
            self._captures.clear()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if current_trace() is not None:  # inside of another captured function: part of that
            return self.function(*args, **kwargs)
        ends: list[Any] = []
        shapes = [self._shape(at, each, ends) for at, each in enumerate(args)]
        named = [(name, self._shape(name, each, ends)) for name, each in kwargs.items()]
        ends = [each if isinstance(each, Tensor) else _fitting(each) for each in ends]
        key = (tuple(shapes), tuple(named), _repeated(ends), is_on())  # measuring chooses other kernels
        with self._lock:
            capture = self._captures.get(key)
            leaves = None if capture is None else capture.leaves(ends)
            if leaves is None:
                capture = self._captures[key] = self._capture(shapes, named, ends)
                leaves = capture.leaves(ends)
                if len(self._captures) > CAPTURES:
                    self._captures.popitem(last=False)
            assert capture is not None
            assert leaves is not None
            self._captures.move_to_end(key)
            return capture.run(ends, leaves)

    def _shape(self, place: int | str, value: Any, ends: list[Any]) -> Nesting:
        if place not in self._static:
            return taken_apart(value, ends, numbers=True)
        try:
            hash(value)
        except TypeError:
            raise ArgumentError(
                f"{self!r}: the static argument {place!r} is a {type(value).__name__}, which cannot "
                "be compared with other calls'; pass something hashable, such as a tuple"
            ) from None
        return Nesting("static", (type(value), value))

    def _capture(self, shapes: list[Nesting], named: list[tuple[str, Nesting]], ends: list[Any]) -> _Capture:
        """Run the function over stand-ins for its tensors and numbers, and keep what it would compute."""
        _compute_others()
        compute([each.node for each in ends if isinstance(each, Tensor)])
        device = _device(self.function, ends)
        alike = {id(each): _stand_in(each, device) for each in ends if isinstance(each, Tensor)}
        given = [alike[id(each)] if id(each) in alike else _stand_in(each, device) for each in ends]
        was = [each.node for each in given]
        places = iter(given)
        args = [put_together(each, places) for each in shapes]
        kwargs = {name: put_together(each, places) for name, each in named}
        trace, names = Trace(), _names(self.function)
        try:
            with tracing(trace):
                result = self.function(*args, **kwargs)
            made: list[Tensor] = []
            shape = taken_apart(result, made, numbers=False)
            del result
            refuse_kept(trace, was, made)
            names = [each for each in names if _is_still(each[0](), each[1])]  # not those it changes itself
            return _Capture(trace, given, was, shape, made, names)
        finally:
            trace.undo()


def _compute_others() -> None:
    """Compute all that waits, so that tensors from outside are leaves; what cannot be says so at its use."""
    try:
        compute_waiting()
    except WebgradError:
        for node in backlog.held():
            with suppress(WebgradError):
                compute([node])


def _repeated(ends: Sequence[Any]) -> tuple[int, ...]:
    """Where a tensor is given again: what is changed in place through one argument is seen through both."""
    if len(ends) < 2:
        return ()
    tensors = [id(each) for each in ends if isinstance(each, Tensor)]
    return () if len(set(tensors)) == len(tensors) else tuple(map(tensors.index, tensors))


def _stand_in(value: Any, device: Any) -> Tensor:
    """A tensor of its own for an argument, so that two arguments are never taken for one."""
    if isinstance(value, Tensor):
        sig = value.node.sig
        return Tensor(Node(signature(LEAF, sig.shape, sig.dtype, sig.device), (), value.node.storage, None))
    if isinstance(value, float):
        return Tensor(scalar(RuntimeFloat(value), dtypes.float32, device))
    return Tensor(scalar(RuntimeInt(value), dtypes.int32, device))


def _fitting(number: Any) -> Any:
    """A number as float32 or int32 takes it: a float beyond its range is infinite."""
    if isinstance(number, float):
        return math.copysign(math.inf, number) if abs(number) >= _INFINITE else number
    if not -(1 << 31) <= number < 1 << 31:
        raise ArgumentError(
            f"the number {number} does not fit int32, which captured functions take whole numbers as; pass a "
            "tensor, or name the argument in webgrad.jit(..., static=...)"
        )
    return number


_INFINITE = 2.0**128 - 2.0**103  # what lies nearer to the largest float32 is rounded to that


def _device(function: Callable[..., Any], ends: Sequence[Any]) -> Any:
    """Where numbers are: with the tensors among the arguments, or with those that the function names."""
    seen = [*ends, *(each() for each in _named(function))]
    return next((each.node.sig.device for each in seen if isinstance(each, Tensor)), None) or default_device()


def _names(function: Callable[..., Any]) -> list[tuple[Callable[[], Any], Any]]:
    """The tensors and numbers that a function names, and what they are now: a name may be given to others."""
    found: list[tuple[Callable[[], Any], Any]] = []
    for name in _named(function):
        value = name()
        if isinstance(value, Tensor):
            found.append((name, ref(value)))
        elif isinstance(value, int | float):
            found.append((name, value))
    return found


def _is_still(now: Any, then: Any) -> bool:
    return now is then() if isinstance(then, ref) else type(now) is type(then) and bool(now == then)


def _named(function: Callable[..., Any]) -> list[Callable[[], Any]]:
    """What stands for the names in a function's code that are not its own: globals, and those around it."""
    plain = inspect.unwrap(function)
    code, names = getattr(plain, "__code__", None), getattr(plain, "__globals__", {})
    found: list[Callable[[], Any]] = [
        functools.partial(_contents, cell) for cell in getattr(plain, "__closure__", None) or ()
    ]
    return found + [functools.partial(names.get, each) for each in (code.co_names if code else ())]


def _contents(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a name that has no value yet
        return None


def _static_places(function: Callable[..., Any], static: Sequence[str | int]) -> frozenset[int | str]:
    """Static arguments by place and by name."""
    if isinstance(static, str | int):
        static = (static,)
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        names = []
    places: set[int | str] = set()
    for each in static:
        if isinstance(each, int) and 0 <= each < len(names):
            places |= {each, names[each]}
        elif each in names:
            places |= {each, names.index(str(each))}
        else:
            raise ArgumentError(
                f"jit: {each!r} is no argument of the function; it has {', '.join(names) or 'none'}"
            )
    return frozenset(places)


@overload
def jit(
    function: Callable[Arguments, Result], *, static: Sequence[str | int] = ()
) -> Callable[Arguments, Result]: ...
@overload
def jit(
    *, static: Sequence[str | int] = ()
) -> Callable[[Callable[Arguments, Result]], Callable[Arguments, Result]]: ...
def jit(function: Any = None, *, static: Sequence[str | int] = ()) -> Any:
    """A function whose commands are captured at its first call, and replayed for inputs of the same shapes.

    Its Python code runs only when the shapes, dtypes or devices of its tensors, or what is neither tensor nor
    number, are new. Then nothing is built or scheduled any more: a call fills in its inputs and submits.

    - Tensors among the arguments, in lists, tuples and dicts too, and tensors the function closes over, may
      hold other values at each call.
    - Numbers are run-time numbers: inside they are tensors of no dimensions (float32 or int32), so that a
      learning rate or a position may change without a new capture. `static` names arguments, or their places,
      that Python code needs as they are (a count of steps, say); each value of these is captured on its own.
    - What it changes in place (`x += …`, `x[i] = …`) is changed at every call, whether that is an argument or
      a cache or parameter it closes over. Other effects of its Python code, such as print, happen only when
      it is captured; a tensor that it keeps elsewhere (`self.state = x + 1`) is an error.
    - A number or tensor that its code names, but that is no argument, is the one of that name at each call;
      another number, which is part of the capture, means capturing anew. What lies deeper, a number in
      `self.rate`, is the one it was when captured.
    - Random numbers are drawn anew at every call.
    - Reading a value inside (`if x > 0`, `x.numpy()`, `float(x)`) is an error: there is none yet.

    >>> @wg.jit
    ... def step(x, rate):
    ...     return x - rate * x.mean()
    >>> step(wg.asarray([1.0, 3.0]), 0.5).tolist()
    [0.0, 2.0]
    >>> step(wg.asarray([2.0, 6.0]), 0.25).tolist()
    [1.0, 5.0]
    """
    if function is None:
        return functools.partial(jit, static=static)
    if not callable(function):
        raise ArgumentError(f"jit takes a function, not a {type(function).__name__}")
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        raise ArgumentError(
            f"jit: {function.__name__} is a coroutine or a generator, whose code runs bit by bit after the "
            "call: take what computes out of it, as a plain function that returns tensors"
        )
    return Jit(function, static)
