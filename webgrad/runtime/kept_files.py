"""Small files of the cache, written whole: beside their place, and moved there.

In: a folder, a name and a text. Out: the file. The invariant: nobody sees half of one.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path

__all__ = ["write_whole"]


def write_whole(folder: Path, name: str, text: str) -> None:
    """Write a file, and its folder where there is none yet; OSError where that cannot be."""
    folder.mkdir(parents=True, exist_ok=True)
    beside = folder / f".{name}.{os.getpid()}.{threading.get_ident()}"
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(folder / name)
    except PermissionError:
        # Windows refuses while another process reads the file: then there is one already.
        if not (folder / name).exists():
            raise
    finally:
        beside.unlink(missing_ok=True)
