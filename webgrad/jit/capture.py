"""jit: a call's commands are captured once and replayed for new inputs of the same shapes.

In: a function of tensors. Out: a function that runs its Python code only when shapes, dtypes or static
arguments are new. The invariant: what a tensor holds at the call is what is used, be it an argument or one
that the function closes over, and what the function changes in place is changed at every call.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar, overload

from .. import dtypes
from ..errors import ArgumentError
from ..evaluate.evaluate import compute, is_checked
from ..evaluate.waiting import compute_waiting
from ..gradients.history import grad_mode
from ..gradients.slots import GradientSlot
from ..graph.node import Node, scalar, signature
from ..graph.op import LEAF
from ..graph.trace import RuntimeFloat, RuntimeInt, current_trace, one_at_a_time
from ..observing import stage
from ..ops.views import Alias, base_of, join, mirrored, relation
from ..tensor import Tensor
from ..tuning import is_on
from .closures import device_of, is_still, names_of, store_numbers
from .pytree import TreeSpec, flatten, objects_of, unflatten
from .recaptures import Recaptures
from .replay import Capture, runtime_number
from .trace import traced

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
MAX_CAPTURES = 64  # kept of one function, for different arguments; the least used go first
MAX_VARIANTS = 4  # for the same arguments: a model in training or not, gradients there or not


class Jit:
    """A function with its captures. Made by `jit`."""

    def __init__(self, function: Callable[..., Any], static: Sequence[str | int]) -> None:
        self.function = function
        self._static = _static_places(function, static)
        self._captures: OrderedDict[Any, list[Capture]] = OrderedDict()
        self._recaptures = Recaptures()
        self._lock = threading.RLock()
        functools.update_wrapper(self, function, updated=())  # a callable's attributes are its own

    def __repr__(self) -> str:
        return f"<jit of {self._name()}: {self.captures} captured>"

    def _name(self) -> str:
        return str(getattr(self.function, "__qualname__", repr(self.function)))

    def __get__(self, instance: Any, owner: type) -> Any:
        return self if instance is None else functools.partial(self, instance)

    @property
    def captures(self) -> int:
        """How many calls are captured: one for each combination of shapes, dtypes and static arguments."""
        return sum(map(len, self._captures.values()))

    def clear(self) -> None:
        """Forget what was captured."""
        with self._lock:
            self._captures.clear()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if current_trace() is not None:  # inside of another captured function: part of that
            return self.function(*args, **kwargs)
        with stage("build"):
            return self._run(args, kwargs)

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        arguments: list[Any] = []
        specs = [self._flattened(at, each, arguments) for at, each in enumerate(args)]
        named = [(name, self._flattened(name, each, arguments)) for name, each in kwargs.items()]
        if is_checked():
            return self._plainly(specs, named, arguments)
        # Kernels chosen by measuring are others; so is what a function does to one tensor under two names.
        key = (tuple(specs), tuple(named), _repeats(arguments), is_on(), grad_mode.on and _asking(arguments))
        with self._lock:
            variants = self._captures.setdefault(key, [])
            self._captures.move_to_end(key)
            for capture in variants:
                leaves = capture.leaves(arguments)
                if leaves is not None:
                    self._recaptures.in_a_row = 0
                    break
            else:
                self._recaptures.count(self._name(), key, variants, arguments)
                with one_at_a_time:
                    capture = self._capture(specs, named, arguments)
                leaves = capture.first_leaves(arguments)
                alive = [each for each in variants if not each.is_dead()]
                variants[:] = [capture, *alive[: MAX_VARIANTS - 1]]
                if len(self._captures) > MAX_CAPTURES:
                    self._captures.popitem(last=False)
            return capture.run(arguments, leaves)

    def _plainly(self, specs: list[TreeSpec], named: list[tuple[str, TreeSpec]], arguments: list[Any]) -> Any:
        """The function's own code, over its tensors themselves and numbers as it would get them."""
        device = self._device(specs, arguments)
        given = iter([each if isinstance(each, Tensor) else _number(each, device) for each in arguments])
        args = [unflatten(each, given) for each in specs]
        return self.function(*args, **{name: unflatten(each, given) for name, each in named})

    def _device(self, specs: list[TreeSpec], arguments: list[Any]) -> Any:
        """Where numbers are."""
        objects = [each for spec in specs for each in objects_of(spec)]
        return device_of(self.function, [*arguments, *objects])

    def _flattened(self, place: int | str, value: Any, arguments: list[Any]) -> TreeSpec:
        if place not in self._static:
            return flatten(value, arguments, numbers=True)
        try:
            hash(value)
        except TypeError:
            raise ArgumentError(
                f"{self!r}: the static argument {place!r} is a {type(value).__name__}, which cannot "
                "be compared with other calls'; pass something hashable, such as a tuple"
            ) from None
        return TreeSpec("static", (type(value), value))

    def _capture(
        self, specs: list[TreeSpec], named: list[tuple[str, TreeSpec]], arguments: list[Any]
    ) -> Capture:
        """Run the function over placeholders for its tensors and numbers, and keep what it would compute."""
        compute_waiting()
        store_numbers()
        compute([each.node for each in arguments if isinstance(each, Tensor)])
        device = self._device(specs, arguments)
        made = {id(each): _placeholder(each, device) for each in arguments if isinstance(each, Tensor)}
        _share_alike([each for each in arguments if isinstance(each, Tensor)], made)
        given = [
            made[id(each)] if isinstance(each, Tensor) else _placeholder(each, device) for each in arguments
        ]
        was = [each.node for each in given]
        places = iter(given)
        args = [unflatten(each, places) for each in specs]
        kwargs = {name: unflatten(each, places) for name, each in named}
        names = names_of(self.function)
        found = traced(lambda: self.function(*args, **kwargs), was)
        unchanged = [each for each in names if is_still(each[0](), each[1])]  # not those it gives to others
        return Capture(found, given, was, [*unchanged, *found.watched])


def _repeats(arguments: Sequence[Any]) -> tuple[Any, ...]:
    """For each tensor the first place it is in, and how it shares elements with others; nothing where all
    are different.
    """
    tensors = [each for each in arguments if isinstance(each, Tensor)]
    if len(tensors) < 2:
        return (), ()
    numbers = list(map(id, tensors))
    same = tuple(map(numbers.index, numbers)) if len(set(numbers)) < len(numbers) else ()
    return same, relation([each.alias for each in tensors])


def _share_alike(tensors: Sequence[Tensor], placeholders: dict[int, Tensor]) -> None:
    """Have placeholders share elements with each other as the tensors do that they stand for."""
    known: dict[int, Alias] = {}
    for each in {id(each): each for each in tensors}.values():
        placeholder = placeholders[id(each)]
        if each.alias is None:
            base_of(placeholder)  # so that a result which is a view of it is seen to be one
        else:
            join(placeholder, mirrored(each.alias, known))


def _asking(arguments: Sequence[Any]) -> tuple[int, ...]:
    """The places of tensors that require gradients."""
    return tuple(
        [
            at
            for at, each in enumerate(arguments)
            if isinstance(each, Tensor) and each.node.history is not None
        ]
    )


def _placeholder(value: Any, device: Any) -> Tensor:
    """A tensor of its own for an argument, so that two arguments are never taken for one."""
    if isinstance(value, Tensor):
        sig = value.node.sig
        node = Node(
            signature(LEAF, sig.shape, sig.dtype, sig.device), (), value.node.storage, value.node.where
        )
        made = Tensor(node)
        if value.requires_grad:
            node.history = GradientSlot(made)
        return made
    value = runtime_number(value)
    if isinstance(value, float):
        return Tensor(scalar(RuntimeFloat(value), dtypes.float32, device))
    return Tensor(scalar(RuntimeInt(value), dtypes.int32, device))


def _number(value: Any, device: Any) -> Tensor:
    """An argument's number as a captured function gets it, but known."""
    value = runtime_number(value)
    return Tensor(scalar(value, dtypes.float32 if isinstance(value, float) else dtypes.int32, device))


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
    - A number, text or object that its code names, but that is no argument, is the one of that name at each
      call; another one means capturing anew, and where that is so at call after call, a warning says what
      changed. What lies deeper, a number in `self.rate`, is the one it was when captured: give tensors there
      new values in place (`w[...] = …`).
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
