"""When a driver is installed, from where, and what happens when that fails; the system is left alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from scripts import driver
from scripts.driver import Adapter, install, is_debian_like, need, read_sources

DEBIAN_12 = {"ID": "debian", "VERSION_ID": "12"}
UBUNTU = {"ID": "ubuntu", "ID_LIKE": "debian", "VERSION_ID": "24.04"}
OLD = Adapter("llvmpipe", "Vulkan", "CPU", "Mesa 22.3.6 (LLVM 15.0.6)")
NEW = Adapter("llvmpipe", "Vulkan", "CPU", "Mesa 25.0.7-2~bpo12+1 (LLVM 15.0.6)")
OPENGL = Adapter("llvmpipe", "OpenGL", "CPU", "4.5 (Core Profile) Mesa 25.0.7")
REAL = Adapter("Radeon", "Vulkan", "DiscreteGPU", "Mesa 22.3.6")
MAIN = "Types: deb\nURIs: http://mirror.example/debian\nSuites: bookworm\nComponents: main\n"


@pytest.mark.parametrize(
    ("adapters", "system", "why"),
    [
        ([], DEBIAN_12, "no Vulkan adapter was found"),
        ([OPENGL], UBUNTU, "no Vulkan adapter was found"),
        ([OLD, OPENGL], DEBIAN_12, "the software adapter is Mesa 22, which is ten times slower than Mesa 25"),
        ([OLD], UBUNTU, ""),
        ([NEW], DEBIAN_12, ""),
        ([REAL, OLD], DEBIAN_12, ""),
    ],
)
def test_need(adapters: list[Adapter], system: dict[str, str], why: str) -> None:
    assert need(adapters, system) == why


def test_debian_like() -> None:
    assert is_debian_like(DEBIAN_12)
    assert is_debian_like({"ID": "mint", "ID_LIKE": "ubuntu debian"})
    assert not is_debian_like({"ID": "fedora"})


class Apt:
    """Stands in for apt-get: keeps what it was asked for, and fails where it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path, fails: Sequence[str] = ()) -> None:
        self.asked: list[tuple[str, ...]] = []
        self.fails = fails
        (folder / "sources.list.d").mkdir()
        self.own = folder / "sources.list.d" / "webgrad-backports.sources"
        monkeypatch.setattr(driver, "run_apt", self.run)
        monkeypatch.setattr(driver, "OWN_SOURCES", self.own)
        monkeypatch.setattr(driver, "read_sources", lambda: read_sources(folder))

    def run(self, prefix: Sequence[str], *arguments: str) -> str:
        self.asked.append(arguments)
        return f"E: {arguments[0]} failed" if arguments[0] in self.fails else ""


def test_install_from_backports_writes_the_entry_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    apt = Apt(monkeypatch, tmp_path)
    (tmp_path / "sources.list.d" / "debian.sources").write_text(MAIN, encoding="utf-8")
    assert install([], "bookworm") == ""
    assert "Suites: bookworm-backports\n" in apt.own.read_text(encoding="utf-8")
    assert apt.asked[-1][-4:] == ("-t", "bookworm-backports", "mesa-vulkan-drivers", "libvulkan1")
    before = apt.own.stat().st_mtime_ns
    assert install([], "bookworm") == ""
    assert apt.own.stat().st_mtime_ns == before


def test_an_entry_that_does_not_work_is_taken_back(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    apt = Apt(monkeypatch, tmp_path, fails=("update", "install"))
    (tmp_path / "sources.list.d" / "debian.sources").write_text(MAIN, encoding="utf-8")
    assert install([], "bookworm") == "E: update failed\nE: install failed"
    assert not apt.own.exists()


def test_a_failed_update_does_not_matter_where_the_packages_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    apt = Apt(monkeypatch, tmp_path, fails=("update",))
    assert install([], "") == ""
    assert [arguments[0] for arguments in apt.asked] == ["update", "install"]


def test_no_entry_to_derive_from(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    apt = Apt(monkeypatch, tmp_path)
    assert "no apt entry for bookworm main was found" in install([], "bookworm")
    assert apt.asked == []


def test_both_kinds_of_files_are_read_and_no_others(tmp_path: Path) -> None:
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / "sources.list").write_text("deb http://one.example/debian bookworm main\n", encoding="utf-8")
    (tmp_path / "sources.list.d" / "two.sources").write_text(MAIN, encoding="utf-8")
    (tmp_path / "sources.list.d" / "three.sources.disabled").write_text(MAIN, encoding="utf-8")
    assert [source.uris[0] for source in read_sources(tmp_path)] == [
        "http://one.example/debian",
        "http://mirror.example/debian",
    ]


def run_on(
    monkeypatch: pytest.MonkeyPatch,
    system: dict[str, str],
    prefix: list[str] | None,
    found: list[list[Adapter]],
) -> None:
    monkeypatch.setattr("scripts.driver.sys.platform", "linux")
    monkeypatch.setattr(driver, "os_release", lambda: system)
    monkeypatch.setattr(driver, "apt_prefix", lambda: prefix)
    monkeypatch.setattr(driver, "probe", lambda: found.pop(0))
    assert driver.main() == 0


def test_nothing_is_done_where_there_is_an_adapter(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_on(monkeypatch, DEBIAN_12, [], [[NEW]])
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("system", "words"),
    [
        (UBUNTU, "as root, run: apt-get install mesa-vulkan-drivers"),
        ({"ID": "fedora"}, "your distribution's Mesa"),
    ],
)
def test_without_the_right_to_install_it_says_what_to_do(
    system: dict[str, str], words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_on(monkeypatch, system, None, [[]])
    assert words in capsys.readouterr().out


def test_an_installed_driver_that_gives_no_adapter_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Apt(monkeypatch, tmp_path)
    run_on(monkeypatch, UBUNTU, [], [[], []])
    assert "the driver could not be installed: no Vulkan adapter was found" in capsys.readouterr().out


def test_a_crash_of_the_probe_is_not_the_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken() -> list[Adapter]:
        raise OSError("no such file")

    monkeypatch.setattr(driver, "ensure_driver", broken)
    assert driver.main() == 0
    assert "could not be looked after: no such file" in capsys.readouterr().out
