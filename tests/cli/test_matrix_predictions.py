"""Predictions of a whole matrix: the same in CSV and Parquet, placed on the platforms of its
blocks."""

from dataclasses import replace

import pandas as pd
import pytest

from commodel.files.parameter_sets import write_parameters
from tests.cli.running import run
from tests.models.synthetic import fitted_set

MATRIX = """
platform: nowhere
matrix:
  - axes: {operation: bcast, algorithm: [linear, binomial], ranks: [4, 8, 100], bytes: [1, 1KiB, 64KiB]}
    exclude: [{where: "algorithm == 'linear' and ranks > 50"}]
    include: [{operation: bcast, algorithm: chain, ranks: 5, bytes: 1MiB}]
  - axes: {operation: reduce, topology: ["flat:5", "kary:2^3"], bytes: 1KiB}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "big.yaml").write_text(MATRIX)
    for name in ("loggp", "tan", "plogp"):
        write_parameters(tmp_path / f"{name}.yaml", fitted_set(name, noise=0.03))
    return tmp_path


SETS = ("--params", "loggp.yaml", "--params", "tan.yaml", "--params", "plogp.yaml")


def test_csv_and_parquet_hold_the_same(folder):
    run("predict matrix ./big.yaml", *SETS, "--out", "a.csv")
    run("predict matrix ./big.yaml", *SETS, "--out", "a.parquet")
    table = pd.read_parquet("a.parquet")
    assert len(table) == 3 * (5 * 3 + 1 + 2)
    pd.testing.assert_frame_equal(pd.read_csv("a.csv"), table, rtol=0, atol=0, check_dtype=False)
    assert ((table["low"] <= table["seconds"]) & (table["seconds"] <= table["high"])).all()
    assert set(table["validity"][table["model"] == "tan"]) != {"valid"}


TWO_PLATFORMS = """
platform: network
matrix:
  - axes: {operation: bcast, algorithm: linear, ranks: [2, 4], bytes: [1, 1KiB]}
  - platform: node
    axes: {operation: bcast, algorithm: linear, ranks: 2, bytes: [1, 1KiB, 64KiB]}
"""
PLATFORM = "launcher: slurm\nnodes: {nodes}\ncores: {cores}\n"


def test_matrix_points_without_a_parameter_set_of_the_platform_are_left_out(folder):
    (folder / "big.yaml").write_text(TWO_PLATFORMS)
    (folder / "params/platforms").mkdir(parents=True)
    for name, nodes, cores in (("network", 4, 1), ("node", 1, 2)):
        (folder / f"params/platforms/{name}.yaml").write_text(
            PLATFORM.format(nodes=nodes, cores=cores)
        )
        write_parameters(folder / f"{name}.yaml", replace(fitted_set("loggp"), platform=name))

    def predict(*sets: str) -> tuple[str, list[tuple]]:
        files = [word for name in sets for word in ("--params", f"{name}.yaml")]
        printed = run("predict matrix ./big.yaml", *files, "--draws", 0, "--out", "a.csv").stderr
        columns = pd.read_csv("a.csv")[["layout", "platform", "parameters"]]
        return printed, list(columns.drop_duplicates().itertuples(index=False, name=None))

    on_network, on_node = ("block:1", "network", "network.yaml"), ("block:2", "node", "node.yaml")
    printed, rows = predict("network")
    assert rows == [on_network]
    assert "left out: 3 points of platform node, since no parameter set is of it" in printed
    printed, rows = predict("network", "node")
    assert rows == [on_network, on_node]
    assert "left out" not in printed
    printed, rows = predict("loggp")
    assert [row[0] for row in rows] == ["block:1"]
    assert "OF ANOTHER PLATFORM: no parameter set is of network or node" in printed


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--out", "a.xlsx"), "wanted .parquet or .csv"),
    ],
)
def test_a_mistake_is_one_line_and_exit_2(folder, arguments, words):
    result = run("predict matrix ./big.yaml", *SETS, *arguments, code=2)
    assert result.stderr.count("\n") == 1
    assert words in result.stderr


def test_a_matrix_error_names_file_and_line(folder):
    (folder / "big.yaml").write_text(MATRIX.replace("flat:5", "flatt:5"))
    result = run("predict matrix ./big.yaml", *SETS, "--out", "a.csv", code=2)
    assert "big.yaml:7" in result.stderr
    assert "did you mean 'flat'" in result.stderr


def test_values_by_hand_stand_with_the_predictions_and_not_among_results(folder):
    plain = (
        "predict",
        "matrix",
        "big.yaml",
        "--params",
        "loggp.yaml",
        "--params",
        "tan.yaml",
        "--draws",
        0,
    )
    what_if = (*plain, "--set", "loggp:L=1ms", "--out", "b.csv")
    run(*plain, "--out", "a.csv")
    run(*what_if)
    before, after = (
        pd.read_csv(folder / name).set_index(["parameters"]) for name in ("a.csv", "b.csv")
    )
    (changed,) = set(after.index) - {"tan.yaml"}
    assert changed.startswith("loggp.yaml, by hand: L=1ms in place of ")
    assert (after.loc["tan.yaml", "seconds"] == before.loc["tan.yaml", "seconds"]).all()
    assert (
        after.loc[changed, "seconds"].to_numpy() > before.loc["loggp.yaml", "seconds"].to_numpy()
    ).all()
    (folder / "results/e/more").mkdir(parents=True)
    (folder / "results/e/plan.json").write_text("{}")
    for out in ("results/e/b.csv", "results/e/more/b.csv"):
        refused = run(*what_if[:-1], out, code=2)
        assert refused.output.startswith("commodel: --set: --out lies in the results ")
    refused = run(*plain, "--set", "loggp:l=1ms", "--out", "c.csv", code=2)
    mistake = "commodel: --set l: model loggp has no parameter or setting 'l'; did you mean 'L'?"
    assert refused.output.startswith(mistake)
