"""commodel fit --points: a table of collectives to a parameter set, and every mistake in it one line."""

import pytest
from click.testing import CliRunner

from commodel.cli import main
from commodel.files.parameter_sets import read_parameters
from commodel.models.parameter_sets import set_given
from commodel.predictions.predictions import predict
from tests.patterns.catalogue import point

HEAD = "operation,algorithm,topology,ranks,bytes,seconds,comment"


def table(tmp_path, rows, head=HEAD):
    path = tmp_path / "collectives.csv"
    path.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    return path


def fit(path, *more, family="hockney"):
    out = path.parent / "set.yaml"
    result = CliRunner().invoke(main, ["fit", "--points", str(path), "--family", family, "--out", str(out), *more])
    return result, out


def test_a_table_becomes_a_set(tmp_path):
    truth = set_given("hockney", ["alpha=10us", "beta=2ns"])
    rows = []
    for size in (8, 4096, 65536):
        (price,) = predict(truth, [point("bcast", "binomial", ranks=8, bytes=size)])
        rows += [f"broadcast,binomial,,8,{size},{price.seconds * factor},x" for factor in (0.98, 1, 1.5)]
        (price,) = predict(truth, [point("reduce", topology="flat:4", bytes=size)])
        rows += [f"reduce,,flat:4,,{size},{price.seconds},"]
    result, out = fit(table(tmp_path, rows))
    assert result.exit_code == 0, result.output
    parameters = read_parameters(out)
    assert parameters.source == "fitted from 6 points of collectives.csv; these points are not held out"
    assert parameters.provenance["held_out"] is False
    assert parameters.values["alpha.a"].value == pytest.approx(10e-6, rel=1e-3)
    assert parameters.bytes_range == (8, 65536)
    assert parameters.curves[0].title == "price of the fitted points"
    assert len(parameters.curves[0].x) == 6


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("bcst,binomial,,8,8,1e-5,", "collectives.csv:3: operation: unknown operation 'bcst'; did you mean 'bcast'?"),
        (",binomial,,8,8,1e-5,", "collectives.csv:3: operation: found nothing"),
        ("bcast,binomal,,8,8,1e-5,", "collectives.csv:3: algorithm: no algorithm 'binomal'"),
        ("bcast,,,8,8,1e-5,", "collectives.csv:3: operation: bcast needs an algorithm or a topology"),
        ("reduce,,flat:4,7,8,1e-5,", "collectives.csv:3: ranks: found 7, but 'flat:4' has 5 nodes"),
        ("bcast,binomial,,eight,8,1e-5,", "collectives.csv:3: ranks: found 'eight'"),
        ("bcast,binomial,,8,,1e-5,", "collectives.csv:3: bytes: bytes are missing"),
        ("bcast,binomial,,8,8,0,", "collectives.csv:3: seconds: found '0', wanted a time above 0"),
        ("bcast,binomial,,8,8,fast,", "collectives.csv:3: seconds: found 'fast'"),
        ("bcast,binomial,,8,8,1e-5,,1", "collectives.csv:3: found more cells than the 7 columns"),
    ],
)
def test_a_mistake_names_file_row_and_column(tmp_path, row, words):
    result, out = fit(table(tmp_path, ["bcast,binomial,,8,8,1e-5,", row]))
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert words in result.stderr
    assert not out.exists()


def test_a_table_that_is_none(tmp_path):
    result, _ = fit(table(tmp_path, [], head="operation,ranks"))
    assert "found no column 'seconds'" in result.stderr
    result, _ = fit(table(tmp_path, []))
    assert "found no rows" in result.stderr
    result, _ = fit(tmp_path / "nowhere.csv")
    assert result.exit_code == 2
    assert "nowhere.csv" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--points", "t.csv", "--platform", "local"], "--points stands alone: found --platform beside it"),
        (["--points", "t.csv", "--in", "o.csv"], "found --in beside it"),
        (["--in", "o.csv", "--platform", "local"], "--plan is missing"),
        ([], "--in is missing; give --in, --plan and --platform, or --points alone"),
    ],
)
def test_probes_or_points_never_both(arguments, words):
    result = CliRunner().invoke(main, ["fit", "--family", "hockney", "--out", "set.yaml", *arguments])
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert words in result.stderr


def test_rows_of_several_waves_are_left_out(tmp_path):
    truth = set_given("hockney", ["alpha=10us", "beta=2ns"])
    rows = []
    for size in (8, 4096, 65536):
        (price,) = predict(truth, [point("bcast", "binomial", ranks=8, bytes=size)])
        rows += [f"bcast,binomial,,8,{size},{price.seconds},1", f"bcast,binomial,,8,{size},{price.seconds / 9},50"]
    head = HEAD.replace("comment", "waves")
    result, out = fit(table(tmp_path, rows, head))
    assert result.exit_code == 0, result.output
    assert "left out 3 rows of several waves" in result.stderr
    assert read_parameters(out).values["alpha.a"].value == pytest.approx(10e-6, rel=1e-3)
    result, _ = fit(table(tmp_path, [row for row in rows if row.endswith(",50")], head))
    assert "found only 3 rows of several waves, which nothing is fitted to" in result.stderr
    result, _ = fit(table(tmp_path, [row.replace(",50", ",0") for row in rows], head))
    assert "collectives.csv:3: waves: found '0', wanted a whole number from 1" in result.stderr
