// The classifier page: a drawing or a picture in, the likeliest classes out, while it is drawn.
// The pad holds the picture as the user made it; `pictures.js` makes of it what the model sees.
import { closeCamera, openCamera } from "./camera.js";
import { byId, element, timeText } from "./page_elements.js";
import { startPage } from "./page_common.js";
import { inputOf, seenBy, shrunk, softmax, topClasses } from "./pictures.js";

const SIDE = 420; // pixels that the pad is drawn with, about; a whole number of the model's
const state = { page: null, facts: null, drawn: false, last: null, busy: false, again: false, camera: null };

function padContext() {
  return byId("pad").getContext("2d", { willReadFrequently: true });
}

// The pad

function preparePad({ height, width, channels }) {
  const scale = Math.max(1, Math.floor(SIDE / Math.max(height, width)));
  const [pad, sees] = [byId("pad"), byId("sees")];
  [pad.width, pad.height, sees.width, sees.height] = [scale * width, scale * height, width, height];
  pad.style.aspectRatio = `${width} / ${height}`;
  byId("colour-part").hidden = channels === 1;
  wipe();
}

function wipe() {
  const pad = padContext();
  pad.fillStyle = "#ffffff";
  pad.fillRect(0, 0, pad.canvas.width, pad.canvas.height);
  state.drawn = false;
}

function clear(told = "The likeliest classes are shown here.") {
  wipe();
  showSeen(seenNow());
  byId("bars").replaceChildren();
  byId("empty").textContent = told;
  byId("empty").hidden = false;
  byId("time").textContent = byId("best").textContent = "";
}

function pointOf(event) {
  const box = byId("pad").getBoundingClientRect();
  const scale = byId("pad").width / box.width;
  return [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
}

function stroke(from, to) {
  const pad = padContext();
  pad.strokeStyle = state.facts.channels === 1 ? "#000000" : byId("colour").value;
  pad.lineWidth = (Number(byId("brush").value) * pad.canvas.width) / state.facts.width;
  pad.lineCap = pad.lineJoin = "round";
  pad.beginPath();
  pad.moveTo(...from);
  pad.lineTo(...to);
  pad.stroke();
  state.drawn = true;
  classify();
}

function listenToPad(pad) {
  pad.addEventListener("pointerdown", (event) => {
    if (!state.facts || event.button !== 0 || !event.isPrimary) return; // a second finger draws no line
    pad.setPointerCapture(event.pointerId);
    state.last = pointOf(event);
    stroke(state.last, state.last);
  });
  pad.addEventListener("pointermove", (event) => {
    if (!state.last || !event.isPrimary) return;
    for (const each of event.getCoalescedEvents?.() ?? [event]) {
      const point = pointOf(each);
      stroke(state.last, point);
      state.last = point;
    }
  });
  for (const name of ["pointerup", "pointercancel"]) {
    pad.addEventListener(name, () => {
      state.last = null;
    });
  }
}

// A picture fills the pad; what reaches over its edges is cut off.
function putPicture(picture, inverted) {
  wipe();
  const pad = padContext();
  const { width, height } = pad.canvas;
  const wide = picture.naturalWidth ?? picture.videoWidth ?? picture.width;
  const high = picture.naturalHeight ?? picture.videoHeight ?? picture.height;
  const scale = Math.max(width / wide, height / high);
  pad.imageSmoothingEnabled = scale < 1;
  pad.imageSmoothingQuality = "high";
  pad.drawImage(picture, (width - wide * scale) / 2, (height - high * scale) / 2, wide * scale, high * scale);
  if (inverted) {
    pad.globalCompositeOperation = "difference";
    pad.fillRect(0, 0, width, height); // the difference to white
    pad.globalCompositeOperation = "source-over";
  }
  state.drawn = true;
  classify();
}

async function takePicture(file) {
  if (!state.facts) return;
  try {
    const picture = await createImageBitmap(file);
    putPicture(picture, false);
    picture.close();
  } catch {
    clear(`${file.name || "This"} is no picture that the browser can read.`);
  }
}

// The camera: its pictures are classified one after the other, until it is closed.
async function toggleCamera() {
  if (state.camera) return endCamera();
  try {
    state.camera = await openCamera();
  } catch (error) {
    clear(error.message);
    return undefined;
  }
  byId("camera").textContent = "End the camera";
  while (state.camera) {
    putPicture(state.camera, byId("inverted").checked);
    await new Promise(requestAnimationFrame);
    while (state.busy) await new Promise(requestAnimationFrame);
  }
  return undefined;
}

function endCamera() {
  closeCamera(state.camera);
  state.camera = null;
  byId("camera").textContent = "Camera";
}

// The answer

function seenNow() {
  const { canvas } = padContext();
  const picture = padContext().getImageData(0, 0, canvas.width, canvas.height);
  const colours = shrunk(picture.data, canvas.width, canvas.height, state.facts.width, state.facts.height);
  return seenBy(state.facts, colours, byId("inverted").checked);
}

function showSeen(seen) {
  const { height, width, channels } = state.facts;
  const picture = new ImageData(width, height);
  for (let place = 0; place < height * width; place += 1) {
    for (let channel = 0; channel < 3; channel += 1) {
      picture.data[4 * place + channel] = 255 * seen[place * channels + (channels === 1 ? 0 : channel)];
    }
    picture.data[4 * place + 3] = 255;
  }
  byId("sees").getContext("2d").putImageData(picture, 0, 0);
}

function shareText(share) {
  return share < 0.001 ? "< 0.1 %" : `${(100 * share).toFixed(1)} %`;
}

function labelOf(place) {
  return state.facts.labels?.[place] ?? `class ${place}`;
}

function barOf([place, share]) {
  const meter = element("div", { class: "meter" }, element("i"));
  meter.firstElementChild.style.width = `${100 * share}%`;
  const words = [labelOf(place), shareText(share)].map((each) => element("span", {}, each));
  return element("li", {}, element("div", { class: "row" }, ...words), meter);
}

function showClasses(shares, milliseconds) {
  const best = topClasses(shares, state.facts.top ?? 5);
  byId("bars").replaceChildren(...best.map(barOf));
  byId("empty").hidden = true;
  // Beside the pad as well: on phones the bars are below what is seen.
  byId("best").textContent = `${labelOf(best[0][0])} · ${shareText(best[0][1])}`;
  byId("time").textContent = timeText(milliseconds);
}

async function classifyNow() {
  const seen = seenNow();
  showSeen(seen);
  if (!state.page?.model) return;
  const start = performance.now();
  const { facts } = state;
  const outputs = await state.page.model.run({ [facts.input]: inputOf(facts, seen) }, facts.function);
  const scores = (outputs[facts.output] ?? Object.values(outputs)[0]).data;
  if (state.drawn)
    showClasses(facts.scores === "shares" ? scores : softmax(scores), performance.now() - start);
}

// One run at a time; what is drawn meanwhile is classified after it.
async function classify() {
  state.again = true;
  if (state.busy || !state.facts) return;
  state.busy = true;
  let model = null;
  try {
    while (state.again && state.drawn) {
      state.again = false;
      await new Promise(requestAnimationFrame);
      model = state.page?.model;
      await classifyNow();
    }
  } catch (error) {
    state.page?.fail(error, model);
  }
  state.busy = false;
}

// What is given

function sampleButton({ image, label }) {
  const picture = element("img", { src: image, alt: label ?? "sample", title: label });
  const onclick = () => putPicture(picture, byId("inverted").checked);
  return element("button", { type: "button", onclick }, picture);
}

function useFacts(facts) {
  state.facts = facts;
  byId("inverted").checked = Boolean(facts.inverted);
  preparePad(facts);
  showSeen(seenNow());
  byId("samples-part").hidden = !facts.samples?.length;
  byId("samples").replaceChildren(...(facts.samples ?? []).map(sampleButton));
  const colours = facts.channels === 1 ? "grey" : "colours";
  const size = `${facts.width} × ${facts.height}`;
  byId("sees-told").textContent = `What the model sees: ${size} pixels, ${colours}.`;
}

function listenToPictures() {
  byId("file").addEventListener("change", (event) => {
    if (event.target.files[0]) takePicture(event.target.files[0]);
    event.target.value = ""; // so that the same one can be picked again
  });
  document.addEventListener("paste", (event) => {
    const picture = [...event.clipboardData.files].find((file) => file.type.startsWith("image/"));
    if (picture) takePicture(picture);
  });
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    if (event.dataTransfer.files[0]) takePicture(event.dataTransfer.files[0]);
  });
}

listenToPad(byId("pad"));
listenToPictures();
byId("clear").addEventListener("click", () => state.facts && (endCamera(), clear()));
byId("camera").addEventListener("click", () => state.facts && toggleCamera());
byId("inverted").addEventListener("change", () => (state.drawn ? classify() : showSeen(seenNow())));
startPage({
  facts: useFacts,
  ready(page) {
    state.page = page;
    if (state.drawn) classify();
  },
});
