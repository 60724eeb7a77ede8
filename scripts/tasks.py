"""The Makefile's targets: `python -m scripts.tasks demo|test|check|format|tint|bench|… [arguments]`.

In: a target's name, and arguments for its last command. Out: that command's exit code. A target is a list of
steps; the first step that fails ends it. Steps run in .venv, which is made or brought up to date first.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import IO

from scripts.adapter import adapter_environment, cache_folder
from scripts.browser import main as ensure_browser
from scripts.conformance import FOLDER as CONFORMANCE_VENV
from scripts.driver import main as ensure_driver
from scripts.npm import FOLDER as NPM
from scripts.npm import ensure_packages
from scripts.peer_tests import SUITES
from scripts.setup import main as setup
from scripts.suite import GROUPS, WHOLE, arguments_of, lanes_of, run_groups
from scripts.system import ROOT, VENV, say, venv_python
from scripts.torch_tests import FOLDER as TORCH_VENV

__all__ = ["TARGETS", "main"]

CACHES = (".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", "build", "dist", "site")
Step = Callable[[Sequence[str]], int]


def python(*command: str, extra: bool = False, environment: Mapping[str, str] | None = None) -> Step:
    """A step that runs .venv's Python; with `extra` the user's arguments are added."""

    def step(arguments: Sequence[str]) -> int:
        full = [str(venv_python()), *command, *(arguments if extra else ())]
        return subprocess.run(full, cwd=ROOT, env=run_environment(environment or {}), check=False).returncode

    return step


def with_its_own_interrupts(step: Step) -> Step:
    """The same step, whose command alone decides what Ctrl-C means; the terminal sends it to both."""

    def patient(arguments: Sequence[str]) -> int:
        # A function, because what is ignored would be ignored by the command as well.
        before = signal.signal(signal.SIGINT, lambda number, frame: None)
        try:
            return step(arguments)
        finally:
            signal.signal(signal.SIGINT, before)

    return patient


def run_environment(more: Mapping[str, str]) -> dict[str, str]:
    """This environment with what drivers ask for; what the user has set stays."""
    # Mesa complains on standard error where XDG_RUNTIME_DIR is missing.
    return {"XDG_RUNTIME_DIR": tempfile.gettempdir(), **more, **os.environ}


def install(_: Sequence[str]) -> int:
    """Make .venv with the runtime dependencies and what language models need."""
    return setup([])


def install_dev(_: Sequence[str]) -> int:
    """Make .venv with the development tools."""
    return setup(["--dev"])


def driver(_: Sequence[str]) -> int:
    """See to a Vulkan adapter, where that can be done."""
    return ensure_driver()


def beside(work: Callable[[], object]) -> tuple[Step, Step]:
    """Two steps of one piece of work: the first begins it in a thread, the second waits for its end."""
    threads: list[threading.Thread] = []

    def begin(_: Sequence[str]) -> int:
        # No daemon: a target that fails waits for it as well, since apt-get must not lose its reader.
        threads.append(threading.Thread(target=work))
        threads[-1].start()
        return 0

    def finish(_: Sequence[str]) -> int:
        while threads:
            threads.pop().join()
        return 0

    return begin, finish


def tint(_: Sequence[str]) -> int:
    """Install the second shader compiler, once; without it its tests are skipped."""
    ensure_packages()
    return 0


def web(_: Sequence[str]) -> int:
    """Install what tests of pages need: two browsers, node, and all packages of scripts/web."""
    ensure_browser(("chromium", "firefox", "node"))
    ensure_packages(everything=True)
    return 0


def clean(_: Sequence[str]) -> int:
    """Remove everything that the other targets made."""
    folders = [
        VENV,
        TORCH_VENV,
        *(each.folder for each in SUITES.values()),
        CONFORMANCE_VENV,
        *ROOT.glob(".venv-onnx-*"),
        ROOT / ".peers",
        cache_folder(),
        NPM / "node_modules",
        *(ROOT / name for name in CACHES),
    ]
    folders += [path for top in ("webgrad", "tests", "scripts") for path in (ROOT / top).rglob("__pycache__")]
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


TEST_ENVIRONMENT = adapter_environment()


def pytest(*command: str) -> Step:
    """A step that runs pytest with the environment of tests."""
    return python("-m", "pytest", *command, extra=True, environment=TEST_ENVIRONMENT)


def types_and_tests(*options: str) -> Step:
    """A step that checks types and runs pytest; without the user's arguments in several processes at once."""

    def step(arguments: Sequence[str]) -> int:
        if arguments:
            return python("-m", "mypy")(()) or pytest(*options)(arguments)
        with shared_bytecode() as environment:
            groups = [["mypy"], *arguments_of(GROUPS, options)]
            return run_groups(groups, partial(start_group, environment))

    return step


@contextmanager
def shared_bytecode() -> Iterator[Mapping[str, str]]:
    """Variables with which every source is compiled once in a run, where none is to be kept beside it."""
    with tempfile.TemporaryDirectory() as folder:
        kept = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": folder}
        yield kept if os.environ.get("PYTHONDONTWRITEBYTECODE") else {}


def start_group(more: Mapping[str, str], group: Sequence[str], output: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start a module of Python, with its arguments, in the environment of tests and more of it."""
    command = [str(venv_python()), "-m", *group]
    environment = run_environment(adapter_environment(lanes_of(group))) | dict(more)
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT)


# mkdocs-material tells of its successor at every build; what is said about these pages is not to drown in it.
DOCS_ENVIRONMENT = {"NO_MKDOCS_2_WARNING": "1"}
# With the model's own words around it, as many tokens as are read at once: the answer starts the sooner.
QUESTION = ("--first", "Explain photosynthesis.", "--temperature", "0.2")
PREPARE: tuple[Step, ...] = (install_dev, driver, tint)
# What only `make test-browser` runs is marked web; with it run the quick tests of the same things.
PAGES = ("tests/web", "tests/test_browser.py")
begin_browser, finish_browser = beside(ensure_browser)
READY: tuple[Step, ...] = (
    begin_browser,
    *PREPARE,
    python("-m", "ruff", "format", "--check", "--quiet", "."),
    python("-m", "ruff", "check", "--quiet", "."),
    finish_browser,
)
CHECKS: tuple[Step, ...] = (*READY, types_and_tests())
TARGETS: Mapping[str, tuple[Step, ...]] = {
    "demo": (
        install,
        with_its_own_interrupts(python("-m", "webgrad.cli", "chat", *QUESTION, extra=True)),
    ),
    "test": CHECKS,
    "check": CHECKS,
    "test-long": (*READY, types_and_tests(*WHOLE)),
    "format": (install_dev, python("-m", "ruff", "check", "--fix", "."), python("-m", "ruff", "format", ".")),
    "test-browser": (install_dev, driver, web, pytest("-m", "not soak", *PAGES)),
    "test-torch": (
        install_dev,
        python("-m", "scripts.torch_tests", extra=True, environment=TEST_ENVIRONMENT),
    ),
    "test-programs": (
        install_dev,
        python("-m", "scripts.programs", extra=True, environment=TEST_ENVIRONMENT),
    ),
    "test-transformers": (
        install_dev,
        driver,
        python("-m", "scripts.peer_tests", "transformers", extra=True, environment=TEST_ENVIRONMENT),
    ),
    "test-diffusers": (
        install_dev,
        driver,
        python("-m", "scripts.peer_tests", "diffusers", extra=True, environment=TEST_ENVIRONMENT),
    ),
    "conformance": (
        install_dev,
        driver,
        python("-m", "scripts.conformance", extra=True, environment=TEST_ENVIRONMENT),
    ),
    "conformance-onnx": (
        install_dev,
        driver,
        python("-m", "scripts.onnx_conformance", extra=True, environment=TEST_ENVIRONMENT),
    ),
    "tint": (*PREPARE, pytest("tests/kernels/test_tint.py")),
    "bench": (install_dev, driver, python("benchmarks/run.py", extra=True)),
    "bench-peers": (install_dev, python("benchmarks/run.py", "--make-peers")),
    "bench-browser": (install_dev, python("benchmarks/browser/run.py", extra=True)),
    "promises": (install_dev, driver, python("benchmarks/run_all.py")),
    "fault": (*PREPARE, python("-m", "scripts.fault", extra=True, environment=TEST_ENVIRONMENT)),
    "soak": (*PREPARE, python("-m", "scripts.soak", extra=True, environment=TEST_ENVIRONMENT)),
    "fuzz": (*PREPARE, python("-m", "scripts.fuzz", extra=True, environment=TEST_ENVIRONMENT)),
    "mutants": (*PREPARE, python("-m", "scripts.mutants", extra=True, environment=TEST_ENVIRONMENT)),
    "gpus": (install_dev, driver, python("-m", "scripts.gpus", extra=True, environment=TEST_ENVIRONMENT)),
    "docs": (
        install_dev,
        python("-m", "mkdocs", "build", "--strict", extra=True, environment=DOCS_ENVIRONMENT),
    ),
    "clean": (clean,),
}


def main(arguments: Sequence[str]) -> int:
    """Run a target's steps, up to the first that fails."""
    if not arguments or arguments[0] not in TARGETS:
        say(f"the targets are {' '.join(TARGETS)}")
        return 2 if arguments else 0
    for step in TARGETS[arguments[0]]:
        if code := step(arguments[1:]):
            return code
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
