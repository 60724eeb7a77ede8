// The page: an editor for one program, a worker that runs it, and what it prints.
//
// In: the programs beside it, and what the worker tells. Out: text on the page. A program is stopped through
// memory that page and worker share where the page may have such, else by a new worker.

const PROGRAMS = {
  regression: "A line through points",
  graph: "Softmax, matrix product, layer norm",
  gradients: "Gradients of gradients",
  pictures: "A small convolutional net",
};
const BROWSERS = [
  [/Edg\/(\d+)/, "Edge"],
  [/Chrome\/(\d+)/, "Chromium"],
  [/Firefox\/(\d+)/, "Firefox"],
  [/Version\/(\d+).*Safari/, "Safari"],
];
const MOST_OUTPUT = 200000; // characters that are kept
const STOP = 2; // the number of the signal SIGINT

const [device, programs, runButton, stopButton, state, numbers, code, output, problem, seen, whole] = [
  "device", "programs", "run", "stop", "state", "numbers", "code", "output", "problem", "seen", "whole",
].map((name) => document.getElementById(name));
const interrupt = globalThis.crossOriginIsolated ? new Uint8Array(new SharedArrayBuffer(1)) : null;
let worker = null;
let ready = false;
let startedAt = 0; // when the running program started; 0: none runs

function browserName() {
  for (const [pattern, name] of BROWSERS) {
    const found = navigator.userAgent.match(pattern);
    if (found) {
      return `${name} ${found[1]}`;
    }
  }
  return "this browser";
}

function showButtons() {
  runButton.disabled = !ready || startedAt > 0;
  stopButton.disabled = !startedAt;
}

function write(text) {
  const atEnd = output.scrollHeight - output.scrollTop - output.clientHeight < 8;
  output.append(text);
  if (output.textContent.length > MOST_OUTPUT) {
    output.textContent = output.textContent.slice(-MOST_OUTPUT / 2);
  }
  if (atEnd) {
    output.scrollTop = output.scrollHeight;
  }
}

function finish(words) {
  state.textContent = words;
  startedAt = 0;
  showButtons();
}

const HEARD = {
  stage: (words) => { device.textContent = `${words} …`; },
  output: write,
  ready: (facts) => {
    ready = true;
    device.textContent = `${facts.version} · ${browserName()} · ${facts.device}`;
    showButtons();
  },
  problem: (texts) => {
    problem.hidden = !texts;
    [seen.textContent, whole.textContent] = texts ?? ["", ""];
  },
  done: () => finish(`${((performance.now() - startedAt) / 1000).toFixed(2)} s`),
  failed: (message) => {
    ready = false;
    device.textContent = "Programs cannot be run here";
    HEARD.problem([message.trim().split("\n").at(-1), message]);
    finish("");
  },
};

function start() {
  ready = false;
  worker = new Worker("./worker.js", { type: "module" });
  worker.onmessage = ({ data }) => Object.keys(data).forEach((key) => HEARD[key](data[key]));
  worker.onerror = (event) => HEARD.failed(
    `${event.message || "a file is missing"}\nfetch.py puts Python and webgrad beside this page: see README.md`,
  );
  worker.postMessage({ interrupt });
  showButtons();
}

function run() {
  if (runButton.disabled) {
    return;
  }
  output.textContent = "";
  HEARD.problem(null);
  state.textContent = "runs …";
  startedAt = performance.now();
  interrupt?.fill(0);
  showButtons();
  worker.postMessage({ run: code.value });
}

function stop() {
  if (stopButton.disabled) {
    return;
  }
  if (interrupt) {
    interrupt[0] = STOP;
    return;
  }
  worker.terminate();
  finish("stopped; Python starts anew");
  start();
}

function number() {
  const count = code.value.split("\n").length;
  numbers.textContent = Array.from({ length: count }, (_, at) => at + 1).join("\n");
  numbers.scrollTop = code.scrollTop;
}

async function choose(name) {
  const answer = await fetch(`./programs/${name}.py`);
  code.value = answer.ok ? await answer.text() : `# programs/${name}.py is not there\n`;
  code.scrollTop = 0;
  number();
}

function indent(event) {
  event.preventDefault();
  code.setRangeText("    ", code.selectionStart, code.selectionEnd, "end");
  number();
}

function press(event) {
  if (event.key === "Enter" && (event.ctrlKey || event.shiftKey || event.metaKey)) {
    event.preventDefault();
    run();
  } else if (event.key === "Tab" && !event.shiftKey && event.target === code) {
    indent(event); // Shift+Tab still leaves the editor, for those who have no mouse
  } else if (event.key === "Escape") {
    stop();
  }
}

for (const [name, title] of Object.entries(PROGRAMS)) {
  programs.append(new Option(title, name));
}
programs.onchange = () => choose(programs.value);
code.oninput = number;
code.onscroll = () => { numbers.scrollTop = code.scrollTop; };
runButton.onclick = run;
stopButton.onclick = stop;
document.onkeydown = press;
choose(programs.value);
start();
