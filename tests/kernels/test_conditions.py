"""Kernels that take longer than predicted are an anomaly of measurement."""

import pytest

from commodel.reports.sections import measurement_conditions
from tests.reports.test_conditions import make_real_comparison

KERNEL = "summa:n=16:grid=1x2"


@pytest.mark.parametrize(("ratio", "number"), [(2.0, 1), (1.0, 0)])
def test_kernels_slower_than_predicted_are_an_anomaly(small, ratio, number):
    cold = measurement_conditions.describe_conditions(
        make_real_comparison(small, KERNEL, ratio), {}
    )
    assert [line.platform for line in cold] == ["ether16"] * number
    assert all(
        "Kernels took 2 times the predicted time" in line.text and "caches" in line.text
        for line in cold
    )


def test_collectives_and_simulated_kernels_have_no_cache_anomaly(small):
    assert not measurement_conditions.describe_conditions(make_real_comparison(small, "bcast"), {})
    assert not measurement_conditions.describe_conditions(
        make_real_comparison(small, KERNEL).assign(simulated=True), {}
    )


def test_kernels_that_share_processors_have_no_cache_anomaly(small):
    frame = make_real_comparison(small, KERNEL)
    crowded = frame.assign(processes=3, processors=2)
    assert not measurement_conditions.describe_conditions(crowded, {})
    assert measurement_conditions.describe_conditions(frame.assign(processes=2, processors=2), {})


def test_uncertain_medians_are_counted_and_do_not_count_for_caches(small):
    frame = make_real_comparison(small, KERNEL)
    points = frame.loc[frame["platform"] == "ether16", "point"].unique()
    frame.loc[frame["point"].isin(points[:3]), "measured_high"] *= 3
    frame.loc[frame["point"] == points[0], "measured_low"] /= 400
    line, cold = measurement_conditions.describe_conditions(frame, {})
    assert line.platform == cold.platform == "ether16"
    assert line.text.startswith(
        f"3 of {len(points)} medians are uncertain by more than a factor of 2 (1,200 at worst)"
    )
    assert f"({len(points) - 3} points," in cold.text
