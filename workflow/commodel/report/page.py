"""Style and script of the page. Without the script tables still read, the long ones as far as they stand in the markup;
with it all their rows are there, sort and filter."""

STYLE = """
:root{--ink:#1f3a4d;--rule:#d5dbe0;--pale:#f4f6f8;--dim:#6b747b}
*{box-sizing:border-box}
body{margin:0;font:15px/1.5 system-ui,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;color:#1b2226;background:#fff}
header,main{max-width:1500px;margin:0 auto;padding:0 24px}
header{padding-top:28px}
h1{margin:0;font-size:26px;line-height:1.25;color:var(--ink);overflow-wrap:anywhere}
h2{margin:0 0 4px;padding-top:22px;font-size:21px;color:var(--ink);border-top:2px solid var(--ink)}
h3{margin:22px 0 4px;font-size:16px;color:var(--ink);overflow-wrap:anywhere}
section{margin:30px 0}
main>section:first-child{margin-top:18px}
.experiment{margin:2px 0 8px;color:var(--dim)}
.simulated{margin:8px 0;padding:8px 12px;border-left:5px solid #d9772b;background:#fdf1e5;color:#7a3300;font-weight:600}
nav{display:flex;flex-wrap:wrap;gap:4px 18px;padding:6px 0 0}
nav a{color:#0b5a8a;text-decoration:none}
nav a:hover{text-decoration:underline}
.note{margin:0 0 6px;color:var(--dim)}
.capped{margin:4px 0;font-weight:600}
.printed{display:none}
.answer{margin:2px 0 0;padding-left:20px;max-width:115ch}
.answer li{margin:3px 0;overflow-wrap:anywhere}
.wide{overflow:auto;max-height:640px;border:1px solid var(--rule);width:fit-content;max-width:100%}
table{border-collapse:separate;border-spacing:0;font-size:13px;line-height:1.35;font-variant-numeric:tabular-nums}
th{position:sticky;top:0;background:var(--ink);color:#fff;text-align:left;vertical-align:bottom;font-weight:600;
padding:5px 9px;min-width:52px;max-width:150px}
td{padding:3px 9px;border-bottom:1px solid #e8ecef;white-space:nowrap;max-width:420px;overflow-wrap:anywhere}
td.long{white-space:normal;min-width:240px}
th.n,td.n{text-align:right}
tbody tr:hover td{box-shadow:inset 0 1px #9db2c0,inset 0 -1px #9db2c0}
td.best{font-weight:700;background:#cfe8e0}
td a{color:#0b5a8a}
td.dim{color:#8a939a}
td.sim{color:#8a3b00}
.drawn td{overflow:hidden;text-overflow:ellipsis}
.drawn td.long{white-space:nowrap;min-width:0}
.drawn .gap td{padding:0;border:0}
.fixed{position:sticky}
td.fixed{background:#fff}
th.fixed{z-index:1}
th[data-sort]{cursor:pointer}
th[aria-sort=ascending]::after{content:" ▲";font-size:9px}
th[aria-sort=descending]::after{content:" ▼";font-size:9px}
.filter{display:flex;gap:10px;align-items:center;margin:4px 0}
.filter input{font:inherit;font-size:13px;padding:3px 8px;width:300px;border:1px solid #aab4bb;border-radius:3px}
.filter span{color:var(--dim);font-size:13px}
pre{margin:4px 0;padding:8px 12px;max-height:520px;overflow:auto;background:var(--pale);font-size:12.5px}
.charts{display:flex;flex-wrap:wrap;gap:18px 28px;margin:18px 0}
figure{margin:0;width:600px;max-width:100%}
figcaption{font-weight:600;color:var(--ink);overflow-wrap:anywhere}
figcaption small{display:block;font-weight:400;color:var(--dim);font-size:12px}
.plot{min-height:60px}
@media print{
@page{size:A4 landscape;margin:12mm}
@page broad{size:A3 landscape;margin:10mm}
.broad{page:broad}
body{font-size:11px}
header,main{max-width:none;padding:0}
nav,.filter,.gap{display:none}
.printed{display:block;margin:4px 0}
pre{max-height:none;white-space:pre-wrap;font-size:8px}
.wide{overflow:visible;max-height:none;border:0}
table{font-size:7.5px}
th,.fixed{position:static!important}
th{padding:2px 3px;min-width:0}
td{padding:1px 3px;max-width:200px}
.broad table{font-size:6.5px}
.broad th,.broad td{padding:1px 2px}
td,th,.simulated{-webkit-print-color-adjust:exact;print-color-adjust:exact}
thead{display:table-header-group}
.charts{display:block}
figure{display:inline-block;zoom:.72;margin-right:20px}
tr,figure,li{break-inside:avoid}
h2,h3{break-after:avoid}
}
"""

SCRIPT = r"""
"use strict";
// A table that stands in the markup as a whole.
function standing(table) {
  const body = table.tBodies[0], rows = [...body.rows];
  return {
    count: rows.length,
    text: (row, at) => rows[row].cells[at].textContent,
    show(order) {
      for (const row of rows) row.hidden = true;
      for (const row of order) rows[row].hidden = false;
      body.append(...order.map(row => rows[row]));
    },
    keep(lefts) { rows.forEach(row => keep(row, lefts)); },
  };
}
// A long table: its rows are data, and those around the reader's place are drawn, between two gaps as high as the rest.
function drawn(table, columns) {
  const body = table.tBodies[0], box = table.parentElement, margin = 30;
  const cell = (row, at) => columns[at].cells[columns[at].rows[row]];
  let order = columns[0].rows.map((_, row) => row), lefts = [], height = 0, first = 0, end = 0;
  const line = row => {
    const element = document.createElement("tr");
    for (const at of columns.keys()) {
      const [text, names, target, ground] = cell(row, at), place = element.insertCell();
      place.className = names || "";
      place.style.background = ground || "";
      if (text.length > 50) place.title = text;
      const inner = target ? place.appendChild(document.createElement("a")) : place;
      if (target) inner.href = target;
      inner.textContent = text;
    }
    keep(element, lefts);
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
    show(rows) {
      order = rows;
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
const collator = new Intl.Collator("en", {numeric: true});
for (const table of document.querySelectorAll("table")) {
  const data = document.getElementById(table.dataset.rows);
  const view = data ? drawn(table, JSON.parse(data.textContent)) : standing(table);
  const heads = [...table.tHead.rows[0].cells], all = Array.from({length: view.count}, (_, row) => row), texts = [];
  const [box, input, found] = ["label", "input", "span"].map(name => document.createElement(name));
  let order = all;
  const refresh = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const whole = row => texts[row] ??= heads.map((_, at) => view.text(row, at)).join(" ").toLowerCase();
    const kept = words.length ? order.filter(row => words.every(word => whole(row).includes(word))) : order;
    view.show(kept);
    const [some, most] = [kept.length, view.count].map(count => count.toLocaleString("en"));
    found.textContent = words.length ? `${some} of ${most} rows` : `${most} rows`;
  };
  heads.forEach((head, at) => {
    head.dataset.sort = at;
    head.onclick = () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      const number = head.classList.contains("n");
      const key = all.map(row => {
        const text = view.text(row, at), digits = text.replaceAll(",", "").replace("∞", "Infinity").replace("≈ ", "");
        return number ? Number(digits || "NaN") : text;
      });
      order = [...all].sort((a, b) => {
        const x = key[a], y = key[b];
        if (!number) return (down ? -1 : 1) * collator.compare(x, y);
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
  if (view.count < 12) continue;
  box.className = "filter";
  input.type = "search";
  input.placeholder = "filter rows: every word must occur";
  input.oninput = refresh;
  found.textContent = `${view.count.toLocaleString("en")} rows`;
  box.append(input, found);
  table.parentElement.before(box);
}
"""
