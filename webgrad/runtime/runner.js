// The webgrad runner: compute on WebGPU from plain data, without a framework, in browsers and in node.
// `openDevice` gives a device whose objects are small integers and whose runs are prepared lists of
// dispatches; `load` opens an exported model (plan.json and its weights) on one. The parameters of all
// dispatches lie in one uniform block, 256 bytes a row, bound last in every group with a dynamic offset.
// WebGPU tells of errors late: the first is kept, and the next read(), ready() or done() rejects with it.

const ROW = 256; // bytes of parameters a dispatch: no adapter wants dynamic offsets aligned to more
const MEBI = 2 ** 20;
const USAGE = { staging: 1 | 8, uniform: 64 | 4 | 8, storage: 128 | 4 | 8 }; // with copies from and to it
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

const fail = (...about) => { throw new RunnerError(...about); };
const push = (lists, key, item) => void lists.set(key, [...(lists.get(key) ?? []), item]);
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
  return Object.assign(device, { source: gpu }); // Dawn in node crashes if it is collected before the device
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
  const make = (rows) => gpu.createBuffer({ size: rows * ROW, usage: USAGE.uniform });
  const free = new Map(); // starts of released stretches, by their rows
  const release = ({ start, rows }) => push(free, rows, start);
  const block = { buffer: make(2048), generation: 0, allocate, release };
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
  return block;
}

function makeDevice(gpu, info, onLost) {
  const { queue } = gpu;
  const [state, block] = [watch(gpu, onLost), makeBlock(gpu)];
  const objects = new Map(); // buffers, pipelines, groups and lists, by handle
  const [layouts, staging] = [new Map(), new Map()]; // by accesses; free staging buffers by their size
  const compiling = new Set();
  let [handles, held] = [0, 0]; // the last handle, and the bytes of all buffers

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
    held -= object.size ?? 0;
    object.destroy?.();
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

  function createBuffer(bytes, usage = USAGE.storage) {
    const [size, most] = [wholeWords(bytes), info.limits.maxBufferSize];
    const text = `The GPU is out of memory: ${megabytes(size)} are wanted beside ${megabytes(held)} in use. `;
    const advice = "Close other pages that use it, or take a smaller model.";
    const short = ({ message }) => new RunnerError("out-of-memory", text + advice, message);
    if (size > most) throw short({ message: `A buffer has at most ${most} bytes here.` });
    gpu.pushErrorScope("out-of-memory");
    const buffer = gpu.createBuffer({ size, usage });
    const heard = gpu.popErrorScope().then((error) => error && (state.failure ??= short(error)), () => {});
    state.scopes = Promise.all([state.scopes, heard]);
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
    const made = (compiled) => (pipeline.made ??= compiled);
    pipeline.compiled = gpu.createComputePipelineAsync(descriptor).then(made, async (error) => {
      const said = `The GPU's compiler refused "${label}": ${(await refusal)?.message ?? error.message}`;
      pipeline.error = new RunnerError("compile", said, text);
    });
    compiling.add(pipeline);
    return add(pipeline);
  }
  /** Waits until every pipeline asked for is there; `onStep(done, all)` hears of each. */
  async function ready(onStep = () => {}) {
    const waiting = [...compiling];
    let done = 0;
    const step = ({ compiled }) => compiled.then(() => onStep((done += 1), waiting.length));
    await settle(Promise.all(waiting.map(step)));
    waiting.forEach((pipeline) => compiling.delete(pipeline));
    const refused = waiting.find(({ error }) => error);
    if (refused) throw refused.error;
  }

  function createGroup(accesses, ranges) {
    const entries = [...accesses].map((_, binding) => {
      const [buffer, offset, size] = ranges.slice(3 * binding, 3 * binding + 3);
      return { binding, resource: { buffer: get(buffer), offset, size } };
    });
    return add({ layout: layoutOf(accesses).group, entries, made: null, generation: -1 });
  }
  function bind(group) {
    const params = { binding: group.entries.length, resource: { buffer: block.buffer, size: ROW } };
    group.made = gpu.createBindGroup({ layout: group.layout, entries: [...group.entries, params] });
    group.generation = block.generation;
  }

  function prepare(rows) {
    const starts = Array.from({ length: rows.length / 5 }, (_, row) => 5 * row);
    const [pipelines, groups] = [0, 1].map((column) => starts.map((at) => get(rows[at + column])));
    const stretch = block.allocate(starts.length);
    const offsets = Uint32Array.from(starts, (_, row) => (stretch.start + row) * ROW);
    const grid = rows.filter((_, at) => at % 5 > 1);
    return add({ pipelines, groups, stretch, offsets, grid, generation: -1 });
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
    return staging.get(size)?.pop() ?? createBuffer(size, USAGE.staging);
  }
  /** The first bytes of a staging buffer, once they are there; small ones are used again. */
  async function collect(handle, bytes) {
    const buffer = get(handle);
    const refused = await settle(buffer.mapAsync(1, 0, wholeWords(bytes))).catch((error) => error);
    const copy = refused ?? new Uint8Array(buffer.getMappedRange(0, wholeWords(bytes))).slice(0, bytes);
    buffer.unmap();
    if (refused || buffer.size > 16 * MEBI) release(handle);
    else push(staging, buffer.size, handle);
    if (refused) throw refused;
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
    gpu, info, createBuffer, write, createPipeline, ready, createGroup, prepare, run, stage, collect, read,
    close,
    get lost() { return state.lost; },
    done: () => settle(queue.onSubmittedWorkDone()),
    releaseBuffer: release, releasePipeline: release, releaseGroup: release, releasePrepared: release,
  };
}

const float = new Float32Array(1);
const word = new Uint32Array(float.buffer);

/** The 16 bits nearest to a float32, ties to even, of a number of fraction bits and a bias of exponents. */
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
  const sign = bits & 0x8000 ? -1 : 1;
  if (exponent === 2 * bias + 1) return steps ? NaN : sign * Infinity;
  return sign * (exponent ? steps + 2 ** fraction : steps) * 2 ** (Math.max(exponent, 1) - bias - fraction);
}

const halves = (...format) => ({
  array: Float32Array, stored: Uint16Array,
  encode: (value) => narrow(value, ...format), decode: (bits) => widen(bits, ...format),
});
const DTYPES = {
  float32: { array: Float32Array }, int32: { array: Int32Array }, uint32: { array: Uint32Array },
  int16: { array: Int16Array }, uint16: { array: Uint16Array },
  int8: { array: Int8Array }, uint8: { array: Uint8Array },
  bool: { array: Uint8Array, stored: Uint8Array, encode: (value) => (value ? 1 : 0) },
  float16: halves(10, 15), bfloat16: halves(7, 127),
};
const SETTERS = { f32: "setFloat32", i32: "setInt32", u32: "setUint32" };

/** The bytes of what a user gave for a tensor, or an error that says what is wanted. */
function bytesOf(name, dtype, shape, given) {
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

const RELOAD = "Load the page again; if it stays, export the model again.";
const failFile = (name, found) => fail("weights", `The file ${name} cannot be used: ${found}. ${RELOAD}`);

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
    failFile(name, `it could not be fetched (${error.message})`);
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
  const given = async (entry, onBytes) => verify(entry, await source.file(entry.file, onBytes));
  if (source.plan) return { plan: source.plan, file: given };
  const url = new URL(source, globalThis.location?.href);
  const plan = await (await request(url, url.pathname, { signal, cache: "no-cache" })).json();
  return { plan, file: (entry, onBytes) => fetchWeights(new URL(entry.file, url), entry, onBytes, signal) };
}

function chooseVariant({ format, version, variants }, wanted, info) {
  const known = format === "webgrad-plan" && version === 1;
  if (!known) fail("internal", `This runner reads webgrad-plan 1, not ${format} ${version}.`);
  const meets = ({ software, features = [], subgroupSize, limits = {} }) =>
    (software ?? info.software) === info.software &&
    features.every((feature) => info.features.includes(feature)) &&
    info.subgroupSizes.every((size) => size === (subgroupSize ?? size)) &&
    Object.entries(limits).every(([name, least]) => info.limits[name] >= least);
  const suits = ({ label, needs = {} }) => (wanted === undefined ? meets(needs) : label === wanted);
  const labels = variants.map(({ label }) => label).join("; ");
  return variants.find(suits) ?? fail("no-adapter", `No variant is for ${wanted ?? info.name}: ${labels}.`);
}

/** Calls `write(buffer, bytes)` with each tensor, two files at a time; a file is let go after that. */
async function loadWeights({ plan, file }, buffers, write, report, signal) {
  const loaded = new Map(buffers.map(({ tensor }) => [plan.weights[tensor.file], 0]));
  const waiting = [...loaded.keys()];
  const total = sum(waiting.map(({ bytes }) => bytes));
  const tell = (entry, count) => report("weights", sum([...loaded.set(entry, count).values()]), total);
  async function lane() {
    for (let entry = waiting.shift(); entry; entry = waiting.shift()) {
      signal?.throwIfAborted();
      const content = await file(entry, (count) => tell(entry, count));
      for (const buffer of buffers.filter(({ tensor }) => plan.weights[tensor.file] === entry)) {
        write(buffer, content.subarray(buffer.tensor.start, buffer.tensor.start + buffer.tensor.bytes));
      }
      tell(entry, entry.bytes);
    }
  }
  await Promise.all([lane(), lane()].map((each) => each.finally(() => (waiting.length = 0))));
}

/** What a call gives for each input, checked: bytes of tensors, and numbers. */
function checkInputs(name, wanted, given) {
  const all = `its inputs are: ${Object.keys(wanted).join(", ")}`;
  const unknown = Object.keys(given).find((input) => !(input in wanted));
  if (unknown !== undefined) fail("input", `${name} has no input "${unknown}"; ${all}.`);
  return Object.entries(wanted).map(([input, { kind, dtype, shape, default: usual }]) => {
    const value = given[input] ?? (kind === "random" ? Math.floor(Math.random() * 2 ** 32) : usual);
    if (value === undefined) fail("input", `${name} wants the input "${input}"; ${all}.`);
    if (kind === "tensor") return [input, bytesOf(input, dtype, shape, value)];
    const fits = typeof value === "number" && (dtype === "float32" || Number.isInteger(value));
    return fits ? [input, value] : fail("input", `The input "${input}" is one ${dtype}, not ${value}.`);
  });
}

/** A function of a variant, ready to run: its list and parameters, and where inputs and outputs lie. */
function prepareFunction(device, kernels, buffers, own, { commands, copies, ...places }) {
  const handleAt = (columns, width) => (value, at) => (columns.includes(at % width) ? buffers[value].handle : value);
  const params = new Uint8Array(commands.length * ROW);
  const rows = commands.flatMap(([kernel, ranges, grid, text], row) => {
    params.set(fromBase64(text), row * ROW);
    const { pipeline, accesses } = kernels[kernel];
    return [pipeline, own(device.createGroup(accesses, ranges.map(handleAt([0], 3)))), ...grid];
  });
  const list = own(device.prepare(Int32Array.from(rows)));
  return { list, params, places, copied: (copies ?? []).map(handleAt([0, 2], 5)) };
}

/** An open variant of a plan: its functions, and the state that they share. */
function makeModel(device, plan, variant, buffers, info, own) {
  const names = Object.keys(plan.functions);
  const prepare = (name) => prepareFunction(device, variant.kernels, buffers, own, variant.functions[name]);
  const functions = new Map(names.map((name) => [name, prepare(name)]));
  const unknown = (kind, name, all) => fail("input", `There is no ${kind} "${name}"; there are: ${all.join(", ")}.`);
  const find = (name) => functions.get(name) ?? unknown("function", name, names);
  /** Writes the inputs and submits; `copyOut` gives the copies of outputs, once the inputs are known good. */
  function submit(name, given = {}, copyOut = () => []) {
    const { list, params, places, copied } = find(name);
    const checked = new Map(checkInputs(name, plan.functions[name].inputs, given));
    const view = new DataView(params.buffer);
    for (const [input, at] of Object.entries(places.inputs)) device.write(buffers[at].handle, 0, checked.get(input));
    for (const [input, type, offsets] of places.numbers) {
      offsets.forEach((offset) => view[SETTERS[type]](offset, checked.get(input), true));
    }
    device.run(list, params, [...copied, ...copyOut()]);
  }
  async function run(given, name = names.includes("run") ? "run" : names[0]) {
    const { places } = find(name);
    const [wanted, starts] = [Object.entries(plan.functions[name].outputs), [0]];
    for (const [, { bytes }] of wanted) starts.push(starts.at(-1) + wholeWords(bytes));
    let staged = null;
    submit(name, given, () => {
      staged = device.stage(starts.at(-1));
      return wanted.flatMap(([output, { bytes }], at) =>
        [buffers[places.outputs[output]].handle, 0, staged, starts[at], bytes]);
    });
    const read = await device.collect(staged, starts.at(-1));
    return Object.fromEntries(wanted.map(([output, spec], at) =>
      [output, tensorOf(read.subarray(starts[at], starts[at] + spec.bytes), spec)]));
  }
  async function state(name) {
    const buffer = buffers.find((each) => each.state === name) ?? unknown("state", name, Object.keys(plan.state));
    return tensorOf(await device.read(buffer.handle, 0, plan.state[name].bytes), plan.state[name]);
  }
  function reset() {
    for (const { handle, state: name, first, bytes } of buffers) {
      if (name !== undefined) device.write(handle, 0, first ?? new Uint8Array(bytes));
    }
  }
  const calls = Object.fromEntries(names.map((name) => [name, (given) => run(given, name)]));
  return { run, submit, state, reset, device, info, functions: calls };
}

/** Opens an exported model: `source` is the address of its plan.json, or { plan, file(name, onBytes) }. */
async function load(source, options = {}) {
  const { onProgress = () => {}, signal } = options;
  const report = (stage, loaded, total) => onProgress({ stage, loaded, total });
  report("adapter", 0, 1);
  const device = options.device ?? (await openDevice(options));
  const [owned, bytes] = [[], { weights: 0, state: 0, working: 0 }];
  const own = (handle) => owned[owned.push(handle) - 1];
  const close = () => (options.device ? owned.forEach(device.releaseBuffer) : device.close());
  try {
    const opened = await openSource(source, signal);
    const { plan } = opened;
    const { label, ...variant } = chooseVariant(plan, options.variant, device.info);
    for (const buffer of variant.buffers) {
      bytes[buffer.tensor ? "weights" : buffer.state ? "state" : "working"] += buffer.bytes;
    }
    const buffers = variant.buffers.map(({ tensor, state, ...more }) => {
      const handle = own(device.createBuffer(more.bytes));
      if (more.data) device.write(handle, 0, fromBase64(more.data));
      return { ...more, state, handle, tensor: plan.tensors[tensor ?? plan.state[state]?.tensor] };
    });
    await device.done(); // was there room?
    variant.kernels = variant.kernels.map(({ text, entry, accesses, label: name }) =>
      ({ accesses, pipeline: own(device.createPipeline(plan.texts[text], entry, accesses, name)) }));
    const write = (buffer, content) => {
      device.write(buffer.handle, 0, content);
      if (buffer.state) buffer.first = content.slice();
    };
    await loadWeights(opened, buffers.filter(({ tensor }) => tensor), write, report, signal);
    await device.ready((done, all) => report("compile", done, all));
    const model = makeModel(device, plan, variant, buffers, { device: device.info, variant: label, bytes }, own);
    report("ready", 1, 1);
    return Object.assign(model, { close });
  } catch (error) {
    if (error.code === "out-of-memory") {
      const [weights, state, working] = Object.values(bytes).map(megabytes);
      error.message += ` The model wants ${weights} of weights, ${state} of state and ${working} of working memory.`;
    }
    close();
    throw error;
  }
}

export { RunnerError, load, openDevice };
