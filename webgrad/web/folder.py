"""The folder of an export: written aside, then put in place, so that a page never meets half of another.

In: a bundle, the kind of page and its facts, other files. Out: a folder with index.html, or one HTML file.
The invariant: files that are not an export's stay, unless the user says otherwise, and an export that fails
leaves everything as it was.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ..errors import ArgumentError
from .bundle import Bundle
from .page import GENERATOR, page_files
from .single_file import write_single_file

__all__ = ["check_target", "write_export"]

_WEIGHTS = re.compile(r"weights-\d+-of-\d+\.safetensors")
_ASIDE = ".webgrad-export-"
_HEAD = 4096  # bytes of a file that say whose it is
_OLD = 60  # seconds after which a folder that nobody has locked is one that was left


def write_export(
    bundle: Bundle,
    path: str | os.PathLike[str],
    page: str,
    facts: Mapping[str, Any],
    more: Mapping[str, bytes] | None = None,
    *,
    single_file: bool = False,
    overwrite: bool = False,
) -> Path:
    """Write an export and its page; gives the path of the HTML file."""
    target = Path(path)
    folder = check_target(target, overwrite=overwrite)
    alone = folder != target
    with _made_folder(folder), _folder_aside(folder) as made:
        bundle.write(made)
        for name, contents in {**page_files(page, facts), **(more or {})}.items():
            (made / name).write_bytes(contents)
        if alone or single_file:
            html = target if alone else folder / "index.html"
            write_single_file({each.name: each for each in made.iterdir()}, html)
            return html
        _put_in_place(made, folder, overwrite=overwrite)
    return folder / "index.html"


def check_target(path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """The folder of an export: the parent of a path that ends in .html. Nothing is made or changed yet."""
    target = Path(path)
    alone = target.suffix.lower() in (".html", ".htm")
    folder = target.parent if alone else target
    there = next(each for each in (folder, *folder.absolute().parents) if os.path.lexists(each))
    if not there.is_dir():
        raise ArgumentError(f"export: {there} is a file; name a folder, or one HTML file (model.html)")
    if not os.access(there, os.W_OK | os.X_OK):
        raise ArgumentError(f"export: nothing can be written in the folder {there}: name another")
    html = target if alone else folder / "index.html"
    for each in (html,) if alone else (html, folder / "plan.json"):
        if each.is_dir():
            raise ArgumentError(f"export: {each} is a folder, and a file of that name is to be written")
        if os.path.lexists(each) and not overwrite and not _is_ours(each):
            raise ArgumentError(_refusal(each))
    return folder


def _refusal(file: Path) -> str:
    return (
        f"export: {file} is there already, and not of an export: name another folder, or replace it with "
        "overwrite=True (webgrad export --force)"
    )


def _is_ours(file: Path) -> bool:
    """Whether a page or a plan was written by an export."""
    try:
        with file.open("rb") as opened:
            head = opened.read(_HEAD)
    except OSError:
        return False
    return (b'"format":"webgrad-plan"' if file.suffix == ".json" else GENERATOR.encode()) in head


@contextmanager
def _made_folder(folder: Path) -> Iterator[None]:
    """Make a folder and those above it; where what is inside fails they are gone again."""
    new = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArgumentError(f"export: the folder {folder} cannot be made: {error.strerror}") from None
    try:
        yield
    except BaseException:
        for each in new:
            with suppress(OSError):  # what is not empty is somebody else's by now
                each.rmdir()
        raise


@contextmanager
def _folder_aside(folder: Path) -> Iterator[Path]:
    """A folder to write into, inside the other; those that killed exports have left there are removed."""
    for each in folder.glob(f"{_ASIDE}*"):
        with suppress(OSError):
            if time.time() - each.stat().st_mtime > _OLD:
                with _locked(each) as is_free:
                    if is_free:
                        shutil.rmtree(each, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=_ASIDE, dir=folder) as made, _locked(Path(made)):
        yield Path(made)


@contextmanager
def _locked(folder: Path) -> Iterator[bool]:
    """Hold the lock of a folder, which the system lets go when a process ends; False where that cannot be."""
    try:
        import fcntl
    except ImportError:  # on Windows folders have no locks
        yield False
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_held = True
    except OSError:
        is_held = False
    try:
        yield is_held
    finally:
        os.close(handle)


def _put_in_place(made: Path, folder: Path, *, overwrite: bool) -> None:
    """Move the files, the plan last: an older page that is being loaded finds weights that fit its plan, or
    none."""
    names = sorted((each.name for each in made.iterdir()), key=lambda name: name == "plan.json")
    if not overwrite and not _is_ours(folder / "plan.json"):
        for name in names:
            if os.path.lexists(folder / name) and not (name == "index.html" and _is_ours(folder / name)):
                raise ArgumentError(_refusal(folder / name))
    for name in names:
        (made / name).replace(folder / name)
    for each in folder.iterdir():
        if _WEIGHTS.fullmatch(each.name) and each.name not in names:
            each.unlink()
