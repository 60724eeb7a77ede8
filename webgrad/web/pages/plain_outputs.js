// Outputs of a function as elements: a table where they are small, else a picture of their values.
import { copyFrom, element, numberText } from "./page_elements.js";
import { shapeText } from "./values.js";

const MOST_CELLS = 144;
const MOST_COLUMNS = 12;
const STRIP = 256; // values in a row of the picture where the tensor has no rows of its own

function rowsAndColumns(shape) {
  const columns = shape.at(-1) ?? 1;
  const count = shape.reduce((product, each) => product * each, 1);
  return [columns > 0 ? count / columns : 0, columns];
}

// Smallest, largest and mean of what is finite, and how much is not.
function statistics(data) {
  let [least, most, sum, count] = [Infinity, -Infinity, 0, 0];
  for (const each of data) {
    const value = Number(each);
    if (!Number.isFinite(value)) continue;
    least = Math.min(least, value);
    most = Math.max(most, value);
    sum += value;
    count += 1;
  }
  return { least, most, mean: sum / count, strange: data.length - count };
}

function valueTable({ data, shape }) {
  const [rows, columns] = rowsAndColumns(shape);
  const heads = Array.from({ length: columns }, (_, column) =>
    element("th", { scope: "col" }, String(column)),
  );
  const body = Array.from({ length: rows }, (_, row) => {
    const cells = Array.from({ length: columns }, (_, column) =>
      element("td", {}, numberText(Number(data[row * columns + column]))),
    );
    return element("tr", {}, rows > 1 ? element("th", { scope: "row" }, String(row)) : null, ...cells);
  });
  const head = element("tr", {}, rows > 1 ? element("th") : null, ...heads);
  const heading = shape.length ? element("thead", {}, head) : null;
  const table = element("table", {}, heading, element("tbody", {}, ...body));
  return element("div", { class: "scroll", tabindex: "0" }, table);
}

// Blue below the middle, orange above, white between: the same in both themes.
function colourOf(share) {
  const strength = Math.abs(2 * share - 1);
  const end = share < 0.5 ? [31, 95, 191] : [214, 110, 20];
  return end.map((each) => 250 + (each - 250) * strength);
}

function valuePicture({ data, shape }, { least, most }) {
  let [rows, columns] = rowsAndColumns(shape);
  if (rows === 1) [rows, columns] = [Math.ceil(columns / STRIP), Math.min(columns, STRIP)];
  const [high, wide] = [Math.min(rows, 512), Math.min(columns, 2048)];
  const canvas = element("canvas", {
    width: wide,
    height: high,
    role: "img",
    "aria-label": "Values as colours",
  });
  const picture = new ImageData(wide, high);
  const shareOf = (value) => (most > least ? (value - least) / (most - least) : 0.5);
  for (let y = 0; y < high; y += 1) {
    for (let x = 0; x < wide; x += 1) {
      const place = Math.floor((y * rows) / high) * columns + Math.floor((x * columns) / wide);
      const value = Number(data[place]);
      const shade = Number.isFinite(value) ? colourOf(shareOf(value)) : [0, 0, 0];
      picture.data.set([...shade, place < data.length ? 255 : 0], 4 * (y * wide + x));
    }
  }
  canvas.getContext("2d").putImageData(picture, 0, 0);
  canvas.style.height = `${Math.max(16, Math.min(360, (canvas.height * 560) / canvas.width))}px`;
  return canvas;
}

function factList(told) {
  return element(
    "dl",
    {},
    ...told.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))),
  );
}

function resultElement(name, output) {
  const numbers = statistics(output.data);
  const told = [
    ["shape", shapeText(output.shape)],
    ["dtype", output.dtype],
  ];
  if (output.data.length > 1 && numbers.strange < output.data.length) {
    told.push(["least", numberText(numbers.least)], ["most", numberText(numbers.most)]);
    told.push(["mean", numberText(numbers.mean)]);
  }
  if (numbers.strange) told.push(["not finite", String(numbers.strange)]);
  const [rows, columns] = rowsAndColumns(output.shape);
  const small = rows * columns <= MOST_CELLS && columns <= MOST_COLUMNS;
  const copy = element("button", { type: "button", class: "plain" }, "Copy as JSON");
  copy.addEventListener("click", () => copyFrom(copy, JSON.stringify(Array.from(output.data, Number))));
  return element(
    "article",
    { class: "result" },
    element("div", { class: "row apart" }, element("h3", { class: "mono" }, name), copy),
    factList(told),
    output.data.length === 0 ? null : small ? valueTable(output) : valuePicture(output, numbers),
  );
}

export { resultElement };
