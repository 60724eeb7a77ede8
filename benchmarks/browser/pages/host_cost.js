// What a dispatch costs the page: run() of a prepared list of tiny dispatches, which alternate between two
// kernels and two groups, as a model's do. hostCost(dispatches, times) → milliseconds of each run().

import { openDevice } from "/runner/runner.js";

const kernel = (factor) => `
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
struct Params { shift: f32 }
@group(0) @binding(2) var<uniform> p: Params;
@compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) {
  y[i] = ${factor} * x[i] + p.shift;
}
`;

async function hostCost(dispatches, times) {
  const device = await openDevice();
  const [x, y] = [device.createBuffer(256), device.createBuffer(256)];
  const pipelines = ["2.0", "0.5"].map((factor) => device.createPipeline(kernel(factor), "main", "rw"));
  const ranges = [[x, 0, 256, y, 0, 256], [y, 0, 256, x, 0, 256]];
  const groups = ranges.map((each) => device.createGroup("rw", each));
  await device.ready();
  const rows = Array.from({ length: dispatches }, (_, row) => [pipelines[row % 2], groups[row % 2], 1, 1, 1]);
  const prepared = device.prepare(Int32Array.from(rows.flat()));
  const params = new Uint8Array(256 * dispatches);
  device.run(prepared, params);
  await device.done();
  const found = [];
  for (let time = 0; time < times; time += 1) {
    const began = performance.now();
    device.run(prepared, null);
    found.push(performance.now() - began);
    await device.done();
  }
  device.close();
  return found;
}

window.hostCost = hostCost;
