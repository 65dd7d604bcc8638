// The page can be read without this script: short tables are markup, of long ones the first rows. The script shows all rows, and sorts and filters them.
"use strict";
// The view of a table whose rows are all in the markup: it hides, orders and highlights them.
function makeMarkupView(table) {
  const body = table.tBodies[0], rows = [...body.rows];
  return {
    count: rows.length,
    text: (row, column) => rows[row].cells[column].textContent,
    show(order, isHighlighted) {
      for (const row of rows) row.hidden = true;
      for (const row of order) {
        rows[row].hidden = false;
        rows[row].classList.toggle("highlighted", isHighlighted(row));
      }
      body.append(...order.map(row => rows[row]));
    },
    fixColumns(offsets) { rows.forEach(row => fixCells(row, offsets)); },
  };
}
// The view of a long table, whose rows are data: only the visible rows and a margin are elements. A gap above and one below have the height of the others.
function makeDataView(table, columns) {
  const body = table.tBodies[0], box = table.parentElement, margin = 30;
  const cell = (row, column) => columns[column].cells[columns[column].rows[row]];
  let order = columns[0].rows.map((_, row) => row), offsets = [], height = 0, first = 0, end = 0, isHighlighted = () => false;
  const makeRow = row => {
    const line = document.createElement("tr");
    for (const column of columns.keys()) {
      const [text, classes, target, background] = cell(row, column), element = line.insertCell();
      element.className = classes || "";
      if (background) Object.assign(element.style, {background, color: "#111"});
      if (text.length > 50) element.title = text;
      const inner = target ? element.appendChild(document.createElement("a")) : element;
      if (target) inner.href = target;
      inner.textContent = text;
    }
    fixCells(line, offsets);
    if (isHighlighted(row)) line.className = "highlighted";
    return line;
  };
  const makeGap = rows => {
    const element = document.createElement("tr"), cell = element.insertCell();
    element.className = "gap";
    cell.colSpan = columns.length;
    cell.style.height = `${rows * height}px`;
    return element;
  };
  const draw = force => {
    const top = height && Math.floor(box.scrollTop / height), visible = height ? Math.ceil(box.clientHeight / height) : 1;
    if (!force && (first === 0 || top - first > 5) && (end === order.length || end - top - visible > 5)) return;
    first = Math.max(0, Math.min(top, order.length - visible) - margin);
    end = Math.min(order.length, first + visible + 2 * margin);
    body.replaceChildren(makeGap(first), ...order.slice(first, end).map(makeRow), makeGap(order.length - end));
  };
  table.classList.add("drawn");
  table.setAttribute("aria-rowcount", order.length);
  columns.forEach((column, index) => {
    const longest = column.cells.reduce((length, [text]) => Math.max(length, text.length), 0);
    const head = table.tHead.rows[0].cells[index];
    head.style.minWidth = `calc(${Math.min(longest, 54)}ch + 18px)`;
    head.style.maxWidth = "none";
  });
  draw(true);
  height = body.rows[1].getBoundingClientRect().height;
  draw(true);
  box.onscroll = () => draw(false);
  addEventListener("resize", () => draw(true));
  const count = order.length.toLocaleString("en");
  const hasNote = box.previousElementSibling.className === "limit", note = hasNote ? box.previousElementSibling : document.createElement("p");
  box.before(note);
  note.className = "limit printed";
  note.textContent = `The printout has only the visible rows; the workbook (.xlsx) has all ${count}.`;
  return {
    count: order.length,
    text: (row, column) => cell(row, column)[0],
    show(rows, highlighted) {
      [order, isHighlighted] = [rows, highlighted];
      box.scrollTop = 0;
      draw(true);
    },
    fixColumns(left) {
      offsets = left;
      draw(true);
    },
  };
}
// Keep the first cells of a row in view, at these distances from the left edge.
function fixCells(row, offsets) {
  offsets.forEach((left, column) => {
    row.cells[column].classList.add("fixed");
    row.cells[column].style.left = `${left}px`;
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
// The state of the table that the first screen filters, if the page has one: `accept` returns whether a row passes its filters.
const explored = {};
for (const table of document.querySelectorAll("table[data-fixed]")) {
  const data = document.getElementById(table.dataset.rows);
  const view = data ? makeDataView(table, JSON.parse(data.textContent)) : makeMarkupView(table);
  const heads = [...table.tHead.rows[0].cells], allRows = Array.from({length: view.count}, (_, row) => row), rowTexts = [];
  const [filterBox, input, countText] = ["div", "input", "span"].map(name => document.createElement(name));
  let order = allRows;
  const refresh = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const joinTexts = row => rowTexts[row] ??= heads.map((_, column) => view.text(row, column)).join(" ").toLowerCase();
    let visibleRows = words.length ? order.filter(row => words.every(word => joinTexts(row).includes(word))) : order;
    if (tableState.accept) visibleRows = visibleRows.filter(tableState.accept);
    visibleRows = [...visibleRows.filter(tableState.isHighlighted), ...visibleRows.filter(row => !tableState.isHighlighted(row))];
    tableState.visibleRows = visibleRows;
    view.show(visibleRows, tableState.isHighlighted);
    const [shown, total] = [visibleRows.length, view.count].map(count => count.toLocaleString("en"));
    countText.textContent = visibleRows.length < view.count ? `${shown} of ${total} rows` : `${total} rows`;
  };
  const tableState = table.dataset.explored === undefined ? {} : explored;
  Object.assign(tableState, {table, heads, allRows, visibleRows: allRows, text: view.text, refresh, input, filterBox, isHighlighted: () => false});
  heads.forEach((head, column) => {
    head.dataset.sort = column;
    head.tabIndex = 0;
    head.onkeydown = event => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      head.onclick();
    };
    head.onclick = () => {
      const isAscending = head.getAttribute("aria-sort") === "ascending";
      const numeric = head.classList.contains("n");
      const keys = allRows.map(row => numeric ? number(view.text(row, column)) : view.text(row, column));
      order = [...allRows].sort((a, b) => {
        const x = keys[a], y = keys[b];
        if (!numeric) return (isAscending ? -1 : 1) * collator.compare(x, y);
        if (isNaN(x) || isNaN(y)) return isNaN(x) - isNaN(y);
        return isAscending ? y - x : x - y;
      });
      heads.forEach(other => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", isAscending ? "descending" : "ascending");
      refresh();
    };
  });
  // The columns that name a row remain visible when a wide table is scrolled.
  if (table.offsetWidth > table.parentElement.clientWidth) {
    const left = head => head.getBoundingClientRect().left; // not offsetLeft, which is rounded: slits would show
    const offsets = heads.slice(0, Number(table.dataset.fixed)).map(head => left(head) - left(heads[0]));
    fixCells(table.tHead.rows[0], offsets);
    view.fixColumns(offsets);
  }
  if (view.count < 12 && tableState !== explored) continue;
  filterBox.className = "filter";
  input.type = "search";
  input.placeholder = "filter rows: every word must occur";
  input.setAttribute("aria-label", "filter rows: every word must occur");
  countText.setAttribute("aria-live", "polite");
  input.oninput = refresh;
  countText.textContent = `${view.count.toLocaleString("en")} rows`;
  filterBox.append(input, countText);
  table.parentElement.before(filterBox);
}
