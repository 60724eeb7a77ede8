// Elements and words that every page uses. Texts of users and of models become text nodes, never markup.

function byId(id) {
  return document.getElementById(id);
}

// An element with attributes ("on…" are listeners, false and null leave one out) and children.
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

// Calls at most once per pause: the last one counts.
function debounced(milliseconds, action) {
  let timer = 0;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...values), milliseconds);
  };
}

const UNITS = ["B", "kB", "MB", "GB"];

function unitOf(bytes) {
  let place = 0;
  while (place < UNITS.length - 1 && bytes >= 999.5 * 1000 ** place) place += 1;
  return place;
}

function inUnit(bytes, place) {
  const value = bytes / 1000 ** place;
  return value.toLocaleString("en", { maximumFractionDigits: place > 0 && value < 9.95 ? 1 : 0 });
}

function bytesText(bytes) {
  return `${inUnit(bytes, unitOf(bytes))} ${UNITS[unitOf(bytes)]}`;
}

// "84 of 270 MB"
function bytesOfText(loaded, total) {
  const place = unitOf(total);
  return `${inUnit(loaded, place)} of ${inUnit(total, place)} ${UNITS[place]}`;
}

function countText(count, word, more = `${word}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? word : more}`;
}

// A number as short as it can be told.
function numberText(value) {
  if (!Number.isFinite(value)) return String(value);
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6) && !Number.isInteger(value)) return value.toExponential(2);
  return value.toLocaleString("en", { maximumFractionDigits: size >= 100 ? 1 : 4 });
}

function timeText(milliseconds) {
  if (milliseconds >= 1000) return `${(milliseconds / 1000).toFixed(milliseconds >= 10000 ? 1 : 2)} s`;
  return `${milliseconds.toFixed(milliseconds >= 10 ? 0 : 1)} ms`;
}

// Puts a text on the clipboard and says so on the button for a moment.
async function copyFrom(button, text) {
  const label = button.textContent;
  let told = "Copied";
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    told = "Not allowed here";
  }
  button.textContent = told;
  setTimeout(() => {
    button.textContent = label;
  }, 1500);
}

export { byId, element, debounced, bytesText, bytesOfText, countText, numberText, timeText, copyFrom };
