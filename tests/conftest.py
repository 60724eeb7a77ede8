"""What every test run shares: the drivers' environment, Hypothesis profiles, and what happens without a GPU.

A test marked gpu is skipped where there is no Vulkan, Metal or DirectX 12 adapter, and a test of a page where
there is no Chromium. That is never silent: the summary says so in a block of its own, and with CI=true the
run fails.
"""

from __future__ import annotations

import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING

import hypothesis
import pytest

from scripts.adapter import adapter_environment
from tests.missing import IN_CI, missing_key, need_program

if TYPE_CHECKING:
    from tests.browser import Browser

# Before anything loads a driver, so that a bare `pytest` runs as `make test` does.
for name, value in adapter_environment().items():
    os.environ.setdefault(name, value)
os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.gettempdir())
os.environ.setdefault("WEBGRAD_CONFIG", os.devnull)  # not the developer's own settings
os.environ.setdefault("WEBGRAD_DEVICE", "cpu")  # by default, whatever GPU there is; tests of GPUs name it
os.environ.setdefault("SCIPY_ARRAY_API", "1")  # SciPy takes tensors; it asks when it is first imported
# A shell that starts a job in the background has it ignore Ctrl-C, and our children would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# What is printed is the same at every terminal.
for name in ("COLUMNS", "NO_COLOR"):
    os.environ.pop(name, None)
# All objects are looked through a tenth as often: that was a tenth of the time of tests with many graphs.
gc.set_threshold(700, 10, 100)
# Where no bytecode is to be written beside the sources, children would compile all of webgrad, each anew.
BYTECODE = tempfile.mkdtemp() if os.environ.pop("PYTHONDONTWRITEBYTECODE", "") else None
if BYTECODE is not None:
    os.environ["PYTHONPYCACHEPREFIX"] = BYTECODE

# The same examples in every run, on machines however slow; `--hypothesis-profile random` draws others.
SLOW = [hypothesis.HealthCheck.too_slow]
hypothesis.settings.register_profile("random", deadline=None, suppress_health_check=SLOW)
hypothesis.settings.register_profile(
    "same", deadline=None, suppress_health_check=SLOW, derandomize=True, database=None
)
hypothesis.settings.load_profile("same")

skipped_key = pytest.StashKey[int]()
NO_ADAPTER = "no adapter but OpenGL ones was found; `webgrad info` says what to install"


def has_adapter() -> bool:
    """Whether the tests marked gpu can run."""
    from webgrad.runtime.adapters import list_adapters

    return any(adapter.backend != "opengl" for adapter in list_adapters())


def pytest_unconfigure() -> None:
    if BYTECODE is not None:
        shutil.rmtree(BYTECODE, ignore_errors=True)


@pytest.hookimpl(trylast=True)  # after deselection, so that only tests that would run are counted
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    gpu_items = [item for item in items if item.get_closest_marker("gpu")]
    if not gpu_items or has_adapter():
        return
    config.stash[skipped_key] = len(gpu_items)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if skipped_key in item.config.stash and item.get_closest_marker("gpu"):
        # In CI an error, so that the closing line cannot be read as a success.
        if IN_CI:
            pytest.fail(NO_ADAPTER, pytrace=False)
        pytest.skip(NO_ADAPTER)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if reasons := config.stash.get(missing_key, []):
        terminalreporter.section("TESTS OF PAGES WERE SKIPPED", sep="!", red=True, bold=True)
        for reason in reasons:
            terminalreporter.line(f"TESTS OF PAGES WERE SKIPPED: {reason}.")
    count = config.stash.get(skipped_key, 0)
    if not count:
        return
    terminalreporter.section("GPU TESTS WERE SKIPPED", sep="!", red=True, bold=True)
    terminalreporter.line(f"GPU TESTS WERE SKIPPED: {NO_ADAPTER}; {count} tests did not run.")
    if IN_CI:
        terminalreporter.line("CI=true: each of them counts as an error.")


@pytest.fixture
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """No WEBGRAD_ variable but the path of an empty file; settings are read anew, before and after."""
    from webgrad import config

    for name in [name for name in os.environ if name.startswith("WEBGRAD_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("WEBGRAD_CONFIG", os.devnull)
    config.settings.cache_clear()
    yield monkeypatch
    config.settings.cache_clear()


@pytest.fixture
def compiled_at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Graphs on the cpu are native code from the first run on: no run differs from another."""
    from webgrad import config
    from webgrad.evaluate.evaluate import clear_plans

    clear_plans()
    monkeypatch.setenv("WEBGRAD_COMPILE", "always")
    config.reload()
    yield
    monkeypatch.undo()
    config.reload()
    clear_plans()


@pytest.fixture
def browser(running_browser: Browser) -> Iterator[Browser]:
    """A headless Chromium; the pages that a test opens are closed after it."""
    yield running_browser
    running_browser.close_pages()


@pytest.fixture(scope="session")
def running_browser(pytestconfig: pytest.Config) -> Iterator[Browser]:
    """A headless Chromium for every test of a page; without one they are skipped, and in CI they fail."""
    need_program(pytestconfig, "chromium")
    from tests.browser import WEBGPU, Browser

    with Browser(*WEBGPU) as running:
        yield running
