"""The committed example report: it is small, names no machine, and belongs to the experiment in
params/."""

from pathlib import Path

import openpyxl

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "reports" / "example"


def test_the_example_report_is_small_and_contains_no_machine_path():
    assert sum(path.stat().st_size for path in EXAMPLE.glob("*.html")) < 1_700_000
    assert sum(path.stat().st_size for path in EXAMPLE.iterdir()) < 2_200_000
    page = (EXAMPLE / "index.html").read_text(encoding="utf-8")
    body = page[page.index("<main") : page.index("</main>")]
    assert not any(place in body for place in ("/tmp/", "/root/", "/home/", "/work/"))


def test_the_example_report_is_anonymous_and_has_the_current_sample_experiment():
    book = openpyxl.load_workbook(EXAMPLE / "sample.xlsx")
    values = {cell.value for row in book["Provenance"].iter_rows() for cell in row}
    assert "anonymous" in values
    assert "machine-1" in values
    lines = (ROOT / "params/experiments/sample.yaml").read_text(encoding="utf-8").splitlines()
    column = [cell.value or "" for sheet in book for cell in sheet["A"]]
    at = column.index("experiments/sample.yaml") + 1
    assert column[at : at + len(lines)] == lines
