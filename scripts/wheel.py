"""The wheel of this checkout: `python -m scripts.wheel FOLDER`.

In: the checkout, and a folder. Out: one wheel in that folder, the older ones of it gone. hatchling, which
builds it, is fetched for the moment where it is not installed.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

from scripts.system import ROOT

__all__ = ["build_wheel"]


def build_wheel(folder: Path) -> Path:
    """Build the wheel into a folder, and give its path; an error has the builder's own words."""
    for older in folder.glob("webgrad-*.whl"):
        older.unlink()
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder)]
    if importlib.util.find_spec("hatchling") is not None:
        command.append("--no-build-isolation")
    done = subprocess.run([*command, str(ROOT)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the wheel could not be built:\n{done.stdout}{done.stderr}".rstrip())
    return next(folder.glob("webgrad-*.whl"))


if __name__ == "__main__":
    try:
        print(build_wheel(Path(sys.argv[1])))
    except (IndexError, RuntimeError) as error:
        sys.exit(str(error) if isinstance(error, RuntimeError) else "usage: python -m scripts.wheel FOLDER")
