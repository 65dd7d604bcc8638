// The first screen: tabs, filters that hold for maps, charts and the table of all rows, and the address that keeps them.
const screens = [...document.querySelectorAll(".front")], bar = document.getElementById("bar");
const FILTERS = {operation: "operation", family: "model", size: "ranks", layout: "layout"};
const NAMES = ["platform", ...Object.keys(FILTERS), "alternative", "bytes", "point"];
const KEPT = [...NAMES, "dot"]; // in the address: `dot` is the model whose prediction of the point was clicked
let state = {}, columns = {};

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
const conditions = {}; // by column: the text in the field below its head
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
  state = Object.fromEntries(KEPT.map(key => [key, given.get(key) ?? ""]));
  if (!screens.some(screen => screen.dataset.platform === state.platform)) state.platform = screens[0].dataset.platform;
}
function choose(changes) {
  Object.assign(state, {dot: ""}, changes);
  const kept = KEPT.filter(key => state[key] && (key !== "platform" || screens.length > 1));
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
    const dot = place.endsWith("scatter") ? datum.s : "", again = state.point === point && state.dot === dot;
    choose({point: again ? "" : point, dot: again ? "" : dot});
    if (state.point) explored.table.parentElement.scrollIntoView({block: "center"});
  }
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
  explored.picked = row => Boolean(state.dot) && value(row, "family") === state.dot;
  explored.refresh();
  const screen = screens.find(one => !one.hidden);
  if (!narrowed && before !== screen.id) { before = ""; if (!screen.dataset.touched) return; }
  screen.dataset.touched = "yes";
  before = screen.id;
  const every = explored.all.filter(row => value(row, "platform") === state.platform);
  if (specifications[`${screen.id}-scatter`]) scatter(screen, every.filter(row => accepts(row, ["point"])));
  if (specifications[`${screen.id}-times`]) narrowed ? times(screen, every) : draw(`${screen.id}-times`, copy(`${screen.id}-times`));
  for (const name of ["use", "trust"]) if (specifications[`${screen.id}-${name}`]) map(screen, name);
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
