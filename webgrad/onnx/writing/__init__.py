"""Writing: a function of webgrad as an ONNX file."""

from __future__ import annotations

from .model_file import save

__all__ = ["save"]
