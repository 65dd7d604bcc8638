"""Verbs: help, imported modules, misspelled names, completion by TAB, and errors on the command
line."""

import csv
import io
import json
import os
import shutil
import subprocess
import sys
from contextlib import chdir
from types import SimpleNamespace

import click
import openpyxl
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from commodel.cli import main
from commodel.cli._options import File, find_project
from commodel.files.text_tables import format_table
from commodel.interchange import goal
from commodel.patterns import schedule_files
from commodel.patterns.algorithms import find_algorithms
from commodel.patterns.operations import list_operations
from commodel.patterns.trees import files
from commodel.plan.planning import load_resources
from commodel.platforms.toolchains import list_toolchains
from commodel.platforms.tools import ROOT
from commodel.registry import discover
from tests.cli.running import CAB, output, read_rows, refused, run


def test_doctor_lists_tools_and_fails_if_a_needed_program_is_missing():
    text = output("doctor")
    assert "mpicc" in text or "MPI compiler" in text
    assert all(tool in text for tool in ("SimGrid", "Slurm", "Apptainer"))
    assert output("doctor --need no-such-program", code=1) == ""


@pytest.mark.parametrize(
    "command", ["report --in results/sample", "show network sample", "status sample"]
)
def test_verbs_that_read_results_report_that_nothing_was_run(command, monkeypatch, tmp_path):
    output(f"init {tmp_path}")
    monkeypatch.chdir(tmp_path)
    said = "commodel: results/sample: found no plan: nothing has been run yet\n"
    assert output(*command.split(), code=2) == said


def test_schedule_formats():
    table = output("show schedule --operation bcast --algorithm binomial --ranks 4 --bytes 8")
    rows = list(csv.DictReader(io.StringIO(table)))
    sent = [tuple(int(row[name]) for name in ("step", "rank", "peer", "bytes")) for row in rows]
    assert sent == [(0, 0, 2, 8), (1, 0, 1, 8), (1, 2, 3, 8)]
    assert {row["kind"] for row in rows} == {"send"}
    assert output(
        "show schedule --operation bcast --topology flat:3 --bytes 1 --format dot"
    ).startswith("digraph")


def test_the_levels_of_a_schedule_are_those_of_the_platform():
    """Without the platform, the spec has to name the groups."""
    words = "show schedule --operation bcast --ranks 16 --layout block:1 --bytes 8 --algorithm"
    at_platform = output(f"{words} hier:leaf=chain --platform fat-tree-64")
    size = sum(group == 0 for group in load_resources("fat-tree-64").levels[0][1])
    assert at_platform == output(f"{words} hier:leaf@{size}=chain")
    assert "found 'leaf', wanted inter or intra, or a platform" in refused(
        f"{words} hier:leaf=chain"
    )


def test_schedule_of_several_patterns_is_refused():
    output("show schedule", *["--operation", "bcast", "--ranks", "4", "--bytes", "8"], code=2)


def test_topology_formats():
    assert "leaves: 128" in output("show topology groups:12x7,11x4")
    assert output("show topology flat:2 --format csv").split() == [
        "node,parent",
        "0,",
        "1,0",
        "2,0",
    ]
    assert output("show topology flat:2 --format mrnet") == "node0:0 => node1:0 node2:0 ;\n"
    assert "n0 -> n2" in output("show topology flat:2 --format dot")


def test_plan_in_every_format(tmp_path, monkeypatch):
    output(f"init {tmp_path / 'unmeasured'}")
    monkeypatch.chdir(tmp_path / "unmeasured")
    rows = read_rows("plan demo")
    assert len(rows) >= 180
    assert {"reduce", "bcast", "gather"} <= {row["operation"] for row in rows}
    assert len(output("plan demo --format csv").splitlines()) == len(rows) + 1
    text = output("plan demo --verbose")
    assert "node-hours" in text
    assert "probe prtt: for logp, loggp" in text
    output(f"plan demo --format xlsx --out {tmp_path}/plan.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "plan.xlsx")["Points"]
    assert sheet.max_row == len(rows) + 1


def test_plan_of_one_platform():
    rows = read_rows("plan demo --only local")
    assert {row["platform"] for row in rows} == {"local"}
    output("plan demo --only nowhere", code=2)


HEAVY = {
    "jinja2",
    "vl_convert",
    "openpyxl",
    "pandas",
    "pyarrow",
    "scipy",
    "snakemake",
    "xlsxwriter",
}
SHOW = "import json, sys; from commodel.cli import main; "
SHOW += "[main(line.split(), standalone_mode=False) for line in sys.argv[1:]]; "
SHOW += "print(); print(json.dumps(sorted(sys.modules)))"
PREDICT = "predict --model loggp --set L=1us --set o_s=1us --set o_r=1us --set g=1us --set G=1ns"
PREDICT += " --operation bcast --algorithm binomial --ranks 16 --bytes 1"


def list_modules(*lines):
    """Return the modules that one process has after these commands."""
    run = subprocess.run(
        [sys.executable, "-c", SHOW, *lines], capture_output=True, text=True, check=True
    )
    return set(json.loads(run.stdout.splitlines()[-1]))


def test_help_loads_nothing_heavy():
    assert not HEAVY & list_modules(*(f"{verb} --help" for verb in main.list_commands(None)))


def test_predicting_one_point_imports_only_the_module_of_one_model():
    modules = list_modules(PREDICT)
    assert not HEAVY & modules
    families = {name for name in modules if name.startswith("commodel.models.families.")}
    assert families == {"commodel.models.families.loggp"}


def test_to_measure_and_to_look_how_far_that_is_loads_no_tables():
    """Every batch job and every start of the workflow imports these modules."""
    load = (
        "import sys, commodel.measure.batch, commodel.results.campaign, "
        "commodel.results.progress; print(*sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", load], capture_output=True, text=True, check=True)
    assert not HEAVY & set(run.stdout.split())


@pytest.fixture
def folder(tmp_path):
    """Return a folder with a parameter set inside a project; it is two levels below the project's
    folder."""
    shutil.copytree(ROOT / "params" / "platforms", tmp_path / "params" / "platforms")
    shutil.copytree(ROOT / "params" / "experiments", tmp_path / "params" / "experiments")
    deep = tmp_path / "notes" / "today"
    deep.mkdir(parents=True)
    shutil.copy(ROOT / CAB, deep / "tan.yaml")
    return deep


PREDICT_TAN = "predict --params tan.yaml --operation reduce --topology flat:4 --format csv"


def test_verbs_work_from_any_folder_of_the_project(folder):
    with chdir(folder):
        below = run("plan cluster --format csv").stdout
        predictions = run(f"{PREDICT_TAN}").stdout
        run("export mrnet flat:3 -o tree.top")
    with chdir(folder.parents[1]):
        assert run("plan cluster --format csv").stdout == below
    assert (folder / "tree.top").exists()
    assert "tan,reduce" in predictions


def test_option_c_selects_the_project_folder(folder, tmp_path_factory):
    with chdir(tmp_path_factory.mktemp("elsewhere")):
        assert "tan,reduce" in run(f"-C {folder} {PREDICT_TAN}").stdout
        assert run(f"-C {folder} plan cluster").stdout
        assert "does not exist" in run("-C nowhere plan cluster", code=2).stderr
        assert "commodel init DIR" in run("plan cluster", code=2).stderr
        assert os.getcwd() != str(folder)


def test_a_folder_of_somebody_else_above_is_no_project(folder, monkeypatch):
    assert find_project(folder) == folder.parents[1]
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert find_project(folder) == folder


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("PLAN Demo --only LOCAL --format CSV", "plan demo --only local --format csv"),
        ("show models LogGP", "show models loggp"),
        ("show algorithms Bcast", "show algorithms bcast"),
        ("show topology Flat:4 --format text", "show topology flat:4 --format text"),
        ("show layout Cyclic:2 --ranks 6", "show layout cyclic:2 --ranks 6"),
        (
            "show schedule --operation BCAST --algorithm Chain:4KiB --ranks 3 --bytes 8KiB",
            "show schedule --operation bcast --algorithm chain:4KiB --ranks 3 --bytes 8KiB",
        ),
    ],
)
def test_names_are_case_insensitive(typed, meant):
    assert run(*typed.split()).stdout == run(*meant.split()).stdout != ""


def test_every_file_is_taken_from_where_the_user_stands():
    """Every path parameter of every verb has the type `File`."""
    for name in main.list_commands(None):
        verb = main.get_command(None, name)
        for command in (verb, *getattr(verb, "commands", {}).values()):
            for parameter in command.params:
                assert isinstance(parameter.type, File) or not isinstance(
                    parameter.type, click.Path
                ), (name, parameter)


def test_a_published_set_is_found_without_a_clone(tmp_path):
    with chdir(tmp_path):
        command = ("predict", "--params", CAB, "--operation", "reduce", "--topology", "flat:4")
        assert "tan" in run(*command).stdout


def complete(*words):
    """Return the completions by TAB of the last word; check that each occurs once."""
    items = ShellComplete(main, {}, "commodel", "").get_completions(list(words[:-1]), words[-1])
    assert len({item.value for item in items}) == len(items)
    return {item.value for item in items}


def test_tab_completion_offers_matching_verbs_and_names(folder):
    assert complete("st") == {"status"}
    assert complete("predict", "--model", "") == set(discover("models.families", "FAMILY"))
    assert complete("predict", "--operation", "") == set(list_operations())
    assert complete("predict", "--topology", "k") == {"kary", "knomial"}
    assert complete("advise", "--layout", "c") == {"cyclic"}
    assert complete("run", "demo", "--profile", "") == {"local", "slurm"}
    assert complete("export", "g") == {"goal"}
    with chdir(folder):
        assert "cluster" in complete("run", "cl")
        assert complete("advise", "--platform", "fast-ethernet-3") == {"fast-ethernet-32"}
    with chdir("/"):
        assert "cluster" in complete("-C", str(folder), "run", "cl")


def test_tab_completion_offers_results_folders_only_to_verbs_that_read_results(tmp_path):
    """A copied results folder is not an experiment that can be run."""
    (tmp_path / "params/experiments").mkdir(parents=True)
    (tmp_path / "params/experiments/mine.yaml").touch()
    for name in ("mine", "october"):
        (tmp_path / "results" / name).mkdir(parents=True)
        (tmp_path / "results" / name / "plan.json").touch()
    with chdir(tmp_path):
        assert complete("advise", "--experiment", "") == {"mine", "october"}
        assert complete("run", "") == complete("plan", "") == {"mine"}


@pytest.mark.parametrize("operation", sorted(list_operations()))
def test_tab_offers_the_algorithms_of_the_operation(operation):
    known = {spec.partition(":")[0] for spec in find_algorithms(operation)}
    assert (
        known
        <= complete("predict", "--operation", operation, "--algorithm", "")
        <= known | {"tree"}
    )


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell(shell):
    if shutil.which(shell) or shell != "bash":
        assert "_COMMODEL_COMPLETE" in run(f"completion {shell}").stdout


@pytest.mark.parametrize(
    ("typed", "offer", "verb"),
    [
        ("predict --operation bcast --algorithm ", "binomial", "predict"),
        ("import ", "osu", "import_"),
    ],
)
def test_tab_imports_nothing_heavy(typed, offer, verb):
    """These imports would take longer than 0.3 s of processor time, the limit for TAB. The time
    itself is not tested, since it depends on the load of the machine."""
    words = {"COMP_WORDS": f"commodel {typed}", "COMP_CWORD": f"{len(typed.split()) + 1}"}
    code = (
        "import sys; from commodel.cli import main\ntry: main(prog_name='commodel')\nfinally: "
        "print(*sys.modules)"
    )
    environment = os.environ | words | {"_COMMODEL_COMPLETE": "bash_complete"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert f"plain,{offer}" in done.stdout
    modules = done.stdout.splitlines()[-1].split()
    assert f"commodel.cli.{verb}" in modules
    assert not {"numpy", "pandas", "pydantic", "scipy"} & set(modules)


def test_hard_coded_option_choices_equal_the_implemented_choices():
    def choices_of(command, option):
        return list(
            next(parameter for parameter in command.params if parameter.name == option).type.choices
        )

    export = main.get_command(None, "export")
    assert choices_of(export.get_command(None, "goal"), "unit") == list(goal.UNITS)
    assert choices_of(main.get_command(None, "show").commands["schedule"], "style") == list(
        schedule_files.STYLES
    )
    assert choices_of(main.get_command(None, "show").commands["topology"], "style") == [
        *files.STYLES,
        "svg",
    ]
    assert choices_of(main.get_command(None, "build"), "toolchain") == list(list_toolchains())


def test_wide_tables_have_wrapped_columns_or_are_printed_vertically(monkeypatch):
    """Piped output has at most 100 columns as well."""
    rows = [{"name": "loggp", "title": "LogGP", "parameters": "L o_s o_r g G gamma", "n": 3}]
    monkeypatch.setattr("sys.stdout", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setenv("COLUMNS", "35")
    assert format_table(rows).splitlines() == [
        "name   title  parameters          n",
        "loggp  LogGP  L o_s o_r g G       3",
        "              gamma",
    ]
    monkeypatch.setenv("COLUMNS", "26")
    assert format_table(rows) == (
        "name        loggp\ntitle       LogGP\nparameters  L o_s o_r g G gamma\nn           3"
    )
    monkeypatch.setenv("COLUMNS", "44")
    assert format_table(rows).count("\n") == 1
    monkeypatch.setattr("sys.stdout", SimpleNamespace(isatty=lambda: False))
    monkeypatch.delenv("COLUMNS")
    assert format_table(rows).count("\n") == 1
    wide = [{"name": "loggp", "text": "word " * 30, "last": "x" * 10}]
    assert {len(line) <= 100 for line in format_table(wide).splitlines()} == {True}


def test_times_of_a_table_have_one_unit_and_columns_with_one_value_stand_above():
    rows = [{"model": "loggp", "bytes": size, "time": size * 1.2345e-6} for size in (1, 10, 100)]
    assert format_table(rows, ("time",), fold=True).splitlines() == [
        "model loggp",
        "",
        "bytes  time [µs]",
        "    1       1.23",
        "   10       12.3",
        "  100        123",
    ]
    equal_rows = [{"model": "loggp", "bytes": 8}] * 2
    assert format_table(equal_rows, fold=True).splitlines() == [
        "model  bytes",
        "loggp      8",
        "loggp      8",
    ]


def test_an_operation_without_data_needs_no_message_size():
    """A barrier has no message size."""
    run("show schedule --operation barrier --algorithm linear --ranks 4")


def test_no_arguments_get_the_help():
    result = CliRunner().invoke(main, [])
    assert "commodel run sample" in result.output
