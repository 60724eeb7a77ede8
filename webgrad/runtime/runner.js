// The webgrad runner: compute on WebGPU from plain data, without a framework, in browsers and in node.
// `openDevice` gives a device whose objects are small integers and whose runs are prepared lists of
// dispatches; `load` opens an exported model (plan.json and its weights) on one. The parameters of all
// dispatches lie in one uniform block, 256 bytes a row, bound last in every group with a dynamic offset.
// WebGPU tells of errors late: the first is kept, and the next read(), ready() or done() rejects with it.

const ROW = 256; // bytes of parameters a dispatch: no adapter wants dynamic offsets aligned to more
const MEBI = 2 ** 20;
const USAGE = { mapRead: 1, copySource: 4, copyTarget: 8, uniform: 64, storage: 128 };
const COPIED = USAGE.copySource | USAGE.copyTarget;
const FEATURES = ["shader-f16", "subgroups", "timestamp-query"];
const SOFTWARE = /swiftshader|llvmpipe|lavapipe|softpipe|basic render|software/i;
const MESSAGES = {
  "no-webgpu":
    "This browser has no WebGPU. Chrome and Edge have it since version 113, Safari since 26, and Firefox " +
    "since 141 (Windows) and 145 (macOS): update the browser, or open the page in one of these.",
  insecure: "Browsers offer WebGPU to secure pages only: open this one over https, or from localhost.",
  "no-adapter":
    "The browser has WebGPU but offers no GPU: it may be switched off, or the graphics driver be on the " +
    "browser's block list. Update the driver; chrome://gpu or Firefox's about:support say what is wrong.",
  "no-device": "The GPU could not be opened. Close other pages that use it, or update its driver.",
};

/** What went wrong: `code` is for programs, `message` for users, `details` the browser's own words. */
class RunnerError extends Error {
  constructor(code, message = MESSAGES[code], details = "") {
    super(message);
    Object.assign(this, { name: "RunnerError", code, details });
  }
}

function fail(code, message, details) {
  throw new RunnerError(code, message, details);
}

const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
const wholeWords = (bytes) => Math.max(4, Math.ceil(bytes / 4) * 4);
const powerOfTwo = (count) => 2 ** Math.ceil(Math.log2(Math.max(count, 1)));
const megabytes = (bytes) => `${Number((bytes / 1e6).toPrecision(3))} MB`;

/** The values of a WebGPU object, whose attributes lie on its prototype. */
function copyOf(object) {
  const copy = {};
  for (const name in object) if (typeof object[name] !== "function") copy[name] = object[name];
  return copy;
}

function describe(adapter, { features, limits }) {
  const { vendor = "", architecture = "", device = "", description = "", ...more } = copyOf(adapter.info);
  const fallback = more.isFallbackAdapter ?? adapter.isFallbackAdapter ?? false;
  const sizes = [more.subgroupMinSize ?? 4, more.subgroupMaxSize ?? 128];
  return {
    name: description || device || `${vendor} ${architecture}`.trim() || "a GPU without a name",
    vendor, architecture, description, features: [...features], limits: copyOf(limits),
    software: fallback || SOFTWARE.test([vendor, architecture, device, description].join(" ")),
    subgroupSizes: features.has("subgroups") ? sizes : [0, 0],
  };
}

/** A device with every limit of its adapter, and with the known features that it offers. */
async function openDevice(options = {}) {
  const { gpu = globalThis.navigator?.gpu, features = FEATURES, limits, software, onLost } = options;
  const { powerPreference = "high-performance" } = options;
  const refused = (code) => (error) => fail(code, undefined, error.message);
  if (!gpu) fail(globalThis.isSecureContext === false ? "insecure" : "no-webgpu");
  const wanted = { powerPreference, forceFallbackAdapter: software === true };
  const adapter = (await gpu.requestAdapter(wanted).catch(refused("no-adapter"))) ?? fail("no-adapter");
  const requiredFeatures = features.filter((feature) => adapter.features.has(feature));
  const required = { requiredFeatures, requiredLimits: limits ?? copyOf(adapter.limits) };
  const opened = await adapter.requestDevice(required).catch(refused("no-device"));
  const device = makeDevice(opened, describe(adapter, opened), onLost);
  device.source = gpu; // Dawn in node crashes if this is collected before the device
  if (software !== false || !device.info.software) return device;
  device.close();
  return fail("no-adapter", `There is only a software adapter (${device.info.name}), and it was refused.`);
}

/** What became of a device: whether it is lost, and the first error that WebGPU reported late. */
function watch(gpu, onLost) {
  const state = { lost: null, closed: false, failure: null, scopes: Promise.resolve() };
  gpu.onuncapturederror = (event) => {
    event.preventDefault?.(); // it is told to whoever reads next, not to the console
    const { message, constructor } = event.error;
    const code = constructor.name === "GPUOutOfMemoryError" ? "out-of-memory" : "validation";
    state.failure ??= new RunnerError(code, `The GPU refused an operation: ${message}`, message);
  };
  gpu.lost.then(({ reason, message }) => {
    const advice = "Load the page again; what was on the GPU is gone.";
    state.lost ??= `The GPU was lost (${message || reason}). ${advice}`;
    if (!state.closed) onLost?.(new RunnerError("lost", state.lost));
  });
  return state;
}

/** The uniform block: stretches of rows, in powers of two, of one buffer that grows. */
function makeBlock(gpu) {
  const make = (rows) => gpu.createBuffer({ size: rows * ROW, usage: USAGE.uniform | COPIED });
  const block = { buffer: make(2048), generation: 0, allocate, release };
  const free = new Map();
  let used = 0;
  function grow() {
    const [old, encoder] = [block.buffer, gpu.createCommandEncoder()];
    block.buffer = make(powerOfTwo(used));
    block.generation += 1;
    encoder.copyBufferToBuffer(old, 0, block.buffer, 0, old.size);
    gpu.queue.submit([encoder.finish()]);
    old.destroy();
  }
  function allocate(count) {
    const rows = powerOfTwo(count);
    const start = free.get(rows)?.pop() ?? used;
    if (start === used) used += rows;
    if (used * ROW > block.buffer.size) grow();
    return { start, rows };
  }
  function release({ start, rows }) {
    free.set(rows, [...(free.get(rows) ?? []), start]);
  }
  return block;
}

function makeDevice(gpu, info, onLost) {
  const { queue } = gpu;
  const [state, block] = [watch(gpu, onLost), makeBlock(gpu)];
  const objects = new Map(); // by handle
  let handles = 0;
  const [layouts, staging] = [new Map(), new Map()]; // by accesses; free staging buffers by their size
  const compiling = new Set();
  let held = 0; // bytes of all buffers

  const get = (handle) => objects.get(handle) ?? fail("internal", `There is no object ${handle}.`);
  function add(object) {
    objects.set((handles += 1), object);
    return handles;
  }
  function release(handle) {
    const object = get(handle);
    objects.delete(handle);
    compiling.delete(object);
    if (object.stretch) block.release(object.stretch);
    if (object.destroy) object.destroy();
    held -= object.size ?? 0;
  }

  /** Waits for a promise; rejects with the first error that came before it. */
  async function settle(promise) {
    const refused = await promise.then(() => null, (error) => error);
    await state.scopes;
    // A refusal may come before the news of the loss that is its cause.
    if (refused) await Promise.race([gpu.lost, new Promise((go) => setTimeout(go, 250))]);
    if (state.lost !== null) fail("lost", state.lost);
    const error = state.failure ?? refused;
    state.failure = null;
    if (error) throw error instanceof RunnerError ? error : new RunnerError("internal", error.message);
  }

  function createBuffer(bytes, usage = USAGE.storage | COPIED) {
    const [size, most] = [wholeWords(bytes), info.limits.maxBufferSize];
    const text = `The GPU is out of memory: ${megabytes(size)} are wanted beside ${megabytes(held)} in use.`;
    const advice = "Close other pages that use it, or take a smaller model.";
    const short = (details) => new RunnerError("out-of-memory", `${text} ${advice}`, details);
    if (size > most) throw short(`A buffer has at most ${most} bytes here.`);
    gpu.pushErrorScope("out-of-memory");
    const buffer = gpu.createBuffer({ size, usage });
    const heard = (error) => error && (state.failure ??= short(error.message));
    state.scopes = Promise.all([state.scopes, gpu.popErrorScope().then(heard, () => {})]);
    held += size;
    return add(buffer);
  }

  function write(handle, offset, bytes) {
    const [buffer, whole] = [get(handle), bytes.length - (bytes.length % 4)];
    const tail = Uint8Array.from({ length: 4 }, (_, at) => bytes[whole + at] ?? 0);
    queue.writeBuffer(buffer, offset, bytes, 0, whole);
    if (whole < bytes.length) queue.writeBuffer(buffer, offset + whole, tail);
  }

  function layoutOf(accesses) {
    if (layouts.has(accesses)) return layouts.get(accesses);
    const kinds = [...accesses].map((access) => ({ type: access === "r" ? "read-only-storage" : "storage" }));
    kinds.push({ type: "uniform", hasDynamicOffset: true, minBindingSize: ROW });
    const visibility = 4; // GPUShaderStage.COMPUTE
    const entries = kinds.map((buffer, binding) => ({ binding, visibility, buffer }));
    const group = gpu.createBindGroupLayout({ entries });
    layouts.set(accesses, { group, pipeline: gpu.createPipelineLayout({ bindGroupLayouts: [group] }) });
    return layouts.get(accesses);
  }

  function createPipeline(text, entryPoint, accesses, label = entryPoint) {
    gpu.pushErrorScope("validation");
    const module = gpu.createShaderModule({ code: text, label });
    const refusal = gpu.popErrorScope().catch(() => null);
    const descriptor = { layout: layoutOf(accesses).pipeline, compute: { module, entryPoint }, label };
    const pipeline = { descriptor, made: null, error: null };
    const refused = async (error) => {
      const said = `The GPU's compiler refused "${label}": ${(await refusal)?.message ?? error.message}`;
      pipeline.error = new RunnerError("compile", said, text);
    };
    const compiled = gpu.createComputePipelineAsync(descriptor);
    pipeline.compiled = compiled.then((made) => void (pipeline.made ??= made), refused);
    compiling.add(pipeline);
    return add(pipeline);
  }

  /** Waits until every pipeline asked for is there; `onStep(done, all)` hears of each. */
  async function ready(onStep = () => {}) {
    const waiting = [...compiling];
    let done = 0;
    const step = () => onStep((done += 1), waiting.length);
    await settle(Promise.all(waiting.map(({ compiled }) => compiled.then(step))));
    waiting.forEach((pipeline) => compiling.delete(pipeline));
    const refused = waiting.find(({ error }) => error);
    if (refused) throw refused.error;
  }

  function bind(group) {
    const params = { binding: group.entries.length, resource: { buffer: block.buffer, size: ROW } };
    group.made = gpu.createBindGroup({ layout: group.layout, entries: [...group.entries, params] });
    group.generation = block.generation;
  }

  function createGroup(accesses, ranges) {
    const entries = [...accesses].map((_, binding) => {
      const [buffer, offset, size] = ranges.slice(3 * binding, 3 * binding + 3);
      return { binding, resource: { buffer: get(buffer), offset, size } };
    });
    return add({ layout: layoutOf(accesses).group, entries, generation: -1 });
  }

  function prepare(rows) {
    const starts = Array.from({ length: rows.length / 5 }, (_, row) => 5 * row);
    const list = { stretch: block.allocate(starts.length), generation: -1 };
    list.pipelines = starts.map((at) => get(rows[at]));
    list.groups = starts.map((at) => get(rows[at + 1]));
    list.grid = rows.filter((_, at) => at % 5 > 1);
    list.offsets = Uint32Array.from(starts, (_, row) => (list.stretch.start + row) * ROW);
    return add(list);
  }

  /** Puts a list's pipelines and groups into flat arrays; again when the block has grown. */
  function resolve(list) {
    list.made = list.pipelines.map((pipeline) => {
      if (pipeline.error) throw pipeline.error;
      return (pipeline.made ??= gpu.createComputePipeline(pipeline.descriptor)); // not awaited by ready()
    });
    list.groups.filter(({ generation }) => generation !== block.generation).forEach(bind);
    list.bound = list.groups.map(({ made }) => made);
    list.generation = block.generation;
  }

  function encodePass(pass, { made, bound, grid, offsets }) {
    let last = null;
    for (let row = 0, axis = 0; row < made.length; row += 1, axis += 3) {
      const pipeline = made[row];
      if (pipeline !== last) pass.setPipeline(pipeline);
      last = pipeline;
      pass.setBindGroup(0, bound[row], offsets, row, 1);
      pass.dispatchWorkgroups(grid[axis], grid[axis + 1], grid[axis + 2]);
    }
    pass.end();
  }

  /** One submission: a list's dispatches if there is one, and copies after them. */
  function submit(list, copies) {
    if (state.lost !== null) fail("lost", state.lost);
    const encoder = gpu.createCommandEncoder();
    if (list !== null) encodePass(encoder.beginComputePass(), list);
    for (let at = 0; at < copies.length; at += 5) {
      const [source, target] = [get(copies[at]), get(copies[at + 2])];
      encoder.copyBufferToBuffer(source, copies[at + 1], target, copies[at + 3], wholeWords(copies[at + 4]));
    }
    queue.submit([encoder.finish()]);
  }

  function run(handle, params = null, copies = null) {
    const list = get(handle);
    if (list.generation !== block.generation) resolve(list);
    if (params !== null) queue.writeBuffer(block.buffer, list.stretch.start * ROW, params);
    submit(list, copies ?? []);
  }

  /** A staging buffer, to which a run may copy, for `collect`. */
  function stage(bytes) {
    const size = Math.max(4096, powerOfTwo(bytes));
    return staging.get(size)?.pop() ?? createBuffer(size, USAGE.mapRead | USAGE.copyTarget);
  }

  /** The first bytes of a staging buffer, once they are there; small ones are used again. */
  async function collect(handle, bytes) {
    const buffer = get(handle);
    const mapped = await settle(buffer.mapAsync(1, 0, wholeWords(bytes))).catch((error) => error);
    const copy = mapped ?? new Uint8Array(buffer.getMappedRange(0, wholeWords(bytes))).slice(0, bytes);
    buffer.unmap();
    if (mapped || buffer.size > 16 * MEBI) release(handle);
    else staging.set(buffer.size, [...(staging.get(buffer.size) ?? []), handle]);
    if (mapped) throw mapped;
    return copy;
  }

  async function read(handle, offset, bytes) {
    const [staged, skipped] = [stage(bytes + 4), offset % 4];
    submit(null, [handle, offset - skipped, staged, 0, skipped + bytes]);
    return (await collect(staged, skipped + bytes)).slice(skipped);
  }

  function close() {
    Object.assign(state, { closed: true, lost: state.lost ?? "The device was closed." });
    gpu.destroy();
  }

  return {
    gpu, info, createBuffer, write, createPipeline, ready, createGroup, prepare, run, stage, collect, read, close,
    get lost() { return state.lost; },
    done: () => settle(queue.onSubmittedWorkDone()),
    releaseBuffer: release, releasePipeline: release, releaseGroup: release, releasePrepared: release,
  };
}

const float = new Float32Array(1);
const word = new Uint32Array(float.buffer);

/** The 16 bits nearest to a float32, ties to even, for a number of fraction bits and a bias of exponents. */
function narrow(value, fraction, bias) {
  float[0] = value;
  const exponent = Math.max(((word[0] >>> 23) & 255) - 127, 1 - bias);
  const steps = Math.abs(value) / 2 ** (exponent - fraction) + 2 ** 52 - 2 ** 52; // rounded
  const infinity = (2 * bias + 1) << fraction;
  const bits = Math.min(steps + (exponent + bias - 1) * 2 ** fraction, infinity);
  return ((word[0] >>> 16) & 0x8000) | (Number.isNaN(value) ? infinity + 2 ** (fraction - 1) : bits);
}

function widen(bits, fraction, bias) {
  const [exponent, steps] = [(bits & 0x7fff) >> fraction, bits & (2 ** fraction - 1)];
  const special = exponent === 2 * bias + 1 ? (steps ? NaN : Infinity) : 0;
  const unit = 2 ** (Math.max(exponent, 1) - bias - fraction);
  return (bits & 0x8000 ? -1 : 1) * (special || (steps + (exponent ? 2 ** fraction : 0)) * unit);
}

function float16s(fraction, bias) {
  const encode = (value) => narrow(value, fraction, bias);
  const decode = (bits) => widen(bits, fraction, bias);
  return { array: Float32Array, stored: Uint16Array, encode, decode };
}

const DTYPES = {
  float32: { array: Float32Array }, int32: { array: Int32Array }, uint32: { array: Uint32Array },
  int16: { array: Int16Array }, uint16: { array: Uint16Array },
  int8: { array: Int8Array }, uint8: { array: Uint8Array },
  bool: { array: Uint8Array, stored: Uint8Array, encode: (value) => (value ? 1 : 0) },
  float16: float16s(10, 15), bfloat16: float16s(7, 127),
};

/** The bytes of what a user gave for a tensor, or an error that says what is wanted. */
function bytesOf(name, { dtype, shape }, given) {
  const { array, stored, encode } = DTYPES[dtype];
  const count = shape.reduce((product, length) => product * length, 1);
  const wanted = `${dtype} of shape [${shape.join(", ")}]: ${count} values in a ${array.name} or a list`;
  const refuse = (found) => fail("input", `The input "${name}" is ${wanted}; it was given ${found}.`);
  let values = Array.isArray(given) || ArrayBuffer.isView(given) ? given : given?.data;
  if (Array.isArray(values)) {
    const listed = values.flat(Infinity);
    values = array.from(listed, Number);
    const exact = (each, at) => array === Float32Array || values[at] === Number(each);
    const misfit = listed.findIndex((each, at) => !/number|boolean/.test(typeof each) || !exact(each, at));
    if (misfit >= 0) refuse(`the value ${listed[misfit]}`);
  }
  if (values?.constructor?.name !== array.name) refuse(values?.constructor?.name ?? String(given));
  if (values.length !== count) refuse(`${values.length} values`);
  if (encode) values = stored.from(values, encode);
  return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
}

function tensorOf(bytes, { dtype, shape }) {
  const { array, stored = array, decode } = DTYPES[dtype];
  const values = new stored(bytes.slice().buffer);
  return { data: decode ? array.from(values, decode) : values, shape, dtype };
}

const fromBase64 = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
const SETTERS = { f32: "setFloat32", i32: "setInt32", u32: "setUint32" };

function failFile(name, found) {
  const advice = "Load the page again; if it stays, export the model again.";
  fail("weights", `The file ${name} cannot be used: ${found}. ${advice}`);
}

/** The bytes, if they are those that the plan tells of. */
async function verify({ file, bytes: expected, sha256 }, bytes, count = bytes.length) {
  if (count !== expected) failFile(file, `${expected} bytes are expected, ${count} were found`);
  const digest = await globalThis.crypto?.subtle?.digest("SHA-256", bytes); // on secure pages only
  const digits = [...new Uint8Array(digest ?? 0)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  if (digest && digits !== sha256) failFile(file, `its sha256 is ${digits}, not ${sha256}`);
  return bytes;
}

async function request(url, name, options) {
  const response = await fetch(url, options).catch((error) => {
    if (options.signal?.aborted) throw error;
    return failFile(name, `it could not be fetched (${error.message})`);
  });
  return response.ok ? response : failFile(name, `the server answered ${response.status}`);
}

/** A response's bytes, of whose number `onBytes` hears as they come. */
async function drain(entry, response, onBytes) {
  const [reader, bytes] = [response.body.getReader(), new Uint8Array(entry.bytes)];
  let count = 0;
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    if (count + part.value.length <= bytes.length) bytes.set(part.value, count);
    onBytes((count += part.value.length));
  }
  return verify(entry, bytes, count);
}

/** A weight file from the cache or the server; the cache keeps one version of it. */
async function fetchWeights(url, entry, onBytes, signal) {
  url.searchParams.set("sha256", entry.sha256);
  const cache = await globalThis.caches?.open("webgrad-weights").catch(() => null); // on secure pages only
  const kept = await cache?.match(url.href);
  const found = kept && (await drain(entry, kept, onBytes).catch(() => null));
  if (found) return found;
  const bytes = await drain(entry, await request(url, entry.file, { signal }), onBytes);
  await cache?.delete(url.href, { ignoreSearch: true });
  await cache?.put(url.href, new Response(bytes)).catch(() => {}); // no room: it is fetched again next time
  return bytes;
}

/** A plan, and a function that gets one of its weight files. */
async function openSource(source, signal) {
  if (source.plan) {
    const file = async (entry, onBytes) => verify(entry, await source.file(entry.file, onBytes));
    return { plan: source.plan, file };
  }
  const url = new URL(source, globalThis.location?.href);
  const plan = await (await request(url, url.pathname, { signal, cache: "no-cache" })).json();
  return { plan, file: (entry, onBytes) => fetchWeights(new URL(entry.file, url), entry, onBytes, signal) };
}

function meets({ software, features = [], subgroupSize, limits = {} }, info) {
  return (
    (software ?? info.software) === info.software &&
    features.every((feature) => info.features.includes(feature)) &&
    info.subgroupSizes.every((size) => size === (subgroupSize ?? size)) &&
    Object.entries(limits).every(([name, least]) => info.limits[name] >= least)
  );
}

function chooseVariant({ format, version, variants }, wanted, info) {
  const [known, labels] = [format === "webgrad-plan" && version === 1, variants?.map(({ label }) => label)];
  if (!known) fail("internal", `This runner reads webgrad-plan 1, not ${format} ${version}.`);
  const suits = ({ label, needs }) => (wanted === undefined ? meets(needs ?? {}, info) : label === wanted);
  const words = `No variant of the model is for ${wanted ?? info.name}; there are: ${labels.join("; ")}.`;
  return variants.find(suits) ?? fail("no-adapter", words);
}

/** Calls `write(buffer, bytes)` with their tensors, two files at a time; each file is let go after that. */
async function loadWeights({ plan, file }, buffers, write, report, signal) {
  const wanted = buffers.filter(({ tensor }) => tensor);
  const loaded = new Map(wanted.map(({ tensor }) => [plan.weights[plan.tensors[tensor].file], 0]));
  const waiting = [...loaded.keys()];
  const total = sum(waiting.map(({ bytes }) => bytes));
  const tell = (entry, count) => report("weights", sum([...loaded.set(entry, count).values()]), total);
  async function lane() {
    for (let entry = waiting.shift(); entry; entry = waiting.shift()) {
      signal?.throwIfAborted();
      const content = await file(entry, (count) => tell(entry, count));
      for (const buffer of wanted) {
        const { file: number, start, bytes } = plan.tensors[buffer.tensor];
        if (plan.weights[number] === entry) write(buffer, content.subarray(start, start + bytes));
      }
      tell(entry, entry.bytes);
    }
  }
  await Promise.all([lane(), lane()].map((each) => each.finally(() => (waiting.length = 0))));
}

/** A variant's function, ready to run: its list, its parameters, and where inputs and outputs lie. */
function prepareFunction(device, variant, name, spec, buffers, pipelines) {
  const { commands, copies = [], ...places } = variant.functions[name];
  const params = new Uint8Array(commands.length * ROW);
  const rows = commands.flatMap(([kernel, ranges, grid, text], row) => {
    params.set(fromBase64(text), row * ROW);
    const bound = ranges.map((value, at) => (at % 3 ? value : buffers[value].handle));
    return [pipelines[kernel], device.createGroup(variant.kernels[kernel].accesses, bound), ...grid];
  });
  const copied = copies.map((value, at) => (at % 5 === 0 || at % 5 === 2 ? buffers[value].handle : value));
  return { name, spec, params, written: false, list: device.prepare(Int32Array.from(rows)), rows, copied, ...places };
}

/** What a call gives for each input, checked: bytes of tensors, and numbers; nothing is written before. */
function checkInputs({ name, spec }, given) {
  const names = Object.keys(spec.inputs).join(", ");
  const unknown = Object.keys(given).find((input) => !(input in spec.inputs));
  if (unknown !== undefined) fail("input", `${name} has no input "${unknown}"; its inputs are: ${names}.`);
  return Object.entries(spec.inputs).map(([input, wanted]) => {
    const value = given[input] ?? (wanted.kind === "random" ? Math.floor(Math.random() * 2 ** 32) : undefined);
    if (value === undefined) fail("input", `${name} wants the input "${input}"; its inputs are: ${names}.`);
    if (wanted.kind === "tensor") return [input, bytesOf(input, wanted, value)];
    const fits = typeof value === "number" && (wanted.dtype === "float32" || Number.isInteger(value));
    return fits ? [input, value] : fail("input", `The input "${input}" is one ${wanted.dtype}, not ${value}.`);
  });
}

/** An open variant of a plan: its functions, and the state that they share. */
function makeModel(device, plan, variant, buffers, pipelines, close) {
  const prepared = Object.entries(plan.functions).map(([name, spec]) => [
    name, prepareFunction(device, variant, name, spec, buffers, pipelines)]);
  const functions = new Map(prepared);
  const find = (name) => functions.get(name) ?? fail("input", `There is no function "${name}".`);

  /** Writes the inputs, and submits; outputs go to a staging buffer, one after another. */
  function submit(name, given = {}, outputs = []) {
    const called = find(name);
    const inputs = new Map(checkInputs(called, given));
    const view = new DataView(called.params.buffer);
    for (const [input, at] of Object.entries(called.inputs)) device.write(buffers[at].handle, 0, inputs.get(input));
    for (const [input, type, places] of called.numbers) {
      places.forEach((place) => view[SETTERS[type]](place, inputs.get(input), true));
    }
    device.run(called.list, called.numbers.length > 0 || !called.written ? called.params : null, [...called.copied, ...outputs]);
    called.written = true;
  }

  async function run(given, name = functions.has("run") ? "run" : [...functions.keys()][0]) {
    const { spec, outputs } = find(name);
    const parts = Object.entries(spec.outputs).map(([output, { bytes }]) => ({ output, bytes }));
    parts.forEach((part, at) => (part.start = sum(parts.slice(0, at).map(({ bytes }) => wholeWords(bytes)))));
    const total = sum(parts.map(({ bytes }) => wholeWords(bytes)));
    const staged = device.stage(total);
    submit(name, given, parts.flatMap(({ output, bytes, start }) => [buffers[outputs[output]].handle, 0, staged, start, bytes]));
    const read = await device.collect(staged, total);
    const tensor = ({ output, bytes, start }) => tensorOf(read.subarray(start, start + bytes), spec.outputs[output]);
    return Object.fromEntries(parts.map((part) => [part.output, tensor(part)]));
  }

  async function state(name) {
    const buffer = buffers.find((each) => each.state === name) ?? fail("input", `There is no state "${name}".`);
    return tensorOf(await device.read(buffer.handle, 0, plan.state[name].bytes), plan.state[name]);
  }

  function reset() {
    const kept = buffers.filter((buffer) => buffer.state !== undefined);
    kept.forEach(({ handle, first, bytes }) => device.write(handle, 0, first ?? new Uint8Array(bytes)));
  }

  const named = [...functions.keys()].map((name) => [name, (given) => run(given, name)]);
  const info = { device: device.info, variant: variant.label, bytes: sum(buffers.map(({ bytes }) => bytes)) };
  return { run, submit, state, reset, close, device, info, functions: Object.fromEntries(named) };
}

/** Opens an exported model: `source` is the address of its plan.json, or { plan, file(name, onBytes) }. */
async function load(source, options = {}) {
  const { onProgress = () => {}, signal } = options;
  const report = (stage, loaded, total) => onProgress({ stage, loaded, total });
  report("adapter", 0, 1);
  const device = options.device ?? (await openDevice(options));
  const buffers = [];
  const close = () => (options.device ? 0 : device.close());
  try {
    const opened = await openSource(source, signal);
    const { plan } = opened;
    const variant = chooseVariant(plan, options.variant, device.info);
    for (const buffer of variant.buffers) {
      const tensor = buffer.tensor ?? plan.state?.[buffer.state]?.tensor;
      buffers.push({ ...buffer, tensor, handle: device.createBuffer(buffer.bytes) });
    }
    await device.done(); // was there room?
    const pipelines = variant.kernels.map(({ text, entry, accesses, label }) =>
      device.createPipeline(plan.texts[text], entry, accesses, label));
    buffers.filter(({ data }) => data).forEach(({ handle, data }) => device.write(handle, 0, fromBase64(data)));
    const write = (buffer, bytes) => {
      device.write(buffer.handle, 0, bytes);
      if (buffer.state !== undefined) buffer.first = bytes.slice();
    };
    await loadWeights(opened, buffers, write, report, signal);
    await device.ready((done, all) => report("compile", done, all));
    report("ready", 1, 1);
    return makeModel(device, plan, variant, buffers, pipelines, close);
  } catch (error) {
    close();
    throw error;
  }
}

export { RunnerError, load, openDevice };
