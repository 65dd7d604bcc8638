"""What a verb loads: nothing heavy to show its help, and to price one point no more than its own family."""

import json
import subprocess
import sys

import pytest

from commodel.cli import main

HEAVY = {"jinja2", "vl_convert", "openpyxl", "pandas", "pyarrow", "scipy", "snakemake", "xlsxwriter"}
SHOW = "import json, sys; from commodel.cli import main; main(sys.argv[1:], standalone_mode=False); "
SHOW += "print(); print(json.dumps(sorted(sys.modules)))"
PREDICT = "predict --family loggp --set L=1us --set o_s=1us --set o_r=1us --set g=1us --set G=1ns"
PREDICT += " --operation bcast --algorithm binomial --ranks 16 --bytes 1"


def loaded(*arguments):
    run = subprocess.run([sys.executable, "-c", SHOW, *arguments], capture_output=True, text=True, check=True)
    return set(json.loads(run.stdout.splitlines()[-1]))


@pytest.mark.parametrize("verb", main.list_commands(None))
def test_help_loads_nothing_heavy(verb):
    assert not HEAVY & loaded(verb, "--help")


def test_the_price_of_a_point_loads_its_own_family_only():
    modules = loaded(*PREDICT.split())
    assert not HEAVY & modules
    families = {name for name in modules if name.startswith("commodel.models.families.")}
    assert families == {"commodel.models.families.loggp"}


def test_to_measure_and_to_look_how_far_that_is_loads_no_tables():
    """Every batch's job and every start of the workflow does so."""
    load = "import json, sys, commodel.measure.batch, commodel.results.campaign, commodel.results.progress; "
    run = subprocess.run(
        [sys.executable, "-c", load + "print(json.dumps(list(sys.modules)))"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert not HEAVY & set(json.loads(run.stdout))
