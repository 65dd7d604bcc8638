// The charts: drawn anew from their specifications where something was chosen, or somebody points at them.
const specifications = JSON.parse(document.getElementById("charts")?.textContent ?? "{}");
const MOST_DOTS = 1500, MOST_INTERVALS = 80;
const drawnAs = {};
const {config, colours: COLOURS, grey: GREY, families = {}} = JSON.parse(document.getElementById("look")?.textContent ?? "{}");
const copy = place => specifications[place] && {...structuredClone(specifications[place]), config};
async function draw(place, specification) {
  const box = document.getElementById(place);
  if (!box || typeof vegaEmbed === "undefined") return;
  drawnAs[place] = specification;
  const stage = document.createElement("div");
  const actions = {export: true, source: false, compiled: false, editor: false};
  const result = await vegaEmbed(stage, specification, {mode: "vega-lite", ast: true, renderer: "svg", actions,
    downloadFileName: place, tooltip: {theme: "custom"}});
  if (drawnAs[place] !== specification) return result.finalize();
  box.vega?.finalize();
  box.vega = result;
  box.setAttribute("role", "group"); // there is a menu in it now
  stage.querySelector("svg.marks")?.setAttribute("aria-hidden", true); // the box has a name, and its numbers below
  stage.querySelector("summary")?.setAttribute("aria-label", "save this picture");
  box.replaceChildren(stage);
  result.view.addEventListener("click", (_, item) => chosen(place, item?.datum));
}
for (const box of document.querySelectorAll(".plot")) {
  let drawing;
  const start = () => drawing ??= drawnAs[box.id] ? null : draw(box.id, copy(box.id));
  box.addEventListener("pointerenter", start, {once: true});
  // A finger's first touch finds the picture that the page came with, which knows no rows.
  box.addEventListener("click", async ({clientX, clientY}) => {
    if (box.vega) return;
    await start();
    document.elementFromPoint(clientX, clientY)?.dispatchEvent(new MouseEvent("click", {bubbles: true, clientX, clientY}));
  });
}

// The charts of the screen in front.
const layer = (specification, name) => specification.layer.find(one => one.name === name);
function fill(specification, rows, names, colours) {
  for (const name of ["interval", "line", "dashed", "dots"]) {
    const one = layer(specification, name);
    if (!one) continue;
    one.data.values = rows[name] ?? [];
    one.encoding.color.scale = {domain: names, range: colours};
    if (one.encoding.shape) one.encoding.shape.scale = {domain: names, range: names.map((_, at) => at < 8 ? "circle" : "diamond")};
  }
}
function hue(names, known) {
  const other = COLOURS.filter(colour => !known.range.includes(colour));
  return names.map(name => known.range[known.domain.indexOf(name)] ?? other.shift() ?? COLOURS[0]);
}
function scatter(screen, rows) {
  const specification = copy(`${screen.id}-scatter`);
  const known = layer(specification, "dots").encoding.color.scale, line = known.domain[0];
  const families = state.family ? [state.family] : known.domain.slice(1);
  const points = rows.filter(row => families.includes(value(row, "family")) && value(row, "held_out") === "yes")
    .map(row => ({row, x: number(value(row, "measured")), y: number(value(row, "predicted"))})).filter(({x, y}) => x > 0 && y > 0);
  const step = Math.ceil(points.length / MOST_DOTS) || 1;
  const dots = points.filter((_, at) => at % step === 0).map(({row, x, y}) => ({s: value(row, "family"), x, y,
    low: number(value(row, "predicted_low")), high: number(value(row, "predicted_high")), point: value(row, "point"),
    t: `${value(row, "operation")} ${value(row, "alternative")}, ${size(row)}, ${value(row, "layout")}, ${bytesText(number(value(row, "bytes")))}`}));
  const names = [line, ...families];
  const interval = dots.length <= MOST_INTERVALS ? dots.filter(dot => dot.low > 0 && dot.high > 0) : [];
  fill(specification, {line: layer(specification, "line").data.values, dots, interval}, names, [GREY, ...hue(families, known)]);
  caption(screen, "scatter", `Predicted over measured${about()}: ${points.length.toLocaleString("en")} predictions`,
    `${interval.length ? "With 95 % intervals. " : ""}${step > 1 ? `One of every ${step} points drawn.` : "All points drawn."}`);
  draw(`${screen.id}-scatter`, specification);
}
function times(screen, every) {
  // The job that is asked for, else the largest one of its operation, which has the most sizes.
  const rows = every.filter(row => accepts(row, ["bytes", "family", "alternative", "point"]) && number(value(row, "measured")) > 0 && number(value(row, "bytes")) > 0);
  const jobs = Map.groupBy(rows, row => `${value(row, "operation")}, ${size(row)}`);
  const spread = key => new Set(jobs.get(key).map(row => value(row, "bytes"))).size * 1e6 + number(size(jobs.get(key)[0]).split(" ")[0]);
  const job = [...jobs.keys()].sort((a, b) => spread(b) - spread(a))[0];
  if (!job) return caption(screen, "times", `Time over size${about()}: nothing was measured`);
  const own = jobs.get(job), several = new Set(own.map(row => value(row, "layout"))).size > 1;
  const way = row => value(row, "alternative") + (several ? `, ${value(row, "layout")}` : "");
  const family = state.family || nearest(own);
  const library = row => value(row, "kind") === "library";
  const ways = [...new Set([...own.filter(row => !library(row)), ...own.filter(library)].map(way))];
  const owned = new Set(own.filter(library).map(way)), line = [], interval = [], dashed = [], seen = new Set();
  for (const row of own) {
    const x = number(value(row, "bytes")), dot = {s: way(row), x, y: number(value(row, "measured")), point: value(row, "point"), t: bytesText(x)};
    const [low, high] = ["measured_low", "measured_high"].map(key => number(value(row, key)));
    if (!seen.has(value(row, "point"))) line.push(dot), interval.push({...dot, low, high});
    seen.add(value(row, "point"));
    const predicted = number(value(row, "predicted"));
    if (value(row, "family") === family && predicted > 0) dashed.push({s: way(row), x, y: predicted});
  }
  const order = (a, b) => ways.indexOf(a.s) - ways.indexOf(b.s) || a.x - b.x;
  const specification = copy(`${screen.id}-times`), first = specification.layer[0].encoding;
  fill(specification, {line: line.sort(order), dots: line, interval, dashed: dashed.sort(order)}, ways, ways.map((name, at) => owned.has(name) ? GREY : COLOURS[at % COLOURS.length]));
  const domain = (list, low = Math.min(...list), high = Math.max(...list)) => [low / 1.15, high * 1.15];
  const sizes = [...new Set(line.map(dot => dot.x))].sort((a, b) => a - b);
  first.x.scale.domain = domain(sizes);
  first.x.axis.values = sizes;
  first.x.axis.labelExpr = sizes.map(count => `datum.value == ${count} ? '${bytesText(count)}' : `).join("") + "''";
  first.y.scale.domain = domain([...line, ...dashed].map(dot => dot.y));
  first.y.axis.values = decades(first.y.scale.domain);
  caption(screen, "times", `Time over size: ${job}`, `Solid: measured, with 95 % intervals. Dashed: predicted by ${family}.`);
  draw(`${screen.id}-times`, specification);
}
// Powers of ten, and 2 and 5 times these where there would be few.
function decades([low, high]) {
  const steps = Math.log10(high / low) < 2.5 ? [1, 2, 5] : [1], ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++)
    ticks.push(...steps.map(step => Number(`${step}e${power}`)));
  return ticks.filter(tick => tick >= low && tick <= high);
}
// The model with the lowest mean μ at these points, of those that predict most of them.
function nearest(rows) {
  const errors = Map.groupBy(rows.filter(row => value(row, "held_out") === "yes" && !isNaN(number(value(row, "mu")))), row => value(row, "family"));
  const most = Math.max(0, ...[...errors.values()].map(some => some.length));
  const mean = some => some.reduce((sum, row) => sum + number(value(row, "mu")), 0) / some.length;
  const able = [...errors].filter(([, some]) => some.length >= 0.8 * most);
  return able.sort(([, one], [, other]) => mean(one) - mean(other))[0]?.[0] ?? "";
}
const about = () => { const set = Object.keys(FILTERS).map(key => state[key]).filter(Boolean); return set.length ? ` (${set.join(", ")})` : ""; };
function caption(screen, name, text, note) {
  const place = screen.querySelector(`figure.${name} figcaption`), small = place.querySelector("small");
  const badge = screen.querySelector(".badge") ? " (simulated)" : "";
  place.querySelector("span").textContent = text + badge;
  if (note && !small) place.append(Object.assign(document.createElement("small"), {textContent: note}));
  else if (note) small.textContent = note;
}
function map(screen, name) {
  const specification = copy(`${screen.id}-${name}`);
  if (!specification) return;
  const [cells] = specification.layer.filter(one => one.data.name === "cells");
  for (const cell of cells.data.values) {
    const apart = cell.picks.some(([key, text]) => key !== "bytes" && state[key] && !same(key, state[key], text) && state[key] !== text);
    const bytes = cell.picks.some(([key, text]) => key === "bytes" && state.bytes && state.bytes !== text);
    cell.o = apart || bytes ? 0.3 : 1;
  }
  draw(`${screen.id}-${name}`, specification);
}
