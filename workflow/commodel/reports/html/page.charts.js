// The charts: drawn again from their specifications if a filter changes, or if the pointer enters them.
const specifications = JSON.parse(document.getElementById("charts")?.textContent ?? "{}");
const MAX_DOTS = 1500, MAX_INTERVALS = 80;
const currentSpecifications = {};
const {config, colours: COLOURS, grey: GREY, families = {}} = JSON.parse(document.getElementById("look")?.textContent ?? "{}");
const copySpecification = id => specifications[id] && {...structuredClone(specifications[id]), config};
async function draw(id, specification) {
  const box = document.getElementById(id);
  if (!box || typeof vegaEmbed === "undefined") return;
  currentSpecifications[id] = specification;
  const stage = document.createElement("div");
  const actions = {export: true, source: false, compiled: false, editor: false};
  const result = await vegaEmbed(stage, specification, {mode: "vega-lite", ast: true, renderer: "svg", actions,
    downloadFileName: id, tooltip: {theme: "custom"}});
  if (currentSpecifications[id] !== specification) return result.finalize();
  box.vega?.finalize();
  box.vega = result;
  box.setAttribute("role", "group"); // the box now contains a menu
  stage.querySelector("svg.marks")?.setAttribute("aria-hidden", true); // the box has a label, and its numbers are a table below
  stage.querySelector("summary")?.setAttribute("aria-label", "save this picture");
  box.replaceChildren(stage);
  result.view.addEventListener("click", (_, item) => filterByClick(id, item?.datum));
}
for (const box of document.querySelectorAll(".plot")) {
  let drawing;
  const start = () => drawing ??= currentSpecifications[box.id] ? null : draw(box.id, copySpecification(box.id));
  box.addEventListener("pointerenter", start, {once: true});
  // On a touch screen, the first touch meets the static picture, which has no data: draw the chart, then repeat the click.
  box.addEventListener("click", async ({clientX, clientY}) => {
    if (box.vega) return;
    await start();
    document.elementFromPoint(clientX, clientY)?.dispatchEvent(new MouseEvent("click", {bubbles: true, clientX, clientY}));
  });
}

// The charts of the visible first screen.
const findLayer = (specification, name) => specification.layer.find(layer => layer.name === name);
function fillLayers(specification, rows, names, colours, symbols = {}) {
  for (const name of ["interval", "wide", "line", "dashed", "dots"]) {
    const layer = findLayer(specification, name);
    if (!layer) continue;
    layer.data.values = rows[name] ?? [];
    layer.encoding.color.scale = {domain: names, range: colours};
    if (layer.encoding.shape) layer.encoding.shape.scale = {domain: names, range: names.map((text, index) => symbols[text] ?? (index < 8 ? "circle" : "diamond"))};
  }
}
// Return the colour of each name: that of the scale, or one that the scale does not use.
function chooseColours(names, scale) {
  const unused = COLOURS.filter(colour => !scale.range.includes(colour));
  return names.map(name => scale.range[scale.domain.indexOf(name)] ?? unused.shift() ?? COLOURS[0]);
}
function drawScatter(screen, rows) {
  const specification = copySpecification(`${screen.id}-scatter`);
  const scale = findLayer(specification, "dots").encoding.color.scale, identity = scale.domain[0];
  const shownModels = state.model ? [state.model] : scale.domain.slice(1);
  const points = rows.filter(row => shownModels.includes(value(row, "model")) && value(row, "held_out") === "yes")
    .map(row => ({row, x: number(value(row, "measured")), y: number(value(row, "seconds"))})).filter(({x, y}) => x > 0 && y > 0);
  const step = Math.ceil(points.length / MAX_DOTS) || 1;
  const dots = points.filter((_, index) => index % step === 0).map(({row, x, y}) => ({s: value(row, "model"), x, y,
    low: number(value(row, "low")), high: number(value(row, "high")), point: value(row, "point"),
    t: `${value(row, "operation")} ${value(row, "alternative")}, ${extentText(row)}, ${value(row, "layout")}, ${bytesText(number(value(row, "bytes")))}`}));
  const names = [identity, ...shownModels];
  const hasAllIntervals = dots.length <= MAX_INTERVALS;
  const interval = dots.filter(dot => (hasAllIntervals || dot.s === "recommended") && dot.low > 0 && dot.high > 0);
  fillLayers(specification, {line: findLayer(specification, "line").data.values, dots, interval}, names, [GREY, ...chooseColours(shownModels, scale)], {[identity]: "stroke"});
  setCaption(screen, "scatter", `Predicted over measured${describeFilters()}: ${points.length.toLocaleString("en")} predictions`,
    `${interval.length ? `With 95 % intervals${hasAllIntervals ? "" : " of the recommended prediction"}. ` : ""}${step > 1 ? `One of every ${step} points drawn.` : "All points drawn."}`);
  draw(`${screen.id}-scatter`, specification);
}
function drawTimes(screen, platformRows) {
  // The workload that the filters select; else the one with the most sizes, and among those the most ranks.
  const rows = platformRows.filter(row => passesFilters(row, ["bytes", "model", "alternative", "point"]) && number(value(row, "measured")) > 0 && number(value(row, "bytes")) > 0);
  const workloads = Map.groupBy(rows, row => `${value(row, "operation")}, ${extentText(row)}`);
  const priority = key => new Set(workloads.get(key).map(row => value(row, "bytes"))).size * 1e6 + number(extentText(workloads.get(key)[0]).split(" ")[0]);
  const workload = [...workloads.keys()].sort((a, b) => priority(b) - priority(a))[0];
  if (!workload) return setCaption(screen, "times", `Time over size${describeFilters()}: nothing was measured`);
  const workloadRows = workloads.get(workload), severalLayouts = new Set(workloadRows.map(row => value(row, "layout"))).size > 1;
  const isDefault = row => value(row, "kind") === "library";
  const nameAlternative = row => (isDefault(row) ? "MPI default" : value(row, "alternative")) + (severalLayouts ? `, ${value(row, "layout")}` : "");
  const model = state.model || findBestModel(workloadRows);
  const alternatives = [...new Set([...workloadRows.filter(row => !isDefault(row)), ...workloadRows.filter(isDefault)].map(nameAlternative))];
  const defaults = new Set(workloadRows.filter(isDefault).map(nameAlternative)), line = [], interval = [], dashed = [], drawnPoints = new Set();
  for (const row of workloadRows) {
    const x = number(value(row, "bytes")), dot = {s: nameAlternative(row), x, y: number(value(row, "measured")), point: value(row, "point"), t: bytesText(x)};
    const [low, high] = ["measured_low", "measured_high"].map(key => number(value(row, key)));
    if (!drawnPoints.has(value(row, "point"))) line.push(dot), interval.push({...dot, low, high});
    drawnPoints.add(value(row, "point"));
    const predicted = number(value(row, "seconds"));
    if (value(row, "model") === model && predicted > 0) dashed.push({s: nameAlternative(row), x, y: predicted});
  }
  const order = (a, b) => alternatives.indexOf(a.s) - alternatives.indexOf(b.s) || a.x - b.x;
  const specification = copySpecification(`${screen.id}-times`), first = specification.layer[0].encoding;
  const wide = line.sort(order).filter(dot => defaults.has(dot.s)), predicted = new Set(dashed.map(dot => dot.s));
  const thin = line.filter(dot => !defaults.has(dot.s) && !predicted.has(dot.s));
  fillLayers(specification, {wide, line: thin, dots: line, interval, dashed: dashed.sort(order)}, alternatives, alternatives.map((name, index) => defaults.has(name) ? GREY : COLOURS[index % COLOURS.length]),
    Object.fromEntries([...defaults].map(name => [name, "square"])));
  const domain = (list, low = Math.min(...list), high = Math.max(...list)) => [low / 1.15, high * 1.15];
  const sizes = [...new Set(line.map(dot => dot.x))].sort((a, b) => a - b);
  first.x.scale.domain = domain(sizes);
  first.x.axis.values = sizes;
  first.x.axis.labelExpr = sizes.map(count => `datum.value == ${count} ? '${bytesText(count)}' : `).join("") + "''";
  first.y.scale.domain = domain([...line, ...dashed].map(dot => dot.y));
  first.y.axis.values = listTicks(first.y.scale.domain);
  setCaption(screen, "times", `Time over size: ${workload}`, `Dots: measured, with 95 % intervals.${dashed.length ? ` Dashed: predicted by ${model}.` : ""}`);
  draw(`${screen.id}-times`, specification);
}
// Return powers of ten as ticks; over a short range, also 2 and 5 times these.
function listTicks([low, high]) {
  const steps = Math.log10(high / low) < 2.5 ? [1, 2, 5] : [1], ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++)
    ticks.push(...steps.map(step => Number(`${step}e${power}`)));
  return ticks.filter(tick => tick >= low && tick <= high);
}
// Return the model with the lowest mean μ at these points, among those that predict at least 80 % as many as any.
function findBestModel(rows) {
  const errors = Map.groupBy(rows.filter(row => value(row, "held_out") === "yes" && !isNaN(number(value(row, "mu")))), row => value(row, "model"));
  const maxPoints = Math.max(0, ...[...errors.values()].map(group => group.length));
  const mean = group => group.reduce((sum, row) => sum + number(value(row, "mu")), 0) / group.length;
  const eligible = [...errors].filter(([, group]) => group.length >= 0.8 * maxPoints);
  return eligible.sort(([, one], [, other]) => mean(one) - mean(other))[0]?.[0] ?? "";
}
const describeFilters = () => { const texts = Object.keys(FILTERS).map(key => state[key]).filter(Boolean); return texts.length ? ` (${texts.join(", ")})` : ""; };
function setCaption(screen, name, text, note) {
  const figcaption = screen.querySelector(`figure.${name} figcaption`), small = figcaption.querySelector("small");
  const badge = screen.querySelector(".badge") ? " (simulated)" : "";
  figcaption.querySelector("span").textContent = text + badge;
  if (note && !small) figcaption.append(Object.assign(document.createElement("small"), {textContent: note}));
  else if (note) small.textContent = note;
}
function drawMap(screen, name) {
  const specification = copySpecification(`${screen.id}-${name}`);
  if (!specification) return;
  const cells = specification.layer.find(layer => layer.data.name === "cells");
  for (const cell of cells.data.values) {
    const otherRow = cell.filters.some(([key, text]) => key !== "bytes" && state[key] && !matches(key, state[key], text) && state[key] !== text);
    const otherSize = cell.filters.some(([key, text]) => key === "bytes" && state.bytes && state.bytes !== text);
    cell.opacity = otherRow || otherSize ? 0.3 : 1;
  }
  draw(`${screen.id}-${name}`, specification);
}
