"""The first screen and the first sheet: each question is answered after at most two clicks.

Its maps are compared with the points that they summarize. A click leads to a cell or to rows of
this workbook, or to a file."""

import io
import math
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import openpyxl
import pandas as pd
import pytest
import vl_convert
from openpyxl.utils import range_boundaries

from commodel.compare.recommended import evaluate_recommended
from commodel.parameters import Estimate, ParameterSet
from commodel.predictions.interval_basis import UNMEASURED_PREFIX
from commodel.records import RECOMMENDED
from commodel.reports import write_pictures, write_xlsx
from commodel.reports.comparison_frame import prepare_comparison
from commodel.reports.elements import (
    AnsweredQuestion,
    Axis,
    Cell,
    Chart,
    Grid,
    Series,
    format_error,
    format_percent,
)
from commodel.reports.evaluated_campaign import evaluate_campaign
from commodel.reports.html.page import format_page
from commodel.reports.pictures import render
from commodel.reports.pictures.render import list_drawings, list_pictures, render_svg
from commodel.reports.pictures.specifications import (
    fit_text,
    measure_width,
    share_width,
    specify_grid,
    specify_lines,
)
from commodel.reports.sections.first_screen import (
    FLAGGED_COLOUR,
    make_error_grid,
    make_fastest_grid,
    summarize_network,
)
from commodel.reports.xlsx import overview
from commodel.reports.xlsx.workbook import Workbook
from commodel.units import format_bytes, format_seconds
from tests.reports.reading import make_report


def list_workloads(comparison, platform):
    """Return the alternatives of every workload with two or more, fastest first, by a simple
    loop."""
    once = comparison[
        (comparison["platform"] == platform) & comparison["measured"].notna()
    ].drop_duplicates("point")
    for _, group in once.groupby("workload"):
        if len(group) > 1:
            yield sorted(group.to_dict("records"), key=lambda row: row["measured"])


@pytest.mark.parametrize("platform", ["ether16", "fattree"])
def test_the_map_has_the_fastest_alternatives(comparison, platform):
    frame = prepare_comparison(comparison)
    grid = make_fastest_grid(frame[frame["platform"] == platform])
    cells = {}
    for cell in grid.cells:
        operation, label = grid.rows[cell.row]
        cells[operation, label, grid.columns[cell.column]] = cell
    checked = set()
    for first, *others in list_workloads(comparison, platform):
        key = (first["operation"], format_bytes(first["bytes"]).replace(" ", "\N{NO-BREAK SPACE}"))
        (cell,) = [
            cell
            for (operation, label, size), cell in cells.items()
            if (operation, size) == key and includes_ranks(label, first)
        ]
        library = first["algorithm"] == "library"
        close = [row for row in others if not (first["measured_high"] < row["measured_low"])]
        close += [row for row in others if row["measured"] <= 1.01 * first["measured"]]
        assert cell.text == ("≈ " if close else "") + (
            "MPI default" if library else first["alternative"]
        )
        assert cell.marked == library
        checked.add(id(cell))
    assert len(checked) == len(grid.cells)


def includes_ranks(label, row):
    """Return whether a row of the map, such as `8–32` or `16 leaves`, includes the number of ranks
    of this point."""
    first, last = re.fullmatch(r"(\d+)(?:–(\d+))?(?: leaves)?(?:,.*)?", label).groups()
    number = row["leaves"] if "leaves" in label else row["ranks"]
    return int(first) <= number <= int(last or first) and ("leaves" in label) == (row["leaves"] > 0)


def test_the_other_map_has_the_mean_errors(comparison):
    here = comparison[
        (comparison["platform"] == "ether16") & comparison["held_out"] & comparison["mu"].notna()
    ]
    campaign = evaluate_campaign(prepare_comparison(comparison)).only("ether16")
    recommended = campaign.recommended_rows[campaign.recommended_rows["mu"].notna()]
    grid = make_error_grid(campaign)
    rows = pd.concat([recommended, here])
    means = rows.groupby(["model", "operation"])["mu"].mean()
    reached = (rows["validity"] == "valid").groupby([rows["model"], rows["operation"]]).mean()
    cells = {(grid.rows[cell.row][1], grid.columns[cell.column]): cell for cell in grid.cells}
    assert {key for key in cells if key[1] != "all"} == set(means.index)
    for key, mean in means.items():
        assert cells[key].text == (
            "∞" if mean == math.inf else f"{mean:.2f}" if mean < 10 else f"{mean:,.0f}"
        )
        assert (cells[key].fill == FLAGGED_COLOUR) == (reached[key] < 0.5)
    first, second, *others = [label for _, label in grid.rows]
    assert first == RECOMMENDED
    assert second == here.groupby("model")["mu"].mean().idxmin()
    assert cells[first, "all"].text == f"{recommended['mu'].mean():.2f}"
    totals = [cells[label, "all"].text for label in others]
    assert totals == sorted(
        totals, key=lambda text: math.inf if text == "∞" else float(text.replace(",", ""))
    )


def test_sentences_are_few_and_do_not_name_the_platform(report):
    for screen in report.screens:
        lines = [*(tile.sentence for tile in screen.tiles), *screen.anomalies]
        assert len(lines) <= 8
        assert all(line.endswith(".") and screen.platform not in line for line in lines)
        questions = ["Recommended prediction", "What to use", "Gain", "Network"]
        assert [tile.question for tile in screen.tiles] == questions
    assert [screen.simulated for screen in report.screens] == sorted(
        screen.simulated for screen in report.screens
    )


def test_regret_is_the_mean_of_all_choices(comparison, report):
    """Most choices have no regret, and count as 0."""
    rows = evaluate_recommended(prepare_comparison(comparison))
    for screen in report.screens:
        here = rows[rows["platform"] == screen.platform]
        assert screen.tiles[0].headline == f"error {format_error(here['mu'].mean())}"
        several = here.groupby("workload").filter(lambda rows: len(rows) > 1)
        chosen = several.loc[several.groupby("workload")["seconds"].idxmin()].set_index("workload")[
            "measured"
        ]
        regret = chosen / several.groupby("workload")["measured"].min() - 1
        assert (
            f" of {len(chosen)} workloads with several predicted alternatives."
            in screen.tiles[2].sentence
        )
        assert 0 < (regret > 0).mean() < 0.5
        ends = f"{format_percent(regret.mean())} mean, {format_percent(regret.max())} worst."
        assert screen.tiles[2].sentence.endswith(f" Regret: {ends}")


def test_with_few_workloads_the_best_model_stands_in_for_the_recommended_prediction(fewer):
    some = fewer["workload"].drop_duplicates().iloc[:2]
    report = make_report(fewer[fewer["workload"].isin(some)], experiment="few")
    for screen in report.screens:
        assert screen.tiles[0].question == "Best model"
        assert screen.tiles[0].headline.partition(",")[0] in set(fewer["model"])


def test_measured_platforms_come_before_simulated_ones(fewer):
    names = {"ether16": "zebra", "fattree": "fattree"}
    report = make_report(fewer.assign(platform=fewer["platform"].map(names)), experiment="order")
    blocks = [block for section in report.sections for block in section.blocks]
    answers = [
        block
        for block in blocks
        if isinstance(block, AnsweredQuestion) and block.question.startswith("Which model")
    ]
    simulated = [answer.question.endswith("(simulated)") for answer in answers]
    assert simulated == sorted(simulated)
    assert len(set(simulated)) == 2
    for name in (
        "Errors by model",
        "Regret by model",
        "Mean μ by operation",
        "Fastest alternatives",
        "Best model by class",
    ):
        (table,) = (table for table in report.tables if table.name == name)
        column = [column.key for column in table.columns].index("simulated")
        words = [row[column] for row in table.rows]
        assert words == sorted(words, key=lambda word: word == "simulated")
        assert len(set(words)) == 2


def test_predictions_with_a_parameter_interval_only_are_an_anomaly(fewer, report):
    """If all other workloads are within one node, the error of predictions between nodes is
    unknown."""
    ends = {f"parameter_{end}": fewer[end] for end in ("low", "high")}
    words = (
        fewer["operation"]
        .eq("reduce")
        .map(
            {True: UNMEASURED_PREFIX + "between nodes", False: "5 allocations, 45 workloads of all"}
        )
    )
    frame = fewer.assign(basis=words, **ends)
    end = "a parameter interval only: no other workload was measured between nodes."
    near = make_report(frame, experiment="near")
    assert all(any(line.endswith(end) for line in screen.anomalies) for screen in near.screens)
    assert not any(line.endswith(end) for screen in report.screens for line in screen.anomalies)


def test_the_network_tile_shows_measured_half_round_trips_of_two_ranks(report, inputs, round_trips):
    for screen in report.screens:
        trips = round_trips[(round_trips["platform"] == screen.platform) & round_trips["valid"]]
        halves = trips.groupby("bytes")["seconds"].median() / 2
        unit = {"GB/s": 1e9, "MB/s": 1e6}
        latency, _, bandwidth = screen.tiles[3].headline.partition(", ")
        assert latency == format_seconds(halves[1])
        number, _, name = bandwidth.partition(" ")
        assert float(number) * unit[name] == pytest.approx(65536 / halves[65536], rel=0.01)


def test_a_latency_that_the_data_do_not_determine_is_no_figure():
    known, unknown = (
        Estimate(1.2e-6, "s", 1.1e-6, 1.3e-6),
        Estimate(6e-8, "s", 3e-8, 1e-7, "not told apart", False),
    )
    byte = Estimate(1e-10, "s/B", 9e-11, 1.1e-10)
    loggp = ParameterSet(
        model="loggp", platform="p", simulated=False, values={"L": unknown, "G": byte}, source="s"
    )
    pieces = {
        "alpha.a": known,
        "beta.a": byte,
        "beta.a1": replace(byte, value=2e-10),
        "beta.a2": byte,
    }
    hockney = replace(loggp, model="hockney", values=pieces)
    assert summarize_network([loggp], [], []).headline == "not fitted"
    tile = summarize_network([loggp, hockney], [], [])
    assert tile.headline == "1.2 µs, 10.0 GB/s"
    assert "[1.1 µs, 1.3 µs]" in tile.sentence
    assert dict(tile.source.where)["model"] == "hockney"


def test_without_a_choice_there_is_no_map_of_alternatives(fewer):
    report = make_report(
        fewer[fewer["alternative"] == "binomial"].drop_duplicates(["workload", "model"]),
        experiment="one",
    )
    for screen in report.screens:
        assert screen.tiles[1].headline == "nothing to choose"
        assert not screen.fastest.cells
    page = format_page(report)
    assert all(f"{screen.errors.title}</span>" in page for screen in report.screens)
    assert "What to use</span>" not in page


def test_simulated_platforms_are_marked(report):
    page = format_page(report)
    for screen in report.screens:
        markup = page[page.index(f'data-platform="{screen.platform}"') :].partition("</section>")[0]
        assert ("SIMULATED" in markup) == screen.simulated
    titles = [specification["title"]["text"] for _, specification in list_pictures(report)]
    assert len(titles) == 4 * len(report.screens)
    for title in titles:
        assert ("(simulated)" in title) == ("fattree" in title)


def test_dots_lie_where_their_values_are():
    dots = Series("a", (1.0, 10.0, 1000.0), (10.0, 1.0, 100.0), labels=("one", "two", "three"))
    axes = (Axis("x [µs]", low=1.0, high=1000.0), Axis("y [µs]", low=1.0, high=100.0))
    drawn = ET.fromstring(render_svg(specify_lines(Chart("c", "c", *axes, (dots,)), 300, 200)))
    marks = [
        group
        for group in drawn.iter()
        if "role-mark" in group.get("class", "") and "symbol" in group.get("class")
    ]
    places = [re.findall(r"-?[\d.]+", path.get("transform")) for group in marks for path in group]
    places = [(round(float(x)), round(float(y))) for x, y in places]
    assert places == [(0, 100), (100, 200), (300, 0)]
    words = {text.text for text in drawn.iter() if text.tag.endswith("text")}
    assert {"1 µs", "1 ms", "100 µs", "x", "y"} <= words


def test_pictures_are_written_whole_and_the_same_again(small, tmp_path):
    where = "../<b>&evil"
    here = small[small["platform"] == "fattree"]
    report = make_report(here.assign(platform=where), experiment="pictures")
    written = write_pictures(report, tmp_path / "one")
    again = write_pictures(report, tmp_path / "two")
    assert len(written) == 2 * 4
    assert {path.parent for path in written} == {tmp_path / "one"}
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == sorted(
        path.name for path in written
    )
    assert len(list(tmp_path.iterdir())) == 2
    assert [path.read_bytes() for path in written] == [path.read_bytes() for path in again]
    for path in written:
        if path.suffix == ".png":
            assert path.read_bytes().startswith(b"\x89PNG")
        else:
            assert where in "".join(ET.fromstring(path.read_bytes()).itertext())


def test_drawings_made_early_are_the_same(report, tmp_path):
    later = write_pictures(report, tmp_path / "later")
    of_other_tests = set(render._DRAWER.early_drawings)
    render.draw_early(list_drawings(report))
    early = write_pictures(report, tmp_path / "early")
    assert [path.read_bytes() for path in early] == [path.read_bytes() for path in later]
    assert set(render._DRAWER.early_drawings) <= of_other_tests


def test_a_process_that_ends_while_it_draws_early_is_named_where_a_drawing_is_needed(report):
    drawer = render._Drawer()
    drawer.start()
    drawer.process.kill()
    drawer.draw_early(list_drawings(report))
    kind, specification = next(list_drawings(report))
    with pytest.raises(render.DrawingError, match="was ended by SIGKILL"):
        drawer.draw(kind, specification)
    drawer.close()


def test_long_names_are_wrapped_at_a_hyphen_or_shortened():
    assert fit_text("ring", 50, 10, 2) == "ring"
    assert fit_text("recursive-doubling", 100, 10, 2) == "recursive-doubling"
    assert fit_text("recursive-doubling", 60, 10, 2) == ["recursive-", "doubling"]
    assert fit_text("recursive-doubling", 60, 10) == "recursive-d…"
    assert fit_text("dissemination", 50, 10, 2) == "dissemina…"


ROWS = (
    ("allgather", "8–32"),
    ("allreduce", "8–32"),
    ("barrier", "8–32"),
    *(("bcast", f"{n} leaves") for n in range(7)),
    ("reduce", "96, any layout, 48 nodes"),
)
NAMES = [
    "≈ default",
    "recursive-doubling",
    "dissemination",
    "chain:4KiB",
    "balanced:4x4",
    "groups:4,2,2",
    "binomial:4",
]


def list_texts(spec):
    """Return the text of all cells and labels of a chart, with their positions."""
    return [value for layer in spec["layer"] for value in layer["data"]["values"]]


@pytest.mark.parametrize("columns", [3, 7])
def test_no_name_is_cut_in_a_map_of_many_rows(columns):
    places = [(row, column) for row in range(len(ROWS)) for column in range(columns)]
    cells = tuple(
        Cell(row, column, NAMES[(column if columns > 3 else row) % len(NAMES)], "#fff", "")
        for row, column in places
    )
    spec = specify_grid(
        Grid(
            "use",
            "What to use",
            "",
            ROWS,
            ("16 KiB",) * columns,
            cells,
            "message size",
            "ranks or leaves",
        )
    )
    words = [
        "".join(value["text"]) if isinstance(value["text"], list) else value["text"]
        for value in list_texts(spec)
    ]
    assert not [word for word in words if "…" in word]
    boxes = [value for value in list_texts(spec) if "x2" in value]
    for value in boxes:
        for line in value["text"] if isinstance(value["text"], list) else [value["text"]]:
            assert measure_width(line, 10) <= value["x2"] - value["x"]
    assert max(value["x2"] for value in boxes) <= spec["width"]
    beside = [
        value
        for value in list_texts(spec)
        if "x2" not in value and value["text"] in {label for _, label in ROWS}
    ]
    assert beside
    assert max(value["x"] + measure_width(value["text"], 11) for value in beside) < min(
        value["x"] for value in boxes
    )
    tops = {
        at: {value["y"] for value in boxes[at * columns : (at + 1) * columns]}
        for at in range(len(ROWS))
    }
    assert all(len(top) == 1 for top in tops.values())
    assert all(
        min(tops[at + 1]) > max(value["y2"] for value in boxes[: (at + 1) * columns])
        for at in range(len(ROWS) - 1)
    )


def test_columns_are_alike_where_there_is_room():
    assert share_width([10, 20, 30], 120) == [40, 40, 40]
    assert share_width([10, 70, 20], 120) == [25, 70, 25]
    assert share_width([10, 70, 30], 110) == [10, 70, 30]
    assert share_width([60, 60], 60) == [30, 30]


def test_a_dot_of_a_picture_is_a_circle():
    clouds = tuple(
        Series(name, (1.0, 2.0, 4.0), (1.0, 3.0, 9.0), "dots", at)
        for at, name in enumerate(("a", "b"))
    )
    text = render_svg(specify_lines(Chart("c", "c", Axis("x"), Axis("y"), clouds)))
    assert (
        len(
            re.findall(
                r'<circle transform="[^"]+" r="2\.5\d*" fill="#[0-9A-F]{6}" opacity="0\.8"/>', text
            )
        )
        == 6
    )
    assert vl_convert.svg_to_png(text).startswith(b"\x89PNG")


PLATFORM = "ether16"


@pytest.fixture(scope="module")
def pages(report, tmp_path_factory):
    """Return the workbook with links to raw files, as for report and results in one project."""
    path = tmp_path_factory.mktemp("overview") / "e.xlsx"
    write_xlsx(replace(report, results="../../results/e"), path)
    return openpyxl.load_workbook(path)


def links(cells):
    return [cell.hyperlink for cell in cells if cell.hyperlink]


def follow_link(book, link):
    """Return the sheet and the cells that a click on a link selects."""
    name, _, area = link.location.rpartition("!")
    sheet = book[name.strip("'").replace("''", "'")]
    left, top, right, bottom = range_boundaries(area)
    return sheet, [cell for row in sheet.iter_rows(top, bottom, left, right) for cell in row]


def follow_clicks(book, clicks):
    """Return the sheets and cells selected by every sequence of this number of clicks from the
    first sheet."""
    first = book.worksheets[0]
    seen = [(first, [cell for row in first.iter_rows() for cell in row])]
    for _ in range(clicks):
        inside = [link for _, cells in seen for link in links(cells) if link.location]
        seen = [follow_link(book, link) for link in inside]
    return seen


def texts(book):
    return [str(cell.value) for cell in follow_clicks(book, 0)[0][1] if cell.value is not None]


def read_headers(sheet, cell):
    """Return the headers of the table that contains a cell."""
    areas = [range_boundaries(table.ref) for table in sheet.tables.values()]
    (top,) = [top for _, top, _, bottom in areas if top < cell.row <= bottom]
    return [str(entry.value) for entry in sheet[top]]


def test_title_origin_and_simulation_by_no_click(pages, report):
    page_texts = texts(pages)
    assert page_texts[0] == report.title
    assert "SIMULATED" in page_texts[1]
    assert "fattree" in page_texts[1]
    (line,) = [text for text in page_texts if text.startswith(f"{PLATFORM}: ")]
    for part in (
        "measured",
        "2026-10-02",
        "3 hosts",
        "MPICH 5.0.2",
        "no container",
        "commit 4f2a91c",
    ):
        assert part in line


def test_overview_answers_equal_the_page_and_omit_the_platform_prefix(pages, report):
    page_texts = texts(pages)
    (screen,) = [screen for screen in report.screens if screen.platform == PLATFORM]
    for tile in screen.tiles:
        assert {tile.question, tile.headline, tile.sentence} <= set(page_texts)
    assert set(screen.anomalies) <= set(page_texts)
    sentences = [text for text in page_texts if text.endswith(".")]
    assert sum(text.startswith(PLATFORM) for text in sentences) == 0


def test_which_tree_for_so_many_leaves_at_a_measured_size_by_no_click(pages, comparison):
    sheet, cells = follow_clicks(pages, 0)[0]
    (label,) = [cell for cell in cells if cell.value == "32 leaves"]
    (column,) = [
        cell
        for cell in cells
        if cell.value == format_bytes(1024).replace(" ", "\N{NO-BREAK SPACE}")
    ]
    here = comparison[
        (comparison["platform"] == PLATFORM)
        & (comparison["leaves"] == 32)
        & (comparison["bytes"] == 1024)
    ]
    fastest = here.loc[here["measured"].idxmin(), "alternative"]
    assert sheet.cell(label.row, column.column).value.removeprefix("≈ ") == fastest


def test_one_click_reaches_the_calculator_for_other_sizes_and_changed_latency(pages):
    reached = [
        (sheet, cells)
        for sheet, cells in follow_clicks(pages, 1)
        if sheet.title.startswith("Calculator")
    ]
    assert len(reached) == 2
    (sheet, _), (_, (factor,)) = reached
    assert not sheet[sheet.defined_names["bytes"].attr_text.rpartition("!")[2]].protection.locked
    assert (factor.value, factor.protection.locked) == (1, False)
    assert sheet.cell(factor.row, 1).value == PLATFORM
    assert sheet.cell(factor.row, 4).value in ("L", "alpha.a")
    (command,) = [text for text in texts(pages) if text.startswith("commodel advise")]
    assert f"--platform {PLATFORM}" in command


def test_platforms_of_the_calculator_stand_in_the_order_of_the_first_sheets(report):
    for screens in (report.screens, report.screens[::-1]):
        book = Workbook(replace(report, screens=screens), io.BytesIO())
        platforms = dict.fromkeys(forms.parameters.platform for forms in book.calculable)
        assert list(platforms) == [screen.platform for screen in screens]


def test_lowest_error_for_an_operation_and_a_fan_in_by_one_click(pages, comparison):
    held = comparison[
        comparison["held_out"] & (comparison["platform"] == PLATFORM) & comparison["mu"].notna()
    ]
    held = held[(held["operation"] == "reduce") & (held["fan_in"] == 4)]
    best = held.groupby("model")["mu"].mean().idxmin()
    marked = []
    for sheet, cells in follow_clicks(pages, 1):
        for cell in cells if sheet.title == "Errors" else ():
            if [sheet.cell(cell.row, column).value for column in (3, 4)] == [
                "reduce",
                4,
            ] and cell.font.bold:
                marked.append(read_headers(sheet, cell)[cell.column - 1])
    assert marked == [best]


def test_one_click_reaches_the_median_latency_and_confidence_interval(pages):
    (row,) = [
        (sheet, cells[0])
        for sheet, cells in follow_clicks(pages, 1)
        if sheet.title == "Network" and len(cells) == 1 and cells[0].column > 1
    ]
    sheet, cell = row
    named = dict(
        zip(read_headers(sheet, cell), [entry.value for entry in sheet[cell.row]], strict=True)
    )
    assert named["platform"] == PLATFORM
    assert named["bytes [B]"] == 1
    assert named["median low [µs]"] < cell.value < named["median high [µs]"]


def test_two_clicks_lead_from_a_summary_number_to_the_raw_samples(pages, comparison):
    raw = {text for text in comparison["raw"] if text}
    seen = 0
    for sheet, cells in follow_clicks(pages, 1):
        if sheet.title == "Comparison" and len(cells) > 1:
            targets = {link.target.replace("\\", "/") for link in links(cells) if link.target}
            (target,) = targets
            assert target.removeprefix("../../results/e/") in raw
            at = read_headers(sheet, cells[0]).index("point") + 1
            points = {sheet.cell(cell.row, at).value for cell in cells}
            assert len(points) == 1, "one point, predicted by all models"
            seen += 1
    assert seen >= 10


def test_each_comparison_row_links_to_the_raw_summary_of_the_same_point(pages):
    sheet = pages["Comparison"]
    at = read_headers(sheet, sheet.cell(20, 1)).index("point")
    rows = [row for row in sheet.iter_rows(min_row=10) if row[at].hyperlink]
    assert len(rows) > 1000
    for row in rows[::97]:
        raw, cells = follow_link(pages, row[at].hyperlink)
        names = read_headers(raw, cells[0])
        assert raw.cell(cells[0].row, names.index("id") + 1).value == row[at].value


def test_the_overview_gives_a_diff_command_against_an_earlier_campaign(pages):
    assert "commodel diff results/EARLIER results/trees-2026 --out changes.xlsx" in texts(pages)


def test_everything_else_is_one_click_away_and_leads_back(pages):
    reached = {sheet.title for sheet, _ in follow_clicks(pages, 1)}
    assert {sheet.title for sheet in pages if sheet.sheet_state == "visible"} - reached == {
        f"Overview {PLATFORM}",
    }
    for sheet in pages.worksheets[1:]:
        back = [link.location for link in links([sheet["A3"], sheet["A4"]])]
        assert back == [f"'Overview {PLATFORM}'!A1"]


def test_many_rows_and_platforms_are_no_obstacle(comparison, tmp_path, monkeypatch):
    monkeypatch.setattr(overview, "MAX_MAP_ROWS", 2)
    some = comparison[(comparison["bytes"] == 256) & comparison["model"].isin(["loggp", "hockney"])]
    some = some[some["platform"] == PLATFORM]
    parts = [
        some.assign(platform=name, workload=some["workload"] + name, point=some["point"] + name)
        for name in (f"p{number}" for number in range(6))
    ]
    write_xlsx(
        make_report(pd.concat(parts, ignore_index=True), experiment="many"), tmp_path / "many.xlsx"
    )
    book = openpyxl.load_workbook(tmp_path / "many.xlsx")
    names = [sheet.title for sheet in book if sheet.title.startswith("Overview")]
    assert names == [f"Overview p{number}" for number in range(6)]
    linked = {
        link.location.strip("'").partition("!")[0].strip("'")
        for link in links(follow_clicks(book, 0)[0][1])
    }
    assert set(names[1:]) <= linked
    assert any("rows more on the sheet What to use" in text for text in texts(book))
