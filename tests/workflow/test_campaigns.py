"""Whole campaigns on simulated clusters with known parameter values, from the experiment file to
the report."""

import csv
import json
import os
import shutil
from dataclasses import replace

import pandas as pd
import pytest

from commodel.advice import Workload, advise
from commodel.advice.alternatives import list_trees
from commodel.advice.evidence import Evidence
from commodel.compare.recommended import RECOMMENDED
from commodel.files.parameter_sets import read_parameters
from commodel.files.tables import COMPARISON, read_table
from commodel.models.families import list_family_names
from commodel.patterns.trees.topologies import make_tree
from commodel.plan.planning import load_resources
from commodel.records import LIBRARY
from tests.documented import ROOT

ALL_FAMILIES = """
platform: two-types
models: all
measure: {precision: 5%, min_samples: 2, max_samples: 2, seconds: 1, warmup: 1}
probe_bytes: [1, 64, 1024, 16384, 65536]
matrix:
  - axes: {operation: bcast, algorithm: [linear, binomial], ranks: 16, layout: ["block:2", "cyclic:2"], bytes: 16KiB}
  - axes: {operation: gather, algorithm: [linear, binomial], ranks: 8, layout: "block:1", bytes: [8, 16KiB]}
"""
O, HEADER = 2e-6, 16  # overhead of a send or a receive; bytes that SMPI adds to every message
LATENCY = {
    "fat.fat": 10e-6,
    "thin.thin": 20e-6,
    "fat.thin": 35e-6,
    "fat.same": 0.5e-6,
    "thin.same": 1e-6,
}
PER_BYTE = {"fat.fat": 1e-9, "thin.thin": 4e-9, "fat.thin": 4e-9}


def test_one_campaign_fits_all_models(project):
    project.experiment("everything", ALL_FAMILIES)
    results = project.compare("everything")
    project.verb("report", "--in", "results/everything", "--out", "reports/everything")
    assert (project.folder / "reports/everything/everything.xlsx").exists()
    sets = {
        name: read_parameters(results / "fitted" / "two-types" / f"{name}.yaml")
        for name in list_family_names()
    }
    empty = [name for name, parameters in sets.items() if not parameters.values]
    assert not empty
    comparison = pd.read_csv(results / "comparison.csv")
    predicted = comparison.groupby("model")["seconds"].apply(lambda column: column.notna().all())
    assert set(predicted.index) == {*list_family_names(), RECOMMENDED}
    assert predicted.all(), predicted[~predicted]

    values = sets["hloggp"].values
    for pair, latency in LATENCY.items():
        assert values[f"L.{pair}"].value == pytest.approx(latency, rel=0.02), pair
    for pair, per_byte in PER_BYTE.items():
        assert values[f"G.{pair}"].value == pytest.approx(per_byte, rel=0.02), pair
    for kind in ("fat", "thin"):
        assert values[f"o_s.{kind}"].value == pytest.approx(O, rel=0.01)
        # LMO knows no port: a second large message waits for the first, which a line through all
        # sizes takes from C.
        assert sets["lmo"].values[f"C.{kind}"].value == pytest.approx(O, rel=0.25)
    for pair in PER_BYTE:
        assert sets["lmo"].values[f"L.{pair}"].value == pytest.approx(LATENCY[pair], rel=0.1)
        whole = sets["taulop"].values[f"o_1.{pair}.a"].value
        assert whole == pytest.approx(2 * O + LATENCY[pair] + HEADER * PER_BYTE[pair], rel=0.01)
        single, two, four = (
            sets["taulop"].values[f"L_1.{pair}.65536x{level}"].value for level in (1, 2, 4)
        )
        assert single == pytest.approx(65536 * PER_BYTE[pair], rel=0.05)
        assert two == pytest.approx(single, rel=0.05)  # one either way
        assert four == pytest.approx(2 * single, rel=0.05)  # two either way share the wire
    assert sets["cluster"].missing["B_L"].startswith("not observable")
    assert "B_L" not in sets["cluster"].values


SMALL_TREES = [
    "groups:6,6,5,5,5,5",
    "binomial:6",
    "kary:2^5",
    "flat:32",
    "balanced:4x8",
    "balanced:8x4",
]
TREES = """
title: trees of 32 leaves and of 64
platform: tree-256
survey: false
library: false
models: [tan, logp, loggp]
measure: {{precision: 5%, min_samples: 2, max_samples: 2, seconds: 1, warmup: 0}}
probe_bytes: [1, 64, 1KiB]
matrix:
  - axes: {{operation: reduce, topology: {small}, bytes: 1KiB}}
  - axes: {{operation: reduce, topology: {large}, bytes: 1KiB}}
"""


# The sets and the comparison of this campaign.
RECORDED = ROOT / "tests/workflow/recorded"


def list_candidates():
    """Return the trees of 64 leaves that are measured."""
    specs = [spec for spec in list_trees(64, [1.5, 4.0, 7.0]) if make_tree(spec).nodes <= 256]
    grown = [spec for spec in specs if spec.startswith(("flat", "knomial", "postal"))]
    split = [spec for spec in specs if spec not in grown]
    return [*grown, *split[::9]]


@pytest.fixture
def measured():
    """Return the recorded sets and comparison of the platform, and the trees of 64 leaves."""
    sets = [read_parameters(path) for path in sorted(RECORDED.glob("*.yaml"))]
    resources = load_resources(str(ROOT / "params" / "platforms" / "tree-256.yaml"))
    comparison = read_table(RECORDED / "trees.csv", COMPARISON)
    return Evidence(sets, resources, comparison), list_candidates()


@pytest.mark.slow
def test_the_recorded_campaign_of_trees_is_that_of_the_simulator(project):
    """With COMMODEL_RECORD=yes, write it again."""
    project.experiment("trees", TREES.format(small=SMALL_TREES, large=list_candidates()))
    results = project.compare("trees")
    if os.environ.get("COMMODEL_RECORD"):
        shutil.copy(results / "comparison.csv", RECORDED / "trees.csv")
        for path in results.glob("fitted/tree-256/*.yaml"):
            shutil.copy(path, RECORDED)
    columns = ["point", "model", "seconds", "measured"]
    rows, recorded = (
        read_table(path, COMPARISON)[columns]
        for path in (results / "comparison.csv", RECORDED / "trees.csv")
    )
    pd.testing.assert_frame_equal(rows, recorded, rtol=1e-6)


def test_the_pick_is_within_5_percent_of_the_best_of_all_measured_trees(measured):
    evidence, candidates = measured
    rows = evidence.held_out
    large = (
        rows[(rows["leaves"] == 64) & rows["topology"].ne("")]
        .drop_duplicates("point")
        .set_index("alternative")["measured"]
    )
    assert set(large.index) == set(candidates)
    assert len(large) > 15
    advice = advise(
        Workload("reduce", 1024, leaves=64),
        replace(evidence, held_out=rows[rows["leaves"] == 32]),
        only=candidates,
    )
    pick = advice.frame.iloc[0]
    assert large[pick["alternative"]] <= 1.05 * large.min()
    assert large.max() > 4 * large.min()  # there was something to choose
    assert advice.frame.set_index("alternative")["as_good"][large.idxmin()]
    assert any(note.startswith("EXTRAPOLATED") for note in advice.notes)
    assert any(note.startswith("SIMULATED") for note in advice.notes)
    fastest = advice.frame.sort_values("period").iloc[0]
    assert fastest["front"]
    assert fastest["period"] < pick["period"]


STREAMS = """
title: waves
platform: loggp-64
survey: false
models: [loggp, tan, bsp]
measure: {precision: 5%, min_samples: 2, max_samples: 2, seconds: 1, warmup: 1}
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
    loggp = streams[streams["model"] == "loggp"]
    assert (loggp["mu"] < 1.03).all()
    assert set(streams.loc[streams["model"] == "bsp", "validity"]) == {
        "no prediction: model bsp adds up steps for all ranks at once: it has no prediction of waves"
    }
    assert streams.loc[streams["model"] == "tan", "mu"].notna().all()
    once = rows.drop_duplicates("point").set_index(["operation", "alternative", "waves"])
    for choice in ("linear", "chain", LIBRARY):
        alone, stream = once.loc[("bcast", choice, 1)], once.loc[("bcast", choice, 20)]
        assert stream["first"] == pytest.approx(alone["measured"], rel=0.01)
        assert stream["measured"] < stream["first"] <= stream["last"] * 1.001
        assert pd.isna(alone["first"])


LAYOUTS = {
    "block-cyclic:2x1": "block-cyclic:2x1",
    "random:2@5": "random:2@5",
    "kinds:fat=1core+1accelerator,thin=1core": "kinds:1core+1accelerator@4,1core@4",
    "file:ranks.txt": "file:ranks.txt@7,0,3,1",
}
PLACES = """title: layouts
platform: two-types
models: [hockney]
library: false
measure: {precision: 5%, min_samples: 2, max_samples: 2, seconds: 1, warmup: 1}
probe_bytes: [1, 1024]
matrix:
  - axes: {operation: bcast, algorithm: linear, ranks: 8, bytes: 8}
    zips: {layout: {layout: LAYOUTS}}
  - axes: {operation: bcast, topology: ["optimal:5us,1us,2us@8", "k:3@8"], bytes: 8, layout: "random:1@1"}
"""


def test_any_layout_is_measured_and_predicted(project):
    hosts = [7, 0, 3, 7, 1, 1, 3, 0]
    (project.folder / "ranks.txt").write_text(
        "".join(f"rank {r}=node-{n} slot=0\n" for r, n in enumerate(hosts))
    )
    project.experiment("places", PLACES.replace("LAYOUTS", str(list(LAYOUTS))))
    results = project.compare("places")
    plan = json.loads((results / "plan.json").read_text())
    points = {point["layout"]: point for batch in plan["batches"] for point in batch["points"]}
    assert set(points) == {*LAYOUTS.values(), "random:1@1"}
    assert points["file:ranks.txt@7,0,3,1"]["nodes"] == 8
    assert points["kinds:1core+1accelerator@4,1core@4"]["nodes"] == 4
    with (results / "comparison.csv").open() as stream:
        rows = [row for row in csv.DictReader(stream) if row["model"] != "recommended"]
    assert {row["topology"] for row in rows} == {"", "optimal:5us,1us,2us@8", "knomial:3@8"}
    assert all(float(row["measured"]) > 0 and float(row["seconds"]) > 0 for row in rows)
    assert len(rows) == 6
