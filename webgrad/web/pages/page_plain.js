// The page of any exported function: a form made from the plan, and what comes out of a run.
import { byId, bytesText, element, timeText } from "./page_elements.js";
import { startPage } from "./page_common.js";
import { readJson } from "./page_files.js";
import { pictureTools } from "./picture_input.js";
import { resultElement } from "./plain_outputs.js";
import { numberOfText, tensorOfFile, tensorOfText, textOfTensor } from "./values.js";
import { FILLS, filledTensor, shapeText, sizeOf } from "./values.js";

const MOST_WRITTEN = 4096; // numbers that a text area takes; more come from a fill or a file
const state = { page: null, functions: {}, pictures: {}, name: "", fields: new Map() };

// Fields: each is { node, read() → what the runner takes, or undefined for its own choice }

function numberField(name, { dtype, kind, default: initial, example }) {
  const hint = kind === "random" ? "drawn anew at each run" : "";
  const input = element("input", {
    inputmode: "decimal",
    autocomplete: "off",
    placeholder: hint,
    "data-input": name,
  });
  const first = kind === "random" ? "" : String(initial === undefined ? (example ?? 0) : rounded(initial));
  input.value = first;
  const isLeft = () => input.value.trim() === first;
  const read = () =>
    isOwn({ kind, default: initial }) && isLeft() ? undefined : numberOfText(name, dtype, input.value);
  return { node: element("label", { class: "field" }, title(name, dtype), input), read };
}

// 0.1 where Python had 0.09999999999999998, as 1 - 0.9 is.
function rounded(value) {
  return Number(value.toPrecision(7));
}

function title(name, ...told) {
  const words = element("span", { class: "quiet mono" }, told.join(" · "));
  return element("span", { class: "row apart" }, element("span", { class: "name mono" }, name), words);
}

function fillButtons(use) {
  return Object.keys(FILLS).map((fill) =>
    element("button", { type: "button", class: "plain", onclick: () => use(fill) }, fill),
  );
}

function filePick(name, described, use) {
  const id = `file-${name}`;
  const pick = element("input", { type: "file", id, accept: ".npy,.bin,.raw" });
  pick.addEventListener("change", async () => {
    if (!pick.files.length) return;
    try {
      use(
        tensorOfFile(name, described, new Uint8Array(await pick.files[0].arrayBuffer())),
        pick.files[0].name,
      );
      showMistake("");
    } catch (error) {
      showMistake(error.message);
    }
    pick.value = "";
  });
  return [pick, element("label", { class: "button", for: id }, "File …")];
}

// Of an input that may be a picture.
function picturePick(name, use) {
  const facts = state.pictures[name];
  if (!facts) return [];
  const take = (numbers, from) => {
    use(numbers, from);
    showMistake("");
    run();
  };
  return pictureTools(name, facts, take, showMistake);
}

// Small tensors are written; of large ones only where they come from is shown.
function tensorField(name, described) {
  const written = sizeOf(described.shape) <= MOST_WRITTEN;
  let numbers = filledTensor(described, "Zeros");
  const area = written
    ? element("textarea", {
        class: "mono",
        spellcheck: "false",
        rows: "3",
        "aria-label": name,
        "data-input": name,
      })
    : element("p", { class: "quiet", "data-input": name });
  const use = (given, from) => {
    numbers = given;
    if (written) area.value = textOfTensor(described, given);
    else area.textContent = `${from}: ${sizeOf(described.shape).toLocaleString("en")} numbers`;
  };
  use(numbers, "Zeros");
  const tools = element(
    "div",
    { class: "row tools" },
    ...fillButtons((fill) => use(filledTensor(described, fill), fill)),
    ...filePick(name, described, use),
    ...picturePick(name, use),
  );
  const head = title(name, shapeText(described.shape), described.dtype, bytesText(described.bytes));
  const read = () => (written ? tensorOfText(name, described, area.value) : numbers);
  return { node: element("div", { class: "field" }, head, area, tools), read };
}

function fieldOf(name, described) {
  return described.kind === "tensor" ? tensorField(name, described) : numberField(name, described);
}

// What has a value without the user: an optimiser's rates, what random numbers are drawn from.
function isOwn({ kind, default: initial }) {
  return kind === "random" || initial !== undefined;
}

function folded(nodes) {
  const words = `${nodes.length} more with values of their own`;
  return element("details", { class: "stack" }, element("summary", {}, words), ...nodes);
}

function showFunction(name) {
  state.name = name;
  const inputs = Object.entries(state.functions[name].inputs);
  state.fields = new Map(inputs.map(([input, described]) => [input, fieldOf(input, described)]));
  const nodesOf = (which) => inputs.filter(which).map(([input]) => state.fields.get(input).node);
  const asked = nodesOf(([, described]) => !isOwn(described));
  const own = nodesOf(([, described]) => isOwn(described));
  const nothing = element("p", { class: "quiet" }, "This function takes no inputs.");
  byId("fields").replaceChildren(...(asked.length ? asked : [nothing]), ...(own.length ? [folded(own)] : []));
  showMistake("");
}

// Running

function showMistake(words) {
  byId("wrong").textContent = words;
  byId("wrong").hidden = !words;
}

function readFields() {
  const read = [...state.fields].map(([name, field]) => [name, field.read()]);
  return Object.fromEntries(read.filter(([, value]) => value !== undefined));
}

function showOutputs(outputs, milliseconds) {
  const results = Object.entries(outputs).map(([name, output]) => resultElement(name, output));
  const nothing = element("p", { class: "empty" }, "It ran; this function gives nothing back.");
  byId("outputs").replaceChildren(...(results.length ? results : [nothing]));
  byId("time").textContent = timeText(milliseconds);
}

async function run() {
  const model = state.page?.model;
  if (!model) return;
  let inputs = null;
  try {
    inputs = readFields();
  } catch (error) {
    showMistake(error.message);
    return;
  }
  showMistake("");
  byId("run").disabled = true;
  const start = performance.now();
  try {
    showOutputs(await model.run(inputs, state.name), performance.now() - start);
  } catch (error) {
    if (error.code === "input") showMistake(error.message);
    else state.page.fail(error, model);
  }
  byId("run").disabled = !state.page.model;
}

async function reset() {
  try {
    await state.page?.model?.reset();
    byId("time").textContent = "State is as it was at first";
  } catch (error) {
    state.page.fail(error);
  }
}

async function usePlan(facts) {
  state.pictures = facts.pictures ?? {};
  const plan = await readJson("plan.json");
  state.functions = plan.functions;
  const names = Object.keys(plan.functions);
  byId("functions").replaceChildren(...names.map((name) => element("option", { value: name }, name)));
  byId("functions-part").hidden = names.length < 2;
  byId("reset").hidden = Object.keys(plan.state ?? {}).length === 0;
  showFunction(names[0]);
}

byId("form").addEventListener("submit", (event) => {
  event.preventDefault();
  run();
});
byId("functions").addEventListener("change", (event) => showFunction(event.target.value));
byId("reset").addEventListener("click", reset);
startPage({
  facts: usePlan,
  ready(page) {
    state.page = page;
    byId("run").disabled = false;
  },
  failed() {
    byId("run").disabled = true;
  },
});
