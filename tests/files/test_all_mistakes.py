"""All mistakes of one file are reported at once, one line each, ten lines at most."""

import pytest
from click.testing import CliRunner

from commodel.cli import main
from commodel.errors import MAX_SHOWN_MISTAKES, Mistakes, UserError
from commodel.files.parameter_sets import read_parameters
from commodel.files.tables import OBSERVATIONS, read_table
from commodel.plan.config import load_experiment, load_platform


def lines_of(load, path, text):
    path.write_text(text)
    with pytest.raises(UserError) as refused:
        load(path)
    return [line.replace(f"{path}:", "") for line in refused.value.lines()]


def test_an_experiment(tmp_path):
    text = (
        "platform: local\nsed: x\nseed: y\nprobe_bytes: z\nmodels: []\nmeasure: {precison: 2, sync: no}\n"
        "matrix:\n  - axes: {ranks: [a], operation: bcast}\n"
    )
    assert lines_of(load_experiment, tmp_path / "e.yaml", text) == [
        "2: sed: found an unknown key; did you mean 'seed'?",
        "3: seed: found 'y', wanted a whole number",
        "4: probe_bytes: found 'z', wanted a size such as 4096, 64KiB or 1 MB",
        "5: models: found an empty list, wanted 'all' or a list of names",
        "6: measure.precison: found an unknown key; did you mean 'precision'?",
        "6: measure.sync: found 'no'; wanted one of: barrier, window",
        "8: matrix[0].axes.ranks[0]: found 'a', wanted a whole number",
    ]


def test_a_platform(tmp_path):
    lines = lines_of(load_platform, tmp_path / "p.yaml", "launcher: locale\nnode: 1\ncores: all\n")
    assert [line.removesuffix(" on this machine") for line in lines] == [
        "1: launcher: found 'locale'; did you mean 'local'?",
        "2: node: found an unknown key; did you mean 'nodes'?",
        "3: cores: found 'all', wanted a whole number, or 'auto'",
        "1: found no key 'nodes'",
    ]


def test_a_parameter_set(tmp_path):
    lines = lines_of(
        read_parameters,
        tmp_path / "s.yaml",
        "model: loggp\nplatform: 3\nsimulated: maybe\nparameters: 4\n",
    )
    assert [line.partition(": found")[0] for line in lines[:3]] == [
        "2: platform",
        "3: simulated",
        "4: parameters",
    ]


def test_a_table_that_a_person_wrote(tmp_path, monkeypatch):
    rows = [f"bcast,{ranks},{size},ring" for ranks, size in (("a", 8), (4, "x"), (4, 8), (1, 8))]
    (tmp_path / "t.csv").write_text("\n".join(["operation,ranks,bytes,algorithm", *rows]) + "\n")
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, ["export", "rules", "t.csv"])
    assert result.exit_code == 2
    assert [line.split(": found")[0] for line in result.stderr.splitlines()] == [
        "commodel: t.csv:2: ranks",
        "commodel: t.csv:3: bytes",
        "commodel: t.csv:5: ranks",
    ]


def test_a_table_that_a_stage_left_and_somebody_changed(tmp_path):
    names = [field.name for field in OBSERVATIONS]
    numbers = [field.name for field in OBSERVATIONS if field.type is int and not field.blank][:2]
    rows = [
        ["" if name not in numbers else "x" if row in (1, 3) else "1" for name in names]
        for row in range(5)
    ]
    text = "\n".join(",".join(row) for row in [names, *rows]) + "\n"
    told = lines_of(
        lambda path: read_table(path, tuple(f for f in OBSERVATIONS if f.name in numbers)),
        tmp_path / "o.csv",
        text,
    )
    assert told == [
        f"{line}: {name}: found 'x', wanted a whole number, not negative"
        for line in (3, 5)
        for name in numbers
    ]


def test_of_thousands_of_mistakes_ten_are_shown(tmp_path):
    text = "platform: local\n" + "".join(f"k{number}: 1\n" for number in range(20_000))
    lines = lines_of(load_experiment, tmp_path / "e.yaml", text)
    assert len(lines) == MAX_SHOWN_MISTAKES + 1
    assert lines[-1].startswith("and ")
    assert lines[-1].endswith(" more mistakes in this file")


def test_mistakes_are_kept_up_to_ten_and_counted():
    mistakes = Mistakes()
    for number in range(25):
        mistakes.add(UserError(f"mistake {number}"))
    with pytest.raises(UserError) as refused:
        mistakes.raise_any()
    assert refused.value.lines() == [
        *(f"mistake {number}" for number in range(10)),
        "and 15 more mistakes in this file",
    ]
    Mistakes().raise_any()
