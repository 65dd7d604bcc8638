"""The page in a browser: every row can be reached, filtered and sorted; a selection applies to
charts, table and address; there are no network requests and no script errors."""

import csv
import html
import io
import json
import shutil
import subprocess
from urllib.parse import parse_qsl

import pandas as pd
import pytest

from commodel.compare.recommended import recommend_points
from commodel.reports.elements import format_value
from commodel.reports.html.page import MAX_MARKUP_ROWS, format_page
from tests.reports.reading import make_report

# Said by the page to its own markup, which the browser prints at the end: a line for each thing
# that was done.
WORDS = "COPY1 fattree ring 65,536 bsp"
LISTEN = """<head><script>
const errors = [], saved = [];
addEventListener("error", event => errors.push(event.message));
addEventListener("unhandledrejection", event => errors.push(String(event.reason)));
addEventListener("securitypolicyviolation", event => errors.push(`refused: ${event.blockedURI}`));
for (const level of ["error", "warn"]) console[level] = (...words) => errors.push(words.join(" "));
URL.createObjectURL = blob => { saved.push(blob); return "data:text/csv,"; };
</script>"""
DRIVER = """<script>
addEventListener("load", async () => {
  const table = document.querySelector("table[data-filtered]"), box = table.parentElement, lines = [];
  const [input, found] = box.previousElementSibling.children;
  const heads = [...table.tHead.rows[0].cells], at = name => heads.findIndex(head => head.textContent === name);
  const rows = () => [...table.tBodies[0].rows].filter(row => row.className !== "gap");
  const tell = (what, row) => lines.push([what, found.textContent, rows().length,
    row?.cells[at("alternative")].textContent, row?.cells[at("bytes [B]")].textContent,
    row?.cells[at("model")].textContent].join("|"));
  const settle = () => new Promise(done => setTimeout(done, 700));
  try {
    STEPS
  } catch (error) { errors.push(String(error)); }
  const result = document.body.appendChild(document.createElement("pre"));
  const asked = performance.getEntriesByType("resource").map(entry => entry.name);
  result.textContent = `RESULT\\n${lines.join("\\n")}\\nERRORS ${JSON.stringify([errors, asked])}\\nEND`;
});
</script>"""
REACH = """
  const front = document.querySelector(".front:not([hidden])").dataset.platform;
  lines.push(front);
  tell("first", rows()[0]);
  box.scrollTop = box.scrollHeight;
  box.onscroll();
  tell("last", rows().at(-1));
  document.querySelectorAll("[role=tab]")[1].click();
  input.value = "WORDS";
  input.oninput();
  tell("filter", rows()[0]);
  input.value = "";
  input.oninput();
  heads[at("bytes [B]")].onclick();
  heads[at("bytes [B]")].onclick();
  tell("sort", rows()[0]);
"""
CHOICE = """
  const front = document.querySelector(".front:not([hidden])");
  const dots = name => front.querySelectorAll(`.${name} .mark-symbol.role-mark path`).length;
  const select = name => document.querySelector(`select[name=${name}]`);
  await settle();
  lines.push([front.dataset.platform, select("operation").value, location.hash].join("|"));
  tell("linked", rows()[0]);
  lines.push(["dots", dots("scatter")].join("|"));
  select("model").value = "hockney";
  select("model").onchange();
  await settle();
  tell("model", rows()[0]);
  lines.push(["dots", dots("scatter"), location.hash].join("|"));
  const limit = table.tHead.rows[1].cells[at("bytes [B]")].firstChild;
  limit.value = ">= 4096";
  limit.oninput();
  tell("limit", rows()[0]);
  document.querySelector("button.csv").click();
  lines.push(JSON.stringify(await saved[0].text()));
  document.querySelector("button.clear").click();
  await settle();
  limit.value = "";
  limit.oninput();
  tell("all", rows()[0]);
"""
PRESS = """
  const front = document.querySelector(".front:not([hidden])"), box = name => front.querySelector(`.${name} .plot`);
  // As a hand does it: what lies on top there is what gets the click.
  const press = async mark => {
    mark.scrollIntoView({block: "center", behavior: "instant"});
    const {left, top, width, height} = mark.getBoundingClientRect();
    const at = {clientX: left + width / 2, clientY: top + height / 2};
    document.elementFromPoint(at.clientX, at.clientY).dispatchEvent(new MouseEvent("click", {bubbles: true, ...at}));
    await settle();
  };
  const about = what => lines.push(JSON.stringify([what, location.hash, found.textContent]));
  const cell = name => box(name).querySelector(".mark-rect.role-mark path");
  await press(box("fastest").querySelector("svg"));
  about("touched");
  await press(cell("fastest"));
  await press(cell("fastest"));
  about("again");
  await press(cell("errors"));
  about("errors");
  document.querySelector("button.clear").click();
  await settle();
  const dot = [...box("scatter").querySelectorAll(".mark-symbol.role-mark path")].at(-1);
  const {point, s} = dot.__data__.datum;
  await press(dot);
  about("dot");
  const row = rows()[0], sight = table.parentElement.getBoundingClientRect(), address = location.hash;
  const read = row => [row.cells[at("point")].textContent, row.cells[at("model")].textContent, row.className];
  const marked = rows().filter(row => row.className).length, inSight = sight.top < innerHeight && sight.bottom > 0;
  lines.push(JSON.stringify([[point, s], read(row), marked, inSight]));
  document.querySelector("button.clear").click();
  location.hash = address;
  await settle();
  about("link");
  lines.push(JSON.stringify(read(rows()[0])));
  lines.push(JSON.stringify(box("fastest").querySelector("summary svg").getBoundingClientRect().width));
"""


# A file that the page reads takes real time, and Chromium's virtual time may run out meanwhile:
# then it is asked anew.
TRIES = 4


def run_steps(report, tmp_path, steps, address=""):
    """Run these steps in the page and return their output by line; fail after any script error or
    network request."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if not browser:
        pytest.skip("no Chromium here")
    page = format_page(report).replace("<head>", LISTEN, 1)
    page = (
        page.removesuffix("</body>\n</html>") + DRIVER.replace("STEPS", steps) + "</body>\n</html>"
    )
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/profile"]
    command = [
        browser,
        *flags,
        "--virtual-time-budget=9000",
        "--dump-dom",
        (tmp_path / "page.html").as_uri() + address,
    ]
    for _ in range(TRIES):
        dom = subprocess.run(
            command, capture_output=True, text=True, timeout=300, check=True
        ).stdout
        if "RESULT\n" in dom:
            break
    printed = dom.partition("RESULT\n")[2].partition("\nEND")[0]
    lines, _, complaints = html.unescape(printed).partition("\nERRORS ")
    assert complaints == "[[],[]]"
    return lines.splitlines()


def test_all_rows_are_within_reach(comparison, tmp_path):
    report = make_report(
        pd.concat([comparison.assign(layout=f"copy{copy}") for copy in range(2)]), experiment="many"
    )
    (table,) = report.section("Comparison").tables
    front, *lines = run_steps(report, tmp_path, REACH.replace("WORDS", WORDS))
    first, last, only, most = (line.split("|") for line in lines)
    kinds = [column.kind for column in table.columns]
    every = [
        [format_value(kind, value) for kind, value in zip(kinds, row, strict=True)]
        for row in table.rows
    ]
    keys = [column.key for column in table.columns]
    rows = [row for row in every if row[0] == front]
    about = [[row[keys.index(key)] for key in ("alternative", "bytes", "model")] for row in rows]
    others = [row for row in every if row[0] != front]
    kept = [
        row
        for row in others
        if all(word in " ".join(row).lower() for word in WORDS.lower().split())
    ]
    assert front == "ether16", "what was measured on a machine comes first"
    assert first[3:] == about[0]
    assert last[3:] == about[-1]
    assert first[1] == last[1] == f"{len(rows):,} of {len(every):,} rows"
    assert most[1] == f"{len(others):,} of {len(every):,} rows"
    assert int(first[2]) < 200
    assert 0 < len(kept) < 10
    assert only[1:3] == [f"{len(kept)} of {len(every):,} rows", str(len(kept))]
    assert only[3:] == [kept[0][keys.index(key)] for key in ("alternative", "bytes", "model")]
    assert most[4] == f"{max(row[keys.index('bytes')] for row in table.rows if row[0] != front):,}"


HEADING = """
  const elements = document.querySelectorAll("#comparison h3, #comparison .limit");
  lines.push(...[...elements].map(element => element.textContent));
"""


def test_a_short_comparison_table_keeps_heading_and_print_note(small, tmp_path):
    """The note for printing is a separate element."""
    few = small[(small["platform"] == "ether16") & (small["bytes"] == 1)]
    report = make_report(few, experiment="short")
    heading, note = run_steps(report, tmp_path, HEADING)
    assert heading == report.section("Comparison").tables[0].title
    count = len(report.section("Comparison").tables[0].rows)
    assert note.endswith(f"has all {count}.")
    assert len(few) <= count <= MAX_MARKUP_ROWS


def with_recommended(comparison):
    """Return the rows that the page shows: also those of the recommended prediction."""
    return pd.concat([recommend_points(comparison), comparison], ignore_index=True)


def test_filters_apply_to_charts_table_and_address(fewer, tmp_path):
    report = make_report(fewer, experiment="chosen")
    address = "#platform=fattree&operation=bcast"
    lines = run_steps(report, tmp_path, CHOICE, address)
    where, linked, dots, family, fewer_dots, limit, text, every = lines
    shown = with_recommended(fewer)
    here = shown[(shown["platform"] == "fattree") & (shown["operation"] == "bcast")]
    own, total = here[here["model"] == "hockney"], f"of {len(shown):,} rows"
    assert where == f"fattree|bcast|{address}"
    assert linked.split("|")[1] == f"{len(here)} {total}"
    assert family.split("|")[1] == f"{len(own)} {total}"
    predicted = own[own["held_out"] & (own["seconds"] > 0) & (own["measured"] > 0)]
    assert fewer_dots == f"dots|{len(predicted)}|{address}&model=hockney"
    assert int(dots.split("|")[1]) > len(predicted)
    large = own[own["bytes"] >= 4096]
    assert limit.split("|")[1] == f"{len(large)} {total}"
    heads, *saved = csv.reader(io.StringIO(json.loads(text).removeprefix("\ufeff")))
    assert sorted(row[heads.index("point")] for row in saved) == sorted(large["point"])
    assert {row[heads.index("bytes [B]")] for row in saved} == {
        str(size) for size in large["bytes"]
    }
    assert every.split("|")[1] == f"{(shown['platform'] == 'fattree').sum()} {total}"


def test_a_click_on_a_cell_or_dot_filters_the_matching_rows(fewer, tmp_path):
    report, shown = make_report(fewer, experiment="clicked"), with_recommended(fewer)
    lines = [json.loads(line) for line in run_steps(report, tmp_path, PRESS, "#platform=ether16")]
    touched, again, errors, dot, (wanted, first, marked, in_sight), link, restored, icon_width = (
        lines
    )

    def counted(address):
        requested = dict(parse_qsl(address.removeprefix("#")))
        count, over = requested.pop("size", "0 ranks").split()[:2]
        requested = {
            name: int(text) if name == "bytes" else text
            for name, text in requested.items()
            if name != "dot"
        }
        requested |= {"leaves" if over == "leaves" else "ranks": int(count)} if int(count) else {}
        return (shown[list(requested)] == pd.Series(requested)).all(axis=1).sum()

    names = [set(dict(parse_qsl(address[1:]))) for _, address, _ in (touched, again, errors, dot)]
    assert names == [
        {"platform", "operation", "size", "bytes"},
        {"platform"},
        {"platform", "model"},
        {"platform", "point", "dot"},
    ]
    for _, address, found in (touched, again, errors, dot):
        assert found == f"{counted(address)} of {len(shown)} rows", address
    assert first == [*wanted, "highlighted"], "the row of the dot comes first"
    assert (marked, in_sight) == (1, True)
    assert (link[1:], restored) == (dot[1:], first)
    assert icon_width > 0, "the menu of a chart has an icon"
