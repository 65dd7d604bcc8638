"""Overhead of a container, on measurements whose true ratio is known."""

import numpy as np
import pandas as pd
import pytest

from commodel.reports.comparison_frame import prepare_comparison
from commodel.reports.sections import overhead
from commodel.stats import compute_median_interval
from tests.reading import sentences
from tests.reports.reading import make_report

OVERHEAD = "Overhead of the container"

DIGEST = "sha256:" + "0123456789abcdef" * 4
CONTAINERS = {
    "boxed": {"image": "commodel.sif", "digest": DIGEST, "model": "hybrid", "native": "ether16"}
}


def add_container(comparison, factor):
    """Return the real platform's points, and these points in a container, where they take `factor`
    times as long."""
    native = comparison[comparison["platform"] == "ether16"]
    boxed = native.assign(platform="boxed", point="b" + native["point"])
    boxed["workload"] = boxed["workload"].str.replace("ether16", "boxed")
    for key in ("measured", "measured_low", "measured_high"):
        boxed[key] = boxed[key] * factor
    return pd.concat([native, boxed], ignore_index=True)


def make_overhead(comparison, containers):
    """Return the sections of a report on containers, and their sentences in its Summary."""
    selected = overhead.select_containers(containers)
    pairs = overhead.pair_with_native(prepare_comparison(comparison), selected)
    sections = overhead.make_sections(pairs, selected, set())
    return sections, overhead.describe_overhead(pairs, selected, set())


def rows_of(section):
    (table,) = section.tables
    keys = [column.key for column in table.columns]
    return [dict(zip(keys, row, strict=True)) for row in table.rows]


@pytest.mark.parametrize("factor", [1.0, 1.3, 0.5])
def test_a_known_ratio_is_found_at_every_point(small, factor):
    both = add_container(small, factor)
    (section,), (line,) = make_overhead(both, CONTAINERS)
    rows = rows_of(section)
    measured = both[(both["platform"] == "boxed") & both["measured"].notna()]["point"].nunique()
    assert len(rows) == measured
    assert [row["ratio"] for row in rows] == pytest.approx([factor] * measured)
    assert all(row["low"] < factor < row["high"] for row in rows)
    assert {row["outcome"] for row in rows} == {{1.0: "tied", 1.3: "slower", 0.5: "faster"}[factor]}
    assert (
        f"{factor:.3f}× the time (95 %: {factor:.3f}–{factor:.3f}), geometric mean over {measured} points"
        in line
    )
    assert (
        "boxed, container commodel.sif (hybrid, sha256:0123456789ab), compared with ether16 without it"
        in line
    )
    assert ("No point differs significantly" in line) == (factor == 1.0)
    assert {row["leaves"] for row in rows if row["operation"] == "reduce"} <= {*both["leaves"]} - {
        0
    }
    assert {row["leaves"] for row in rows if row["operation"] != "reduce"} == {None}


def test_the_worst_point_is_named_and_the_mean_is_geometric(small):
    both = add_container(small, 1.0)
    boxed = both[(both["platform"] == "boxed") & both["measured"].notna()]
    slowest = boxed.iloc[0]
    both.loc[both["point"] == slowest["point"], ["measured", "measured_low", "measured_high"]] *= 16
    _, (line,) = make_overhead(both, CONTAINERS)
    assert f"{16 ** (1 / boxed['point'].nunique()):.3f}× the time" in line
    assert (
        f"16.00× at worst ({slowest['operation']} {slowest['alternative']}, {slowest['ranks']} ranks"
        in line
    )
    assert "Significant at 1 slower of " in line


def test_the_sheet_has_the_whole_digest(small):
    both = add_container(small, 1.1)
    report = make_report(both, experiment="b", containers=CONTAINERS)
    section = report.section("Container overhead")
    (alone,), lines = make_overhead(both, CONTAINERS)
    assert repr(section) == repr(alone)
    assert sentences(report, OVERHEAD) == lines
    assert any(DIGEST in line for line in section.blocks[0].sentences)


def test_without_a_native_platform_there_is_no_overhead(small):
    for native in ("", "elsewhere"):
        containers = {"boxed": CONTAINERS["boxed"] | {"native": native}}
        sections, lines = make_overhead(add_container(small, 1.1), containers)
        assert not sections
        assert all("no point was measured on both" in line for line in lines)
        assert len(lines) == bool(native)


def test_coverage_of_the_interval_of_the_ratio(comparison):
    """Medians are of 40 log-normal samples, 20 % slower in the container. The interval must cover
    the ratio 1.2 in about 95 % of cases, and its width must be that of the difference of two
    medians."""
    random, rows = np.random.default_rng(5), []
    for _ in range(600):
        pair = [
            compute_median_interval(random.lognormal(np.log(time), 0.1, 40)) for time in (1.2, 1.0)
        ]
        rows.append([*pair[0], *pair[1]])
    names = [f"measured{end}{side}" for side in ("", "_native") for end in ("", "_low", "_high")]
    ratios = overhead.compute_ratios(pd.DataFrame(rows, columns=names))
    held = ((ratios["low"] <= 1.2) & (ratios["high"] >= 1.2)).mean()
    assert 0.93 < held < 0.99
    # of the difference of two medians of logarithms
    theory = 1.96 * 0.1 * np.sqrt(np.pi / 2 / 40 * 2)
    assert np.log(ratios["high"] / ratios["low"]).median() / 2 == pytest.approx(theory, rel=0.15)


def test_the_ratio_is_highest_where_the_time_without_the_container_is_lowest():
    """The intervals are asymmetric. As logarithms, the half-widths of the ratio are hypot(0.3, 0.4)
    below and hypot(0.05, 0.12) above."""
    pair = {"measured": 0.7, "measured_low": 0.7 - 0.3, "measured_high": 0.7 + 0.05}
    pair |= {"measured_native": 0.0, "measured_low_native": -0.12, "measured_high_native": 0.4}
    (row,) = overhead.compute_ratios(np.exp(pd.DataFrame([pair]))).to_dict("records")
    assert np.log([row["low"], row["ratio"], row["high"]]) == pytest.approx(
        [0.7 - 0.5, 0.7, 0.7 + 0.13]
    )


def test_an_interval_down_to_zero_is_a_tie(small):
    both = add_container(small, 3.0)
    both.loc[both["platform"] == "boxed", "measured_low"] = 0.0
    ratios = overhead.pair_with_native(
        prepare_comparison(both), overhead.select_containers(CONTAINERS)
    )
    assert (ratios["low"] == 0).all()
    assert set(ratios["outcome"]) == {"tied"}
