"""ONNX's operators, a small function each, by family; importing this fills the table."""

from __future__ import annotations

from . import (  # noqa: F401  (which fill the table)
    activations,
    attention,
    convolution,
    detection,
    elementwise,
    images,
    losses,
    normalisation,
    pooling,
    products,
    recurrent,
    resizing,
)
from .table import Call, Operator, find, operator, rows

__all__ = ["Call", "Operator", "find", "operator", "rows"]
