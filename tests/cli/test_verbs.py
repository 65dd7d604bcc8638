"""Every verb has help; the verbs that show things show them."""

import csv
import io

import openpyxl
import pytest

from commodel.cli import main
from tests.cli.running import output, read_rows

VERBS = main.list_commands(None)


@pytest.mark.parametrize("verb", VERBS)
def test_help(verb):
    text = output(f"{verb} --help")
    assert "Usage:" in text
    command = main.get_command(None, verb)
    assert command.help
    assert all(option.help for option in command.params if option.param_type_name == "option" and option.name != "help")


def test_the_promised_verbs_are_there():
    promised = "run plan measure collect fit predict compare report schedule topology doctor"
    assert set(promised.split()) <= set(VERBS)


def test_doctor_names_what_is_missing_and_what_it_would_give():
    text = output("doctor")
    assert "mpicc" in text or "MPI compiler" in text
    assert all(tool in text for tool in ("SimGrid", "Slurm", "Apptainer"))
    assert output("doctor --need no-such-program", code=1) == ""


@pytest.mark.parametrize("command", ["report --in results/sample", "network sample", "status sample"])
def test_what_reads_results_says_that_there_are_none_yet(command, monkeypatch, tmp_path):
    output(f"init {tmp_path}")
    monkeypatch.chdir(tmp_path)
    said = "commodel: results/sample: no plan here: nothing has been run yet\n"
    assert output(*command.split(), code=2) == said


def test_schedule_formats():
    table = output("schedule --operation bcast --algorithm binomial --ranks 4 --bytes 8")
    rows = list(csv.DictReader(io.StringIO(table)))
    sent = [tuple(int(row[name]) for name in ("step", "rank", "peer", "bytes")) for row in rows]
    assert sent == [(0, 0, 2, 8), (1, 0, 1, 8), (1, 2, 3, 8)]
    assert {row["kind"] for row in rows} == {"send"}
    assert output("schedule --operation bcast --topology flat:3 --bytes 1 --format dot").startswith("digraph")


def test_schedule_of_several_patterns_is_refused():
    output("schedule", *["--operation", "bcast", "--ranks", "4", "--bytes", "8"], code=2)


def test_topology_formats():
    assert "leaves: 128" in output("topology groups:12x7,11x4")
    assert output("topology flat:2 --format csv").split() == ["node,parent", "0,", "1,0", "2,0"]
    assert output("topology flat:2 --format mrnet") == "node0:0 => node1:0 node2:0 ;\n"
    assert "n0 -> n2" in output("topology flat:2 --format dot")


def test_plan_in_every_format(tmp_path):
    rows = read_rows("plan demo")
    assert len(rows) >= 180
    assert {"reduce", "bcast", "gather"} <= {row["operation"] for row in rows}
    assert len(output("plan demo --format csv").splitlines()) == len(rows) + 1
    text = output("plan demo")
    assert "node-hours" in text
    assert "probe prtt: for logp, loggp" in text
    output(f"plan demo --format xlsx --out {tmp_path}/plan.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "plan.xlsx")["Points"]
    assert sheet.max_row == len(rows) + 1


def test_plan_of_one_platform():
    rows = read_rows("plan demo --only local")
    assert {row["platform"] for row in rows} == {"local"}
    output("plan demo --only nowhere", code=2)
