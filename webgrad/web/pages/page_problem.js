// The panel that says what went wrong: a heading and advice for each code of the runner's errors, its own
// words in a fold, and a button that tries again.
import { byId, element } from "./page_elements.js";

const BROWSERS =
  "Chrome and Edge have it since version 113 (on Android since 121), Safari since 26, Firefox since 141 on " +
  "Windows and 145 on macOS.";
const CLOSE_OTHERS = "Close other tabs and programs that use the GPU, then load again.";

// code: [heading, advice lines, what the button says]
const PROBLEMS = {
  "no-webgpu": [
    "This browser has no WebGPU",
    [
      `The model runs on your GPU by WebGPU. ${BROWSERS}`,
      "Where the browser is new enough, WebGPU may be switched off: look for it in the browser's settings " +
        "(chrome://gpu, about:support).",
    ],
    "Try again",
  ],
  insecure: [
    "WebGPU needs a secure address",
    [
      "Browsers give WebGPU to pages from https:// and from this machine (http://localhost) only.",
      "Open this page by https, or run `webgrad serve-static` on its folder and open the address it prints.",
    ],
    "Try again",
  ],
  "no-adapter": [
    "No GPU was given to this page",
    [
      "The browser has WebGPU but offers no adapter: the GPU or its driver is blocked, or hardware " +
        "acceleration is off.",
      "Switch hardware acceleration on in the browser's settings and update the graphics driver; " +
        "chrome://gpu or about:support say what is blocked.",
    ],
    "Try again",
  ],
  "no-device": [
    "The GPU could not be opened",
    [CLOSE_OTHERS, "Restarting the browser often helps."],
    "Try again",
  ],
  lost: [
    "The GPU was lost",
    [
      "The driver was reset, the machine slept, or another program took it. What you did is still here.",
      "Load the model again to go on.",
    ],
    "Load again",
  ],
  "out-of-memory": [
    "There is not enough GPU memory",
    [CLOSE_OTHERS, "A smaller model, or one exported with fewer bits per weight, needs less."],
    "Load again",
  ],
  compile: [
    "A kernel was refused",
    ["This browser's compiler does not take one of the model's kernels. A newer browser or driver may."],
    "Try again",
  ],
  validation: [
    "The browser refused a command",
    ["That is a fault in the export or in the browser. Exporting again with the newest webgrad may mend it."],
    "Load again",
  ],
  weights: [
    "A weight file is damaged",
    ["A download was cut short, or the server has files of two different exports."],
    "Load again",
  ],
  file: [
    "A file of this page is missing",
    ["Put the whole folder of the export on the server."],
    "Try again",
  ],
  input: ["The model does not take this input", ["Change it and run again."], "Load again"],
  internal: ["Something went wrong", ["Loading again may help; the words below say more."], "Load again"],
};

// Whose words name a file or a size that the advice does not know.
const TELLING = new Set(["out-of-memory", "weights", "file", "input"]);

function whereabouts() {
  return `${location.protocol}//${location.host} · ${navigator.userAgent}`;
}

// Firefox and Chromium say "TypeError: Failed to fetch" where a server is gone.
function codeOf(error) {
  if (error?.code in PROBLEMS) return error.code;
  return error instanceof TypeError && /fetch|network/i.test(error.message) ? "file" : "internal";
}

function showProblem(error, retry) {
  const code = codeOf(error);
  const [heading, advice, label] = PROBLEMS[code];
  const words = [`${code}: ${error?.message ?? error}`, error?.details, whereabouts()]
    .filter(Boolean)
    .join("\n");
  const button = element("button", { type: "button", class: "primary", id: "retry", onclick: retry }, label);
  byId("problem").replaceChildren(
    element("h2", {}, heading),
    ...[TELLING.has(code) ? error.message : "", ...advice]
      .filter(Boolean)
      .map((line) => element("p", {}, line)),
    element("details", {}, element("summary", {}, "Details"), element("pre", {}, words)),
    element("p", { class: "actions" }, button),
  );
  byId("problem").hidden = false;
}

function hideProblem() {
  byId("problem").hidden = true;
}

export { showProblem, hideProblem, codeOf };
