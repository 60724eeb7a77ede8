"""What programs read of the package torch where webgrad.torch takes its place: name and version."""

from __future__ import annotations

from importlib.metadata import Distribution
from os import PathLike
from pathlib import Path

import webgrad.torch

__all__ = ["TorchDistribution"]


class TorchDistribution(Distribution):
    """The package torch, which is webgrad.torch: `importlib.metadata.version("torch")` is its version."""

    def read_text(self, filename: str) -> str | None:
        """The metadata; there are no other files."""
        if filename != "METADATA":
            return None
        return f"Metadata-Version: 2.1\nName: torch\nVersion: {webgrad.torch.__version__}\n"

    def locate_file(self, path: str | PathLike[str]) -> Path:
        """Where a file of the package would be."""
        return Path(webgrad.torch.__file__).parent / path
