"""Other libraries' names of arguments: x.sum(dim=1, keepdim=True) is x.sum(axis=1, keepdims=True).

In: a function of webgrad. Out: the same for users, which takes the names of `SPELLINGS` too, and names the
right one where a name is unknown. Functions within webgrad call the original, and a call by webgrad's own
names passes through one more frame, nothing else.
"""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any, NoReturn, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

# (another name, webgrad's own, the functions where it is so; of all that have such an argument, if none)
SPELLINGS = (
    ("dim", "axis", ""),
    ("dim", "axes", "fft2 fftn fftshift ifft2 ifftn ifftshift irfft2 irfftn rfft2 rfftn"),
    ("dims", "axis", "flip roll"),
    ("dims", "axes", "permute_dims rot90 tensordot"),
    ("keepdim", "keepdims", ""),
    ("start_dim", "start_axis", ""),
    ("end_dim", "end_axis", ""),
    ("dim0", "axis1", "swapaxes"),
    ("dim1", "axis2", "swapaxes"),
    ("dim1", "axis1", "diagonal"),
    ("dim2", "axis2", "diagonal"),
    ("ddof", "correction", ""),
    ("unbiased", "correction", ""),
    ("shifts", "shift", "roll"),
    ("end", "stop", "linspace"),
    ("steps", "num", "linspace"),
    ("n", "n_rows", "eye"),
    ("m", "n_cols", "eye"),
    ("dims", "repetitions", "tile"),
    ("reps", "repetitions", "tile"),
    ("a_min", "min", "clip"),
    ("a_max", "max", "clip"),
    ("diagonal", "k", "diag tril triu"),
    ("size", "shape", "empty full ones zeros bernoulli choice integers normal uniform"),
    ("loc", "mean", "normal"),
    ("scale", "std", "normal"),
)
_OWN = frozenset(own for _, own, _ in SPELLINGS)
_ABSENT: Any = type("absent", (), {"__repr__": lambda self: "..."})()
_KINDS = inspect.Parameter
_made: dict[Callable[..., Any], Callable[..., Any]] = {}


def other_names(function: Callable[..., Any]) -> dict[str, str]:
    """The other names that a function's arguments have, and its own ones; none where it takes any name."""
    code = inspect.unwrap(function).__code__
    if code.co_flags & inspect.CO_VARKEYWORDS:
        return {}
    name, own = function.__name__, code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return {
        other: known
        for other, known, functions in SPELLINGS
        if known in own and other not in own and (not functions or name in functions.split())
    }


def spelled(function: Function) -> Function:
    """The function with the other names of its arguments; itself, where they have none."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None or _OWN.isdisjoint(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]):
        return function
    found = _made.get(function)
    if found is None:
        names = other_names(function)
        found = _made[function] = _with_other_names(function, names) if names else function
        _made[found] = found
    return found  # type: ignore[return-value]


def all_spelled(names: Iterable[str], values: dict[str, Any]) -> dict[str, Any]:
    """Those of a module's public names that are functions with other names for their arguments."""
    kept = {name: values[name] for name in names if inspect.isfunction(values[name])}
    return {name: spelled(each) for name, each in kept.items() if spelled(each) is not each}


def _with_other_names(function: Callable[..., Any], names: dict[str, str]) -> Callable[..., Any]:
    """A function of the same signature that calls it, or `_again` where a name is none of its own."""
    own = inspect.unwrap(function)
    code, name = own.__code__, function.__name__
    given, count = code.co_varnames, code.co_argcount
    of_places, of_names = given[:count], given[count : count + code.co_kwonlyargcount]
    values = own.__defaults__ or ()
    defaults = dict(zip(of_places[count - len(values) :], values, strict=True)) | (own.__kwdefaults__ or {})
    first = next(
        (place for place, each in enumerate(of_places) if each in defaults or each in names.values()), count
    )
    defaults = {each: defaults.get(each, _ABSENT) for each in (*of_places[first:], *of_names)}
    heads = [f"{each}=_defaults[{each!r}]" if each in defaults else each for each in (*of_places, *of_names)]
    rest = "*" + given[count + len(of_names)] if code.co_flags & inspect.CO_VARARGS else ""
    if rest or of_names:
        heads.insert(count, rest or "*")
    if code.co_posonlyargcount:
        heads.insert(code.co_posonlyargcount, "/")
    incomplete = "".join(f" or {each} is _absent" for each, value in defaults.items() if value is _ABSENT)
    passed = [*of_places, *([rest] if rest else []), *(f"{each}={each}" for each in of_names)]
    text = (
        f"def {name}({', '.join(heads)}, **_others):\n"
        f"    if _others{incomplete}:\n"
        f"        return _again(_function, _others, locals())\n"
        f"    return _function({', '.join(passed)})\n"
    )
    scope = {"_defaults": defaults, "_absent": _ABSENT, "_again": _again, "_function": function}
    exec(compile(text, __file__, "exec"), scope)  # as a line of this file: not one of the user's
    return functools.wraps(function)(scope[name])


@functools.cache
def _names_of(function: Callable[..., Any]) -> tuple[dict[str, str], dict[str, inspect.Parameter]]:
    """The other names of a function's arguments, and its own ones."""
    return other_names(function), dict(inspect.signature(function).parameters)


def _again(function: Callable[..., Any], others: dict[str, Any], given: dict[str, Any]) -> Any:
    """The function called with all arguments under its own names."""
    own, parameters = _names_of(function)
    values = {name: given[name] for name in parameters if given[name] is not _ABSENT}
    for other, value in others.items():
        if other not in own:
            refuse_keyword(function.__name__, other, [*parameters, *own])
        name = own[other]
        if name in values and values[name] is not parameters[name].default:
            raise TypeError(
                f"{function.__name__}() was given {name} and {other}, which are the same: give one of them"
            )
        values[name] = int(value) if other == "unbiased" else value
    positional: list[Any] = []
    keywords = {}
    for name, each in parameters.items():
        if each.kind is _KINDS.VAR_POSITIONAL:
            positional += values[name]
        elif name in values and each.kind is _KINDS.POSITIONAL_ONLY:
            positional.append(values[name])
        elif name in values:
            keywords[name] = values[name]
    return function(*positional, **keywords)


def refuse_keyword(function: str, keyword: str, known: Iterable[str]) -> NoReturn:
    """Say which argument may have been meant."""
    names = list(known)
    near = difflib.get_close_matches(keyword, names, 1, 0.5)
    hint = f": did you mean {near[0]!r}?" if near else f"; it takes {', '.join(names)}"
    raise TypeError(f"{function}() has no argument {keyword!r}{hint}")
