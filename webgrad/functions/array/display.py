"""Tensors as text: repr and str like NumPy's, and a small HTML table for notebooks.

In: a tensor. Out: text. Of a large tensor only the elements that are shown are read, cut out on its device:
never more than `MAX_SHOWN`, whatever its shape and NumPy's print options.
"""

from __future__ import annotations

import html as markup
import math
from typing import Any

from ...arrays import has_numpy, np
from ...dtypes import bfloat16
from ...evaluate.evaluate import evaluate, read
from ...ops import primitives
from ...tensor import Tensor
from ...values import Values
from .plain_text import plain_text
from .reshaping import axis_slice

MAX_SHOWN = 1000  # elements that may be read to be shown
MAX_COMPUTED_BYTES = (
    1 << 28
)  # bytes up to which a tensor that is not computed yet is computed whole to be shown


def represent(x: Tensor) -> str:
    """The repr: values, dtype and device, and whether gradients go to it or through it."""
    shown = _values_text(x, ", ", "tensor(")
    facts = f"dtype={x.dtype.name}, device={x.device.name}{', requires_grad=True' * x.requires_grad})"
    if (not x.size and x.shape != (0,)) or x.size > _limit():
        facts = f"shape={x.shape}, {facts}"
    last = shown.rpartition("\n")[2]
    first_line = 0 if "\n" in shown else len("tensor(")
    room = _options()["linewidth"] - len(facts) - len(", ") - first_line
    return f"tensor({shown},{' ' if len(last) <= room else chr(10) + ' ' * len('tensor(')}{facts}"


def text(x: Tensor) -> str:
    """The str: values alone."""
    return _values_text(x, " ", "")


def html(x: Tensor) -> str:
    """A table of what the tensor is, and its values as text."""
    sizes = " × ".join(map(str, x.shape)) or "a single number"
    facts = {"shape": sizes, "dtype": x.dtype.name, "device": f"{x.device.name} ({x.device.info.name})"}
    rows = "".join(_html_row(name, markup.escape(value)) for name, value in facts.items())
    values = f"<pre style='margin: 0; text-align: left'>{markup.escape(_values_text(x, ' ', ''))}</pre>"
    return f"<table>{rows}{_html_row('values', values)}</table>"


def _html_row(name: str, cell: str) -> str:
    return f"<tr><th style='text-align: left'>{name}</th><td style='text-align: left'>{cell}</td></tr>"


def _values_text(x: Tensor, separator: str, prefix: str) -> str:
    options = _options()
    if x.size <= _limit():
        return _array_text(read(x.node), separator, prefix, threshold=MAX_SHOWN, edges=options["edgeitems"])
    edges = _edges(x.shape, options["edgeitems"])
    if not edges:
        return "..."
    return _array_text(_corners(x, edges), separator, prefix, threshold=0, edges=edges)


def _limit() -> int:
    """The size up to which a tensor is shown whole."""
    return int(min(_options()["threshold"], MAX_SHOWN))


def _options() -> Any:
    """NumPy's print options, or its defaults."""
    return np.get_printoptions() if has_numpy() else {"threshold": 1000, "edgeitems": 3, "linewidth": 75}


def _edges(shape: tuple[int, ...], wanted: int) -> int:
    """How many elements to show at either end of each axis: as many as wanted, or as `MAX_SHOWN` allows."""
    fitting = (
        each for each in range(wanted, 0, -1) if math.prod(min(size, 2 * each) for size in shape) <= MAX_SHOWN
    )
    return next(fitting, 0)


def _array_text(array: Any, separator: str, prefix: str, threshold: int, edges: int) -> str:
    if isinstance(array, Values):
        return plain_text(array, separator, prefix, 0 if threshold else edges)
    if array.dtype == bfloat16.numpy:
        array = array.astype(np.float32)  # NumPy writes it as an object, without aligning
    return np.array2string(array, separator=separator, prefix=prefix, threshold=threshold, edgeitems=edges)


def _corners(x: Tensor, edges: int) -> Any:
    """The ends of all axes, with one element of filling between them, where dots will be written."""
    if x.nbytes <= MAX_COMPUTED_BYTES:
        evaluate([x.node])  # the whole, so that showing it is not computing it twice
    node = x.node
    long = [axis for axis, size in enumerate(x.shape) if size > 2 * edges]
    for axis in long:
        size = node.sig.shape[axis]
        node = primitives.concat(
            [axis_slice(node, axis, 0, edges), axis_slice(node, axis, size - edges, size)], axis
        )
    for axis in long if not has_numpy() else ():
        filling = axis_slice(node, axis, 0, 1)
        parts = [axis_slice(node, axis, 0, edges), filling, axis_slice(node, axis, edges, 2 * edges)]
        node = primitives.concat(parts, axis)
    array = read(node)
    for axis in long if has_numpy() else ():
        array = np.insert(array, edges, array.dtype.type(0), axis=axis)
    return array
