"""commodel export: files of commodel_formats for other tools."""

import csv

import pytest

from commodel.cli import main
from commodel_formats import extrap
from tests.cli.running import refused, run
from tests.cli.test_export import LOGGP


def test_extrap(tmp_path):
    table = tmp_path / "comparison.csv"
    table.write_text(
        "point,platform,operation,alternative,layout,ranks,bytes,measured,model\n"
        "a,x,bcast,binomial,block:1,4,8,1.25e-5,logp\na,x,bcast,binomial,block:1,4,8,1.25e-5,loggp\n"
    )
    said = run(f"export extrap {table} -o {tmp_path}/x.txt").stdout
    assert said == f"{tmp_path / 'x.txt'}\n"
    assert (
        (tmp_path / "x.txt")
        .read_text()
        .endswith("REGION bcast->binomial\nMETRIC time\nDATA 0.0000125\n")
    )
    run(f"export extrap {table} --format jsonl -o {tmp_path}/x.jsonl")
    assert '"value": [1.25e-05]' in (tmp_path / "x.jsonl").read_text()


def test_simgrid(tmp_path):
    (tmp_path / "set.yaml").write_text(LOGGP)
    printed = run(f"export simgrid {tmp_path}/set.yaml --nodes 8 -o {tmp_path}/p.yaml").stdout
    assert printed == f"{tmp_path}/p.yaml\n{tmp_path}/p.xml\n"
    assert "file: p.xml" in (tmp_path / "p.yaml").read_text()
    assert 'radical="0-7"' in (tmp_path / "p.xml").read_text()


TABLES = {
    "comparison": "point,platform,operation,alternative,layout,ranks,bytes,measured,model\n"
    "a,x,bcast,binomial,block:1,4,8,1.25e-5,logp\n",
    "observations": "kind,name,alternative,platform,layout,ranks,bytes,seconds,valid\n"
    "point,bcast,binomial,x,block:1,4,8,1.25e-5,True\n",
}


@pytest.mark.parametrize("name", TABLES)
def test_an_edited_table_is_refused_in_one_line_and_no_file_is_written(name, tmp_path):
    path = tmp_path / f"{name}.csv"
    path.write_text(TABLES[name])
    assert run(f"export extrap {path} -o {tmp_path}/x.txt").stdout
    (tmp_path / "x.txt").unlink()
    head, row = csv.reader(TABLES[name].splitlines())
    place = head.index("ranks")
    wrong_cell = [head, [*row[:place], "many", *row[place + 1 :]]]
    lost_column = [cells[:place] + cells[place + 1 :] for cells in (head, row)]
    for rows in (wrong_cell, lost_column, [["x"]], [[]]):
        with path.open("w", newline="") as stream:
            csv.writer(stream, lineterminator="\n").writerows(rows)
        assert f"{path.name}:" in refused(f"export extrap {path} -o {tmp_path}/x.txt")
        assert not (tmp_path / "x.txt").exists()


def test_the_choices_of_the_option_are_those_that_are_implemented():
    command = main.get_command(None, "export").get_command(None, "extrap")
    (style,) = (parameter for parameter in command.params if parameter.name == "style")
    assert list(style.type.choices) == list(extrap.STYLES)
