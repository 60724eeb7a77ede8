"""What the page of an image classifier must know: the size and layout of pictures, labels, samples to try.

In: the classifier's graph and what the user says of its pictures. Out: facts for page.json. The layout is
that of the first input: (1, channels, height, width), (1, height, width, channels), or with fewer axes.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import webgrad as wg

from ..arrays import np
from ..errors import ArgumentError
from .trace import Graph

__all__ = ["picture_facts", "picture_inputs"]

_CHANNELS = (1, 3)
_SMALLEST = 16  # pixels of a side: what is smaller is rarely a picture


def picture_facts(
    function: tuple[str, Graph],
    labels: Sequence[str],
    *,
    mean: float | Sequence[float],
    std: float | Sequence[float],
    inverted: bool,
    samples: Sequence[Any],
) -> dict[str, Any]:
    """The facts of a classifier's page."""
    name, graph = function
    tensors = [each for each in graph.inputs if each.kind == "tensor"]
    if len(tensors) != 1 or not graph.outputs:
        raise ArgumentError(
            f"export: labels are for functions of one picture, and {name} has {len(tensors)} tensor inputs"
        )
    layout, channels, height, width = _layout(tensors[0].shape)
    output, scores = graph.outputs[0]
    if scores.sig.size != len(labels):
        raise ArgumentError(
            f"export: there are {len(labels)} labels, and {name} gives {scores.sig.size} scores for a picture"
        )
    return {
        "function": name,
        "input": tensors[0].name,
        "output": output,
        "height": height,
        "width": width,
        "channels": channels,
        "layout": layout,
        "mean": _each(mean, channels, "mean"),
        "std": _each(std, channels, "std"),
        "inverted": bool(inverted),
        "labels": [str(each) for each in labels],
        "samples": [_sample(each) for each in samples],
    }


def picture_inputs(
    graphs: Mapping[str, Graph], mean: float | Sequence[float], std: float | Sequence[float]
) -> dict[str, dict[str, Any]]:
    """The inputs that may be pictures, (1, 1 or 3 channels, height, width) of floats, by their names.

    A form offers files and a camera for them.
    """
    found = {}
    for graph in graphs.values():
        for each in graph.inputs:
            sides = each.shape[1:] if each.kind == "tensor" and len(each.shape) == 4 else ()
            if (
                each.shape[:1] != (1,)
                or each.dtype.kind != "f"
                or not {*sides[:1], *sides[2:]} & {*_CHANNELS}
            ):
                continue
            layout, channels, height, width = _layout(each.shape)
            if min(height, width) >= _SMALLEST:
                facts = {"height": height, "width": width, "channels": channels, "layout": layout}
                facts["mean"] = _each(mean, channels, "mean")
                found[each.name] = facts | {"std": _each(std, channels, "std")}
    return found


def _layout(shape: tuple[int, ...]) -> tuple[str, int, int, int]:
    sizes = shape[1:] if len(shape) in (3, 4) and shape[0] == 1 else shape
    if len(sizes) == 2:
        return "channels-first", 1, *sizes
    if len(sizes) == 3 and sizes[0] in _CHANNELS:
        return "channels-first", *sizes
    if len(sizes) == 3 and sizes[2] in _CHANNELS:
        return "channels-last", sizes[2], sizes[0], sizes[1]
    raise ArgumentError(
        f"export: an input of shape {shape} is no picture: labels are for (1, channels, height, width) or "
        "(1, height, width, channels), with 1 or 3 channels"
    )


def _each(value: float | Sequence[float], channels: int, name: str) -> list[float]:
    try:
        given = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        raise ArgumentError(f"export: {name} is a number, or one for each channel, not {value!r}") from None
    found = given.tolist() if given.ndim else [float(given)] * channels
    if not np.isfinite(given).all():
        raise ArgumentError(f"export: {name} must be finite, and it is {value!r}")
    if len(found) != channels:
        raise ArgumentError(f"export: {name} has {len(found)} numbers, and pictures have {channels} channels")
    if name == "std" and not all(found):
        raise ArgumentError("export: std must not be 0: pictures are divided by it")
    return found


def _sample(picture: Any) -> dict[str, str]:
    """A picture, or (label, picture), as the page shows it."""
    label, pixels = picture if isinstance(picture, tuple) else ("", picture)
    array = np.asarray(pixels)
    if array.ndim == 3 and array.shape[0] in _CHANNELS and array.shape[2] not in _CHANNELS:
        array = np.moveaxis(array, 0, 2)  # as models take pictures
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[:, :, 0]
    picture_like = array.ndim == 2 or (array.ndim == 3 and array.shape[2] == 3)
    if not picture_like or not array.size or array.dtype.kind not in "fiub":
        raise ArgumentError(
            "export: a sample is an array of shape (height, width), (height, width, channels) or (channels, "
            f"height, width), not one of {array.dtype} and shape {array.shape}"
        )
    if array.dtype.kind == "f":
        array = np.clip(np.rint(array * 255), 0, 255)
    array = array.astype(np.uint8)
    return {
        "label": str(label),
        "image": "data:image/png;base64," + base64.b64encode(wg.io.png_bytes(array)).decode(),
    }
