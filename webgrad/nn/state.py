"""State dicts: values by dotted names, checked against a module's tensors and written to them in place.

In: a module's parameters and persistent buffers by name, and a mapping of values. Out: what did not fit. The
invariant: where names or shapes do not fit, nothing is changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import webgrad as wg

from .parameter import UninitializedBuffer, UninitializedParameter

__all__ = ["LoadedState", "load_state"]


class LoadedState(NamedTuple):
    """What `load_state_dict` found no values for, and what it found no place for."""

    missing_keys: list[str]
    unexpected_keys: list[str]


def load_state(module: str, own: dict[str, wg.Tensor], state: Mapping[str, Any], strict: bool) -> LoadedState:
    """Write the values of a state to the tensors of a module of this name."""
    if not isinstance(state, Mapping):
        raise wg.DTypeError(
            f"load_state_dict takes a dict of tensors by their names, not a {type(state).__name__}"
        )
    found = LoadedState(
        [name for name in own if name not in state], [name for name in state if name not in own]
    )
    for name, tensor in own.items():
        if name in state and isinstance(tensor, UninitializedParameter | UninitializedBuffer):
            tensor.materialize(state[name].shape)
    values = {name: _value(name, state[name], tensor) for name, tensor in own.items() if name in state}
    _check_state(module, own, values, found, strict)
    with wg.no_grad():
        for name, value in values.items():
            own[name][...] = value
    return found


def _check_state(
    module: str, own: dict[str, wg.Tensor], values: dict[str, wg.Tensor], found: LoadedState, strict: bool
) -> None:
    wrong = [
        f"{name} is {own[name].shape} in the module and {value.shape} in the state"
        for name, value in values.items()
        if own[name].shape != value.shape
    ]
    lines = [f"shapes that differ: {'; '.join(wrong)}"] if wrong else []
    if strict and found.unexpected_keys:
        lines.insert(0, f"unexpected keys: {', '.join(map(str, found.unexpected_keys))}")
    if strict and found.missing_keys:
        lines.insert(0, f"missing keys: {', '.join(found.missing_keys)}")
    if lines:
        hint = "" if wrong and len(lines) == 1 else "; strict=False leaves names that do not fit alone"
        raise (wg.ShapeError if wrong else wg.ArgumentError)(
            f"load_state_dict of {module}: nothing was loaded{hint}\n  " + "\n  ".join(lines)
        )


def _value(name: str, given: Any, tensor: wg.Tensor) -> wg.Tensor:
    """A value of a state as this tensor would hold it; memory that is the user's is not kept."""
    try:
        value = given if isinstance(given, wg.Tensor) else wg.asarray(given, device=tensor.device, copy=True)
    except wg.DTypeError as error:
        raise wg.DTypeError(f"load_state_dict: {name}: {error}") from None
    return value.detach().to(tensor.dtype, device=tensor.device)
