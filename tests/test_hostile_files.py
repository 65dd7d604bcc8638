"""What `make fuzz` found: each ended in a traceback once, and is refused in one line since."""

import json

import pytest

from commodel.errors import UserError
from commodel.interchange import taulop
from commodel.plan import load_plan
from tests.fuzz import forms, targets


def edit(change):
    plan = json.loads(targets.plan_text())
    change(plan)
    return json.dumps(plan).encode()


def point(**fields):
    return lambda plan: next(batch for batch in plan["batches"] if batch["points"])["points"][0].update(fields)


FOUND = {
    "a raw file that is not UTF-8": ("raw", b"\x80" + targets.RAW),
    "a raw file of one cell": ("raw", targets.RAW + b'"' + b"x" * 200_000),
    "a form of no function": (
        "parameters",
        b"family: hockney\nforms: {alpha: 0constant}\nparameters: {alpha.a: 1, beta.a: 1}",
    ),
    "a size of 400 digits": (
        "parameters",
        b"family: plogp\nforms: {g: table}\nparameters: {L: 1, g.%s: 1}" % (b"9" * 400),
    ),
    "a value that is none": ("parameters", b"family: hockney\nparameters: {alpha.a: nan, beta.a: 1}"),
    "draws that are not equally many": (
        "parameters",
        b"family: hockney\nparameters: {alpha.a: 1, beta.a: 1}\ndraws: {alpha.a: [1, 2], beta.a: [1]}",
    ),
    "a range of bytes with one end": (
        "parameters",
        b"family: hockney\nbytes_range: [1]\nparameters: {alpha.a: 1, beta.a: 1}",
    ),
    "ranks that are a word": ("parameters", b"family: bsp\nsettings: {ranks: x}\nparameters: {g: 1, l.a: 1}"),
    "a word without end": ("import skampi", b'begin result "MPI_Bcast"\n' + b"x" * 1_000_000 + b"\n"),
    "blanks without end": ("import osu", b"# OSU MPI Bcast Latency Test\n# lat (us)" + b" " * 1_000_000 + b"\n"),
    "a title of blanks": ("import osu", b"# OSU MPI " + b" " * 1_000_000 + b"\n"),
    "JSON without end": ("plan", b"[" * 100_000),
    "a plan that is a list": ("plan", b"[]"),
    "a platform that lacks something": ("plan", edit(lambda plan: [one.clear() for one in plan["platforms"].values()])),
    "a batch that leaves its folder": ("plan", edit(lambda plan: plan["batches"][0].update(name="../../x"))),
    "an experiment that leaves its folder": ("plan", edit(lambda plan: plan.update(experiment="../x"))),
    "ranks that are text": ("plan", edit(point(ranks="4"))),
    "ranks below 0": ("plan", edit(point(ranks=-4))),
    "a layout that is a list": ("plan", edit(point(layout=["block"]))),
    "an estimate that is no number": ("plan", edit(lambda plan: plan["batches"][0].update(seconds=float("nan")))),
}


@pytest.mark.parametrize(("name", "content"), FOUND.values(), ids=FOUND)
def test_one_line(tmp_path, name, content):
    with pytest.raises(UserError) as caught:
        targets.TARGETS[name].run(content, tmp_path)
    assert str(tmp_path) in caught.value.message or "family" in caught.value.message


@pytest.mark.parametrize(
    "text",
    ["inf 1e-6 2e-6\n", "nan 1e-6 2e-6\n", "1e400 1 1\n", "0 nan 1\n", "0 1e-6 -1\n", "0.5 1 1\n", "0\n"],
)
def test_tables_of_tau_lop(tmp_path, text):
    (tmp_path / "SHM.txt").write_text(text)
    with pytest.raises(UserError, match=r"SHM\.txt:1: "):
        taulop.read(tmp_path)


def test_a_gamma_without_the_column_that_its_head_names(tmp_path):
    (tmp_path / "SHM.txt").write_text(forms.CHANNEL)
    (tmp_path / "gamma.txt").write_text("#size a b c SUM_I\n0 1 2\n")
    with pytest.raises(UserError, match=r"gamma\.txt: found 2 numbers in a row"):
        taulop.read(tmp_path)


def test_a_plan_that_is_in_order_is_read(tmp_path):
    (tmp_path / "plan.json").write_bytes(targets.plan_text())
    assert load_plan(tmp_path / "plan.json").points


def test_a_raw_file_that_is_in_order_is_read(tmp_path):
    targets.raw_file(targets.RAW, tmp_path)
