"""The inputs of a call, checked against what a model's file says of them.

In: arguments by place and by name. Out: values by name, of the declared types. The invariant: what does not
fit is refused before anything runs, with the name, what was given and what is wanted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import webgrad as wg

from ..arrays import np
from .graph import Value
from .operators.values import stored
from .types import ElementType

__all__ = ["bound", "checked"]


def bound(
    model: object, inputs: Sequence[Value], args: Sequence[Any], named: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments by name; every input that is no optional must be there. Errors name the `model`."""

    def refuse(what: str) -> NoReturn:
        raise wg.ArgumentError(f"{model!r} {what}; it takes {', '.join(map(str, inputs)) or 'nothing'}")

    names = [each.name for each in inputs]
    if len(args) > len(names):
        refuse(f"is called with {len(args)} inputs by place")
    given = dict(zip(names, args, strict=False))
    for name, value in named.items():
        if name not in names:
            refuse(f"has no input {name!r}")
        if name in given:
            raise wg.ArgumentError(f"the input {name!r} is given twice, by its place and by its name")
        given[name] = value
    missing = [each.name for each in inputs if each.name not in given and each.kind != "optional"]
    if missing:
        refuse(f"is called without {', '.join(missing)}")
    return {each.name: checked(each, given.get(each.name)) for each in inputs}


def checked(value: Value, given: Any) -> Any:
    """What is given for an input, as it is declared: a tensor or array, a list of them, or None."""
    if value.kind == "tensor" and value.element is not None:  # the most frequent
        found = _typed(value, given)
        _check_shape(value, found)
        return found
    is_unknown = value.kind == "tensor" and value.element is None and value.shape is None
    if given is None and (is_unknown or value.kind == "optional"):
        return None
    if is_unknown and isinstance(given, list | tuple):
        return given
    if value.kind == "sequence" or (isinstance(given, list | tuple) and value.kind == "optional"):
        if not isinstance(given, list | tuple):
            _refuse(value, given, "a list of tensors or arrays")
        return [_typed(value, each) for each in given]
    if value.kind not in ("tensor", "optional", "sparse"):
        return given
    found = _typed(value, given)
    _check_shape(value, found)
    return found


def _typed(value: Value, given: Any) -> Any:
    """A tensor or an array of the declared type; plain numbers, and types that it holds, are converted."""
    if isinstance(given, wg.Tensor):
        return _converted_tensor(value, given)
    element = value.element
    if given.__class__ is np.ndarray and element is not None and given.dtype is element.numpy:
        return _texts(value, given) if element.name == "string" else given
    is_plain = not isinstance(given, np.ndarray | np.generic)
    try:
        array = np.asarray(given)
    except (TypeError, ValueError):
        _refuse(value, given, "a tensor, an array, or numbers in lists of one length")
    if element is None:
        return array.astype(object) if array.dtype.kind in "US" else array
    wanted = element.numpy
    if element.name == "string":
        return _texts(value, array)
    if array.dtype == wanted:
        return array
    if array.dtype.kind not in "biufcV" or not (is_plain or _holds(wanted, array.dtype)):
        _refuse(value, given, f"of {element.name}: convert it with x.astype({_spelled(element)})")
    if is_plain and array.dtype.kind == "f" and wanted.kind in "iub":
        _refuse(value, given, f"of {element.name}, not of floats")
    return array.astype(wanted)


def _converted_tensor(value: Value, given: wg.Tensor) -> wg.Tensor:
    element = value.element
    if element is None or given.dtype.name == element.name:
        return given
    if element.webgrad is None or not _holds(element.numpy, given.dtype.numpy):
        _refuse(value, given, f"of {element.name}: convert it with x.astype(webgrad.{element.name})")
    return given.astype(stored(element.name, given.device))


def _holds(wanted: Any, given: Any) -> bool:
    """Whether a type holds all values of another; integers of 32 bits are taken for 64 and back: GPUs that
    have no 64 bits give the former.
    """
    if {wanted.name, given.name} == {"int32", "int64"}:
        return True
    is_standard = "V" not in (wanted.kind, given.kind)
    return is_standard and wanted.kind == given.kind and bool(np.can_cast(given, wanted, "safe"))


def _texts(value: Value, array: Any) -> Any:
    """Texts as arrays of Python's."""
    if array.dtype.kind not in "OUS" or not all(isinstance(each, str | bytes) for each in array.reshape(-1)):
        _refuse(value, array, "of texts")
    flat = [each.decode() if isinstance(each, bytes) else str(each) for each in array.reshape(-1)]
    found = np.empty(array.shape, object)
    found.reshape(-1)[:] = flat
    return found


def _check_shape(value: Value, given: Any) -> None:
    """The rank, and each side that the file has a number for."""
    if value.shape is None:
        return
    shape = tuple(given.shape)
    pairs = zip(value.shape, shape, strict=False)
    wrong = [size for side, size in pairs if side != size and isinstance(side, int)]
    if wrong or len(shape) != len(value.shape):
        raise wg.ShapeError(f"the input {value} is given a value of shape {list(shape)}")


def _spelled(element: ElementType) -> str:
    return f"numpy.{element.name}" if element.numpy.isbuiltin else f"ml_dtypes.{element.name}"


def _refuse(value: Value, given: Any, wanted: str) -> NoReturn:
    what = f"{given.dtype}" if hasattr(given, "dtype") else f"a {type(given).__name__}"
    raise wg.DTypeError(f"the input {value} is given {what}; it must be {wanted}")
