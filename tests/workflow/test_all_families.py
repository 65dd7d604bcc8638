"""One campaign of probes fits every family, on a simulated cluster of two types of node whose values are known."""

import pandas as pd
import pytest

from commodel.files.parameter_sets import read_parameters
from commodel.models.families import family_names

EXPERIMENT = """
platform: two-types
families: all
measure: {precision: 5%, min_samples: 6, max_samples: 20, seconds: 1, warmup: 1}
probe_bytes: [1, 64, 1024, 16384, 65536]
matrix:
  - axes: {operation: bcast, algorithm: [linear, binomial], ranks: 16, layout: ["block:2", "cyclic:2"], bytes: 16KiB}
  - axes: {operation: gather, algorithm: [linear, binomial], ranks: 8, layout: "block:1", bytes: [8, 16KiB]}
"""
O, HEADER = 2e-6, 16  # overhead of a send or a receive; bytes that SMPI adds to every message
LATENCY = {"fat.fat": 10e-6, "thin.thin": 20e-6, "fat.thin": 35e-6, "fat.same": 0.5e-6, "thin.same": 1e-6}
PER_BYTE = {"fat.fat": 1e-9, "thin.thin": 4e-9, "fat.thin": 4e-9}


def test_one_campaign_fits_them_all(project):
    project.experiment("everything", EXPERIMENT)
    results = project.compare("everything")
    project.verb("report", "--in", "results/everything", "--out", "reports/everything")
    assert (project.folder / "reports/everything/everything.xlsx").exists()
    sets = {name: read_parameters(results / "fitted" / "two-types" / f"{name}.yaml") for name in family_names()}
    empty = [name for name, parameters in sets.items() if not parameters.values]
    assert not empty
    comparison = pd.read_csv(results / "comparison.csv")
    priced = comparison.groupby("family")["predicted"].apply(lambda column: column.notna().all())
    assert set(priced.index) == set(family_names())
    assert priced.all(), priced[~priced]

    values = sets["hloggp"].values
    for pair, latency in LATENCY.items():
        assert values[f"L.{pair}"].value == pytest.approx(latency, rel=0.02), pair
    for pair, per_byte in PER_BYTE.items():
        assert values[f"G.{pair}"].value == pytest.approx(per_byte, rel=0.02), pair
    for kind in ("fat", "thin"):
        assert values[f"o_s.{kind}"].value == pytest.approx(O, rel=0.01)
        # LMO knows no port: a second large message waits for the first, which a line through all sizes takes from C.
        assert sets["lmo"].values[f"C.{kind}"].value == pytest.approx(O, rel=0.25)
    for pair in PER_BYTE:
        assert sets["lmo"].values[f"L.{pair}"].value == pytest.approx(LATENCY[pair], rel=0.1)
        whole = sets["taulop"].values[f"o_1.{pair}.a"].value
        assert whole == pytest.approx(2 * O + LATENCY[pair] + HEADER * PER_BYTE[pair], rel=0.01)
        alone, two, four = (sets["taulop"].values[f"L_1.{pair}.65536x{level}"].value for level in (1, 2, 4))
        assert alone == pytest.approx(65536 * PER_BYTE[pair], rel=0.05)
        assert two == pytest.approx(alone, rel=0.05)  # one either way
        assert four == pytest.approx(2 * alone, rel=0.05)  # two either way share the wire
    assert sets["cluster"].missing["B_L"].startswith("not observable")
    assert "B_L" not in sets["cluster"].values
