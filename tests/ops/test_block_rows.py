"""A type of GGUF's blocks is one row of `ops/blocks.py` and one section of `kernels/blocks.pwgsl`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ABOVE_ROW = "    for each in (\n"
ROW = """        Format("Q4_X", 77, 32, 18, ((2, 16), (0, 2)),
               lambda regions: _by_scale(_nibbles(regions[0], 16)[:, 0], 3, _halves(regions[1]))),
"""
ABOVE_SECTION = "#elif FORMAT == Q4_1\n"
SECTION = """#elif FORMAT == Q4_X
#define UNITS 1
fn block_d(head: vec4<u32>, b: u32, n: u32) -> vec2<f32> {
    return block_half(block_word(4u * n + (b >> 1u)), b);
}
fn block_source(b: u32, u: u32, t: u32) -> u32 { return 4u * b; }
fn block_quants(u: u32, t: u32, a: u32, b: u32) -> vec4<f32> {
    return vec4<f32>(block_bits(a, 4u * t, 15u) - 3);
}

"""
SEEN = """
import sys
import numpy as np
import webgrad as wg
from webgrad.wgsl.variants import variant_keys

device, path = sys.argv[1:]
data = np.random.default_rng(1).integers(0, 256, (6, 2, 18), np.uint8)
data[:, :, :2] = np.array([0.5], np.float16).view(np.uint8)
quants = np.concatenate([data[:, :, 2:] & 15, data[:, :, 2:] >> 4], axis=2).reshape(6, 64)
want = (quants.astype(np.float32) - 3) / 2
q = wg.from_blocks(data.tobytes(), "Q4_X", (6, 64), device=device)
assert np.array_equal(q.dequantise().numpy(), want)
assert np.array_equal(q.take(wg.asarray([4, 0], device=device)).numpy(), want[[4, 0]])
for rows in (1, 3, 40):
    x = np.random.default_rng(rows).integers(-4, 4, (rows, 64)).astype(np.float32)
    assert np.array_equal((wg.asarray(x, device=device) @ q.T).numpy(), x @ want.T)
wg.io.save(path, {"w": wg.io.Blocks("Q4_X", (6, 64), data.reshape(6, 36))})
with wg.io.open(path) as file:
    assert file.form("w") == "Q4_X" and np.array_equal(file["w"].dequantise().numpy(), want)
assert {"Q4_X"} <= {defines["FORMAT"] for _, defines in variant_keys("quantised.pwgsl")}
"""


def _add(path: Path, above: str, text: str) -> None:
    whole = path.read_text("utf-8")
    assert whole.count(above) == 1
    path.write_text(whole.replace(above, text + above if above.startswith("#") else above + text), "utf-8")


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of webgrad with one type more."""
    folder = tmp_path_factory.mktemp("one_type_more")
    shutil.copytree(ROOT / "webgrad", folder / "webgrad", ignore=shutil.ignore_patterns("__pycache__"))
    _add(folder / "webgrad" / "ops" / "blocks.py", ABOVE_ROW, ROW)
    _add(folder / "webgrad" / "kernels" / "blocks.pwgsl", ABOVE_SECTION, SECTION)
    return folder


@pytest.mark.parametrize("device", ["cpu", pytest.param("webgpu", marks=pytest.mark.gpu)])
def test_a_row_and_a_section_are_all(package: Path, device: str) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(package), str(ROOT)])}
    command = [sys.executable, "-c", SEEN, device, str(package / "weights.gguf")]
    done = subprocess.run(command, cwd=package, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
