// The files of an export by their names: embedded in the page where it is a single file, else beside it.
// An embedded file is base64 in one or several <script data-name> elements; once decoded it is kept as a
// Blob, which browsers may put on the disk, so that the model can be loaded again.

const kept = new Map();

function decodedText(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let place = 0; place < binary.length; place += 1) bytes[place] = binary.charCodeAt(place);
  return bytes;
}

async function decodedParts(parts, onBytes) {
  const decoded = [];
  let loaded = 0;
  for (const part of parts) {
    decoded.push(decodedText(part.textContent.trim()));
    part.remove();
    loaded += decoded.at(-1).length;
    onBytes?.(loaded);
    await new Promise((go) => setTimeout(go)); // the progress is drawn
  }
  return new Blob(decoded);
}

async function fetchedFile(name) {
  const answer = await fetch(new URL(name, document.baseURI));
  if (!answer.ok) {
    const error = new Error(`${name} could not be loaded: the server answered ${answer.status}`);
    error.code = "file";
    throw error;
  }
  return new Uint8Array(await answer.arrayBuffer());
}

function embeddedParts(name) {
  const all = document.querySelectorAll("script[data-name]");
  return [...all].filter((script) => script.dataset.name === name);
}

async function readFile(name, onBytes) {
  if (!kept.has(name)) {
    const parts = embeddedParts(name);
    if (!parts.length) return fetchedFile(name);
    kept.set(name, await decodedParts(parts, onBytes));
  }
  return new Uint8Array(await kept.get(name).arrayBuffer());
}

async function readJson(name) {
  return JSON.parse(new TextDecoder().decode(await readFile(name)));
}

export { readFile, readJson };
