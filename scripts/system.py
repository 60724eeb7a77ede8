"""What the tools share: where things are, running commands, and the system's package manager.

In: command lists. Out: exit codes and texts. Nothing is installed on the system without root or a sudo that
asks for no password.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

__all__ = ["ROOT", "VENV", "apt_prefix", "os_release", "run_apt", "say", "venv_python"]

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
OS_RELEASE = Path("/etc/os-release")
APT_LOCK = threading.Lock()  # apt-get fails where another one is at work; steps may run beside each other


def say(text: str) -> None:
    """One line about what is being done."""
    print(f"webgrad: {text}", flush=True)


def venv_python() -> Path:
    """The interpreter of the project's virtual environment."""
    return VENV / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def os_release(path: Path = OS_RELEASE) -> dict[str, str]:
    """The fields of os-release; empty where there is none."""
    if not path.is_file():
        return {}
    lines = path.read_text(encoding="utf-8").splitlines()
    pairs = (line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    return {key: value.strip().strip("\"'") for key, value in pairs}


def apt_prefix() -> list[str] | None:
    """What to put before apt-get: nothing as root, sudo where it asks for no password, None where neither."""
    if shutil.which("apt-get") is None:
        return None
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        return []
    if shutil.which("sudo") is None:
        return None
    asks_nothing = subprocess.run(["sudo", "-n", "true"], capture_output=True, check=False).returncode == 0
    return ["sudo", "-n"] if asks_nothing else None


def run_apt(prefix: Sequence[str], *arguments: str) -> str:
    """Run apt-get quietly; the end of its output where it failed, else ""."""
    command = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq", *arguments]
    with APT_LOCK:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
    if done.returncode == 0:
        return ""
    return "\n".join(done.stdout.strip().splitlines()[-3:]) or f"exit code {done.returncode}"
