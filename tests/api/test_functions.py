"""The public functions of the package, called as in a notebook. If a command computes the same
value, its output is the reference."""

import io
import re

import pandas as pd
import pytest
from click.testing import CliRunner

import commodel
from commodel.cli import main
from commodel.platforms.tools import ROOT

TABLE = ROOT / "examples" / "collectives.csv"
LOGGP = {"L": "2us", "o_s": "1us", "o_r": "1us", "g": "1us", "G": "1ns/B"}
SETTINGS = [word for name, value in LOGGP.items() for word in ("--set", f"{name}={value}")]


def call_verb(*words: str) -> pd.DataFrame:
    result = CliRunner().invoke(main, [*words, "--format", "csv"])
    assert result.exit_code == 0, result.output
    return pd.read_csv(io.StringIO(result.stdout), keep_default_na=False)


@pytest.fixture(scope="module")
def table():
    """Return a table with two operations of the example, which shortens the fit to a third."""
    rows = pd.read_csv(TABLE)
    return rows[rows["operation"].isin(["bcast", "gather"])]


@pytest.fixture(scope="module")
def loggp(table):
    return commodel.fit(table, "loggp", hold_out="ranks > 16")


@pytest.mark.parametrize(
    ("ranks", "sizes", "words"),
    [
        (64, "1KiB", ("64", "1KiB")),
        ([4, 8], [8, 1024], ("4,8", "8,1024")),
        ("2:16:*2", 0, ("2:16:*2", "0")),
    ],
)
def test_predict_returns_the_rows_of_the_verb(ranks, sizes, words):
    table = commodel.predict("bcast", ranks, sizes, model="loggp", **LOGGP).frame
    verb = call_verb(
        "predict",
        "--model",
        "loggp",
        *SETTINGS,
        "--operation",
        "bcast",
        "--ranks",
        words[0],
        "--bytes",
        words[1],
    )
    assert list(table) == list(verb)
    assert table["seconds"].tolist() == verb["seconds"].tolist()
    assert table["algorithm"].tolist() == verb["algorithm"].tolist()


def test_linear_broadcast_time_equals_the_loggp_formula():
    """p − 2 gaps, then send overhead, latency, receive overhead and the bytes of one message."""
    table = commodel.predict("bcast", 8, 1001, model="loggp", algorithm="linear", **LOGGP).frame
    assert table["seconds"][0] == pytest.approx(6 * (1e-6 + 1000e-9) + 2e-6 + 1e-6 + 1e-6 + 1000e-9)


def test_numbers_are_si_units_and_text_has_units():
    numbers = {"L": 2e-6, "o_s": 1e-6, "o_r": 1e-6, "g": 1e-6, "G": 1e-9}
    both = [
        commodel.predict("allreduce", 16, 4096, model="loggp", **values).frame
        for values in (numbers, LOGGP)
    ]
    pd.testing.assert_frame_equal(*both)


def test_fit_predicts_held_out_points(loggp):
    assert set(loggp.held_out["ranks"]) == {32}
    assert loggp.held_out["mu"].mean() < 1.05
    assert list(loggp.parameters) == ["value", "low", "high", "unit", "note"]
    assert (
        loggp.parameters.loc["L", "low"]
        <= loggp.parameters.loc["L", "value"]
        <= loggp.parameters.loc["L", "high"]
    )


def test_a_fit_without_held_out_points_is_printed_without_an_error(table, loggp):
    fitted = commodel.fit(table, "pmnf")
    assert repr(fitted) == f"Fit: pmnf: {fitted.parameter_set.source}."
    assert re.fullmatch(
        r"Fit: loggp, median error μ 1\.\d+ and mean 1\.\d+ at \d+ held-out points\.", repr(loggp)
    )
    assert loggp.plot().to_dict()["layer"]
    with pytest.raises(commodel.UserError, match="no held-out points"):
        fitted.plot()


def test_a_fit_of_a_data_frame_equals_the_fit_of_the_csv_file(table, tmp_path):
    """The model has a closed-form fit; reading a table does not depend on the model."""
    table.to_csv(tmp_path / "t.csv", index=False)
    from_file, from_frame = (
        commodel.fit(source, "pmnf", hold_out="ranks > 16")
        for source in (tmp_path / "t.csv", table)
    )
    pd.testing.assert_frame_equal(from_frame.parameters, from_file.parameters)
    pd.testing.assert_frame_equal(from_frame.held_out, from_file.held_out)


def test_a_saved_parameter_set_predicts_the_same_times_as_the_fit(loggp, tmp_path):
    loggp.save(tmp_path / "loggp.yaml")
    fitted, read = (
        commodel.predict("gather", 16, "1KiB", parameters=source).frame
        for source in (loggp, tmp_path / "loggp.yaml")
    )
    pd.testing.assert_series_equal(fitted["seconds"], read["seconds"])


def test_a_value_by_name_takes_the_place_of_a_fitted_one(loggp):
    fitted, slower = (
        commodel.predict(
            "bcast", 16, 8, model="loggp", parameters=loggp, algorithm="linear", **values
        ).frame
        for values in ({}, {"L": loggp.parameters.loc["L", "value"] + 1.0})
    )
    assert slower["seconds"][0] - fitted["seconds"][0] == pytest.approx(1.0)
    assert "by hand" not in fitted
    assert slower["by hand"][0].startswith("L=")


def test_advise_puts_the_fastest_alternative_first(loggp):
    advice = commodel.advise("bcast", 16, "64KiB", evidence=loggp)
    times = commodel.predict("bcast", 16, "64KiB", parameters=loggp).frame
    # By expected regret: of two nearly equal times, the more certain one is first.
    assert advice.frame["regret"].is_monotonic_increasing
    assert advice.frame["seconds"][0] <= times["seconds"].min()


def test_decide_has_a_row_for_each_workload(loggp):
    table = commodel.decide(["bcast", "allreduce"], [8, 16], ["8", "64KiB"], evidence=loggp).frame
    assert len(table) == 8
    assert table["low"].le(table["high"]).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: commodel.predict("bcast", 4, 8), "wanted one of the two"),
        (
            lambda: commodel.predict("bcsat", 4, 8, model="hockney", alpha="1us", beta="1ns/B"),
            "did you mean 'bcast'",
        ),
        (
            lambda: commodel.predict("bcast", 4, 8, model="hockny", alpha="1us"),
            "did you mean 'hockney'",
        ),
        (lambda: commodel.predict("bcast", 4, 8, model="hockney", alfa="1us"), "alfa"),
        (
            lambda: commodel.predict("bcast", model="hockney", alpha="1us", beta="1ns/B"),
            "ranks is missing",
        ),
        (lambda: commodel.advise("bcast", [4, 8], 8, evidence=()), "found 2 workloads, wanted one"),
        (lambda: commodel.fit(pd.DataFrame({"operation": ["bcast"]}), "loggp"), "seconds"),
        (
            lambda: commodel.predict("bcast", 8, 1, evidence="a.yaml"),
            "found evidence=a.yaml with neither a model nor",
        ),
        (lambda: commodel.load("no/such/folder"), "found no plan"),
        (lambda: commodel.load(TABLE), "found a file, wanted a folder of results"),
    ],
)
def test_a_mistake_is_one_user_error(call, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(commodel.UserError, match=message):
        call()


def test_every_public_name_is_there_and_has_a_docstring():
    for name in set(dir(commodel)) - {"__version__"}:
        assert getattr(commodel, name).__doc__, name
    assert set(commodel.__all__) <= set(dir(commodel))
    with pytest.raises(AttributeError):
        commodel.nothing  # noqa: B018


def test_a_results_folder_with_a_symbolic_link_is_refused(tmp_path):
    (tmp_path / "e").mkdir()
    (tmp_path / "e" / "fitted").symlink_to(tmp_path)
    with pytest.raises(commodel.UserError, match="link"):
        commodel.load(tmp_path / "e")
