"""`webgrad export model.onnx OUT`: a page with a form for an ONNX model, or with a picture for a classifier.

In: the options of `webgrad export`. Out: the page, and what kind it is. Shapes are those of the inputs that
are given, or of random ones; what the model needs to know beforehand (a rate, an axis) is as it is given. In
a browser there are no integers of 64 bits: inputs and outputs of these have 32.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import webgrad as wg

from ..arrays import Array, np
from .onnx_models import load, random_inputs
from .onnx_values import layout_of
from .options import clean

__all__ = ["export_onnx", "labels_of"]

NARROW = {"int64": np.int32, "uint64": np.uint32, "float64": np.float32}
LABELS = ("labels", "names", "classes", "class_names", "character")  # what metadata calls them


def export_onnx(options: Any, title: str, report: Callable[[str], None]) -> tuple[Path, str]:
    """Write the page; gives its path and kind."""
    model = load(options.model, options.device)
    given = random_inputs(model, options)
    known = {name: array for name, array in given.items() if model.is_known(name, array)}
    asked = {name: array for name, array in given.items() if name not in known}
    examples = {_plain(name): wg.asarray(_narrow(each), device="cpu") for name, each in asked.items()}
    function = _function(model, {_plain(name): name for name in asked}, known)
    scores = function(**examples)  # once, so that all weights are in place, and as a trial
    labels = labels_of(model, options.labels, [each.shape for each in scores.values()], asked)
    shapes = ", ".join(f"{name} {list(each.shape)}" for name, each in examples.items())
    report(f"planning for {shapes}" + (f"; {', '.join(known)} as given" if known else ""))
    page = wg.export(
        function,
        examples,
        options.out,
        name=title,
        labels=labels,
        shares=bool(labels) and _are_shares(next(iter(scores.values()))),
        mean=_one_or_several(options.mean),
        std=_one_or_several(options.std),
        single_file=options.single_file,
        overwrite=options.force,
    )
    return page, "classifier" if labels else "form"


def _function(
    model: wg.onnx.Model, names: Mapping[str, str], known: Mapping[str, Array]
) -> Callable[..., dict[str, wg.Tensor]]:
    """The model as a function of the tensors that a page asks for, by names that programs can use."""

    def run(**given: wg.Tensor) -> dict[str, wg.Tensor]:
        outputs = model(**{names[name]: each for name, each in given.items()}, **known)
        return {_plain(name): _in_32_bits(each) for name, each in outputs.items()}

    return run


def _one_or_several(numbers: list[float]) -> float | list[float]:
    return numbers if len(numbers) > 1 else numbers[0]


def _plain(name: str) -> str:
    word = re.sub(r"\W", "_", name, flags=re.ASCII)
    return f"_{word}" if not word or word[0].isdigit() else word


def _narrow(array: Array) -> Array:
    return array.astype(NARROW.get(array.dtype.name, array.dtype))


def _in_32_bits(value: Any) -> wg.Tensor:
    if not isinstance(value, wg.Tensor):
        raise wg.ArgumentError("export: the model gives a sequence or texts, and pages show tensors")
    return value.astype(NARROW[value.dtype.name]) if value.dtype.name in NARROW else value


# Labels


def labels_of(
    model: wg.onnx.Model, path: Path | None, shapes: list[tuple[int, ...]], asked: Mapping[str, Array]
) -> list[str]:
    """The names of a classifier's classes, a line each in a file, or from what the model says of itself.

    A model is one if it takes a picture, and gives as many scores as there are names.
    """
    if path is not None:
        try:
            return path.read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise wg.ArgumentError(f"--labels {path} cannot be read: {error}") from None
    pictures = [each for each in model.inputs if each.name in asked and layout_of(each)]
    if len(pictures) != 1 or len(asked) != 1 or len(shapes) != 1:
        return []
    count = int(np.prod(shapes[0]))
    found = (_listed(model.contents.metadata.get(each, "")) for each in LABELS)
    return next((each for each in found if len(each) == count), [])


def _are_shares(scores: wg.Tensor) -> bool:
    """Whether scores went through softmax."""
    array = scores.numpy()
    return bool(array.min() >= 0 and abs(array.sum() - 1) < 1e-3)


def _listed(text: str) -> list[str]:
    """Names on lines of their own, with commas between them, or as {0: 'name', 1: …}."""
    quoted = re.findall(r"\d+\s*:\s*['\"]([^'\"]*)['\"]", text)
    if quoted:
        return [clean(each) for each in quoted]
    return [clean(each.strip()) for each in (text.split("\n") if "\n" in text else text.split(","))]
