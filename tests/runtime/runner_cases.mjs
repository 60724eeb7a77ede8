// Runs the cases of tests/runtime/test_runner.py against runner.js in node, with Dawn on a software driver.
// In: the addresses of runner.js and of npm's `webgpu` as arguments, and the plans and inputs of the cases as
// one JSON object on stdin. Out: one JSON object on stdout, the value of each case, or { failed } where it threw.
import { readFileSync } from "node:fs";

const [runnerUrl, webgpuUrl] = process.argv.slice(2);
const { RunnerError, load, openDevice } = await import(runnerUrl);
const { create, globals } = await import(webgpuUrl);
Object.assign(globalThis, globals);
const gpu = create([]);
globalThis.keptAlive = gpu; // Dawn crashes if this is collected
const given = JSON.parse(readFileSync(0, "utf-8"));

const floats = (bytes) => [...new Float32Array(bytes.buffer)];
const bytesOf = (values) => new Uint8Array(Float32Array.from(values).buffer);
const decode = (text) => Uint8Array.from(Buffer.from(text, "base64"));
const plain = (outputs) =>
  Object.fromEntries(Object.entries(outputs).map(([name, { data, shape, dtype }]) =>
    [name, { data: [...data].map((value) => (Number.isFinite(value) ? value : String(value))), shape, dtype, array: data.constructor.name }]));
const source = (name) => {
  const { plan, files } = given.plans[name];
  return { plan, file: async (file) => decode(files[file]) };
};
const refusal = async (work) => {
  try {
    return await work();
  } catch (error) {
    return { code: error.code, name: error.name, message: error.message, runner: error instanceof RunnerError };
  }
};
const shared = await openDevice({ gpu });

/** Whether a model is let go that is no longer wanted once a stage of its loading has begun. */
async function abortedAt(stage) {
  const wanted = new AbortController();
  const onProgress = (step) => step.stage === stage && wanted.abort(new Error(`enough of ${stage}`));
  const model = await load(source("chain"), { gpu, onProgress, signal: wanted.signal }).catch((error) => error);
  return model.message ?? "";
}
const SCALE = given.scale;

function scaling(device, values) {
  const bytes = 4 * values.length;
  const [a, b] = [device.createBuffer(bytes), device.createBuffer(bytes)];
  device.write(a, 0, bytesOf(values));
  const pipeline = device.createPipeline(SCALE, "main", "rw", "scale");
  const forth = device.createGroup("rw", [a, 0, bytes, b, 0, bytes]);
  const back = device.createGroup("rw", [b, 0, bytes, a, 0, bytes]);
  return { a, b, bytes, pipeline, forth, back };
}

const factors = (...values) => {
  const params = new Uint8Array(256 * values.length);
  values.forEach((value, row) => new DataView(params.buffer).setFloat32(256 * row, value, true));
  return params;
};

const cases = {
  info: async () => ({ ...shared.info, limits: Object.keys(shared.info.limits).length, lost: shared.lost }),

  async lists() {
    const { a, b, bytes, pipeline, forth, back } = scaling(shared, [1, 2, 3, 4]);
    const list = shared.prepare(new Int32Array([pipeline, forth, 1, 1, 1, pipeline, back, 1, 1, 1]));
    shared.run(list, factors(2, 3)); // before ready(): it is compiled then
    const first = floats(await shared.read(a, 0, bytes));
    await shared.ready();
    const long = Array.from({ length: 5000 }, () => [pipeline, forth, 1, 1, 1]).flat();
    const grown = shared.prepare(Int32Array.from(long)); // more rows than the uniform block had
    shared.run(grown, factors(...Array(5000).fill(7)));
    shared.run(list, null, [b, 4, a, 0, 4]); // the parameters of its last run
    const second = floats(await shared.read(a, 0, bytes));
    [list, grown].forEach(shared.releasePrepared);
    const again = shared.prepare(new Int32Array([pipeline, back, 1, 1, 1])); // in rows that were released
    shared.run(again, factors(1));
    const third = floats(await shared.read(a, 0, bytes));
    shared.releasePrepared(again);
    [forth, back].forEach(shared.releaseGroup);
    shared.releasePipeline(pipeline);
    [a, b].forEach(shared.releaseBuffer);
    return { first, second, third, released: await refusal(() => shared.read(a, 0, 4)) };
  },

  async bytes() {
    const buffer = shared.createBuffer(11);
    shared.write(buffer, 0, Uint8Array.from({ length: 11 }, (_, at) => at + 1));
    const whole = [...(await shared.read(buffer, 0, 11))];
    const part = [...(await shared.read(buffer, 5, 3))];
    const large = shared.createBuffer(40_000_004);
    shared.write(large, 40_000_000, new Uint8Array([1, 2, 3, 4]));
    const end = (await shared.read(large, 1, 40_000_003)).subarray(-6);
    shared.releaseBuffer(large);
    return { whole, part, end: [...end], done: (await shared.done()) ?? null };
  },

  async chain() {
    const progress = [];
    const model = await load(source("chain"), { device: shared, onProgress: (step) => progress.push(step) });
    const { x } = given;
    const calls = [1, 2, 3].map((rate) => model.run({ x, rate, shift: -rate, seed: 5 }));
    const answers = (await Promise.all(calls)).map(plain);
    model.submit("touch");
    model.submit("touch", {});
    const touched = [...(await model.state("total")).data];
    const drawn = [];
    for (let call = 0; call < 3; call += 1) {
      const { bits } = await model.functions.run({ x: { data: x }, rate: 0, shift: 0 });
      drawn.push(bits.data[0]);
    }
    model.reset();
    const reset = plain({ total: await model.state("total"), count: await model.state("count") });
    const { variant, bytes } = model.info;
    const device = model.info.device.name === shared.info.name;
    model.close();
    return { progress, answers, touched, drawn, reset, variant, bytes, device, closed: shared.lost };
  },

  async dtypes() {
    const answers = {};
    for (const [dtype, values] of Object.entries(given.values)) {
      const model = await load(source(`echo ${dtype}`), { device: shared });
      const { array, list } = values;
      const first = await model.run({ x: new globalThis[array](list) });
      const second = await model.run({ x: [list.slice(0, 1), [list.slice(1)]] });
      answers[dtype] = { typed: plain(first), listed: plain(second) };
      model.close();
    }
    return answers;
  },

  async halves() {
    const answers = {};
    for (const dtype of ["float16", "bfloat16"]) {
      const [forth, back] = [await load(source(`${dtype} bits`), { device: shared }), await load(source(`bits ${dtype}`), { device: shared })];
      const { bits } = await forth.run({ x: new Float32Array(decode(given.singles).buffer) });
      const { y } = await back.run({ x: Uint16Array.from({ length: 65536 }, (_, at) => at) });
      const base64 = (array) => Buffer.from(array.buffer).toString("base64");
      answers[dtype] = { narrowed: base64(bits.data), widened: base64(y.data) };
      forth.close();
      back.close();
    }
    return answers;
  },

  async variants() {
    const answers = {};
    for (const [name, info] of Object.entries(given.adapters)) {
      const device = { ...shared, info: { ...shared.info, ...info } };
      answers[name] = (await load(source("variants"), { device })).info.variant;
    }
    const wanted = await load(source("variants"), { device: shared, variant: "wide" });
    const missing = await refusal(() => load(source("variants"), { device: shared, variant: "none" }));
    return { answers, wanted: wanted.info.variant, missing };
  },

  async inputs() {
    const model = await load(source("chain"), { device: shared });
    const { x } = given;
    const right = { x, rate: 1, shift: 1 };
    const refusals = {};
    for (const [name, change] of Object.entries(given.wrong)) {
      refusals[name] = await refusal(() => model.run({ ...right, ...change }));
    }
    refusals.missing = await refusal(() => model.run({ x, rate: 1 }));
    refusals.array = await refusal(() => model.run({ ...right, x: Int32Array.from(x) }));
    refusals.function = await refusal(() => model.run(right, "walk"));
    refusals.nothing = await refusal(() => model.run(null));
    refusals.state = await refusal(() => model.state("nothing"));
    refusals.inheritedState = await refusal(() => model.state("constructor"));
    const total = [...(await model.state("total")).data]; // what is refused has changed nothing
    model.close();
    return { refusals, total };
  },

  async weights() {
    const { plan, files } = given.plans.chain;
    const altered = (alter) => async (name) => (/one/.test(name) ? alter(decode(files[name])) : decode(files[name]));
    const change = (alter) => refusal(() => load({ plan, file: altered(alter) }, { device: shared }));
    const late = { plan: { ...plan, version: 2 }, file: null };
    const aborted = AbortSignal.abort();
    return {
      truncated: await change((bytes) => bytes.subarray(0, bytes.length - 5)),
      longer: await change((bytes) => Uint8Array.from([...bytes, 0])),
      corrupt: await change((bytes) => bytes.with(3, 255 - bytes[3])),
      version: await refusal(() => load(late, { device: shared })),
      aborted: await refusal(() => load(source("chain"), { device: shared, signal: aborted })),
      late: await Promise.all(["weights", "compile"].map(abortedAt)),
    };
  },

  async compile() {
    shared.createPipeline("fn main( {", "main", "rw", "bad kernel");
    const ready = await refusal(() => shared.ready());
    const model = await refusal(() => load(source("uncompilable"), { gpu }));
    return { ready, model, after: (await refusal(() => shared.ready())) ?? null };
  },

  async validation() {
    const buffer = shared.createBuffer(16);
    const pipeline = shared.createPipeline(SCALE, "main", "rw");
    const group = shared.createGroup("rw", [buffer, 0, 64, buffer, 0, 64]);
    const list = shared.prepare(new Int32Array([pipeline, group, 1, 1, 1]));
    shared.run(list, factors(1));
    const first = await refusal(() => shared.read(buffer, 0, 16));
    const second = [...(await shared.read(buffer, 0, 4))];
    return { first, second, handle: await refusal(() => shared.createGroup("r", [9999999, 0, 4])) };
  },

  async lost() {
    const heard = [];
    const device = await openDevice({ gpu, onLost: ({ code, message }) => heard.push({ code, message }) });
    const buffer = device.createBuffer(16);
    await device.done();
    const waiting = refusal(() => device.read(buffer, 0, 16));
    device.gpu.destroy();
    const [read, done] = [await waiting, await refusal(() => device.done())];
    const { a, pipeline, forth } = { a: buffer, pipeline: 0, forth: 0 };
    return { read, done, again: await refusal(() => device.read(a, 0, 16)), heard, said: device.lost, pipeline, forth };
  },

  async closed() {
    const heard = [];
    const model = await load(source("chain"), { gpu, onLost: (error) => heard.push(error.code) });
    model.close();
    const run = await refusal(() => model.run({ x: given.x, rate: 1, shift: 1 }));
    await new Promise((go) => setTimeout(go, 10));
    return { run, heard, lost: model.device.lost };
  },

  async missing() {
    const without = (stub) => refusal(() => openDevice({ gpu: stub }));
    const [none, answers] = [async () => null, {}];
    answers.browser = await refusal(() => openDevice());
    globalThis.isSecureContext = false;
    answers.insecure = await refusal(() => openDevice());
    delete globalThis.isSecureContext;
    answers.refused = await without({ requestAdapter: none });
    answers.thrown = await without({ requestAdapter: () => Promise.reject(new Error("blocked")) });
    const adapter = { features: new Set(), limits: {}, info: {}, requestDevice: () => Promise.reject(new Error("busy")) };
    answers.device = await without({ requestAdapter: async () => adapter });
    answers.model = await refusal(() => load(source("chain")));
    return answers;
  },

  async memory() {
    const device = await openDevice({ gpu });
    const most = device.info.limits.maxBufferSize;
    const large = await refusal(() => device.createBuffer(2 * most));
    const real = device.gpu.popErrorScope.bind(device.gpu);
    let short = 0;
    device.gpu.popErrorScope = () => (short ? real().then(() => ({ message: "no room" })) : real());
    device.createBuffer(64);
    short = 1;
    device.createBuffer(8_000_000);
    const done = await refusal(() => device.done());
    const model = await refusal(() => load(source("chain"), { device }));
    short = 0;
    await device.done(); // told once
    device.close();
    return { large, done, model };
  },
};

const answers = {};
for (const [name, run] of Object.entries(cases)) {
  answers[name] = await run().catch((error) => ({ failed: error.stack }));
}
process.stdout.write(JSON.stringify(answers), () => process.exit(0));
