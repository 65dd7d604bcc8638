"""Reports of results that belong to a paper."""

import json

import openpyxl
import pytest

from commodel.errors import UserError
from commodel.reports import build_stored_report, write_xlsx
from commodel.reports.elements import Chart
from commodel.reports.html.page import format_page
from tests.cli.test_broken_experiments import VALID


def name_paper(folder, paper):
    """Name a paper in the plan of results without measurements of that paper."""
    plan = json.loads((folder / "plan.json").read_text())
    (folder / "plan.json").write_text(json.dumps(plan | {"paper": paper}))


def test_figures_have_sheets_and_sections_and_files_are_reproducible(folder, tmp_path):
    name_paper(folder, "cluster")
    report, again = build_stored_report(folder), build_stored_report(folder)
    write_xlsx(report, tmp_path / "one.xlsx")
    write_xlsx(again, tmp_path / "two.xlsx")
    assert (tmp_path / "one.xlsx").read_bytes() == (tmp_path / "two.xlsx").read_bytes()
    sheets = openpyxl.load_workbook(tmp_path / "one.xlsx").sheetnames
    sheets = sheets[len(report.screens) :]  # behind the first sheets
    shown = [section.name for section in report.sections[: sheets.index("What to use")]]
    assert shown == sheets[: len(shown)]
    assert shown[0] == "The paper"
    assert "Table 1" in shown
    page = format_page(report)
    assert page == format_page(again)
    for section in report.sections[: len(shown)]:
        assert f"<h2>{section.name}</h2>" in page
        assert all(
            isinstance(block, Chart) is (block in section.charts) for block in section.blocks
        )


def test_a_misspelled_paper_of_results_is_refused_with_the_nearest_name(folder):
    name_paper(folder, "clutser")
    with pytest.raises(UserError, match=r"plan\.json.*paper.*did you mean 'cluster'\?") as refused:
        build_stored_report(folder)
    assert refused.value.message.count("\n") == 0


def test_a_misspelled_paper_of_an_experiment_is_refused_with_its_line(plan_invalid):
    message = plan_invalid(VALID.replace("probes: auto", "paper: clutser", 1))
    assert "mine.yaml:4" in message
    assert "did you mean 'cluster'" in message
