"""The programs' own files: which, at which commit, with which hashes; fetched, checked, and kept in a cache.

In: sources.toml, and where there is one a folder of mirrors (`owner+name/repo`, git directories). Out: a
folder with a repository's listed files. The invariant: no file is handed out whose SHA-256 is not the
listed one.
"""

from __future__ import annotations

import hashlib
import subprocess
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from scripts.adapter import cache_folder

__all__ = ["LIST", "Source", "folder_of", "pin", "read_list"]

LIST = Path(__file__).with_name("sources.toml")
HEAD = """\
# Public PyTorch programs that `make test-programs` runs: repositories, commits, files and their SHA-256.
# A file that is new gets an empty hash here; then `python -m scripts.programs --pin` writes it.
"""


@dataclass(frozen=True, slots=True)
class Source:
    """A repository's files at one commit."""

    name: str  # owner/name
    commit: str
    files: Mapping[str, str]  # path → SHA-256


def read_list() -> dict[str, Source]:
    """All repositories by their names."""
    table = tomllib.loads(LIST.read_text(encoding="utf-8"))
    return {name: Source(name, row.pop("commit"), row) for name, row in table.items()}


def folder_of(source: Source, mirrors: Path | None = None) -> Path:
    """The folder with a repository's files, fetched if need be."""
    folder = cache_folder() / "programs" / source.name.replace("/", "+") / source.commit
    missing = [path for path in source.files if not (folder / path).is_file()]
    if missing:
        for path, content in _contents(source, missing, mirrors).items():
            if hashlib.sha256(content).hexdigest() != source.files[path]:
                raise ValueError(f"{source.name} {path}: its SHA-256 is not the one in {LIST.name}")
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
    return folder


def pin(mirrors: Path | None = None) -> None:
    """Write the hashes of files that have none yet into the list."""
    text = HEAD
    for source in read_list().values():
        missing = [path for path, digest in source.files.items() if not digest]
        found = _contents(source, missing, mirrors) if missing else {}
        digests = {path: hashlib.sha256(content).hexdigest() for path, content in found.items()}
        rows = {"commit": source.commit, **dict(sorted((dict(source.files) | digests).items()))}
        keys = {path: path if path.isidentifier() else f'"{path}"' for path in rows}
        text += f'\n["{source.name}"]\n' + "".join(
            f'{keys[path]} = "{each}"\n' for path, each in rows.items()
        )
    LIST.write_text(text, encoding="utf-8")


def _contents(source: Source, paths: list[str], mirrors: Path | None) -> dict[str, bytes]:
    """Files as git has them at the commit."""
    git = _mirror(source, mirrors) or _fetched(source)
    return {path: _git(git, "show", f"{source.commit}:{path}") for path in paths}


def _mirror(source: Source, mirrors: Path | None) -> Path | None:
    """The git directory of a repository among the mirrors."""
    if mirrors is None:
        return None
    home = mirrors / source.name.replace("/", "+") / "repo"
    return next((each for each in (home / ".git", home) if (each / "objects").is_dir()), None)


def _fetched(source: Source) -> Path:
    """A git directory with this one commit, from GitHub."""
    git = cache_folder() / "programs" / source.name.replace("/", "+") / "git"
    if not git.is_dir():
        git.mkdir(parents=True)
        _git(git, "init", "--bare", "--quiet")
    if not _has(git, source.commit):
        where = f"https://github.com/{source.name}"
        _git(git, "fetch", "--quiet", "--depth", "1", where, source.commit)
    return git


def _has(git: Path, commit: str) -> bool:
    command = ["git", "--git-dir", str(git), "cat-file", "-e", commit]
    return subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode == 0


def _git(git: Path, *command: str) -> bytes:
    return subprocess.run(["git", "--git-dir", str(git), *command], check=True, stdout=subprocess.PIPE).stdout
