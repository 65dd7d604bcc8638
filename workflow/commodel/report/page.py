"""Style and script of the page. Without the script every table still reads; with it they sort and filter."""

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
td.dim{color:#8a939a}
td.sim{color:#8a3b00}
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
nav,.filter{display:none}
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

SCRIPT = """
"use strict";
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0], rows = [...body.rows], heads = [...table.tHead.rows[0].cells];
  const value = (row, at) => row.cells[at].textContent;
  heads.forEach((head, at) => {
    head.dataset.sort = at;
    head.onclick = () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      const number = head.classList.contains("n");
      const key = new Map(rows.map(row => {
        const text = value(row, at), digits = text.replaceAll(",", "").replace("∞", "Infinity").replace("≈ ", "");
        return [row, number ? Number(digits || "NaN") : text];
      }));
      const order = (a, b) => {
        const x = key.get(a), y = key.get(b);
        if (!number) return (down ? -1 : 1) * x.localeCompare(y, "en", {numeric: true});
        if (isNaN(x) || isNaN(y)) return isNaN(x) - isNaN(y);
        return down ? y - x : x - y;
      };
      heads.forEach(other => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      body.append(...[...rows].sort(order));
    };
  });
  // The columns that name a row stay in sight when a wide table is scrolled.
  if (table.offsetWidth > table.parentElement.clientWidth) {
    const lefts = heads.slice(0, Number(table.dataset.fixed)).map(head => head.offsetLeft - heads[0].offsetLeft);
    for (const row of [table.tHead.rows[0], ...rows]) {
      lefts.forEach((left, at) => {
        row.cells[at].classList.add("fixed");
        row.cells[at].style.left = `${left}px`;
      });
    }
  }
  if (rows.length < 12) continue;
  const [box, input, found] = ["label", "input", "span"].map(name => document.createElement(name));
  box.className = "filter";
  input.type = "search";
  input.placeholder = "filter rows: every word must occur";
  input.oninput = () => {
    const words = input.value.toLowerCase().split(/\\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = [...row.cells].map(cell => cell.textContent).join(" ").toLowerCase();
      row.hidden = !words.every(word => text.includes(word));
      shown += !row.hidden;
    }
    found.textContent = words.length ? `${shown} of ${rows.length} rows` : "";
  };
  box.append(input, found);
  table.parentElement.before(box);
}
"""
