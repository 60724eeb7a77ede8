"""Under a path there is the old contents or the new, never a part."""

from __future__ import annotations

import errno
import os
import signal
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import webgrad as wg


def test_it_takes_the_place_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "note.txt"
    path.write_text("old")
    with wg.io.replacing(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
        assert temporary.parent == tmp_path
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["note.txt"]  # noqa: PTH208


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_error_leaves_the_old(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "note.txt"
    path.write_text("old")

    def write() -> None:
        with wg.io.replacing(path) as temporary:
            temporary.write_text("half")
            raise error

    with pytest.raises(error):
        write()
    assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="this system has no SIGALRM")
@pytest.mark.parametrize("call", ["lstat", "stat", "listdir"])
def test_a_time_out_is_not_taken_for_an_answer_of_the_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """os.path says no for every OSError, and the TimeoutError of a handler is one."""
    path = tmp_path / "weights.safetensors"
    wg.io.save(path, {"w": wg.ones((2,))})
    calls: dict[str, list[Callable[[], object]]] = {
        "lstat": [lambda: wg.io.save(path, {"w": wg.zeros((2,))})],
        "stat": [lambda: wg.io.save(path, {"w": wg.zeros((2,))}), lambda: wg.io.load(path)],
        "listdir": [lambda: wg.io.load(tmp_path)],
    }
    ask = getattr(os, call)

    def struck(*arguments: Any, **options: Any) -> Any:
        answer = ask(*arguments, **options)
        setattr(os, call, ask)  # once
        signal.raise_signal(signal.SIGALRM)
        return answer

    def handle(number: int, frame: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, handle)
    try:
        for use in calls[call]:
            monkeypatch.setattr(os, call, struck)
            with pytest.raises(TimeoutError):
                use()
    finally:
        signal.signal(signal.SIGALRM, before)
    assert wg.io.load(path)["w"].tolist() == [1, 1]
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


@pytest.mark.skipif(os.name == "nt", reason="Windows has other permissions")
def test_permissions_are_those_of_any_file(tmp_path: Path) -> None:
    plain, ours = tmp_path / "plain", tmp_path / "ours"
    plain.write_text("")
    for _ in range(2):
        with wg.io.replacing(ours) as temporary:
            temporary.write_text("x")
        assert stat.S_IMODE(ours.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)
        plain.chmod(0o640)
        ours.chmod(0o640)


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(wg.ModelFileError, match="no folder"), wg.io.replacing(tmp_path / "a" / "b"):
        pass
    with pytest.raises(wg.ModelFileError, match="it is a folder"), wg.io.replacing(tmp_path):
        pass


@pytest.mark.skipif(os.name == "nt", reason="Windows lets few users make links")
def test_links_stay_links(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    path, link = tmp_path / "real" / "note.txt", tmp_path / "link.txt"
    link.symlink_to(path)
    for text in ("first", "second"):
        with wg.io.replacing(link) as temporary:
            temporary.write_text(text)
        assert link.is_symlink()
        assert path.read_text() == text


def test_what_the_system_refuses_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(wg.ModelFileError, match="too long"), wg.io.replacing(tmp_path / ("n" * 300)):
        pass
    monkeypatch.setattr(os, "fsync", full)
    with (
        pytest.raises(wg.ModelFileError, match="cannot be written: No space"),
        wg.io.replacing(tmp_path / "x"),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such mask")
def test_threads_leave_the_mask_of_permissions_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = os.umask(0o022)
    umask = os.umask

    def slow(mask: int) -> int:
        found = umask(mask)
        time.sleep(0.01)  # another thread comes in between
        return found

    def write(number: int) -> None:
        with wg.io.replacing(tmp_path / str(number)) as temporary:
            temporary.write_text("new")

    monkeypatch.setattr(os, "umask", slow)
    try:
        threads = [threading.Thread(target=write, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        after = umask(before)
    assert after == 0o022
