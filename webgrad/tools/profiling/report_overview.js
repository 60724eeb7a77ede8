// The top of the page, the bars, and the table of kernels.

const FIRST_ROWS = 200;
const FIRST_BARS = 6;
const LEAST_SHARE = 0.001;
const table = { key: "seconds", descending: true, filter: "", all: false };
const wall = data.seconds || 0;

function rate(amount, kernel) {
  return kernel.seconds > 0 && amount > 0 ? amount / kernel.seconds / 1e9 : NaN;
}

const COLUMNS = [
  { key: "name", label: "Kernel", text: true, value: (kernel) => kernel.name },
  { key: "count", label: "Count", value: (kernel) => kernel.count, show: (value) => value.toLocaleString("en") },
  { key: "seconds", label: "Total", value: (kernel) => kernel.seconds, show: secondsText },
  { key: "share", label: "Share", value: (kernel) => kernel.share, show: percentText },
  { key: "mean", label: "Mean", value: (kernel) => kernel.seconds / kernel.count, show: secondsText },
  { key: "reach", label: "GB/s", value: (kernel) => rate(kernel.bytes, kernel), show: digits },
  { key: "work", label: "GFLOP/s", value: (kernel) => rate(kernel.flops, kernel), show: digits },
  { key: "line", label: "Line", text: true, value: (kernel) => kernel.line || "" },
];

function showFacts() {
  const parts = [
    data.device,
    data.adapter,
    data.version && "webgrad " + data.version,
    data.python && "Python " + data.python,
    data.started.replace("T", " "),
  ];
  byId("facts").textContent = parts.filter(Boolean).join(" · ");
  const notes = byId("notes");
  notes.append(...data.notes.map((note) => element("li", {}, note)));
  notes.hidden = data.notes.length === 0;
}

function tile(name, value, more) {
  const shown = element("dd", {}, value, more ? element("small", {}, more) : null);
  return element("div", {}, element("dt", {}, name), shown);
}

function peaks() {
  const found = Object.entries(data.memory)
    .filter(([, points]) => points.length)
    .map(([name, points]) => [points.reduce((most, point) => Math.max(most, point[1]), 0), name]);
  const ofDevices = found.filter(([, name]) => name !== "process");
  return (ofDevices.length ? ofDevices : found).sort((left, right) => right[0] - left[0]);
}

function showTiles() {
  const launches = sum(kernels.map((kernel) => kernel.count));
  const flushes = data.flushes.length;
  const inKernels = sum(kernels.map((kernel) => kernel.seconds));
  const how = data.timing === "timestamps" ? "GPU timestamps" : "the clock, launch by launch";
  byId("tiles").append(
    tile("Total time", secondsText(wall), data.explained === null ? "" : percentText(data.explained) + " explained"),
    tile("In kernels", secondsText(inKernels), "by " + how),
    tile("Launches", launches.toLocaleString("en"), plural(kernels.length, "kernel")),
  );
  if (flushes) {
    const each = digits(launches / flushes) + " launches each";
    byId("tiles").append(tile("Submissions", flushes.toLocaleString("en"), each));
  }
  const [most] = peaks();
  if (!most) return;
  const where = most[1] === "process" ? "of the process" : "live on " + most[1];
  byId("tiles").append(tile("Peak memory", bytesText(most[0]), where));
}

function bar(label, seconds, colour, detail) {
  const share = wall > 0 ? seconds / wall : NaN;
  const more = detail ? element("span", { class: "quiet" }, "  " + detail) : null;
  const words = element("span", {}, element("b", {}, label), more);
  return element(
    "li",
    { title: detail || label },
    element("span", { class: "what" }, coloured(element("span", { class: "swatch" }), colour), words),
    element("span", { class: "quiet" }, secondsText(seconds)),
    element("span", { class: "share" }, percentText(share)),
    element("span", { class: "track" }, coloured(element("i"), colour, share)),
  );
}

function showBars(prefix, rows) {
  byId(prefix + "-bars").append(...rows.map((row) => bar(row.label, row.seconds, row.colour, row.detail)));
  const whole = Math.max(wall, sum(rows.map((row) => row.seconds))) || 1;
  byId(prefix + "-stack").append(...rows.map((row) => coloured(element("i"), row.colour, row.seconds / whole)));
}

// The stages that took time; those too short for a bar share one.
function hostBars() {
  const all = stages.map((stage, index) => ({
    label: stage.name,
    seconds: stage.seconds,
    colour: stageColour(index),
    detail: stage.what,
  }));
  const bars = all.filter((row) => row.seconds >= LEAST_SHARE * wall && row.seconds > 0);
  bars.sort((left, right) => right.seconds - left.seconds);
  const short = all.filter((row) => row.seconds > 0 && row.seconds < LEAST_SHARE * wall);
  const unknown = wall - sum(all.map((row) => row.seconds));
  if (short.length) {
    bars.push({
      label: plural(short.length, "short stage"),
      seconds: sum(short.map((row) => row.seconds)),
      colour: "var(--rest)",
      detail: short.map((row) => row.label).join(", "),
    });
  }
  if (unknown > LEAST_SHARE * wall) {
    bars.push({ label: "not explained", seconds: unknown, colour: "var(--faded)", detail: "" });
  }
  return bars;
}

function kernelBars() {
  const bars = kernels.slice(0, FIRST_BARS).map((kernel, index) => ({
    label: kernel.name,
    seconds: kernel.seconds,
    colour: kernelColour(index),
    detail: kernel.line,
  }));
  const others = kernels.slice(FIRST_BARS);
  if (others.length) {
    bars.push({
      label: plural(others.length, "other"),
      seconds: sum(others.map((kernel) => kernel.seconds)),
      colour: "var(--rest)",
      detail: "",
    });
  }
  return bars;
}

function showWhere() {
  showBars("host", hostBars());
  byId("host-total").textContent = "of " + secondsText(wall);
  showBars("kernel", kernelBars());
  const seconds = secondsText(sum(kernels.map((kernel) => kernel.seconds)));
  const beside = kernels.every((kernel) => kernel.device === "cpu") ? "" : ", beside the host, which waits for them";
  byId("kernel-total").textContent = kernels.length ? seconds + beside : "none ran";
}

function matches(kernel, words) {
  const text = [kernel.name, kernel.device, kernel.line, ...(kernel.ops || [])].join(" ").toLowerCase();
  return words.every((word) => text.includes(word));
}

function compare(left, right) {
  if (typeof left === "string") return left.localeCompare(right);
  return (Number.isFinite(left) ? left : -1) - (Number.isFinite(right) ? right : -1);
}

function chosenKernels() {
  const words = table.filter.toLowerCase().split(/\s+/).filter(Boolean);
  const value = COLUMNS.find((column) => column.key === table.key).value;
  const chosen = kernels.map((kernel, index) => index).filter((index) => matches(kernels[index], words));
  const sign = table.descending ? -1 : 1;
  return chosen.sort((left, right) => sign * compare(value(kernels[left]), value(kernels[right])));
}

function nameCell(kernel, index) {
  const button = element(
    "button",
    { type: "button", class: "name", title: (kernel.ops || []).join(" → ") },
    coloured(element("span", { class: "swatch" }), kernelColour(index)),
    kernel.name,
  );
  const picked = selected.kernel === index;
  button.setAttribute("aria-pressed", picked);
  button.addEventListener("click", () => selectKernel(selected.kernel === index ? -1 : index));
  const devices = new Set(kernels.map((each) => each.device));
  return element(
    "td",
    { class: "text kernel", "data-label": "Kernel" },
    button,
    devices.size > 1 ? element("div", { class: "device" }, kernel.device) : null,
    picked && kernel.ops && kernel.ops.length ? element("div", { class: "ops" }, kernel.ops.join(" → ")) : null,
  );
}

function cell(column, kernel, index) {
  if (column.key === "name") return nameCell(kernel, index);
  const shown = column.show ? column.show(column.value(kernel)) : column.value(kernel);
  const made = element("td", { "data-label": column.label, class: column.text ? "text place" : "" });
  if (column.key === "share") {
    const filled = coloured(element("i"), kernelColour(index), kernel.share);
    made.append(element("span", { class: "meter" }, filled), element("span", { class: "percent" }, shown));
  } else made.append(shown);
  return made;
}

function showTable() {
  const chosen = chosenKernels();
  const shown = table.all ? chosen : chosen.slice(0, FIRST_ROWS);
  byId("heads").replaceChildren(...COLUMNS.map(head));
  byId("rows").replaceChildren(
    ...shown.map((index) => {
      const row = element("tr", { "data-kernel": index, class: selected.kernel === index ? "picked" : "" });
      row.append(...COLUMNS.map((column) => cell(column, kernels[index], index)));
      return row;
    }),
  );
  const part = shown.length < kernels.length ? shown.length + " of " : "";
  byId("counted").textContent = part + plural(kernels.length, "kernel");
  byId("more").hidden = shown.length === chosen.length;
}

function head(column) {
  const button = element("button", { type: "button" }, column.label);
  button.addEventListener("click", () => {
    table.descending = table.key === column.key ? !table.descending : !column.text;
    table.key = column.key;
    showTable();
    [...byId("heads").children][COLUMNS.indexOf(column)].firstChild.focus();
  });
  const made = element("th", { scope: "col", class: column.text ? "text" : "" }, button);
  if (table.key === column.key) made.setAttribute("aria-sort", table.descending ? "descending" : "ascending");
  return made;
}

// Marks a kernel in the table and on the timeline; -1 marks none.
function selectKernel(index) {
  const focused = document.activeElement && document.activeElement.closest("tr[data-kernel]");
  selected.kernel = index;
  const chip = byId("selection");
  const kernel = kernels[index];
  chip.hidden = !kernel;
  if (kernel) {
    const figures = [plural(kernel.count, "launch", "launches"), secondsText(kernel.seconds), kernel.line];
    chip.firstChild.textContent = kernel.name + ": " + figures.filter(Boolean).join(", ");
  }
  showTable();
  if (focused) {
    const again = byId("rows").querySelector('tr[data-kernel="' + Number(focused.dataset.kernel) + '"] button');
    if (again) again.focus();
  }
  redraw();
}

function startTable() {
  byId("filter").addEventListener("input", (event) => {
    table.filter = event.target.value;
    showTable();
  });
  byId("more").addEventListener("click", () => {
    table.all = true;
    showTable();
  });
  byId("selection").lastElementChild.addEventListener("click", () => selectKernel(-1));
}
