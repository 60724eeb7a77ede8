"""Without an adapter or a browser the tests that need one are skipped loudly; with CI=true the run fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from webgrad.config import BACKENDS

ROOT = Path(__file__).parents[1]
GPU_TEST = "tests/runtime/test_adapters.py::test_this_machine"
PAGE_TEST = "tests/test_browser.py::test_values_of_expressions"
FIREFOX_TEST = "tests/web/test_browsers.py::test_webgpu_computes[firefox]"
TESTS = (GPU_TEST, PAGE_TEST, FIREFOX_TEST)
NOWHERE = "/no/such/browser"


def run_without_any(ci: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-m", "not soak", *TESTS],
        cwd=ROOT,
        env=os.environ
        | {"CI": ci, "WEBGRAD_DISABLE_BACKENDS": ",".join(BACKENDS), "CHROME": NOWHERE, "FIREFOX": NOWHERE},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(("ci", "code", "closing"), [("", 0, "3 skipped"), ("true", 1, "3 errors")])
def test_without_an_adapter_and_a_browser(ci: str, code: int, closing: str) -> None:
    done = run_without_any(ci)
    assert done.returncode == code, done.stdout
    assert "GPU TESTS WERE SKIPPED: no adapter" in done.stdout
    assert "; 1 tests did not run." in done.stdout
    assert "TESTS OF PAGES WERE SKIPPED: no Chromium was found" in done.stdout
    assert "TESTS OF PAGES WERE SKIPPED: no Firefox was found" in done.stdout
    assert closing in done.stdout.splitlines()[-1]
