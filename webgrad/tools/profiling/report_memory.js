// The memory plot under the timeline, the causes of flushes, and what starts the page.

const OF_DEVICES = [
  { label: "live", column: 1, colour: "#4c78a8", dash: [], filled: true },
  { label: "pooled", column: 2, colour: "#e45756", dash: [6, 3], filled: false },
];
const OF_PROCESS = { label: "process", column: 1, colour: "#9d755d", dash: [2, 3], filled: false };
const series = [];

function prepareMemory() {
  const names = Object.keys(data.memory).filter((name) => name !== "process");
  for (const [order, device] of names.entries()) {
    for (const kind of OF_DEVICES) {
      const label = names.length > 1 ? device + " " + kind.label : kind.label;
      const colour = order ? PALETTE[(2 * order + kind.column) % PALETTE.length] : kind.colour;
      series.push({ ...kind, label, colour, points: data.memory[device] });
    }
  }
  if (data.memory.process) series.push({ ...OF_PROCESS, points: data.memory.process });
  for (const each of series) {
    each.times = Float64Array.from(each.points, (point) => point[0]);
    each.most = each.points.reduce((most, point) => Math.max(most, point[each.column]), 0);
  }
  // A process that is much larger than what lies on the devices would make flat lines of them.
  const devices = Math.max(0, ...series.filter((each) => each.label !== "process").map((each) => each.most));
  for (const each of series) each.shown = each.label !== "process" || !devices || each.most <= 2 * devices;
}

function showLegend() {
  byId("memory-part").hidden = series.every((each) => each.points.length === 0);
  byId("legend").append(
    ...series
      .filter((each) => each.points.length)
      .map((each) => {
        const box = element("input", { type: "checkbox" });
        box.checked = each.shown;
        box.addEventListener("change", () => {
          each.shown = box.checked;
          redraw();
        });
        return element("label", {}, box, coloured(element("span", { class: "swatch" }), each.colour), each.label);
      }),
  );
  const peak = series.map((each) => each.label + " at most " + bytesText(each.most));
  byId("memory").setAttribute("aria-label", "Memory over time: " + peak.join(", "));
}

// The values of one series as steps, a minimum and a maximum for each pixel.
function steps(each, width) {
  const scale = width / (timeline.to - timeline.from);
  const found = [];
  let point = Math.max(0, firstAfter(each.times, timeline.from) - 1),
    last = null;
  for (; point < each.times.length && (each.times[point] < timeline.to || last === null); point += 1) {
    const pixel = Math.max(0, Math.floor((each.times[point] - timeline.from) * scale));
    const value = each.points[point][each.column];
    if (last && last.pixel === pixel) {
      last.low = Math.min(last.low, value);
      last.high = Math.max(last.high, value);
      last.value = value;
    } else {
      last = { pixel, low: value, high: value, value };
      found.push(last);
    }
  }
  return found;
}

function drawSeries(context, each, width, top) {
  const height = (value) => PLOT - 4 - (value / top) * (PLOT - 24);
  const found = steps(each, width);
  if (!found.length) return;
  context.beginPath();
  found.forEach((step, order) => {
    if (order) context.lineTo(step.pixel, height(found[order - 1].value));
    else context.moveTo(step.pixel, height(step.value));
    for (const value of [step.low, step.high, step.value]) context.lineTo(step.pixel, height(value));
  });
  const end = Math.min(width, place(timeline.end, width));
  context.lineTo(end, height(found[found.length - 1].value));
  context.strokeStyle = each.colour;
  context.lineWidth = 1.75;
  context.setLineDash(each.dash);
  context.stroke();
  context.setLineDash([]);
  if (!each.filled) return;
  context.lineTo(end, PLOT);
  context.lineTo(found[0].pixel, PLOT);
  context.globalAlpha = 0.16;
  context.fillStyle = each.colour;
  context.fill();
  context.globalAlpha = 1;
}

function roundedUp(bytes) {
  const power = 10 ** Math.floor(Math.log10(bytes));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((each) => each * power).find((each) => each >= bytes * 0.9999);
}

function drawMemory() {
  if (byId("memory-part").hidden) return;
  const { context, width } = surface(byId("memory"), PLOT);
  drawGrid(context, width, PLOT, false);
  const shown = series.filter((each) => each.shown && each.points.length);
  const top = roundedUp(shown.reduce((most, each) => Math.max(most, each.most), 1));
  for (const each of shown) drawSeries(context, each, width, top);
  for (const part of [1, 0.5]) {
    const height = PLOT - 4 - part * (PLOT - 24);
    context.fillStyle = paint("var(--grid)");
    context.fillRect(0, Math.round(height), width, 1);
    // A rim in the page's colour: lines may pass behind the words.
    context.strokeStyle = paint("var(--card)");
    context.lineWidth = 4;
    context.strokeText(bytesText(part * top), 6, height - 8);
    context.fillStyle = paint("var(--quiet)");
    context.fillText(bytesText(part * top), 6, height - 8);
  }
}

function showMemoryTip(event) {
  const canvas = byId("memory");
  const tip = byId("memory-tip");
  const point = pointOf(event);
  const time = timeline.from + (point.left / canvas.clientWidth) * (timeline.to - timeline.from);
  const lines = series
    .filter((each) => each.shown && each.points.length)
    .map((each) => {
      const at = firstAfter(each.times, time) - 1;
      return each.label + " " + (at < 0 ? "–" : bytesText(each.points[at][each.column]));
    });
  tip.hidden = lines.length === 0;
  const moment = element("strong", {}, "at " + momentText(time, (timeline.to - timeline.from) / 100));
  tip.replaceChildren(moment, ...lines.map((line) => element("div", {}, line)));
  moveTip(tip, canvas, point);
}

function startMemory() {
  byId("memory").addEventListener("pointermove", showMemoryTip);
  byId("memory").addEventListener("pointerleave", () => {
    byId("memory-tip").hidden = true;
  });
}

function showCauses() {
  const causes = Object.entries(data.flush_causes).sort((left, right) => right[1] - left[1]);
  const words = causes.map(([cause, count]) => cause + " " + count.toLocaleString("en")).join(", ");
  byId("causes").textContent = words ? "Submitted (▾ on the timeline) for: " + words + "." : "";
}

function followTheme() {
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  // Paper is light: a canvas keeps the colours it was drawn in.
  window.addEventListener("beforeprint", () => {
    document.documentElement.dataset.theme = "light";
    drawTimeline();
    drawMemory();
  });
  window.addEventListener("afterprint", () => {
    delete document.documentElement.dataset.theme;
    redraw();
  });
}

prepareRows();
prepareMemory();
showFacts();
showTiles();
showWhere();
showLegend();
showCauses();
startTable();
showTable();
startTimeline();
startMemory();
followTheme();
new ResizeObserver(redraw).observe(byId("timeline").parentElement);
redraw();
