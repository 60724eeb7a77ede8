"""ONNX's operators, a small function each, by family; importing this fills the table."""

from __future__ import annotations

from . import elementwise  # noqa: F401  (which fills the table)
from .table import Call, Operator, find, operator, rows

__all__ = ["Call", "Operator", "find", "operator", "rows"]
