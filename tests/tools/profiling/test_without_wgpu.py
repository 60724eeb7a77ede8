"""Where wgpu cannot be loaded, as in browsers, the cpu's tools work, and the GPU's say what is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
PROGRAM = """
import sys
sys.modules["wgpu"] = None  # importing it fails from here on
import webgrad as wg

wg.set_default_device("cpu")
with wg.profile() as profile:
    x = wg.ones(1000) + 1
    x.numpy()
print(profile.kernels[0].count, wg.memory().devices["cpu"].live)
for tool in (lambda: wg.check(lambda: x + 1), lambda: wg.replay("run.zip")):
    try:
        tool()
    except wg.DeviceError as error:
        print(repr(str(error)))
"""


def test_tools_without_wgpu() -> None:
    environment = {**os.environ, "WEBGRAD_DEVICE": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    first, *errors = done.stdout.splitlines()
    assert first == "1 4000"
    assert len(errors) == 2
    assert all("wgpu cannot be loaded" in each and "pip install" in each for each in errors)
