// Text from an exported language model: ids in, the next ids out, one step at a time.
// What the model's caches hold is remembered, so that a text which begins like the last one is only read from
// where it differs. Facts are those of page.json: context, room (positions of the caches), chunks (how many
// tokens the read functions take, largest first), stopIds, functions (names), sampling (what `sample` takes),
// and ahead: how many steps may be under way at once, 1 unless a step keeps its token as state and goes on
// from it where it is given the token -1.

const FOLLOWING = -1;
const HELD = new WeakMap(); // model → the ids whose keys and values its caches have

function commonLength(held, ids) {
  let count = 0;
  while (count < held.length && count < ids.length && held[count] === ids[count]) count += 1;
  return count;
}

const CHUNK_COST = 16; // tokens that could be read in the time that one more chunk takes

// The chunks in which so many tokens are read, the last one filled up: of all ways to go on with the largest
// that fits or to fill one up, the cheapest. As in models/decoder.py; no more tokens than the largest chunk.
function chunkSizes(sizes, count) {
  const room = sizes.filter((size) => size >= count).at(-1);
  const fitting = sizes.find((size) => size < count);
  if (fitting === undefined) return count > 0 ? [room] : [];
  const several = [fitting, ...chunkSizes(sizes, count - fitting)];
  const cost = several.reduce((total, size) => total + size + CHUNK_COST, 0);
  return room + CHUNK_COST <= cost ? [room] : several;
}

// The next chunk of those that do not reach beyond the caches; 0 where none fits.
function chunkSize(facts, position, left) {
  const sizes = facts.chunks.filter((size) => position + size <= (facts.room ?? facts.context));
  return sizes.length ? chunkSizes(sizes, Math.min(left, sizes[0]))[0] : 0;
}

function filled(ids, size) {
  const whole = new Int32Array(size).fill(ids.at(-1));
  whole.set(ids);
  return whole;
}

function readPart(model, facts, ids, position) {
  const size = chunkSize(facts, position, ids.length - position);
  if (size === 0) {
    model.submit(facts.functions.greedy, { token: ids[position], position });
    return 1;
  }
  const part = ids.slice(position, position + size);
  model.submit(facts.functions.read.replace("{size}", size), { ids: filled(part, size), position });
  return part.length;
}

// See to it that the caches hold these ids; the list of what they hold, which is another one at each call, so
// that whoever had the last one sees that it is no longer his.
async function readIds(model, facts, ids, report, signal) {
  const before = HELD.get(model) ?? [];
  const held = ids.slice(0, commonLength(before, ids));
  HELD.set(model, held);
  report.cachedTokens = Math.min(report.cachedTokens ?? Infinity, held.length);
  let parts = 0;
  while (held.length < ids.length && !signal?.aborted) {
    // One part is submitted while the one before it runs, so that there is time to stop.
    const running = parts > 0 ? model.device.done() : null;
    running?.catch(() => {}); // told below, unless the next part is refused before
    const count = readPart(model, facts, ids, held.length);
    await running;
    parts += 1;
    held.push(...ids.slice(held.length, held.length + count));
    report.onRead?.(held.length, ids.length);
  }
  return held;
}

// The numbers that `sample` takes: those of page.json, with the caller's in their place.
function samplingNumbers(facts, options) {
  const names = Object.keys(facts.sampling ?? {});
  return Object.fromEntries(names.map((name) => [name, options.sampling?.[name] ?? facts.sampling[name]]));
}

async function nextToken(model, facts, token, position, options) {
  const { greedy, sample } = facts.functions;
  const outputs =
    options.greedy || !sample
      ? await model.run({ token, position }, greedy)
      : await model.run({ token, position, ...samplingNumbers(facts, options) }, sample);
  return Number(Object.values(outputs)[0].data[0]);
}

// Submit steps until as many are under way as the facts allow: each but the first goes on from its own
// predecessor's token, which the host has not seen yet.
function keepGoing(flight, model, facts, text, most, options) {
  while (flight.length < Math.min(facts.ahead ?? 1, most, facts.context + 1 - text.length)) {
    const token = flight.length > 0 ? FOLLOWING : text.at(-1);
    const step = nextToken(model, facts, token, text.length - 1 + flight.length, options);
    step.catch(() => {}); // told where it is awaited, if ever
    flight.push(step);
  }
}

// The ids after a text, as they are made; one that ends answers is the last, and is given too.
// options: greedy, sampling { temperature, top_p, … }, mostTokens, signal (an AbortSignal), report (an object
// that is kept up to date: promptTokens, cachedTokens, tokens, readSeconds, writeSeconds, stoppedBy).
async function* generate(model, facts, ids, options = {}) {
  const { mostTokens = Infinity, signal, report = {} } = options;
  const text = [...ids];
  const times = { start: performance.now(), first: 0 };
  Object.assign(report, {
    promptTokens: text.length,
    tokens: 0,
    readSeconds: 0,
    writeSeconds: 0,
    stoppedBy: "",
  });
  const flight = []; // steps under way, oldest first
  let held = null;
  while (report.tokens < mostTokens && !report.stoppedBy) {
    if (text.length > facts.context) report.stoppedBy = "context";
    else if (held === null || HELD.get(model) !== held) {
      flight.length = 0;
      held = await readIds(model, facts, text.slice(0, -1), report, signal);
    }
    if (signal?.aborted) report.stoppedBy = "user";
    if (report.stoppedBy) return;
    keepGoing(flight, model, facts, text, mostTokens - report.tokens, options);
    const token = await flight.shift();
    held.push(text.at(-1));
    text.push(token);
    report.tokens += 1;
    const now = performance.now();
    if (report.tokens === 1) times.first = now;
    report.readSeconds = (times.first - times.start) / 1000;
    report.writeSeconds = (now - times.first) / 1000;
    if (facts.stopIds.includes(token)) report.stoppedBy = "end";
    yield token;
  }
  report.stoppedBy ||= "length";
}

// Tokens made in a second, after the first.
function speedOf(report) {
  return report.tokens > 1 ? (report.tokens - 1) / Math.max(report.writeSeconds, 1e-9) : 0;
}

export { generate, speedOf };
