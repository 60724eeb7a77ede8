"""ONNX models: loaded, run on every device, trained on, and written.

Like any other program this uses webgrad's public names only.
"""

from __future__ import annotations

from .graph import Value
from .model import Model, Outputs, load
from .module import OnnxModule
from .operators import operator
from .summary import Summary
from .writing import save

__all__ = ["Model", "OnnxModule", "Outputs", "Summary", "Value", "load", "operator", "save"]
