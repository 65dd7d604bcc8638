"""The sheet of all samples: each raw number once, and by links from what was made of it."""

import openpyxl
import pytest
from click.testing import CliRunner
from tests.reports.book import rows_of

from commodel.cli.report import report as verb
from commodel.files.tables import SUMMARY, read_table, write_table
from commodel.plan.planning import load_plan
from commodel.results.raw_samples import JOINED, checksum

SECONDS = (1.25e-5, 1.5e-5, 7.75e-4)


@pytest.fixture
def measured(folder):
    """The results with raw files of the plan's points, one sample of each invalid."""
    plan = load_plan(folder / "plan.json")
    summary = read_table(folder / "summary.csv", SUMMARY)
    for batch in plan.batches:
        for case in batch.ids:
            lines = [
                f"{case},1,{number},{seconds:.9e},1e-7,{int(number < 2)},precision,{len(SECONDS)}"
                for number, seconds in enumerate(SECONDS)
            ]
            text = "\n".join([JOINED[0], *(f"{line},{checksum(line)}" for line in lines), ""])
            (folder / "raw" / batch.name / f"{case}.csv").write_text(text)
            at = len(summary)
            summary.loc[at] = summary.iloc[0]
            summary.loc[at, ["id", "platform", "raw"]] = [case, batch.platform, f"raw/{batch.name}/{case}.csv"]
    write_table(folder / "summary.csv", summary)
    return folder, plan


def test_every_sample_has_a_row_and_each_summary_leads_to_its_first(measured, tmp_path):
    folder, plan = measured
    run = CliRunner().invoke(verb, ["--in", str(folder), "--out", str(tmp_path / "far/away"), "--samples"])
    assert run.exit_code == 0, run.output
    book = openpyxl.load_workbook(tmp_path / "far/away/trees.xlsx")
    head, rows = rows_of(book["Samples"], "T_Samples")
    cases = [case for batch in plan.batches for case in batch.ids]
    assert len(rows) == len(cases) * len(SECONDS)
    for case in cases:
        own = [dict(zip(head, row, strict=True)) for row in rows if row[head.index("id")] == case]
        assert [row["time [µs]"] for row in own] == pytest.approx([1e6 * seconds for seconds in SECONDS])
        assert [row["valid"] for row in own] == ["yes", "yes", "no"]
    heads, _ = rows_of(book["Raw summary"], "T_Raw")
    seen = set()
    for row in book["Raw summary"].iter_rows(min_row=6):
        if row[heads.index("id")].value in cases:
            place = row[heads.index("raw file")].hyperlink.location
            assert book["Samples"][place.partition("!")[2]].row > 1
            line = [cell.value for cell in book["Samples"][place.partition("!")[2].lstrip("A")]]
            assert (line[head.index("id")], line[head.index("sample")]) == (row[heads.index("id")].value, 0)
            seen.add(line[head.index("id")])
    assert seen == set(cases)
    assert "All samples" not in (tmp_path / "far/away/index.html").read_text(encoding="utf-8")
    verified = CliRunner().invoke(verb, ["--verify", str(tmp_path / "far/away/trees.xlsx"), "--in", str(folder)])
    assert verified.exit_code == 0, verified.output


def test_without_being_asked_for_there_are_none_and_a_damaged_file_is_named(measured, tmp_path):
    folder, plan = measured
    batch = plan.batches[0]
    path = folder / "raw" / batch.name / f"{batch.ids[0]}.csv"
    path.write_text(path.read_text().replace("1.25", "1.26"))
    arguments = ["--in", str(folder), "--out", str(tmp_path / "out")]
    assert CliRunner().invoke(verb, arguments).exit_code == 0
    assert "Samples" not in openpyxl.load_workbook(tmp_path / "out/trees.xlsx").sheetnames
    refused = CliRunner().invoke(verb, [*arguments, "--samples"])
    assert refused.exit_code == 2
    assert f"{batch.ids[0]}.csv:2: damaged raw file (its checksum differs)" in refused.stderr
