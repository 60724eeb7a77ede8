// The timeline drawn: spans on rows, flush marks above them, over a time axis that the memory plot shares.
// Spans narrower than a pixel are gathered: their pixel shows how much of it each colour covers, as a stack.

const ROW = data.rows.length > 6 ? 18 : 28;
const HEAD = 20;
const LEAST_SEEN = 3;
const AXIS = 22;
const MARKS = 16;
const PLOT = 150;
const LEAST_VIEW = 0.5;
const timeline = { from: 0, to: 1, end: 1, rows: [], height: 0, drawn: 0, pointer: null, waiting: false };

function prepareRows() {
  let top = AXIS + (data.flushes.length ? MARKS : 0),
    track = -1;
  for (const row of data.rows) {
    if (row.track !== track) {
      track = row.track;
      top += HEAD;
    }
    const start = Float64Array.from(row.start);
    const stop = start.map((each, index) => each + row.duration[index]);
    // The latest end so far grows, so that the first visible span is found by halving even where spans overlap.
    const latest = stop.slice();
    for (let index = 1; index < latest.length; index += 1) latest[index] = Math.max(latest[index], latest[index - 1]);
    const first = timeline.rows.every((each) => each.track !== row.track);
    timeline.rows.push({ ...row, start, stop, latest, top, first });
    top += ROW;
  }
  timeline.height = Math.max(top, AXIS + HEAD) + 8;
  timeline.end = data.end > 0 ? data.end : 1;
  timeline.to = timeline.end;
}

function firstAfter(sorted, value) {
  let low = 0,
    high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] > value) high = middle;
    else low = middle + 1;
  }
  return low;
}

function isHost(row) {
  return data.tracks[row.track] === "host";
}

// The place of a span's colour in COLOURS; what is not selected fades.
function shadeOf(row, span) {
  if (selected.kernel >= 0 && !isSelected(row, span)) return FADED;
  return isHost(row) ? stageShade(row.index[span]) : kernelShade(row.index[span]);
}

function isSelected(row, span) {
  return !isHost(row) && row.index[span] === selected.kernel;
}

// A canvas's context, with its memory as large as its place on this screen.
function surface(canvas, height) {
  const width = canvas.parentElement.clientWidth;
  const ratio = window.devicePixelRatio || 1;
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

function place(time, width) {
  return ((time - timeline.from) / (timeline.to - timeline.from)) * width;
}

function tickStep(width) {
  const rough = ((timeline.to - timeline.from) / width) * 110;
  const power = 10 ** Math.floor(Math.log10(rough));
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
    const text = momentText(time, step);
    const left = place(time, width) + 4;
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
  const text = data.names[row.name[span]];
  const room = Math.floor((width - 8) / 6.6);
  const shade = shadeOf(row, span);
  if (room < 3) return;
  context.fillStyle = shade === FADED ? paint("var(--quiet)") : inkOn(paint(COLOURS[shade]));
  const shown = text.length > room ? text.slice(0, room - 1) + "…" : text;
  context.fillText(shown, left + 4, row.top + ROW / 2 - 0.5, width - 6);
}

function drawWide(context, row, span, left, right, width) {
  const first = Math.max(left, -1);
  const wide = Math.min(right, width + 1) - first;
  drawBox(context, shadeOf(row, span), first, row.top, Math.max(1, wide - (wide > 3 ? 1 : 0)), ROW - 2);
  if (wide > 28) drawLabel(context, row, span, Math.max(left, 0), Math.min(right, width) - Math.max(left, 0));
}

// One pixel of gathered spans: from below, each colour by what it covers, the selected kernel always visible.
function drawGathered(context, row, pixel, covered) {
  const whole = covered.reduce((total, each) => total + each, 0);
  const room = (ROW - 2) / Math.max(1, whole);
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
  const scale = width / (timeline.to - timeline.from);
  const covered = new Float64Array(COLOURS.length);
  let pixel = NaN;
  const after = firstAfter(row.start, timeline.to);
  for (let span = firstAfter(row.latest, timeline.from); span < after; span += 1) {
    const left = (row.start[span] - timeline.from) * scale;
    const right = (row.stop[span] - timeline.from) * scale;
    if (right - left >= 1) {
      drawWide(context, row, span, left, right, width);
      continue;
    }
    const here = Math.floor(left);
    if (here !== pixel) {
      drawGathered(context, row, pixel, covered);
      pixel = here;
    }
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
  byId("shown").textContent = shownText();
}

function shownText() {
  const part = timeline.to - timeline.from;
  const whole = microsecondsText(timeline.end);
  if (part >= timeline.end) return "All " + whole + " are shown.";
  return momentText(timeline.from, part / 100) + " to " + momentText(timeline.to, part / 100) + " of " + whole;
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
