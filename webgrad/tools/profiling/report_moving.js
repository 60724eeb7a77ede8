// The timeline moved and pointed at: wheel, fingers, mouse, keys and buttons.

const pointers = new Map();

function look(from, to) {
  const part = Math.min(timeline.end, Math.max(LEAST_VIEW, to - from));
  timeline.from = Math.min(Math.max(0, from), timeline.end - part);
  timeline.to = timeline.from + part;
  redraw();
}

function zoom(factor, around) {
  const time = timeline.from + around * (timeline.to - timeline.from);
  const part = (timeline.to - timeline.from) * factor;
  look(time - around * part, time + (1 - around) * part);
}

function pan(share) {
  const step = share * (timeline.to - timeline.from);
  look(timeline.from + step, timeline.to + step);
}

const MOVES = {
  left: () => pan(-0.25),
  right: () => pan(0.25),
  in: () => zoom(0.5, 0.5),
  out: () => zoom(2, 0.5),
  all: () => look(0, timeline.end),
};
const KEYS = { "+": "in", "=": "in", "-": "out", "−": "out", ArrowLeft: "left", ArrowRight: "right", 0: "all" };

// The row and span under a point, with half a pixel's and then three pixels' patience for narrow ones.
function spanAt(left, top) {
  const row = timeline.rows.find((each) => top >= each.top && top < each.top + ROW);
  if (!row) return null;
  const scale = (timeline.to - timeline.from) / byId("timeline").clientWidth;
  const time = timeline.from + left * scale;
  for (const patience of [0, 0.5 * scale, 3 * scale]) {
    const after = firstAfter(row.start, time + patience);
    for (let span = firstAfter(row.latest, time - patience); span < after; span += 1) {
      const wanted = selected.kernel < 0 || patience === 0 || isSelected(row, span);
      if (wanted && row.stop[span] >= time - patience) return { row, span };
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
  const duration = row.duration[span];
  const moment = momentText(row.start[span], duration || 1);
  const about = (isHost(row) ? stages : kernels)[row.index[span]] || {};
  const when = microsecondsText(duration) + " at " + moment + ", " + data.tracks[row.track];
  return [data.names[row.name[span]], when, about.line, (about.ops || []).join(" → "), about.what].filter(Boolean);
}

function flushLines([time, cause, commands]) {
  const moment = momentText(time, (timeline.to - timeline.from) / 1000);
  return ["Submitted for: " + cause, plural(commands, "command") + " at " + moment];
}

function showTip() {
  const tip = byId("tip");
  const canvas = byId("timeline");
  const point = timeline.pointer;
  const flush = point && flushAt(point.left, point.top);
  const found = point && !flush && spanAt(point.left, point.top);
  tip.hidden = !flush && !found;
  canvas.classList.toggle("over", Boolean(found));
  if (tip.hidden) return;
  const [first, ...more] = flush ? flushLines(flush) : spanLines(found);
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
  const width = byId("timeline").clientWidth;
  const whole = timeline.to - timeline.from >= timeline.end;
  const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
  // With everything in view there is nothing to zoom out of or to move: the page scrolls.
  if (whole && (sideways || event.deltaY > 0) && !event.ctrlKey) return;
  event.preventDefault();
  const unit = event.deltaMode === 1 ? 16 : 1;
  if (sideways) pan((unit * (event.deltaX || event.deltaY)) / width);
  else zoom(Math.exp(unit * event.deltaY * (event.ctrlKey ? 0.01 : 0.002)), pointOf(event).left / width);
}

function onMove(event) {
  const before = pointers.get(event.pointerId);
  const now = pointOf(event);
  const width = byId("timeline").clientWidth;
  timeline.pointer = event.pointerType === "touch" && before ? null : now;
  if (before && pointers.size === 1) {
    before.moved += Math.abs(now.left - before.left);
    if (before.moved > 3) pan((before.left - now.left) / width);
  } else if (before && pointers.size === 2) {
    const [other] = [...pointers].filter(([id]) => id !== event.pointerId).map(([, point]) => point);
    const apart = Math.max(10, Math.abs(before.left - other.left));
    const wanted = Math.max(10, Math.abs(now.left - other.left));
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
  canvas.addEventListener("pointerleave", () => {
    timeline.pointer = null;
    redraw();
  });
  canvas.addEventListener("dblclick", (event) => {
    const found = spanAt(pointOf(event).left, pointOf(event).top);
    if (!found) return;
    const margin = 0.2 * found.row.duration[found.span];
    look(found.row.start[found.span] - margin, found.row.stop[found.span] + margin);
  });
  canvas.addEventListener("keydown", (event) => {
    if (event.key === "Escape") selectKernel(-1);
    if (!KEYS[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    MOVES[KEYS[event.key]]();
  });
  for (const button of document.querySelectorAll("[data-move]"))
    button.addEventListener("click", () => MOVES[button.dataset.move]());
}
