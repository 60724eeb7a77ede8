// The webgrad runner: compute on WebGPU from plain data, without a framework, in browsers and in node.
// `openDevice` gives a device whose objects are small integers and whose runs are prepared lists of dispatches;
// `load` opens an exported model (plan.json and its weights) on one. Parameters of all dispatches lie in one
// uniform block, 256 bytes a row, bound last in every group with a dynamic offset. WebGPU tells of errors late:
// the first one is kept, and the next read(), ready() or done() rejects with it.

const ROW = 256; // bytes of parameters a dispatch: the largest alignment of dynamic offsets an adapter may ask for
const USAGE = { mapRead: 1, copySource: 4, copyTarget: 8, uniform: 64, storage: 128 };
const STORAGE = USAGE.storage | USAGE.copySource | USAGE.copyTarget;
const COMPUTE = 4; // GPUShaderStage.COMPUTE
const MEBI = 2 ** 20;
const FEATURES = ["shader-f16", "subgroups", "timestamp-query"];
const SOFTWARE = /swiftshader|llvmpipe|lavapipe|softpipe|basic render|software/i;
const BROWSERS =
  "Chrome and Edge have it since version 113 (Android: 121), Safari since 26, Firefox since 141 on Windows " +
  "and 145 on macOS";

/** What went wrong: `code` is for programs, `message` for users, `details` the browser's own words. */
class RunnerError extends Error {
  constructor(code, message, details = "") {
    super(message);
    this.name = "RunnerError";
    this.code = code;
    this.details = String(details);
  }
}

const size = (bytes) => {
  const units = [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"]];
  const [unit, name] = units.find(([least]) => bytes >= least) ?? [1, "bytes"];
  return `${Number((bytes / unit).toPrecision(3))} ${name}`;
};

/** Objects by small integers; the numbers of released ones are used again. */
function makeTable(kind) {
  const items = [];
  const free = [];
  const get = (handle) => {
    if (items[handle] === undefined) throw new RunnerError("internal", `There is no ${kind} ${handle}.`);
    return items[handle];
  };
  return {
    get,
    add(item) {
      const handle = free.length > 0 ? free.pop() : items.length;
      items[handle] = item;
      return handle;
    },
    take(handle) {
      const item = get(handle);
      items[handle] = undefined;
      free.push(handle);
      return item;
    },
  };
}

// ---------------------------------------------------------------------------------------------- opening

function noWebGpu() {
  if (globalThis.isSecureContext === false) {
    const text = "WebGPU is only there on secure pages: open this one over https, or from localhost.";
    return new RunnerError("insecure", text);
  }
  return new RunnerError("no-webgpu", `WebGPU is missing in this browser. ${BROWSERS}; update or try one of them.`);
}

async function requestAdapter(gpu, powerPreference, software) {
  const advice =
    "The browser has WebGPU but offers no GPU: it may be switched off, or the driver may be on the browser's " +
    "block list. Update the graphics driver, and see about:gpu (chrome://gpu) or about:support in Firefox.";
  let adapter = null;
  try {
    adapter = await gpu.requestAdapter({ powerPreference, forceFallbackAdapter: software === true });
  } catch (error) {
    throw new RunnerError("no-adapter", advice, error.message);
  }
  if (!adapter) throw new RunnerError("no-adapter", advice);
  return adapter;
}

function describe(adapter, features, limits) {
  const { vendor = "", architecture = "", device = "", description = "", ...more } = copyOf(adapter.info ?? {});
  const words = [vendor, architecture, device, description].join(" ");
  return {
    name: description || device || `${vendor} ${architecture}`.trim() || "unnamed GPU",
    vendor,
    architecture,
    description,
    features,
    limits,
    software: Boolean(more.isFallbackAdapter ?? adapter.isFallbackAdapter) || SOFTWARE.test(words),
    subgroupSizes: features.includes("subgroups") ? [more.subgroupMinSize ?? 4, more.subgroupMaxSize ?? 128] : [0, 0],
  };
}

/** The values of a WebIDL object, whose attributes lie on its prototype. */
function copyOf(object) {
  const copy = {};
  for (const name in object) if (typeof object[name] !== "function") copy[name] = object[name];
  return copy;
}

/** A device of `gpu` with every limit of its adapter, and with the known features that it offers. */
async function openDevice(options = {}) {
  const { features = FEATURES, software, powerPreference = "high-performance", onLost } = options;
  const gpu = options.gpu ?? globalThis.navigator?.gpu;
  if (!gpu) throw noWebGpu();
  const adapter = await requestAdapter(gpu, powerPreference, software);
  const requiredFeatures = features.filter((feature) => adapter.features.has(feature));
  const requiredLimits = options.limits ?? copyOf(adapter.limits);
  let device = null;
  try {
    device = await adapter.requestDevice({ requiredFeatures, requiredLimits });
  } catch (error) {
    throw new RunnerError("no-device", `The GPU could not be opened: ${error.message}`, error.message);
  }
  const info = describe(adapter, requiredFeatures, copyOf(device.limits));
  if (software === false && info.software) {
    device.destroy();
    throw new RunnerError("no-adapter", `Only a software adapter was found (${info.name}), and it was refused.`);
  }
  return makeDevice(device, info, onLost);
}

// ---------------------------------------------------------------------------------------------- a device

/** First errors of a device: those that WebGPU reports late, those of out-of-memory scopes, and its loss. */
function watch(gpu, onLost) {
  const state = { lost: null, closed: false };
  let failure = null;
  let scopes = Promise.resolve();
  gpu.onuncapturederror = (event) => {
    event.preventDefault?.();
    const memory = event.error.constructor?.name === "GPUOutOfMemoryError";
    const text = memory ? "The GPU is out of memory; close other pages that use it." : event.error.message;
    failure ??= new RunnerError(memory ? "out-of-memory" : "validation", text, event.error.message);
  };
  gpu.lost.then(({ reason, message }) => {
    const why = message || reason || "no reason was given";
    state.lost ??= `The GPU was lost (${why}). Load the page again; what was on the GPU is gone.`;
    if (!state.closed) onLost?.(lostError());
  });
  const lostError = () => new RunnerError("lost", state.lost, "");

  return {
    state,
    /** Throws if the device is lost. */
    alive() {
      if (state.lost !== null) throw lostError();
    },
    /** Keeps what `error` makes of a scope's error, if it catches one. */
    scope(filter, make, error) {
      gpu.pushErrorScope(filter);
      const made = make();
      const ended = gpu.popErrorScope().then((caught) => {
        if (caught) failure ??= error(caught);
      }, () => {});
      scopes = scopes.then(() => ended);
      return made;
    },
    /** Waits for `promise` and for errors that came before; rejects with the first of them. */
    async settle(promise) {
      const refused = await promise.then(() => null, (error) => error);
      await scopes;
      // A refusal may come before the news of the loss that is its cause.
      if (refused) await Promise.race([gpu.lost, new Promise((go) => setTimeout(go, 250))]);
      if (state.lost !== null) throw lostError();
      const error = failure ?? refused;
      failure = null;
      if (error instanceof RunnerError) throw error;
      if (error) throw new RunnerError("internal", `The GPU refused an operation: ${error.message}`, error.message);
    },
  };
}

/** The uniform block: stretches of rows, in powers of two, of one buffer that grows. */
function makeBlock(gpu) {
  const usage = USAGE.uniform | USAGE.copyTarget | USAGE.copySource;
  const free = new Map();
  const block = { buffer: null, generation: 0, rows: 2048, allocate, release };
  let used = 0;
  block.buffer = gpu.createBuffer({ size: block.rows * ROW, usage, label: "parameters" });

  function grow(rows) {
    const old = block.buffer;
    block.rows = rows;
    block.buffer = gpu.createBuffer({ size: rows * ROW, usage, label: "parameters" });
    block.generation += 1;
    const encoder = gpu.createCommandEncoder();
    encoder.copyBufferToBuffer(old, 0, block.buffer, 0, used * ROW);
    gpu.queue.submit([encoder.finish()]);
    old.destroy();
  }

  function allocate(count) {
    const rows = 2 ** Math.ceil(Math.log2(Math.max(count, 1)));
    if (free.get(rows)?.length > 0) return { start: free.get(rows).pop(), rows };
    if (used + rows > block.rows) grow(Math.max(2 * block.rows, used + rows));
    used += rows;
    return { start: used - rows, rows };
  }

  function release({ start, rows }) {
    if (!free.has(rows)) free.set(rows, []);
    free.get(rows).push(start);
  }

  return block;
}

function makeDevice(gpu, info, onLost) {
  const { queue } = gpu;
  const errors = watch(gpu, onLost);
  const block = makeBlock(gpu);
  const buffers = makeTable("buffer");
  const pipelines = makeTable("pipeline");
  const groups = makeTable("bind group");
  const lists = makeTable("prepared list");
  const layouts = new Map();
  const staging = new Map(); // free ones by their size, a power of two
  const compiling = new Set();
  let held = 0;

  function createBuffer(bytes, usage = STORAGE) {
    const length = Math.max(4, Math.ceil(bytes / 4) * 4);
    if (length > info.limits.maxBufferSize) {
      const most = size(info.limits.maxBufferSize);
      throw new RunnerError("out-of-memory", `A buffer of ${size(length)} is wanted; this GPU takes at most ${most}.`);
    }
    const make = () => gpu.createBuffer({ size: length, usage });
    const before = size(held);
    const short = (error) => {
      const text = `The GPU is out of memory: ${size(length)} are wanted beside the ${before} that are in use.`;
      return new RunnerError("out-of-memory", `${text} Close other pages that use it, or take a smaller model.`, error.message);
    };
    const buffer = length > MEBI ? errors.scope("out-of-memory", make, short) : make();
    held += length;
    return buffers.add(buffer);
  }

  function releaseBuffer(handle) {
    const buffer = buffers.take(handle);
    held -= buffer.size;
    buffer.destroy();
  }

  function write(handle, offset, bytes) {
    const buffer = buffers.get(handle);
    const whole = bytes.length - (bytes.length % 4);
    for (let at = 0; at < whole; at += 32 * MEBI) {
      queue.writeBuffer(buffer, offset + at, bytes, at, Math.min(32 * MEBI, whole - at));
    }
    if (whole === bytes.length) return;
    const tail = new Uint8Array(4);
    tail.set(bytes.subarray(whole));
    queue.writeBuffer(buffer, offset + whole, tail);
  }

  function clear(handle) {
    const encoder = gpu.createCommandEncoder();
    encoder.clearBuffer(buffers.get(handle));
    queue.submit([encoder.finish()]);
  }

  function layoutOf(accesses) {
    if (!layouts.has(accesses)) {
      const types = { r: "read-only-storage", w: "storage" };
      const entries = [...accesses].map((access) => ({ buffer: { type: types[access] } }));
      entries.push({ buffer: { type: "uniform", hasDynamicOffset: true, minBindingSize: ROW } });
      const numbered = entries.map((entry, binding) => ({ binding, visibility: COMPUTE, ...entry }));
      const group = gpu.createBindGroupLayout({ entries: numbered });
      layouts.set(accesses, { group, pipeline: gpu.createPipelineLayout({ bindGroupLayouts: [group] }) });
    }
    return layouts.get(accesses);
  }

  function createPipeline(text, entry, accesses, label = entry) {
    gpu.pushErrorScope("validation");
    const module = gpu.createShaderModule({ code: text, label });
    const refused = gpu.popErrorScope();
    const compute = { module, entryPoint: entry };
    const pipeline = { made: null, error: null, descriptor: { layout: layoutOf(accesses).pipeline, compute, label } };
    const compile = async () => {
      try {
        pipeline.made = await gpu.createComputePipelineAsync(pipeline.descriptor);
      } catch (error) {
        const words = (await refused.catch(() => null))?.message ?? error.message;
        pipeline.error = new RunnerError("compile", `The kernel ${label} was refused by the GPU's compiler: ${words}`, text);
      }
    };
    pipeline.compiled = compile();
    compiling.add(pipeline);
    return pipelines.add(pipeline);
  }

  /** Waits until every pipeline asked for is there; `onStep(done, all)` hears of each. */
  async function ready(onStep) {
    const waiting = [...compiling];
    let done = 0;
    const step = () => onStep?.((done += 1), waiting.length);
    await errors.settle(Promise.all(waiting.map((pipeline) => pipeline.compiled.then(step))));
    waiting.forEach((pipeline) => compiling.delete(pipeline));
    const failed = waiting.find((pipeline) => pipeline.error);
    if (failed) throw failed.error;
  }

  function releasePipeline(handle) {
    compiling.delete(pipelines.take(handle));
  }

  function bind(group) {
    group.made = gpu.createBindGroup({ layout: group.layout, entries: [...group.entries, {
      binding: group.entries.length, resource: { buffer: block.buffer, size: ROW } }] });
    group.generation = block.generation;
  }

  function createGroup(accesses, ranges) {
    const entries = [...accesses].map((_, binding) => {
      const [buffer, offset, bytes] = ranges.slice(3 * binding, 3 * binding + 3);
      return { binding, resource: { buffer: buffers.get(buffer), offset, size: bytes } };
    });
    const group = { layout: layoutOf(accesses).group, entries, made: null, generation: -1 };
    bind(group);
    return groups.add(group);
  }

  function prepare(rows) {
    const count = rows.length / 5;
    const list = { pipelines: [], groups: [], made: [], bound: [], grid: new Uint32Array(3 * count), generation: -1 };
    for (let row = 0; row < count; row += 1) {
      list.pipelines.push(pipelines.get(rows[5 * row]));
      list.groups.push(groups.get(rows[5 * row + 1]));
      for (let axis = 0; axis < 3; axis += 1) list.grid[3 * row + axis] = rows[5 * row + 2 + axis];
    }
    list.stretch = block.allocate(count);
    list.offsets = Uint32Array.from({ length: count }, (_, row) => (list.stretch.start + row) * ROW);
    return lists.add(list);
  }

  /** Puts a list's pipelines and groups into flat arrays; again when the block has grown. */
  function resolve(list) {
    list.made = list.pipelines.map((pipeline) => {
      if (pipeline.error) throw pipeline.error;
      pipeline.made ??= gpu.createComputePipeline(pipeline.descriptor); // it is still being compiled
      return pipeline.made;
    });
    list.bound = list.groups.map((group) => {
      if (group.generation !== block.generation) bind(group);
      return group.made;
    });
    list.generation = block.generation;
  }

  function encodePass(encoder, { made, bound, grid, offsets }) {
    const pass = encoder.beginComputePass();
    const count = made.length;
    let last = null;
    for (let row = 0, axis = 0; row < count; row += 1, axis += 3) {
      const pipeline = made[row];
      if (pipeline !== last) pass.setPipeline(pipeline);
      last = pipeline;
      pass.setBindGroup(0, bound[row], offsets, row, 1);
      pass.dispatchWorkgroups(grid[axis], grid[axis + 1], grid[axis + 2]);
    }
    pass.end();
  }

  function encodeCopies(encoder, copies) {
    for (let at = 0; at < copies.length; at += 5) {
      const [source, target] = [buffers.get(copies[at]), buffers.get(copies[at + 2])];
      encoder.copyBufferToBuffer(source, copies[at + 1], target, copies[at + 3], copies[at + 4]);
    }
  }

  function run(handle, params = null, copies = null) {
    errors.alive();
    const list = lists.get(handle);
    if (list.generation !== block.generation) resolve(list);
    if (params !== null) queue.writeBuffer(block.buffer, list.stretch.start * ROW, params);
    const encoder = gpu.createCommandEncoder();
    if (list.made.length > 0) encodePass(encoder, list);
    if (copies !== null) encodeCopies(encoder, copies);
    queue.submit([encoder.finish()]);
  }

  /** A buffer for `collect`; copies of a run may go to it. */
  function stage(bytes) {
    const length = Math.max(4096, 2 ** Math.ceil(Math.log2(bytes)));
    const free = staging.get(length);
    return free?.length > 0 ? free.pop() : createBuffer(length, USAGE.mapRead | USAGE.copyTarget);
  }

  /** The first bytes of a staging buffer, which goes back to where it came from. */
  async function collect(handle, bytes) {
    const buffer = buffers.get(handle);
    try {
      await errors.settle(buffer.mapAsync(1, 0, Math.max(4, Math.ceil(bytes / 4) * 4)));
    } catch (error) {
      releaseBuffer(handle);
      throw error;
    }
    const copy = new Uint8Array(buffer.getMappedRange(0, Math.max(4, Math.ceil(bytes / 4) * 4))).slice(0, bytes);
    buffer.unmap();
    if (buffer.size > 16 * MEBI) releaseBuffer(handle);
    else staging.set(buffer.size, [...(staging.get(buffer.size) ?? []), handle]);
    return copy;
  }

  async function read(handle, offset, bytes) {
    errors.alive();
    const [source, start] = [buffers.get(handle), offset - (offset % 4)];
    const staged = stage(offset - start + bytes);
    const encoder = gpu.createCommandEncoder();
    encoder.copyBufferToBuffer(source, start, buffers.get(staged), 0, Math.ceil((offset - start + bytes) / 4) * 4);
    queue.submit([encoder.finish()]);
    return (await collect(staged, offset - start + bytes)).slice(offset - start);
  }

  function close() {
    errors.state.closed = true;
    errors.state.lost ??= "This device was closed.";
    gpu.destroy();
  }

  return {
    gpu,
    info,
    get lost() {
      return errors.state.lost;
    },
    get bytes() {
      return held;
    },
    createBuffer,
    releaseBuffer,
    write,
    clear,
    createPipeline,
    ready,
    releasePipeline,
    createGroup,
    releaseGroup: (handle) => void groups.take(handle),
    prepare,
    releasePrepared: (handle) => block.release(lists.take(handle).stretch),
    run,
    stage,
    collect,
    read,
    done: () => errors.settle(queue.onSubmittedWorkDone()),
    close,
  };
}

export { RunnerError, openDevice };
