"""What following the vote costs: sums that leave one job out against the slow way, and a study by hand."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commodel.compare.combined_prediction import Errors, picks, summary, trusts
from commodel.predictions.validity import PriceStatus
from commodel.records import LIBRARY

CELL = st.tuples(
    st.sampled_from(("one", "two", "three")),
    st.sampled_from(("bcast", "reduce")),
    st.integers(0, 3),
    st.floats(-2, 2),
    st.sampled_from(("ok", "ok", "ok", "extrapolated: far")),
)


@given(st.lists(CELL, min_size=1, max_size=40))
def test_weights_without_a_job_are_those_of_the_other_jobs(cells):
    frame = pd.DataFrame(cells, columns=["family", "operation", "job", "error", "status"])
    frame["group"] = frame["operation"] + frame["job"].astype(str)
    frame = frame.assign(measured=1e-5, predicted=1e-5 * np.exp(frame["error"]), mu=np.exp(frame["error"].abs()))
    errors, families = Errors(frame), sorted(set(frame["family"]))
    for group, operation in {(row.group, row.operation) for row in frame.itertuples()}:
        weights = errors.without(group, operation, families)
        slow = trusts(families, frame[frame["group"] != group], operation)
        for name in families:
            assert weights.get(name, 0.0) == pytest.approx(slow[name].weight, rel=1e-6, abs=1e-9)


def study(jobs):
    """Rows of a comparison: for each job {choice: (measured, {family: price})}, the library's having no prices."""
    rows = []
    for number, job in enumerate(jobs):
        for choice, (measured, prices) in job.items():
            own = choice == LIBRARY
            for family, price in ({"": np.nan} if own else prices).items():
                price, status = price if isinstance(price, tuple) else (price, "ok")
                rows.append(
                    {
                        "platform": "here",
                        "simulated": False,
                        "operation": "bcast",
                        "group": f"job {number}",
                        "point": f"{number} {choice}",
                        "algorithm": choice,
                        "choice": choice,
                        "layout": "block:1",
                        "measured": measured,
                        "measured_low": measured,
                        "measured_high": measured,
                        "family": family,
                        "predicted": price,
                        "status": status,
                        "held_out": True,
                        "mu": max(price / measured, measured / price) if price else np.nan,
                    }
                )
    return pd.DataFrame(rows)


def job(sure, unsure, library=6.0):
    """a takes 2 and b 3, in some unit; each family's prices for the two."""
    return {
        "a": (2.0, {"sure": sure[0], "unsure": unsure[0]}),
        "b": (3.0, {"sure": sure[1], "unsure": unsure[1]}),
        LIBRARY: (library, {}),
    }


RIGHT, WRONG = (2.0, 3.0), (3.0, 2.0)  # the second prefers b


def test_the_family_that_errs_less_decides():
    voted = picks(study([job(RIGHT, WRONG)] * 4))
    assert voted["choice"].tolist() == ["a"] * 4
    (row,) = summary(voted).to_dict("records")
    assert (row["jobs"], row["right"], row["regret_max"]) == (4, 1.0, 0.0)
    assert row["gain"] == row["most"] == pytest.approx(3)


def test_a_job_does_not_say_whom_to_believe_in_it():
    """In the last job alone the family that has been right so far is wrong: nobody can know."""
    voted = picks(study([job(RIGHT, WRONG)] * 4 + [job(WRONG, RIGHT, library=1.5)]))
    assert voted["choice"].tolist() == ["a"] * 4 + ["b"]
    assert voted["regret"].tolist() == pytest.approx([0, 0, 0, 0, 0.5])
    (row,) = summary(voted).to_dict("records")
    assert row["right"] == pytest.approx(0.8)
    assert row["regret_mean"] == pytest.approx(0.1)
    assert row["gain"] == pytest.approx((3**4 * 1.5 / 3) ** (1 / 5))
    assert row["most"] == pytest.approx((3**4 * 1.5 / 2) ** (1 / 5))


def test_who_has_no_say():
    blind = tuple((price, PriceStatus.BLIND.because("holds for 8 B")) for price in WRONG)
    free = (0.0, 3.0)
    assert picks(study([job(RIGHT, blind)] * 2))["choice"].tolist() == ["a", "a"]
    assert picks(study([job(RIGHT[::-1], free)] * 2))["choice"].tolist() == ["b", "b"]
    assert picks(study([job(free, blind)] * 2)).empty
    assert summary(picks(study([job(free, blind)] * 2))).empty


def test_a_price_beyond_the_probed_range_counts_in_advice_but_not_in_weights():
    far = tuple((price, "extrapolated: far") for price in WRONG)
    assert picks(study([job(far, far)] * 2))["choice"].tolist() == ["b", "b"]


def test_one_alternative_is_no_choice():
    one = {"a": job(RIGHT, WRONG)["a"], LIBRARY: (6.0, {})}
    assert picks(study([one, one])).empty
