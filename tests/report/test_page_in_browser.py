"""The page's script, where there is a browser: of a long table every row can be reached, filtered and sorted."""

import shutil
import subprocess

import pandas as pd
import pytest

from commodel.report import build
from commodel.report.html.page import page_html
from commodel.report.shape import show

# Said by the page to its own markup, which the browser prints at the end: a line for each thing that was done.
WORDS = "COPY1 fattree ring 65,536 bsp"
DRIVER = """<script>
addEventListener("load", () => {
  const table = document.querySelector("table[data-rows]"), box = table.parentElement, lines = [];
  const [input, said] = box.previousElementSibling.children;
  const heads = [...table.tHead.rows[0].cells], at = name => heads.findIndex(head => head.textContent === name);
  const rows = () => [...table.tBodies[0].rows].filter(row => row.className !== "gap");
  const tell = (what, row) => lines.push([what, said.textContent, rows().length, row.cells[at("choice")].textContent,
    row.cells[at("bytes [B]")].textContent, row.cells[at("family")].textContent].join("|"));
  tell("first", rows()[0]);
  box.scrollTop = box.scrollHeight;
  box.onscroll();
  tell("last", rows().at(-1));
  input.value = "WORDS";
  input.oninput();
  tell("filter", rows()[0]);
  input.value = "";
  input.oninput();
  heads[at("bytes [B]")].onclick();
  heads[at("bytes [B]")].onclick();
  tell("sort", rows()[0]);
  const result = document.body.appendChild(document.createElement("pre"));
  result.textContent = `RESULT\\n${lines.join("\\n")}\\nEND`;
});
</script>"""


def test_all_rows_are_within_reach(comparison, tmp_path):
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if not browser:
        pytest.skip("no Chromium here")
    report = build(pd.concat([comparison.assign(layout=f"copy{copy}") for copy in range(2)]), experiment="many")
    (table,) = report.section("Comparison").tables
    page = page_html(report)
    (tmp_path / "page.html").write_text(
        page.replace("</body>", f"{DRIVER.replace('WORDS', WORDS)}</body>"), encoding="utf-8"
    )
    flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/profile"]
    command = [browser, *flags, "--virtual-time-budget=5000", "--dump-dom", (tmp_path / "page.html").as_uri()]
    dom = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout
    lines = dom.partition("RESULT\n")[2].partition("\nEND")[0].splitlines()
    first, last, only, most = (line.split("|") for line in lines)
    kinds = [column.kind for column in table.columns]
    rows = [[show(kind, value) for kind, value in zip(kinds, row, strict=True)] for row in table.rows]
    keys = [column.key for column in table.columns]
    about = [[row[keys.index(key)] for key in ("choice", "bytes", "family")] for row in rows]
    kept = [at for at, row in enumerate(rows) if all(word in " ".join(row).lower() for word in WORDS.lower().split())]
    assert first[3:] == about[0]
    assert last[3:] == about[-1]
    assert first[1] == last[1] == most[1] == "3,564 rows"
    assert int(first[2]) < 200
    assert 0 < len(kept) < 10
    assert only[1:] == [f"{len(kept)} of 3,564 rows", str(len(kept)), *about[kept[0]]]
    assert most[4] == f"{max(table.column('bytes')):,}"
