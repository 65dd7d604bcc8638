"""Who is ahead where: recomputed from the frame by an obvious loop."""

import math

import numpy as np
import pandas as pd
import pytest

from commodel.compare.model_ranking import COVER, ahead, best_family, distinct, ranked, tied_families, twins
from commodel.reports import build
from commodel.reports.frames import prepare

FAN_INS = {"1": (0, 1), "2–4": (2, 4), "5–16": (5, 16), "> 16": (17, math.inf)}
SIZES = {
    "≤ 64 B": (0, 64),
    "≤ 4 KiB": (65, 4096),
    "≤ 64 KiB": (4097, 65536),
    "> 64 KiB": (65537, math.inf),
}


@pytest.fixture(scope="module")
def frame(comparison):
    return prepare(comparison)


def errors(rows, family):
    """μ by point, from the two times alone."""
    by_point = {}
    for row in rows:
        if row["family"] == family and row["held_out"] and row["measured"] > 0 and not math.isnan(row["predicted"]):
            price, truth = row["predicted"], row["measured"]
            by_point[row["point"]] = max(price / truth, truth / price) if price else math.inf
    return by_point


def by_hand(rows):
    """The order of the families, and those tied with the first."""
    from scipy.stats import t  # here: it takes longer to load than most test files to run, in each of pytest's workers

    mu = {family: errors(rows, family) for family in {row["family"] for row in rows}}
    most = max(len(errors_of) for errors_of in mu.values())
    mean = {
        family: sum(errors_of.values()) / len(errors_of)
        for family, errors_of in mu.items()
        if len(errors_of) >= COVER * most
    }
    order = sorted(mean, key=lambda family: (mean[family], family))
    tied = set()
    for family, errors_of in mu.items():
        shared = [point for point in errors_of if point in mu[order[0]]]
        gaps = [math.log(errors_of[point] / mu[order[0]][point]) for point in shared]
        if family == order[0] or len(gaps) < 3 or math.inf in gaps or len(gaps) <= COVER * len(mu[order[0]]):
            continue
        noise = t.ppf(0.975, len(gaps) - 1) * np.std(gaps, ddof=1) / math.sqrt(len(gaps))
        apart = min(errors_of[point] for point in shared) > 1.01 * max(mu[order[0]][point] for point in shared)
        apart = apart or (len(gaps) >= 6 and min(gaps) > math.log(1.01))
        if not apart and np.mean(gaps) <= max(noise, math.log(1.01)):
            tied.add(family)
    return order, mean, tied


def test_classes_are_what_a_loop_finds(frame):
    classes = ahead(frame[frame["held_out"]])
    rows, seen = frame.to_dict("records"), 0
    for entry in classes.itertuples():
        (few, many), (small, large) = FAN_INS[entry.fan_in], SIZES[entry.size_class]
        of_class = [
            row
            for row in rows
            if (row["platform"], row["operation"]) == (entry.platform, entry.operation)
            and few <= row["fan_in"] <= many
            and small <= row["bytes"] <= large
        ]
        points = {row["point"] for row in of_class if row["measured"] > 0}
        seen += len(points)
        order, mean, tied = by_hand(of_class)
        assert entry.points == len(points)
        assert entry.best == order[0]
        assert entry.mu == pytest.approx(mean[order[0]])
        assert set(entry.tied) == tied
        after = [family for family in order[1:] if family not in tied and len(points) >= 3]
        assert entry.next == (after[0] if after else "")
        assert not after or entry.mu_next == pytest.approx(mean[after[0]])
        assert entry.enough == (len(points) >= 3)
    assert seen == frame.loc[frame["measured"].notna(), "point"].nunique()
    assert len(set(zip(classes["platform"], classes["operation"], classes["fan_in"], strict=True))) == 2 * 5


def test_ties_and_order_of_a_platform_are_what_a_loop_finds(frame):
    for _, part in frame[frame["held_out"]].groupby("platform"):
        order, _, tied = by_hand(part.to_dict("records"))
        assert list(ranked(part)["family"]) == order
        assert set(tied_families(part, best_family(part))) == tied


def test_a_family_that_prices_at_nothing_is_last_and_ties_with_nobody(frame):
    part = frame[(frame["platform"] == "ether16") & frame["held_out"]]
    assert ranked(part)["family"].iloc[-1] == "pram"
    assert ranked(part)["mu_mean"].iloc[-1] == math.inf
    few = part[part["point"].isin(part["point"].unique()[:4])]
    assert "pram" not in tied_families(few, best_family(few))
    assert best_family(part[part["family"] == "pram"]) is None


def test_families_that_price_the_same_count_as_one(comparison):
    """LogGP's extensions are LogGP where all nodes are alike: the name that they extend stands for all."""
    own = comparison[comparison["family"] == "loggp"]
    again = [own.assign(family=name, predicted=own["predicted"] * (1 + 1e-6)) for name in ("hloggp", "loggph")]
    frame = prepare(pd.concat([comparison, *again]))
    before = ahead(prepare(comparison))
    after = ahead(frame)
    columns = ["best", "next", "enough"]
    assert after[columns].equals(before[columns])
    assert after["tied"].map(lambda names: set(names) - {"hloggp", "loggph"}).equals(before["tied"].map(set))
    by_loggp = after["best"] == "loggp"
    assert by_loggp.any()
    assert all(names == ["hloggp", "loggph"] for names in after.loc[by_loggp, "same"])
    assert not any(names for names in after.loc[~by_loggp, "same"])
    part = frame[(frame["platform"] == "ether16") & frame["held_out"]]
    assert twins(part, "hloggp") == ["loggp", "loggph"]
    assert [name for name in distinct(part, ranked(part), 9) if "loggp" in name.replace("plogp", "")] == ["loggp"]


def test_only_free_prices_trust_nobody(comparison):
    report = build(comparison[comparison["family"] == "pram"], experiment="free")
    lines = report.sections[0].blocks[0].sentences
    assert any("Every family prices something at 0" in line for line in lines)


def test_the_table_marks_who_is_ahead_alone(report):
    table = next(table for table in report.section("Standings").tables if table.name == "Ahead")
    alone = {row for row, value in enumerate(table.column("alone")) if value is True}
    assert {row for row, _ in table.marks} == alone
    assert alone
    tied, points = table.column("tied"), table.column("points")
    for row in range(len(table.rows)):
        assert (tied[row] == "fewer than 3 points") == (points[row] < 3)
        assert row not in alone or tied[row] == ""
    (block,) = [
        block
        for block in report.section("Standings").blocks
        if getattr(block, "question", "") == "Where each family is ahead"
    ]
    best = table.column("best")
    assert {line.split(": ")[1].split()[0] for line in block.sentences} == {best[row] for row in alone}


def test_what_a_fit_has_seen_changes_no_figure(small):
    """Prices that are not held out may be anything: only the comparison itself shows them."""
    spoilt = small.copy()
    seen = (spoilt["family"] == "pmnf") & ~spoilt["held_out"]
    assert seen.any()
    spoilt.loc[seen, ["predicted", "mu", "relative_error"]] = [1e9, 1e9, 1e9]
    for plain, changed in zip(
        build(small, experiment="x").sections, build(spoilt, experiment="x").sections, strict=True
    ):
        if plain.name != "Comparison":
            assert repr(plain) == repr(changed)  # NaN is not equal to itself


def test_charts_draw_the_best_few_and_say_so(report, frame):
    for chart, (_, part) in zip(report.charts[:2], frame[frame["held_out"]].groupby("platform"), strict=True):
        drawn = {series.name for series in chart.series} - {"predicted = measured"}
        assert drawn == set(ranked(part)["family"][:5])
        assert chart.note.startswith("The 5 of 9 families with the lowest mean μ")


@pytest.mark.parametrize("theirs", [[1.1, 1.02, 1.1, 1.02, 900.0, 16.0], [18.9, 2.9, 11.5]])
def test_a_family_worse_by_factors_is_told_apart_however_much_they_scatter(theirs):
    rows = [
        {"point": str(number), "family": family, "mu": mu, "predicted": mu}
        for number, worse in enumerate(theirs)
        for family, mu in (("good", 1.001), ("wild", worse))
    ]
    assert tied_families(pd.DataFrame(rows), pd.Series({"family": "good", "points": len(theirs)})) == []
