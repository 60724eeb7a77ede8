"""Give the tests a headless Chromium: `python -m scripts.browser`.

In: the system, and CHROME where a user names a browser. Out: on Debian, with root or a sudo that asks for
nothing, an installed chromium-headless-shell: with all it needs 107 MB to fetch where the whole browser takes
149, and it has WebGPU too. It never fails a run: what it cannot do it says, and the tests say loudly which of
them were skipped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from scripts.driver import is_debian_like
from scripts.system import apt_prefix, os_release, run_apt, say

__all__ = ["ensure_browser", "find_browser", "main"]

PACKAGE = "chromium-headless-shell"
NAMES = (PACKAGE, "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PLACES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)


def find_browser() -> str | None:
    """The path of a Chromium: CHROME's where that is set, else one of the usual names."""
    if named := os.environ.get("CHROME"):
        return shutil.which(named)
    found = (shutil.which(name) for name in NAMES)
    return next((path for path in (*found, *PLACES) if path and Path(path).exists()), None)


def ensure_browser() -> None:
    """Install a headless Chromium where there is none."""
    if sys.platform != "linux" or os.environ.get("CHROME") or find_browser():
        return
    system = os_release()
    if not is_debian_like(system):
        say("no Chromium was found; install one, or name it in CHROME, to run the tests of pages")
        return
    prefix = apt_prefix()
    if prefix is None:
        say(f"no Chromium was found; as root, run: apt-get install {PACKAGE}")
        return
    say(f"no Chromium was found; installing {PACKAGE}")
    command = ("install", "-y", "--no-install-recommends", PACKAGE)
    # Lists are there and new on most machines; where not, they are fetched, and it is tried again.
    if run_apt(prefix, *command):
        run_apt(prefix, "update")
        if problem := run_apt(prefix, *command):
            say(f"{PACKAGE} could not be installed: {problem}")


def main() -> int:
    """The command line; always 0, because the other tests are worth running too."""
    try:
        ensure_browser()
    except (OSError, subprocess.SubprocessError) as error:
        say(f"the browser could not be looked after: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
