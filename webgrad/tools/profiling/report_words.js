"use strict";
// What the other parts share: the data, colours, numbers as words, and elements. Texts of users become text
// nodes, never markup.

const data = JSON.parse(document.getElementById("data").textContent);
const kernels = data.kernels;
const stages = data.stages;
const PALETTE = [
  "#4c78a8",
  "#f58518",
  "#54a24b",
  "#b279a2",
  "#e45756",
  "#72b7b2",
  "#d8b021",
  "#9d755d",
  "#d67195",
  "#7a8fd6",
  "#2f9487",
  "#a7b83c",
  "#8c5fb0",
  "#c9793f",
];
const selected = { kernel: -1 };
const theme = {};

function byId(id) {
  return document.getElementById(id);
}

function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) made.setAttribute(name, value);
  made.append(...children.filter((child) => child !== null));
  return made;
}

// Canvases know nothing of the page's variables: their values are read anew for each drawing.
function readTheme() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["card", "quiet", "grid", "faded", "rest", "accent"]) {
    theme["var(--" + name + ")"] = style.getPropertyValue("--" + name).trim();
  }
}

function paint(colour) {
  return theme[colour] || colour;
}

// The first kernels have a colour each, the others one in common; stages begin elsewhere in the palette.
const COLOURS = [...PALETTE, "var(--rest)", "var(--faded)"];
const REST = PALETTE.length;
const FADED = REST + 1;

function kernelShade(index) {
  return index >= 0 && index < REST ? index : REST;
}

// Waiting is grey: what it waits for has the colours.
function stageShade(index) {
  return stages[index] && stages[index].name !== "wait" ? (index + 5) % REST : REST;
}

function kernelColour(index) {
  return COLOURS[kernelShade(index)];
}

function stageColour(index) {
  return COLOURS[stageShade(index)];
}

// Black or white, whichever reads better on a colour such as #4c78a8.
function inkOn(colour) {
  const [red, green, blue] = [1, 3, 5].map((place) => (parseInt(colour.slice(place, place + 2), 16) / 255) ** 2.2);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000000" : "#ffffff";
}

// Styles by property: the attribute would be one more thing that a text could break out of.
function coloured(made, colour, width) {
  made.style.background = colour;
  if (width !== undefined) made.style.width = Math.min(100, Math.max(0, 100 * width)) + "%";
  return made;
}

function digits(value) {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  return value.toLocaleString("en", { maximumFractionDigits: size >= 100 ? 0 : size >= 10 ? 1 : 2 });
}

function scaled(value, units, step) {
  if (!Number.isFinite(value)) return "–";
  let place = 0;
  while (place < units.length - 1 && Math.abs(value) >= step * 0.9995) {
    value /= step;
    place += 1;
  }
  return digits(value) + " " + units[place];
}

function bytesText(bytes) {
  return scaled(bytes, ["B", "kB", "MB", "GB", "TB"], 1000);
}

function microsecondsText(microseconds) {
  if (microseconds === 0) return "0";
  if (Math.abs(microseconds) < 0.9995) return digits(microseconds * 1000) + " ns";
  return scaled(microseconds, ["µs", "ms", "s"], 1000);
}

// A moment with the digits that tell it from others this far apart.
function momentText(microseconds, apart) {
  const [unit, name] = microseconds >= 1e6 ? [1e6, "s"] : microseconds >= 1000 ? [1000, "ms"] : [1, "µs"];
  const places = Math.min(6, Math.max(0, Math.ceil(-Math.log10(apart / unit) - 1e-9)));
  return microseconds < apart / 2 ? "0" : (microseconds / unit).toFixed(places) + " " + name;
}

function secondsText(seconds) {
  return microsecondsText(seconds * 1e6);
}

function percentText(share) {
  if (!Number.isFinite(share)) return "–";
  const percent = 100 * share;
  return (percent > 0 && percent < 0.1 ? "<0.1" : percent.toFixed(percent < 9.95 ? 1 : 0)) + " %";
}

function sum(numbers) {
  return numbers.reduce((total, each) => total + (each || 0), 0);
}

function plural(count, word, more) {
  return count.toLocaleString("en") + " " + (count === 1 ? word : more || word + "s");
}
