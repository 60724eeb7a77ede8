"""States as trees: what is in a state_dict, taken apart into named tensors and plain text, and put together.

In: dicts, lists and tuples, to any depth, with tensors, numbers, texts and None at their ends. Out: tensors
by name, and a tree that JSON can hold, in which a tensor is its name; and the same value again, key by key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import webgrad as wg

from ..arrays import np

__all__ = ["differences", "flatten", "like", "unflatten"]


def flatten(value: Any, name: str, tensors: dict[str, Any]) -> Any:
    """The tree of a value; its tensors are added to `tensors`, under names that begin with `name`."""
    if isinstance(value, wg.Tensor | np.ndarray):
        while name in tensors:  # {"a.b": x, "a": {"b": y}}
            name += "'"
        tensors[name] = value
        return {"tensor": name}
    if isinstance(value, Mapping):
        wrong = [key for key in value if not (key is None or isinstance(key, bool | int | float | str))]
        if wrong:
            raise wg.DTypeError(
                f"a checkpoint's dicts have texts and numbers as keys; {name} has {wrong[0]!r}"
            )
        parts = [[key, flatten(each, f"{name}.{key}", tensors)] for key, each in value.items()]
        return {"dict": parts}
    if isinstance(value, list | tuple):
        parts = [flatten(each, f"{name}.{at}", tensors) for at, each in enumerate(value)]
        return {"list" if isinstance(value, list) else "tuple": parts}
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise wg.DTypeError(
        f"a checkpoint holds tensors, numbers, texts, None, and dicts, lists and tuples of them; {name} is a "
        f"{type(value).__name__}"
    )


def unflatten(tree: Any, tensors: Mapping[str, Any]) -> Any:
    """The value of a tree."""
    if not isinstance(tree, dict):
        return tree
    [(kind, parts)] = tree.items()
    if kind == "tensor":
        return tensors[parts]
    if kind == "dict":
        return {key: unflatten(each, tensors) for key, each in parts}
    found = [unflatten(each, tensors) for each in parts]
    return found if kind == "list" else tuple(found)


def differences(name: str, mine: Any, theirs: Any) -> Iterator[str]:
    """Why a state cannot take the place of another: keys, lengths, shapes and dtypes that differ."""
    if isinstance(mine, wg.Tensor):
        if not isinstance(theirs, wg.Tensor | np.ndarray):
            yield f"{name} is not a tensor there"
        elif tuple(theirs.shape) != tuple(mine.shape):
            yield f"{name} has shape {tuple(theirs.shape)} there, {tuple(mine.shape)} here"
        elif wg.as_dtype(theirs.dtype) is not mine.dtype:
            yield f"{name} is {wg.as_dtype(theirs.dtype).name} there, {mine.dtype.name} here"
    elif isinstance(mine, Mapping):
        if not isinstance(theirs, Mapping):
            yield f"{name} has no parts there"
            return
        yield from (f"{name}.{key} is missing" for key in mine if key not in theirs)
        # Settings that others have put there, a schedule's say, do no harm.
        others = [key for key in theirs if key not in mine and _has_tensors(theirs[key])]
        yield from (f"{name}.{key} is not expected" for key in others)
        for key in mine:
            if key in theirs:
                yield from differences(f"{name}.{key}", mine[key], theirs[key])
    elif isinstance(mine, list | tuple):
        if not isinstance(theirs, list | tuple) or len(theirs) != len(mine):
            count = len(theirs) if isinstance(theirs, list | tuple) else "no"
            yield f"{name} has {count} parts there, {len(mine)} here"
            return
        for at, (one, other) in enumerate(zip(mine, theirs, strict=True)):
            yield from differences(f"{name}.{at}", one, other)


def like(mine: Any, theirs: Any) -> Any:
    """A state whose tensors and tuples are like those whose place they are to take: device and class."""
    if isinstance(mine, wg.Tensor):
        return wg.asarray(theirs, device=mine.device)
    if isinstance(mine, Mapping) and isinstance(theirs, Mapping):
        return {key: like(mine.get(key), each) for key, each in theirs.items()}
    if isinstance(mine, list | tuple) and isinstance(theirs, list | tuple):
        parts = [like(one, other) for one, other in zip(mine, theirs, strict=True)]
        if hasattr(mine, "_fields"):  # a named tuple, which files hold as a plain one
            return type(mine)(*parts)
        return parts if isinstance(theirs, list) else tuple(parts)
    return theirs


def _has_tensors(value: Any) -> bool:
    parts = value.values() if isinstance(value, Mapping) else value
    if isinstance(value, Mapping | list | tuple):
        return any(map(_has_tensors, parts))
    return isinstance(value, wg.Tensor | np.ndarray)
