"""Edited tables of a received folder: for any changed cell or column, every verb that reads the
table reports one line."""

import csv
from functools import lru_cache

import pytest

from commodel.errors import UserError
from commodel.files import tables
from commodel.files.safe_paths import SafePath
from commodel.files.tables import Field, read_table

TABLES = {
    "observations": tables.OBSERVATIONS,
    "summary": tables.SUMMARY,
    "distributions": tables.DISTRIBUTIONS,
    "unmeasured": tables.UNMEASURED,
    "comparison": tables.COMPARISON,
    "predictions/hockney": tables.PREDICTIONS,
}
READERS = {  # and which of them each verb reads
    "compare": ("observations", "predictions/hockney", "unmeasured"),
    "fit": ("observations",),
    "report": ("comparison", "summary", "distributions", "unmeasured"),
    "advise": ("comparison",),
}
WRONG = {  # by the type of a column: what a cell of it may not hold
    int: ("x", "1.5", "-1", "9" * 40, "1e300", "inf"),
    float: ("x", "1e-6 s"),
    bool: ("x", "2", ""),
    str: (),
}


@pytest.fixture(scope="module")
def original(original, tmp_path_factory):
    here = original.copy(tmp_path_factory.mktemp("edited") / "root")
    lacking = here.results / "unmeasured.csv"
    lacking.write_text(
        lacking.read_text() + "a,b,two-cores,False,point,bcast,linear,block:2,2,1,,8,,late,why\n"
    )
    return here


@lru_cache
def read_rows(path, last=None):
    """Return the header and the last rows of a table, or all of them."""
    with path.open(newline="") as stream:
        head, *rows = csv.reader(stream)
    return [head, *rows[-last if last else None :]]


def write(path, rows):
    with path.open("w", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerows(rows)


def replace_last_cell(rows, name, cell):
    """Return the rows with one cell of the last row replaced."""
    last = list(rows[-1])
    last[rows[0].index(name)] = cell
    return [*rows[:-1], last]


def without(rows, name):
    place = rows[0].index(name)
    return [row[:place] + row[place + 1 :] for row in rows]


def keep(rows, names):
    places = [place for place, name in enumerate(rows[0]) if name in names]
    return [[row[place] for place in places] for row in rows]


def wrong_cells(field: Field) -> tuple[str, ...]:
    cells = WRONG[field.type] + (("x",) if field.among or field.pattern else ())
    return (
        cells
        + (("",) if field.type in (int, float) and not field.blank else ())
        + (("inf",) if field.unit else ())
    )


@pytest.mark.parametrize("name", TABLES)
def test_tables_written_by_stages_match_the_schema(name, original):
    header, *_ = read_rows(original.results / f"{name}.csv")
    known = {field.name: field for field in TABLES[name]}
    assert set(header) <= set(known)
    assert {name for name, field in known.items() if not field.optional} <= set(header)
    if name != "observations":  # whose settings are those of its probes
        assert header == [field for field in known if field in header]
    assert (
        len(read_table(original.results / f"{name}.csv", TABLES[name]))
        == len(read_rows(original.results / f"{name}.csv")) - 1
    )


@pytest.mark.parametrize("name", TABLES)
def test_every_wrong_cell_and_every_lost_column_is_named(name, original, tmp_path):
    """The first wrong cell of each column stands in the whole table, which takes longer to read.
    The others stand in a table of two columns."""
    whole = read_rows(original.results / f"{name}.csv", last=3)
    text = next(field for field in TABLES[name] if field.type is str and field.name in whole[0])
    path = SafePath(tmp_path) / "t.csv"
    for field in (field for field in TABLES[name] if field.name in whole[0]):
        rows, schema = whole, TABLES[name]
        for cell in wrong_cells(field):
            write(tmp_path / "t.csv", replace_last_cell(rows, field.name, cell))
            with pytest.raises(UserError) as refused:
                read_table(path, schema)
            shown = f"'{cell[:59]}" if cell else "nothing"
            assert refused.value.message.startswith(
                f"{path}:{len(rows)}: {field.name}: found {shown}"
            ), cell
            rows, schema = keep(whole, {field.name, text.name}), [field, text]
        write(tmp_path / "t.csv", without(whole, field.name))
        if field.optional:
            read_table(path, TABLES[name])
        else:
            with pytest.raises(UserError, match=rf"t\.csv:1: found no column '{field.name}' among"):
                read_table(path, TABLES[name])


def test_blank_lines_and_lines_in_cells_are_counted(original, tmp_path):
    (tmp_path / "t.csv").write_text(
        'point,model,seconds,parameter_low,parameter_high,status\n\na,f,1,1,1,"o\nk"\na,f,x,1,1,ok\n'
    )
    with pytest.raises(UserError, match=r"t\.csv:5: seconds: found 'x', wanted a number$"):
        read_table(SafePath(tmp_path) / "t.csv", tables.PREDICTIONS)


@pytest.mark.parametrize(
    ("verb", "name"), [(verb, name) for verb, tables in READERS.items() for name in tables]
)
def test_verbs_refuse_an_edited_table_in_one_line_and_change_no_file(
    verb, name, original, tmp_path
):
    here = original.copy(tmp_path / "root")
    path = here.results / f"{name}.csv"
    rows = read_rows(original.results / f"{name}.csv")
    field = next(
        field for field in TABLES[name] if field.name in ("seconds", "mean", "low", "ranks")
    )
    for content in (
        replace_last_cell(rows, field.name, "many"),
        without(rows, field.name),
        [["x"]],
        [[]],
    ):
        write(path, content)
        before = here.files()
        done = here.invoke(verb)
        assert (done.exit_code, done.output.count("\n")) == (2, 1), (done.output, done.exception)
        assert f"{path.name}:" in done.output
        assert here.files() == before


@pytest.mark.parametrize("text", ['{"hosts": 5}', '{"mpi": ["x"]}', "[]", "{"])
def test_an_invalid_program_description_is_refused_in_one_line(text, original, tmp_path):
    here = original.copy(tmp_path / "root")
    (here.results / "raw" / here.batch / "player-2r-block2.json").write_text(text)
    done = here.invoke("report")
    assert (done.exit_code, done.output.count("\n")) == (2, 1), (done.output, done.exception)
    assert "player-2r-block2.json: " in done.output


@pytest.mark.parametrize(("old", "new"), [("bytes", "octets"), ("pingpong", "pongping")])
def test_fit_refuses_observations_with_renamed_probes_or_settings(old, new, original, tmp_path):
    here = original.copy(tmp_path / "root")
    path = here.results / "observations.csv"
    path.write_text(path.read_text().replace(old, new))
    done = here.invoke("fit")
    assert (done.exit_code, done.output.count("\n")) == (2, 1), (done.output, done.exception)
