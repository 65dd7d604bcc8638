"""Questions that a report cannot answer: the commands that it names run, and ask what the question says."""

import re
import shlex
from dataclasses import replace

import openpyxl
import pytest
from tests.cli.running import run

from commodel.files.parameter_sets import write_parameters
from commodel.reports.content import DOUBLES, commands
from commodel.reports.html.page import page_html
from commodel.reports.shape import Cell


def test_what_if_l_doubles_is_a_command_that_runs_in_the_project_of_the_report(report, inputs, tmp_path, monkeypatch):
    (front,) = [front for front in report.fronts if front.platform == "ether16"]
    command = dict(commands(report, front))[DOUBLES]
    verb, *words = shlex.split(command.removeprefix("commodel "))
    file = tmp_path / words[words.index("--params") + 1]
    (used,) = [entry for entry in inputs["parameter_sets"] if (entry.platform, entry.family) == ("ether16", file.stem)]
    (written,) = re.findall(r"--set L=(\S+)us", command)
    assert float(written) * 1e-6 == 2 * used.values["L"].value
    file.parent.mkdir(parents=True)
    write_parameters(file, used)
    monkeypatch.chdir(tmp_path)
    assert "in place of" in run(verb, *words).stdout


@pytest.mark.parametrize(
    ("rows", "sizes", "job"),
    [
        ([("bcast", "2–8"), ("reduce", "16 leaves")], [1024, 65536], "reduce --leaves 16 --bytes 3KiB"),
        ([("gather", "64")], [0, 1], "gather --ranks 64 --bytes 1B"),
        ([("reduce", "16 leaves")], [8192, 65536], "reduce --leaves 16 --bytes 64KiB"),
        ([("stream of reduce", "512 leaves, 50 waves")], [1024], "reduce --leaves 512 --bytes 1KiB"),
        ([("reduce", "8 leaves"), ("unpriced", "64 leaves")], [1024], "reduce --leaves 8 --bytes 1KiB"),
        ([("unpriced", "64 leaves")], [1024], None),
    ],
)
def test_another_job_is_one_that_families_price_at_a_size_they_know(report, rows, sizes, job):
    front = report.fronts[0]
    cells = [Cell(row, 0, "", "", "", picks=(("bytes", str(size)),)) for row in range(len(rows)) for size in sizes]
    names = tuple(operation for operation, _ in rows if operation != "unpriced")
    front = replace(
        front,
        use=replace(front.use, rows=tuple(rows), cells=tuple(cells)),
        trust=replace(front.trust, columns=names),
    )
    said = [command.partition("--operation ")[2] for _, command in commands(report, front) if "advise" in command]
    assert said == ([job] if job else [])


def test_page_and_workbook_name_them(report, workbook):
    """Where a calculator is, the workbook leads to its cell for L instead."""
    sheets, page = openpyxl.load_workbook(workbook, read_only=True).worksheets, page_html(report)
    for sheet, front in zip(sheets, report.fronts, strict=False):
        said = {cell for row in sheet.iter_rows(values_only=True) for cell in row}
        asked = commands(report, front)
        assert DOUBLES in dict(asked)
        for question, command in asked:
            assert command in page
            assert (command in said) == (question != DOUBLES)
