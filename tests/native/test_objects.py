"""Object files on disk: what was kept comes back, or nothing does; never an error, never another's code."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.limits import HANG
from webgrad import config
from webgrad.native import compiler, objects
from webgrad.native.compiler import callable_at, functions
from webgrad.native.objects import Objects, key_of, objects_folder
from webgrad.native.processor import architecture
from webgrad.native.text import Function

KEY, OTHER = key_of("a module"), key_of("another")
IMAGE = bytes(range(256)) * 40
LIMIT = 1 << 20


@pytest.fixture
def kept(tmp_path: Path) -> Objects:
    found = Objects(tmp_path / "webgrad" / "native", LIMIT)
    found.keep(KEY, IMAGE)
    return found


def file_of(kept: Objects, key: str = KEY) -> Path:
    return kept._path(key)


def test_hit_and_miss(kept: Objects) -> None:
    assert kept.find(KEY) == IMAGE
    assert Objects(kept.folder, LIMIT).find(KEY) == IMAGE
    assert kept.find(OTHER) is None
    assert kept.usage() == (1, file_of(kept).stat().st_size)


def test_keys_hold_their_parts_apart() -> None:
    assert (
        len({key_of("a", "b"), key_of("ab"), key_of("b", "a"), key_of("a", "b", ""), key_of("", "a", "b")})
        == 5
    )


@pytest.mark.parametrize("at", [0, 3, 20, 60, 500, -1])
def test_a_damaged_file_is_a_miss_and_goes(kept: Objects, at: int) -> None:
    damaged = bytearray(file_of(kept).read_bytes())
    damaged[at] ^= 1
    file_of(kept).write_bytes(damaged)
    assert kept.find(KEY) is None
    assert not file_of(kept).exists()
    kept.keep(KEY, IMAGE)
    assert kept.find(KEY) == IMAGE


@pytest.mark.parametrize("size", [0, 1, 16, 48, 49, 5000, -1])
def test_a_truncated_file_is_a_miss_and_goes(kept: Objects, size: int) -> None:
    file_of(kept).write_bytes(file_of(kept).read_bytes()[:size])
    assert kept.find(KEY) is None
    assert not file_of(kept).exists()


def test_a_longer_file_is_a_miss(kept: Objects) -> None:
    file_of(kept).write_bytes(file_of(kept).read_bytes() + b"\0")
    assert kept.find(KEY) is None


def test_a_file_under_another_key_is_a_miss(kept: Objects) -> None:
    file_of(kept).rename(file_of(kept, OTHER))
    assert kept.find(OTHER) is None


needs_modes = pytest.mark.skipif(not hasattr(os, "getuid"), reason="no modes of files here")


@needs_modes
@pytest.mark.parametrize("mask", [0o000, 0o002, 0o077])
def test_whatever_the_umask_only_this_user_can_write(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        kept = Objects(tmp_path / "native", LIMIT)
        kept.keep(KEY, IMAGE)
    finally:
        os.umask(before)
    assert kept.find(KEY) == IMAGE
    assert file_of(kept).stat().st_mode & 0o777 == 0o600
    assert file_of(kept).parent.stat().st_mode & 0o777 == 0o700


@needs_modes
@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_folder_that_others_can_write_to(kept: Objects, mode: int) -> None:
    file_of(kept).parent.chmod(mode)
    assert kept.find(KEY) is None
    kept.keep(OTHER, IMAGE)
    assert not file_of(kept, OTHER).exists()


@needs_modes
@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_can_write_to(kept: Objects, mode: int) -> None:
    file_of(kept).chmod(mode)
    assert kept.find(KEY) is None


@needs_modes
def test_files_of_another_user(kept: Objects, monkeypatch: pytest.MonkeyPatch) -> None:
    uid = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: uid + 1)
    assert kept.find(KEY) is None
    kept.keep(OTHER, IMAGE)
    assert not file_of(kept, OTHER).exists()


@pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="no such links here")
def test_a_link_is_not_followed(kept: Objects) -> None:
    file_of(kept).rename(file_of(kept).with_suffix(".moved"))
    file_of(kept).symlink_to(file_of(kept).with_suffix(".moved"))
    assert kept.find(KEY) is None


def test_a_place_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (None, tmp_path / "file", tmp_path / "file" / "native", Path("/proc/none")):
        kept = Objects(folder, LIMIT)
        kept.keep(KEY, IMAGE)
        kept.keep(OTHER, IMAGE)
        assert kept.find(KEY) is None
        assert kept.usage() == (0, 0)
        assert kept.clear() == 0


def test_a_full_disk(kept: Objects, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[object] = []

    def full(*given: object) -> int:
        tried.append(given)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fdopen", full)
    kept.keep(OTHER, IMAGE)
    kept.keep(OTHER, IMAGE)
    monkeypatch.undo()
    assert len(tried) == 1  # then it is left alone
    assert kept.find(KEY) == IMAGE
    assert [path.name for path in file_of(kept).parent.iterdir()] == [file_of(kept).name]


def test_nothing_is_kept_at_size_0(tmp_path: Path) -> None:
    kept = Objects(tmp_path, 0)
    kept.keep(KEY, IMAGE)
    assert kept.find(KEY) is None
    assert not list(tmp_path.iterdir())


def test_what_is_larger_than_all(kept: Objects) -> None:
    kept.keep(OTHER, bytes(LIMIT))
    assert kept.find(OTHER) is None
    assert kept.find(KEY) == IMAGE


def test_the_oldest_go_first(tmp_path: Path) -> None:
    kept = Objects(tmp_path / "native", 100_000)
    keys = [key_of(str(number)) for number in range(100)]
    for age, key in enumerate(keys):
        kept.keep(key, bytes(2000))
        assert kept.usage()[1] <= 100_000 * (1 + 1 / objects.SHARE) + 2100
        if file_of(kept, key).exists():
            os.utime(file_of(kept, key), (1e9 + age, 1e9 + age))
        if age == 30:
            assert kept.find(keys[0]) is not None  # used, so it is young again
    assert kept.find(keys[0]) is not None
    assert kept.find(keys[1]) is None
    assert kept.find(keys[-1]) is not None


def test_the_folder_is_seldom_looked_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    monkeypatch.setattr(Objects, "trim", lambda self: looks.append(1))
    kept = Objects(tmp_path / "native", 64 << 20)
    for number in range(400):
        kept.keep(key_of(str(number)), bytes(10))
    assert 1 <= len(looks) <= 16


def test_what_killed_processes_leave(kept: Objects) -> None:
    left, fresh = (file_of(kept).with_name(f".{name}") for name in ("left", "fresh"))
    for each in (left, fresh):
        each.write_bytes(b"half")
    os.utime(left, (time.time() - 2 * objects.ABANDONED,) * 2)
    kept.trim()
    assert (left.exists(), fresh.exists(), file_of(kept).exists()) == (False, True, True)


def test_clearing(kept: Objects) -> None:
    kept.keep(OTHER, IMAGE)
    assert kept.clear() == 2
    assert kept.usage() == (0, 0)


WRITER = """
import sys
from pathlib import Path
from webgrad.native.objects import Objects, key_of
kept = Objects(Path(sys.argv[1]), 200_000)
images = [bytes([number]) * (5000 + number) for number in range(20)]
for turn in range(40):
    for number in range(20):
        kept.keep(key_of(str(number)), images[number])
        other = number * 7 % 20
        assert kept.find(key_of(str(other))) in (None, images[other])
    if turn % 10 == 9:
        kept.trim()
"""


def test_several_processes_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "native"
    command = [sys.executable, "-c", WRITER, str(folder)]
    running = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    assert [(each.communicate(timeout=HANG)[1], each.returncode) for each in running] == [("", 0)] * 3
    kept = Objects(folder, 200_000)
    assert kept.usage()[0] == 20
    assert all(kept.find(key_of(str(number))) is not None for number in range(20))
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]


def test_the_folder(clean_environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    clean_environment.setenv("WEBGRAD_CACHE", str(tmp_path))
    config.reload()
    assert objects_folder() == tmp_path / "native"
    clean_environment.delenv("WEBGRAD_CACHE")
    config.reload()
    clean_environment.setattr(objects, "cache_path", lambda: None)
    assert objects_folder() is None
    assert compiler.objects().find(KEY) is None


# With the compiler


def module_of(number: int) -> str:
    return Function("run", [("ptr", "fields")], "i64").module(last=f"ret i64 {number}")


@pytest.fixture
def compiles(
    clean_environment: pytest.MonkeyPatch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """What is compiled, with a cache of its own and nothing loaded."""
    clean_environment.setenv("WEBGRAD_CACHE", str(tmp_path))
    config.reload()
    monkeypatch.setattr(compiler, "_loaded", {})
    seen: list[str] = []
    image = compiler._Compiler.image

    def watched(self: compiler._Compiler, text: str, names: list[str]) -> bytes:
        seen.append(text)
        return image(self, text, names)

    monkeypatch.setattr(compiler._Compiler, "image", watched)
    return seen


def run(number: int) -> int:
    return callable_at(functions(module_of(number), ["run"])["run"])[0](0)


def test_what_was_compiled_is_loaded(compiles: list[str]) -> None:
    assert run(1001) == 1001
    compiler._loaded.clear()  # as in another process
    assert run(1001) == 1001
    assert run(1002) == 1002
    assert compiles == [module_of(1001), module_of(1002)]
    assert compiler.objects().usage()[0] == 2


def test_another_processor_is_another_object(
    compiles: list[str], clean_environment: pytest.MonkeyPatch
) -> None:
    run(1003)
    clean_environment.setenv("WEBGRAD_PROCESSOR", "aarch64" if architecture() == "aarch64" else "x86-64-v2")
    config.reload()
    assert run(1003) == 1003
    assert len(compiles) == 2


def test_passes_are_a_part_of_the_key(compiles: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    run(1004)
    monkeypatch.setattr(compiler, "_PASSES", compiler._PASSES[:1])
    compiler._compiler.cache_clear()
    assert run(1004) == 1004
    compiler._compiler.cache_clear()
    assert len(compiles) == 2


def test_a_file_that_is_whole_and_not_code(compiles: list[str]) -> None:
    kept = compiler.objects()
    run(1005)
    [name] = [path.stem for path in (kept.folder or Path()).iterdir()]
    kept.keep(name, b"not an object file")
    compiler._loaded.clear()
    assert run(1005) == 1005
    assert len(compiles) == 2
    assert (kept.find(name) or b"").startswith(b"\x7fELF") or sys.platform == "darwin"


def test_no_cache(compiles: list[str], clean_environment: pytest.MonkeyPatch) -> None:
    clean_environment.setenv("WEBGRAD_NATIVE_CACHE", "0")
    config.reload()
    assert run(1006) == 1006
    compiler._loaded.clear()
    assert run(1006) == 1006
    assert len(compiles) == 2
    assert compiler.objects().usage() == (0, 0)
