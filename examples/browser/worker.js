// Python in a worker: so that a program that computes does not hold up the page.
//
// In: { run: text } from the page, once it was told { ready }. Out: { stage }, { output }, { done, problem }.
// The page may stop a program through `interrupt`, memory that both see, or end this worker.
import { loadPyodide } from "./files/pyodide.mjs";

const beside = (name) => new URL(name, import.meta.url).href;
const tell = (message) => globalThis.postMessage(message);
let cell;

async function open(interrupt) {
  tell({ stage: "Python starts" });
  const python = await loadPyodide({ indexURL: beside("./files/") });
  if (interrupt) {
    python.setInterruptBuffer(interrupt);
  }
  const line = { batched: (text) => tell({ output: `${text}\n` }) };
  python.setStdout(line);
  python.setStderr(line);
  tell({ stage: "webgrad is installed" });
  const { wheel } = await (await fetch(beside("./files/files.json"))).json();
  await python.loadPackage(beside(`./files/${wheel}`), { messageCallback: () => {} });
  python.FS.writeFile("cell.py", await (await fetch(beside("./cell.py"))).text());
  cell = python.pyimport("cell");
  tell({ stage: "the GPU is opened" });
  await python.runPythonAsync("import webgrad; await webgrad.open_device_async()");
  const [device, version] = cell.device_line();
  tell({ ready: { device, version } });
}

async function run(text) {
  const found = await cell.run_cell(text);
  tell({ done: true, problem: found ? found.toJs() : null });
  found?.destroy();
}

globalThis.onmessage = async ({ data }) => {
  try {
    await ("run" in data ? run(data.run) : open(data.interrupt));
  } catch (error) {
    tell({ failed: String(error.message ?? error) });
  }
};
