"""Inputs that `make fuzz` found. Each once caused a traceback; each is now refused in one line."""

import json

import pytest

from commodel.errors import UserError
from commodel.files.parameter_sets import read_parameters
from commodel.files.results_folder import Results
from commodel.plan.planning import load_plan
from commodel.reports.stored_results import list_machines
from commodel.results.provenance import NO_PROVENANCE
from commodel_formats import taulop
from tests.fuzz import forms, readers, targets


def edit(change):
    """Return a function that makes an edited plan file. Plans are made only when a test runs."""

    def content():
        plan = json.loads(readers.make_plan_text())
        change(plan)
        return json.dumps(plan).encode()

    return content


def platform(**fields):
    return edit(lambda plan: [entry.update(fields) for entry in plan["platforms"].values()])


def case(**fields):
    return edit(
        lambda plan: next(batch for batch in plan["batches"] if batch["cases"])["cases"][0].update(
            fields
        )
    )


def point(**fields):
    return lambda plan: next(batch for batch in plan["batches"] if batch["points"])["points"][
        0
    ].update(fields)


FOUND = {
    "a raw file that is not UTF-8": ("raw", b"\x80" + targets.RAW),
    "a raw file of one cell": ("raw", targets.RAW + b'"' + b"x" * 200_000),
    "an unknown form": (
        "parameters",
        b"model: hockney\nforms: {alpha: 0constant}\nparameters: {alpha.a: 1, beta.a: 1}",
    ),
    "a size of 400 digits": (
        "parameters",
        b"model: plogp\nforms: {g: table}\nparameters: {L: 1, g.%s: 1}" % (b"9" * 400),
    ),
    "a value that is not a number": (
        "parameters",
        b"model: hockney\nparameters: {alpha.a: nan, beta.a: 1}",
    ),
    "different numbers of draws": (
        "parameters",
        b"model: hockney\nparameters: {alpha.a: 1, beta.a: 1}\ndraws: {alpha.a: [1, 2], beta.a: [1]}",
    ),
    "a range of bytes with one end": (
        "parameters",
        b"model: hockney\nbytes_range: [1]\nparameters: {alpha.a: 1, beta.a: 1}",
    ),
    "a range of bytes whose end is below its start": (
        "parameters",
        b"model: hockney\nbytes_range: [9, 1]\nparameters: {alpha.a: 1, beta.a: 1}",
    ),
    "ranks that are a word": (
        "parameters",
        b"model: bsp\nsettings: {ranks: x}\nparameters: {g: 1, l.a: 1}",
    ),
    "a word without end": (
        "import skampi",
        b'begin result "MPI_Bcast"\n' + b"x" * 1_000_000 + b"\n",
    ),
    "blanks without end": (
        "import osu",
        b"# OSU MPI Bcast Latency Test\n# lat (us)" + b" " * 1_000_000 + b"\n",
    ),
    "a title of blanks": ("import osu", b"# OSU MPI " + b" " * 1_000_000 + b"\n"),
    "JSON without end": ("plan", b"[" * 100_000),
    "a plan that is a list": ("plan", b"[]"),
    "a platform without keys": (
        "plan",
        edit(lambda plan: [entry.clear() for entry in plan["platforms"].values()]),
    ),
    "a batch with a path outside the results folder": (
        "plan",
        edit(lambda plan: plan["batches"][0].update(name="../../x")),
    ),
    "an experiment with a path outside the results folder": (
        "plan",
        edit(lambda plan: plan.update(experiment="../x")),
    ),
    "ranks that are text": ("plan", edit(point(ranks="4"))),
    "ranks below 0": ("plan", edit(point(ranks=-4))),
    "a layout that is a list": ("plan", edit(point(layout=["block"]))),
    "a model that is a path": ("plan", edit(lambda plan: plan.update(models=["../../x"]))),
    "a model that is a number": ("plan", edit(lambda plan: plan.update(models=[1]))),
    "models that are a mapping of lists": (
        "plan",
        edit(lambda plan: plan.update(models=[["loggp"]])),
    ),
    "a probe that is a path": ("plan", edit(lambda plan: plan.update(probes={"../x": []}))),
    "a container that is text": ("plan", platform(container="x")),
    "a container without some keys": ("plan", platform(container={"image": "x"})),
    "a container of lists": (
        "plan",
        platform(container={"image": [], "digest": "", "model": "", "native": ""}),
    ),
    "types that are a list": ("plan", platform(types=["fat"])),
    "numbers of types that are text": ("plan", platform(types={"fat": "2"})),
    "a platform that is text": (
        "plan",
        edit(lambda plan: plan["platforms"].update(dict.fromkeys(plan["platforms"], "x"))),
    ),
    "a platform whose key simulated is text": ("plan", platform(simulated="yes")),
    "a timeout that is a list": ("plan", edit(lambda plan: plan["measure"].update(timeout=[]))),
    "an unknown kind of synchronization": (
        "plan",
        edit(lambda plan: plan["measure"].update(sync="; touch x")),
    ),
    "a setting of a case that is a list": ("plan", case(settings={"bytes": [1]})),
    "a node of a case that is text": ("plan", case(where=["0"])),
    "a batch on an unknown platform": (
        "plan",
        edit(lambda plan: plan["batches"][0].update(platform="none")),
    ),
    "a duration that is not a number": (
        "plan",
        edit(lambda plan: plan["batches"][0].update(seconds=float("nan"))),
    ),
}


@pytest.mark.parametrize(("name", "content"), FOUND.values(), ids=FOUND)
def test_an_error_of_one_line_refuses_each_input(tmp_path, name, content):
    with pytest.raises(UserError) as caught:
        targets.TARGETS[name].run(content() if callable(content) else content, tmp_path)
    assert str(tmp_path) in caught.value.message or "model" in caught.value.message


@pytest.mark.parametrize("bytes_range", ["[9, 1]", "[-1, 9]"])
def test_an_invalid_bytes_range_is_refused_with_line_and_key(tmp_path, bytes_range):
    path = tmp_path / "set.yaml"
    path.write_text(
        f"model: hockney\nbytes_range: {bytes_range}\nparameters: {{alpha.a: 1, beta.a: 1}}\n"
    )
    with pytest.raises(UserError, match=r"set\.yaml:2: bytes_range: found no range"):
        read_parameters(path)


@pytest.mark.parametrize(
    "text",
    [
        "inf 1e-6 2e-6\n",
        "nan 1e-6 2e-6\n",
        "1e400 1 1\n",
        "0 nan 1\n",
        "0 1e-6 -1\n",
        "0.5 1 1\n",
        "0\n",
    ],
)
def test_wrong_numbers_in_tables_of_tau_lop_are_refused(tmp_path, text):
    (tmp_path / "SHM.txt").write_text(text)
    with pytest.raises(UserError, match=r"SHM\.txt:1: "):
        taulop.read_tables(tmp_path)


def test_a_gamma_table_row_shorter_than_the_header_is_refused(tmp_path):
    (tmp_path / "SHM.txt").write_text(forms.CHANNEL)
    (tmp_path / "gamma.txt").write_text("#size a b c SUM_I\n0 1 2\n")
    with pytest.raises(UserError, match=r"gamma\.txt: found 2 numbers in a row"):
        taulop.read_tables(tmp_path)


def test_a_correct_plan_is_read(tmp_path):
    (tmp_path / "plan.json").write_bytes(readers.make_plan_text())
    assert load_plan(tmp_path / "plan.json").points


def test_a_correct_raw_file_is_read(tmp_path):
    readers.read_raw_samples(targets.RAW, tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            platform(container="x"),
            r"plan\.json: platforms\.\S+\.container: found 'x', wanted a mapping",
        ),
        (
            platform(simulated=1),
            r"plan\.json: platforms\.\S+\.simulated: found '1', wanted true or false",
        ),
        (
            edit(lambda plan: plan.update(models=["../x"])),
            r"plan\.json: models\[0\]: found '\.\./x', wanted a name",
        ),
        (
            edit(lambda plan: plan["measure"].update(warmup=-1)),
            r"plan\.json: measure\.warmup: found '-1'",
        ),
    ],
)
def test_the_error_of_a_wrong_plan_names_the_key(tmp_path, content, message):
    (tmp_path / "plan.json").write_bytes(content())
    with pytest.raises(UserError, match=message):
        load_plan(tmp_path / "plan.json")


@pytest.mark.parametrize(
    "text", ["scalar", "- a\n", "hosts: x\n", "hosts: {names: x}\n", "hosts: {names: {a: 1}}\n"]
)
def test_a_wrong_platform_file_is_refused_by_list_machines(tmp_path, text):
    folder = tmp_path / "inputs/platforms"
    folder.mkdir(parents=True)
    (folder / "p.yaml").write_text(text)
    with pytest.raises(UserError, match=r"p\.yaml:1: .*wanted a (mapping|list)"):
        list_machines({}, NO_PROVENANCE, Results.of(tmp_path))
