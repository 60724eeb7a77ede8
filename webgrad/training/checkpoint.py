"""Checkpoints: all that training needs to go on bit by bit, in one safetensors file.

In: a model, an optimiser, and whatever else has a `state_dict`. Out: a file, written whole or not at all; and
the same objects, as they were. The invariant: what does not fit is refused before anything is changed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import webgrad as wg

from .tree import differences, flatten, like, unflatten

__all__ = ["SUFFIXES", "Checkpoint", "load_checkpoint", "save_checkpoint"]

SUFFIXES = (".safetensors",)  # of checkpoints
_KEY, _VERSION = "webgrad.checkpoint", 1
_SHOWN = 8  # differences in a message


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a checkpoint holds beside the states of objects."""

    step: int
    extra: dict[str, Any] = field(default_factory=dict)


def save_checkpoint(
    path: str | os.PathLike[str],
    model: Any = None,
    optimiser: Any = None,
    schedule: Any = None,
    loader: Any = None,
    scaler: Any = None,
    step: int = 0,
    random: bool = True,
    extra: Mapping[str, Any] | None = None,
) -> None:
    """Write the states of these objects to a .safetensors file: whole, or not at all.

    With `random`, the state of `webgrad.random` is in it too. `extra` is anything made of tensors, numbers,
    texts, lists and dicts.

    >>> import tempfile
    >>> path = tempfile.gettempdir() + "/webgrad-checkpoint.safetensors"
    >>> wg.training.save_checkpoint(path, step=7, extra={"note": "before the holidays"})
    >>> wg.training.load_checkpoint(path).extra["note"]
    'before the holidays'
    """
    wg.io.check_writable(path, SUFFIXES)
    objects = _given(model, optimiser, schedule, loader, scaler)
    values = {name: each.state_dict() for name, each in objects.items()}
    if random:
        values["random"] = wg.random.get_state()
    values["step"], values["extra"] = step, dict(extra or {})
    tensors: dict[str, Any] = {}
    tree = {name: flatten(value, name, tensors) for name, value in values.items()}
    wg.eval([each for each in tensors.values() if isinstance(each, wg.Tensor)])
    text = json.dumps({"version": _VERSION, "tree": tree})
    wg.io.save(path, tensors, {_KEY: text})


def load_checkpoint(
    path: str | os.PathLike[str],
    model: Any = None,
    optimiser: Any = None,
    schedule: Any = None,
    loader: Any = None,
    scaler: Any = None,
    random: bool = True,
) -> Checkpoint:
    """Give these objects the states that a checkpoint holds; its step and `extra` are returned.

    An object that the file has no state of, or one of other keys, shapes or dtypes, is an error, and then
    nothing was changed. States of objects that are not given are left alone.

    >>> import tempfile
    >>> path = tempfile.gettempdir() + "/webgrad-model.safetensors"
    >>> model = wg.nn.Linear(2, 1)
    >>> wg.training.save_checkpoint(path, model, step=3)
    >>> wg.training.load_checkpoint(path, model).step
    3
    """
    values = _values(path)
    objects = _given(model, optimiser, schedule, loader, scaler)
    states = {}
    faults: list[str] = []
    for name, each in objects.items():
        if name not in values:
            faults.append(f"it has no {name}")
            continue
        mine = each.state_dict()
        faults += differences(name, mine, values[name])
        states[name] = mine
        if not faults and hasattr(each, "check_state_dict"):
            each.check_state_dict(values[name])
    if faults:
        more = f", and {len(faults) - _SHOWN} more" if len(faults) > _SHOWN else ""
        raise wg.ModelFileError(
            f"{path} does not fit: {'; '.join(islice(faults, _SHOWN))}{more}. Nothing was changed"
        )
    placed = {name: like(mine, values[name]) for name, mine in states.items()}
    for name, each in objects.items():
        each.load_state_dict(placed[name])
    if random and "random" in values:
        wg.random.set_state(values["random"])
    return Checkpoint(int(values["step"]), values["extra"])


def _given(model: Any, optimiser: Any, schedule: Any, loader: Any, scaler: Any) -> dict[str, Any]:
    objects = {
        "model": model,
        "optimiser": optimiser,
        "schedule": schedule,
        "loader": loader,
        "scaler": scaler,
    }
    for name, each in objects.items():
        if each is not None and not (hasattr(each, "state_dict") and hasattr(each, "load_state_dict")):
            raise wg.DTypeError(
                f"checkpoint: {name} is a {type(each).__name__}, which has no state_dict and load_state_dict"
            )
    return {name: each for name, each in objects.items() if each is not None}


def _values(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a checkpoint holds, with its tensors on the cpu."""
    text = wg.io.load_metadata(path).get(_KEY)
    if text is None:
        raise wg.ModelFileError(
            f"{path} is not a checkpoint: it has tensors, and no other state; webgrad.io.load reads those"
        )
    try:
        found = json.loads(text)
        if found["version"] != _VERSION:
            raise wg.ModelFileError(
                f"{path} is a checkpoint of version {found['version']}; this webgrad reads version {_VERSION}"
            )
        tensors = wg.io.load(path, device="cpu")
        if wg.io.load_metadata(path).get(_KEY) != text:  # training goes on elsewhere, and replaced the file
            return _values(path)
        values = {name: unflatten(each, tensors) for name, each in found["tree"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, wg.WebgradError):
            raise
        raise wg.ModelFileError(f"{path} is damaged: what is beside its tensors cannot be read") from None
    if not {"step", "extra"} <= values.keys():
        raise wg.ModelFileError(f"{path} is damaged: it does not say which step it is of")
    return values
