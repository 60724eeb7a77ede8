"""ONNX models for the commands: which names mean one, and the options that say what it is given.

In: a name of the catalogue, a source or a path, and `--input`, `--shape` and others. Out: a model, and an
array for each of its inputs: read from a file, written out, or random.
"""

from __future__ import annotations

import argparse
import math
import shlex
from collections.abc import Sequence
from typing import Any

import webgrad as wg

from ..arrays import Array, np
from .onnx_values import layout_of, random_value, usual_shape, value_of
from .options import checked, clean, whole

__all__ = ["add_inputs", "given_inputs", "is_onnx", "load", "random_inputs", "what_to_give"]

_SUFFIX = ".onnx"


def is_onnx(name: str) -> bool:
    """Whether a name means an ONNX model: its own end says so, or the catalogue, or what was pulled."""
    entry = wg.models.catalogue().get(name)
    if entry is not None:
        return entry.family == "onnx"
    if name.lower().endswith(_SUFFIX):
        return True
    return any(each.name == name and each.main.endswith(_SUFFIX) for each in wg.models.pulled())


def load(name: str, device: Any = None) -> wg.onnx.Model:
    """The model, pulled first if it is not here; a device that is not there is told of before that."""
    wg.open_device(device)
    return wg.onnx.load(name, device=device)


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """Add --input, --shape, --mean, --std and --seed."""
    group = parser.add_argument_group("what an ONNX model is given")
    kinds = "a .npy, .wav or picture file, or numbers (3, or 1,2,3); may be given several times"
    group.add_argument("--input", action="append", default=[], metavar="NAME=VALUE", help=kinds)
    random = "the lengths of a random input; may be given several times"
    group.add_argument("--shape", action="append", default=[], metavar="NAME=1,3,224,224", help=random)
    numbers = checked(_numbers, "a number, or numbers with commas between them")
    colours = "the colours of a picture, from 0 to 1: a number, or one for each channel"
    group.add_argument("--mean", type=numbers, default="0", metavar="N", help=f"is taken from {colours} (0)")
    group.add_argument("--std", type=numbers, default="1", metavar="N", help=f"divides {colours} (1)")
    seed = checked(whole(0), "an integer, 0 or more")
    group.add_argument("--seed", type=seed, default=0, metavar="N", help="of random inputs (0)")


def _numbers(text: str) -> list[float]:
    found = [float(each) for each in text.split(",")]
    if not all(map(math.isfinite, found)):
        raise ValueError
    return found


def given_inputs(model: wg.onnx.Model, options: Any) -> dict[str, Array]:
    """The inputs that options give."""
    inputs = {each.name: each for each in model.inputs}
    given = _by_name(inputs, options.input, "--input")
    return {name: value_of(inputs[name], text, options.mean, options.std) for name, text in given.items()}


def random_inputs(model: wg.onnx.Model, options: Any) -> dict[str, Array]:
    """The inputs that options give, and random ones for all others."""
    inputs = {each.name: each for each in model.inputs}
    found = given_inputs(model, options)
    shapes = {name: _shape_of(text) for name, text in _by_name(inputs, options.shape, "--shape").items()} | {
        name: array.shape for name, array in found.items()
    }
    sides = {
        side: length
        for name, shape in shapes.items()
        for side, length in zip(inputs[name].shape or (), shape, strict=False)
        if isinstance(side, str)
    }
    random = np.random.default_rng(options.seed)
    for name, each in inputs.items():
        if name not in found:
            found[name] = random_value(each, shapes.get(name, usual_shape(each, sides)), random)
    return {name: found[name] for name in inputs}


def what_to_give(model: wg.onnx.Model) -> str:
    """Options that would give a model its inputs, with the kind of file that fits each."""
    return " ".join(f"--input {shlex.quote(each.name)}={_usual(each)}" for each in model.inputs)


def _usual(value: wg.onnx.Value) -> str:
    if value.shape is not None and all(each == 1 for each in value.shape):
        return "1"
    return "picture.png" if layout_of(value) else "file.npy"


def _by_name(inputs: dict[str, Any], given: Sequence[str], option: str) -> dict[str, str]:
    """What an option gives each input; a model of one input needs no name."""
    found: dict[str, str] = {}
    for each in map(clean, given):
        name, mark, value = each.partition("=")
        if not mark and len(inputs) == 1:
            name, value = next(iter(inputs)), each
        if name not in inputs:
            told = f"the model has no input {name!r}, only" if mark else "say of which input: NAME=…, of"
            raise wg.ArgumentError(f"{option} {each}: {told} {', '.join(inputs) or 'none'}")
        found[name] = value
    return found


def _shape_of(text: str) -> tuple[int, ...]:
    try:
        shape = tuple(int(each) for each in text.split(",") if each.strip())
    except ValueError:
        shape = (-1,)
    if any(each < 0 for each in shape):
        raise wg.ArgumentError(f"--shape …={text}: a shape is lengths with commas between them: 1,3,224,224")
    return shape
