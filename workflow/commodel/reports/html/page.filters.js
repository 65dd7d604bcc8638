// The first screen: tabs, filters of maps, charts and the table of all rows, and the address that stores the filters.
const screens = [...document.querySelectorAll(".front")], bar = document.getElementById("bar");
const FILTERS = {operation: "operation", model: "model", size: "ranks", layout: "layout"};
const FILTER_KEYS = ["platform", ...Object.keys(FILTERS), "alternative", "bytes", "point"];
const ADDRESS_KEYS = [...FILTER_KEYS, "dot"]; // `dot` is the model whose prediction of the point was clicked
let state = {}, columns = {};

// Rows of the table, by the keys of their columns.
const value = (row, key) => columns[key] === undefined ? "" : filteredTable.text(row, columns[key]);
const extentText = row => {
  const extent = value(row, "leaves") ? `${value(row, "leaves")} leaves` : `${value(row, "ranks")} ranks`;
  return number(value(row, "waves")) > 1 ? `${extent}, ${value(row, "waves")} waves` : extent;
};
const bytesText = count => {
  for (const [power, prefix] of [[4, "T"], [3, "G"], [2, "M"], [1, "K"]])
    if (count && count % 1024 ** power === 0) return `${count / 1024 ** power} ${prefix}iB`;
  return `${count} B`;
};
const field = (row, key) => key === "size" ? extentText(row) : value(row, key);
// A filter for the operation `summa` also selects `summa:256`.
const matches = (key, text, wanted) => key === "bytes" ? number(text) === Number(wanted) :
  text === wanted || (key === "operation" && text.startsWith(`${wanted}:`));
const passesFilters = (row, ignored = []) => FILTER_KEYS.every(key => !state[key] || ignored.includes(key) || matches(key, field(row, key), state[key]));
const conditions = {}; // by column: the condition that the user typed below its heading
function passesConditions(row) {
  return Object.entries(conditions).every(([column, {sign, text, limit}]) => {
    const shown = filteredTable.text(row, column);
    if (!sign) return shown.toLowerCase().includes(text);
    const amount = number(shown);
    return {">": amount > limit, "<": amount < limit, ">=": amount >= limit, "<=": amount <= limit}[sign] ?? (isNaN(limit) ? shown.toLowerCase() === text : amount === limit);
  });
}

// The filters are stored in the address, so that a link restores them.
function readAddress() {
  const parameters = new URLSearchParams(location.hash.slice(1));
  state = Object.fromEntries(ADDRESS_KEYS.map(key => [key, parameters.get(key) ?? ""]));
  if (!screens.some(screen => screen.dataset.platform === state.platform)) state.platform = screens[0].dataset.platform;
}
function setFilters(changes) {
  Object.assign(state, {dot: ""}, changes);
  const keys = ADDRESS_KEYS.filter(key => state[key] && (key !== "platform" || screens.length > 1));
  const address = new URLSearchParams(keys.map(key => [key, state[key]]));
  history.replaceState(null, "", keys.length ? `#${address}` : location.pathname + location.search);
  updatePage();
}
function filterByClick(chart, datum) {
  if (!datum) return;
  const filters = datum.filters && Object.fromEntries(datum.filters), point = datum.point;
  if (filters) {
    const isSet = Object.entries(filters).every(([key, text]) => state[key] === text);
    setFilters(Object.fromEntries(["operation", "size", "bytes", "model", "point"].filter(key => key in filters || key === "point" ||
      (chart.endsWith("fastest") && key !== "model")).map(key => [key, isSet ? "" : filters[key] ?? ""])));
  } else if (point) {
    const dot = chart.endsWith("scatter") ? datum.s : "", isSet = state.point === point && state.dot === dot;
    setFilters({point: isSet ? "" : point, dot: isSet ? "" : dot});
    if (state.point) filteredTable.table.parentElement.scrollIntoView({block: "center"});
  }
}

// Redraw the first screen after each change.
let previousScreen = "";
function updatePage() {
  const isFiltered = FILTER_KEYS.some(key => key !== "platform" && state[key]);
  for (const screen of screens) screen.hidden = screen.dataset.platform !== state.platform;
  for (const tab of bar.querySelectorAll("[role=tab]")) {
    const isSelected = tab.textContent === state.platform || tab.dataset.platform === state.platform;
    tab.setAttribute("aria-selected", isSelected);
    tab.tabIndex = isSelected ? 0 : -1;
  }
  for (const select of bar.querySelectorAll("select")) fillOptions(select);
  bar.querySelector(".clear").disabled = !isFiltered;
  filteredTable.accept = row => passesFilters(row) && passesConditions(row);
  filteredTable.isHighlighted = row => Boolean(state.dot) && value(row, "model") === state.dot;
  filteredTable.refresh();
  const screen = screens.find(candidate => !candidate.hidden);
  if (!isFiltered && previousScreen !== screen.id) { previousScreen = ""; if (!screen.dataset.touched) return; }
  screen.dataset.touched = "yes";
  previousScreen = screen.id;
  const platformRows = filteredTable.allRows.filter(row => value(row, "platform") === state.platform);
  if (specifications[`${screen.id}-scatter`]) drawScatter(screen, platformRows.filter(row => passesFilters(row, ["point"])));
  if (specifications[`${screen.id}-times`]) isFiltered ? drawTimes(screen, platformRows) : draw(`${screen.id}-times`, copySpecification(`${screen.id}-times`));
  for (const name of ["fastest", "errors"]) if (specifications[`${screen.id}-${name}`]) drawMap(screen, name);
}
function fillOptions(select) {
  const key = select.name, rows = filteredTable.allRows.filter(row => value(row, "platform") === state.platform);
  const options = [...new Set(rows.map(row => field(row, key)))].filter(Boolean).sort(collator.compare);
  if (state[key] && !options.includes(state[key])) options.unshift(state[key]);
  select.replaceChildren(...["", ...options].map(text => new Option(text || "all", text, false, text === state[key])));
}
function download() {
  const heads = filteredTable.heads.map(head => head.firstChild.textContent);
  // A quote precedes texts that a spreadsheet would evaluate as a formula. Numbers remain numbers.
  const formatCell = (text, numeric) => {
    const plain = numeric && !isNaN(number(text)) ? text.replaceAll(",", "") : /^( =|[=+\-@\t])/.test(text) ? `'${text}` : text;
    return /[",\n\r]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
  };
  const lines = filteredTable.visibleRows.map(row => heads.map((_, column) => formatCell(filteredTable.text(row, column), filteredTable.heads[column].classList.contains("n"))));
  const text = [heads.map(head => formatCell(head, false)), ...lines].map(cells => cells.join(",")).join("\r\n");
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(["\ufeff", text, "\r\n"], {type: "text/csv;charset=utf-8"}));
  link.download = "comparison.csv";
  link.click();
  URL.revokeObjectURL(link.href);
}
function buildFilters() {
  filteredTable.heads.forEach((head, column) => { columns[head.dataset.key] = column; });
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
    tab.onclick = () => setFilters({...Object.fromEntries(FILTER_KEYS.map(key => [key, ""])), platform: screen.dataset.platform});
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
    select.onchange = () => setFilters({[key]: select.value, bytes: "", point: ""});
    label.append(`${name} `, select);
    filters.append(label);
  }
  const button = (text, act, name) => Object.assign(document.createElement("button"), {type: "button", textContent: text, onclick: act, className: name});
  filters.append(button("show all", () => setFilters(Object.fromEntries(FILTER_KEYS.filter(key => key !== "platform").map(key => [key, ""]))), "clear"));
  bar.append(tabs, filters);
  bar.hidden = false;
  filteredTable.filterBox.append(button("download these rows as CSV", download, "csv"));
  const conditionRow = filteredTable.table.tHead.insertRow();
  filteredTable.heads.forEach((head, column) => {
    const input = document.createElement("input"), cell = conditionRow.appendChild(document.createElement("th"));
    const numeric = head.classList.contains("n"), name = head.textContent;
    input.setAttribute("aria-label", `${name}: ${numeric ? "a number, > or <" : "contains"}`);
    input.placeholder = numeric ? "> <" : "…";
    input.oninput = () => {
      const [, sign, rest] = input.value.trim().match(/^(>=|<=|>|<|=)?\s*(.*)$/s), isNumber = numeric && rest && !isNaN(number(rest));
      if (rest) conditions[column] = {sign: sign ?? (isNumber ? "=" : ""), text: rest.toLowerCase(), limit: number(rest)};
      else delete conditions[column];
      filteredTable.refresh();
    };
    cell.append(input);
  });
  conditionRow.className = "conditions";
  readAddress();
  addEventListener("hashchange", () => { if (location.hash.includes("=")) { readAddress(); updatePage(); } });
  updatePage();
}
if (screens.length && filteredTable.table) buildFilters();
