"""Advice on trees of 128 leaves, from probes and trees of 32 leaves, against all candidates measured on a simulated
platform whose receivers contend."""

from dataclasses import replace

import pytest

from commodel.advice import Job, advise
from commodel.advice.alternatives import trees
from commodel.advice.evidence import Evidence
from commodel.files.parameter_sets import read_parameters
from commodel.files.tables import COMPARISON, read_table
from commodel.patterns.trees.topologies import tree
from commodel.plan.planning import setting_on

SMALL = ["groups:6,6,5,5,5,5", "binomial:6", "kary:2^5", "flat:32", "balanced:4x8", "balanced:8x4"]
EXPERIMENT = """
title: trees of 32 leaves and of 128
platform: tree-256
families: [tan, logp, loggp]
measure: {{precision: 5%, min_samples: 2, max_samples: 2, seconds: 1, warmup: 0}}
probe_bytes: [1, 64, 1KiB]
matrix:
  - axes: {{operation: reduce, topology: {small}, bytes: 1KiB}}
  - axes: {{operation: reduce, topology: {large}, bytes: 1KiB}}
"""


@pytest.fixture
def measured(project):
    """What was found out on the platform, and the candidates of 128 leaves."""
    specs = [spec for spec in trees(128, [1.5, 4.0, 7.0]) if tree(spec).nodes <= 256]
    grown = [spec for spec in specs if spec.startswith(("flat", "knomial", "postal"))]
    split = [spec for spec in specs if spec not in grown]
    candidates = [*grown, *split[::5]]
    project.experiment("trees", EXPERIMENT.format(small=SMALL, large=candidates))
    results = project.compare("trees")
    sets = [read_parameters(path) for path in sorted(results.glob("fitted/tree-256/*.yaml"))]
    where = setting_on(str(project.folder / "params" / "platforms" / "tree-256.yaml"))
    return Evidence(sets, where, read_table(results / "comparison.csv", COMPARISON)), candidates


def test_the_pick_is_within_5_percent_of_the_best_of_all_measured_trees(measured):
    evidence, candidates = measured
    rows = evidence.held_out
    large = (
        rows[(rows["leaves"] == 128) & rows["topology"].ne("")].drop_duplicates("point").set_index("choice")["measured"]
    )
    assert set(large.index) == set(candidates)
    assert len(large) > 30
    advice = advise(
        Job("reduce", 1024, leaves=128), replace(evidence, held_out=rows[rows["leaves"] == 32]), only=candidates
    )
    pick = advice.rows.iloc[0]
    assert large[pick["choice"]] <= 1.05 * large.min()
    assert large.max() > 4 * large.min()  # there was something to choose
    assert advice.rows.set_index("choice")["as_good"][large.idxmin()]
    assert any(note.startswith("EXTRAPOLATED") for note in advice.notes)
    assert any(note.startswith("SIMULATED") for note in advice.notes)
    fastest = advice.rows.sort_values("period").iloc[0]
    assert fastest["front"]
    assert fastest["period"] < pick["period"]
