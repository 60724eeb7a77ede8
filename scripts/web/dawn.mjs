// Runs a function of an ES module in node with WebGPU by Dawn, as a page would run it.
// In: the module's path and the function's name as arguments; its input, and Dawn's options, as JSON on stdin.
// Out: one line of JSON on stdout: {value}, or {error: {name, code, message, stack}}. What the module writes to
// the console goes to stderr. Typed arrays go both ways as {"$array": "Float32Array", "base64": "…"}.
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { fileURLToPath, pathToFileURL } from "node:url";
import { create, globals } from "webgpu";

const KINDS = Object.fromEntries(
  [
    Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array,
    Float32Array, Float64Array, BigInt64Array, BigUint64Array,
  ].map((kind) => [kind.name, kind]),
);

function packed(key, value) {
  if (!ArrayBuffer.isView(value)) return value;
  const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  return { $array: value.constructor.name, base64: bytes.toString("base64") };
}

function unpacked(key, value) {
  if (typeof value?.$array !== "string") return value;
  // Copied: a Buffer may begin anywhere in node's pool, typed arrays begin at multiples of their items.
  return new KINDS[value.$array](Uint8Array.from(Buffer.from(value.base64, "base64")).buffer);
}

// node's fetch has no file: addresses, which a bundle beside its module has here.
const fetchRemote = globalThis.fetch;
async function fetchAnything(source, options) {
  const url = new URL(source.url ?? source);
  if (url.protocol !== "file:") return fetchRemote(source, options);
  const path = fileURLToPath(new URL(url.pathname, url));
  const found = await stat(path).catch(() => null);
  if (!found?.isFile()) return new Response("", { status: 404, statusText: "Not Found" });
  const headers = { "content-length": String(found.size) };
  return new Response(Readable.toWeb(createReadStream(path)), { headers });
}

async function run(path, name, { input, options }) {
  Object.assign(globalThis, globals, { fetch: fetchAnything });
  // As in a page; node's own navigator, where there is one, cannot be written to.
  Object.defineProperty(globalThis, "navigator", { value: { gpu: create(options) }, configurable: true });
  const module = await import(pathToFileURL(path));
  if (typeof module[name] !== "function") throw new TypeError(`${path} exports no function ${name}`);
  return module[name](input);
}

for (const kind of ["log", "info", "debug"]) console[kind] = console.error;
const [path, name] = process.argv.slice(2);
const answer = {};
try {
  answer.value = await run(path, name, JSON.parse(await text(process.stdin), unpacked));
} catch (error) {
  const { name: kind, code, message, stack } = error instanceof Error ? error : new Error(String(error));
  answer.error = { name: kind, code, message, stack };
}
// Dawn keeps the event loop alive; end only once everything written has left.
process.stdout.write(JSON.stringify(answer, packed) + "\n", () => process.exit(0));
