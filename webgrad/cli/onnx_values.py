"""Values for an ONNX model's inputs, from files, from words of the command line, or by chance.

In: an input as the model's file declares it. Out: an array of its type, in a shape that it may have.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import webgrad as wg

from ..arrays import Array, np

__all__ = ["layout_of", "random_value", "usual_shape", "value_of"]

PICTURES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff")
LENGTH = 16  # of axes that a model leaves open; the first one, a batch's, has 1
SIDE = 64  # of a picture of any size
SHOWN = 40  # letters of what was written
GREY = (0.299, 0.587, 0.114)  # how bright the three colours look


def value_of(
    value: wg.onnx.Value, text: str, mean: Sequence[float] = (0,), std: Sequence[float] = (1,)
) -> Array:
    """What is written for an input: the path of a file, or numbers. `mean` and `std` are for pictures."""
    suffix = Path(text).suffix.lower()
    if suffix in PICTURES:
        return _of_picture(value, text, mean, std)
    reader = _READERS.get(suffix)
    return _of_numbers(value, text) if reader is None else reader(value, text)


def layout_of(value: wg.onnx.Value) -> str:
    """Where an input that is a picture has its channels; "" for others."""
    shape = value.shape or ()
    if len(shape) != 4:
        return ""
    return "channels-first" if shape[1] in (1, 3) else "channels-last" if shape[3] in (1, 3) else ""


def _type_of(value: wg.onnx.Value) -> Any:
    return np.dtype(np.float32) if value.element is None else value.element.numpy


def _sides(value: wg.onnx.Value) -> list[int | None]:
    """The lengths of an input's axes, None where the model leaves them open."""
    return [each if isinstance(each, int) and each >= 0 else None for each in value.shape or ()]


# What is given


def _of_numbers(value: wg.onnx.Value, text: str) -> Array:
    try:
        numbers = np.asarray([_number(each) for each in text.split(",")])
    except ValueError:
        kinds = ", ".join((*_READERS, *PICTURES[:2]))
        raise wg.ArgumentError(
            f"--input {value.name}={text[:SHOWN]}: give a file ({kinds} …), or numbers with commas between"
        ) from None
    shape = _filled(_sides(value) if value.shape is not None else [None], numbers.size)
    if math.prod(shape) != numbers.size:
        raise wg.ArgumentError(f"--input {value.name}: {value} does not hold {numbers.size} numbers")
    return numbers.reshape(shape).astype(_type_of(value))


def _filled(sides: Sequence[int | None], count: int) -> list[int]:
    """Lengths for so many numbers: the last open axis has what the others leave, other open ones have 1."""
    shape = [1 if each is None else each for each in sides]
    if None in sides:
        last = max(at for at, each in enumerate(sides) if each is None)
        shape[last] = count // (math.prod(shape) or 1)
    return shape


def _number(text: str) -> float:
    word = text.strip().lower()
    if word in ("true", "false"):
        return word == "true"
    try:
        return int(word)
    except ValueError:
        return float(word)


def _of_npy(value: wg.onnx.Value, path: str) -> Array:
    array: Array = next(iter(wg.io.load(path, device="cpu").values())).numpy()
    wanted = _type_of(value)
    if not np.can_cast(array.dtype, wanted, "same_kind"):
        raise wg.ArgumentError(f"--input {value.name}: {path} is of {array.dtype}, and {value} is wanted")
    return array.astype(wanted)


def _of_wav(value: wg.onnx.Value, path: str) -> Array:
    """A sound as one channel, in an input's longest axis; where it is shorter, silence follows."""
    samples, _ = wg.io.read_sound(path)
    sides = _sides(value) or [1, None]
    fixed = max(range(len(sides)), key=lambda at: sides[at] or 0)
    open_ones = [at for at, each in enumerate(sides) if each is None]
    axis = fixed if (sides[fixed] or 0) > 1 or not open_ones else open_ones[-1]
    length = sides[axis] or len(samples)
    found = np.zeros(length, np.float32)
    found[: len(samples)] = samples.mean(1)[:length]
    return found.reshape([length if at == axis else 1 for at in range(len(sides))]).astype(_type_of(value))


_READERS: Mapping[str, Callable[[wg.onnx.Value, str], Array]] = {".npy": _of_npy, ".wav": _of_wav}


def _of_picture(value: wg.onnx.Value, path: str, mean: Sequence[float], std: Sequence[float]) -> Array:
    """A picture in an input's layout and size; bytes as they are, floats from 0 to 1 and normalised."""
    layout = layout_of(value)
    if not layout:
        raise wg.ArgumentError(
            f"--input {value.name}: {value} is no picture: these are (1, channels, height, width) or "
            "(1, height, width, channels), with 1 or 3 channels"
        )
    _, *sides = _sides(value)
    channels, height, width = sides if layout == "channels-first" else (sides[2], sides[0], sides[1])
    colours = _resized(wg.io.read_picture(path), height, width)
    if channels == 1:
        colours = np.tensordot(colours, np.asarray(GREY, np.float32), 1)[:, :, None]
    if _type_of(value).kind in "iu":
        found = np.rint(colours)
    else:
        found = (colours / 255 - np.asarray(mean, np.float32)) / np.asarray(std, np.float32)
    found = found.transpose(2, 0, 1) if layout == "channels-first" else found
    return np.ascontiguousarray(found[None]).astype(_type_of(value))


def _resized(pixels: Array, height: int | None, width: int | None) -> Array:
    """A picture (height, width, 3) of floats from 0 to 255, in the size that is asked for."""
    size = [height or pixels.shape[0], width or pixels.shape[1]]
    colours: Array = pixels.astype(np.float32)
    if size == [*pixels.shape[:2]]:
        return colours
    planes = wg.asarray(colours.transpose(2, 0, 1)[None].copy(), device="cpu")
    resized: Array = wg.interpolate(planes, size=size, mode="bilinear", antialias=True).numpy()
    return np.moveaxis(resized[0], 0, 2)


# Random values


def usual_shape(value: wg.onnx.Value, sides: Mapping[str, int]) -> tuple[int, ...]:
    """A shape that an input may have: `sides` of named axes, 1 for a batch, and a usual length for others."""
    return tuple(
        _usual_side(at, side, sides, SIDE if layout_of(value) else LENGTH)
        for at, side in enumerate(value.shape or ())
    )


def _usual_side(at: int, side: int | str | None, sides: Mapping[str, int], usual: int) -> int:
    if isinstance(side, int) and side >= 0:
        return side
    is_batch = at == 0 or (isinstance(side, str) and "batch" in side.lower())
    return sides.get(str(side), 1 if is_batch else usual)


def random_value(value: wg.onnx.Value, shape: Sequence[int], random: np.random.Generator) -> Array:
    """Floats from 0 to 1, truth values, and whole numbers from 1 to 4, which most vocabularies have."""
    dtype = _type_of(value)
    if dtype.kind == "O":
        return np.full(tuple(shape), "text", object)
    if dtype.kind in "iub":
        return random.integers(*((0, 2) if dtype.kind == "b" else (1, 5)), tuple(shape)).astype(dtype)
    return random.random(tuple(shape)).astype(dtype)
