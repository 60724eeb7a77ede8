"""Tensors in files: safetensors, GGUF and NumPy's, read lazily, and written whole or not at all.

Like any other program this uses webgrad's public names only.
"""

from __future__ import annotations

from .clients import Ran, pip_download, run_client
from .gguf import part_names
from .pictures import picture_texts, png_bytes, read_picture, write_picture
from .quantised_rows import Blocks
from .readers import PICKLED, load, load_metadata, open
from .replace import replacing
from .sounds import read_sound
from .tensors import check_writable, save
from .tfjs_files import GraphNode, tfjs_nodes
from .torch_files import StoredTensor, TorchNames, read_torch
from .weights import Weights

__all__ = [
    "PICKLED",
    "Blocks",
    "GraphNode",
    "Ran",
    "StoredTensor",
    "TorchNames",
    "Weights",
    "check_writable",
    "load",
    "load_metadata",
    "open",
    "part_names",
    "picture_texts",
    "pip_download",
    "png_bytes",
    "read_picture",
    "read_sound",
    "read_torch",
    "replacing",
    "run_client",
    "save",
    "tfjs_nodes",
    "write_picture",
]
