"""A complete campaign, opened from Python."""

import html
import re
import shutil
from contextlib import chdir

import pytest

import commodel


def test_a_loaded_run_has_tables_parameters_and_charts(whole_run):
    run = commodel.load(whole_run / "results/small")
    (platform,) = run.platforms
    assert run.comparison["mu"].dropna().ge(1).all()
    assert set(run.comparison["model"]) == {*run.models, "recommended", ""}  # none: measured only
    assert len(run.observations) > len(run.summary) > 0
    assert run.unmeasured.empty
    for model in run.models:
        values = run.parameters(platform, model)
        assert values["low"].le(values["value"]).all()
        assert values["value"].le(values["high"]).all()
    # Names of charts contain no finding, unlike their titles: `An alternative beats the MPI default
    # in …`.
    assert {"fastest-loggp-64", "errors-loggp-64", "predicted-loggp-64"} <= set(run.charts)
    chart = run.plot("predicted").to_dict()
    assert chart["$schema"].endswith(".json")
    with pytest.raises(commodel.UserError, match="found no chart 'pie'"):
        run.plot("pie")


def test_predict_with_a_run_equals_the_prediction_in_the_comparison(whole_run):
    """`predict` by name returns the campaign's prediction of the same point."""
    run = commodel.load(whole_run / "results/small")
    of_models = run.comparison[run.comparison["model"].isin(run.models)]
    row = of_models.query("seconds.notna() and waves == 1").iloc[0]
    named = "topology" if row["topology"] else "algorithm"
    names = {named: row[named], "layout": row["layout"], "model": row["model"], "parameters": run}
    ranks = None if row["topology"] else int(row["ranks"])
    table = commodel.predict(row["operation"], ranks, int(row["bytes"]), **names).frame
    assert table["seconds"][0] == pytest.approx(row["seconds"], rel=1e-12)


def test_advice_intervals_are_based_on_the_measurements_of_the_run(whole_run):
    run = commodel.load(whole_run / "results/small")
    row = run.comparison.query("algorithm != 'library' and topology == ''").iloc[0]
    advice = commodel.advise(row["operation"], int(row["ranks"]), int(row["bytes"]), evidence=run)
    assert advice.frame["basis"][0] != "parameters only"


def test_runs_and_advice_are_tables_in_a_notebook(whole_run, tmp_path):
    run = commodel.load(whole_run / "results/small")
    shown = run._repr_html_()
    assert html.escape(repr(run)) in shown
    assert re.findall("<td>(loggp)</td>", shown) == ["loggp"]
    advice = commodel.advise(
        "bcast", 8, "1KiB", evidence=run, layouts=["block:1"], only=["linear", "binomial"]
    )
    assert repr(advice).startswith("Advice: bcast over 8 ranks, 1 KiB: ")
    shown = advice._repr_html_()
    assert html.escape(advice.sentence) in shown
    assert re.findall("<td>(linear|binomial)</td>", shown) == advice.frame["alternative"].tolist()


def test_a_printed_run_equals_the_output_of_the_verb(whole_run):
    run = commodel.load(whole_run / "results/small")
    assert (whole_run / "printed").read_text() == f"\n{run}\n"
    assert run.frame["model"].tolist()[0] == "recommended"
    assert run.frame["mu_mean"].ge(1).all()
    assert {row["platform"] for row in run.provenance} == set(run.platforms)


def test_a_run_without_a_comparison_is_shown_without_a_table(whole_run, tmp_path):
    shutil.copytree(whole_run / "results/small", tmp_path / "small")
    (tmp_path / "small/comparison.csv").unlink()
    run = commodel.load(tmp_path / "small")
    assert run._repr_html_().count("<") == 2
    assert str(run) == repr(run)


def test_a_report_is_written_from_python(whole_run, tmp_path):
    report = commodel.report(commodel.load(whole_run / "results/small"), out=tmp_path / "report")
    written = report.files
    assert str(report) == "\n".join(map(str, written))
    assert {path.suffix for path in written} >= {".xlsx", ".html"}
    assert all(path.stat().st_size > 1000 for path in written)
    (page,) = (path for path in written if path.suffix == ".html")
    assert "<h1>a small one</h1>" in page.read_text(encoding="utf-8")  # its title, not its name


def test_run_reports_progress_and_returns_the_results(finished):
    """Nothing is measured again, since the campaign is complete."""
    lines = []
    with chdir(finished.folder):
        run = commodel.run("small", progress=lines.append)
    assert any("left" in line or "measured" in line for line in lines)
    assert len(run.comparison)
