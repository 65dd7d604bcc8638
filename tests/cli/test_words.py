"""Names are found whatever their case, files from where the user stands, the project from any folder in it; TAB offers
what there is."""

import os
import shutil
import subprocess
import sys
from contextlib import chdir
from types import SimpleNamespace

import click
import pytest
from click.shell_completion import ShellComplete

from commodel.cli import main
from commodel.cli._options import File, project
from commodel.cli._output import table
from commodel.interchange import extrap, goal
from commodel.patterns import schedule_files
from commodel.patterns.algorithms import choices
from commodel.patterns.operations import operations
from commodel.patterns.trees import files
from commodel.platforms.build import COMPILERS
from commodel.platforms.tools import ROOT
from commodel.registry import discover
from tests.cli.running import CAB, run


@pytest.fixture
def folder(tmp_path):
    """A project with a folder in it, where a user stands and has files."""
    shutil.copytree(ROOT / "params" / "platforms", tmp_path / "params" / "platforms")
    shutil.copytree(ROOT / "params" / "experiments", tmp_path / "params" / "experiments")
    deep = tmp_path / "notes" / "today"
    deep.mkdir(parents=True)
    shutil.copy(ROOT / CAB, deep / "tan.yaml")
    return deep


PREDICT = "predict --params tan.yaml --operation reduce --topology flat:4 --format csv"


def test_any_folder_of_a_project_is_in_it(folder):
    with chdir(folder):
        below = run("plan cluster --format csv").stdout
        prices = run(f"{PREDICT}").stdout
        run("export mrnet flat:3 -o tree.top")
    with chdir(folder.parents[1]):
        assert run("plan cluster --format csv").stdout == below
    assert (folder / "tree.top").exists()
    assert "tan,reduce" in prices


def test_another_folder_by_its_name(folder, tmp_path_factory):
    with chdir(tmp_path_factory.mktemp("elsewhere")):
        assert "tan,reduce" in run(f"-C {folder} {PREDICT}").stdout
        assert run(f"-C {folder} plan cluster").stdout
        assert "does not exist" in run("-C nowhere plan cluster", code=2).stderr
        assert "commodel init DIR" in run("plan cluster", code=2).stderr
        assert os.getcwd() != str(folder)


def test_a_folder_of_somebody_else_above_is_no_project(folder, monkeypatch):
    assert project(folder) == folder.parents[1]
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert project(folder) == folder


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("PLAN Demo --only LOCAL --format CSV", "plan demo --only local --format csv"),
        ("families LogGP", "families loggp"),
        ("algorithms Bcast", "algorithms bcast"),
        ("topology Flat:4 --format text", "topology flat:4 --format text"),
        ("layout Cyclic:2 --ranks 6", "layout cyclic:2 --ranks 6"),
        (
            "schedule --operation BCAST --algorithm Chain:4KiB --ranks 3 --bytes 8KiB",
            "schedule --operation bcast --algorithm chain:4KiB --ranks 3 --bytes 8KiB",
        ),
    ],
)
def test_names_whatever_their_case(typed, meant):
    assert run(*typed.split()).stdout == run(*meant.split()).stdout != ""


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("pln demo", "plan"), ("export mrnt flat:2", "mrnet"), ("families logp-tam", "logp-tan"), ("plan dmo", "demo")],
)
def test_a_name_that_is_nearly_right(typed, meant):
    error = run(*typed.split(), code=2).stderr
    assert f"id you mean '{meant}'?" in error
    assert error.count("\n") == 1


def test_every_file_is_taken_from_where_the_user_stands():
    """Also those of verbs that are yet to come."""
    for name in main.list_commands(None):
        verb = main.get_command(None, name)
        for command in (verb, *getattr(verb, "commands", {}).values()):
            for parameter in command.params:
                assert isinstance(parameter.type, File) or not isinstance(parameter.type, click.Path), (name, parameter)


def test_a_published_set_is_found_without_a_clone(tmp_path):
    with chdir(tmp_path):
        command = ("predict", "--params", CAB, "--operation", "reduce", "--topology", "flat:4")
        assert "tan" in run(*command).stdout


def offered(*words):
    """What TAB offers for the last of the words, each once."""
    items = ShellComplete(main, {}, "commodel", "").get_completions(list(words[:-1]), words[-1])
    assert len({item.value for item in items}) == len(items)
    return {item.value for item in items}


def test_tab_offers_what_there_is(folder):
    assert offered("st") == {"status"}
    assert offered("predict", "--family", "") == set(discover("models.families", "FAMILY"))
    assert offered("predict", "--operation", "") == set(operations())
    assert offered("predict", "--topology", "k") == {"kary", "knomial"}
    assert offered("advise", "--layout", "c") == {"cyclic"}
    assert offered("run", "demo", "--profile", "") == {"local", "slurm"}
    assert offered("export", "g") == {"goal"}
    with chdir(folder):
        assert "cluster" in offered("run", "cl")
        assert offered("advise", "--platform", "fast-ethernet-3") == {"fast-ethernet-32"}
    with chdir("/"):
        assert "cluster" in offered("-C", str(folder), "run", "cl")


def test_tab_offers_folders_of_results_where_a_verb_reads_them(tmp_path):
    """A copy of results is no experiment that could be run."""
    (tmp_path / "params/experiments").mkdir(parents=True)
    (tmp_path / "params/experiments/mine.yaml").touch()
    for name in ("mine", "october"):
        (tmp_path / "results" / name).mkdir(parents=True)
        (tmp_path / "results" / name / "plan.json").touch()
    with chdir(tmp_path):
        assert offered("advise", "--experiment", "") == {"mine", "october"}
        assert offered("run", "") == offered("plan", "") == {"mine"}


@pytest.mark.parametrize("operation", sorted(operations()))
def test_tab_offers_the_algorithms_of_the_operation(operation):
    known = {spec.partition(":")[0] for spec in choices(operation)}
    assert known <= offered("predict", "--operation", operation, "--algorithm", "") <= known | {"tree"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell(shell):
    if shutil.which(shell) or shell != "bash":
        assert "_COMMODEL_COMPLETE" in run(f"completion {shell}").stdout


@pytest.mark.parametrize(
    ("typed", "offer", "verb"),
    [("predict --operation bcast --algorithm ", "binomial", "predict"), ("import ", "pico", "import_")],
)
def test_tab_imports_nothing_heavy(typed, offer, verb):
    """That is what keeps it below 0.3 s of a processor; a test of time would fail on a busy machine."""
    words = {"COMP_WORDS": f"commodel {typed}", "COMP_CWORD": f"{len(typed.split()) + 1}"}
    code = "import sys; from commodel.cli import main\ntry: main(prog_name='commodel')\nfinally: print(*sys.modules)"
    environment = os.environ | words | {"_COMMODEL_COMPLETE": "bash_complete"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert f"plain,{offer}" in done.stdout
    modules = done.stdout.splitlines()[-1].split()
    assert f"commodel.cli.{verb}" in modules
    assert not {"numpy", "pandas", "pydantic", "scipy"} & set(modules)


def test_choices_that_are_not_imported_are_those_that_there_are():
    def choices_of(command, option):
        return list(next(parameter for parameter in command.params if parameter.name == option).type.choices)

    commands = main.get_command(None, "export").commands
    assert choices_of(commands["goal"], "unit") == list(goal.UNITS)
    assert choices_of(commands["extrap"], "style") == list(extrap.STYLES)
    assert choices_of(main.get_command(None, "schedule"), "style") == list(schedule_files.STYLES)
    assert choices_of(main.get_command(None, "topology"), "style") == [*files.STYLES, "svg"]
    assert choices_of(main.get_command(None, "build"), "toolchain") == list(COMPILERS)


def test_a_table_that_is_wider_than_the_terminal_stands_upright(monkeypatch):
    """Wrapped lines of a table cannot be read. What is piped stays a table, however wide."""
    rows = [{"name": "loggp", "title": "LogGP", "parameters": "L o_s o_r g G gamma", "n": 3}]
    monkeypatch.setattr("sys.stdout", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setenv("COLUMNS", "32")
    assert table(rows) == ("name        loggp\ntitle       LogGP\nparameters  L o_s o_r g G gamma\nn           3")
    monkeypatch.setenv("COLUMNS", "44")
    assert table(rows).count("\n") == 1
    monkeypatch.setattr("sys.stdout", SimpleNamespace(isatty=lambda: False))
    monkeypatch.setenv("COLUMNS", "32")
    assert table(rows).count("\n") == 1
