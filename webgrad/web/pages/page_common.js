// A page's life: its facts are read, the model is opened with progress, and what fails is told with a button
// that opens it again. What the user typed stays: only the model is made anew.
import { open } from "./model.js";
import { byId, bytesOfText } from "./page_elements.js";
import { readJson } from "./page_files.js";
import { hideProblem, showProblem } from "./page_problem.js";

// stage: [the words beside the bar, where the bar begins, where it ends]
const STAGES = {
  adapter: [() => "Looking for a GPU …", 0, 0.02],
  weights: [({ loaded, total }) => `Loading weights: ${bytesOfText(loaded, total)}`, 0.02, 0.9],
  compile: [({ loaded, total }) => `Compiling kernels: ${loaded} of ${total}`, 0.9, 1],
  ready: [() => "Ready", 1, 1],
};

function showProgress(progress) {
  const [words, begin, end] = STAGES[progress.stage];
  const share = progress.total > 0 ? progress.loaded / progress.total : 0;
  const percent = Math.round(100 * (begin + (end - begin) * share));
  byId("device").textContent = words(progress);
  byId("device").setAttribute("aria-busy", "true"); // the bar says it; not every step is read out
  const bar = byId("progress");
  bar.hidden = false;
  bar.setAttribute("aria-valuenow", percent);
  bar.firstElementChild.style.width = `${percent}%`;
}

function showDevice(info) {
  const parts = [info.device.name, info.variant, info.device.software ? "no GPU, so slow" : ""];
  byId("device").removeAttribute("aria-busy");
  byId("device").textContent = byId("device").title = parts.filter(Boolean).join(" · ");
  byId("progress").hidden = true;
}

function showTitle(facts) {
  if (!facts.title) return;
  document.title = facts.title;
  byId("title").textContent = facts.title;
}

// use: { facts(facts) once, ready(page) whenever a model is there, failed(error) whenever it is gone }
async function startPage(use) {
  const page = { model: null, facts: null };

  // What a model that is gone already was asked fails as well, maybe when the next one is there: no matter.
  page.fail = (error, model) => {
    if (model && model === page.model) giveUp(error);
  };

  function giveUp(error) {
    page.model?.close?.();
    page.model = null;
    byId("progress").hidden = true;
    byId("device").removeAttribute("aria-busy");
    byId("device").textContent = "Not running";
    document.body.dataset.state = "failed";
    use.failed?.(error);
    showProblem(error, openModel);
  }

  async function openModel() {
    hideProblem();
    document.body.dataset.state = "loading";
    showProgress({ stage: "adapter", loaded: 0, total: 0 });
    let opened = null;
    try {
      if (!page.facts) {
        const facts = await readJson("page.json");
        showTitle(facts);
        await use.facts?.(facts);
        page.facts = facts;
      }
      opened = await open({ onProgress: showProgress, onLost: (error) => page.fail(error, opened) });
      page.model = opened;
      showDevice(opened.info);
      await use.ready(page);
      document.body.dataset.state = "ready";
    } catch (error) {
      giveUp(error);
    }
  }

  await openModel();
  return page;
}

export { startPage };
