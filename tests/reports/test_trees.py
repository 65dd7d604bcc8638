"""Pictures of trees: the messages of the critical path, whose times add up to the prediction, are
highlighted."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import openpyxl
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commodel.compare.alternatives import find_fastest_trees
from commodel.patterns.points import PlatformResources, make_point
from commodel.patterns.trees.drawing import list_walks
from commodel.patterns.trees.tree import Tree
from commodel.predictions.predictions import attribute_time
from commodel.records import Batch
from commodel.reports.elements import Report
from commodel.reports.html.page import format_page
from commodel.reports.pictures.specifications import specify_lines
from commodel.reports.sections.trees import make_sections
from commodel.reports.xlsx.charts import format_axis
from commodel.reports.xlsx.workbook import write_xlsx
from tests.models.test_contract import fitted_set
from tests.planning import planned

SPECS = ("binomial:3", "kary:2^2", "flat:4")


def points():
    resources = PlatformResources.unlimited()
    for operation in ("bcast", "reduce"):
        for spec in SPECS:
            for size in (8, 4096):
                given = {"operation": operation, "topology": spec, "bytes": size}
                yield replace(make_point(resources, given), platform="here")


def make_comparison(plan, model):
    """Return a comparison with μ = 1 at every point; measured times are 1, 2 and 3 µs in turn."""
    rows = [
        {
            "point": point.id,
            "platform": "here",
            "operation": point.operation,
            "topology": point.topology,
        }
        | {
            "leaves": 4,
            "bytes": point.bytes,
            "measured": 1e-6 * (1 + at % 3),
            "held_out": True,
            "model": model,
        }
        | {"mu": 1.0, "validity": "valid", "seconds": 1e-6}
        for at, point in enumerate(plan.points)
    ]
    return pd.DataFrame(rows)


@pytest.fixture(scope="module")
def drawn():
    plan = planned(Batch("here-b", "here", 1, points=tuple(points())))
    parameters = replace(fitted_set("loggp"), platform="here")
    return find_fastest_trees(plan, make_comparison(plan, "loggp"), [parameters])


def test_messages_on_the_critical_path_add_up_to_the_prediction(drawn):
    assert len(drawn) == 4
    for predicted in drawn:
        own = [seconds for *_, seconds in predicted.attribution.messages]
        assert sum(own) + predicted.attribution.work == pytest.approx(
            predicted.attribution.prediction, rel=1e-3
        )


def test_a_model_that_adds_up_steps_has_no_critical_path(drawn):
    assert attribute_time(drawn[0].attribution.point, fitted_set("bsp")) is None


def test_the_report_draws_critical_paths_of_the_fastest_trees(drawn, tmp_path):
    (section,) = make_sections(drawn, {"here"})
    assert [chart.title.split(", ")[0] for chart in section.charts] == ["here (simulated)"] * 4
    (table,) = section.tables
    assert sum(table.column("share")[: len(drawn[0].attribution.messages)]) == pytest.approx(
        100 - 100 * drawn[0].attribution.work / drawn[0].attribution.prediction, rel=1e-3
    )
    for chart in section.charts:
        levels = [0, *range(1, int(chart.y.high))]
        assert specify_lines(chart)["layer"][0]["encoding"]["y"]["axis"]["values"] == levels
        assert format_axis(chart.y)["major_unit"] == 1
    report = Report("trees", "trees", "", (section,))
    page = format_page(report)
    assert "Critical paths of the fastest trees" in page
    assert page.count("critical path (") >= 4
    write_xlsx(report, tmp_path / "trees.xlsx")
    book = openpyxl.load_workbook(tmp_path / "trees.xlsx")
    assert sum(len(sheet._charts) for sheet in book) == len(section.charts)
    assert not make_sections([], set())


@given(st.data())
def test_a_walk_takes_each_line_there_and_back(data):
    count = data.draw(st.integers(2, 20))
    parent = np.array([-1, *(data.draw(st.integers(0, node - 1)) for node in range(1, count))])
    kept = {node for node in range(1, count) if data.draw(st.booleans())}
    steps = [sorted(pair) for walk in list_walks(Tree(parent), kept) for pair in pairwise(walk)]
    lines = sorted([int(low), int(high)] for low, high in steps)
    assert lines == sorted([int(parent[node]), node] for node in kept for _ in range(2))
