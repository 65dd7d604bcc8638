"""An experiment with streams of waves from its file to its report, on a simulated cluster that is what LogGP says."""

import openpyxl
import pandas as pd
import pytest

from commodel.files.tables import COMPARISON, read_table
from commodel.records import LIBRARY

STREAMS = """
title: waves
platform: loggp-64
families: [loggp, tan, bsp]
measure: {precision: 5%, min_samples: 6, max_samples: 10, seconds: 1, warmup: 1}
probe_bytes: [1, 64, 1024]
matrix:
  - axes: {operation: bcast, algorithm: [linear, chain], ranks: 8, bytes: 64, waves: [1, 20]}
  - axes: {operation: reduce, topology: ["flat:7", "kary:2^2"], bytes: 64, waves: 20}
"""


def test_streams_go_all_the_way(project):
    project.experiment("waves", STREAMS)
    results = project.compare("waves")
    rows = read_table(results / "comparison.csv", COMPARISON)
    streams = rows[rows["waves"] == 20]
    assert len(streams.drop_duplicates("point")) == 4 + 3  # the library beside every job
    loggp = streams[streams["family"] == "loggp"]
    assert (loggp["mu"] < 1.03).all()
    assert set(streams.loc[streams["family"] == "bsp", "status"]) == {
        "not priced: family bsp adds up steps for all ranks at once: it says nothing about waves"
    }
    assert streams.loc[streams["family"] == "tan", "mu"].notna().all()
    once = rows.drop_duplicates("point").set_index(["operation", "choice", "waves"])
    for choice in ("linear", "chain", LIBRARY):
        alone, stream = once.loc[("bcast", choice, 1)], once.loc[("bcast", choice, 20)]
        assert stream["first"] == pytest.approx(alone["measured"], rel=0.01)
        assert stream["measured"] < stream["first"] <= stream["last"] * 1.001
        assert pd.isna(alone["first"])
    project.verb("report", "--in", "results/waves", "--out", "reports/waves")
    book = openpyxl.load_workbook(project.folder / "reports" / "waves" / "waves.xlsx", read_only=True)
    cells = {cell for row in book["Comparison"].iter_rows(values_only=True) for cell in row}
    assert {"waves", "first wave [µs]", "last wave [µs]", "stream of reduce", 20} <= cells
