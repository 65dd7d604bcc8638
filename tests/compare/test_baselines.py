"""Baselines: on tables small enough to work out by hand, and on a machine that is what a regression thinks it is."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commodel.compare.baselines import ALWAYS, BASELINES, LIBRARY, choices, judged_baselines, nearest, regressed
from commodel.compare.held_out import fit_seen, judged, split
from commodel.fits.measured_tables import Measured, read_points
from commodel.models.families import family_names
from commodel.patterns.points import Setting, make_point


def at(choice, ranks, size, operation="bcast"):
    return make_point(Setting.unlimited(), {"operation": operation, "algorithm": choice, "ranks": ranks, "bytes": size})


def table(rows, **more):
    """Rows of (choice, ranks, bytes, seconds)."""
    return Measured([at(*row[:3]) for row in rows], [row[3] for row in rows], 0, **more)


SEEN = table([("linear", 4, 64, 1.0), ("linear", 16, 64, 2.0), ("linear", 4, 4096, 3.0), ("binomial", 4, 64, 9.0)])


@pytest.mark.parametrize(
    ("row", "seconds"),
    [
        (("linear", 4, 64), 1.0),
        (("linear", 4, 256), 1.0),  # two doublings, and four to the other size
        (("linear", 4, 2048), 3.0),
        (("linear", 12, 64), 2.0),
        (("binomial", 16, 4096), 9.0),  # the only one
        (("chain", 4, 64), np.nan),
    ],
)
def test_the_nearest_point_is_that_of_the_fewest_doublings(row, seconds):
    assert nearest(SEEN, table([(*row, 1.0)])) == pytest.approx([seconds], nan_ok=True)


def test_the_nearest_point_is_of_the_same_setting_where_there_is_one():
    seen = replace(SEEN, settings=["a", "b", "a", "b"])
    asked = table([("linear", 4, 64, 1.0)] * 3, settings=["a", "b", "c"])
    assert nearest(seen, asked).tolist() == [1.0, 2.0, 1.0]


def test_a_regression_is_of_one_algorithm_alone():
    """Times that are of the form, for each algorithm with numbers of its own."""
    rows = [
        (choice, ranks, size, scale * (1e-6 * np.log2(ranks) + 1e-9 * size))
        for choice, scale in (("linear", 1.0), ("binomial", 7.0))
        for ranks in (4, 8, 16, 32)
        for size in (64, 512, 4096, 32768)
    ]
    known = table(rows)
    parts = split(known, "ranks == 16 and bytes == 512")
    assert regressed(parts.seen, parts.unseen) == pytest.approx(parts.unseen.seconds, rel=0.02)
    few = replace(parts.seen, points=parts.seen.points[:2], seconds=parts.seen.seconds[:2])
    assert np.isnan(regressed(few, parts.unseen)).all()


JOBS = [
    *[("linear", 4, size, 1.0) for size in (8, 64, 512)],
    *[("binomial", 4, size, seconds) for size, seconds in ((8, 2.0), (64, 2.0), (512, 0.5))],
    *[("chain", 4, 8, 0.1)],  # best where it was tried, which is in too few jobs
]


def test_always_one_is_the_choice_that_was_best_before_and_the_library_is_beside_it(tmp_path):
    """Linear was best, and is a half slower than binomial in the first held-out job; of the second nothing was said by
    the library."""
    unseen = [("linear", 8, 8, 1.5), ("binomial", 8, 8, 1.0), ("linear", 8, 64, 1.0), ("binomial", 8, 64, 4.0)]
    text = [f"bcast,{choice},{ranks},{size},{time}" for choice, ranks, size, time in [*JOBS, *unseen]]
    path = tmp_path / "t.csv"
    library = ["bcast,library,8,8,0.8", "bcast,library,8,8,0.6", "bcast,library,8,8,0.8", "bcast,library,x,8,1"]
    path.write_text("\n".join(["operation,algorithm,ranks,bytes,seconds", *text, *library]) + "\n")
    measured = read_points(path)
    assert measured.unpriced == 4
    parts = split(measured, "ranks == 8")
    rows = judged(fit_seen(parts, "hockney", "t"), parts.unseen)
    judgement = choices(rows, parts.seen, parts.unseen).set_index("family")
    assert judgement.loc[ALWAYS, "jobs"] == 2
    assert judgement.loc[ALWAYS, "over_fastest"] == pytest.approx(np.sqrt(1.5))
    assert judgement.loc[ALWAYS, "over_fastest_worst"] == pytest.approx(1.5)
    assert judgement.loc[LIBRARY, ["jobs", "over_fastest"]].tolist() == [1, pytest.approx(0.8)]
    assert judgement["baseline"].to_dict() == {name: name in BASELINES for name in judgement.index}


def test_baselines_stand_apart_from_families():
    assert not set(BASELINES) & set(family_names())
    parts = split(table(JOBS), "bytes == 64")
    rows = judged_baselines(parts, "")
    assert set(rows["family"]) < set(BASELINES)
    assert set(rows["status"]) == {"baseline"}
    assert rows["inside"].isna().all()


@given(st.permutations(range(len(JOBS))))
def test_the_order_of_a_table_does_not_matter(order):
    shuffled = table([JOBS[number] for number in order])
    asked = table([("linear", 8, 100, 1.0), ("binomial", 5, 600, 1.0), ("chain", 9, 9, 1.0)])
    assert nearest(shuffled, asked).tolist() == nearest(table(JOBS), asked).tolist()
