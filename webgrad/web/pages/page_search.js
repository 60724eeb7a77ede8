// The search page: a text is split into passages, each gets a vector, and a query finds the nearest ones.
// Vectors are kept by their texts, so that only what is new is computed when the text changes.
import { embedTexts } from "./embedding.js";
import { byId, countText, debounced, element, timeText } from "./page_elements.js";
import { startPage } from "./page_common.js";
import { readJson } from "./page_files.js";
import { highlighted, nearest, splitPassages } from "./passages.js";
import { makeTokenizer } from "./tokenizer.js";

const BATCH = 32; // texts between two looks at whether the text has changed meanwhile
const IDLE = byId("empty").textContent;
const state = { page: null, tokenizer: null, passages: [], vectors: new Map(), work: null, asked: 0 };

// Passages

function showWorking(words, share) {
  byId("working").textContent = words;
  byId("meter").setAttribute("aria-valuenow", Math.round(100 * share));
  byId("meter").firstElementChild.style.width = `${100 * share}%`;
}

function missingTexts() {
  return [...new Set(state.passages.map((each) => each.text))].filter((text) => !state.vectors.has(text));
}

async function embedMissing(signal) {
  const start = performance.now();
  const texts = missingTexts();
  for (let done = 0; done < texts.length && !signal.aborted; done += BATCH) {
    const part = texts.slice(done, done + BATCH);
    const onProgress = (count) =>
      showWorking(`${done + count} of ${countText(texts.length, "passage")}`, (done + count) / texts.length);
    const { model, facts } = state.page;
    const vectors = await embedTexts(model, facts, state.tokenizer, part, onProgress);
    vectors.forEach((vector, place) => state.vectors.set(part[place], vector));
  }
  if (signal.aborted) return;
  const told = texts.length ? `${countText(texts.length, "passage")} read in ` : "";
  showWorking(told + (told ? timeText(performance.now() - start) : "All passages are read"), 1);
}

function forgetOthers() {
  const current = new Set(state.passages.map((each) => each.text));
  for (const text of state.vectors.keys()) if (!current.has(text)) state.vectors.delete(text);
}

async function index() {
  state.work?.abort();
  state.passages = splitPassages(byId("text").value, byId("by").value, Number(byId("longest").value));
  byId("counted").textContent = countText(state.passages.length, "passage");
  const model = state.page?.model;
  if (!model) return;
  if (!state.passages.length) {
    showWorking("", 0);
    return;
  }
  const work = new AbortController();
  state.work = work;
  try {
    await embedMissing(work.signal);
  } catch (error) {
    state.page.fail(error, model);
  }
  if (work.signal.aborted || !state.page.model) return;
  forgetOthers();
  await search();
}

// Queries

function markedText(text, query) {
  return highlighted(text, query).map(([part, found]) => (found ? element("mark", {}, part) : part));
}

function hit(passage, score, query) {
  const meter = element("span", { class: "meter" }, element("i"));
  meter.firstElementChild.style.width = `${Math.round(100 * Math.max(0, score))}%`;
  const why = element(
    "span",
    { class: "why" },
    meter,
    element("span", { class: "figures" }, score.toFixed(3)),
  );
  const words = element("span", {}, ...markedText(passage.text, query));
  const title = "Show it in the text";
  return element(
    "li",
    {},
    element("button", { type: "button", title, onclick: () => reveal(passage) }, why, words),
  );
}

function reveal({ start, end }) {
  const text = byId("text");
  const whole = text.value;
  text.focus();
  text.value = whole.slice(0, end); // browsers scroll to the end of what is there
  text.scrollTop = text.scrollHeight;
  text.value = whole;
  text.setSelectionRange(start, end);
}

function showHits(found, query) {
  const list = found.map(([place, score]) => hit(state.passages[place], score, query));
  byId("hits").replaceChildren(...list);
  byId("empty").hidden = list.length > 0;
}

function waitingWords(query) {
  if (!query) return IDLE;
  return state.passages.length ? "The text is being read: what is found comes here." : "Paste a text first.";
}

async function search() {
  const query = byId("query").value.trim();
  const asked = ++state.asked;
  const known = state.passages.every((each) => state.vectors.has(each.text));
  const model = state.page?.model;
  if (!query || !known || !state.passages.length || !model) {
    if (!query || !state.passages.length) showHits([], "");
    byId("empty").textContent = waitingWords(query);
    return;
  }
  try {
    const [vector] = await embedTexts(model, state.page.facts, state.tokenizer, [query]);
    if (asked !== state.asked) return;
    const vectors = state.passages.map((each) => state.vectors.get(each.text));
    if (vectors.every(Boolean)) showHits(nearest(vector, vectors), query);
  } catch (error) {
    state.page.fail(error, model);
  }
}

// What is given

async function takeFiles(files) {
  if (!files.length) return;
  try {
    byId("text").value = (await Promise.all(files.map((file) => file.text()))).join("\n\n");
  } catch (error) {
    showWorking(`This cannot be read: ${error.message}`, 0); // a folder, or a file that is gone
    return;
  }
  index();
}

function listenToDrops(target) {
  target.addEventListener("dragover", (event) => {
    event.preventDefault();
    target.classList.add("drop");
  });
  for (const name of ["dragleave", "drop"]) {
    target.addEventListener(name, () => target.classList.remove("drop"));
  }
  target.addEventListener("drop", (event) => {
    if (!event.dataTransfer.files.length) return;
    event.preventDefault();
    takeFiles([...event.dataTransfer.files]);
  });
}

function listen() {
  byId("text").addEventListener("input", debounced(500, index));
  for (const id of ["by", "longest"]) byId(id).addEventListener("change", index);
  byId("query").addEventListener("input", debounced(250, search));
  byId("form").addEventListener("submit", (event) => {
    event.preventDefault();
    search();
  });
  byId("file").addEventListener("change", (event) => {
    takeFiles([...event.target.files]);
    event.target.value = ""; // so that the same one can be opened again
  });
  byId("clear").addEventListener("click", () => {
    byId("text").value = "";
    index();
  });
  listenToDrops(byId("text"));
}

async function useFacts(facts) {
  if (!byId("text").value) byId("text").value = facts.text ?? "";
  if (!byId("query").value) byId("query").value = facts.query ?? "";
  state.tokenizer = makeTokenizer(await readJson(facts.tokenizer));
}

listen();
startPage({
  facts: useFacts,
  ready(page) {
    state.page = page;
    byId("find").disabled = false;
    index();
  },
  failed() {
    state.work?.abort();
    byId("find").disabled = true;
    showWorking("", 0);
  },
});
