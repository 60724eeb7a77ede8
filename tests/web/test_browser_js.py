"""browser.js, the JavaScript beside the device layer of Pyodide, in node: submissions, reads, errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.web.dawn import run_text

pytest.importorskip("fcntl")  # node is driven on POSIX only
pytestmark = pytest.mark.usefixtures("dawn")

RUNTIME = Path(__file__).parents[2] / "webgrad" / "runtime"
START = f"""
import {{ openDevice }} from "{(RUNTIME / "runner.js").as_uri()}";
import {{ watchDevice }} from "{(RUNTIME / "browser.js").as_uri()}";
const kernel = (call) => `
  @group(0) @binding(0) var<storage, read_write> x: array<f32>;
  @group(0) @binding(1) var<uniform> p: vec4f;
  @compute @workgroup_size(4) fn main(@builtin(global_invocation_id) i: vec3u) {{ x[i.x] = ${{call}}; }}`;
async function taken(watched, number) {{
  for (;;) {{
    const found = watched.take(number);
    if (found !== undefined) return found;
    await watched.change();
  }}
}}
"""


def test_reads_errors_and_loss() -> None:
    found = run_text(
        START
        + """
export async function main() {
  const device = await openDevice();
  const watched = watchDevice(device);
  const buffer = device.createBuffer(16);
  const group = device.createGroup("w", [buffer, 0, 16]);
  const list = (call) =>
    device.prepare(Int32Array.of(device.createPipeline(kernel(call), "main", "w"), group, 1, 1, 1));
  const read = (list, params) => {
    const staged = device.stage(16);
    watched.submit(list, params, [buffer, 0, staged, 0, 16]);
    return watched.read(staged, 16);
  };
  const params = new Uint8Array(256);
  params.set(new Uint8Array(Float32Array.of(3).buffer));
  const add = list("x[i.x] + p.x");
  const [first, second] = [read(add, params), read(add, null)]; // before either has compiled
  const under = watched.take(first);
  const bytes = [await taken(watched, first), await taken(watched, second)];
  const refused = await taken(watched, read(list("nothing(1.0)"), params)).catch((error) => error);
  const after = await taken(watched, read(add, null));
  while (watched.finished() < 4) await watched.change();
  const before = watched.lost();
  watched.destroy();
  const gone = await taken(watched, read(add, null)).catch((error) => error);
  return {
    under: under === undefined, bytes, code: refused.code, message: refused.message, after,
    before, gone: gone.code, lost: watched.lost(),
  };
}"""
    )
    assert found["under"], "nothing is there before anything was awaited"
    values = [bytes_.view(np.float32).tolist() for bytes_ in (*found["bytes"], found["after"])]
    assert values == [[3.0] * 4, [6.0] * 4, [9.0] * 4]
    assert found["code"] == "compile", "not what came of using a kernel that was refused"
    assert "nothing" in found["message"]
    assert (found["before"], found["gone"], found["lost"]) == (False, "lost", True)
