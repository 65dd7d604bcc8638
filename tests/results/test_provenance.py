"""Provenance of a measurement: the commit of a clone, of an image without a clone, or of neither.

Digests of a results folder equal those of sha256sum. Attempts at a batch are reported. Names of
settings are checked and stored, and samples of two settings are never mixed."""

import json
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import commodel
from commodel.compare.comparison import compare
from commodel.errors import UserError
from commodel.files.atomic import write_json
from commodel.files.quantities import MAX_SETTING_LENGTH, parse_setting
from commodel.files.results_folder import PROVENANCE
from commodel.files.tables import COMPARISON, OBSERVATIONS, SUMMARY, read_table, write_table
from commodel.fits.measured_tables import read_points
from commodel.fits.probe_fits import collect_observed
from commodel.plan.config import load_platform
from commodel.records import Batch, Case, PlannedPlatform, Point
from commodel.results import provenance, raw_samples
from commodel.results.collection import collect_samples, summarize_raw
from commodel.results.provenance import (
    check_setting,
    compute_digests,
    list_attempts,
    read_input_texts,
    read_setting,
)
from tests.planning import planned


@pytest.fixture(autouse=True)
def clear_revision_cache():
    """Clear the cached commit, since these tests need several commits in one process."""
    provenance.find_revision.cache_clear()
    yield
    provenance.find_revision.cache_clear()


def git(folder, *arguments):
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    run = subprocess.run(
        ["git", "-C", folder, *who, *arguments], capture_output=True, text=True, check=True
    )
    return run.stdout.strip()


def test_a_git_clone_reports_commit_and_uncommitted_edits(tmp_path, monkeypatch):
    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    git(tmp_path, "init")
    (tmp_path / "a").write_text("1")
    git(tmp_path, "add", "a")
    git(tmp_path, "commit", "-m", "one")
    assert provenance.find_revision() == (git(tmp_path, "rev-parse", "HEAD"), False)
    (tmp_path / "a").write_text("2")
    assert provenance.find_revision()[1] is False  # as it was when this process began
    provenance.find_revision.cache_clear()
    assert provenance.find_revision()[1] is True
    assert provenance.describe_commit() == f"{git(tmp_path, 'rev-parse', 'HEAD')}-dirty"


@pytest.mark.parametrize(
    ("noted", "revision"),
    [
        ("4f2a91c", ("4f2a91c", False)),
        ("4f2a91c-dirty", ("4f2a91c", True)),
        (None, ("unknown", None)),
    ],
)
def test_an_image_reports_the_commit_recorded_at_build_time(noted, revision, tmp_path, monkeypatch):
    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    if noted:
        (tmp_path / "COMMIT").write_text(f"{noted}\n")
    assert provenance.find_revision() == revision


def test_versions_list_the_packages_that_can_change_results():
    versions = provenance.list_versions(("no-such-package",))
    assert {"commodel", "code_digest", "python", "numpy", "pandas", "scipy", "snakemake"} <= set(
        versions
    )
    assert versions["no-such-package"] == "not installed"


def test_the_digest_is_of_every_file_of_the_package():
    assert Path(commodel.__file__).parent == provenance.PACKAGE


BATCH = Batch("p-1n-0", "p", 1, points=(Point("p", "bcast", "linear", "", "block:1", 2, 8),))
TRACED_PLAN = planned(BATCH, models=("loggp",))


def sha256sum(folder, *names):
    run = subprocess.run(
        ["sha256sum", *names], cwd=folder, capture_output=True, text=True, check=True
    )
    return run.stdout


@pytest.fixture
def folder(tmp_path):
    files = {
        "plan.json": "{}",
        "comparison.csv": "a\n1\n",
        "unmeasured.csv": "id\n",
        "fitted/p/loggp.yaml": "model: loggp\n",
        "inputs/experiments/e.yaml": "title: é\n",
        "raw/p-1n-0/0a.csv": "id\n0a\n",
        "raw/p-1n-0/0b.unmeasured.json": "{}",
        "raw/p-1n-0/0c.late.csv": "id\n0c\n",
        "raw/p-1n-0/0d.levels": "processes of an overlay network by depth",
        "raw/p-1n-0/provenance.json": "{}",
        "raw/p-1n-0/state.json": '{"attempts": []}',
        "raw/p-1n-0/.0c.csv.7.tmp": "half",
        "raw/p-1n-0/done": "",
        "raw/other-1n-0/0a.csv": "of another plan",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_digests_equal_the_output_of_sha256sum(folder):
    sums = compute_digests(TRACED_PLAN, folder)
    single = [name for name in sums if not name.startswith("raw/")]
    assert set(single) == {
        *(
            "plan.json",
            "comparison.csv",
            "unmeasured.csv",
            "fitted/p/loggp.yaml",
            "inputs/experiments/e.yaml",
        )
    }
    assert "".join(f"{sums[name]}  {name}\n" for name in single) == sha256sum(folder, *single)
    listed = sha256sum(
        folder / "raw/p-1n-0",
        "0a.csv",
        "0b.unmeasured.json",
        "0c.late.csv",
        "0d.levels",
        "provenance.json",
    )
    (folder / "listed").write_text(listed)
    assert sums["raw/p-1n-0"] == sha256sum(folder, "listed").split()[0]
    assert "raw/other-1n-0" not in sums


def test_a_batch_looked_at_again_is_the_same_batch(folder):
    before = compute_digests(TRACED_PLAN, folder)
    (folder / "raw/p-1n-0/state.json").write_text('{"attempts": [{}]}')
    assert compute_digests(TRACED_PLAN, folder) == before
    (folder / "raw/p-1n-0/0a.csv").write_text("id\n0a\n0a\n")
    assert {
        name for name in before if compute_digests(TRACED_PLAN, folder)[name] != before[name]
    } == {"raw/p-1n-0"}


def test_how_attempts_ended(folder):
    listed = [
        {"host": "n1", "job": "7", "started": 1.0, "ended": None, "outcome": ""},
        {"host": "n2", "job": "8", "started": 2.0, "ended": 3.0, "outcome": "error: no srun"},
        {"host": "n2", "job": "9", "started": 4.0, "ended": None, "outcome": ""},
    ]
    listed = [entry | {"pid": 7, "updated": 5.0} for entry in listed]
    (folder / "raw/p-1n-0/state.json").write_text(json.dumps({"attempts": listed}))
    rows = list(list_attempts(BATCH, folder / "raw"))
    assert [entry["outcome"] for entry in rows] == [
        "ended without a message",
        "error: no srun",
        "no end recorded",
    ]
    assert [entry["attempt"] for entry in rows] == [1, 2, 3]
    assert {entry["batch"] for entry in rows} == {"p-1n-0"}


def test_results_of_an_older_commodel_have_no_attempts_or_texts(tmp_path):
    assert list(list_attempts(BATCH, tmp_path)) == []
    assert read_input_texts(tmp_path) == {}
    assert compute_digests(TRACED_PLAN, tmp_path) == {}


POINT = Point("here", "bcast", "linear", "", "block:2", 2, 8)
OTHER = Point("here", "bcast", "binomial", "", "block:2", 2, 8)
CASE = Case("here", "pingpong", 2, {"bytes": 8}, "block:2")
PLAN = planned(Batch("one", "here", 1, cases=(CASE,), points=(POINT, OTHER)), models=("f",))
WORDS = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=8)


@given(
    st.dictionaries(WORDS.filter(lambda word: "=" not in word), WORDS, min_size=1, max_size=4),
    st.randoms(),
)
def test_the_order_of_pairs_does_not_matter(pairs, random):
    words = [f"{name}={value}" for name, value in pairs.items()]
    called = parse_setting(" ".join(words))
    random.shuffle(words)
    assert parse_setting("  ".join(words)) == called == parse_setting(called)


@pytest.mark.parametrize(
    ("text", "called"),
    [
        ("", ""),
        ("  ", ""),
        ("b a", "b a"),
        ("rails=2  mtu=9", "mtu=9 rails=2"),
        ("x rails=2 a=1", "x rails=2 a=1"),
        (7, "7"),
    ],
)
def test_setting_names_are_normalized(text, called):
    assert parse_setting(text) == called


@pytest.mark.parametrize(
    "text", ["x" * (MAX_SETTING_LENGTH + 1), "two\nlines", "\x1b[2J", True, None, ["a"], "a=1 a=2"]
)
def test_an_invalid_setting_is_refused(text):
    with pytest.raises(UserError):
        parse_setting(text)


@pytest.fixture
def raw(tmp_path):
    """Write two samples of every case of the plan; return the folder."""
    folder = tmp_path / "one"
    folder.mkdir()
    for case in PLAN.batches[0].ids:
        file = tmp_path / "pass.csv"
        rows = [f"{case},{k},{1e-6 * (k + 1):.9e},1e-9,1,samples" for k in range(2)]
        file.write_text("\n".join(["id,sample,seconds,skew,valid,stop", *rows]) + "\n")
        raw_samples.join_passes({1: file}, folder, case)
    return tmp_path


def test_observations_have_the_setting_that_their_batch_noted(raw):
    assert "setting" not in collect_samples(PLAN, raw)[0]
    write_json(raw / "one" / PROVENANCE, {"setting": "rails=2", "date": "today"})
    observations, _ = collect_samples(PLAN, raw)
    assert set(observations["setting"]) == {"rails=2"}
    write_table(raw / "observations.csv", observations)
    assert set(read_table(raw / "observations.csv", OBSERVATIONS)["setting"]) == {"rails=2"}
    summary = summarize_raw(observations)
    assert set(summary["setting"]) == {"rails=2"}
    assert not summary["settings"].str.contains("rails").any()


@pytest.mark.parametrize(
    "noted", [{"setting": "x" * 99}, {"setting": 7}, {"setting": "a\nb"}, ["setting"]]
)
def test_an_invalid_setting_in_a_provenance_file_is_refused(raw, noted):
    write_json(raw / "one" / PROVENANCE, noted)
    with pytest.raises(UserError, match=r"provenance\.json"):
        collect_samples(PLAN, raw)


def test_a_batch_cannot_continue_in_another_setting(tmp_path):
    path = tmp_path / PROVENANCE
    assert read_setting(path) == ""
    write_json(path, {"setting": "monday"})
    assert [check_setting(path, wanted) for wanted in ("", "monday")] == ["monday", "monday"]
    with pytest.raises(
        UserError, match="found setting 'friday', but this batch was begun in setting 'monday'"
    ):
        check_setting(path, "friday")
    write_json(path, {})
    with pytest.raises(UserError, match="begun without a setting"):
        check_setting(path, "friday")


@pytest.fixture
def two_settings(raw):
    """Return observations of both points in two settings; samples take three times as long in the
    second."""
    observations, _ = collect_samples(PLAN, raw)
    slow = observations.assign(seconds=3 * observations["seconds"], setting="slow")
    path = raw / "observations.csv"
    write_table(path, pd.concat([observations.assign(setting="fast"), slow]))
    return read_table(path, OBSERVATIONS)


def test_samples_of_two_settings_are_never_summed_up(two_settings):
    summary = summarize_raw(two_settings)
    assert len(summary) == 2 * 3
    assert set(summary["samples"]) == {2}
    medians = summary.groupby("setting")["median"].agg(["min", "max"])
    assert medians.loc["fast"].tolist() == pytest.approx([1.5e-6] * 2)
    assert medians.loc["slow"].tolist() == pytest.approx([4.5e-6] * 2)
    assert {"setting"} <= {field.name for field in SUMMARY} & {field.name for field in COMPARISON}


def test_a_comparison_treats_each_setting_as_a_separate_workload(two_settings):
    predictions = [
        (point.id, "f", seconds, seconds, seconds, "valid")
        for point, seconds in ((POINT, 1e-6), (OTHER, 2e-6))
    ]
    columns = ["point", "model", "seconds", "parameter_low", "parameter_high", "validity"]
    compared = compare(PLAN, two_settings, pd.DataFrame(predictions, columns=columns)).set_index(
        ["point", "setting"]
    )
    assert len(compared) == 4
    assert compared.loc[(POINT.id, "fast"), "measured"] == pytest.approx(1.5e-6)
    assert compared.loc[(POINT.id, "slow"), "measured"] == pytest.approx(4.5e-6)
    assert compared["workload"].nunique() == 2
    assert compared["chosen"].sum() == 2
    without_setting = compare(
        PLAN,
        two_settings[two_settings["setting"] == "fast"].drop(columns="setting"),
        pd.DataFrame(predictions, columns=columns),
    )
    assert set(without_setting["setting"]) == {""}


def test_no_fit_takes_probes_of_two_settings(two_settings):
    platform = PlannedPlatform(launcher="local", simulated=False, digest="")
    with pytest.raises(
        UserError, match="probes of the settings 'fast' and 'slow', wanted one setting"
    ):
        collect_observed(two_settings, "here", 1, platform)
    assert (
        collect_observed(two_settings[two_settings["setting"] == "slow"], "here", 1, platform)
        .probes["pingpong"][0]
        .seconds[0]
        == 3e-6
    )


def test_a_table_of_points_has_one_time_of_each_point_and_setting(tmp_path):
    rows = [
        "bcast,linear,2,8,1,b=1 a=2",
        "bcast,linear,2,8,3,a=2 b=1",
        "bcast,linear,2,8,7,",
        "bcast,linear,2,8,9,x",
    ]
    path = tmp_path / "points.csv"
    path.write_text("\n".join(["operation,algorithm,ranks,bytes,seconds,setting", *rows]) + "\n")
    table = read_points(path)
    assert table.settings == ["a=2 b=1", "", "x"]
    assert table.seconds == [2.0, 7.0, 9.0]
    assert len(set(table.points)) == 1
    path.write_text(
        "\n".join(["operation,algorithm,ranks,bytes,seconds,setting", "bcast,linear,2,8,1,a=1 a=2"])
        + "\n"
    )
    with pytest.raises(UserError, match=r"points\.csv:2: setting: found 'a' twice"):
        read_points(path)


def test_a_setting_changes_the_platform_digest_and_an_empty_setting_does_not(tmp_path):
    text = "launcher: local\nnodes: 1\ncores: 2\n"
    digests = []
    for more in ("", "setting: ''\n", "setting: rails=2\n", "setting: 7\n"):
        path = tmp_path / "p.yaml"
        path.write_text(text + more)
        digests.append(load_platform(path).digest)
    assert digests[0] == digests[1]
    assert len(set(digests)) == 3
