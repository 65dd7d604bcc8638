"""Intervals of advice: each choice has that of where its ranks sit, and a note says which have none by errors."""

from dataclasses import replace

import numpy as np

from commodel.advice import Job, advise
from commodel.advice.ground import Evidence
from commodel.models.byhand import given
from commodel.patterns.points import Setting
from commodel.price.bands import errors
from commodel.price.intervals import PARAMETERS
from tests.price.offs import known

SITE = Setting("p", nodes=2, cores=8)
JOB, WAYS = Job("bcast", 64, ranks=8), ["linear", "binomial"]


def advised(carried, *layouts):
    carrying = replace(given("hockney", ["alpha=10us", "beta=1ns"]), errors=carried)
    return advise(JOB, Evidence([carrying], SITE), layouts, WAYS, streams=False)


def test_choices_between_nodes_have_no_interval_where_all_was_measured_within_one():
    within = errors(known(np.linspace(-0.2, 0.4, 45), size=64.0, nodes=1.0))
    advice = advised(within, "block:8", "block:4")
    rows = advice.rows.set_index("layout")
    near, far = rows.loc["block:8"], rows.loc["block:4"]
    np.testing.assert_allclose(near["high"], near["seconds"] * np.exp(0.4))
    assert (far["high"] == far["seconds"]).all()
    assert set(far["interval"]) == {f"{PARAMETERS}: nothing measured between nodes"}
    assert advice.interval == advice.rows["interval"].iloc[0]
    (note,) = [note for note in advice.notes if note.startswith("NO INTERVAL OF ERRORS")]
    assert "2 of 4 choices: nothing was measured between nodes" in note


def test_where_both_were_measured_there_is_nothing_to_say():
    both = errors(known(np.linspace(-0.2, 0.4, 45), size=64.0, nodes=np.tile([1.0, 2.0, 2.0], 15)))
    advice = advised(both, "block:8", "block:4")
    assert not [note for note in advice.notes if note.startswith("NO INTERVAL")]
    assert (advice.rows["high"] > advice.rows["seconds"]).all()
