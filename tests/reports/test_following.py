"""Following the vote in a report: the sentence and the table say what the comparison says, counted another way."""

import math

import numpy as np
import pandas as pd
import pytest
from tests.reading import sentences

from commodel.compare.combined_prediction import weigh_models
from commodel.compare.comparison import UNPRICED
from commodel.reports import build
from commodel.reports.values import percent

PRICE = ("predicted", "predicted_low", "predicted_high", "relative_error", "mu", "regret")
TWICE = 2.0  # the library's time over that of the fastest schedule


def following(report):
    return [line for line in sentences(report, "How sure this is") if "ollowing the vote" in line]


def table(report):
    tables = [table for table in report.section("Standings").tables if table.name == "Following"]
    if not tables:
        return []
    keys = [column.key for column in tables[0].columns]
    return [dict(zip(keys, row, strict=True)) for row in tables[0].rows]


@pytest.fixture(scope="module")
def studied(comparison):
    """Every job with the library beside it, twice as slow as the fastest schedule."""
    known = comparison[comparison["measured"].notna()].sort_values("measured")
    own = known.drop_duplicates("group").copy()
    own[["measured", "measured_low", "measured_high"]] *= TWICE
    own = own.assign(algorithm="library", topology="", choice="library", family="", status=UNPRICED)
    own = own.assign(point="l" + own["point"], fan_in=0, chosen=False, best=False, **dict.fromkeys(PRICE, math.nan))
    return pd.concat([comparison, own], ignore_index=True)


@pytest.fixture(scope="module")
def report(studied):
    return build(studied, experiment="studied")


@pytest.fixture(scope="module")
def slowly(comparison):
    """Job by job: regret of the alternative of the lowest combined prediction, by `weigh_models` of all other rows."""
    regrets = []
    for platform, here in comparison[comparison["measured"].notna()].groupby("platform"):
        priced = here[here["held_out"] & here["predicted"].notna()]
        for (group, operation), job in priced.groupby(["group", "operation"]):
            wide = job.pivot_table(index="point", columns="family", values="predicted")
            voters = [name for name in wide if (wide[name] > 0).all()]
            trust = weigh_models(voters, priced[priced["group"] != group], operation)
            common = np.log(wide[voters]) @ [trust[name].weight for name in voters]
            times = job.drop_duplicates("point").set_index("point")[["measured", "measured_low", "measured_high"]]
            pick, best = times.loc[common.idxmin()], times.loc[times["measured"].idxmin()]
            regret = pick["measured"] / best["measured"] - 1
            right = pick["measured_low"] <= best["measured_high"] or regret <= 0.01
            regrets.append({"platform": platform, "operation": operation, "regret": regret, "right": right})
    return pd.DataFrame(regrets)


def test_the_table_counts_what_the_slow_way_counts(report, slowly):
    rows = table(report)
    assert len(rows) == slowly[["platform", "operation"]].drop_duplicates().shape[0] + slowly["platform"].nunique()
    for row in rows:
        jobs = slowly[slowly["platform"] == row["platform"]]
        jobs = jobs if row["operation"] == "all" else jobs[jobs["operation"] == row["operation"]]
        assert row["jobs"] == len(jobs)
        assert row["right"] == pytest.approx(100 * jobs["right"].mean())
        assert row["regret_mean"] == pytest.approx(100 * jobs["regret"].mean())
        assert row["regret_max"] == pytest.approx(100 * jobs["regret"].max())
        assert row["most"] == pytest.approx(TWICE)
        assert row["gain"] == pytest.approx(TWICE / np.exp(np.log1p(jobs["regret"]).mean()))
        assert row["simulated"] == ("simulated" if row["platform"] == "fattree" else "no")
    assert slowly["regret"].max() > 0


def test_the_sentence_says_the_same(report, slowly):
    for platform, name in (("ether16", "ether16"), ("fattree", "fattree (simulated)")):
        jobs = slowly[slowly["platform"] == platform]
        (line,) = [line for line in following(report) if line.startswith(f"{name}: Following the vote")]
        share = f"{100 * jobs['right'].mean():.0f} % of {len(jobs)} jobs"
        assert f"finds the fastest schedule or a tie in {share}" in line
        assert f"% on average and {percent(jobs['regret'].max())} at worst (" in line
        gain = TWICE / np.exp(np.log1p(jobs["regret"]).mean())
        assert line.endswith(f", and is on average {gain:.2f}× faster than the library's own choice.")


def test_without_the_library_nothing_is_said_of_it(small):
    bare = build(small, experiment="bare")
    assert len(following(bare)) == 2
    assert not any("library" in line for line in following(bare))
    assert all(math.isnan(row["gain"]) for row in table(bare))


def test_a_vote_that_is_always_right_costs_nothing(small):
    exact = small.assign(predicted=small["measured"], mu=1.0, status="ok")
    lines = following(build(exact, experiment="exact"))
    assert len(lines) == 2
    for line in lines:
        assert "in 100 % of " in line
        assert "costs nothing" in line


def test_one_operation_needs_no_row_for_all(small):
    rows = table(build(small[small["operation"] == "bcast"], experiment="bcast"))
    assert [row["operation"] for row in rows] == ["bcast", "bcast"]


def test_nothing_to_choose_gives_no_table(small):
    alone = small[small["choice"].isin(["binomial", "ring", "flat"])]
    report = build(alone[alone["operation"] != "reduce"], experiment="alone")
    assert table(report) == []
    assert following(report) == []
