"""`make bench-heldout` on a table whose times are prices of a known machine, in a second job twice as long."""

import math

import pytest

from commodel.models.parameter_sets import set_given
from commodel.predictions.predictions import predict
from tests.bench.heldout import judged_table
from tests.patterns.catalogue import point

MACHINE = set_given("hockney", ["alpha=10us", "beta=1ns"])
JOBS = {"job=1": 1.0, "job=2": 2.0}
LIBRARY = 1e-3
POINTS = [
    point("bcast", choice, ranks=ranks, bytes=size)
    for choice in ("linear", "binomial")
    for ranks in (4, 16)
    for size in (64, 1 << 10, 1 << 14, 1 << 18)
]


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    lines = ["operation,algorithm,ranks,bytes,seconds,setting"]
    for job, slower in JOBS.items():
        for entry, price in zip(POINTS, predict(MACHINE, POINTS), strict=True):
            lines.append(f"bcast,{entry.choice},{entry.ranks},{entry.bytes},{slower * price.seconds!r},{job}")
            lines.append(f"bcast,library,{entry.ranks},{entry.bytes},{LIBRARY!r},{job}")
    path = tmp_path_factory.mktemp("bench") / "table.csv"
    path.write_text("\n".join(lines) + "\n")
    return {(row["held out"], row["family"]): row for row in judged_table(path, ["hockney"])}


def test_sizes_ranks_and_jobs_are_held_out_in_turn(scored):
    held_out = list(dict.fromkeys(title for title, _ in scored))
    assert held_out == ["other sizes", "more ranks", "a job"]
    assert {family for _, family in scored} >= {"hockney", "nearest point"}


def test_prices_are_off_by_what_the_other_job_is_slower(scored):
    """Of other sizes and ranks half of the points are of the slower job."""
    assert scored["a job", "hockney"]["μ"] == scored["a job", "hockney"]["worst"] + "0" == "2.00"
    for title in ("other sizes", "more ranks"):
        assert scored[title, "hockney"]["μ"] == "1.50"
        assert scored[title, "hockney"]["inside"] == "100 %"


def test_choices_are_the_fastest_and_their_gain_over_the_library_is_told(scored):
    row = scored["a job", "hockney"]
    assert (row["points"], row["jobs"], row["regret"], row["worst regret"]) == (32, "16", "0.0 %", "0 %")
    fastest = [price.seconds for price in predict(MACHINE, [entry for entry in POINTS if entry.choice == "binomial"])]
    ratios = [slower * seconds / LIBRARY for seconds in fastest for slower in JOBS.values()]
    assert row["time / library"] == f"{math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}"
