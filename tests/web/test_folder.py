"""The folder of an export: what is replaced, what stays, and what a failure leaves."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

import webgrad as wg
from webgrad.web.bundle import Bundle
from webgrad.web.folder import check_target, write_export

FACTS: Mapping[str, Any] = {"title": "A page"}


class Small:
    """A bundle of no functions."""

    def __init__(self, failure: BaseException | None = None) -> None:
        self.failure = failure

    def write(self, folder: Path) -> None:
        (folder / "plan.json").write_text('{"format":"webgrad-plan","weights":[]}', encoding="utf-8")
        (folder / "model.js").write_text("export { };", encoding="utf-8")
        if self.failure is not None:
            raise self.failure


def write(path: Path, failure: BaseException | None = None, *, overwrite: bool = False) -> Path:
    return write_export(cast(Bundle, Small(failure)), path, "plain", FACTS, overwrite=overwrite)


@pytest.mark.parametrize("name", ["index.html", "plan.json", "model.js"])
def test_files_of_the_user_stay(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("mine", encoding="utf-8")
    with pytest.raises(wg.ArgumentError, match=f"{name} is there already.*overwrite=True"):
        write(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text(encoding="utf-8") == "mine"
    write(tmp_path, overwrite=True)
    assert (tmp_path / name).read_text(encoding="utf-8") != "mine"


def test_a_page_of_the_user_is_seen_before_all_the_work(tmp_path: Path) -> None:
    def never(x: wg.Tensor) -> wg.Tensor:
        raise AssertionError("traced")

    (tmp_path / "index.html").write_text("mine", encoding="utf-8")
    with pytest.raises(wg.ArgumentError, match=r"index\.html is there already"):
        wg.export(never, wg.ones(2), tmp_path)
    with pytest.raises(wg.ArgumentError, match=r"index\.html is there already"):
        wg.export(never, wg.ones(2), tmp_path / "index.html")


def test_an_earlier_export_is_replaced_and_other_files_stay(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine", encoding="utf-8")
    page = write(tmp_path)
    page.write_text(page.read_text(encoding="utf-8") + "old", encoding="utf-8")
    write(tmp_path)
    assert not page.read_text(encoding="utf-8").endswith("old")
    assert (tmp_path / "mine.txt").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("failure", [KeyboardInterrupt(), SystemExit(143), OSError(28, "full")])
def test_a_failure_leaves_nothing(failure: BaseException, tmp_path: Path) -> None:
    with pytest.raises(type(failure)):
        write(tmp_path / "new" / "out", failure)
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_export_left_is_removed(tmp_path: Path) -> None:
    left, fresh = tmp_path / ".webgrad-export-left", tmp_path / ".webgrad-export-fresh"
    for each in (left, fresh):
        each.mkdir()
        (each / "weights").write_bytes(b"x")
    os.utime(left, (time.time() - 3600,) * 2)
    write(tmp_path)
    assert fresh.exists()  # another export may be about to lock it
    assert not left.exists() or os.name == "nt"


@pytest.mark.skipif(os.name == "nt", reason="folders have no locks there")
def test_what_another_export_writes_stays(tmp_path: Path) -> None:
    import fcntl

    other = tmp_path / ".webgrad-export-other"
    other.mkdir()
    os.utime(other, (time.time() - 3600,) * 2)
    handle = os.open(other, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        write(tmp_path)
    finally:
        os.close(handle)
    assert other.exists()


def test_nothing_is_made_by_looking(tmp_path: Path) -> None:
    assert check_target(tmp_path / "out") == tmp_path / "out"
    assert check_target(tmp_path / "out" / "page.html") == tmp_path / "out"
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "index.html").mkdir()
    with pytest.raises(wg.ArgumentError, match="is a folder"):
        check_target(tmp_path)
