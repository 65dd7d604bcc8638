// The page reads without this script, long tables as far as they stand in the markup; with it all rows are there, sort and filter.
"use strict";
// A table that stands in the markup as a whole.
function standing(table) {
  const body = table.tBodies[0], rows = [...body.rows];
  return {
    count: rows.length,
    text: (row, at) => rows[row].cells[at].textContent,
    show(order, picked) {
      for (const row of rows) row.hidden = true;
      for (const row of order) {
        rows[row].hidden = false;
        rows[row].classList.toggle("picked", picked(row));
      }
      body.append(...order.map(row => rows[row]));
    },
    keep(lefts) { rows.forEach(row => keep(row, lefts)); },
  };
}
// A long table: its rows are data, and those around the reader's place are drawn, between two gaps as high as the rest.
function drawn(table, columns) {
  const body = table.tBodies[0], box = table.parentElement, margin = 30;
  const cell = (row, at) => columns[at].cells[columns[at].rows[row]];
  let order = columns[0].rows.map((_, row) => row), lefts = [], height = 0, first = 0, end = 0, marked = () => false;
  const line = row => {
    const element = document.createElement("tr");
    for (const at of columns.keys()) {
      const [text, names, target, ground] = cell(row, at), place = element.insertCell();
      place.className = names || "";
      if (ground) Object.assign(place.style, {background: ground, color: "#111"});
      if (text.length > 50) place.title = text;
      const inner = target ? place.appendChild(document.createElement("a")) : place;
      if (target) inner.href = target;
      inner.textContent = text;
    }
    keep(element, lefts);
    if (marked(row)) element.className = "picked";
    return element;
  };
  const gap = rows => {
    const element = document.createElement("tr"), place = element.insertCell();
    element.className = "gap";
    place.colSpan = columns.length;
    place.style.height = `${rows * height}px`;
    return element;
  };
  const draw = again => {
    const top = height && Math.floor(box.scrollTop / height), most = height ? Math.ceil(box.clientHeight / height) : 1;
    if (!again && (first === 0 || top - first > 5) && (end === order.length || end - top - most > 5)) return;
    first = Math.max(0, Math.min(top, order.length - most) - margin);
    end = Math.min(order.length, first + most + 2 * margin);
    body.replaceChildren(gap(first), ...order.slice(first, end).map(line), gap(order.length - end));
  };
  table.classList.add("drawn");
  table.setAttribute("aria-rowcount", order.length);
  columns.forEach((column, at) => {
    const longest = column.cells.reduce((most, [text]) => Math.max(most, text.length), 0);
    const head = table.tHead.rows[0].cells[at];
    head.style.minWidth = `calc(${Math.min(longest, 54)}ch + 18px)`;
    head.style.maxWidth = "none";
  });
  draw(true);
  height = body.rows[1].getBoundingClientRect().height;
  draw(true);
  box.onscroll = () => draw(false);
  addEventListener("resize", () => draw(true));
  const word = box.previousElementSibling, count = order.length.toLocaleString("en");
  word.className = "printed";
  word.textContent = `Printed are the rows in sight; the workbook (.xlsx) has all ${count}.`;
  return {
    count: order.length,
    text: (row, at) => cell(row, at)[0],
    show(rows, picked) {
      [order, marked] = [rows, picked];
      box.scrollTop = 0;
      draw(true);
    },
    keep(places) {
      lefts = places;
      draw(true);
    },
  };
}
function keep(row, lefts) {
  lefts.forEach((left, at) => {
    row.cells[at].classList.add("fixed");
    row.cells[at].style.left = `${left}px`;
  });
}
// The full name of a model, as the tooltip of its name in a table.
document.addEventListener("pointerover", ({target}) => {
  const cell = target.closest?.("td"), head = cell?.closest("table").tHead?.rows[0].cells[cell.cellIndex];
  if (head?.firstChild?.textContent === "model" && families[cell.textContent]) cell.title = families[cell.textContent];
});
const number = text => {
  const digits = text.replaceAll(",", "").replace("∞", "Infinity").replace("≈ ", "");
  return Number(digits || "NaN");
};
const collator = new Intl.Collator("en", {numeric: true});
// The table that the first screen filters, if the page has one: `accept` says which of its rows are wanted.
const explored = {};
for (const table of document.querySelectorAll("table[data-fixed]")) {
  const data = document.getElementById(table.dataset.rows);
  const view = data ? drawn(table, JSON.parse(data.textContent)) : standing(table);
  const heads = [...table.tHead.rows[0].cells], all = Array.from({length: view.count}, (_, row) => row), texts = [];
  const [box, input, found] = ["div", "input", "span"].map(name => document.createElement(name));
  let order = all;
  const refresh = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const whole = row => texts[row] ??= heads.map((_, at) => view.text(row, at)).join(" ").toLowerCase();
    let kept = words.length ? order.filter(row => words.every(word => whole(row).includes(word))) : order;
    if (own.accept) kept = kept.filter(own.accept);
    kept = [...kept.filter(own.picked), ...kept.filter(row => !own.picked(row))];
    own.kept = kept;
    view.show(kept, own.picked);
    const [some, most] = [kept.length, view.count].map(count => count.toLocaleString("en"));
    found.textContent = kept.length < view.count ? `${some} of ${most} rows` : `${most} rows`;
  };
  const own = table.dataset.explored === undefined ? {} : explored;
  Object.assign(own, {table, heads, all, kept: all, text: view.text, refresh, input, box, picked: () => false});
  heads.forEach((head, at) => {
    head.dataset.sort = at;
    head.tabIndex = 0;
    head.onkeydown = event => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      head.onclick();
    };
    head.onclick = () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      const numeric = head.classList.contains("n");
      const key = all.map(row => numeric ? number(view.text(row, at)) : view.text(row, at));
      order = [...all].sort((a, b) => {
        const x = key[a], y = key[b];
        if (!numeric) return (down ? -1 : 1) * collator.compare(x, y);
        if (isNaN(x) || isNaN(y)) return isNaN(x) - isNaN(y);
        return down ? y - x : x - y;
      });
      heads.forEach(other => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      refresh();
    };
  });
  // The columns that name a row stay in sight when a wide table is scrolled.
  if (table.offsetWidth > table.parentElement.clientWidth) {
    const left = head => head.getBoundingClientRect().left; // not offsetLeft, which is rounded: slits would show
    const lefts = heads.slice(0, Number(table.dataset.fixed)).map(head => left(head) - left(heads[0]));
    keep(table.tHead.rows[0], lefts);
    view.keep(lefts);
  }
  if (view.count < 12 && own !== explored) continue;
  box.className = "filter";
  input.type = "search";
  input.placeholder = "filter rows: every word must occur";
  input.setAttribute("aria-label", "filter rows: every word must occur");
  found.setAttribute("aria-live", "polite");
  input.oninput = refresh;
  found.textContent = `${view.count.toLocaleString("en")} rows`;
  box.append(input, found);
  table.parentElement.before(box);
}
