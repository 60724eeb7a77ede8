"""When a browser is installed, and what is said where it cannot be; the system is left alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from scripts import browser
from scripts.browser import PROGRAMS, Program, find_browser

DEBIAN = {"ID": "debian", "VERSION_ID": "12"}


def run_on(
    monkeypatch: pytest.MonkeyPatch,
    system: dict[str, str],
    prefix: list[str] | None,
    answers: Sequence[str] = (),
    found: str | None = None,
    name: str = "chromium",
) -> list[str]:
    """What apt-get was asked for, where it gives these answers."""
    asked: list[str] = []
    installed: list[str] = []
    left = list(answers)

    def run_apt(prefix: Sequence[str], *arguments: str) -> str:
        asked.append(arguments[0])
        installed.extend(arguments[3:])
        return left.pop(0)

    monkeypatch.delenv(browser.PROGRAMS[name].variable, raising=False)
    monkeypatch.setattr("scripts.browser.sys.platform", "linux")
    monkeypatch.setattr(browser, "find", lambda name: found)
    monkeypatch.setattr(browser, "os_release", lambda: system)
    monkeypatch.setattr(browser, "apt_prefix", lambda: prefix)
    monkeypatch.setattr(browser, "run_apt", run_apt)
    assert browser.main([name]) == 0
    assert set(installed) <= set(browser.PROGRAMS[name].packages)
    return asked


def test_nothing_is_done_where_there_is_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_on(monkeypatch, DEBIAN, [], found="/usr/bin/chromium") == []
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("name", "words"), [("firefox", "installing firefox-esr\n"), ("node", "installing nodejs npm\n")]
)
def test_the_other_programs(
    name: str, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_on(monkeypatch, DEBIAN, [], [""], name=name) == ["install"]
    assert words in capsys.readouterr().out


def test_an_unknown_program(capsys: pytest.CaptureFixture[str]) -> None:
    assert browser.main(["opera"]) == 2
    assert "there is no opera; there are chromium firefox node" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("answers", "asked", "words"),
    [
        ([""], ["install"], ""),
        (["E: not found", "", ""], ["install", "update", "install"], ""),
        (["E: a", "E: b", "E: no such package"], ["install", "update", "install"], "E: no such package"),
    ],
)
def test_lists_are_fetched_only_where_they_are_missing(
    answers: list[str],
    asked: list[str],
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_on(monkeypatch, DEBIAN, [], answers) == asked
    said = capsys.readouterr().out
    assert "installing chromium-headless-shell" in said
    assert ("could not be installed" in said, words in said) == (bool(words), True)


@pytest.mark.parametrize(
    ("system", "words"), [(DEBIAN, "as root, run: apt-get install"), ({"ID": "fedora"}, "name it in CHROME")]
)
def test_without_the_right_to_install_it_says_what_to_do(
    system: dict[str, str], words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_on(monkeypatch, system, None) == []
    assert words in capsys.readouterr().out


def test_a_browser_by_its_name_or_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own = tmp_path / "chromium"
    own.write_text("#!/bin/sh\n", encoding="utf-8")
    own.chmod(0o755)
    monkeypatch.setitem(
        cast("dict[str, Program]", PROGRAMS), "chromium", replace(PROGRAMS["chromium"], places=())
    )
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CHROME", raising=False)
    assert find_browser() == str(own)
    monkeypatch.setenv("CHROME", str(tmp_path / "missing"))
    assert find_browser() is None
    monkeypatch.setenv("CHROME", str(own))
    assert find_browser() == str(own)
