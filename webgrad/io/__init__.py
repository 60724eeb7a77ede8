"""Tensors in files: safetensors, written whole or not at all.

Like any other program this uses webgrad's public names only.
"""

from __future__ import annotations

from .clients import Ran, pip_download, run_client
from .replace import replacing
from .tensors import check_writable, load, load_metadata, save

__all__ = [
    "Ran",
    "check_writable",
    "load",
    "load_metadata",
    "pip_download",
    "replacing",
    "run_client",
    "save",
]
