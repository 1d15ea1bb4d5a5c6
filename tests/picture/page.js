/* Put into a page by run.sh: uses it as a reader would, and leaves what came of it in the page. */
const results = [];
const check = (name, good) => results.push((good ? "ok: " : "not ok: ") + name);

function at(type, px, py, more) {
  const box = map.getBoundingClientRect();
  const event = type === "wheel" ? WheelEvent : PointerEvent;
  map.dispatchEvent(new event(type, {bubbles: true, cancelable: true, pointerId: 1,
    clientX: box.left + px, clientY: box.top + py, ...more}));
}

/* The largest tensor that nothing else is drawn over, and the middle of it. */
function target() {
  const sizes = [...B.name.keys()].filter(i => B.drawn[i] && B.producer[i] >= 0)
    .sort((a, b) => B.bytes[b] - B.bytes[a]);
  for (const i of sizes) {
    const t = (B.birth[i] + B.end[i]) / 2, b = B.begin[i] + B.height[i] / 2;
    const others = [...B.name.keys()].filter(k => k !== i && B.drawn[k] && B.birth[k] <= t && B.end[k] > t &&
      B.begin[k] <= b && B.begin[k] + B.height[k] > b);
    if (!others.length) return {i, px: x(t), py: y(b)};
  }
}

window.addEventListener("load", () => {
  const {i, px, py} = target();
  at("pointermove", px, py);
  check("a hover shows the tensor under it", tip.style.display === "block" &&
    tip.querySelector("b").textContent === B.name[i] && tip.textContent.includes(B.shape[i]) &&
    tip.textContent.includes(bytesText(B.bytes[i])) && tip.textContent.includes(hex(B.offset[i])));
  check("a hover shows the source", !B.line[i] || tip.textContent.includes(plan.source[B.line[i] - 1].trim()));
  at("pointerdown", px, py);
  at("pointerup", px, py);
  check("a click pins the tensor", chosen === i && $("detail").textContent.includes(B.name[i]));
  check("a click shows who made it", $("detail").querySelector("a").textContent.startsWith(B.producer[i] + " "));
  check("a click shows who reads it", $("detail").querySelectorAll("a").length ===
    1 + Math.min(B.readers[i].length, 24));
  check("the list is of what is alive", $("largest").children.length > 0 &&
    [...$("largest").children].every(li => { const r = B.root[+li.dataset.buffer]; return B.from[r] <= cursor && B.to[r] > cursor; }));
  const sizes = [...$("largest").children].map(li => B.bytes[B.root[+li.dataset.buffer]]);
  check("the list begins with the largest", sizes.every((n, k) => !k || n <= sizes[k - 1]));
  const wide = view.x1 - view.x0;
  at("wheel", px, py, {deltaY: -120});
  check("the wheel zooms", view.x1 - view.x0 < wide || wide <= 3);
  showAll();
  $("search").value = B.name[i];
  $("search").dispatchEvent(new Event("input"));
  check("a search finds the tensor", matches.has(i) && /^[1-9]/.test($("found").textContent));
  $("search").dispatchEvent(new KeyboardEvent("keydown", {key: "Enter", bubbles: true}));
  check("a search goes to what it found", B.name[chosen].includes(B.name[i]) && $("found").textContent.startsWith("1 of"));
  check("the legend has every kind that is there", new Set(B.tone).size === $("legend").children.length);
  const before = map.toDataURL();
  $("theme").click();
  check("the theme changes the colours", before !== map.toDataURL());
  const start = performance.now();
  for (let k = 0; k < 5; k++) draw();
  const milliseconds = (performance.now() - start) / 5;
  check("a drawing of " + N + " buffers takes less than half a second", milliseconds < 500);
  const list = document.createElement("pre");
  list.id = "results";
  list.textContent = results.join("\n") + "\n" + errors.length + " errors " + errors.join("; ") + "\n";
  document.body.append(list);
});
