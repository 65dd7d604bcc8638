"""commodel fit: parameter sets from a table of collectives, errors at held-out points, output
paths, and one-line errors."""

import csv
import io
import json
import shutil

import pytest
from click.testing import CliRunner

import commodel
from commodel import sources
from commodel.api.fits import digest_fit_inputs
from commodel.cli import main
from commodel.compare.baselines import (
    ALWAYS_SAME,
    INTERPOLATION,
    NEAREST,
    NEAREST_RATIO,
    REGRESSION,
)
from commodel.files.parameter_sets import read_parameters
from commodel.models.parameter_sets import make_given_set
from commodel.predictions.predictions import predict
from tests.cli.running import refused, run
from tests.patterns.catalogue import point

TRUTH = make_given_set("hockney", ["alpha=10us", "beta=2ns"])
WHERE = "log2(bytes) // 3 % 2 == 0"


@pytest.fixture
def table(tmp_path):
    points = [
        point("bcast", choice, ranks=ranks, bytes=size)
        for choice in ("binomial", "linear")
        for ranks in (4, 8)
        for size in (8, 64, 512, 4096)
    ]
    rows = [
        f"bcast,{p.alternative},{p.ranks},{p.bytes},{prediction.seconds}"
        for p, prediction in _predicted(points)
    ]
    path = tmp_path / "collectives.csv"
    path.write_text(
        "\n".join(["operation,algorithm,ranks,bytes,seconds", *rows, "bcast,library,4,8,1e-5"])
        + "\n"
    )
    return path


def _predicted(points):
    return zip(points, predict(TRUTH, points), strict=True)


def test_one_family_in_detail(table):
    said = run(f"fit table {table} --model hockney --hold-out", WHERE)
    lines = said.stdout.splitlines()
    assert [line.split()[:4] for line in lines[5:8]] == [
        ["bcast", "algorithm", "binomial", "4"],  # 4 KiB lies beyond what was fitted
        ["bcast", "algorithm", "linear", "4"],
        ["all", "8", "4", "1"],
    ]
    assert lines[0].startswith("hockney, median error μ ")
    assert lines[8:10] == ["", "Baselines:"]
    assert lines[10].split()[:2] == ["baseline", "points"]
    shown = {line.split("  ")[0] for line in lines[11:15]}
    assert shown == {NEAREST, INTERPOLATION, REGRESSION, "hockney" + NEAREST_RATIO}
    assert "left out 1 row of algorithm 'library'" in said.stdout
    assert len(list(table.parent.iterdir())) == 1


def test_several_families_beside_each_other_the_nearest_first(table):
    sets = table.parent / "sets"
    families = ("--model", "logp", "--model", "pmnf", "--model", "hockney")
    said = run(f"fit table {table}", *families, "--hold-out", WHERE, "--out", sets)
    lines = said.stdout.splitlines()
    assert [line.split()[0] for line in lines[2:4]] == ["model", "hockney"]
    assert "nan" not in said.stdout  # of logp, which was fitted to one size, nothing is in range
    head = (
        lines.index("Alternatives chosen among held-out points, and their time over the fastest:")
        + 1
    )
    chosen = lines[head + 1 : lines.index("", head)]
    assert [line.split()[0] for line in chosen] == ["logp", "pmnf", "hockney", *["baseline:"] * 6]
    assert sorted(path.name for path in sets.iterdir()) == [
        "hockney.yaml",
        "logp.yaml",
        "pmnf.yaml",
    ]
    parameters = read_parameters(sets / "hockney.yaml")
    assert parameters.provenance["held_out_where"] == WHERE
    assert parameters.values["beta.a"].value == pytest.approx(2e-9, rel=1e-3)

    # Stopped and called again it goes on where it was, but not with another table or split.
    written = {path.name: path.stat().st_mtime_ns for path in sets.iterdir()}
    (sets / "logp.yaml").unlink()
    again = run(f"fit table {table}", *families, "--hold-out", WHERE, "--out", sets)
    assert again.stdout == said.stdout
    assert [
        name
        for name in ("hockney", "logp", "pmnf")
        if f"{name}: the set fitted to collectives.csv before" in again.stderr
    ] == [
        "hockney",
        "pmnf",
    ]
    assert (sets / "hockney.yaml").stat().st_mtime_ns == written["hockney.yaml"]
    other = run(f"fit table {table}", *families, "--hold-out", "ranks > 4", "--out", sets)
    assert "before" not in other.stderr


@pytest.mark.parametrize(
    ("edited", "other"),
    [
        ("models/families/logp.py", {"logp"}),
        ("patterns/phases.py", {"logp", "hockney"}),
        ("cli/report.py", set()),
    ],
)
def test_fit_digest_changes_only_for_models_that_depend_on_the_edited_code(
    table, tmp_path, monkeypatch, edited, other
):
    package = tmp_path / "package"
    shutil.copytree(sources.PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    before = {family: digest_fit_inputs([table], family) for family in ("logp", "hockney")}
    monkeypatch.setattr(sources, "PACKAGE", package)
    # wherever it lies
    assert {family: digest_fit_inputs([table], family) for family in before} == before
    with open(package / edited, "a") as file:
        file.write("# edited\n")
    assert {
        family for family in before if digest_fit_inputs([table], family) != before[family]
    } == other


@pytest.mark.parametrize("style", ["csv", "json"])
def test_for_programs_a_row_for_each_family_and_algorithm(table, style):
    families = ("--model", "logp", "--model", "hockney")
    text = run(f"fit table {table}", *families, "--hold-out", WHERE, "--format", style).stdout
    rows = json.loads(text) if style == "json" else list(csv.DictReader(io.StringIO(text)))
    chosen = [row for row in rows if row["workloads"] not in ("", None)]
    # LogP ignores the size, so its ratios are blank.
    baselines = [NEAREST, INTERPOLATION, REGRESSION, "hockney" + NEAREST_RATIO]
    assert [row["model"] or row["baseline"] for row in chosen] == [
        "logp",
        "hockney",
        *baselines,
        ALWAYS_SAME,
    ]
    assert all(
        row["operation"] == row["alternative"] == "" and row["points"] in ("", None)
        for row in chosen
    )
    assert all(
        1 <= float(row["over_fastest"]) <= float(row["over_fastest_worst"]) for row in chosen
    )
    assert [float(row["fastest"]) for row in chosen if row["model"] == "hockney"] == [1]
    rows = [row for row in rows if row not in chosen]
    assert [
        (row["model"], row["baseline"], row["alternative"]) for row in rows if row["baseline"]
    ] == [("", baseline, choice) for baseline in baselines for choice in ("binomial", "linear")]
    rows = [row for row in rows if not row["baseline"]]
    assert [(row["model"], row["alternative"]) for row in rows] == [
        (family, choice) for family in ("logp", "hockney") for choice in ("binomial", "linear")
    ]
    assert float(rows[2]["mu_mean"]) == pytest.approx(1, abs=1e-3)
    assert float(rows[0]["mu_mean"]) > 1.01  # size not modelled


def test_a_family_that_lacks_data_is_named_and_the_others_go_on(table):
    said = run(
        f"fit table {table} --model tan --model hockney --hold-out", "ranks > 4 or bytes > 8"
    )
    assert "model tan: found 2 points, wanted more than its 3 values" in said.stdout


def test_several_families_want_a_folder(table):
    said = run(f"fit table {table} --model all --hold-out", "ranks > 4", "--out", table, code=2)
    assert "found a file, wanted a folder" in said.stderr


HEAD = "operation,algorithm,topology,ranks,bytes,seconds,comment"


def write_rows(tmp_path, rows, head=HEAD):
    path = tmp_path / "collectives.csv"
    path.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    return path


def fit(path, *more, model="hockney"):
    out = path.parent / "set.yaml"
    result = CliRunner().invoke(
        main, ["fit", "table", str(path), "--model", model, "--out", str(out), *more]
    )
    return result, out


def test_a_table_becomes_a_set(tmp_path):
    truth = make_given_set("hockney", ["alpha=10us", "beta=2ns"])
    rows = []
    for size in (8, 4096, 65536):
        (prediction,) = predict(truth, [point("bcast", "binomial", ranks=8, bytes=size)])
        rows += [
            f"broadcast,binomial,,8,{size},{prediction.seconds * factor},x"
            for factor in (0.98, 1, 1.5)
        ]
        (prediction,) = predict(truth, [point("reduce", topology="flat:4", bytes=size)])
        rows += [f"reduce,,flat:4,,{size},{prediction.seconds},"]
    result, out = fit(write_rows(tmp_path, rows))
    assert result.exit_code == 0, result.output
    parameters = read_parameters(out)
    assert (
        parameters.source
        == "fitted from 6 points of collectives.csv; these points are not held out"
    )
    assert parameters.provenance["held_out"] is False
    assert parameters.values["alpha.a"].value == pytest.approx(10e-6, rel=1e-3)
    assert parameters.bytes_range == (8, 65536)
    assert parameters.curves[0].title == "prediction of the fitted points"
    assert len(parameters.curves[0].x) == 6


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (
            "bcst,binomial,,8,8,1e-5,",
            "collectives.csv:3: operation: unknown operation 'bcst'; did you mean 'bcast'?",
        ),
        (",binomial,,8,8,1e-5,", "collectives.csv:3: operation: found nothing"),
        ("bcast,binomal,,8,8,1e-5,", "collectives.csv:3: algorithm: no algorithm 'binomal'"),
        (
            "bcast,,,8,8,1e-5,",
            "collectives.csv:3: operation: bcast needs an algorithm or a topology",
        ),
        ("reduce,,flat:4,7,8,1e-5,", "collectives.csv:3: ranks: found 7, but 'flat:4' has 5 nodes"),
        ("bcast,binomial,,eight,8,1e-5,", "collectives.csv:3: ranks: found 'eight'"),
        ("bcast,binomial,,8,,1e-5,", "collectives.csv:3: bytes: bytes are missing"),
        ("bcast,binomial,,8,8,0,", "collectives.csv:3: seconds: found '0', wanted a time above 0"),
        ("bcast,binomial,,8,8,fast,", "collectives.csv:3: seconds: found 'fast'"),
        ("bcast,binomial,,8,8,1e-5,,1", "collectives.csv:3: found more cells than the 7 columns"),
    ],
)
def test_a_mistake_names_file_row_and_column(tmp_path, row, words):
    result, out = fit(write_rows(tmp_path, ["bcast,binomial,,8,8,1e-5,", row]))
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert words in result.stderr
    assert not out.exists()


def test_the_fitted_values_are_printed_if_no_file_is_named(table):
    rows = json.loads(run(f"fit table {table} --model hockney --model logp --format json").stdout)
    assert {row["model"] for row in rows} == {"hockney", "logp"}
    (beta,) = [row for row in rows if row["parameter"] == "beta.a"]
    assert (beta["value"], beta["unit"]) == (pytest.approx(2e-9, rel=1e-3), "s/B")
    assert beta["low"] <= beta["value"] <= beta["high"]
    lines = run(f"fit table {table} --model hockney").stdout.splitlines()
    assert ["hockney", "beta.a"] in [line.split()[:2] for line in lines]


def test_several_tables_are_fitted_together(table, tmp_path):
    """The halves of a table are fitted as the whole table."""
    head, *rows = table.read_text().splitlines()
    (tmp_path / "a.csv").write_text("\n".join([head, *rows[:8]]))
    (tmp_path / "b.csv").write_text("\n".join([head, *rows[8:]]))
    both = run(
        f"fit table {tmp_path}/a.csv {tmp_path}/b.csv --model hockney --out {tmp_path}/both.yaml"
    )
    run(f"fit table {table} --model hockney --out {tmp_path}/whole.yaml")
    whole, parts = (read_parameters(tmp_path / f"{name}.yaml") for name in ("whole", "both"))
    assert parts.values == whole.values
    assert parts.source == "fitted from 16 points of a.csv, b.csv; these points are not held out"
    assert "left out 1 row of algorithm 'library'" in both.stderr
    fitted = commodel.fit([tmp_path / "a.csv", tmp_path / "b.csv"], "hockney")
    assert fitted.parameter_set.values == whole.values
    (tmp_path / "b.csv").write_text(head.replace("seconds", "time") + "\nbcast,binomial,4,8,1e-5\n")
    said = refused(
        f"fit table {tmp_path}/a.csv {tmp_path}/b.csv --model hockney --out {tmp_path}/c"
    )
    assert "b.csv:1: found no column 'seconds'" in said


def test_columns_have_names_in_any_case(table, tmp_path):
    text = table.read_text()
    (tmp_path / "capitals.csv").write_text(
        text.replace("operation,algorithm,ranks", "Operation,ALGORITHM, Ranks")
    )
    results = [
        run(f"fit table {path} --model hockney").stdout
        for path in (table, tmp_path / "capitals.csv")
    ]
    assert results[0].replace(table.name, "capitals.csv") == results[1]
    (tmp_path / "capitals.csv").write_text(text.replace("operation,algorithm", "RANKS,algorithm"))
    assert "capitals.csv:1: found no column 'operation' among RANKS, " in refused(
        f"fit table {tmp_path}/capitals.csv --model hockney"
    )


def test_a_table_that_is_none(tmp_path):
    path = write_rows(tmp_path, [], head="operation,ranks")
    said = refused(f"fit table {path} --model hockney")
    assert said == (
        f"commodel: {path}:1: found no column 'seconds' among operation, ranks; "
        "convert a table with other column names: commodel import csv FILE --column NAME=COLUMN -o TABLE\n"
    )
    result, _ = fit(write_rows(tmp_path, []))
    assert "found no rows" in result.stderr
    result, _ = fit(tmp_path / "nowhere.csv")
    assert result.exit_code == 2
    assert "nowhere.csv" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["table", "t.csv", "--out", "set.yaml", "--platform", "local"],
            "No such option '--platform'",
        ),
        (
            ["probes", "p.json", "--out", "set.yaml", "--hold-out", "ranks > 4"],
            "No such option '--hold-out'",
        ),
        (
            ["sheet", "--out", "set.yaml", "--platform", "local", "--setting", "x"],
            "No such option '--setting'",
        ),
        (["probes", "p.json", "--out", "set.yaml"], "Missing option '--platform'"),
        (["probes", "p.json", "--platform", "local"], "Missing option '-o' / '--out'"),
        (["table"], "Missing argument 'TABLE…'"),
        (["sheet", "--out", "set.yaml"], "Missing option '--platform'"),
    ],
)
def test_each_source_has_its_own_options(arguments, words):
    result = CliRunner().invoke(main, ["fit", *arguments, "--model", "hockney"])
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert words in result.stderr


def test_rows_of_several_waves_are_left_out(tmp_path):
    truth = make_given_set("hockney", ["alpha=10us", "beta=2ns"])
    rows = []
    for size in (8, 4096, 65536):
        (prediction,) = predict(truth, [point("bcast", "binomial", ranks=8, bytes=size)])
        rows += [
            f"bcast,binomial,,8,{size},{prediction.seconds},1",
            f"bcast,binomial,,8,{size},{prediction.seconds / 9},50",
        ]
    head = HEAD.replace("comment", "waves")
    result, out = fit(write_rows(tmp_path, rows, head))
    assert result.exit_code == 0, result.output
    assert "left out 3 rows of several waves" in result.stderr
    assert read_parameters(out).values["alpha.a"].value == pytest.approx(10e-6, rel=1e-3)
    result, _ = fit(write_rows(tmp_path, [row for row in rows if row.endswith(",50")], head))
    assert "found only 3 rows of several waves, which are not fitted" in result.stderr
    result, _ = fit(write_rows(tmp_path, [row.replace(",50", ",0") for row in rows], head))
    assert "collectives.csv:3: waves: found '0', wanted a whole number from 1" in result.stderr
