"""What optimisers check of what they are given: groups of parameters, and settings that are numbers.

In: an optimiser's name, and what it was given. Out: groups, or an error that names the optimiser.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import webgrad as wg
from webgrad import Tensor

__all__ = ["EMPTY", "check_numbers", "groups_of"]

# Settings, of those that have them, that are numbers from zero up.
NOT_NEGATIVE = (
    *("lr", "weight_decay", "eps", "momentum", "momentum_decay"),
    *("alpha", "lr_decay", "initial_accumulator_value"),
)
EMPTY = (
    "the list of parameters is empty; is it a generator that was used, or of a model whose modules are in a "
    "plain list, where they are not seen (webgrad.nn.ModuleList)?"
)


def groups_of(name: str, params: Any) -> list[dict[str, Any]]:
    """The groups that an optimiser was given: parameters alone are one."""
    if isinstance(params, Tensor):
        raise wg.ArgumentError(f"{name}: the parameters come as a list, not as one tensor: write [tensor]")
    if isinstance(params, Mapping):
        raise wg.ArgumentError(f"{name}: the parameters come as a list of tensors, or of dicts with 'params'")
    if not isinstance(params, Iterable) or hasattr(params, "parameters"):
        hint = "model.parameters()" if hasattr(params, "parameters") else "a list of tensors"
        raise wg.ArgumentError(f"{name} optimises parameters, not a {type(params).__name__}: give it {hint}")
    given = list(params)
    if not given:
        raise wg.ArgumentError(f"{name}: {EMPTY}")
    if isinstance(given[0], Mapping):
        return given
    if isinstance(given[0], tuple):  # of named_parameters()
        given = [each[1] for each in given]
    return [{"params": given}]


def check_numbers(name: str, group: Mapping[str, Any]) -> None:
    """Raise where a setting is negative, or a beta none."""
    for key in NOT_NEGATIVE:
        value = group.get(key, 0.0)
        if isinstance(value, Tensor):
            raise wg.ArgumentError(
                f"{name}: {key} is a tensor: give a number; captured steps see group[{key!r}] = … anyway"
            )
        if not value >= 0.0:
            raise wg.ArgumentError(f"{name}: {key} is {value!r}, and must not be negative")
    for at, beta in enumerate(group.get("betas", ())):
        if not 0.0 <= beta < 1.0:
            raise wg.ArgumentError(f"{name}: betas[{at}] is {beta!r}, and must be at least 0 and less than 1")
