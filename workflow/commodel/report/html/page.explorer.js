// The first screen: tabs, filters that hold for maps, charts and the table of all rows, and the address that keeps them.
const specifications = JSON.parse(document.getElementById("charts")?.textContent ?? "{}");
const screens = [...document.querySelectorAll(".front")], bar = document.getElementById("bar");
const FILTERS = {operation: "operation", family: "family", size: "ranks", layout: "layout"};
const NAMES = ["platform", ...Object.keys(FILTERS), "choice", "bytes", "point"];
const MOST_DOTS = 1500, MOST_INTERVALS = 80;
const COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7A5C00", "#444444"], GREY = "#777777";
let state = {}, columns = {};

// Charts: drawn anew from their specification, at first when somebody points at them.
const drawnAs = {};
const look = JSON.parse(document.getElementById("look")?.textContent ?? "{}");
const copy = place => specifications[place] && {...structuredClone(specifications[place]), config: look};
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
  box.replaceChildren(stage);
  result.view.addEventListener("click", (_, item) => chosen(place, item?.datum));
}
for (const box of document.querySelectorAll(".plot")) {
  const start = () => drawnAs[box.id] ?? draw(box.id, copy(box.id));
  box.addEventListener("pointerenter", start, {once: true});
}

// Rows of the table, by the keys of their columns.
const value = (row, key) => columns[key] === undefined ? "" : explored.text(row, columns[key]);
const size = row => {
  const over = value(row, "leaves") ? `${value(row, "leaves")} leaves` : `${value(row, "ranks")} ranks`;
  return number(value(row, "waves")) > 1 ? `${over}, ${value(row, "waves")} waves` : over;
};
const bytesText = count => {
  for (const [power, prefix] of [[4, "T"], [3, "G"], [2, "M"], [1, "K"]])
    if (count && count % 1024 ** power === 0) return `${count / 1024 ** power} ${prefix}iB`;
  return `${count} B`;
};
const field = (row, key) => key === "size" ? size(row) : value(row, key);
// An operation of a cell may be the name of several, as `summa` of `summa:256`.
const same = (key, text, wanted) => key === "bytes" ? number(text) === Number(wanted) :
  text === wanted || (key === "operation" && text.startsWith(`${wanted}:`));
const accepts = (row, but = []) => NAMES.every(key => !state[key] || but.includes(key) || same(key, field(row, key), state[key]));
const conditions = {}; // by column: what stands in the field below its head
function meets(row) {
  return Object.entries(conditions).every(([at, {sign, text, limit}]) => {
    const shown = explored.text(row, at);
    if (!sign) return shown.toLowerCase().includes(text);
    const found = number(shown);
    return {">": found > limit, "<": found < limit, ">=": found >= limit, "<=": found <= limit}[sign] ?? (isNaN(limit) ? shown.toLowerCase() === text : found === limit);
  });
}

// What is chosen: in the address, so that a link brings it back.
function read() {
  const given = new URLSearchParams(location.hash.slice(1));
  state = Object.fromEntries(NAMES.map(key => [key, given.get(key) ?? ""]));
  if (!screens.some(screen => screen.dataset.platform === state.platform)) state.platform = screens[0].dataset.platform;
}
function choose(changes) {
  Object.assign(state, changes);
  const kept = NAMES.filter(key => state[key] && (key !== "platform" || screens.length > 1));
  const address = new URLSearchParams(kept.map(key => [key, state[key]]));
  history.replaceState(null, "", kept.length ? `#${address}` : location.pathname + location.search);
  show();
}
function chosen(place, datum) {
  if (!datum) return;
  const picks = datum.picks && Object.fromEntries(datum.picks), point = datum.point;
  if (picks) {
    const again = Object.entries(picks).every(([key, text]) => state[key] === text);
    choose(Object.fromEntries(["operation", "size", "bytes", "family", "point"].filter(key => key in picks || key === "point" ||
      (place.endsWith("use") && key !== "family")).map(key => [key, again ? "" : picks[key] ?? ""])));
  } else if (point) {
    choose({point: state.point === point ? "" : point});
    if (state.point) explored.table.parentElement.scrollIntoView({block: "center"});
  }
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
    t: `${value(row, "operation")} ${value(row, "choice")}, ${size(row)}, ${value(row, "layout")}, ${bytesText(number(value(row, "bytes")))}`}));
  const names = [line, ...families];
  const interval = dots.length <= MOST_INTERVALS ? dots.filter(dot => dot.low > 0 && dot.high > 0) : [];
  fill(specification, {line: layer(specification, "line").data.values, dots, interval}, names, [GREY, ...hue(families, known)]);
  caption(screen, "scatter", `Predicted over measured${about()}: ${points.length.toLocaleString("en")} prices`,
    `${interval.length ? "With 95 % intervals. " : ""}${step > 1 ? `One of every ${step} points drawn.` : "All points drawn."}`);
  draw(`${screen.id}-scatter`, specification);
}
function times(screen, every) {
  // The job that is asked for, else the largest one of its operation, which has the most sizes.
  const rows = every.filter(row => accepts(row, ["bytes", "family", "choice", "point"]) && number(value(row, "measured")) > 0 && number(value(row, "bytes")) > 0);
  const jobs = Map.groupBy(rows, row => `${value(row, "operation")}, ${size(row)}`);
  const spread = key => new Set(jobs.get(key).map(row => value(row, "bytes"))).size * 1e6 + number(size(jobs.get(key)[0]).split(" ")[0]);
  const job = [...jobs.keys()].sort((a, b) => spread(b) - spread(a))[0];
  if (!job) return caption(screen, "times", `Time over size${about()}: nothing was measured`);
  const own = jobs.get(job), several = new Set(own.map(row => value(row, "layout"))).size > 1;
  const way = row => value(row, "choice") + (several ? `, ${value(row, "layout")}` : "");
  const family = state.family || nearest(own);
  const library = row => value(row, "kind") === "library";
  const ways = [...new Set([...own.filter(row => !library(row)), ...own.filter(library)].map(way))];
  const owned = new Set(own.filter(library).map(way)), line = [], interval = [], dashed = [], seen = new Set();
  for (const row of own) {
    const x = number(value(row, "bytes")), dot = {s: way(row), x, y: number(value(row, "measured")), point: value(row, "point"), t: bytesText(x)};
    const [low, high] = ["measured_low", "measured_high"].map(key => number(value(row, key)));
    if (!seen.has(value(row, "point"))) line.push(dot), interval.push({...dot, low, high});
    seen.add(value(row, "point"));
    const price = number(value(row, "predicted"));
    if (value(row, "family") === family && price > 0) dashed.push({s: way(row), x, y: price});
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
  caption(screen, "times", `Time over size: ${job}`, `Solid: measured, with 95 % intervals. Dashed: price by ${family}.`);
  draw(`${screen.id}-times`, specification);
}
// Powers of ten, and 2 and 5 times these where there would be few.
function decades([low, high]) {
  const steps = Math.log10(high / low) < 2.5 ? [1, 2, 5] : [1], ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++)
    ticks.push(...steps.map(step => Number(`${step}e${power}`)));
  return ticks.filter(tick => tick >= low && tick <= high);
}
// The family with the lowest mean μ at these points, of those that price most of them.
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

// Everything, after each change.
let before = "";
function show() {
  const narrowed = NAMES.some(key => key !== "platform" && state[key]);
  for (const screen of screens) screen.hidden = screen.dataset.platform !== state.platform;
  for (const tab of bar.querySelectorAll("[role=tab]")) {
    const front = tab.textContent === state.platform || tab.dataset.platform === state.platform;
    tab.setAttribute("aria-selected", front);
    tab.tabIndex = front ? 0 : -1;
  }
  for (const select of bar.querySelectorAll("select")) offer(select);
  bar.querySelector(".clear").disabled = !narrowed;
  explored.accept = row => accepts(row) && meets(row);
  explored.refresh();
  const screen = screens.find(one => !one.hidden);
  if (!narrowed && before !== screen.id) { before = ""; if (!screen.dataset.touched) return; }
  screen.dataset.touched = "yes";
  before = screen.id;
  const every = explored.all.filter(row => value(row, "platform") === state.platform);
  if (specifications[`${screen.id}-scatter`]) scatter(screen, every.filter(row => accepts(row, ["point"])));
  if (specifications[`${screen.id}-times`]) narrowed ? times(screen, every) : draw(`${screen.id}-times`, copy(`${screen.id}-times`));
  map(screen, "use");
  map(screen, "trust");
}
function offer(select) {
  const key = select.name, rows = explored.all.filter(row => value(row, "platform") === state.platform);
  const words = [...new Set(rows.map(row => field(row, key)))].filter(Boolean).sort(collator.compare);
  if (state[key] && !words.includes(state[key])) words.unshift(state[key]);
  select.replaceChildren(...["", ...words].map(text => new Option(text || "all", text, false, text === state[key])));
}
function download() {
  const heads = explored.heads.map(head => head.firstChild.textContent);
  // What a spreadsheet would take for a formula gets a quote in front; numbers stay numbers.
  const cell = (text, numeric) => {
    const plain = numeric && !isNaN(number(text)) ? text.replaceAll(",", "") : /^( =|[=+\-@\t])/.test(text) ? `'${text}` : text;
    return /[",\n\r]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
  };
  const lines = explored.kept.map(row => heads.map((_, at) => cell(explored.text(row, at), explored.heads[at].classList.contains("n"))));
  const text = [heads.map(head => cell(head, false)), ...lines].map(line => line.join(",")).join("\r\n");
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(["\ufeff", text, "\r\n"], {type: "text/csv;charset=utf-8"}));
  link.download = "comparison.csv";
  link.click();
  URL.revokeObjectURL(link.href);
}
function build() {
  explored.heads.forEach((head, at) => { columns[head.dataset.key] = at; });
  const tabs = document.createElement("div");
  tabs.setAttribute("role", "tablist");
  tabs.setAttribute("aria-label", "platforms");
  for (const screen of screens) {
    const tab = document.createElement("button");
    tab.dataset.platform = screen.dataset.platform;
    tab.textContent = screen.dataset.platform + (screen.querySelector(".badge") ? " SIMULATED" : "");
    tab.setAttribute("role", "tab");
    tab.setAttribute("aria-controls", screen.id);
    screen.setAttribute("role", "tabpanel");
    tab.onclick = () => choose({...Object.fromEntries(NAMES.map(key => [key, ""])), platform: screen.dataset.platform});
    tab.onkeydown = event => {
      const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
      if (!step) return;
      const next = tabs.children[(screens.indexOf(screen) + step + screens.length) % screens.length];
      next.focus();
      next.click();
    };
    tabs.append(tab);
  }
  const filters = document.createElement("form");
  filters.onsubmit = event => event.preventDefault();
  for (const [key, name] of Object.entries(FILTERS)) {
    const label = document.createElement("label"), select = document.createElement("select");
    select.name = key;
    select.onchange = () => choose({[key]: select.value, bytes: "", point: ""});
    label.append(`${name} `, select);
    filters.append(label);
  }
  const button = (text, act, name) => Object.assign(document.createElement("button"), {type: "button", textContent: text, onclick: act, className: name});
  filters.append(button("show all", () => choose(Object.fromEntries(NAMES.filter(key => key !== "platform").map(key => [key, ""]))), "clear"));
  bar.append(tabs, filters);
  bar.hidden = false;
  explored.box.append(button("download these rows as CSV", download, "csv"));
  const line = explored.table.tHead.insertRow();
  explored.heads.forEach((head, at) => {
    const field = document.createElement("input"), place = line.appendChild(document.createElement("th"));
    const numeric = head.classList.contains("n"), name = head.textContent;
    field.setAttribute("aria-label", `${name}: ${numeric ? "a number, > or <" : "contains"}`);
    field.placeholder = numeric ? "> <" : "…";
    field.oninput = () => {
      const [, sign, rest] = field.value.trim().match(/^(>=|<=|>|<|=)?\s*(.*)$/s), bare = numeric && rest && !isNaN(number(rest));
      if (rest) conditions[at] = {sign: sign ?? (bare ? "=" : ""), text: rest.toLowerCase(), limit: number(rest)};
      else delete conditions[at];
      explored.refresh();
    };
    place.append(field);
  });
  line.className = "conditions";
  read();
  addEventListener("hashchange", () => { if (location.hash.includes("=")) { read(); show(); } });
  show();
}
if (screens.length && explored.table) build();
