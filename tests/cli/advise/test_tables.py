"""Tables of advice for several jobs, and the files that agree with them."""

import csv
import io

import openpyxl
import pandas as pd
from click.testing import CliRunner

from commodel.cli import main
from commodel.interchange.rules import has
from tests.cli.advise.asking import JOB, JOBS
from tests.cli.running import run


def test_several_jobs_are_a_table(platform):
    text = run(f"advise {JOBS} --platform {platform}").stdout
    assert "Note: SIMULATED: the parameters were fitted to a simulated platform." in text
    assert "Note: 4 of 6 jobs, such as allreduce over 2 ranks, 8 B: EXTRAPOLATED" in text
    assert len(list(csv.DictReader(io.StringIO(run(f"advise {JOBS} --platform {platform} --format csv").stdout)))) == 6


def test_rules_are_the_same_through_a_table(platform, tmp_path):
    run(f"advise {JOBS} --platform {platform} --out rules.conf")
    run(f"advise {JOBS} --platform {platform} --open-mpi --out table.csv")
    result = CliRunner().invoke(main, ["export", "rules", "table.csv", "-o", "again.conf"])
    assert result.exit_code == 0, result.output
    text = (tmp_path / "rules.conf").read_text()
    assert text == (tmp_path / "again.conf").read_text()
    assert text.startswith("1 # collectives, advice for made-up (simulated); assumed of programs: ")
    assert "none in Open MPI" not in text


def test_rules_hold_only_what_open_mpi_has(params, tmp_path):
    """Of a gather Open MPI has no windows, which are cheaper here than nothing of its own."""
    asked = f"--operation gather --ranks 4,8 --bytes 8 --params {params}"
    run(f"advise {asked} --open-mpi --out {tmp_path}/some.csv")
    run(f"advise {asked} --layout block --out {tmp_path}/all.csv")
    some, every = (pd.read_csv(tmp_path / name, keep_default_na=False) for name in ("some.csv", "all.csv"))
    named = [f"{row.algorithm}, {row.as_good}" for row in some.itertuples()]
    assert all(has("gather", spec) for text in named for spec in text.split(", ") if spec)
    assert any("windowed" in f"{row.algorithm}, {row.as_good}" for row in every.itertuples())


def test_an_operation_without_a_safe_algorithm_is_left_to_open_mpi(params, tmp_path):
    """The file for all other operations is written: every reduce-scatter that a rule can name reorders operands."""
    asked = f"--ranks 4 --bytes 8 --params {params}"
    result = run(f"advise --operation reduce-scatter --operation gather {asked} --out {tmp_path}/some.conf")
    assert "left to Open MPI: no algorithm of reduce-scatter is safe in a rule; wanted: --commutative" in result.stderr
    text = (tmp_path / "some.conf").read_text()
    assert "# gather" in text
    assert "# reduce-scatter" not in text
    alone = run(f"advise --operation reduce-scatter {asked} --out {tmp_path}/none.conf", code=2)
    assert "no algorithm of reduce-scatter is safe in a rule; wanted: --commutative" in alone.stderr
    assert not (tmp_path / "none.conf").exists()


def test_a_workbook(platform, tmp_path):
    run(f"advise {JOBS} --platform {platform} --out table.xlsx")
    book = openpyxl.load_workbook(tmp_path / "table.xlsx")
    assert book.sheetnames == ["Decisions", "allreduce"]
    run(f"advise {JOBS} --platform {platform} --out table.csv")
    wanted = pd.read_csv(tmp_path / "table.csv")["algorithm"].tolist()
    (area,) = (area.ref for area in book["Decisions"].tables.values())
    head, *rows = ([cell.value for cell in cells] for cells in book["Decisions"][area])
    assert [row[head.index("use")] for row in rows] == wanted


def test_values_by_hand_are_told_wherever_the_advice_goes(platform, tmp_path):
    what_if = "--set loggp:L=2ms --set hockney:alpha=2ms"
    plain, changed = (run(f"advise {JOB} --platform {platform} {more}").stdout for more in ("", what_if))
    by_hand = "loggp L=2ms in place of 20 µs"
    assert by_hand not in plain
    assert by_hand in changed
    assert "weights are by the errors of what was fitted" in changed
    for out in ("a.csv", "a.xlsx", "a.conf"):
        run(f"advise {JOBS} --platform {platform} {what_if} --out {out}")
    assert pd.read_csv(tmp_path / "a.csv")["platform"].str.contains(by_hand).all()
    assert by_hand in (tmp_path / "a.conf").read_text().splitlines()[0]
    cells = [cell for row in openpyxl.load_workbook(tmp_path / "a.xlsx")["Decisions"].values for cell in row if cell]
    assert any(by_hand in str(cell) for cell in cells)
    assert run(f"advise {JOB} --platform {platform} --score --set loggp:L=1us", code=2).output == (
        "commodel: --score is about what was fitted: leave --set out\n"
    )
    refused = run(f"advise {JOB} --platform {platform} --set L=1us", code=2).output.splitlines()[-1]
    assert "family hockney has no parameter or setting 'L'" in refused
