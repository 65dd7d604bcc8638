"""Best models by class, gain over the MPI default, regret of the combined prediction: recomputed by
plain loops."""

import math

import numpy as np
import openpyxl
import pandas as pd
import pytest

from commodel.compare.alternatives import find_fastest
from commodel.compare.comparison import NOT_PREDICTED, add_choices
from commodel.compare.model_ranking import (
    MIN_SHARE_OF_POINTS,
    drop_equal_models,
    find_best_model,
    find_equal_models,
    find_tied_models,
    rank_by_class,
    rank_models,
)
from commodel.compare.recommended import evaluate_recommended, recommend_points
from commodel.reports import charts, write_xlsx
from commodel.reports.comparison_frame import prepare_comparison
from commodel.reports.evaluated_campaign import evaluate_campaign
from commodel.reports.html.page import format_page
from commodel.reports.pictures.specifications import specify_lines
from commodel.reports.sections import measurement_conditions
from commodel.reports.sections.rankings import (
    compare_with_default,
    describe_default,
    list_recommendations,
    tabulate_choices,
)
from commodel.reports.sections.summary import describe_what_to_use
from tests.reading import sentences
from tests.reports.reading import make_report

# the MPI default's time over that of the fastest alternative
DEFAULT_SLOWDOWNS = {"allreduce": 2.0, "reduce": 1.0, "bcast": 0.5}
ANY_LAYOUT = "any layout, 16 nodes"
PREDICTION_COLUMNS = ("seconds", "low", "high", "relative_error", "mu", "regret")


@pytest.fixture(scope="module")
def with_library(comparison):
    """Return the comparison with an MPI default for every workload. Fattree's broadcasts of 16
    ranks also have the layout cyclic, 3 times as slow."""
    second = comparison[
        (comparison["platform"] == "fattree") & (comparison["operation"] == "bcast")
    ]
    second = second[second["ranks"] == 16].copy()
    second[["measured", "measured_low", "measured_high"]] *= 3
    second = second.assign(layout="cyclic", point="c" + second["point"])
    alternatives = pd.concat([comparison, second])
    by_time = alternatives[alternatives["measured"].notna()].sort_values("measured")
    defaults = by_time.drop_duplicates(["workload", "layout"]).copy()
    times = ["measured", "measured_low", "measured_high"]
    defaults[times] = defaults[times].mul(defaults["operation"].map(DEFAULT_SLOWDOWNS), axis=0)
    defaults = defaults.assign(
        algorithm="library",
        topology="",
        alternative="library",
        model="",
        validity=NOT_PREDICTED,
        covered=False,
    )
    defaults = defaults.assign(
        point="l" + defaults["point"], fan_in=0, **dict.fromkeys(PREDICTION_COLUMNS, math.nan)
    )
    return add_choices(pd.concat([alternatives, defaults]).reset_index(drop=True))


@pytest.fixture(scope="module")
def library_report(with_library, inputs):
    return make_report(**inputs | {"comparison": with_library})


def list_findings(report, question):
    """Return all sentences that answer a question, with their platforms; the Summary has the first
    of them."""
    (table,) = (table for table in report.tables if table.name == "Findings")
    return [
        f"{platform}{' (simulated)' if word == 'simulated' else ''}: {sentence}"
        for platform, word, row_question, sentence in table.rows
        if row_question == question
    ]


def find_table(library_report, section, name):
    return next(table for table in library_report.section(section).tables if table.name == name)


WORKLOADS = (
    ("bcast", "chain", 4096, 1.5, "faster"),
    ("bcast", "chain", 65536, 3.0, "faster"),
    ("bcast", "ring", 16384, 1.005, "tied"),
    ("bcast", "binomial", 1, 0.5, "slower"),
    # the highest gain, but chain saves more: 1.5 × 3
    ("allreduce", "ring", 1 << 20, 4.0, "faster"),
    ("barrier", "dissemination", 0, 1.2, "faster"),
    ("gather", "flat", 64, 0.9, "slower"),
)


def make_comparison(workloads):
    return pd.DataFrame(
        workloads, columns=["operation", "alternative_label", "bytes", "gain", "outcome"]
    )


def test_recommendations_have_ranges_of_size_and_gain_and_the_most_valuable_is_first():
    recommendations = list_recommendations(make_comparison(WORKLOADS))
    fields = (
        "operation",
        "alternative",
        "smallest",
        "largest",
        "smallest_factor",
        "largest_factor",
        "workloads",
        "measured",
    )
    assert [tuple(getattr(entry, field) for field in fields) for entry in recommendations] == [
        ("bcast", "chain", 4096, 65536, 1.5, 3.0, 2, 3),
        ("allreduce", "ring", 1 << 20, 1 << 20, 4.0, 4.0, 1, 1),
        ("barrier", "dissemination", 0, 0, 1.2, 1.2, 1, 1),
    ]
    lines = [entry.sentence.replace("\N{NO-BREAK SPACE}", " ") for entry in recommendations]
    assert "chain for bcast from 4 KiB to 64 KiB: 1.50–3.0× faster than the MPI default" in lines[0]
    assert lines[0].endswith("in 2 of 3 bcast workloads of these sizes.")
    assert "at 1 MiB: 4.0× faster" in lines[1]
    assert "dissemination for barrier: 1.20× faster" in lines[2]


def test_use_counts_workloads_recommends_and_keeps_the_mpi_default_for_the_others():
    rows = make_comparison(WORKLOADS)
    default, first, second, keep = describe_what_to_use(rows.iloc[:0], rows)
    assert default == describe_default(rows)
    # (1.5 · 3 · 4 · 1.2)^¼
    assert (
        "beats the MPI default in 4 of 7 workloads measured with it (2.16× on average)" in default
    )
    assert default.endswith("is tied with it in 1; the MPI default is the fastest in 2.")
    assert [first, second] == [entry.sentence for entry in list_recommendations(rows)[:2]]
    assert keep == "Keep the MPI default for gather."


def test_without_a_faster_alternative_the_mpi_default_is_kept():
    rows = make_comparison([row for row in WORKLOADS if row[-1] != "faster"])
    assert list_recommendations(rows) == []
    (line,) = describe_what_to_use(rows.iloc[:0], rows)
    assert line.startswith("Keep the MPI default: ")
    assert "3 workloads" in line


def test_how_often_an_alternative_beats_the_mpi_default(library_report, with_library):
    """In the fixture, the fastest alternative takes half as long as the MPI default for allreduce,
    twice as long for broadcasts, and as long for reductions."""
    lines = list_findings(library_report, "What to use")
    for platform, name in (("ether16", "ether16"), ("fattree", "fattree (simulated)")):
        part = with_library[
            (with_library["platform"] == platform) & with_library["measured"].notna()
        ]
        workloads = part.groupby("operation")["workload"].nunique()
        default, *recommended, keep = [line for line in lines if line.startswith(name)]
        assert (
            f"in {workloads['allreduce']} of {workloads.sum()} workloads measured with it (2.00× on average)"
            in default
        )
        assert (
            f"is tied with it in {workloads['reduce']}; the MPI default is the fastest in {workloads['bcast']}."
            in default
        )
        assert len(recommended) == 2
        assert all(" for allreduce " in line and ": 2.0× faster" in line for line in recommended)
        assert keep == f"{name}: Keep the MPI default for bcast and reduce."


def test_the_first_screen_states_number_and_kind_of_counted_workloads(library_report):
    for screen in library_report.screens:
        (_, faster), (_, tied), (_, slower) = screen.tiles[1].shares
        workloads = f"{faster + tied + slower} workloads"
        assert (
            screen.fastest.title
            == f"An alternative beats the MPI default in {faster} of {workloads}"
        )
        assert "95 % intervals overlap, or medians differ by at most 1 %" in screen.fastest.note
        assert f"{workloads} measured with the MPI default." in screen.tiles[1].sentence
        assert " workloads with several predicted alternatives" in screen.tiles[2].sentence
        assert "Regret with the MPI default: " in screen.tiles[2].sentence


def test_regret_columns_name_the_alternatives_that_count(library_report):
    tables = {shown.name: shown for shown in library_report.section("Standings").tables}
    for name, alternatives in (
        ("Recommended", "without"),
        ("Regret by model", "without"),
        ("Recommended choices", "with"),
    ):
        heads = {column.key: column.header for column in tables[name].columns}
        assert heads["regret_mean"] == f"mean regret {alternatives} MPI default [%]"
        assert heads["regret_max"] == f"max regret {alternatives} MPI default [%]"
    heads = {
        column.header
        for shown in tables.values()
        for column in shown.columns
        if " / " in column.header
    }
    assert heads == {"default / choice [×]", "default / fastest [×]"}


def test_the_table_of_gains_counts_the_same(library_report):
    rows = find_table(library_report, "What to use", "Gain over the default")
    keys = [column.key for column in rows.columns]
    gains = [dict(zip(keys, row, strict=True)) for row in rows.rows]
    assert {
        row["operation"]: round(row["mean"], 9) for row in gains if row["platform"] == "fattree"
    } == DEFAULT_SLOWDOWNS
    for row in gains:
        assert row["faster"] + row["tied"] + row["slower"] == row["workloads"] > 0
        outcome = {"allreduce": "faster", "reduce": "tied", "bcast": "slower"}[row["operation"]]
        assert row[outcome] == row["workloads"]
        assert bool(row["top"]) == (row["max"] > 1.01)  # no largest gain without a gain
        assert row["simulated"] == ("simulated" if row["platform"] == "fattree" else "no")


def test_selection_compares_the_fastest_alternative_with_the_mpi_default(
    library_report, with_library
):
    rows = find_table(library_report, "Selection", "Selection")
    assert "MPI default" not in {label.split(",")[0] for label in rows.column("best")}
    gain_and_outcome = dict(
        zip(
            rows.column("operation"),
            zip(rows.column("gain"), rows.column("outcome"), strict=True),
            strict=True,
        )
    )
    assert {
        name: round(gain, 9) for name, (gain, _) in gain_and_outcome.items()
    } == DEFAULT_SLOWDOWNS
    assert {name: word for name, (_, word) in gain_and_outcome.items()} == {
        "allreduce": "alternative",
        "reduce": "tied",
        "bcast": "MPI default",
    }
    assert (
        len(rows.rows) == with_library.loc[with_library["measured"].notna(), "workload"].nunique()
    )


def test_selected_alternatives_name_the_layout_if_layouts_compete(library_report):
    rows = find_table(library_report, "Selection", "Selection")
    rows_by_workload = {
        (platform, operation, size): (placement, best)
        for platform, operation, size, placement, best in zip(
            *(rows.column(key) for key in ("platform", "operation", "size", "placement", "best")),
            strict=True,
        )
    }
    for (platform, operation, size), (placement, best) in rows_by_workload.items():
        several_layouts = (platform, operation, size) == ("fattree", "bcast", "16 ranks")
        assert placement == (
            ANY_LAYOUT if several_layouts else "spread" if operation == "reduce" else "block"
        )
        assert best.endswith(", block") is several_layouts
    names = [
        series.name
        for chart in library_report.charts
        for series in chart.series
        if chart.name == f"Time fattree bcast {ANY_LAYOUT} 16 ranks"
    ]
    assert {
        f"{name}, measured"
        for name in ("MPI default, block", "MPI default, cyclic", "chain, block")
    } <= set(names)


def test_dots_are_measured_lines_are_predicted_and_the_mpi_default_is_wide(library_report):
    """A narrow line of the default would be hidden by an alternative with the same times."""
    drawn = [chart for chart in library_report.charts if chart.name.startswith("Time ")]
    for chart in drawn:
        styles = {series.name: series.style for series in chart.series}
        for name, style in styles.items():
            if name.startswith("MPI default"):
                assert style == "wide"
            elif name.endswith(", predicted"):
                assert style == "dashed"
                assert styles[name.replace("predicted", "measured")] == "dots"
        layers = {layer["name"]: layer for layer in specify_lines(chart)["layer"]}
        symbols = layers["dots"]["encoding"]["shape"]["scale"]
        for name, symbol in zip(symbols["domain"], symbols["range"], strict=True):
            assert symbol == {"dashed": "stroke", "wide": "square"}.get(styles[name], "circle")
        assert [*layers].index("wide") < [*layers].index("dashed")
    assert any(series.name == "MPI default, measured" for chart in drawn for series in chart.series)


def test_no_table_has_a_model_or_column_without_a_name(library_report, with_library):
    families = find_table(library_report, "Standings", "Errors by model")
    assert set(families.column("model")) == set(with_library["model"]) - {""}
    points = (
        with_library[(with_library["measured"].notna()) & (with_library["model"] != "")]
        .groupby("platform")["point"]
        .nunique()
    )
    assert set(families.column("measured_points")) == set(points)
    for section in ("Errors", "Selection", "Choices by model"):
        for shown in library_report.section(section).tables:
            assert "" not in {column.header for column in shown.columns}
            assert not {column.key for column in shown.columns} & {"= ", "regret ", "choice "}
    choices = find_table(library_report, "Errors", "Mean μ by alternative").column("alternative")
    assert "library" not in choices
    for chart in library_report.charts:
        assert all(series.name for series in chart.series)


def test_gain_of_a_model_s_choices_over_the_mpi_default(library_report, with_library):
    families = find_table(library_report, "Standings", "Regret by model")
    keys = zip(families.column("platform"), families.column("model"), strict=True)
    gains = dict(zip(keys, families.column("gain"), strict=True))
    for key, choices in with_library[with_library["chosen"]].groupby(["platform", "model"]):
        ratios = choices["library_default"] / choices["measured"]
        assert gains[key] == pytest.approx(math.exp(sum(map(math.log, ratios)) / len(ratios)))
    certainty = list_findings(library_report, "How certain this is")
    (line,) = [line for line in certainty if line.startswith("ether16: plogp chooses")]
    assert gains["ether16", "plogp"] < 1
    assert f"{1 / gains['ether16', 'plogp']:.2f}× slower than the MPI default" in line


def test_the_mpi_default_has_no_columns_of_predicted_alternatives(library_report):
    comparison = find_table(library_report, "Comparison", "Comparison")
    keys = [column.key for column in comparison.columns]
    rows = [dict(zip(keys, row, strict=True)) for row in comparison.rows]
    for key in ("fan_in", "chosen", "tie", "best"):
        assert {row[key] for row in rows if row["kind"] == "library"} == {None}
        assert None not in {row[key] for row in rows if row["kind"] != "library"}


@pytest.mark.parametrize(("platform", "simulated"), [("ether16", False), ("fattree", True)])
def test_missing_predictions_do_not_count_the_mpi_default(with_library, platform, simulated):
    part = prepare_comparison(with_library[with_library["platform"] == platform])
    lines = measurement_conditions.describe_missing(part, simulated)
    assert any("predictions are missing (hockney 8)" in line for line in lines)
    assert not any(NOT_PREDICTED.split(":")[0] in line for line in lines if "flagged" in line)
    assert sum("SimGrid" in line for line in lines) == simulated


def test_the_time_of_the_mpi_default_is_the_minimum_over_layouts(with_library):
    rows = compare_with_default(prepare_comparison(with_library)).set_index("workload")
    defaults = (
        with_library[(with_library["algorithm"] == "library")].groupby("workload")["measured"].min()
    )
    assert rows["library_default"].to_dict() == defaults.to_dict()


def test_workbook_and_page_have_the_mpi_default(library_report, tmp_path, parse):
    write_xlsx(library_report, tmp_path / "library.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "library.xlsx")["Comparison"]
    cells = {cell.value for row in sheet.iter_rows() for cell in row}
    assert {"library", NOT_PREDICTED} <= cells
    page = parse(format_page(library_report))
    assert any("Gain over the MPI default" in text for text in page.text)


def test_without_a_measured_mpi_default_no_gain_is_reported(small):
    bare = make_report(small, experiment="bare")
    assert not [
        shown
        for shown in bare.section("What to use").tables
        if shown.name == "Gain over the default"
    ]
    assert not any("MPI" in line for line in sentences(bare, "What to use"))
    assert all(
        math.isnan(row["gain"])
        for row in read_rows(find_table(bare, "Standings", "Recommended choices"))
    )


DEFAULT_SLOWDOWN = 2.0  # the MPI default's time over that of the fastest alternative


def read_rows(table):
    keys = [column.key for column in table.columns]
    return [dict(zip(keys, row, strict=True)) for row in table.rows]


def list_choices(comparison):
    """Return the rows of choices by the recommended prediction, as a report tabulates them."""
    choices = evaluate_campaign(prepare_comparison(comparison)).choices
    return read_rows(tabulate_choices(choices)) if len(choices) else []


def test_standings_have_the_choices_by_the_recommended_prediction(library_report, with_library):
    table = find_table(library_report, "Standings", "Recommended choices")
    assert read_rows(table) == list_choices(with_library)


def add_defaults(comparison, slowdown):
    """Add to every workload an MPI default that takes so many times as long as the fastest
    alternative."""
    by_time = comparison[comparison["measured"].notna()].sort_values("measured")
    defaults = by_time.drop_duplicates("workload").copy()
    defaults[["measured", "measured_low", "measured_high"]] *= slowdown
    defaults = defaults.assign(
        algorithm="library", topology="", alternative="library", model="", validity=NOT_PREDICTED
    )
    defaults = defaults.assign(
        point="l" + defaults["point"],
        fan_in=0,
        chosen=False,
        best=False,
        **dict.fromkeys(PREDICTION_COLUMNS, math.nan),
    )
    return pd.concat([comparison, defaults], ignore_index=True)


@pytest.fixture(scope="module")
def with_slow_library(comparison):
    return add_defaults(comparison, DEFAULT_SLOWDOWN)


def test_a_gain_within_the_confidence_intervals_is_no_gain_anywhere(small):
    """The MPI default takes 1.03 times as long as the fastest alternative everywhere, and all
    intervals overlap. No card, sentence or title states a gain or a fastest alternative beside the
    advice to keep the default."""
    uncertain = small.assign(seconds=small["measured"], mu=1.0, validity="valid")
    uncertain = uncertain.assign(
        measured_low=0.97 * uncertain["measured"], measured_high=1.05 * uncertain["measured"]
    )
    report = make_report(add_defaults(uncertain, 1.03), experiment="tied")
    for screen in report.screens:
        cards = {tile.question: tile for tile in screen.tiles}
        assert cards["What to use"].headline == "Keep the MPI default"
        assert cards["Gain"].headline == "none on average"
        assert "are statistically tied with the MPI default" in cards["Gain"].sentence
        assert all(cell.text.startswith("≈") for cell in screen.fastest.cells)
        assert " is statistically tied with " in screen.times.title
    lines = sentences(report, "What to use") + sentences(report, "How certain this is")
    assert any("Keep the MPI default: no alternative is clearly faster" in line for line in lines)
    assert not [line for line in lines if "faster than" in line]
    clear = find_table(report, "What to use", "Fastest alternatives").column("clear_at")
    assert {entry.partition(" of ")[0] for entry in clear} == {"0"}


@pytest.fixture(scope="module")
def regrets(comparison):
    """Regret, by workload, of choosing the alternative with the lowest recommended prediction."""
    rows = []
    for (platform, operation, _), workload in evaluate_recommended(comparison).groupby(
        ["platform", "operation", "workload"]
    ):
        times = workload.set_index("point")
        if len(times) > 1:
            chosen, best = (
                times.loc[times["seconds"].idxmin()],
                times.loc[times["measured"].idxmin()],
            )
            regret = chosen["measured"] / best["measured"] - 1
            right = chosen["measured_low"] <= best["measured_high"] or regret <= 0.01
            rows.append(
                {"platform": platform, "operation": operation, "regret": regret, "right": right}
            )
    return pd.DataFrame(rows)


def test_regret_and_gain_of_the_recommended_prediction_agree_with_loops(with_slow_library, regrets):
    rows = list_choices(with_slow_library)
    assert (
        len(rows)
        == regrets[["platform", "operation"]].drop_duplicates().shape[0]
        + regrets["platform"].nunique()
    )
    for row in rows:
        workloads = regrets[regrets["platform"] == row["platform"]]
        workloads = (
            workloads
            if row["operation"] == "all"
            else workloads[workloads["operation"] == row["operation"]]
        )
        assert row["workloads"] == len(workloads)
        assert row["right"] == pytest.approx(100 * workloads["right"].mean())
        assert row["regret_mean"] == pytest.approx(100 * workloads["regret"].mean())
        assert row["regret_max"] == pytest.approx(100 * workloads["regret"].max())
        assert row["largest_gain"] == pytest.approx(DEFAULT_SLOWDOWN)
        assert row["gain"] == pytest.approx(
            DEFAULT_SLOWDOWN / np.exp(np.log1p(workloads["regret"]).mean())
        )
        assert row["simulated"] == ("simulated" if row["platform"] == "fattree" else "no")
    assert regrets["regret"].max() > 0


def test_a_recommended_prediction_that_is_always_right_has_no_regret(small):
    exact = small.assign(seconds=small["measured"], mu=1.0, validity="valid")
    rows = list_choices(exact)
    assert {row["platform"] for row in rows} == {"ether16", "fattree"}
    assert {(row["right"], row["regret_mean"], row["regret_max"]) for row in rows} == {
        (100.0, 0.0, 0.0)
    }


def test_one_operation_needs_no_row_for_all(small):
    rows = list_choices(small[small["operation"] == "bcast"])
    assert [row["operation"] for row in rows] == ["bcast", "bcast"]


def test_nothing_to_choose_gives_no_table(small):
    single = small[small["alternative"].isin(["binomial", "ring", "flat"])]
    report = make_report(single[single["operation"] != "reduce"], experiment="single")
    names = [table.name for table in report.section("Standings").tables]
    assert "Recommended choices" not in names


FAN_INS = {"1": (0, 1), "2–4": (2, 4), "5–16": (5, 16), "> 16": (17, math.inf)}
SIZES = {
    "≤ 64 B": (0, 64),
    "64 B to 4 KiB": (65, 4096),
    "4 to 64 KiB": (4097, 65536),
    "> 64 KiB": (65537, math.inf),
}


@pytest.fixture(scope="module")
def frame(comparison):
    return prepare_comparison(comparison)


def compute_mu(rows, model):
    """Return μ by point, from the measured and the predicted time."""
    by_point = {}
    for row in rows:
        if (
            row["model"] == model
            and row["held_out"]
            and row["measured"] > 0
            and not math.isnan(row["seconds"])
        ):
            predicted, measured = row["seconds"], row["measured"]
            by_point[row["point"]] = (
                max(predicted / measured, measured / predicted) if predicted else math.inf
            )
    return by_point


def rank_by_loops(rows):
    """Return the models by mean μ, these means, and the models tied with the best."""
    from scipy.stats import t  # imported here, because it takes seconds to load

    mu = {family: compute_mu(rows, family) for family in {row["model"] for row in rows}}
    max_points = max(len(errors_of) for errors_of in mu.values())
    mean = {
        family: sum(errors_of.values()) / len(errors_of)
        for family, errors_of in mu.items()
        if len(errors_of) >= MIN_SHARE_OF_POINTS * max_points
    }
    order = sorted(mean, key=lambda model: (mean[model], model))
    tied = set()
    for family, errors_of in mu.items():
        shared = [point for point in errors_of if point in mu[order[0]]]
        differences = [math.log(errors_of[point] / mu[order[0]][point]) for point in shared]
        if (
            family == order[0]
            or len(differences) < 3
            or math.inf in differences
            or len(differences) < MIN_SHARE_OF_POINTS * len(mu[order[0]])
        ):
            continue
        noise = (
            t.ppf(0.975, len(differences) - 1)
            * np.std(differences, ddof=1)
            / math.sqrt(len(differences))
        )
        clearly_worse = min(errors_of[point] for point in shared) > 1.01 * max(
            mu[order[0]][point] for point in shared
        )
        clearly_worse = clearly_worse or (
            len(differences) >= 6 and min(differences) > math.log(1.01)
        )
        if not clearly_worse and np.mean(differences) <= max(noise, math.log(1.01)):
            tied.add(family)
    return order, mean, tied


def test_classes_agree_with_loops(frame):
    classes = rank_by_class(frame[frame["held_out"]])
    rows, counted = frame.to_dict("records"), 0
    for entry in classes.itertuples():
        (min_fan_in, max_fan_in), (min_bytes, max_bytes) = (
            FAN_INS[entry.fan_in],
            SIZES[entry.size_class],
        )
        of_class = [
            row
            for row in rows
            if (row["platform"], row["operation"]) == (entry.platform, entry.operation)
            and min_fan_in <= row["fan_in"] <= max_fan_in
            and min_bytes <= row["bytes"] <= max_bytes
        ]
        points = {row["point"] for row in of_class if row["measured"] > 0}
        counted += len(points)
        order, mean, tied = rank_by_loops(of_class)
        assert entry.points == len(points)
        assert entry.best == order[0]
        assert entry.mu == pytest.approx(mean[order[0]])
        assert set(entry.tied) == tied
        next_models = [family for family in order[1:] if family not in tied and len(points) >= 3]
        assert entry.next == (next_models[0] if next_models else "")
        assert not next_models or entry.mu_next == pytest.approx(mean[next_models[0]])
        assert entry.enough == (len(points) >= 3)
    assert counted == frame.loc[frame["measured"].notna(), "point"].nunique()
    assert (
        len(set(zip(classes["platform"], classes["operation"], classes["fan_in"], strict=True)))
        == 2 * 5
    )


def test_ties_and_order_of_a_platform_agree_with_loops(frame):
    for _, part in frame[frame["held_out"]].groupby("platform"):
        order, _, tied = rank_by_loops(part.to_dict("records"))
        assert list(rank_models(part)["model"]) == order
        assert set(find_tied_models(part, find_best_model(part))) == tied


def test_a_model_that_predicts_zero_is_last_and_ties_with_none(frame):
    part = frame[(frame["platform"] == "ether16") & frame["held_out"]]
    assert rank_models(part)["model"].iloc[-1] == "pram"
    assert rank_models(part)["mu_mean"].iloc[-1] == math.inf
    few = part[part["point"].isin(part["point"].unique()[:4])]
    assert "pram" not in find_tied_models(few, find_best_model(few))
    assert find_best_model(part[part["model"] == "pram"]) is None


def test_models_with_equal_predictions_count_as_one(comparison):
    """On uniform nodes, LogGP's extensions predict the same as LogGP. They count as LogGP."""
    loggp = comparison[comparison["model"] == "loggp"]
    extensions = [
        loggp.assign(model=name, seconds=loggp["seconds"] * (1 + 1e-6))
        for name in ("hloggp", "loggph")
    ]
    frame = prepare_comparison(pd.concat([comparison, *extensions]))
    before = rank_by_class(prepare_comparison(comparison))
    after = rank_by_class(frame)
    columns = ["best", "next", "enough"]
    assert after[columns].equals(before[columns])
    assert (
        after["tied"]
        .map(lambda names: set(names) - {"hloggp", "loggph"})
        .equals(before["tied"].map(set))
    )
    by_loggp = after["best"] == "loggp"
    assert by_loggp.any()
    assert all(names == ["hloggp", "loggph"] for names in after.loc[by_loggp, "same"])
    assert not any(names for names in after.loc[~by_loggp, "same"])
    part = frame[(frame["platform"] == "ether16") & frame["held_out"]]
    assert find_equal_models(part, "hloggp") == ["loggp", "loggph"]
    assert [
        name for name in drop_equal_models(part, 9) if "loggp" in name.replace("plogp", "")
    ] == ["loggp"]


def test_predictions_of_zero_recommend_no_model(comparison):
    report = make_report(comparison[comparison["model"] == "pram"], experiment="free")
    lines = report.sections[0].blocks[0].sentences
    assert any("Every model predicts 0" in line for line in lines)


def test_the_table_marks_models_that_are_clearly_best(report):
    table = next(
        table for table in report.section("Standings").tables if table.name == "Best model by class"
    )
    clearly_best = {row for row, value in enumerate(table.column("clearly_best")) if value is True}
    assert {row for row, _ in table.marks} == clearly_best
    assert clearly_best
    tied, points = table.column("tied"), table.column("points")
    for row in range(len(table.rows)):
        assert (tied[row] == "fewer than 3 points") == (points[row] < 3)
        assert row not in clearly_best or tied[row] == ""
    (block,) = [
        block
        for block in report.section("Standings").blocks
        if getattr(block, "question", "") == "Where one model is clearly the best"
    ]
    best = table.column("best")
    assert {line.split(": ")[1].split()[0] for line in block.sentences} == {
        best[row] for row in clearly_best
    }


def test_points_used_in_a_fit_change_no_figure(small):
    """Errors of predictions that are not held out appear in the Comparison only."""
    changed_frame = small.copy()
    in_fit = (changed_frame["model"] == "pmnf") & ~changed_frame["held_out"]
    assert in_fit.any()
    changed_frame.loc[in_fit, ["seconds", "mu", "relative_error"]] = [1e9, 1e9, 1e9]
    for plain, changed in zip(
        make_report(small, experiment="x").sections,
        make_report(changed_frame, experiment="x").sections,
        strict=True,
    ):
        if plain.name != "Comparison":
            assert repr(plain) == repr(changed)  # NaN is not equal to itself


def test_charts_draw_the_recommended_prediction_and_the_best_models(report, frame):
    recommended = recommend_points(frame)
    for chart, (platform, part) in zip(
        report.charts[:2], frame[frame["held_out"]].groupby("platform"), strict=True
    ):
        drawn = {series.name for series in chart.series} - {"predicted = measured"}
        models = list(rank_models(part)["model"])
        assert chart.series[1].name == "recommended"
        assert drawn == {"recommended", *models[:5]}
        assert chart.note.startswith("Shown: the best 5 of 9 models by mean error")
        own = recommended[(recommended["platform"] == platform) & (recommended["measured"] > 0)]
        ratio = own["seconds"] / own["measured"]
        share = ((ratio > 0) & (np.maximum(ratio, 1 / ratio.where(ratio > 0, 1)) <= 1.1)).mean()
        assert chart.title.startswith(
            f"{100 * share:.0f} % of the recommended predictions are within 10 %: {platform}"
        )


def test_a_chart_of_times_names_the_fastest_alternative_at_the_largest_messages():
    times = {("ring", "ring"): (9.0, 3.0, 2.0, 1.0), ("chain", "chain"): (1.0, 4.0, 1.5, 2.0)}
    times[("MPI default", "library")] = (2.0, 5.0, 5.0, 5.0)
    rows = [
        {
            "point": f"{label}{size}",
            "alternative_label": label,
            "algorithm": algorithm,
            "bytes": size,
            "measured": measured,
        }
        for (label, algorithm), measurements in times.items()
        for size, measured in zip((1, 64, 1024, 4096), measurements, strict=True)
    ]
    frame = pd.DataFrame(rows).assign(
        platform="p", operation="bcast", placement="block:1", size="4 ranks", ranks=4
    )
    frame = frame.assign(leaves=0, library_default=math.nan, measured_low=frame["measured"])
    frame = frame.assign(measured_high=frame["measured"])
    assert describe_fastest(frame) == ": ring is the fastest at 4 KiB, the largest size"
    assert (
        describe_fastest(frame[frame["alternative_label"] != "chain"])
        == ": ring is the fastest from 64 B"
    )
    without_ring = frame[frame["alternative_label"] != "ring"]
    assert describe_fastest(without_ring) == ": chain is the fastest at all sizes"
    assert describe_fastest(frame[frame["algorithm"] == "library"]) == ""  # nothing to compare with


def describe_fastest(frame):
    return charts.describe_fastest(find_fastest(frame))


def test_an_error_within_ten_percent_is_a_factor_of_at_most_one_point_one():
    """A prediction of 0.905 times the measured time has μ = 1.105, an error of more than 10 %."""
    frame = pd.DataFrame({"model": "logp", "mu": [1.05, 1.1, 1 / 0.905, math.nan]})
    assert charts.describe_accuracy(frame, "logp") == "50 % of logp's predictions are within 10 %"


@pytest.mark.parametrize("mu_of_other", [[1.1, 1.02, 1.1, 1.02, 900.0, 16.0], [18.9, 2.9, 11.5]])
def test_a_consistently_worse_model_is_not_tied_despite_scattered_errors(mu_of_other):
    rows = [
        {"point": str(number), "model": family, "mu": mu, "seconds": mu}
        for number, other in enumerate(mu_of_other)
        for family, mu in (("good", 1.001), ("other", other))
    ]
    assert (
        find_tied_models(
            pd.DataFrame(rows), pd.Series({"model": "good", "points": len(mu_of_other)})
        )
        == []
    )


def test_predictions_of_zero_count_in_the_accuracy_of_a_chart():
    row = {
        "platform": "net",
        "simulated": False,
        "model": "m",
        "operation": "bcast",
        "alternative": "linear",
    }
    row |= {
        "size": "4",
        "layout": "block:1",
        "bytes": 8,
        "measured": 1.0,
        "validity": "valid",
        "held_out": True,
    }
    rows = pd.DataFrame(
        [
            row | {"point": str(n), "seconds": n % 2, "mu": 1.0 if n % 2 else np.inf}
            for n in range(8)
        ]
    )
    (chart,) = charts.chart_predictions(rows).values()
    assert chart.title.startswith("50 % of m's predictions are within 10 %")
