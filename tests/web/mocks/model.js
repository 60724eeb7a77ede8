// A model for the tests of pages: functions in plain JavaScript under the names that exports have.
// The address says what goes wrong (?fail=lost); `mock` is for the tests to look at and to set.
const ANSWER = "Here is some code:\n```python\nprint(1 < 2)\n```\nThat is <b>all</b> there is.";
const STOP = 2;
const asked = new URLSearchParams(location.search);
const mock = { calls: [], delay: 0, opened: 0, fail: asked.get("fail"), lose: null, hold: null, release: null };
if (asked.has("hold")) mock.hold = new Promise((go) => (mock.release = go));
globalThis.mock = mock;

const failure = (code) => Object.assign(new Error(`the mock says ${code}`), { code, details: "its own words" });
const pause = () => new Promise((go) => setTimeout(go, mock.delay));
const tensor = (data, shape, dtype = "float32") => ({ data, shape, dtype });

let said = 0;

function step({ token }) {
  if (token === 3) said = 0;
  const next = said < ANSWER.length ? ANSWER.charCodeAt(said) : STOP;
  said += 1;
  return { token: tensor(Int32Array.of(next), [], "int32") };
}

// Counts of letters: texts with the same words have the same direction.
function embed({ ids, lengths }) {
  const width = 128;
  const length = ids.length / lengths.length;
  const output = new Float32Array(lengths.length * width);
  lengths.forEach((count, row) => {
    for (let place = 0; place < count; place += 1) output[row * width + (ids[row * length + place] % width)] += 1;
  });
  return { output: tensor(output, [lengths.length, width]) };
}

function classify({ x }) {
  const mean = x.reduce((sum, each) => sum + each, 0) / x.length;
  return { output: tensor(Float32Array.from({ length: 10 }, (_, place) => mean * 8 - Math.abs(place - 3)), [1, 10]) };
}

function pictures(count) {
  return { pictures: tensor(Float32Array.from({ length: 16 * count }, (_, at) => (at % 3) - 1), [count, 1, 4, 4]) };
}

const FUNCTIONS = {
  show_1_4_4: () => pictures(1),
  show_3_4_4: () => pictures(3),
  greedy: step,
  sample: step,
  embed_16: embed,
  embed_64: embed,
  query_64: embed,
  run: classify,
  scale: ({ x, rate }) => ({ output: tensor(Float32Array.from(x, (each) => each * rate), [2, 3]) }),
  large: ({ x }) => ({ output: tensor(Float32Array.from(x, Math.sin), [100, 100]) }),
};

async function open({ onProgress, onLost }) {
  mock.opened += 1;
  if (mock.fail && mock.fail !== "run") throw failure(mock.fail);
  for (const loaded of [0, 84e6, 270e6]) {
    onProgress({ stage: "weights", loaded, total: 270e6 });
    if (loaded === 84e6) await mock.hold;
  }
  onProgress({ stage: "compile", loaded: 40, total: 40 });
  let lost = false;
  mock.lose = () => {
    lost = true;
    onLost(failure("lost"));
  };
  const run = async (inputs, name = "run") => {
    mock.calls.push([name, inputs]);
    await pause();
    if (lost || mock.fail === "run") throw failure(lost ? "lost" : "input");
    return FUNCTIONS[name](inputs);
  };
  onProgress({ stage: "ready", loaded: 1, total: 1 });
  const device = { name: "SwiftShader", software: true };
  const info = { device, variant: "software, subgroups of 4", bytes: 270e6 };
  const submit = (name, inputs) => void mock.calls.push([name, inputs]);
  return { run, info, submit, device: { done: pause }, reset() {}, close() {} };
}

export { open };
