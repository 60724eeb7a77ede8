// Python in the page or worker that loads this, for tests: a program in, and what it calls `result` out.
//
// `run` gives that value as JSON text, or rejects with the traceback. A worker answers [number, text] with
// [number, { value }] or [number, { error }].
import { loadPyodide } from "./files/pyodide.mjs";

const beside = (name) => new URL(name, import.meta.url).href;
let opened = null;

async function open() {
  const python = await loadPyodide({ indexURL: beside("./files/") });
  const { wheel } = await (await fetch(beside("./files/files.json"))).json();
  await python.loadPackage(beside(`./files/${wheel}`), { messageCallback: () => {} });
  return python;
}

async function run(text) {
  opened ??= open();
  const python = await opened;
  const globals = python.toPy({ __name__: "__main__" });
  await python.runPythonAsync(text, { globals });
  return python.runPython("import json; json.dumps(result)", { globals });
}

if (typeof WorkerGlobalScope !== "undefined") {
  globalThis.onmessage = async ({ data: [number, text] }) => {
    const answer = await run(text).then((value) => ({ value }), (error) => ({ error: String(error) }));
    globalThis.postMessage([number, answer]);
  };
}

export { run };
