"""Who is ahead where, what choosing gains over the MPI library, and what following the vote of all models brings:
recomputed from the comparison by obvious loops.
"""

import math

import numpy as np
import openpyxl
import pandas as pd
import pytest
from tests.reading import sentences

from commodel.compare.combined_prediction import weigh_models
from commodel.compare.comparison import NOT_PREDICTED, add_choices
from commodel.compare.model_ranking import (
    COVER,
    drop_equal_models,
    find_best_model,
    find_equal_models,
    find_tied_models,
    rank_by_class,
    rank_models,
)
from commodel.reports import build, write_xlsx
from commodel.reports.frames import prepare
from commodel.reports.html.page import page_html
from commodel.reports.sections.standings import compare_with_library
from commodel.reports.shape import percent

SLOWER = {"allreduce": 2.0, "reduce": 1.0, "bcast": 0.5}  # the library's time over that of the fastest schedule
ANY = "any layout, 16 nodes"
UNKNOWN = ("predicted", "predicted_low", "predicted_high", "relative_error", "mu", "regret")


def judged(frame):
    return add_choices(frame.reset_index(drop=True))


@pytest.fixture(scope="module")
def with_library(comparison):
    """Every job with the library beside it, and fattree's broadcasts of 16 ranks cyclic too, three times as slow."""
    second = comparison[(comparison["platform"] == "fattree") & (comparison["operation"] == "bcast")]
    second = second[second["ranks"] == 16].copy()
    second[["measured", "measured_low", "measured_high"]] *= 3
    second = second.assign(layout="cyclic", point="c" + second["point"])
    every = pd.concat([comparison, second])
    first = every[every["measured"].notna()].sort_values("measured")
    own = first.drop_duplicates(["group", "layout"]).copy()
    times = ["measured", "measured_low", "measured_high"]
    own[times] = own[times].mul(own["operation"].map(SLOWER), axis=0)
    own = own.assign(
        algorithm="library", topology="", choice="library", family="", validity=NOT_PREDICTED, inside=False
    )
    own = own.assign(point="l" + own["point"], fan_in=0, **dict.fromkeys(UNKNOWN, math.nan))
    return judged(pd.concat([every, own]))


@pytest.fixture(scope="module")
def library_report(with_library, inputs):
    return build(**inputs | {"comparison": with_library})


def library_table(library_report, section, name):
    return next(library_table for library_table in library_report.section(section).tables if library_table.name == name)


def test_use_says_what_is_gained_over_the_library(library_report):
    lines = sentences(library_report, "What to use")
    (line,) = [line for line in lines if line.startswith("ether16: allreduce over 64 ranks")]
    assert line.count("2.00× faster than the library's own") >= 1
    (line,) = [line for line in lines if line.startswith("ether16: reduce over 32 leaves")]
    assert "; as fast as the library's own)" in line or "tied with library" in line
    (line,) = [line for line in lines if line.startswith("ether16: bcast over 64 ranks")]
    assert "block: library from 1\N{NO-BREAK SPACE}B to 64\N{NO-BREAK SPACE}KiB (2.00× faster than" in line
    assert "the library's own" not in line
    (line,) = [line for line in lines if line.startswith("fattree (simulated): bcast over 64 ranks, block")]
    assert "library" in line


def test_how_often_choosing_pays(library_report, with_library):
    """Of the fixture: every allreduce is won by two, every broadcast lost by two, every reduction tied."""
    lines = sentences(library_report, "What to use")
    for platform, name in (("ether16", "ether16"), ("fattree", "fattree (simulated)")):
        part = with_library[(with_library["platform"] == platform) & with_library["measured"].notna()]
        jobs = part.groupby("operation")["group"].nunique()
        (line,) = [line for line in lines if line.startswith(f"{name}: The fastest schedule beats")]
        assert f"in {jobs['allreduce']} of {jobs.sum()} jobs (by 2.00× on average, 2.00× at most: " in line
        assert f"is tied with it in {jobs['reduce']}; in {jobs['bcast']} the library is best (by 2.00×" in line


def test_the_overview_counts_the_same(library_report):
    rows = library_table(library_report, "What to use", "Library")
    keys = [column.key for column in rows.columns]
    slower = [dict(zip(keys, row, strict=True)) for row in rows.rows]
    assert {row["operation"]: round(row["mean"], 9) for row in slower if row["platform"] == "fattree"} == SLOWER
    for row in slower:
        assert row["faster"] + row["tied"] + row["slower"] == row["jobs"] > 0
        won = {"allreduce": "faster", "reduce": "tied", "bcast": "slower"}[row["operation"]]
        assert row[won] == row["jobs"]
        assert row["simulated"] == ("simulated" if row["platform"] == "fattree" else "no")


def test_the_selection_has_the_library_beside_the_fastest_schedule(library_report, with_library):
    rows = library_table(library_report, "Selection", "Selection")
    assert "library" not in {way.split(",")[0] for way in rows.column("best")}
    by = dict(zip(rows.column("operation"), zip(rows.column("gain"), rows.column("outcome"), strict=True), strict=True))
    assert {name: round(gain, 9) for name, (gain, _) in by.items()} == SLOWER
    assert {name: word for name, (_, word) in by.items()} == {
        "allreduce": "schedule",
        "reduce": "tied",
        "bcast": "library",
    }
    assert len(rows.rows) == with_library.loc[with_library["measured"].notna(), "group"].nunique()


def test_where_layouts_are_alternatives_a_choice_names_its_layout(library_report):
    rows = library_table(library_report, "Selection", "Selection")
    places = {
        (platform, operation, size): (place, best)
        for platform, operation, size, place, best in zip(
            *(rows.column(key) for key in ("platform", "operation", "size", "place", "best")), strict=True
        )
    }
    for (platform, operation, size), (place, best) in places.items():
        both = (platform, operation, size) == ("fattree", "bcast", "16 ranks")
        assert place == (ANY if both else "spread" if operation == "reduce" else "block")
        assert best.endswith(", block") is both
    names = [
        series.name
        for chart in library_report.charts
        for series in chart.series
        if chart.name == f"Time fattree bcast {ANY} 16 ranks"
    ]
    assert {"library, block", "library, cyclic", "chain, block"} <= set(names)


def test_no_family_is_without_a_name(library_report, with_library):
    families = library_table(library_report, "Standings", "Families")
    assert set(families.column("family")) == set(with_library["family"]) - {""}
    points = (
        with_library[(with_library["measured"].notna()) & (with_library["family"] != "")]
        .groupby("platform")["point"]
        .nunique()
    )
    assert set(families.column("measured_points")) == set(points)
    for section in ("Errors", "Selection", "Picks"):
        for shown in library_report.section(section).tables:
            assert "" not in {column.header for column in shown.columns}
            assert not {column.key for column in shown.columns} & {"= ", "regret ", "pick "}
    choices = library_table(library_report, "Errors", "Mean μ by choice").column("choice")
    assert "library" not in choices
    for chart in library_report.charts:
        assert all(series.name for series in chart.series)


def test_what_a_family_s_picks_are_to_the_library(library_report, with_library):
    families = library_table(library_report, "Standings", "Choosing")
    keys = zip(families.column("platform"), families.column("family"), strict=True)
    over_library = dict(zip(keys, families.column("over_library"), strict=True))
    for key, choices in with_library[with_library["chosen"]].groupby(["platform", "family"]):
        ratios = choices["measured"] / choices["library"]
        assert over_library[key] == pytest.approx(math.exp(sum(map(math.log, ratios)) / len(ratios)))
    (line,) = [
        line for line in sentences(library_report, "How sure this is") if line.startswith("ether16: Choosing by")
    ]
    assert "the library's own choice" in line


def test_of_the_library_nothing_is_said_that_only_schedules_have(library_report):
    comparison = library_table(library_report, "Comparison", "Comparison")
    keys = [column.key for column in comparison.columns]
    rows = [dict(zip(keys, row, strict=True)) for row in comparison.rows]
    for key in ("fan_in", "chosen", "tie", "best"):
        assert {row[key] for row in rows if row["kind"] == "library"} == {None}
        assert None not in {row[key] for row in rows if row["kind"] != "library"}


def test_what_is_missing_counts_prices_not_the_library(library_report):
    lines = sentences(library_report, "What is missing")
    assert any(line.startswith("16 of ") and "(hockney 16)" in line for line in lines)
    assert not any(NOT_PREDICTED.split(":")[0] + " " in line and "doubtful" in line for line in lines)
    (line,) = [line for line in lines if "smpi/coll-selector" in line]
    assert line.startswith("fattree (simulated): Its MPI library is SimGrid")


def test_a_real_platform_s_library_is_what_it_is(with_library):
    real = with_library[with_library["platform"] == "ether16"]
    assert not any("coll-selector" in line for line in sentences(build(real, experiment="e"), "What is missing"))


def test_the_library_s_time_is_the_one_at_its_best_layout(with_library):
    rows = compare_with_library(prepare(with_library)).set_index("group")
    known = with_library[(with_library["algorithm"] == "library")].groupby("group")["measured"].min()
    assert rows["library"].to_dict() == known.to_dict()


def test_both_writers_take_it(library_report, tmp_path, parse):
    write_xlsx(library_report, tmp_path / "library.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "library.xlsx")["Comparison"]
    cells = {cell.value for row in sheet.iter_rows() for cell in row}
    assert {"library", NOT_PREDICTED} <= cells
    page = parse(page_html(library_report))
    assert any("What choosing gains over the library" in text for text in page.text)


def test_an_experiment_without_the_library_says_nothing_of_it(small):
    bare = build(small, experiment="bare")
    assert not [shown for shown in bare.section("What to use").tables if shown.name == "Library"]
    assert not any("library" in line for line in sentences(bare, "What to use"))


PRICE = ("predicted", "predicted_low", "predicted_high", "relative_error", "mu", "regret")
TWICE = 2.0  # the library's time over that of the fastest schedule


def following(vote_report):
    return [line for line in sentences(vote_report, "How sure this is") if "ollowing the vote" in line]


def vote_table(vote_report):
    tables = [vote_table for vote_table in vote_report.section("Standings").tables if vote_table.name == "Following"]
    if not tables:
        return []
    keys = [column.key for column in tables[0].columns]
    return [dict(zip(keys, row, strict=True)) for row in tables[0].rows]


@pytest.fixture(scope="module")
def with_slow_library(comparison):
    """Every job with the library beside it, twice as slow as the fastest schedule."""
    known = comparison[comparison["measured"].notna()].sort_values("measured")
    own = known.drop_duplicates("group").copy()
    own[["measured", "measured_low", "measured_high"]] *= TWICE
    own = own.assign(algorithm="library", topology="", choice="library", family="", validity=NOT_PREDICTED)
    own = own.assign(point="l" + own["point"], fan_in=0, chosen=False, best=False, **dict.fromkeys(PRICE, math.nan))
    return pd.concat([comparison, own], ignore_index=True)


@pytest.fixture(scope="module")
def vote_report(with_slow_library):
    return build(with_slow_library, experiment="studied")


@pytest.fixture(scope="module")
def slowly(comparison):
    """Job by job: regret of the alternative of the lowest combined prediction, by `weigh_models` of all other rows."""
    regrets = []
    for platform, here in comparison[comparison["measured"].notna()].groupby("platform"):
        predicted = here[here["held_out"] & here["predicted"].notna()]
        for (group, operation), job in predicted.groupby(["group", "operation"]):
            wide = job.pivot_table(index="point", columns="family", values="predicted")
            voters = [name for name in wide if (wide[name] > 0).all()]
            trust = weigh_models(voters, predicted[predicted["group"] != group], operation)
            common = np.log(wide[voters]) @ [trust[name].weight for name in voters]
            times = job.drop_duplicates("point").set_index("point")[["measured", "measured_low", "measured_high"]]
            pick, best = times.loc[common.idxmin()], times.loc[times["measured"].idxmin()]
            regret = pick["measured"] / best["measured"] - 1
            right = pick["measured_low"] <= best["measured_high"] or regret <= 0.01
            regrets.append({"platform": platform, "operation": operation, "regret": regret, "right": right})
    return pd.DataFrame(regrets)


def test_the_table_counts_what_the_slow_way_counts(vote_report, slowly):
    rows = vote_table(vote_report)
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


def test_the_sentence_says_the_same(vote_report, slowly):
    for platform, name in (("ether16", "ether16"), ("fattree", "fattree (simulated)")):
        jobs = slowly[slowly["platform"] == platform]
        (line,) = [line for line in following(vote_report) if line.startswith(f"{name}: Following the vote")]
        share = f"{100 * jobs['right'].mean():.0f} % of {len(jobs)} jobs"
        assert f"finds the fastest schedule or a tie in {share}" in line
        assert f"% on average and {percent(jobs['regret'].max())} at worst (" in line
        gain = TWICE / np.exp(np.log1p(jobs["regret"]).mean())
        assert line.endswith(f", and is on average {gain:.2f}× faster than the library's own choice.")


def test_without_the_library_nothing_is_said_of_it(small):
    bare = build(small, experiment="bare")
    assert len(following(bare)) == 2
    assert not any("library" in line for line in following(bare))
    assert all(math.isnan(row["gain"]) for row in vote_table(bare))


def test_a_vote_that_is_always_right_costs_nothing(small):
    exact = small.assign(predicted=small["measured"], mu=1.0, validity="valid")
    lines = following(build(exact, experiment="exact"))
    assert len(lines) == 2
    for line in lines:
        assert "in 100 % of " in line
        assert "costs nothing" in line


def test_one_operation_needs_no_row_for_all(small):
    rows = vote_table(build(small[small["operation"] == "bcast"], experiment="bcast"))
    assert [row["operation"] for row in rows] == ["bcast", "bcast"]


def test_nothing_to_choose_gives_no_table(small):
    alone = small[small["choice"].isin(["binomial", "ring", "flat"])]
    vote_report = build(alone[alone["operation"] != "reduce"], experiment="alone")
    assert vote_table(vote_report) == []
    assert following(vote_report) == []


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
            prediction, truth = row["predicted"], row["measured"]
            by_point[row["point"]] = max(prediction / truth, truth / prediction) if prediction else math.inf
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
    classes = rank_by_class(frame[frame["held_out"]])
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
        assert list(rank_models(part)["family"]) == order
        assert set(find_tied_models(part, find_best_model(part))) == tied


def test_a_family_that_prices_at_nothing_is_last_and_ties_with_nobody(frame):
    part = frame[(frame["platform"] == "ether16") & frame["held_out"]]
    assert rank_models(part)["family"].iloc[-1] == "pram"
    assert rank_models(part)["mu_mean"].iloc[-1] == math.inf
    few = part[part["point"].isin(part["point"].unique()[:4])]
    assert "pram" not in find_tied_models(few, find_best_model(few))
    assert find_best_model(part[part["family"] == "pram"]) is None


def test_families_that_price_the_same_count_as_one(comparison):
    """LogGP's extensions are LogGP where all nodes are alike: the name that they extend stands for all."""
    own = comparison[comparison["family"] == "loggp"]
    again = [own.assign(family=name, predicted=own["predicted"] * (1 + 1e-6)) for name in ("hloggp", "loggph")]
    frame = prepare(pd.concat([comparison, *again]))
    before = rank_by_class(prepare(comparison))
    after = rank_by_class(frame)
    columns = ["best", "next", "enough"]
    assert after[columns].equals(before[columns])
    assert after["tied"].map(lambda names: set(names) - {"hloggp", "loggph"}).equals(before["tied"].map(set))
    by_loggp = after["best"] == "loggp"
    assert by_loggp.any()
    assert all(names == ["hloggp", "loggph"] for names in after.loc[by_loggp, "same"])
    assert not any(names for names in after.loc[~by_loggp, "same"])
    part = frame[(frame["platform"] == "ether16") & frame["held_out"]]
    assert find_equal_models(part, "hloggp") == ["loggp", "loggph"]
    assert [name for name in drop_equal_models(part, rank_models(part), 9) if "loggp" in name.replace("plogp", "")] == [
        "loggp"
    ]


def test_only_free_prices_trust_nobody(comparison):
    report = build(comparison[comparison["family"] == "pram"], experiment="free")
    lines = report.sections[0].blocks[0].sentences
    assert any("Every family predicts something at 0" in line for line in lines)


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
    """Predictions that are not held out may be anything: only the comparison itself shows them."""
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
        assert drawn == set(rank_models(part)["family"][:5])
        assert chart.note.startswith("The 5 of 9 families with the lowest mean μ")


@pytest.mark.parametrize("theirs", [[1.1, 1.02, 1.1, 1.02, 900.0, 16.0], [18.9, 2.9, 11.5]])
def test_a_family_worse_by_factors_is_told_apart_however_much_they_scatter(theirs):
    rows = [
        {"point": str(number), "family": family, "mu": mu, "predicted": mu}
        for number, worse in enumerate(theirs)
        for family, mu in (("good", 1.001), ("wild", worse))
    ]
    assert find_tied_models(pd.DataFrame(rows), pd.Series({"family": "good", "points": len(theirs)})) == []
