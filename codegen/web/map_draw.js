"use strict";
/* Draws the plan: `plan` is what codegen/html.c wrote, columns by buffer and by step. */

const $ = id => document.getElementById(id);
const B = plan.buffers, S = plan.steps, N = B.name.length, END = plan.end;
const map = $("map"), over = $("over"), tip = $("tip");
const pen = map.getContext("2d"), glass = over.getContext("2d");
const left = 78, right = 12, top_ = 22, strip = 18, gap = 44, axis = 20;
const margin = 1.06;

const shown = plan.tones.map(() => true);   // by tone: legend switches
const view = {};                            // x0, x1 in steps; y0, y1 in bytes
let size = {w: 0, h: 0, map: 0, profile: 0};
let hover = -1, chosen = -1, cursor = plan.peakTime, matches = null, match = -1, style = {};

/* ---- Text ---------------------------------------------------------------------------------- */

function bytesText(n) {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let i = 0;
  while (n >= 1024 && i < 5) { n /= 1024; i++; }
  return (i === 0 ? n : n < 100 ? n.toFixed(2) : n.toFixed(1)) + " " + units[i];
}
const hex = n => "0x" + n.toString(16);
const escape_ = text => text.replace(/[&<>"]/g, c => "&#" + c.charCodeAt(0) + ";");
const stepName = t => S.ops[t] + " " + S.name[t];
const place = line => {
  const part = plan.parts.filter(p => p.line <= line).pop() || {file: plan.file, line: 1};
  return line ? part.file + ":" + (line - part.line + 1) : "";
};

function describe(i) {
  const rows = [["kind", plan.tones[B.tone[i]].name]];
  if (B.shape[i]) rows.push(["shape", B.shape[i]]);
  rows.push(["bytes", bytesText(B.bytes[i]) + " (" + B.bytes[i].toLocaleString("en") + ")"]);
  rows.push(["offset", hex(B.offset[i]) + (B.root[i] === i ? "" : ", in the bytes of " + B.name[B.root[i]])]);
  rows.push(["lives", "steps " + B.birth[i] + " to " + (B.death[i] - 1) +
    (B.producer[i] < 0 ? ", persistent" : "")]);
  if (B.line[i]) rows.push(["source", place(B.line[i])]);
  const text = plan.source[B.line[i] - 1];
  return "<b>" + escape_(B.name[i]) + "</b><dl>" +
    rows.map(r => "<dt>" + r[0] + "</dt><dd>" + escape_(r[1]) + "</dd>").join("") + "</dl>" +
    (text ? "<code>" + escape_(text.trim()) + "</code>" : "");
}

/* ---- Scales -------------------------------------------------------------------------------- */

const plotWidth = () => size.w - left - right;
const x = t => left + (t - view.x0) / (view.x1 - view.x0) * plotWidth();
const y = b => top_ + size.map - (b - view.y0) / (view.y1 - view.y0) * size.map;
const timeAt = px => view.x0 + (px - left) / plotWidth() * (view.x1 - view.x0);
const bytesAt = py => view.y0 + (top_ + size.map - py) / size.map * (view.y1 - view.y0);
const profileTop = () => top_ + size.map + strip + gap;
const profileY = b => profileTop() + size.profile - b / plan.top * size.profile;

function clampView() {
  const wide = Math.min(Math.max(view.x1 - view.x0, Math.min(3, END)), END);
  const high = Math.min(Math.max(view.y1 - view.y0, 256), plan.top);
  view.x0 = Math.min(Math.max(view.x0, 0), END - wide);
  view.y0 = Math.min(Math.max(view.y0, 0), plan.top - high);
  view.x1 = view.x0 + wide;
  view.y1 = view.y0 + high;
}

function showAll() {
  Object.assign(view, {x0: 0, x1: Math.max(END, 1), y0: 0, y1: plan.top});
  draw();
}

/* Brings a tensor into sight with some room round it, where it is out of sight or tiny. */
function show(i) {
  const w = B.end[i] - B.birth[i], seen = x(B.end[i]) - x(B.birth[i]), tall = y(B.begin[i]) - y(B.begin[i] + B.height[i]);
  const inside = B.birth[i] >= view.x0 && B.end[i] <= view.x1 && B.begin[i] >= view.y0 && B.begin[i] + B.height[i] <= view.y1;
  if (inside && seen > 14 && tall > 8) return;
  const wide = Math.max(w * 4, 24), high = Math.max(B.height[i] * 8, plan.top / 4096);
  const mx = B.birth[i] + w / 2, my = B.begin[i] + B.height[i] / 2;
  Object.assign(view, {x0: mx - wide / 2, x1: mx + wide / 2, y0: my - high / 2, y1: my + high / 2});
  clampView();
}

/* ---- Live bytes, by kind ------------------------------------------------------------------- */

const live = plan.tones.map(() => new Float64Array(END + 2));
for (let i = 0; i < N; i++)
  if (B.root[i] === i) {
    live[B.tone[i]][B.from[i]] += B.bytes[i];
    live[B.tone[i]][B.to[i]] -= B.bytes[i];
  }
for (const row of live)
  for (let t = 1; t <= END; t++) row[t] += row[t - 1];
const liveAt = t => live.reduce((sum, row) => sum + row[t], 0);

/* ---- Drawing ------------------------------------------------------------------------------- */

function isDark() {
  const set = document.documentElement.dataset.theme;
  return set ? set === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function readStyle() {
  const css = getComputedStyle(document.documentElement), dark = isDark();
  for (const key of ["bg", "plot", "ink", "soft", "line", "held", "peak", "accent", "gap"])
    style[key] = css.getPropertyValue("--" + key).trim();
  style.tone = plan.tones.map(t => dark ? t.dark : t.light);
  style.phase = plan.phases.map(t => dark ? t.dark : t.light);
  document.querySelectorAll("#legend i").forEach((box, k) => box.style.background = style.tone[box.dataset.tone]);
}

function resize() {
  const ratio = devicePixelRatio || 1, w = $("frame").clientWidth, h = $("frame").clientHeight;
  const room = h - top_ - strip - gap - axis;
  size = {w, h, profile: Math.round(room * 0.2), map: Math.round(room * 0.8)};
  for (const canvas of [map, over]) {
    canvas.width = w * ratio;
    canvas.height = h * ratio;
    canvas.getContext("2d").setTransform(ratio, 0, 0, ratio, 0, 0);
  }
  draw();
}

function niceStep(range, count, binary) {
  const raw = range / count;
  if (binary) return Math.max(64, 2 ** Math.ceil(Math.log2(raw)));
  const power = 10 ** Math.floor(Math.log10(raw)), lead = raw / power;
  return Math.max(1, (lead <= 1 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10) * power);
}

function text(string, px, py, color, align, font) {
  pen.fillStyle = color;
  pen.textAlign = align || "left";
  pen.font = (font || "11px") + " system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif";
  pen.fillText(string, px, py);
}

function line(x0, y0, x1, y1, color, dash, width) {
  pen.strokeStyle = color;
  pen.lineWidth = width || 1;
  pen.setLineDash(dash || []);
  pen.beginPath();
  pen.moveTo(x0, y0);
  pen.lineTo(x1, y1);
  pen.stroke();
  pen.setLineDash([]);
}

/* The end of a long name says more than its beginning. */
function fit(name, width) {
  const most = Math.floor(width / 6);
  if (name.length <= most) return name;
  return most < 7 ? "" : "\u2026" + name.slice(name.length - most + 1);
}

function clipped(px, py, w, h, paint) {
  pen.save();
  pen.beginPath();
  pen.rect(px, py, w, h);
  pen.clip();
  paint();
  pen.restore();
}

const dimmed = i => matches && !matches.has(i);
const visible = i => shown[B.tone[i]] && B.drawn[i];

function drawBuffers() {
  const labels = [];
  for (let k = 0; k < N; k++) {
    const i = plan.order[k];
    if (!visible(i)) continue;
    const held = B.shared[i] && B.producer[i] >= 0;
    if (held) box(i, B.from[i], B.to[i], B.offset[i], B.bytes[i], style.held);
  }
  for (let k = 0; k < N; k++) {
    const i = plan.order[k];
    if (!visible(i)) continue;
    pen.globalAlpha = dimmed(i) ? 0.16 : 1;
    const area = box(i, B.birth[i], B.end[i], B.begin[i], B.height[i], style.tone[B.tone[i]]);
    if (area && area.h > 12 && area.w > 34 && !dimmed(i)) labels.push([i, area]);
  }
  pen.globalAlpha = 1;
  for (const [i, area] of labels) {
    const from = Math.max(area.x, left), name = fit(B.name[i], area.x + area.w - from - 8);
    if (name) text(name, from + 4, Math.min(area.y + area.h / 2 + 3.5, Math.max(area.y, top_) + 13), style.ink, "left", "10px");
  }
}

function box(i, birth, death, begin, height, color) {
  if (death < view.x0 || birth > view.x1 || begin + height < view.y0 || begin > view.y1) return null;
  const px = x(birth), w = Math.max(x(death) - px, 0.6), py = y(begin + height), h = Math.max(y(begin) - py, 0.4);
  pen.fillStyle = color;
  pen.fillRect(px, py, w, h);
  if (w > 3 && h > 3) {
    pen.strokeStyle = style.gap;
    pen.lineWidth = 0.8;
    pen.strokeRect(px, py, w, h);
  }
  return {x: px, y: py, w, h};
}

function drawAxes() {
  const bottom = top_ + size.map;
  pen.fillStyle = style.plot;
  pen.fillRect(left, top_, plotWidth(), size.map);
  pen.fillRect(left, profileTop(), plotWidth(), size.profile);
  const step = niceStep(view.y1 - view.y0, 9, true);
  for (let b = Math.ceil(view.y0 / step) * step; b <= view.y1; b += step) {
    line(left - 4, y(b), size.w - right, y(b), style.line);
    text(bytesText(b), left - 8, y(b) + 4, style.soft, "right");
  }
  const coarse = niceStep(plan.top, 3, true);
  for (let b = 0; b <= plan.top; b += coarse) {
    line(left - 4, profileY(b), size.w - right, profileY(b), style.line);
    text(bytesText(b), left - 8, profileY(b) + 4, style.soft, "right");
  }
  const ticks = niceStep(view.x1 - view.x0, 12);
  for (let t = Math.ceil(view.x0 / ticks) * ticks; t < view.x1; t += ticks)
    text(String(t), x(t + 0.5), profileTop() + size.profile + 15, style.soft, "center");
  text("live bytes", left, profileTop() - 6, style.soft);
  text("step", left - 8, profileTop() + size.profile + 15, style.soft, "right");
  return bottom;
}

function drawStrip() {
  const py = top_ + size.map;
  clipped(left, py, plotWidth(), strip + gap, () => {
    for (const [name, phase, from, to] of plan.groups) {
      if (to < view.x0 || from > view.x1) continue;
      const px = Math.max(x(from), left), w = Math.min(x(to), size.w - right) - px;
      pen.fillStyle = style.phase[phase];
      pen.fillRect(x(from) + 0.4, py + 2, x(to) - x(from) - 0.8, strip - 4);
      const label = fit(name, w - 6);
      if (label) text(label, px + w / 2, py + 13, style.ink, "center", "10px");
    }
    for (const p of plan.programs) {
      const px = Math.max(x(p.begin), left), w = Math.min(x(p.begin + p.count), size.w - right) - px;
      const label = fit(p.title + (p.times > 1 ? ", " + p.times + " times" : ""), w);
      if (label) text(label, px + w / 2, py + strip + 13, style.ink, "center");
    }
  });
  for (const p of plan.programs)
    if (p.begin > view.x0 && p.begin < view.x1)
      line(x(p.begin), top_, x(p.begin), profileTop() + size.profile, style.soft, [1.5, 3]);
}

function drawProfile() {
  const bottom = profileTop() + size.profile, from = Math.max(0, Math.floor(view.x0)), to = Math.min(END, Math.ceil(view.x1));
  let low = new Float64Array(END + 2);
  live.forEach((row, tone) => {
    if (!shown[tone]) return;
    const high = low.map((b, t) => b + row[t]);
    pen.fillStyle = style.tone[tone];
    pen.beginPath();
    pen.moveTo(x(from), profileY(low[from]));
    for (let t = from; t < to; t++) {
      pen.lineTo(x(t), profileY(high[t]));
      pen.lineTo(x(t + 1), profileY(high[t]));
    }
    for (let t = to - 1; t >= from; t--) {
      pen.lineTo(x(t + 1), profileY(low[t]));
      pen.lineTo(x(t), profileY(low[t]));
    }
    pen.fill();
    low = high;
  });
  return bottom;
}

function limit(bytes, name, dash, below) {
  if (!bytes) return;
  if (bytes <= plan.top) line(left, profileY(bytes), size.w - right, profileY(bytes), style.ink, dash, 1.1);
  if (bytes < view.y0 || bytes > view.y1) return;
  line(left, y(bytes), size.w - right, y(bytes), style.ink, dash, 1.1);
  text(name + " " + bytesText(bytes), size.w - right - 4, y(bytes) + (below ? 13 : -5), style.ink, "right");
}

function draw() {
  if (!size.w) return;
  clampView();
  pen.clearRect(0, 0, size.w, size.h);
  drawAxes();
  clipped(left, top_, plotWidth(), size.map, drawBuffers);
  drawStrip();
  clipped(left, profileTop(), plotWidth(), size.profile, drawProfile);
  limit(plan.floor, "floor", [1.5, 3], true);
  limit(plan.budget, "budget", [7, 4], false);
  if (plan.budget > plan.top)
    text("\u2191 budget " + bytesText(plan.budget), size.w - right - 4, top_ + 13, style.ink, "right");
  if (END && plan.peakTime >= view.x0 && plan.peakTime < view.x1) {
    const px = x(plan.peakTime + 0.5), label = "peak " + bytesText(plan.peak) + " at step " + plan.peakTime + ", " + S.ops[plan.peakTime];
    line(px, top_ - 4, px, profileTop() + size.profile, style.peak, [3, 2], 1.2);
    text(label, px, top_ - 8, style.peak, px < left + 150 ? "left" : px > size.w - right - 150 ? "right" : "center");
  }
  drawOver();
}

/* What moves with the mouse lies on a canvas of its own: the map is not drawn again for it. */
function drawOver() {
  glass.clearRect(0, 0, size.w, size.h);
  glass.save();
  glass.beginPath();
  glass.rect(left, top_, plotWidth(), size.h - top_);
  glass.clip();
  const bottom = profileTop() + size.profile;
  if (chosen >= 0) {
    glass.globalAlpha = 0.16;
    for (const t of B.readers[chosen]) column(t, style.accent, bottom);
    glass.globalAlpha = 0.2;
    if (B.producer[chosen] >= 0) column(B.producer[chosen], style.peak, bottom);
    glass.globalAlpha = 1;
    for (const i of related(chosen)) outline(i, style.accent, 1.4, [3, 2]);
    outline(chosen, style.accent, 2.5);
  }
  if (hover >= 0) outline(hover, style.ink, 1.6);
  glass.globalAlpha = 0.5;
  glass.fillStyle = style.ink;
  glass.fillRect(x(cursor + 0.5) - 0.5, top_, 1, bottom - top_);
  glass.restore();
}

function column(t, color, bottom) {
  glass.fillStyle = color;
  glass.fillRect(x(t), top_, Math.max(x(t + 1) - x(t), 1.5), bottom - top_);
}

function outline(i, color, width, dash) {
  const px = x(B.birth[i]), py = y(B.begin[i] + B.height[i]);
  glass.strokeStyle = color;
  glass.lineWidth = width;
  glass.setLineDash(dash || []);
  glass.strokeRect(px, py, Math.max(x(B.end[i]) - px, 1), Math.max(y(B.begin[i]) - py, 1));
  glass.setLineDash([]);
}

/* What the readers make of a tensor, and what its producer made it of. */
const made = Array.from({length: END}, () => []), read = Array.from({length: END}, () => []);
for (let i = 0; i < N; i++) {
  if (B.producer[i] >= 0) made[B.producer[i]].push(i);
  for (const t of B.readers[i]) read[t].push(i);
}
function related(i) {
  const all = new Set(B.producer[i] >= 0 ? read[B.producer[i]] : []);
  for (const t of B.readers[i]) made[t].forEach(k => all.add(k));
  all.delete(i);
  return [...all].filter(visible);
}
