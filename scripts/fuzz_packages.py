"""Damaged packages of datasets: tarballs, Debian packages, and the files in them.

In: a seed. Out: "read", or "refused" by a ModelFileError; `python -m scripts.fuzz --only packages`.
"""

from __future__ import annotations

import gzip
import io
import random
import struct
import tarfile
from pathlib import Path

import webgrad as wg
from scripts.fuzz_files import change
from scripts.fuzzing import Case

__all__ = ["packages", "start"]

FILES = {
    f"{part}-{kind}-ubyte": b"\0\0\x08" + bytes([len(shape)]) + struct.pack(f">{len(shape)}I", *shape) + data
    for part in ("train", "t10k")
    for kind, shape, data in (("images-idx3", (2, 4, 4), bytes(32)), ("labels-idx1", (2,), b"\x01\x02"))
}


def packages() -> dict[str, bytes]:
    """A sound package of each kind, by its suffix."""
    found = {}
    for suffix, mode in ((".tar", "w"), (".tgz", "w:gz"), (".tar.xz", "w:xz"), (".tar.bz2", "w:bz2")):
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode=mode) as tar:  # type: ignore[call-overload]
            for name, data in FILES.items():
                packed = gzip.compress(data, mtime=0) if "labels" in name else data
                info = tarfile.TarInfo(f"./data/{name}{'.gz' if 'labels' in name else ''}")
                info.size = len(packed)
                tar.addfile(info, io.BytesIO(packed))
        found[suffix] = stream.getvalue()
    data = found[".tar.xz"]
    header = f"{'data.tar.xz':<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(data):<10}`\n".encode()
    found[".deb"] = b"!<arch>\n" + header + data
    return found


def start(folder: Path) -> Case:
    """A function that damages a package, or what is in a plain one, and reads the dataset in it."""
    sound = list(packages().items())
    for suffix, data in sound:
        (folder / f"sound{suffix}").write_bytes(data)
        wg.data.datasets.mnist(folder / f"sound{suffix}")
    others = [data for _, data in sound]

    def case(seed: int) -> str:
        suffix, data = sound[seed % len(sound)]
        path = folder / f"file{suffix}"
        path.write_bytes(change(random.Random(seed), data, others))
        try:
            wg.data.datasets.mnist(path)
        except wg.ModelFileError:
            return f"{suffix} refused"
        return f"{suffix} read"

    return case
