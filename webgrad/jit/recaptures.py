"""The warning that a function is captured at every call: what changed, and what to do.

In: a call that no capture fits, and the captures and the call before it. Out: a warning, once for each
function, after several captures in a row. The invariant: a call that is replayed costs nothing here.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from weakref import ref

from ..tensor import Tensor
from .closures import contents_of, is_still
from .pytree import TreeSpec, objects_of
from .replay import Capture

MOST_IN_A_ROW = 5  # captures for the same arguments before the warning
MOST_ARGUMENTS = 16  # and for different ones, which a program may go through before it starts
LONGEST = 60  # characters of a value in a message


class Change(NamedTuple):
    """What was one thing and is another, and what to do about it."""

    what: str
    advice: str


class Recaptures:
    """How often a function was captured in a row."""

    __slots__ = ("_key", "_warned", "in_a_row")

    def __init__(self) -> None:
        self.in_a_row = 0  # a call that is replayed sets it to 0
        self._key: Any = None
        self._warned = False

    def count(self, name: str, key: Any, variants: Sequence[Capture], arguments: Sequence[Any]) -> None:
        """Note that a call is captured, and warn where that was so for too many in a row."""
        last, self._key = self._key, key
        self.in_a_row += 1
        if self._warned or self.in_a_row < (MOST_IN_A_ROW if variants else MOST_ARGUMENTS):
            return
        change = change_since(variants[0], arguments) if variants else change_of_key(last, key)
        if change is not None:
            self._warned = True
            warnings.warn(
                f"webgrad.jit: {name} was captured {self.in_a_row} times in a row, which costs far more than "
                f"to replay a captured call: {change.what}; {change.advice}",
                stacklevel=4,
            )


# The same arguments


def change_since(capture: Capture, arguments: Sequence[Any]) -> Change | None:
    """Why a capture does not fit a call with the same kinds of arguments."""
    watched = [*zip(capture.named, capture.values, strict=True), *capture.versioned]
    for get, then in watched:
        try:
            now = get()
        except ReferenceError:
            return Change("an object whose settings it asks for is gone", _ONCE)
        if not is_still(now, then):
            return _of_value(get, then, now)
    for get, then in zip(capture.referring, capture.referred, strict=True):
        if (now := get()) is not then():
            what = "tensor" if isinstance(now, Tensor) else type(now).__name__
            advice = (
                "write into the one there is (state[...] = new), or pass it as an argument"
                if what == "tensor"
                else _ONCE
            )
            return Change(f"{_name_of(get)} is another {what}", advice)
    for owners, sig in zip(capture.owners, capture.sigs, strict=True):
        alive = [tensor for each in owners if (tensor := each()) is not None]
        node = getattr(alive[0], "node", None) if alive else None
        then = f"{sig.dtype.name} {sig.shape}"
        if node is None:
            return Change(f"a tensor that it closes over, {then}, is gone", _ONCE)
        now = f"{node.sig.dtype.name} {node.sig.shape}"
        if now != then:
            return Change(f"a tensor that it closes over was {then} and is {now}", _PAD)
    if any((slot := each()) is None or slot.node is not None for each in capture.empty):
        return Change(
            "a gradient is there that was None before",
            "call zero_grad() inside of the function, or set gradients to None before each call",
        )
    return Change(
        "a tensor that it closes over no longer shares its value with another one, or another gradient is "
        "asked of it",
        "keep these the same from call to call",
    )


def _of_value(get: Callable[[], Any], then: Any, now: Any) -> Change:
    is_number = isinstance(now, int | float) and not isinstance(now, bool)
    advice = "change it less often, or have a function of its own for each value"
    if is_number and _is_name(get):
        advice = "pass it as an argument, which may be another number at every call"
    if isinstance(get, functools.partial) and len(get.args) == 1 and not _is_name(get):
        return Change(f"the members or hooks of {_name_of(get)} are others", _ONCE)
    return Change(f"{_name_of(get)} was {_short(then)} and is {_short(now)}", advice)


def _is_name(get: Callable[[], Any]) -> bool:
    """Whether it is a name in the function's code, not an object's attribute."""
    return isinstance(get, functools.partial) and not (get.args and isinstance(get.args[0], ref))


def _name_of(get: Callable[[], Any]) -> str:
    """What gives a value, in the user's words."""
    if not isinstance(get, functools.partial):
        return f"what webgrad.watch asks {getattr(get, '__qualname__', 'for')}"
    if get.func is contents_of:
        return f"the enclosing function's {get.args[1]!r}"
    if _is_name(get):
        return f"the global name {get.args[0]!r}"
    owner = type(get.args[0]()).__name__
    return f"{owner}.{get.args[1].lstrip('_')}" if len(get.args) > 1 else f"a {owner}"


# Other arguments


def change_of_key(last: Any, key: Any) -> Change | None:
    """What differs between the arguments of two calls."""
    if last is None:
        return None
    (specs, named, *others), (last_specs, last_named, *last_others) = key, last
    if len(specs) != len(last_specs) or [name for name, _ in named] != [name for name, _ in last_named]:
        return Change("it was called with other arguments", "call it with the same ones")
    pairs: list[tuple[Any, TreeSpec, TreeSpec]] = [*zip(range(len(specs)), last_specs, specs, strict=True)]
    pairs += [(repr(name), then, now) for (name, now), (_, then) in zip(named, last_named, strict=True)]
    for place, then, now in pairs:
        if then != now:
            return _of_spec(f"argument {place}", then, now)
    if others != last_others:
        return Change(
            "its tensors share elements, or require gradients, in another way than before",
            "keep that the same from call to call",
        )
    return None


def _of_spec(place: str, then: TreeSpec, now: TreeSpec) -> Change:
    if then[:2] == now[:2] and len(then.parts) == len(now.parts):
        parts = zip(then.parts, now.parts, strict=True)
        at, old, new = next((at, *pair) for at, pair in enumerate(parts) if pair[0] != pair[1])
        inner = repr(now.data[at]) if now.kind == "dict" else at
        return _of_spec(f"{place}[{inner}]", old, new)
    if now.kind == "static" and objects_of(now):
        return Change(f"{place} was another {type(objects_of(now)[0]).__name__}", _ONCE)
    advice = _PAD if now.kind == "tensor" == then.kind else _ARGUMENT
    return Change(f"{place} was {_spec_text(then)} and is {_spec_text(now)}", advice)


def _spec_text(spec: TreeSpec) -> str:
    if spec.kind == "tensor":
        shape, dtype, device = spec.data
        on = "" if device.name == "cpu" else f" on {device.name}"
        return f"{dtype.name} {shape}{on}"
    if spec.kind == "static":
        return _short(objects_of(spec)[0] if objects_of(spec) else spec.data[1])
    return f"{spec.kind} of {len(spec.parts)}" if spec.parts else f"a {spec.kind}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


_ONCE = "make it once, outside of the loop"
_PAD = "pad it to one of a few sizes, and say with a mask what counts"
_ARGUMENT = "numbers that are not static may be others at every call; of other values use few"
