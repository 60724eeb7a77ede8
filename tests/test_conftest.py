"""Without an adapter the tests marked gpu are skipped loudly, and with CI=true the run fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from webgrad.config import BACKENDS

ROOT = Path(__file__).parents[1]
GPU_TEST = "tests/runtime/test_adapters.py::test_this_machine"


def run_without_adapters(ci: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", GPU_TEST],
        cwd=ROOT,
        env=os.environ | {"CI": ci, "WEBGRAD_DISABLE_BACKENDS": ",".join(BACKENDS)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(("ci", "code", "closing"), [("", 0, "1 skipped"), ("true", 1, "1 error")])
def test_gpu_tests_without_an_adapter(ci: str, code: int, closing: str) -> None:
    done = run_without_adapters(ci)
    assert done.returncode == code, done.stdout
    assert "GPU TESTS WERE SKIPPED: no adapter" in done.stdout
    assert "; 1 tests did not run." in done.stdout
    assert closing in done.stdout.splitlines()[-1]
