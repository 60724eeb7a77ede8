// The chat page: messages in, an answer that streams out. The conversation lives in this page, not in the
// model: when the device is lost and the model loaded again, it goes on where it was.
import { makeChat } from "./chat.js";
import { answerMessage, userMessage } from "./chat_words.js";
import { generate, speedOf } from "./generation.js";
import { byId, countText, element, timeText } from "./page_elements.js";
import { startPage } from "./page_common.js";
import { readJson } from "./page_files.js";
import { makeTokenizer } from "./tokenizer.js";

const NEAR = 60; // pixels from the end within which the page goes along with an answer
const state = { page: null, tokenizer: null, chat: null, turns: [], going: null };
const WHY = {
  context: (facts) =>
    `The conversation has filled the ${facts.context.toLocaleString("en")} tokens that the model can read: ` +
    "start a new chat to go on.",
  length: () => "Cut off at the longest answer; the settings have it.",
  user: () => "Stopped.",
};

// What is shown

function atEnd() {
  const talk = byId("talk");
  return talk.scrollHeight - talk.scrollTop - talk.clientHeight < NEAR;
}

function goToEnd() {
  byId("talk").scrollTop = byId("talk").scrollHeight;
}

// A change of what is shown; who was at the end stays there, and who scrolled up is left alone.
function following(change) {
  const follow = atEnd();
  change();
  if (follow) goToEnd();
}

function showControls() {
  const ready = Boolean(state.page?.model);
  byId("send").hidden = state.going !== null;
  byId("stop").hidden = state.going === null;
  byId("send").disabled = !ready || byId("text").value.trim() === "";
  byId("welcome").hidden = byId("said").childElementCount > 0;
  for (const button of document.querySelectorAll("#examples button, .again")) {
    button.disabled = !ready || state.going !== null;
  }
}

function fitText() {
  const text = byId("text");
  text.style.height = "auto";
  text.style.height = `${text.scrollHeight}px`;
  showControls();
}

function figuresOf(report) {
  const speed = speedOf(report);
  return [
    countText(report.tokens, "token"),
    speed > 0 ? `${speed.toFixed(speed < 10 ? 1 : 0)} tokens/s` : "",
    report.readSeconds > 0 ? `first after ${timeText(1000 * report.readSeconds)}` : "",
  ]
    .filter(Boolean)
    .join(" · ");
}

function showContext(held) {
  const { context } = state.page.facts;
  byId("figures").textContent = `Context: ${held.toLocaleString("en")} of ${countText(context, "token")}`;
}

// What is asked

function conversation(question) {
  const system = byId("system").value.trim();
  const said = state.turns.flatMap((turn) => [
    { role: "user", content: turn.question },
    { role: "assistant", content: turn.answer },
  ]);
  const before = system ? [{ role: "system", content: system }] : [];
  return [...before, ...said, { role: "user", content: question }];
}

// A model without a chat template goes on with plain text.
function encoded(question) {
  if (state.chat) return state.chat.encode(conversation(question));
  return state.tokenizer.encode(state.turns.map((turn) => turn.question + turn.answer).join("") + question);
}

function choices() {
  return {
    greedy: byId("greedy").checked,
    sampling: { temperature: Number(byId("temperature").value), top_p: Number(byId("top-p").value) },
    mostTokens: Math.max(1, Math.floor(Number(byId("most").value)) || 512),
  };
}

// The answer's text so far is in `turn`; it grows as tokens come.
async function streamed(ids, answer, turn, going, report) {
  const { model, facts } = state.page;
  const pieces = state.tokenizer.stream();
  const ended = new Set(facts.stopIds);
  for await (const id of generate(model, facts, ids, { ...choices(), signal: going.signal, report })) {
    if (ended.has(id)) break;
    turn.answer += pieces.push(id);
    answer.show(turn.answer);
    byId("figures").textContent = figuresOf(report);
  }
  turn.answer += pieces.end();
  answer.show(turn.answer);
  showContext(ids.length + report.tokens);
}

// What a message may be refused for (it writes a control token, say) is told beside it.
function encodedOrNote(question) {
  try {
    return [encoded(question), ""];
  } catch (error) {
    return [null, `This cannot be sent: ${error.message}.`];
  }
}

async function respond(question) {
  const { model } = state.page;
  const place = state.turns.length;
  const going = new AbortController();
  const report = { tokens: 0, onRead: showReading };
  const answer = answerMessage(following);
  const turn = { question, answer: "" };
  state.going = going;
  byId("said").append(answer.item);
  showControls();
  goToEnd();
  let [ids, note] = encodedOrNote(question);
  try {
    if (ids) await streamed(ids, answer, turn, going, report);
    note ||= WHY[report.stoppedBy]?.(state.page.facts) ?? "";
  } catch (error) {
    note = "This answer was cut off.";
    state.page.fail(error, model);
  }
  state.going = null;
  if (answer.item.isConnected) keep(turn); // else a new chat has begun
  answer.end(report.tokens ? figuresOf(report) : "", note, () => again(answer.item, place, question));
  showControls();
}

// A question that got no answer is no part of the conversation: its text is there to be sent again.
function keep(turn) {
  if (turn.answer) state.turns.push(turn);
  else if (!byId("text").value) {
    byId("text").value = turn.question;
    fitText();
  }
}

function showReading(read, all) {
  if (all > 64)
    byId("figures").textContent = `Reading: ${read.toLocaleString("en")} of ${countText(all, "token")}`;
}

// The same question once more; what came after it is taken back.
function again(item, place, question) {
  if (state.going || !state.page.model) return;
  state.turns.length = Math.min(place, state.turns.length);
  while (item.nextElementSibling) item.nextElementSibling.remove();
  item.remove();
  if (byId("text").value === question) byId("text").value = "";
  fitText();
  respond(question);
}

function send(text) {
  if (!text.trim() || state.going || !state.page?.model) return;
  byId("said").append(userMessage(text));
  respond(text);
}

function newChat() {
  state.going?.abort();
  state.turns.length = 0;
  byId("said").replaceChildren();
  byId("figures").textContent = "";
  showControls();
  byId("text").focus();
}

// What is set

function showSettings() {
  const greedy = byId("greedy").checked;
  for (const name of ["temperature", "top-p"]) {
    byId(`${name}-told`).textContent = Number(byId(name).value).toFixed(2);
    byId(name).disabled = greedy;
  }
}

function useSampling(facts) {
  const { temperature, top_p: topP } = facts.sampling ?? {};
  byId("temperature").value = temperature ?? 0.8;
  byId("top-p").value = topP ?? 1;
  byId("temperature-part").hidden = temperature === undefined;
  byId("top-p-part").hidden = topP === undefined;
  byId("greedy").checked = !facts.functions.sample;
  byId("greedy").disabled = !facts.functions.sample;
  byId("most").max = facts.context;
  showSettings();
}

async function useFacts(facts) {
  const completes = !facts.chat; // without a template a text is gone on with
  byId("system").value = facts.system ?? "";
  byId("system").closest("label").hidden = completes;
  byId("text").placeholder = completes ? "The beginning of a text" : "Message";
  byId("welcome-title").textContent = facts.welcome ?? (completes ? "Begin a text" : "Ask something");
  const buttons = (facts.examples ?? []).map((example) =>
    element("button", { type: "button", onclick: () => send(example) }, example),
  );
  byId("examples").replaceChildren(...buttons);
  useSampling(facts);
  showControls();
  state.tokenizer = makeTokenizer(await readJson(facts.tokenizer));
  state.chat = facts.chat ? makeChat(facts.chat, state.tokenizer) : null;
}

// Phones whose keyboard lies over the page: it gets the height that is left.
function followKeyboard() {
  const seen = globalThis.visualViewport;
  if (!seen) return;
  const fit = () => {
    if (seen.scale === 1) document.body.style.setProperty("--height", `${Math.round(seen.height)}px`);
    if (seen.offsetTop > 0) scrollTo(0, 0);
  };
  seen.addEventListener("resize", fit);
  seen.addEventListener("scroll", fit);
  fit();
}

function listen() {
  const text = byId("text");
  byId("form").addEventListener("submit", (event) => {
    event.preventDefault();
    if (state.going || !state.page?.model) return;
    const words = text.value;
    text.value = "";
    fitText();
    send(words);
  });
  text.addEventListener("input", fitText);
  text.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    byId("form").requestSubmit();
  });
  byId("stop").addEventListener("click", () => state.going?.abort());
  byId("new-chat").addEventListener("click", newChat);
  byId("settings").addEventListener("input", showSettings);
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    if (byId("settings").open) byId("settings").open = false;
    else state.going?.abort();
  });
  document.addEventListener("pointerdown", (event) => {
    if (!event.target.closest("#settings")) byId("settings").open = false;
  });
  followKeyboard();
}

listen();
startPage({
  facts: useFacts,
  ready(page) {
    state.page = page;
    showControls();
    byId("text").focus({ preventScroll: true });
  },
  failed: showControls,
});
