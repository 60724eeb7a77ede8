// The webgrad runner: compute on WebGPU from plain data, without a framework, in browsers and in node.
// `openDevice` gives a device whose objects are small integers and whose runs are prepared lists of
// dispatches; `load` opens an exported model (plan.json and its weights) on one. The parameters of dispatches
// lie in uniform blocks, 256 bytes a row, which are bound last in every group with a dynamic offset.
// WebGPU tells of errors late: the first is kept, and the next read(), ready() or done() rejects with it.

const ROW = 256; // bytes of parameters a dispatch: no adapter wants dynamic offsets aligned to more
const USAGE = { staging: 1 | 8, uniform: 64 | 4 | 8, storage: 128 | 4 | 8 }; // with copies from and to it
const FEATURES = ["shader-f16", "subgroups", "timestamp-query"];
const SOFTWARE = /swiftshader|llvmpipe|lavapipe|softpipe|basic render|software/i;
const MESSAGES = {
  "no-webgpu": "This browser has no WebGPU. Chrome and Edge have it since version 113, Safari since 26, " +
    "Firefox since 141 (Windows) and 145 (macOS): update the browser, or open the page in one of these.",
  insecure: "Browsers offer WebGPU to secure pages only: open this one over https, or from localhost.",
  "no-adapter": "The browser has WebGPU but offers no GPU: it may be switched off, or its driver be on the " +
    "block list. Update the driver; chrome://gpu or Firefox's about:support say what is wrong.",
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
const push = (lists, key, item) => void (lists.get(key)?.push(item) ?? lists.set(key, [item]));
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
  const { subgroupMinSize = 4, subgroupMaxSize = 128, isFallbackAdapter: fallback } = more;
  return {
    name: description || device || `${vendor} ${architecture}`.trim() || "an adapter without a name",
    vendor, architecture, description, features: [...features], limits: copyOf(limits),
    software: Boolean(fallback) || SOFTWARE.test([vendor, architecture, device, description].join(" ")),
    subgroupSizes: features.has("subgroups") ? [subgroupMinSize, subgroupMaxSize] : [0, 0],
  };
}

/** A device with every limit of its adapter, and with the known features that it offers. */
async function openDevice(options = {}) {
  const { gpu = globalThis.navigator?.gpu, features = FEATURES, limits, onLost } = options;
  const refused = (code) => (error) => fail(code, undefined, error.message);
  if (!gpu) fail(globalThis.isSecureContext === false ? "insecure" : "no-webgpu");
  const { powerPreference = "high-performance", software: forceFallbackAdapter = false } = options;
  const wanted = { powerPreference, forceFallbackAdapter };
  const adapter = (await gpu.requestAdapter(wanted).catch(refused("no-adapter"))) ?? fail("no-adapter");
  const requiredFeatures = features.filter((feature) => adapter.features.has(feature));
  const required = { requiredFeatures, requiredLimits: limits ?? copyOf(adapter.limits) };
  const opened = await adapter.requestDevice(required).catch(refused("no-device"));
  return makeDevice(opened, describe(adapter, opened), onLost, gpu);
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
    state.lost ??= `The GPU was lost (${message || reason}): what was on it is gone. Load the page again.`;
    if (!state.closed) onLost?.(new RunnerError("lost", state.lost));
  });
  return state;
}

/** Uniform blocks, and stretches of their rows, in powers of two, that are used again once released. */
function makeBlocks(gpu) {
  const free = new Map();
  let [buffer, space] = [null, 0];
  function allocate(count) {
    const rows = powerOfTwo(count);
    if (free.get(rows)?.length > 0) return free.get(rows).pop();
    if (space < rows) {
      space = Math.max(rows, 4096);
      buffer = gpu.createBuffer({ size: space * ROW, usage: USAGE.uniform });
    }
    space -= rows;
    return { buffer, start: space * ROW, rows };
  }
  return { allocate, release: (stretch) => push(free, stretch.rows, stretch) };
}

function makeDevice(gpu, info, onLost, source) {
  const [queue, state, blocks] = [gpu.queue, watch(gpu, onLost), makeBlocks(gpu)];
  const [objects, compiling] = [new Map(), new Set()]; // by handle; pipelines that ready() waits for
  const [layouts, staging] = [new Map(), new Map()]; // by accesses; free staging buffers by their size
  let [handles, held] = [0, 0]; // the last handle, and the bytes of all buffers
  const get = (handle) => objects.get(handle) ?? fail("internal", `There is no object ${handle}.`);
  const add = (object) => objects.set((handles += 1), object) && handles;
  function release(handle) {
    const object = get(handle);
    objects.delete(handle);
    compiling.delete(object);
    if (object.stretch) blocks.release(object.stretch);
    held -= object.size ?? 0;
    object.destroy?.();
  }
  /** Waits for a promise; rejects with the first error that came before it. */
  async function settle(promise) {
    const refused = await promise.then(() => null, (error) => error);
    await state.scopes;
    const more = () => new Promise((go) => setTimeout(go, refused ? 250 : 20)); // the loss behind it
    if (refused || state.failure) await Promise.race([gpu.lost, more()]);
    if (state.lost !== null) fail("lost", state.lost);
    const error = state.failure ?? refused;
    state.failure = null;
    if (error) throw error instanceof RunnerError ? error : new RunnerError("internal", error.message);
  }
  function createBuffer(bytes, usage = USAGE.storage) {
    const [size, most] = [wholeWords(bytes), info.limits.maxBufferSize];
    const text = `The GPU is out of memory: ${megabytes(size)} are wanted beside ${megabytes(held)} in use.`;
    const short = (error) => new RunnerError("out-of-memory", `${text} Close other pages.`, error.message);
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
    const tail = () => Uint8Array.from({ length: 4 }, (_, at) => bytes[whole + at] ?? 0);
    queue.writeBuffer(buffer, offset, bytes, 0, whole);
    if (whole < bytes.length) queue.writeBuffer(buffer, offset + whole, tail());
  }
  function layoutOf(accesses) {
    if (layouts.has(accesses)) return layouts.get(accesses);
    const kinds = [...accesses].map((access) => ({ type: access === "r" ? "read-only-storage" : "storage" }));
    kinds.push({ type: "uniform", hasDynamicOffset: true, minBindingSize: ROW });
    const entries = kinds.map((buffer, binding) => ({ binding, buffer, visibility: 4 /* compute */ }));
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
    const asked = gpu.createComputePipelineAsync(descriptor);
    pipeline.compiled = asked.then((made) => (pipeline.made ??= made), refused);
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
    for (const { error } of waiting) if (error) throw error;
  }
  function createGroup(accesses, ranges) {
    const range = (at) => ({ buffer: get(ranges[at]), offset: ranges[at + 1], size: ranges[at + 2] });
    const entries = [...accesses].map((_, binding) => ({ binding, resource: range(3 * binding) }));
    return add({ layout: layoutOf(accesses).group, entries, made: new Map() });
  }
  function bind({ layout, entries, made }, buffer) {
    const params = { binding: entries.length, resource: { buffer, size: ROW } };
    if (!made.has(buffer)) made.set(buffer, gpu.createBindGroup({ layout, entries: [...entries, params] }));
    return made.get(buffer);
  }
  function prepare(rows) {
    const starts = Array.from({ length: rows.length / 5 }, (_, row) => 5 * row);
    const pipelines = starts.map((at) => get(rows[at]));
    const stretch = blocks.allocate(starts.length);
    const bound = starts.map((at) => bind(get(rows[at + 1]), stretch.buffer));
    const offsets = Uint32Array.from(starts, (_, row) => stretch.start + row * ROW);
    return add({ pipelines, made: null, bound, stretch, offsets, grid: rows.filter((_, at) => at % 5 > 1) });
  }
  function compiled(pipeline) {
    if (pipeline.error) throw pipeline.error;
    return (pipeline.made ??= gpu.createComputePipeline(pipeline.descriptor)); // ready() was not awaited
  }
  function encodePass(pass, { made, bound, grid, offsets }) {
    let last = null;
    for (let row = 0, axis = 0; row < made.length; row += 1, axis += 3) {
      const pipeline = made[row];
      if (pipeline !== last) pass.setPipeline((last = pipeline));
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
    list.made ??= list.pipelines.map(compiled);
    if (params !== null) queue.writeBuffer(list.stretch.buffer, list.stretch.start, params);
    submit(list, copies ?? []);
  }
  /** A staging buffer: a run may copy to it, and `collect` reads it. */
  function stage(bytes) {
    const size = Math.max(4096, powerOfTwo(bytes));
    return staging.get(size)?.pop() ?? createBuffer(size, USAGE.staging);
  }
  async function collect(handle, bytes) {
    const buffer = get(handle);
    const refused = await settle(buffer.mapAsync(1, 0, wholeWords(bytes))).catch((error) => error);
    const copy = refused ?? new Uint8Array(buffer.getMappedRange(0, wholeWords(bytes))).slice(0, bytes);
    buffer.unmap();
    if (refused || buffer.size > 2 ** 24) release(handle);
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
    source, // Dawn in node crashes if it is collected before the device
    gpu, info, createBuffer, write, createPipeline, ready, createGroup, prepare, run, stage, collect, read,
    close, done: () => settle(queue.onSubmittedWorkDone()), get lost() { return state.lost; },
    releaseBuffer: release, releasePipeline: release, releaseGroup: release, releasePrepared: release,
  };
}

const float = new Float32Array(1);
const word = new Uint32Array(float.buffer);
/** Floats of 16 bits, by their bits of fraction and bias of exponents; rounded to nearest, ties to even. */
const halves = (fraction, bias) => ({
  array: Float32Array, stored: Uint16Array,
  encode(value) {
    float[0] = value;
    const exponent = Math.max(((word[0] >>> 23) & 255) - 127, 1 - bias);
    const steps = Math.abs(value) / 2 ** (exponent - fraction) + 2 ** 52 - 2 ** 52; // rounded
    const infinity = (2 * bias + 1) << fraction;
    const bits = Math.min(steps + (exponent + bias - 1) * 2 ** fraction, infinity);
    return ((word[0] >>> 16) & 0x8000) | (Number.isNaN(value) ? infinity + 2 ** (fraction - 1) : bits);
  },
  decode(bits) {
    const [exponent, steps] = [(bits & 0x7fff) >> fraction, bits % 2 ** fraction];
    const sign = bits & 0x8000 ? -1 : 1;
    if (exponent === 2 * bias + 1) return steps ? NaN : sign * Infinity;
    return sign * (exponent ? steps + 2 ** fraction : steps) * 2 ** (Math.max(exponent, 1) - bias - fraction);
  },
});
const DTYPES = {
  float32: { array: Float32Array }, int32: { array: Int32Array }, uint32: { array: Uint32Array },
  int16: { array: Int16Array }, uint16: { array: Uint16Array }, int8: { array: Int8Array },
  uint8: { array: Uint8Array }, float16: halves(10, 15), bfloat16: halves(7, 127),
  bool: { array: Uint8Array, stored: Uint8Array, encode: (value) => (value ? 1 : 0) },
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
  const values = new stored(bytes.buffer); // the bytes are nobody else's
  return { data: decode ? array.from(values, decode) : values, shape, dtype };
}

const fromBase64 = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
const RELOAD = "Load the page again; if it stays, export the model again.";
const failFile = (name, found) => fail("weights", `The file ${name} cannot be used: ${found}. ${RELOAD}`);

async function verify({ file, bytes: expected, sha256 }, bytes, count = bytes.length) {
  if (count !== expected) failFile(file, `${expected} bytes are expected, ${count} were found`);
  const digest = await globalThis.crypto?.subtle?.digest("SHA-256", bytes); // on secure pages only
  const digits = [...new Uint8Array(digest ?? 0)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  if (digest && digits !== sha256) failFile(file, `its sha256 is ${digits}, not ${sha256}`);
  return bytes;
}

async function request(url, name, options) {
  const response = await fetch(url, options).catch((error) => failFile(name, error.message));
  return response.ok ? response : failFile(name, `the server answered ${response.status}`);
}

/** A response's bytes, of whose number `onBytes` hears as they come. */
async function drain(entry, response, onBytes) {
  const [reader, bytes] = [response.body.getReader(), new Uint8Array(entry.bytes)];
  const next = () => reader.read().catch((error) => failFile(entry.file, error.message));
  let count = 0;
  for (let part = await next(); !part.done; part = await next()) {
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
  const forgotten = cache?.delete(url.href, { ignoreSearch: true });
  await forgotten?.then(() => cache.put(url.href, new Response(bytes))).catch(() => {}); // there is no room
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
  const kind = `${format} ${version}`;
  if (kind !== "webgrad-plan 1") fail("internal", `This runner reads webgrad-plan 1, not ${kind}.`);
  const meets = ({ software, features = [], subgroupSize, limits = {} }) =>
    (software ?? info.software) === info.software &&
    features.every((feature) => info.features.includes(feature)) &&
    info.subgroupSizes.every((size) => size === (subgroupSize ?? size)) &&
    Object.entries(limits).every(([name, least]) => info.limits[name] >= least);
  const suits = ({ label, needs = {} }) => (wanted === undefined ? meets(needs) : label === wanted);
  const labels = variants.map(({ label }) => label).join("; ");
  return variants.find(suits) ?? fail("no-adapter", `No variant is for ${wanted ?? info.name}: ${labels}.`);
}

/** Fills buffers with their tensors, two files at a time; a file is let go as soon as it is written. */
async function loadWeights({ plan, file }, buffers, device, report) {
  const loaded = new Map(buffers.map(({ tensor }) => [plan.weights[tensor.file], 0]));
  const waiting = [...loaded.keys()];
  const total = sum(waiting.map(({ bytes }) => bytes));
  const tell = (entry, count) => report("weights", sum([...loaded.set(entry, count).values()]), total);
  const lanes = [1, 2].map(async () => {
    for (let entry = waiting.shift(); entry; entry = waiting.shift()) {
      const content = await file(entry, (count) => tell(entry, count));
      for (const buffer of buffers.filter(({ tensor }) => plan.weights[tensor.file] === entry)) {
        const bytes = content.subarray(buffer.tensor.start, buffer.tensor.start + buffer.tensor.bytes);
        device.write(buffer.handle, 0, bytes);
        if (buffer.state) buffer.first = bytes.slice();
      }
      tell(entry, entry.bytes);
    }
  });
  await Promise.all(lanes).finally(() => (waiting.length = 0));
}

/** What a call gives for each input, checked: bytes of tensors, and numbers. */
function checkInputs(name, wanted, given) {
  const [all, own] = [`its inputs are: ${Object.keys(wanted).join(", ")}`, { __proto__: null, ...given }];
  const unknown = Object.keys(own).find((input) => !Object.hasOwn(wanted, input));
  if (unknown !== undefined) fail("input", `${name} has no input "${unknown}"; ${all}.`);
  return Object.entries(wanted).map(([input, { kind, dtype, shape, default: usual }]) => {
    const { array } = DTYPES[dtype];
    const value = own[input] ?? (kind === "random" ? array.of(Math.random() * 2 ** 32)[0] : usual);
    if (value === undefined) fail("input", `${name} wants the input "${input}"; ${all}.`);
    if (kind === "tensor") return [input, bytesOf(input, dtype, shape, value)];
    const fits = typeof value === "number" && (array === Float32Array || array.of(value)[0] === value);
    return fits ? [input, value] : fail("input", `The input "${input}" is one ${dtype}, not ${value}.`);
  });
}

/** A function that submits one of the plan's: it writes inputs, dispatches, and copies outputs to staging. */
function prepareFunction(device, own, kernels, handles, inputs, outputs, planned) {
  const { commands, copies = [] } = planned;
  const params = new Uint8Array(commands.length * ROW);
  const view = new DataView(params.buffer);
  const rows = commands.flatMap(([kernel, ranges, grid, text], row) => {
    params.set(fromBase64(text), row * ROW);
    const bound = ranges.map((value, at) => (at % 3 ? value : handles[value]));
    return [kernels[kernel].pipeline, own(device.createGroup(kernels[kernel].accesses, bound)), ...grid];
  });
  const list = own(device.prepare(Int32Array.from(rows)));
  const copied = copies.map((value, at) => (at % 5 === 0 || at % 5 === 2 ? handles[value] : value));
  const results = Object.entries(outputs).map(([name, { bytes }]) => [handles[planned.outputs[name]], bytes]);
  return (name, given, reading) => {
    const checked = Object.fromEntries(checkInputs(name, inputs, { __proto__: null, ...given }));
    Object.entries(planned.inputs).forEach(([input, at]) => device.write(handles[at], 0, checked[input]));
    for (const [input, type, offsets] of planned.numbers) {
      offsets.forEach((offset) => view[SETTERS[type]](offset, checked[input], true));
    }
    const staged = reading ? results.map(([, bytes]) => device.stage(bytes)) : [];
    const last = staged.flatMap((target, at) => [results[at][0], 0, target, 0, results[at][1]]);
    device.run(list, params, [...last, ...copied]); // an output may be a state as it was
    return staged;
  };
}

/** The functions of an open variant, and the state that they share. */
function makeModel(device, own, plan, { functions }, kernels, buffers) {
  const [names, handles] = [Object.keys(plan.functions), buffers.map(({ handle }) => handle)];
  const prepared = new Map(Object.entries(plan.functions).map(([name, { inputs, outputs }]) =>
    [name, prepareFunction(device, own, kernels, handles, inputs, outputs, functions[name])]));
  const unknown = (what, all) => fail("input", `There is no ${what}: ${Object.keys(all).join(", ")}.`);
  const find = (name) => prepared.get(name) ?? unknown(`function "${name}"`, plan.functions);
  async function run(given = {}, name = names.includes("run") ? "run" : names[0]) {
    const staged = find(name)(name, given, true);
    const outputs = Object.entries(plan.functions[name].outputs).map(async ([output, spec], at) =>
      [output, tensorOf(await device.collect(staged[at], spec.bytes), spec)]);
    return Object.fromEntries(await Promise.all(outputs));
  }
  async function state(name) {
    const found = buffers.find((each) => each.state === name) ?? unknown(`state "${name}"`, plan.state ?? {});
    return tensorOf(await device.read(found.handle, 0, plan.state[name].bytes), plan.state[name]);
  }
  function reset() {
    const changed = buffers.filter((buffer) => buffer.state !== undefined);
    changed.forEach(({ handle, first, bytes }) => device.write(handle, 0, first ?? new Uint8Array(bytes)));
  }
  const calls = Object.fromEntries(names.map((name) => [name, (given) => run(given, name)]));
  return { run, state, reset, functions: calls, submit: (name, given = {}) => void find(name)(name, given) };
}

/** Opens an exported model: `source` is the address of its plan.json, or { plan, file(name, onBytes) }. */
async function load(source, options = {}) {
  const { onProgress = () => {}, signal } = options;
  const report = (stage, loaded, total) => signal?.throwIfAborted() ?? onProgress({ stage, loaded, total });
  report("adapter", 0, 1);
  const device = options.device ?? (await openDevice(options));
  const [owned, bytes] = [[], { weights: 0, state: 0, working: 0 }];
  const own = (handle) => owned[owned.push(handle) - 1];
  const close = () => (options.device ? owned.splice(0).forEach(device.releaseBuffer) : device.close());
  try {
    const opened = await openSource(source, signal);
    const { texts, tensors, state: states = {} } = opened.plan;
    const variant = chooseVariant(opened.plan, options.variant, device.info);
    const kind = ({ tensor, state }) => (tensor ? "weights" : state ? "state" : "working");
    variant.buffers.forEach((buffer) => (bytes[kind(buffer)] += buffer.bytes));
    const buffers = variant.buffers.map(({ tensor, ...row }) => {
      const handle = own(device.createBuffer(row.bytes));
      if (row.data) device.write(handle, 0, fromBase64(row.data));
      return { ...row, handle, tensor: tensors[tensor ?? states[row.state]?.tensor] };
    });
    await device.done(); // if there was no room, it says so
    const kernels = variant.kernels.map(({ text, entry, accesses, label }) =>
      ({ accesses, pipeline: own(device.createPipeline(texts[text], entry, accesses, label)) }));
    await loadWeights(opened, buffers.filter(({ tensor }) => tensor), device, report);
    await device.ready((done, all) => report("compile", done, all));
    const model = makeModel(device, own, opened.plan, variant, kernels, buffers);
    report("ready", 1, 1);
    return { ...model, device, close, info: { device: device.info, variant: variant.label, bytes } };
  } catch (error) {
    const [weights, state, working] = Object.values(bytes).map(megabytes);
    const all = ` The model wants ${weights} of weights, ${state} of state and ${working} of working memory.`;
    if (error.code === "out-of-memory") error.message += all;
    close();
    throw signal?.aborted ? signal.reason : error;
  }
}

export { RunnerError, load, openDevice };
