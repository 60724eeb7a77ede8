// onnxruntime-web on its WebGPU provider: ONNX models, inputs and outputs in GPU buffers.
// Where there are several ways to write a model, the quickest of those that are right is its result.

const FOLDER = "/peers/onnxruntime-web/dist/";
const TRIES = 2;
const TOLERANCE = 1e-3;

async function prepare(workload, work) {
  const runtime = await import(`${FOLDER}ort.webgpu.min.mjs`);
  runtime.env.wasm.wasmPaths = FOLDER;
  runtime.env.logLevel = "error";
  const answer = new Float32Array(await (await fetch(`/data/${workload}/answer.f32`)).arrayBuffer());
  const [right, wrong] = [[], []];
  for (const name of work.models) {
    const way = await open(runtime, workload, work, name);
    (await isRight(way, answer) ? right : wrong).push(way);
  }
  for (const way of right) await measure(way);
  const best = right.reduce((one, other) => (other.time < one.time ? other : one));
  const said = wrong.length ? ` (wrong on this adapter: ${wrong.map(({ name }) => name).join(", ")})` : "";
  return { run: best.run, about: `onnxruntime-web ${runtime.env.versions.web}, ${best.name}${said}` };
}

async function isRight({ session, feeds }, answer) {
  const [y] = Object.values(await session.run(feeds));
  const found = await y.getData(true);
  const largest = answer.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  return answer.every((value, at) => Math.abs(value - found[at]) <= TOLERANCE * largest);
}

async function open(runtime, workload, work, name) {
  const options = { executionProviders: ["webgpu"], preferredOutputLocation: "gpu-buffer" };
  const session = await runtime.InferenceSession.create(`/data/${workload}/${name}.onnx`, options);
  const device = await runtime.env.webgpu.device;
  const feeds = Object.fromEntries(
    session.inputNames.map((each) => [each, onDevice(runtime, device, work.arrays[each])]),
  );
  const run = async () => {
    const [y] = Object.values(await session.run(feeds));
    return { device, buffer: y.gpuBuffer, release: () => y.dispose() };
  };
  return { name, session, feeds, run };
}

function onDevice(runtime, device, { data, shape }) {
  const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
  const buffer = device.createBuffer({ size: data.byteLength, usage });
  device.queue.writeBuffer(buffer, 0, data);
  return runtime.Tensor.fromGpuBuffer(buffer, { dataType: "float32", dims: shape });
}

async function measure(way) {
  way.time = Infinity;
  for (let at = 0; at <= TRIES; at++) {
    const began = performance.now();
    const { device, release } = await way.run();
    await device.queue.onSubmittedWorkDone();
    release();
    if (at) way.time = Math.min(way.time, performance.now() - began); // the first compiles
  }
}

export { prepare };
