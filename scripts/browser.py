"""Give the tests their browsers, and node: `python -m scripts.browser [chromium] [firefox] [node]`.

In: the system, and CHROME, FIREFOX or NODE where a user names a program. Out: on Debian, with root or a sudo
that asks for nothing, the missing ones installed; of Chromium the headless shell, which is 107 MB to fetch
where the whole browser takes 149, and has WebGPU too. It never fails a run: what it cannot do it says, and
the tests say loudly which of them were skipped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts.driver import is_debian_like
from scripts.system import apt_prefix, os_release, run_apt, say

__all__ = ["PROGRAMS", "Program", "ensure", "find", "find_browser", "main"]


@dataclass(frozen=True, slots=True)
class Program:
    """What tests start, and where it comes from."""

    title: str
    variable: str  # of the environment, where a user names one
    packages: tuple[str, ...]  # of Debian
    names: tuple[str, ...]  # on PATH, the best first
    places: tuple[str, ...] = ()  # where it is without being on PATH


PROGRAMS: Mapping[str, Program] = {
    "chromium": Program(
        "Chromium",
        "CHROME",
        ("chromium-headless-shell",),
        (
            "chromium-headless-shell",
            "chromium",
            "chromium-browser",
            "google-chrome",
            "google-chrome-stable",
            "chrome",
        ),
        (
            "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
            "/Applications/Chromium.app/Contents/MacOS/Chromium",
        ),
    ),
    "firefox": Program(
        "Firefox",
        "FIREFOX",
        ("firefox-esr",),
        ("firefox-esr", "firefox"),
        ("/Applications/Firefox.app/Contents/MacOS/firefox",),
    ),
    "node": Program("node", "NODE", ("nodejs", "npm"), ("node",)),
}


def find(name: str) -> str | None:
    """The path of a program: its variable's where that is set, else one of the usual names."""
    program = PROGRAMS[name]
    if named := os.environ.get(program.variable):
        return shutil.which(named)
    found = (shutil.which(each) for each in program.names)
    return next((path for path in (*found, *program.places) if path and Path(path).exists()), None)


def find_browser() -> str | None:
    """The path of a Chromium."""
    return find("chromium")


def ensure(name: str) -> None:
    """Install a program where there is none."""
    program = PROGRAMS[name]
    if sys.platform != "linux" or os.environ.get(program.variable) or find(name):
        return
    missing, packages = f"no {program.title} was found", " ".join(program.packages)
    if not is_debian_like(os_release()):
        say(f"{missing}; install one, or name it in {program.variable}, to run the tests of pages")
        return
    prefix = apt_prefix()
    if prefix is None:
        say(f"{missing}; as root, run: apt-get install {packages}")
        return
    say(f"{missing}; installing {packages}")
    command = ("install", "-y", "--no-install-recommends", *program.packages)
    # Lists are there and new on most machines; where not, they are fetched, and it is tried again.
    if run_apt(prefix, *command):
        run_apt(prefix, "update")
        if problem := run_apt(prefix, *command):
            say(f"{packages} could not be installed: {problem}")


def main(names: Sequence[str] = ("chromium",)) -> int:
    """Look after each of these; 0 where the names are known, since other tests are worth running too."""
    if unknown := [name for name in names if name not in PROGRAMS]:
        say(f"there is no {' '.join(unknown)}; there are {' '.join(PROGRAMS)}")
        return 2
    for name in names:
        try:
            ensure(name)
        except (OSError, subprocess.SubprocessError) as error:
            say(f"{PROGRAMS[name].title} could not be looked after: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ("chromium",)))
