"""The file of a recording: what is kept once, when it is put in place, and what damaged files meet."""

from __future__ import annotations

import errno
import json
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.tools.recording.recordings import DOUBLE, ORIGIN, X, write
from webgrad.errors import ModelFileError
from webgrad.tools.recording.file_format import RecordingWriter
from webgrad.tools.recording.reader import RecordingReader


def read_all(path: Path) -> None:
    """Read everything there is."""
    with RecordingReader(path) as recording:
        for dispatch in recording.dispatches:
            for each in dispatch.bindings:
                for name in filter(None, (each.before, each.after)):
                    recording.contents(name, each.nbytes)


def changed(path: Path, change: Callable[[dict[str, Any]], Any]) -> Path:
    """The same recording with another manifest, and any members that `change` gives."""
    target = path.with_name("changed.zip")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(target, "w") as new:
        parts = {each: old.read(each) for each in old.namelist()}
        manifest = json.loads(parts["manifest.json"])
        found = change(manifest)
        parts["manifest.json"] = found if isinstance(found, bytes) else json.dumps(manifest).encode()
        for name, data in parts.items():
            new.writestr(name, data)
    return target


def test_what_is_written_is_read(tmp_path: Path) -> None:
    with RecordingReader(write(tmp_path / "run.zip")) as recording:
        (dispatch,) = recording.dispatches
        assert recording.origins == (ORIGIN,)
        assert recording.kernels[0].text == DOUBLE
        assert (dispatch.name, dispatch.count, dispatch.grid) == ("double", 3, (1, 1, 1))
        assert dispatch.params == np.uint32(64).tobytes()
        assert dispatch.kept
        x, y = dispatch.bindings
        assert recording.contents(x.before, x.nbytes) == X.tobytes()
        assert recording.contents(y.after, y.nbytes) == (2 * X).tobytes()


def test_kernels_are_text_and_equal_contents_are_kept_once(tmp_path: Path) -> None:
    writer = RecordingWriter(tmp_path / "run.zip", 1 << 20)
    names = {writer.buffer(bytes(1000)) for _ in range(3)}
    numbers = {writer.kernel("a", "double", DOUBLE) for _ in range(3)}
    writer.close([], [])
    assert len(names) == len(numbers) == 1
    assert writer.stored == 1000
    with zipfile.ZipFile(tmp_path / "run.zip") as archive:
        assert archive.read("kernels/000.wgsl").decode() == DOUBLE
        assert sum(each.startswith("buffers/") for each in archive.namelist()) == 1


def test_equal_recordings_are_equal_files(tmp_path: Path) -> None:
    first, second = (write(tmp_path / name).read_bytes() for name in ("a.zip", "b.zip"))
    assert first == second


def test_what_was_there_stays_until_the_end(tmp_path: Path) -> None:
    path = tmp_path / "run.zip"
    path.write_text("old")
    writer = RecordingWriter(path, 1 << 20)
    writer.buffer(bytes(10))
    assert path.read_text() == "old"
    writer.abandon()
    assert [each.name for each in tmp_path.iterdir()] == ["run.zip"]
    assert path.read_text() == "old"


def test_a_disk_that_is_full_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    writer = RecordingWriter(tmp_path / "run.zip", 1 << 20)
    writer.buffer(bytes(10))
    monkeypatch.setattr(zipfile.ZipFile, "writestr", full)
    with pytest.raises(ModelFileError, match=r"run\.zip cannot be written: No space left on device"):
        writer.close([], [])
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="there is no folder"):
        RecordingWriter(tmp_path / "none" / "run.zip", 1)


@pytest.mark.parametrize("data", [None, b"", b"PK", b"PK\x05\x06" + bytes(18), b"no zip at all" * 10])
def test_what_is_no_recording(data: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "run.zip"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(ModelFileError, match=r"cannot be read as a recording|no manifest\.json"):
        RecordingReader(path)


def _set(*path: str | int, to: Any) -> Callable[[dict[str, Any]], None]:
    def change(manifest: dict[str, Any]) -> None:
        place: Any = manifest
        for each in path[:-1]:
            place = place[each]
        place[path[-1]] = to

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda _: b"[" * 100_000, "is no JSON"),
        (lambda _: b"\xff\xfe{}", "is no JSON"),
        (lambda _: b"[]", "is not an object"),
        (lambda _: b"{}", "not one of a webgrad recording"),
        (_set("version", to=99), "of version 99, and this webgrad reads version 1"),
        (_set("dispatches", to={}), "dispatches is {}"),
        (_set("dispatches", 0, to=7), "dispatches 0 is not an object"),
        (_set("dispatches", 0, "kernel", to=1), "kernel is 1"),
        (_set("dispatches", 0, "kernel", to=-1), "kernel is -1"),
        (_set("dispatches", 0, "count", to=True), "count is True"),
        (_set("dispatches", 0, "grid", to=[1, 1, 0]), "grid is"),
        (_set("dispatches", 0, "grid", to=[1, 1]), "grid is"),
        (_set("dispatches", 0, "params", to="0g"), "params is 0g"),
        (_set("dispatches", 0, "params", to="00" * 5000), "params is 00"),
        (_set("dispatches", 0, "name", to=None), "name is None"),
        (_set("dispatches", 0, "needs", to=[1]), "needs is"),
        (_set("dispatches", 0, "bindings", 0, "access", to="write"), "access is write"),
        (_set("dispatches", 0, "bindings", 0, "nbytes", to=-4), "nbytes is -4"),
        (_set("dispatches", 0, "bindings", 0, "nbytes", to=1 << 60), "nbytes is"),
        (_set("dispatches", 0, "bindings", 0, "before", to="../../etc/passwd"), "before is"),
        (_set("dispatches", 0, "bindings", 0, "before", to="0" * 64), "there is no buffers/000"),
        (_set("dispatches", 0, "bindings", 1, "after", to=""), "after is"),
        (_set("dispatches", 0, "bindings", 0, "nbytes", to=1024), "has 256 bytes, not 1,024"),
        (_set("kernels", to=[{"label": "", "entry": ""}] * 2), r"there is no kernels/001\.wgsl"),
        (_set("origins", 0, "limits", to={"a": "b"}), "limits is"),
    ],
)
def test_manifests_that_do_not_fit(
    change: Callable[[dict[str, Any]], Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ModelFileError, match=message):
        read_all(changed(write(tmp_path / "run.zip"), change))


def test_contents_that_are_not_what_their_name_says(tmp_path: Path) -> None:
    path = write(tmp_path / "run.zip")
    with zipfile.ZipFile(path) as archive:
        parts = {each: archive.read(each) for each in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data[::-1] if name.startswith("buffers/") else data)
    with pytest.raises(ModelFileError, match="sha256 differs"):
        read_all(path)


def test_a_part_that_unpacks_to_more_than_it_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webgrad.tools.recording.reader.MOST_TEXT", 100)
    with pytest.raises(ModelFileError, match=r"kernels/000\.wgsl has \d+ bytes, and may have 100"):
        RecordingReader(write(tmp_path / "run.zip"))


def test_flipped_and_missing_bytes_are_errors_or_do_not_matter(tmp_path: Path) -> None:
    whole = write(tmp_path / "run.zip").read_bytes()
    path = tmp_path / "damaged.zip"
    chance = random.Random(8)
    messages = []
    for turn in range(400):
        data = bytearray(whole)
        if turn % 4:
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        else:
            del data[chance.randrange(len(data)) :]
        path.write_bytes(data)
        try:
            read_all(path)
        except ModelFileError as error:
            messages.append(str(error))
    assert all(each.startswith(str(path)) for each in messages)
    assert len(messages) > 200  # the rest hit dates and the like
