// The painting page: a class or a text and a seed in, a picture that comes out of noise step by step.
import { byId, countText, element, timeText } from "./page_elements.js";
import { startPage } from "./page_common.js";
import { readJson } from "./page_files.js";
import { paint, sheetOf } from "./painting.js";
import { makeTokenizer } from "./tokenizer.js";

const EACH = "each"; // a picture of each class in turn
const SEEDS = 1e6; // those that are drawn, short enough to be told
const state = { page: null, facts: null, tokenizers: [], work: null, told: "" };

// Controls

function fill(id, options, chosen) {
  byId(id).replaceChildren(...options.map(([value, words]) => element("option", { value }, words)));
  if (chosen !== undefined) byId(id).value = String(chosen);
}

function layoutWords({ count, height, width }, hasSizes) {
  const words = countText(count, "picture");
  return hasSizes ? `${words} of ${width} × ${height}` : words;
}

function showClasses(facts) {
  const classes = facts.classes ?? [];
  byId("class-part").hidden = classes.length === 0;
  const none = facts.noClass === null || facts.noClass === undefined ? [] : [[facts.noClass, "any"]];
  const each = classes.length > 1 ? [[EACH, "each in turn"]] : [];
  fill("class", [...each, ...none, ...classes]);
}

function showGuidance(facts) {
  const { guidance } = facts;
  byId("guidance-part").hidden = guidance === null || guidance === undefined;
  const slider = byId("guidance");
  slider.max = String(Math.max(Number(slider.max), guidance ?? 1));
  if (guidance % Number(slider.step)) slider.step = "any"; // else it would be moved to the nearest step
  slider.value = String(guidance ?? 1);
  byId("guidance-name").textContent = facts.texts ? "How much the prompt counts" : "How much the class counts";
  tellGuidance();
}

function tellGuidance() {
  byId("guidance-told").textContent = String(Number(Number(byId("guidance").value).toFixed(2)));
}

async function useFacts(facts) {
  state.facts = facts;
  const sizes = new Set(facts.layouts.map(({ height, width }) => `${height} ${width}`));
  const layouts = facts.layouts.map((each, at) => [at, layoutWords(each, sizes.size > 1)]);
  fill("layout", layouts, facts.layouts.length - 1);
  byId("layout-part").hidden = layouts.length < 2;
  fill("steps", Object.keys(facts.schedules).map((count) => [count, count]), facts.steps);
  showClasses(facts);
  showGuidance(facts);
  for (const id of ["prompt-part", "negative-part"]) byId(id).hidden = !facts.texts;
  if (facts.texts && byId("guidance-part").hidden) byId("negative-part").hidden = true;
  byId("every").value = facts.texts ? "5" : "1"; // a preview of latents is a decoder's work
  byId("seed").value = Math.floor(Math.random() * SEEDS);
  const names = facts.texts ? facts.texts.encoders.map(({ tokenizer }) => tokenizer) : [];
  state.tokenizers = await Promise.all(names.map(async (name) => makeTokenizer(await readJson(name))));
}

// What is asked for

function classesAsked(count) {
  const { classes } = state.facts;
  if (!classes?.length) return [];
  const chosen = byId("class").value;
  return Array.from({ length: count }, (_, at) =>
    chosen === EACH ? classes[at % classes.length][0] : Number(chosen),
  );
}

function asked(signal) {
  const layout = state.facts.layouts[Number(byId("layout").value)];
  return {
    layout,
    steps: Number(byId("steps").value),
    seed: Number(byId("seed").value),
    classes: classesAsked(layout.count),
    guidance: byId("guidance-part").hidden ? null : Number(byId("guidance").value),
    prompt: byId("prompt").value.trim(),
    negative: byId("negative").value.trim(),
    every: Number(byId("every").value),
    signal,
  };
}

function labelOf({ prompt, seed, layout }) {
  const chosen = byId("class").selectedOptions[0]?.textContent;
  const what = prompt ? `“${prompt}”` : chosen && `class: ${chosen}`;
  return [countText(layout.count, "picture"), what, `seed ${seed}`].filter(Boolean).join(", ");
}

// Painting

function showPictures(pictures) {
  const { data, width, height } = sheetOf(pictures);
  const canvas = byId("painting");
  if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
  canvas.getContext("2d").putImageData(new ImageData(data, width, height), 0, 0);
  canvas.hidden = false;
  byId("empty").hidden = true;
}

function showStep({ step, steps }, begun) {
  const seconds = (performance.now() - begun) / 1000;
  byId("meter").setAttribute("aria-valuenow", Math.round((100 * step) / steps));
  byId("meter").firstElementChild.style.width = `${(100 * step) / steps}%`;
  byId("working").textContent = `step ${step} of ${steps} · ${(step / seconds).toFixed(1)} steps/s`;
}

function showBusy(isBusy) {
  byId("paint").disabled = isBusy || !state.page?.model;
  byId("stop").disabled = !isBusy;
  byId("save").disabled = isBusy || byId("painting").hidden;
  byId("painting").setAttribute("aria-busy", String(isBusy));
}

async function start() {
  const model = state.page?.model;
  if (!model || state.work) return;
  if (byId("anew").checked && state.told) byId("seed").value = Math.floor(Math.random() * SEEDS);
  const work = new AbortController();
  state.work = work;
  const options = asked(work.signal);
  state.told = labelOf(options);
  byId("painting").setAttribute("aria-label", state.told);
  showBusy(true);
  const begun = performance.now();
  let last = { step: 0, steps: options.steps };
  try {
    for await (last of paint(model, state.facts, state.tokenizers, options)) {
      showStep(last, begun);
      if (last.pictures) showPictures(last.pictures);
      await new Promise(requestAnimationFrame);
    }
    const words = last.step < last.steps ? `stopped after step ${last.step}` : countText(last.steps, "step");
    byId("working").textContent = `${words} · seed ${options.seed} · ${timeText(performance.now() - begun)}`;
  } catch (error) {
    state.page.fail(error, model);
  }
  state.work = null;
  showBusy(false);
}

function stop() {
  state.work?.abort();
}

function save() {
  byId("painting").toBlob((blob) => {
    const href = URL.createObjectURL(blob);
    element("a", { href, download: `${state.told.replace(/[^\w -]/g, "").replace(/\s+/g, "-")}.png` }).click();
    setTimeout(() => URL.revokeObjectURL(href), 1000);
  });
}

byId("form").addEventListener("submit", (event) => {
  event.preventDefault();
  start();
});
byId("stop").addEventListener("click", stop);
byId("save").addEventListener("click", save);
byId("guidance").addEventListener("input", tellGuidance);
document.addEventListener("keydown", (event) => event.key === "Escape" && stop());
startPage({
  facts: useFacts,
  ready(page) {
    state.page = page;
    showBusy(false);
  },
  failed() {
    showBusy(false);
  },
});
