"""Tensors in files: safetensors, written whole or not at all.

Like any other program this uses webgrad's public names only.
"""

from __future__ import annotations

from .replace import replacing
from .tensors import load, load_metadata, save

__all__ = ["load", "load_metadata", "replacing", "save"]
