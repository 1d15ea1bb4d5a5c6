/* What the page does: the side, search, mouse and keys. After map_draw.js. */

/* ---- The side ------------------------------------------------------------------------------ */

function stepLink(t) {
  return '<a data-step="' + t + '">' + t + " " + escape_(S.ops[t]) + "</a>";
}

function showChosen() {
  const box = $("detail");
  if (chosen < 0) {
    box.textContent = "Click one in the map or in the list below.";
    return;
  }
  const readers = B.readers[chosen];
  box.innerHTML = describe(chosen) + "<dl><dt>made by</dt><dd>" +
    (B.producer[chosen] < 0 ? "the caller, before the first step" : stepLink(B.producer[chosen])) +
    "</dd><dt>read by</dt><dd>" + (readers.slice(0, 24).map(stepLink).join(", ") || "the caller") +
    (readers.length > 24 ? " and " + (readers.length - 24) + " more" : "") + "</dd></dl>";
}

function showCursor() {
  const t = Math.min(Math.max(cursor, 0), END - 1), list = $("largest");
  if (END === 0) return;
  $("when").textContent = "Step " + t + ": " + bytesText(liveAt(t)) + " alive";
  const again = S.first[t] !== t ? ", again (first at step " + S.first[t] + ")" : "";
  $("step").innerHTML = "<b>" + escape_(S.ops[t]) + "</b> " + escape_(S.name[t]) + again +
    (S.line[t] ? ", " + escape_(place(S.line[t])) : "") +
    (plan.source[S.line[t] - 1] ? "<code>" + escape_(plan.source[S.line[t] - 1].trim()) + "</code>" : "");
  const alive = [];
  for (let i = 0; i < N; i++)
    if (B.root[i] === i && B.from[i] <= t && B.to[i] > t) alive.push(i);
  alive.sort((a, b) => B.bytes[b] - B.bytes[a] || a - b);
  list.textContent = "";
  for (const root of alive.slice(0, 20)) {
    const i = tenant(root, t), item = document.createElement("li");
    item.innerHTML = '<i style="width:' + (100 * B.bytes[root] / B.bytes[alive[0]]).toFixed(1) + "%;background:" +
      style.tone[B.tone[i]] + '"></i><span>\u200e' + escape_(B.name[i]) + "</span><span>" + bytesText(B.bytes[root]) + "</span>";
    item.dataset.buffer = i;
    if (i === chosen) item.className = "chosen";
    list.append(item);
  }
}

/* The value that is in the root's bytes then. */
const tenants = new Map();
for (let i = 0; i < N; i++)
  if (B.root[i] !== i) (tenants.get(B.root[i]) || tenants.set(B.root[i], []).get(B.root[i])).push(i);
function tenant(root, t) {
  let found = root;
  for (const i of tenants.get(root) || [])
    if (B.drawn[i] && B.birth[i] <= t && B.death[i] > t && B.bytes[i] === B.bytes[root]) found = i;
  return found;
}

function choose(i, bring) {
  chosen = i;
  if (i >= 0 && bring) {
    show(i);
    cursor = Math.max(B.producer[i], B.birth[i]);
  }
  showChosen();
  showCursor();
  draw();
}

/* ---- Search -------------------------------------------------------------------------------- */

function search(next) {
  const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) {
    matches = null;
    match = -1;
    $("found").textContent = "";
    draw();
    return;
  }
  const list = [];
  for (let i = 0; i < N; i++) {
    const name = (B.name[i] + " " + B.shape[i] + " " + plan.tones[B.tone[i]].name).toLowerCase();
    if (B.drawn[i] && words.every(word => name.includes(word))) list.push(i);
  }
  matches = new Set(list);
  match = next && list.length ? (match + 1) % list.length : -1;
  $("found").textContent = match < 0 ? list.length + " found" : match + 1 + " of " + list.length;
  if (match >= 0) choose(list[match], true);
  else draw();
}

/* ---- Mouse and keys ------------------------------------------------------------------------ */

/* The last drawn lies on top. A tensor thinner than a pixel is met where it is drawn. */
function pick(px, py) {
  if (px < left || px > size.w - right || py < top_ || py > top_ + size.map) return -1;
  const t = timeAt(px), b = bytesAt(py), slack = (view.y1 - view.y0) / size.map * 0.5;
  let near = -1;
  for (let k = N - 1; k >= 0; k--) {
    const i = plan.order[k];
    if (!visible(i) || t < B.birth[i] || t >= B.end[i]) continue;
    if (b >= B.begin[i] && b < B.begin[i] + B.height[i]) return i;
    if (near < 0 && b >= B.begin[i] - slack && b < B.begin[i] + B.height[i] + slack) near = i;
  }
  return near;
}

function zoom(px, py, fx, fy) {
  const t = timeAt(px), b = bytesAt(py);
  Object.assign(view, {x0: t - (t - view.x0) * fx, x1: t + (view.x1 - t) * fx,
    y0: b - (b - view.y0) * fy, y1: b + (view.y1 - b) * fy});
  draw();
}

let drag = null;
map.addEventListener("pointerdown", e => {
  drag = {x: e.offsetX, y: e.offsetY, view: {...view}, moved: false};
  map.focus();
  try { map.setPointerCapture(e.pointerId); } catch { /* a pointer that is gone */ }
});
map.addEventListener("pointerup", e => {
  if (drag && !drag.moved) {
    if (e.offsetX >= left) cursor = Math.min(Math.max(Math.floor(timeAt(e.offsetX)), 0), END - 1);
    choose(pick(e.offsetX, e.offsetY), false);
  }
  drag = null;
});
map.addEventListener("pointermove", e => {
  if (drag && (drag.moved || Math.hypot(e.offsetX - drag.x, e.offsetY - drag.y) > 3)) {
    drag.moved = true;
    const dx = (drag.x - e.offsetX) / plotWidth() * (drag.view.x1 - drag.view.x0);
    const dy = (e.offsetY - drag.y) / size.map * (drag.view.y1 - drag.view.y0);
    Object.assign(view, {x0: drag.view.x0 + dx, x1: drag.view.x1 + dx, y0: drag.view.y0 + dy, y1: drag.view.y1 + dy});
    tip.style.display = "none";
    draw();
    return;
  }
  hover = pick(e.offsetX, e.offsetY);
  if (chosen < 0 && e.offsetX >= left && e.offsetX <= size.w - right) {
    cursor = Math.min(Math.max(Math.floor(timeAt(e.offsetX)), 0), Math.max(END - 1, 0));
    showCursor();
  }
  if (hover >= 0) {
    tip.innerHTML = describe(hover);
    tip.style.display = "block";
    const w = tip.offsetWidth, h = tip.offsetHeight;
    tip.style.left = (e.clientX + w + 24 > innerWidth ? e.clientX - w - 12 : e.clientX + 14) + "px";
    tip.style.top = Math.max(4, Math.min(e.clientY + 14, innerHeight - h - 8)) + "px";
  } else {
    tip.style.display = "none";
  }
  drawOver();
});
map.addEventListener("pointerleave", () => {
  hover = -1;
  tip.style.display = "none";
  drawOver();
});
map.addEventListener("wheel", e => {
  e.preventDefault();
  const delta = e.deltaY || e.deltaX, f = Math.exp(Math.sign(delta) * Math.min(Math.abs(delta), 120) * 0.0025);
  zoom(e.offsetX, e.offsetY, e.shiftKey && !e.ctrlKey ? 1 : f, e.shiftKey || e.ctrlKey ? f : 1);
}, {passive: false});
map.addEventListener("dblclick", showAll);

document.addEventListener("keydown", e => {
  if (e.target === $("search")) {
    if (e.key === "Enter") search(true);
    if (e.key === "Escape") { $("search").value = ""; search(false); map.focus(); }
    return;
  }
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  const middle = [left + plotWidth() / 2, top_ + size.map / 2];
  const keys = {
    "/": () => $("search").focus(),
    "0": showAll,
    "+": () => zoom(...middle, 0.7, 1), "=": () => zoom(...middle, 0.7, 1), "-": () => zoom(...middle, 1.4, 1),
    Escape: () => choose(-1, false),
    ArrowLeft: () => { cursor = Math.max(cursor - 1, 0); showCursor(); drawOver(); },
    ArrowRight: () => { cursor = Math.min(cursor + 1, END - 1); showCursor(); drawOver(); },
  };
  if (!keys[e.key]) return;
  e.preventDefault();
  keys[e.key]();
});

$("search").addEventListener("input", () => search(false));
$("reset").addEventListener("click", showAll);
$("theme").addEventListener("click", () => {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  refresh();
});
$("largest").addEventListener("click", e => {
  const item = e.target.closest("li");
  if (item) { const kept = cursor; chosen = +item.dataset.buffer; show(chosen); cursor = kept; choose(chosen, false); }
});
$("detail").addEventListener("click", e => {
  const link = e.target.closest("a");
  if (link) { cursor = +link.dataset.step; showCursor(); drawOver(); }
});

/* ---- Begin --------------------------------------------------------------------------------- */

function refresh() {
  readStyle();
  showCursor();
  draw();
}

$("name").textContent = plan.name + ": memory map";
$("facts").textContent = [END + " steps", N + " buffers", "arena " + bytesText(plan.arena),
  plan.budget ? "budget " + bytesText(plan.budget) : "", plan.floor ? "no order needs less than " + bytesText(plan.floor) : "",
  plan.recomputed ? plan.recomputed + " steps compute again" : "",
  plan.extraTime ? plan.extraTime.toFixed(2) + "% extra time in a " + plan.extraOf : ""].filter(Boolean).join("  \u00b7  ");
plan.tones.forEach((tone, k) => {
  const count = B.tone.reduce((sum, t, i) => sum + (t === k && B.root[i] === i), 0);
  if (!count && !B.tone.includes(k)) return;
  const label = document.createElement("label");
  label.innerHTML = '<input type="checkbox" checked><i data-tone="' + k + '"></i>' + tone.plural + " (" + count + ")";
  label.firstChild.addEventListener("change", e => {
    shown[k] = e.target.checked;
    label.className = shown[k] ? "" : "off";
    draw();
  });
  $("legend").append(label);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", refresh);
new ResizeObserver(resize).observe($("frame"));
Object.assign(view, {x0: 0, x1: Math.max(END, 1), y0: 0, y1: plan.top});
readStyle();
resize();
showChosen();
showCursor();
