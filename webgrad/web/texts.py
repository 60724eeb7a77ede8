"""What pages need for texts: a model's tokenizer as a file, and the scripts that read it."""

from __future__ import annotations

import json
from importlib import resources

from webgrad.models import Tokenizer

from .tokenizing import tokenizer_spec

__all__ = ["script_files", "tokenizer_file"]


def tokenizer_file(tokenizer: Tokenizer) -> bytes:
    """The contents of tokenizer.json; a ModelFileError says what a page cannot have."""
    return json.dumps(tokenizer_spec(tokenizer), ensure_ascii=False, separators=(",", ":")).encode()


def script_files(*names: str) -> dict[str, bytes]:
    """Scripts of this package, by their names."""
    return {name: (resources.files("webgrad.web") / name).read_bytes() for name in names}
