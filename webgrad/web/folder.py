"""The folder of an export: written aside, then put in place, so that a page never meets half of another.

In: a bundle, the kind of page and its facts, other files. Out: a folder with index.html, or one HTML file.
The invariant: files that are not an export's stay, and an export that fails leaves the old one as it was.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import ArgumentError
from .bundle import Bundle
from .page import page_files
from .single_file import write_single_file

__all__ = ["check_target", "write_export"]

_WEIGHTS = re.compile(r"weights-\d+-of-\d+\.safetensors")


def write_export(
    bundle: Bundle,
    path: str | os.PathLike[str],
    page: str,
    facts: Mapping[str, Any],
    more: Mapping[str, bytes] | None = None,
    *,
    single_file: bool = False,
) -> Path:
    """Write an export and its page; gives the path of the HTML file."""
    target = Path(path)
    folder = check_target(target)
    alone = folder != target
    with tempfile.TemporaryDirectory(prefix=".webgrad-export-", dir=folder) as temporary:
        made = Path(temporary)
        bundle.write(made)
        for name, contents in {**page_files(page, facts), **(more or {})}.items():
            (made / name).write_bytes(contents)
        if alone or single_file:
            html = target if alone else folder / "index.html"
            write_single_file({each.name: each for each in made.iterdir()}, html)
            return html
        _put_in_place(made, folder)
    return folder / "index.html"


def check_target(path: str | os.PathLike[str]) -> Path:
    """The folder of an export, made if it is not there; the parent of a path that ends in .html."""
    target = Path(path)
    folder = target.parent if target.suffix.lower() in (".html", ".htm") else target
    if folder.exists() and not folder.is_dir():
        raise ArgumentError(f"export: {folder} is a file; name a folder, or one HTML file (model.html)")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArgumentError(f"export: the folder {folder} cannot be made: {error.strerror}") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ArgumentError(f"export: nothing can be written in the folder {folder}: name another")
    return folder


def _put_in_place(made: Path, folder: Path) -> None:
    """Move the files, the plan last: an older page that is being loaded finds weights that fit its plan, or
    none."""
    names = sorted((each.name for each in made.iterdir()), key=lambda name: name == "plan.json")
    for name in names:
        shutil.move(made / name, folder / name)
    for each in folder.iterdir():
        if _WEIGHTS.fullmatch(each.name) and each.name not in names:
            each.unlink()
