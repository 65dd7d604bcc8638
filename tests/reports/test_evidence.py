"""Parameters, fits, latencies and samples: every value is in the report once, with its
uncertainty."""

import math
from dataclasses import replace

import numpy as np
import openpyxl
import pandas as pd
import pytest
from click.testing import CliRunner

from commodel.cli.report import report as verb
from commodel.files.tables import SUMMARY, read_table, write_table
from commodel.models.evaluation.values import TABLE, format_form
from commodel.parameters import Curve, Estimate, ParameterSet
from commodel.plan.planning import load_plan
from commodel.reports import charts, write_xlsx
from commodel.reports.sections.evidence import SHOWN_UNITS, make_latency_section
from commodel.reports.sections.first_screen import summarize_network
from commodel.results.collection import summarize_raw
from commodel.results.latency_distributions import tabulate_distributions
from commodel.results.raw_samples import JOINED_HEADERS, compute_checksum
from tests.reports.reading import make_report, rows_of


def tables(report, section):
    return {table.name: table for table in report.section(section).tables}


def records(table):
    return [
        dict(zip([column.key for column in table.columns], row, strict=True)) for row in table.rows
    ]


def test_every_value_is_in_one_of_the_two_tables(report, inputs):
    written = tables(report, "Parameters")
    scalars = {
        (row["platform"], row["model"], row["name"]): row for row in records(written["Parameters"])
    }
    samples = {}
    for row in records(written["Sampled functions"]):
        level = "" if row["level"] is None else f"x{row['level']}"
        samples[row["platform"], row["model"], f"{row['name']}.{row['at']}{level}"] = row
    every = {
        (fitted.platform, fitted.model, name): estimate
        for fitted in inputs["parameter_sets"]
        for name, estimate in fitted.values.items()
    }
    assert {**scalars, **samples}.keys() == every.keys()
    assert not scalars.keys() & samples.keys()
    assert {name.partition(".")[0] for _, _, name in samples} == {"o_s", "L_1"}
    for key, estimate in every.items():
        row = (scalars | samples)[key]
        unit, factor = SHOWN_UNITS.get(estimate.unit, (estimate.unit, 1.0))
        assert row["unit"] == unit
        assert row["known"] is estimate.known
        if estimate.known:
            # Rounded to what the interval supports, never by more than a hundredth of its width.
            noise = 0.01 * (estimate.high - estimate.low) * factor
            assert row["value"] == pytest.approx(estimate.value * factor, abs=noise)
            assert row["low"] == pytest.approx(estimate.low * factor, abs=noise)


def test_values_that_the_data_do_not_determine_are_grey_numbers(report):
    table = tables(report, "Parameters")["Parameters"]
    keys = [column.key for column in table.columns]
    at = next(
        number
        for number, row in enumerate(records(table))
        if (row["platform"], row["name"]) == ("ether16", "C")
    )
    assert records(table)[at]["value"] == pytest.approx(0.314159)  # µs
    undetermined = {number for number, row in enumerate(records(table)) if not row["known"]}
    assert at in undetermined
    for key in ("value", "low", "high"):
        assert {
            row for row, column in table.backgrounds if column == keys.index(key)
        } == undetermined


def test_values_that_could_not_be_observed_have_a_reason(comparison):
    sets = [ParameterSet("f", "p", "", {}, missing={"M_ctc": "a copy takes no time there"})]
    (row,) = records(
        tables(make_report(comparison.iloc[:0], sets, experiment="e"), "Parameters")["Parameters"]
    )
    assert math.isnan(row["value"])
    assert (row["name"], row["note"], row["known"]) == (
        "M_ctc",
        "a copy takes no time there",
        False,
    )


def test_definitions_are_found_by_the_longest_name(comparison):
    values = {
        name: Estimate(1.0, "s", 1.0, 1.0) for name in ("L.fat.thin", "o_s.64", "o_s.fat.a", "g")
    }
    definitions = {("f", "L"): "latency", ("f", "o_s"): "overhead", ("f", "g"): "gap"}
    sets = [ParameterSet("f", "p", "", values, forms={"o_s": "linear", "g": "c·p^k"})]
    report = make_report(comparison.iloc[:0], sets, experiment="e", definitions=definitions)
    of_section = tables(report, "Parameters")
    rows = {row["name"]: row for row in records(of_section["Parameters"])}
    assert {name: row["definition"] for name, row in rows.items()} == {
        "L.fat.thin": "latency",
        "o_s.fat.a": "overhead",
        "g": "gap",
    }
    assert rows["o_s.fat.a"]["form"] == "a + b·x"
    assert rows["g"]["form"] == "c·p^k"
    assert [row["definition"] for row in records(of_section["Sampled functions"])] == ["overhead"]


def test_the_models_table_lists_the_effects_that_each_model_ignores(report, inputs):
    (table,) = report.section("Models").tables
    assert {row["model"]: row["ignores"] for row in records(table)} == {
        name: about["ignores"] for name, about in inputs["models"].items()
    }
    assert all(row["citation"] and row["equation"] and row["title"] for row in records(table))


def test_curves_are_a_table_of_contents_of_the_charts(report, inputs):
    section = report.section("Fits")
    curves = [(fitted, curve) for fitted in inputs["parameter_sets"] for curve in fitted.curves]
    rows = records(section.tables[0])
    assert len(rows) == len(curves)
    numbers = {chart.number: chart for chart in section.charts}
    assert sorted(numbers) == list(range(1, len(section.charts) + 1))
    for row in rows:
        chart = numbers[row["figure"]]
        assert chart.title.startswith(
            f"{row['figure']}. {row['curve']}: {row['model']}, {row['platform']}"
        )
        (curve,) = [
            curve
            for fitted, curve in curves
            if (fitted.platform, fitted.model, curve.title)
            == (row["platform"], row["model"], row["curve"])
        ]
        worst = max(
            abs(fit / seen - 1) for seen, fit in zip(curve.measured, curve.fitted, strict=True)
        )
        assert row["worst"] == pytest.approx(100 * worst)
        assert math.isnan(row["aic"]) if math.isnan(curve.aic) else row["aic"] == curve.aic
        assert math.isnan(row["left_out"]) or row["left_out"] == pytest.approx(100 * curve.left_out)


def test_residual_charts_plot_the_error_of_every_fit_sample(report):
    section = report.section("Fits")
    samples = records(section.tables[1])
    left = [chart for chart in section.charts if "residuals:" in chart.title]
    assert left
    for chart in left:
        for series in chart.series:
            own = [
                row["error"]
                for row in samples
                if row["curve"] == series.name
                and f"{row['model']}, {row['platform']}" in chart.title
            ]
            assert list(series.y) == pytest.approx(own)
            assert any(error != 0 for error in series.y), (
                "a function through all of its samples leaves nothing over"
            )


def test_a_fit_worse_than_the_mean_of_its_samples_is_named_so():
    """Overheads of 6.4 µs and then 0 are averaged: the line passes no sample."""
    sizes, samples = (1.0, 16.0, 256.0, 4096.0, 65536.0), (6.4e-6, 6.4e-6, 6.4e-6, 0.0, 0.0)
    curve = Curve(
        "receive overhead",
        "message size / B",
        "time / s",
        sizes,
        samples,
        (3.2e-6,) * 5,
        format_form(TABLE),
        -0.0417,
    )
    assert (
        charts.describe_quality(curve) == "a constant, R² < 0: worse than the mean of the samples"
    )
    passing = replace(curve, fitted=samples, r2=1.0)
    assert charts.describe_quality(passing) == f"{format_form(TABLE)}, R² = 1.0000"


def test_of_many_curves_the_worst_are_drawn(inputs, comparison):
    (plogp,) = [
        fitted
        for fitted in inputs["parameter_sets"]
        if (fitted.model, fitted.platform) == ("plogp", "ether16")
    ]
    good, bad = plogp.curves[0], plogp.curves[2]
    curves = tuple(
        replace(good, title=f"good {place}", left_out=0.001 * place) for place in range(20)
    )
    many = replace(plogp, curves=(*curves, bad))
    assert charts.select_worst_curves(many.curves) == [*curves[-charts.MAX_CURVES + 1 :], bad]
    section = make_report(comparison.iloc[:0], [many], experiment="many").section("Fits")
    assert sum(row["figure"] is not None for row in records(section.tables[0])) == charts.MAX_CURVES
    assert f"at most {charts.MAX_CURVES} curves" in section.tables[0].note


def test_one_sample_is_no_curve(inputs, comparison):
    (plogp,) = [
        fitted
        for fitted in inputs["parameter_sets"]
        if (fitted.model, fitted.platform) == ("plogp", "ether16")
    ]
    curve = plogp.curves[0]
    single = replace(
        curve,
        title="one",
        x=curve.x[:1],
        measured=curve.measured[:1],
        fitted=curve.fitted[:1],
        r2=0.0,
    )
    section = make_report(
        comparison.iloc[:0], [replace(plogp, curves=(curve, single))], experiment="one"
    ).section("Fits")
    first, second = records(section.tables[0])
    assert first["figure"] == 1
    assert second["figure"] is None
    assert math.isnan(second["r2"])
    assert not any("one" in chart.title for chart in section.charts)


def test_latencies_are_half_the_round_trips(report, round_trips):
    trips = round_trips
    (table,) = report.section("Latency").tables
    rows = records(table)
    assert len(rows) == 8
    for row in rows:
        own = trips[
            (trips["platform"] == row["platform"])
            & (trips["bytes"] == row["bytes"])
            & trips["valid"]
        ]
        halves = own["seconds"] / 2 * 1e6
        assert row["samples"] == len(own)
        for key in ("min", "median", "mean", "max"):
            assert row[key] == pytest.approx(getattr(halves, key)())
        assert row["modes"] == (2 if row["platform"] == "ether16" else 1)
        assert row["spread"] == ("2 modes" if row["platform"] == "ether16" else "one value")


def test_histograms_are_drawn_where_there_is_a_distribution(report):
    section = report.section("Latency")
    assert [chart.title for chart in section.charts] == [
        "Half the round trip of 1 B: ether16, node.node",
        "Half the round trip of 1 KiB: ether16, node.node",
    ]
    for chart in section.charts:
        outline = chart.series[0]
        counted = [outline.y[place] for place in range(1, len(outline.x) - 2, 4)]
        assert sum(counted) == 220  # of 221: one is an outlier
        assert np.all(np.diff(outline.x) >= 0)
        assert {series.name.split(" ")[0] for series in chart.series[1:]} == {
            "half",
            "median",
            "mean",
        }
        assert "1 above" in chart.note
    lines = [line for block in section.blocks for line in getattr(block, "sentences", ())]
    assert any(
        line.startswith("fattree (simulated): at every size") and "identical" in line
        for line in lines
    )
    assert any(all(name in line for name in ("TAN", "LogP", "Netgauge")) for line in lines)


def test_each_setting_has_its_own_latencies(round_trips):
    """The second setting takes three times as long."""
    slow = round_trips.assign(seconds=3 * round_trips["seconds"], setting="rails=2")
    both = pd.concat([round_trips.assign(setting="rails=1"), slow])
    columns = {"pass": 0, "stop": "precision", "skew": 0.0, "batch": "b", "simulated": False}
    section = make_latency_section(
        tabulate_distributions(both), summarize_raw(both.assign(**columns)), set()
    )
    (table,) = section.tables
    medians = {
        (row["platform"], row["bytes"], row["setting"]): row["median"] for row in records(table)
    }
    assert len(medians) == 2 * 8
    for platform, size, _ in medians:
        assert medians[platform, size, "rails=2"] == pytest.approx(
            3 * medians[platform, size, "rails=1"]
        )
    assert {row["samples"] for row in records(table)} == {221, 30}
    assert len({chart.title for chart in section.charts}) == len(section.charts) == 4
    trips = [row for row in records(table) if row["platform"] == "ether16"]
    tile = summarize_network([], [], trips)
    assert tile.sentence.endswith("in setting rails=1.")
    assert ("setting", "rails=1") in tile.source.where


def test_without_ping_pong_there_is_an_empty_table(small, tmp_path):
    report = make_report(small, experiment="none")
    assert report.section("Latency").tables[0].rows == ()
    write_xlsx(report, tmp_path / "none.xlsx")


SECONDS = (1.25e-5, 1.5e-5, 7.75e-4)


@pytest.fixture
def measured(folder):
    """Return the results with raw files of the plan's points, and the plan."""
    plan = load_plan(folder / "plan.json")
    summary = read_table(folder / "summary.csv", SUMMARY)
    for batch in plan.batches:
        for case in batch.ids:
            lines = [
                f"{case},1,{number},{seconds:.9e},1e-7,{int(number < 2)},precision,{len(SECONDS)}"
                for number, seconds in enumerate(SECONDS)
            ]
            text = "\n".join(
                [JOINED_HEADERS[0], *(f"{line},{compute_checksum(line)}" for line in lines), ""]
            )
            (folder / "raw" / batch.name / f"{case}.csv").write_text(text)
            at = len(summary)
            summary.loc[at] = summary.iloc[0]
            summary.loc[at, ["id", "platform", "raw"]] = [
                case,
                batch.platform,
                f"raw/{batch.name}/{case}.csv",
            ]
    write_table(folder / "summary.csv", summary)
    return folder, plan


def test_every_sample_has_a_row_and_each_summary_links_to_the_first_sample(measured, tmp_path):
    folder, plan = measured
    run = CliRunner().invoke(
        verb, ["--in", str(folder), "--out", str(tmp_path / "far/away"), "--samples"]
    )
    assert run.exit_code == 0, run.output
    book = openpyxl.load_workbook(tmp_path / "far/away/trees.xlsx")
    head, rows = rows_of(book["Samples"], "T_Samples")
    cases = [case for batch in plan.batches for case in batch.ids]
    assert len(rows) == len(cases) * len(SECONDS)
    for case in cases:
        own = [dict(zip(head, row, strict=True)) for row in rows if row[head.index("id")] == case]
        assert [row["time [µs]"] for row in own] == pytest.approx(
            [1e6 * seconds for seconds in SECONDS]
        )
        assert [row["valid"] for row in own] == ["yes", "yes", "no"]
    heads, _ = rows_of(book["Raw summary"], "T_Raw")
    seen = set()
    for row in book["Raw summary"].iter_rows(min_row=6):
        if row[heads.index("id")].value in cases:
            place = row[heads.index("raw file")].hyperlink.location
            assert book["Samples"][place.partition("!")[2]].row > 1
            line = [cell.value for cell in book["Samples"][place.partition("!")[2].lstrip("A")]]
            assert (line[head.index("id")], line[head.index("sample")]) == (
                row[heads.index("id")].value,
                0,
            )
            seen.add(line[head.index("id")])
    assert seen == set(cases)
    assert "All samples" not in (tmp_path / "far/away/index.html").read_text(encoding="utf-8")


def test_without_being_requested_there_are_none_and_a_damaged_file_is_named(measured, tmp_path):
    folder, plan = measured
    batch = plan.batches[0]
    path = folder / "raw" / batch.name / f"{batch.ids[0]}.csv"
    path.write_text(path.read_text().replace("1.25", "1.26"))
    arguments = ["--in", str(folder), "--out", str(tmp_path / "out")]
    assert CliRunner().invoke(verb, arguments).exit_code == 0
    assert "Samples" not in openpyxl.load_workbook(tmp_path / "out/trees.xlsx").sheetnames
    refused = CliRunner().invoke(verb, [*arguments, "--samples"])
    assert refused.exit_code == 2
    assert f"{batch.ids[0]}.csv:2: damaged raw file (its checksum differs)" in refused.stderr
