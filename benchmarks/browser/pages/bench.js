// One candidate and one workload in one page: index.html?candidate=jax&workload=block.
// A candidate's module gives prepare(workload, work) → { run, result?, about }; run() computes once and
// promises { device, buffer, release? }: where the result lies. Times are from run() until 16 bytes are read.
// window.bench = { prepare() → about, result(bytes) posts it, turn(seconds) → milliseconds of each run }.

const asked = new URLSearchParams(location.search);
let running = null;

async function arrays(names) {
  const loaded = await Promise.all(Object.entries(names).map(async ([name, shape]) => {
    const answer = await fetch(`/data/${asked.get("workload")}/${name}.f32`);
    return [name, { data: new Float32Array(await answer.arrayBuffer()), shape }];
  }));
  return Object.fromEntries(loaded);
}

async function prepare() {
  const candidate = await import(`./${asked.get("candidate")}.js`);
  const work = await (await fetch(`/data/${asked.get("workload")}/work.json`)).json();
  running = await candidate.prepare(asked.get("workload"), { ...work, arrays: await arrays(work.inputs) });
  const began = performance.now();
  await once();
  return { about: running.about, first: performance.now() - began };
}

// Reading a few bytes behind the work is the same wait for every library.
async function read(device, buffer, bytes) {
  const usage = GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST;
  const staging = device.createBuffer({ size: bytes, usage });
  const encoder = device.createCommandEncoder();
  encoder.copyBufferToBuffer(buffer, 0, staging, 0, bytes);
  device.queue.submit([encoder.finish()]);
  await staging.mapAsync(GPUMapMode.READ);
  const copy = new Uint8Array(staging.getMappedRange().slice(0));
  staging.destroy();
  return copy;
}

async function runAndRead(bytes) {
  const { device, buffer, release } = await running.run();
  const copy = await read(device, buffer, bytes);
  release?.();
  return copy;
}

const once = () => runAndRead(16);

async function turn(seconds) {
  const times = [];
  const until = performance.now() + 1000 * seconds;
  do {
    const began = performance.now();
    await once();
    times.push(performance.now() - began);
  } while (performance.now() < until);
  return times;
}

async function result(bytes) {
  const body = await (running.result ? running.result() : runAndRead(bytes));
  return (await fetch(`/result/${asked.get("candidate")}`, { method: "POST", body })).ok;
}

window.bench = { prepare, result, turn };
