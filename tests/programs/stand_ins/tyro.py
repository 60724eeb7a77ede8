"""In tyro's place: `--name value` from the command line into a record."""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["cli"]


def cli(kind: Any) -> Any:
    """A record with what the command line says."""
    made = kind()
    words = sys.argv[1:]
    for name, text in zip(words[::2], words[1::2], strict=True):
        field = name.removeprefix("--").replace("-", "_")
        setattr(made, field, type(getattr(made, field))(text))
    return made
