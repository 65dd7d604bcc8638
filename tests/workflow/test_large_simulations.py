"""Simulations of MPI defaults that take long: one sample each, after all others."""

import pandas as pd

from commodel.plan import duration
from commodel.plan.duration import Durations
from commodel.records import ENOUGH_EQUAL_SAMPLES, LIBRARY
from tests.patterns.catalogue import point
from tests.planning import MEASURE
from tests.workflow.conftest import samples


def test_an_mpi_default_in_which_all_ranks_send_to_all_others_is_large():
    simulated, real = (Durations(launcher, MEASURE) for launcher in ("simgrid", "local"))

    def is_large(operation, ranks, choice=LIBRARY, durations=simulated):
        return durations.is_large_simulation(point(operation, choice, ranks=ranks, bytes=8))

    assert is_large("allgather", 96)
    assert is_large("alltoall", 192)
    assert not is_large("allgather", 48)
    assert not is_large("bcast", 1024)
    assert not is_large("allgather", 96, "ring")
    assert not is_large("allgather", 96, durations=real)


def test_the_estimate_of_a_large_simulation_is_near_its_measured_time():
    """SimGrid 3.32 took 9.3 s of processor time for an allgather of 8 B over 96 ranks, with one
    sample."""
    estimate = Durations("simgrid", MEASURE).estimate_point(
        point("allgather", LIBRARY, ranks=96, bytes=8)
    )
    assert 9.3 / 2 < estimate < 9.3 * 2


def test_a_large_simulation_has_one_sample_equal_to_the_median_of_many(finished, monkeypatch):
    """Each further sample would be the same, since the simulator is deterministic."""
    defaults = {
        row["point"] for row in finished.rows("comparison.csv") if row["algorithm"] == LIBRARY
    }
    before = {row["id"]: row for row in finished.rows("summary.csv")}
    monkeypatch.setattr(duration, "LARGE_SAMPLE_SECONDS", 0.0)
    batches = sorted({row["batch"] for row in finished.rows("comparison.csv")})
    for path in sorted(finished.folder.glob("results/small/raw/*/*.csv")):
        if path.parent.name in batches:
            path.unlink()
            path.with_name("done").unlink(missing_ok=True)
    for batch in batches:
        finished.measure("small", batch)
    assert len(samples(finished.folder)) == len(before)
    finished.verb(
        "collect", "--in", "results/small/plan.json", "--out", "results/small/observations.csv"
    )
    summary = pd.DataFrame(finished.rows("summary.csv"))
    large = summary[summary["id"].isin(defaults)]
    assert set(large["samples"]) == {"1"}
    assert set(large["stop"]) == {"precision"}
    assert (
        summary.loc[~summary["id"].isin(defaults), "samples"].astype(int).min()
        == ENOUGH_EQUAL_SAMPLES
    )
    for row in large.itertuples():
        assert float(row.median) == float(row.low) == float(row.high)
        assert abs(float(row.median) / float(before[row.id]["median"]) - 1) < 1e-4
