// The timeline: spans on rows, flush marks above them, and memory below, all over one time axis.
// Spans narrower than a pixel are gathered: their pixel shows how much of it each colour covers, as a stack.

const ROW = data.rows.length > 6 ? 18 : 28, HEAD = 20, LEAST_SEEN = 3, AXIS = 22, MARKS = 16, PLOT = 150, LEAST_VIEW = 0.5;
const timeline = { from: 0, to: 1, end: 1, rows: [], height: 0, drawn: 0, pointer: null, waiting: false };
const pointers = new Map();

function prepareRows() {
  let top = AXIS + (data.flushes.length ? MARKS : 0), track = -1;
  for (const row of data.rows) {
    if (row.track !== track) { track = row.track; top += HEAD; }
    const start = Float64Array.from(row.start), stop = start.map((each, index) => each + row.duration[index]);
    // The latest end so far grows, so that the first visible span is found by halving even where spans overlap.
    const latest = stop.slice();
    for (let index = 1; index < latest.length; index += 1) latest[index] = Math.max(latest[index], latest[index - 1]);
    timeline.rows.push({ ...row, start, stop, latest, top, first: timeline.rows.every((each) => each.track !== row.track) });
    top += ROW;
  }
  timeline.height = Math.max(top, AXIS + HEAD) + 8;
  timeline.end = data.end > 0 ? data.end : 1;
  timeline.to = timeline.end;
}

function firstAfter(sorted, value) {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] > value) high = middle; else low = middle + 1;
  }
  return low;
}

function isHost(row) { return data.tracks[row.track] === "host"; }

// The place of a span's colour in COLOURS; what is not selected fades.
function shadeOf(row, span) {
  if (selected.kernel >= 0 && !isSelected(row, span)) return FADED;
  return isHost(row) ? stageShade(row.index[span]) : kernelShade(row.index[span]);
}

function isSelected(row, span) { return !isHost(row) && row.index[span] === selected.kernel; }

// A canvas's context, with its memory as large as its place on this screen.
function surface(canvas, height) {
  const width = canvas.parentElement.clientWidth, ratio = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = height + "px";
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "middle";
  return { context, width };
}

function place(time, width) { return ((time - timeline.from) / (timeline.to - timeline.from)) * width; }

function tickStep(width) {
  const rough = ((timeline.to - timeline.from) / width) * 110, power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
}

function drawGrid(context, width, height, labels) {
  const step = tickStep(width);
  context.fillStyle = paint("var(--grid)");
  const times = [];
  for (let time = Math.ceil(timeline.from / step) * step; time <= timeline.to; time += step) times.push(time);
  for (const time of times) context.fillRect(Math.round(place(time, width)), labels ? AXIS : 0, 1, height);
  if (!labels) return;
  context.fillStyle = paint("var(--quiet)");
  context.textAlign = "left";
  for (const time of times) {
    const text = momentText(time, step), left = place(time, width) + 4;
    if (left + context.measureText(text).width < width) context.fillText(text, left, AXIS / 2 + 1);
  }
}

function drawFlushes(context, width) {
  context.fillStyle = paint("var(--accent)");
  let last = -9;
  for (const [time] of data.flushes) {
    const left = place(time, width);
    if (left < -4 || left > width + 4 || left - last < 3) continue;
    last = left;
    context.beginPath();
    context.moveTo(left - 4, AXIS + 3);
    context.lineTo(left + 4, AXIS + 3);
    context.lineTo(left, AXIS + 11);
    context.fill();
  }
}

function drawBox(context, shade, left, top, width, height) {
  context.fillStyle = paint(COLOURS[shade]);
  context.fillRect(left, top, width, height);
  timeline.drawn += 1;
}

function drawLabel(context, row, span, left, width) {
  const text = data.names[row.name[span]], room = Math.floor((width - 8) / 6.6), shade = shadeOf(row, span);
  if (room < 3) return;
  context.fillStyle = shade === FADED ? paint("var(--quiet)") : inkOn(paint(COLOURS[shade]));
  context.fillText(text.length > room ? text.slice(0, room - 1) + "…" : text, left + 4, row.top + ROW / 2 - 0.5, width - 6);
}

function drawWide(context, row, span, left, right, width) {
  const first = Math.max(left, -1), wide = Math.min(right, width + 1) - first;
  drawBox(context, shadeOf(row, span), first, row.top, Math.max(1, wide - (wide > 3 ? 1 : 0)), ROW - 2);
  if (wide > 28) drawLabel(context, row, span, Math.max(left, 0), Math.min(right, width) - Math.max(left, 0));
}

// One pixel of gathered spans: from below, each colour by what it covers, the selected kernel always visible.
function drawGathered(context, row, pixel, covered) {
  const whole = covered.reduce((total, each) => total + each, 0), room = (ROW - 2) / Math.max(1, whole);
  let bottom = row.top + ROW - 2;
  for (let shade = 0; shade < covered.length; shade += 1) {
    if (!covered[shade]) continue;
    const least = shade === FADED ? 0 : selected.kernel >= 0 ? LEAST_SEEN : 0.5;
    const height = Math.min(Math.max(least, covered[shade] * room), bottom - row.top);
    bottom -= height;
    drawBox(context, shade, pixel, bottom, 1, height);
    covered[shade] = 0;
  }
}

function drawRow(context, row, width) {
  const scale = width / (timeline.to - timeline.from), covered = new Float64Array(COLOURS.length);
  let pixel = NaN;
  for (let span = firstAfter(row.latest, timeline.from); span < row.start.length && row.start[span] < timeline.to; span += 1) {
    const left = (row.start[span] - timeline.from) * scale, right = (row.stop[span] - timeline.from) * scale;
    if (right - left >= 1) {
      drawWide(context, row, span, left, right, width);
      continue;
    }
    const here = Math.floor(left);
    if (here !== pixel) { drawGathered(context, row, pixel, covered); pixel = here; }
    covered[shadeOf(row, span)] += right - left;
  }
  drawGathered(context, row, pixel, covered);
}

function drawTimeline() {
  const { context, width } = surface(byId("timeline"), timeline.height);
  timeline.drawn = 0;
  readTheme();
  drawGrid(context, width, timeline.height, true);
  if (data.flushes.length) drawFlushes(context, width);
  for (const row of timeline.rows) {
    drawRow(context, row, width);
    if (!row.first) continue;
    context.fillStyle = paint("var(--quiet)");
    context.fillText(data.tracks[row.track], 6, row.top - HEAD / 2);
  }
  if (!timeline.rows.length) {
    context.fillStyle = paint("var(--quiet)");
    context.fillText("No span was recorded.", 6, AXIS + 10);
  }
  const part = timeline.to - timeline.from;
  byId("shown").textContent = part >= timeline.end ? "All " + microsecondsText(timeline.end) + " are shown."
    : momentText(timeline.from, part / 100) + " to " + momentText(timeline.to, part / 100) + " of " + microsecondsText(timeline.end);
}

function redraw() {
  if (timeline.waiting) return;
  timeline.waiting = true;
  requestAnimationFrame(() => {
    timeline.waiting = false;
    drawTimeline();
    drawMemory();
    showTip();
  });
}

function look(from, to) {
  const part = Math.min(timeline.end, Math.max(LEAST_VIEW, to - from));
  timeline.from = Math.min(Math.max(0, from), timeline.end - part);
  timeline.to = timeline.from + part;
  redraw();
}

function zoom(factor, around) {
  const time = timeline.from + around * (timeline.to - timeline.from), part = (timeline.to - timeline.from) * factor;
  look(time - around * part, time + (1 - around) * part);
}

function pan(share) {
  const step = share * (timeline.to - timeline.from);
  look(timeline.from + step, timeline.to + step);
}

const MOVES = {
  left: () => pan(-0.25), right: () => pan(0.25), in: () => zoom(0.5, 0.5), out: () => zoom(2, 0.5), all: () => look(0, timeline.end),
};
const KEYS = { "+": "in", "=": "in", "-": "out", "−": "out", ArrowLeft: "left", ArrowRight: "right", 0: "all" };

// The row and span under a point, with half a pixel's and then three pixels' patience for narrow ones.
function spanAt(left, top) {
  const row = timeline.rows.find((each) => top >= each.top && top < each.top + ROW);
  if (!row) return null;
  const width = byId("timeline").clientWidth, scale = (timeline.to - timeline.from) / width, time = timeline.from + left * scale;
  for (const patience of [0, 0.5 * scale, 3 * scale]) {
    for (let span = firstAfter(row.latest, time - patience); span < row.start.length && row.start[span] <= time + patience; span += 1) {
      if (row.stop[span] >= time - patience && (selected.kernel < 0 || patience === 0 || isSelected(row, span))) return { row, span };
    }
  }
  return null;
}

function flushAt(left, top) {
  if (top < AXIS || top > AXIS + MARKS) return null;
  const width = byId("timeline").clientWidth;
  return data.flushes.find(([time]) => Math.abs(place(time, width) - left) <= 5) || null;
}

function spanLines({ row, span }) {
  const kernel = isHost(row) ? null : kernels[row.index[span]], stage = isHost(row) ? stages[row.index[span]] : null;
  return [data.names[row.name[span]], microsecondsText(row.duration[span]) + " at " + momentText(row.start[span], row.duration[span] || 1) + ", " + data.tracks[row.track],
    kernel && kernel.line, kernel && kernel.ops && kernel.ops.join(" → "), stage && stage.what].filter(Boolean);
}

function showTip() {
  const tip = byId("tip"), canvas = byId("timeline"), point = timeline.pointer;
  const flush = point && flushAt(point.left, point.top), found = point && !flush && spanAt(point.left, point.top);
  tip.hidden = !flush && !found;
  canvas.classList.toggle("over", Boolean(found));
  if (tip.hidden) return;
  const [first, ...more] = flush ? ["Submitted for: " + flush[1], plural(flush[2], "command") + " at " + momentText(flush[0], (timeline.to - timeline.from) / 1000)] : spanLines(found);
  tip.replaceChildren(element("strong", {}, first), ...more.map((line) => element("div", {}, line)));
  moveTip(tip, canvas, point);
}

function moveTip(tip, canvas, point) {
  const left = Math.min(point.left + 14, canvas.clientWidth - tip.offsetWidth - 4);
  const below = point.top + 16 + tip.offsetHeight < canvas.clientHeight;
  tip.style.left = Math.max(4, left) + "px";
  tip.style.top = Math.max(2, below ? point.top + 14 : point.top - tip.offsetHeight - 10) + "px";
}

function pointOf(event) {
  const box = event.currentTarget.getBoundingClientRect();
  return { left: event.clientX - box.left, top: event.clientY - box.top };
}

function onWheel(event) {
  const width = byId("timeline").clientWidth, whole = timeline.to - timeline.from >= timeline.end;
  const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
  // With everything in view there is nothing to zoom out of or to move: the page scrolls.
  if (whole && (sideways || event.deltaY > 0) && !event.ctrlKey) return;
  event.preventDefault();
  const unit = event.deltaMode === 1 ? 16 : 1;
  if (sideways) pan((unit * (event.deltaX || event.deltaY)) / width);
  else zoom(Math.exp(unit * event.deltaY * (event.ctrlKey ? 0.01 : 0.002)), pointOf(event).left / width);
}

function onMove(event) {
  const before = pointers.get(event.pointerId), now = pointOf(event), width = byId("timeline").clientWidth;
  timeline.pointer = event.pointerType === "touch" && before ? null : now;
  if (before && pointers.size === 1) {
    before.moved += Math.abs(now.left - before.left);
    if (before.moved > 3) pan((before.left - now.left) / width);
  } else if (before && pointers.size === 2) {
    const [other] = [...pointers].filter(([id]) => id !== event.pointerId).map(([, point]) => point);
    const apart = Math.max(10, Math.abs(before.left - other.left)), wanted = Math.max(10, Math.abs(now.left - other.left));
    before.moved += 9;
    zoom(apart / wanted, other.left / width);
  }
  if (before) Object.assign(before, now);
  redraw();
}

function onUp(event) {
  const down = pointers.get(event.pointerId);
  pointers.delete(event.pointerId);
  byId("timeline").classList.remove("dragging");
  if (event.type !== "pointerup" || !down || down.moved > 3) return;
  timeline.pointer = pointOf(event);
  const found = spanAt(timeline.pointer.left, timeline.pointer.top);
  if (found && !isHost(found.row)) selectKernel(found.row.index[found.span]);
  else selectKernel(-1);
}

function startTimeline() {
  const canvas = byId("timeline");
  canvas.addEventListener("wheel", onWheel, { passive: false });
  canvas.addEventListener("pointerdown", (event) => {
    pointers.set(event.pointerId, { ...pointOf(event), moved: 0 });
    canvas.setPointerCapture(event.pointerId);
    canvas.classList.add("dragging");
  });
  canvas.addEventListener("pointermove", onMove);
  for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, onUp);
  canvas.addEventListener("pointerleave", () => { timeline.pointer = null; redraw(); });
  canvas.addEventListener("dblclick", (event) => {
    const found = spanAt(pointOf(event).left, pointOf(event).top);
    if (found) look(found.row.start[found.span] - 0.2 * found.row.duration[found.span], found.row.stop[found.span] + 0.2 * found.row.duration[found.span]);
  });
  canvas.addEventListener("keydown", (event) => {
    if (event.key === "Escape") selectKernel(-1);
    if (!KEYS[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    MOVES[KEYS[event.key]]();
  });
  for (const button of document.querySelectorAll("[data-move]")) button.addEventListener("click", () => MOVES[button.dataset.move]());
}
